//! Prints the table of all simulated lines on which detection is tried, each row as soon as it is known:
//! `make detect-table`. An argument selects the cases whose names contain it.

use std::io::Write as _;

#[allow(dead_code, reason = "tests read more of a row")]
mod cases;
mod simulated;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let part = std::env::args().nth(1).unwrap_or_default();
    let cases: Vec<_> = cases::all().into_iter().filter(|case| case.name.contains(&part)).collect();
    let mut rows = Vec::new();
    let mut output = std::io::stdout();
    write!(output, "{}", cases::HEADING)?;
    for case in &cases {
        for row in case.run(1)? {
            writeln!(output, "{row}")?;
            rows.push(row);
        }
        output.flush()?;
    }
    let wrong = rows.iter().filter(|row| row.wrong || row.queue_wrong).count();
    let sure = rows.iter().filter(|row| !row.named.starts_with("not sure")).count();
    writeln!(std::io::stderr(), "{} ways: {sure} decided, {wrong} named wrongly", rows.len())?;
    if wrong > 0 { Err("a case is named wrongly".into()) } else { Ok(()) }
}
