//! The output of a reproduction: tables, claims, and a summary.

use std::fmt::Write as _;

use lastmile_published::{
    Agreement, Claim, Reproduction, RowResult, Summary, Table as PublishedTable, TableResult, Value, Values, Verdict,
};
use lastmile_text::table::{Kind, Table};

use crate::failure::Result;
use crate::printer::Printer;

/// One table: a line for each quantity of each row, then claims and assumptions.
pub(super) fn table(published: &PublishedTable, result: &TableResult, printer: &mut Printer) -> Result<()> {
    printer.heading(&format!("{}/{}: {}", result.publication, result.id, result.title))?;
    let live = result.rows.iter().any(|row| !row.live.is_empty());
    let mut params: Vec<&str> = Vec::new();
    for (name, _) in result.rows.iter().flat_map(|row| row.params.iter()) {
        if !params.contains(&name) {
            params.push(name);
        }
    }
    let columns = params.iter().map(|&name| (name, Kind::Number));
    let figures = ["published", "theory", "simulated"]
        .into_iter()
        .chain(live.then_some("live"))
        .chain(live.then_some("as live"))
        .chain(["deviation"]);
    let figures = figures.chain(live.then_some("live deviation"));
    let columns = columns.chain([("", Kind::Text)]).chain(figures.map(|name| (name, Kind::Number)));
    let mut table = Table::new(columns);
    for row in &result.rows {
        let mut head: Vec<String> = params.iter().map(|&name| text(&row.params, name)).collect();
        for name in quantities(row) {
            let mut cells = std::mem::replace(&mut head, vec![String::new(); params.len()]);
            cells.push(name.to_owned());
            cells.extend([text(&row.published, name), text(&row.theory, name), simulated(row, name)]);
            cells.extend([&row.live, &row.live_simulated].iter().filter(|_| live).map(|values| text(values, name)));
            let deviations = [Some(&row.deviation), live.then_some(&row.live_deviation)];
            cells.extend(deviations.into_iter().flatten().map(|deviation| {
                deviation.number(name).map_or_else(String::new, |deviation| format!("{:+}", rounded(deviation)))
            }));
            table.row(cells);
        }
    }
    printer.table(&table)?;

    let mut text = String::new();
    for claim in &result.claims {
        text += &verdict(claim, "");
    }
    for claim in &result.live_claims {
        text += &verdict(claim, " live");
    }
    if let Some(agreement) = result.agreement.as_ref().filter(|agreement| agreement.figures > 0) {
        writeln!(text, "figures: {}", agreed(agreement)).expect("a string takes all");
    }
    if !result.seeds.is_empty() {
        let seeds = result.seeds.len();
        writeln!(text, "seeds: means of {seeds} runs, \u{b1} half the 95 % confidence interval")
            .expect("a string takes all");
    }
    for assumption in &result.assumptions {
        writeln!(text, "assumed: {assumption}").expect("a string takes all");
    }
    if !result.sensitivity.is_empty() {
        writeln!(
            text,
            "\nwhat other assumptions give, one at a time; deviation is the root mean square of the relative ones"
        )
        .expect("a string takes all");
        printer.data(&text)?;
        printer.table(&sensitivity(result))?;
        text.clear();
    }
    for contradiction in &published.contradictions {
        writeln!(text, "the publication contradicts itself: {contradiction}").expect("a string takes all");
    }
    text.push('\n');
    printer.data(&text)?;
    Ok(())
}

/// A claim with its verdict and the reason.
fn verdict(claim: &Claim, live: &str) -> String {
    let (state, turned) = match &claim.verdict {
        Verdict::Shown | Verdict::Quoted => (claim.verdict.as_str().to_owned(), None),
        Verdict::NotShown => (claim.verdict.as_str().to_uppercase(), None),
        Verdict::HangsOn { shown_in_base_case, assumptions } => {
            let base = if *shown_in_base_case { "shown" } else { "not shown" };
            let state = format!("{} (base case: {base})", claim.verdict.as_str().to_uppercase());
            (state, Some(assumptions.join("; ")))
        }
    };
    let mut text = format!("{state}{live}: {}\n    {}\n", claim.text, claim.evidence);
    if let Some(turned) = turned {
        writeln!(text, "    it hangs on {turned}").expect("a string takes all");
    }
    text
}

fn agreed(agreement: &Agreement) -> String {
    let Agreement { figures, within_10_pct, within_25_pct, within_50_pct, .. } = agreement;
    format!(
        "of {figures} published {within_10_pct} within 10 %, {within_25_pct} within 25 %, {within_50_pct} within 50 %"
    )
}

/// The verdicts by publication, and the claims that are not shown.
pub(super) fn summary(reproduction: &Reproduction, printer: &mut Printer) -> Result<()> {
    printer.heading("summary")?;
    let states = ["shown", "not shown", "hang on an assumption", "quoted"];
    let shares = ["figures", "within 10 %", "25 %", "50 %"];
    let columns = states.into_iter().chain(shares).map(|name| (name, Kind::Number));
    let mut table = Table::new([("claims of", Kind::Name)].into_iter().chain(columns));
    let mut row = |name: &str, of: &Summary| {
        let claims = [of.shown, of.not_shown, of.hang_on_an_assumption, of.quoted];
        let Agreement { figures, within_10_pct, within_25_pct, within_50_pct, .. } = of.agreement;
        let counts = claims.into_iter().chain([figures, within_10_pct, within_25_pct, within_50_pct]);
        table.row(std::iter::once(name.to_owned()).chain(counts.map(|count| count.to_string())));
    };
    let mut all = Summary::default();
    for publication in &reproduction.summary {
        row(&publication.publication, publication);
        all.merge(publication);
    }
    if reproduction.summary.len() > 1 {
        row("all", &all);
    }
    printer.table(&table)?;
    let mut text = String::new();
    for (state, told) in [("not shown", "not shown"), ("hangs on an assumption", "hang on an assumption")] {
        let is_so = |table: &&TableResult| {
            table.claims.iter().chain(&table.live_claims).any(|claim| claim.verdict.as_str() == state)
        };
        let names: Vec<String> = reproduction
            .tables
            .iter()
            .filter(is_so)
            .map(|table| format!("{}/{}", table.publication, table.id))
            .collect();
        if !names.is_empty() {
            writeln!(text, "{told}: {}", names.join(", ")).expect("a string takes all");
        }
    }
    printer.data(&text)?;
    Ok(())
}

fn sensitivity(result: &TableResult) -> Table {
    let columns = ["left open", "taken instead"].map(|name| (name, Kind::Words));
    let figures =
        [("seeds", Kind::Number), ("deviation, %", Kind::Number), ("claim", Kind::Text), ("verdict", Kind::Text)];
    let mut table = Table::new(columns.into_iter().chain(figures));
    let mut before = "";
    for tried in &result.sensitivity {
        let question = if tried.question == before { "" } else { &tried.question };
        before = &tried.question;
        table.row([
            question.to_owned(),
            tried.answer.clone(),
            tried.seeds.to_string(),
            tried.deviation_rms_pct.map_or_else(String::new, |deviation| rounded(deviation).to_string()),
            match (tried.shown, tried.undecided) {
                (true, _) => "shown",
                (false, true) => "undecided",
                (false, false) => "NOT SHOWN",
            }
            .to_owned(),
            if tried.turns_the_verdict { "turned" } else { "" }.to_owned(),
        ]);
    }
    table
}

/// The quantities of a row: published ones first, then those only simulated, or computed if nothing
/// is simulated.
fn quantities(row: &RowResult) -> Vec<&str> {
    let mut names: Vec<&str> = row.published.iter().map(|(name, _)| name).collect();
    let ours = if row.simulated.is_empty() { &row.theory } else { &row.simulated };
    for (name, _) in ours.iter().chain(row.live.iter()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// A simulated figure, with the half width of its confidence interval for several seeds.
fn simulated(row: &RowResult, name: &str) -> String {
    let figure = text(&row.simulated, name);
    match row.ci95.number(name) {
        Some(half_width) => format!("{figure} \u{b1} {}", to_digits(half_width, 2)),
        None => figure,
    }
}

fn text(values: &Values, name: &str) -> String {
    values.get(name).map_or_else(String::new, figure)
}

fn figure(value: &Value) -> String {
    match value {
        Value::Float(float) => rounded(*float).to_string(),
        other => other.to_string(),
    }
}

/// Rounds to four significant digits: more than any of the publications prints.
fn rounded(value: f64) -> f64 {
    to_digits(value, 4)
}

/// Rounds to `digits` significant digits.
fn to_digits(value: f64, digits: u8) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10_f64.powf(f64::from(digits) - 1.0 - value.abs().log10().floor());
    // Integers keep all their digits.
    if scale <= 1.0 { value.round() } else { (value * scale).round() / scale }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_rounded_to_four_digits_and_integers_stay_whole() {
        let shown: Vec<String> = [39.854_21, 0.012_345_6, 1_543_210.4, 100.0, 0.0, -2.506_49]
            .map(rounded)
            .iter()
            .map(f64::to_string)
            .collect();
        assert_eq!(shown, ["39.85", "0.01235", "1543210", "100", "0", "-2.506"]);
    }
}
