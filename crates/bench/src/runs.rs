//! Whole runs as users start them: `lastmile run FILE --json`, without series.
//!
//! The time and the instructions are those of the whole process: reading the scenario, the simulation, and the results.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant as Clock;

use serde_json::Value;
use tempfile::NamedTempFile;

use crate::instructions;
use crate::measurement::Measurement;
use crate::startup::program;

/// The first word of the names.
pub(crate) const PREFIX: &str = "run --json";

/// Bulk transfers with SACK over one link.
struct Run {
    flows: u32,
    mbit_per_s: u32,
    delay_ms: u32,
    window: &'static str,
    packets: u32,
    duration: &'static str,
}

/// Two goals of speed, and the cost of a packet with few and with very many flows of 1 Mbit/s each.
const RUNS: [Run; 4] = [
    Run { flows: 48, mbit_per_s: 150, delay_ms: 40, window: "2 MB", packets: 1_000, duration: "60 s" },
    Run { flows: 500, mbit_per_s: 1_000, delay_ms: 20, window: "2 MB", packets: 1_000, duration: "10 s" },
    Run { flows: 100, mbit_per_s: 100, delay_ms: 20, window: "64 KiB", packets: 100, duration: "20 s" },
    Run { flows: 100_000, mbit_per_s: 100_000, delay_ms: 20, window: "64 KiB", packets: 100_000, duration: "1 s" },
];

impl Run {
    fn name(&self) -> String {
        let Self { flows, mbit_per_s, duration, .. } = self;
        format!("{PREFIX}: {flows} SACK flows, {mbit_per_s} Mbit/s, {duration}")
    }

    fn scenario(&self) -> String {
        let Self { flows, mbit_per_s, delay_ms, window, packets, duration } = self;
        format!(
            r#"duration = "{duration}"
start_jitter = "0 ms"
record = {{ series = false }}
tcp = {{ variant = "sack", receive_window = "{window}" }}

[[link]]
name = "down"
from = "server"
to = "client"
rate = "{mbit_per_s} Mbit/s"
delay = "{delay_ms} ms"
queue = {{ kind = "fifo", limit = "{packets} packets" }}

[[traffic]]
kind = "bulk"
from = "server"
to = "client"
count = {flows}
"#
        )
    }

    fn file(&self) -> Option<NamedTempFile> {
        let mut file = tempfile::Builder::new().suffix(".toml").tempfile().ok()?;
        file.write_all(self.scenario().as_bytes()).ok()?;
        Some(file)
    }
}

fn find(name: &str) -> Option<&'static Run> {
    RUNS.iter().find(|run| run.name() == name)
}

/// All runs, if the program is built.
pub(crate) fn names() -> Vec<String> {
    program().map(|_| RUNS.iter().map(Run::name).collect()).unwrap_or_default()
}

pub(crate) fn is_one(name: &str) -> bool {
    find(name).is_some()
}

pub(crate) fn run(name: &str) -> Option<Measurement> {
    let (program, file) = (program()?, find(name)?.file()?);
    let clock = Clock::now();
    let output = Command::new(program).args(arguments(file.path())?).output().ok()?;
    let wall_s = clock.elapsed().as_secs_f64();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results: Value = serde_json::from_slice(&output.stdout).ok()?;
    let sum = |key: &str, field: &str| {
        let rows = results[key].as_array().map_or(&[][..], Vec::as_slice);
        rows.iter().filter_map(|row| row[field].as_u64()).sum()
    };
    Some(Measurement {
        data_packets: sum("flows", "data_packets"),
        hops: sum("links", "packets"),
        peak_bytes: results["timing"]["memory_bytes"].as_u64()?,
        ..Measurement::of_events(name, wall_s, results["events"].as_u64()?)
    })
}

/// The instructions of the whole process. Runs of very many flows take too long under valgrind: their time is compared.
pub(crate) fn instructions(name: &str) -> Option<u64> {
    let run = find(name).filter(|run| run.flows <= 500)?;
    let (program, file) = (program()?, run.file()?);
    instructions::of_command(None, &program, &arguments(file.path())?)
}

fn arguments(file: &Path) -> Option<[&str; 3]> {
    Some(["run", file.to_str()?, "--json"])
}

#[cfg(test)]
mod tests {
    use lastmile_model::Source;
    use lastmile_scenario::Scenario;

    use super::*;

    /// The text of each run says what its name says.
    #[test]
    fn each_scenario_has_the_flows_and_the_rate_of_its_name() {
        for run in &RUNS {
            let scenario = Scenario::parse("run.toml", &run.scenario(), &[]).unwrap_or_else(|error| panic!("{error}"));
            let network = scenario.network();
            assert_eq!(network.traffic[0].count, run.flows, "{}", run.name());
            assert!(matches!(network.traffic[0].source, Source::Bulk { bytes: None, .. }));
            let rate = network.links[0].hop.line.rate.expect("the link has a rate");
            assert_eq!(rate.as_bps(), u64::from(run.mbit_per_s) * 1_000_000);
            assert_eq!(network.record.interval, None);
        }
    }
}
