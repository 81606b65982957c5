//! Download and ping under control of the downstream: share by share, with and without a drain.
//!
//! Prints the tables of `docs/studies/downstream.md`: `cargo run -p lastmile-scenario --example downstream`.
#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use std::fmt::Write as _;

use lastmile_model::{Network, Source};
use lastmile_scenario::policy::ready;
use lastmile_scenario::{Policy, Scenario};
use lastmile_units::{ByteCount, Duration, Instant};

const SCENARIO: &str = include_str!("../../../scenarios/policies/full-both-ways.toml");

/// A second ping, while the overshoots of the beginning are drained.
const EARLY: &str = "
[[traffic]]
name = \"early\"
kind = \"ping\"
interval = \"101 ms\"
size = \"84 B\"
start = \"3 s\"
stop = \"10 s\"
";

const LINES: [(&str, [&str; 3]); 2] = [
    (
        "2 Mbit/s down, 512 kbit/s up, bridged",
        ["access.encapsulation=bridged-vcmux-fcs", "access.down.rate=2 Mbit/s", "access.up.rate=512 kbit/s"],
    ),
    (
        "8 Mbit/s down, 768 kbit/s up, PPPoA",
        ["access.encapsulation=pppoa-vcmux", "access.down.rate=8 Mbit/s", "access.up.rate=768 kbit/s"],
    ),
];

/// Measures: the name, whether with a drain and with clamp and pacing, and the shares of the line in
/// parts of a thousand.
const VARIANTS: [(&str, bool, bool, &[u32]); 4] = [
    ("a shaper alone", false, false, &[850, 900, 950, 970, 990]),
    ("with a drain", true, false, &[950, 970, 990]),
    ("with clamp and pacing", false, true, &[950, 970, 980, 990, 995]),
    ("with clamp, pacing and drain", true, true, &[950, 970, 980, 990, 995]),
];

/// The figures of a run.
struct Row {
    download: f64,
    upload: f64,
    p50: f64,
    p99: f64,
    early_p99: f64,
}

impl Row {
    fn cells(&self) -> String {
        let Self { download, p50, p99, early_p99, .. } = self;
        format!("{:.1} % | {p50:.0} ms | {p99:.0} ms | {early_p99:.0} ms", download * 100.0)
    }
}

/// The ready policy with another share, and without what is not wanted. Where windows are not clamped,
/// the queue of the bulk of the downstream is FQ-CoDel, which serves a shaper best: a long one would
/// only be filled.
fn policy(share: u32, drain: bool, regulated: bool) -> String {
    let text = ready::text("full-both-ways").expect("a ready policy");
    let long = "kind = \"sfq\", limit = \"1 s\", depth = \"1 s\"";
    assert!(text.contains(long), "the policy has another queue");
    let text = if regulated { text.to_owned() } else { text.replace(long, "kind = \"fq-codel\"") };
    let percent = f64::from(share) / 10.0;
    let keep = |line: &&str| match *line {
        "drain = true" => drain,
        line => regulated || !(line.starts_with("clamp = ") || line.starts_with("pace = ")),
    };
    let kept: Vec<&str> = text.lines().filter(keep).collect();
    kept.join("\n").replace("share = \"98 %\"", &format!("share = \"{percent} %\""))
}

/// The scenario on this line, with the queues of the policy.
fn network(line: &[&str], downloads: u32, policy: &str) -> Network {
    let count = format!("traffic.download.count={downloads}");
    let overrides: Vec<String> = line.iter().map(|&text| text.to_owned()).chain([count]).collect();
    let scenario = Scenario::parse("both-ways.toml", &format!("{SCENARIO}{EARLY}"), &overrides)
        .unwrap_or_else(|report| panic!("{report}"));
    let own = scenario.access().and_then(|access| access.policy.as_ref()).expect("a policy").line;
    let policy = Policy::parse("p.toml", policy, Some(own)).unwrap_or_else(|report| panic!("{report}"));
    let mut network = scenario.network();
    for link in &mut network.links {
        match link.hop.name.as_str() {
            "middlebox-down" => link.hop.queue = policy.down.as_ref().expect("a middlebox").queue.clone(),
            "middlebox-up" => link.hop.queue = policy.up.clone(),
            _ => {}
        }
    }
    network
}

fn measure(network: &Network) -> Row {
    let outcome = lastmile_sim::run(network).expect("a network that was checked");
    let begin = Instant::ZERO + Duration::from_s(10);
    let first = outcome.snapshots.iter().find(|snapshot| snapshot.at == begin).expect("the ping begins then");
    let last = outcome.snapshots.last().expect("the end of the run");
    let seconds = last.at.since(first.at).as_secs_f64();
    let link = |name: &str| network.links.iter().position(|link| link.hop.name == name).expect("an access line");
    let rate = |index: usize| network.links[index].hop.line.rate.expect("a line has a rate");
    let (down, up) = (link("down"), link("up"));
    let downloads: u64 = (0..outcome.flows.len())
        .filter(|&flow| {
            let traffic = &network.traffic[outcome.flows[flow].traffic];
            traffic.direction == "down" && matches!(traffic.source, Source::Bulk { .. })
        })
        .map(|flow| last.bytes_delivered[flow] - first.bytes_delivered[flow])
        .sum();
    let full = rate(down).time_for(network.links[down].hop.line.link_layer.on_wire(ByteCount::new(1500))).as_secs_f64();
    let sent = (last.wire_bits[up] - first.wire_bits[up]) as f64;
    let quantile = |name: &str, percent: usize| {
        let probe = outcome.probes.iter().find(|probe| probe.name == name).expect("a ping of this name");
        let mut replies: Vec<Duration> = probe.replies.iter().map(|(_, rtt)| *rtt).collect();
        replies.sort_unstable();
        replies[(replies.len() * percent).div_ceil(100) - 1].as_secs_f64() * 1e3
    };
    Row {
        download: downloads as f64 / 1460.0 * full / seconds,
        upload: sent / seconds / rate(up).as_bps() as f64,
        p50: quantile("ping", 50),
        p99: quantile("ping", 99),
        early_p99: quantile("early", 99),
    }
}

/// All tables, as Markdown.
pub(crate) fn tables() -> String {
    let mut text = String::new();
    let mut say = |line: std::fmt::Arguments<'_>| writeln!(text, "{line}").expect("a string takes all");
    for (number, (name, line)) in LINES.iter().enumerate() {
        if number > 0 {
            say(format_args!(""));
        }
        let columns = "download | p50 | p99 | early p99";
        say(format_args!("| {name} | share | upload | one download: {columns} | four: {columns} |"));
        say(format_args!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"));
        for (what, drain, regulated, shares) in VARIANTS {
            for &share in shares {
                let row = |downloads| measure(&network(line, downloads, &policy(share, drain, regulated)));
                let (one, four) = (row(1), row(4));
                let upload = one.upload.min(four.upload) * 100.0;
                let share = f64::from(share) / 10.0;
                say(format_args!("| {what} | {share} % | {upload:.1} % | {} | {} |", one.cells(), four.cells()));
            }
        }
    }
    text
}

#[allow(dead_code, reason = "the test that includes this file has a main of its own")]
fn main() {
    print!("{}", tables());
}
