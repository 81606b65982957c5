//! Pictures of the download kept against the ping, measured with real packets, for
//! `docs/studies/downstream.md` and `docs/reference/peers.md`.
//!
//! `cargo run -p lastmile-results --example both-ways >
//! docs/images/both-ways.svg` draws the first from `docs/images/both-ways.json`, which `scripts/both-ways.py
//! --shares 85,90,95,97,98,99,99.5 --remedies shape,htb --tcp cubic --json` measures. With `--
//! guest` it draws the second, `docs/images/both-ways-guest.svg`, from `both-ways-guest.json`: `curve.json` of `make
//! peers`.
#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use lastmile_results::report::{Curve, TradeOff, trade_off};
use serde_json::Value;

/// Measurements and their caption.
const MACHINE: (&str, &str) = (
    include_str!("../../../docs/images/both-ways.json"),
    "One download and one upload, CUBIC, Linux; after the tenth second; a point for each margin; scripts/both-ways.py",
);
const GUEST: (&str, &str) = (
    include_str!("../../../docs/images/both-ways-guest.json"),
    "One download and one upload, CUBIC, Linux 6.12 on a virtual clock; after the tenth second; \
     a point for each margin; make peers",
);
const LINES: [(&str, &str); 2] =
    [("2M", "2 Mbit/s down, 512 kbit/s up, bridged"), ("8M", "8 Mbit/s down, 768 kbit/s up, PPPoA")];
const REMEDIES: [(&str, &str); 2] = [("shape", "lastmile shape"), ("htb", "the kernel's HTB")];

/// A picture as SVG.
fn picture((measured, caption): (&str, &str)) -> String {
    let runs: Vec<Value> = serde_json::from_str(measured).expect("what the script has printed");
    let number = |run: &Value, key: &str| run[key].as_f64().expect("a number");
    let lines = LINES.map(|(line, heading)| {
        let of_line = || runs.iter().filter(move |run| run["line"] == line);
        let curves = REMEDIES.map(|(remedy, label)| {
            let mut points: Vec<(f64, f64)> = of_line()
                .filter(|run| run["remedy"] == remedy)
                .map(|run| (number(run, "download"), number(run, "p99_ms") / 1e3))
                .collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            Curve { label: label.to_owned(), points }
        });
        let allowed_s = of_line().map(|run| number(run, "allowed_ms") / 1e3).fold(f64::INFINITY, f64::min);
        TradeOff { heading: heading.to_owned(), curves: curves.into(), allowed_s }
    });
    trade_off(&lines, caption)
}

/// The pictures, by the names of their files.
pub(crate) fn pictures() -> [(&'static str, String); 2] {
    [("both-ways", picture(MACHINE)), ("both-ways-guest", picture(GUEST))]
}

#[allow(dead_code, reason = "the test that includes this file has a main of its own")]
fn main() {
    let [machine, guest] = pictures();
    let (_, chosen) = if std::env::args().nth(1).as_deref() == Some("guest") { guest } else { machine };
    print!("{chosen}");
}
