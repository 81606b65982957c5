//! `lastmile analyse` on a long capture, compared with the programs that people use for it: tcptrace and tshark.
//!
//! One capture serves all of them: 40 downloads over a full queue, seen at the server, headers only.
//! The time is that of the processor, in steps of 10 ms, so that other work of the machine counts
//! little; memory is the peak of the resident set (proc(5)). A program that is not installed has no
//! row.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant as Clock};

use comfy_table::{LineStyle, Table, TableStyle};
use serde_json::Value;

use crate::costs::OfCapture;
use crate::measurement::Measurement;
use crate::startup::program;

/// The first word of the names.
pub(crate) const PREFIX: &str = "capture";
/// Clock ticks of /proc/PID/stat in a second (`USER_HZ`, proc(5)): 100 on every architecture of Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// 200 Mbit/s carry 16 667 packets of 1500 bytes a second, and every second one is acknowledged: 2.4
/// million packets in 97 s.
const SCENARIO: &str = r#"duration = "97 s"
record = { series = false }
tcp = { variant = "cubic", receive_window = "2 MB" }

[access]
encapsulation = "ip"
down = { rate = "200 Mbit/s", delay = "20 ms", queue = { kind = "fifo", limit = "600 packets" } }
up = { rate = "20 Mbit/s", delay = "20 ms" }

[[traffic]]
name = "download"
kind = "bulk"
direction = "down"
count = 40
"#;

/// The interface of the capture: the server's.
const LINK: &str = "server-gateway";

/// A program that reads captures.
struct Reader {
    name: &'static str,
    /// `None` for `lastmile` itself.
    program: Option<&'static str>,
    /// Arguments before the name of the capture.
    arguments: &'static [&'static str],
    /// Whether page and segments are written, too.
    draws: bool,
}

const READERS: [Reader; 5] = [
    Reader { name: "capture: lastmile analyse", program: None, arguments: &["analyse"], draws: false },
    Reader { name: "capture: lastmile analyse --page --segments", program: None, arguments: &["analyse"], draws: true },
    // Without -n it asks the resolver for names.
    Reader { name: "capture: tcptrace -n", program: Some("tcptrace"), arguments: &["-n"], draws: false },
    Reader {
        name: "capture: tcptrace -n -l -r (round trips)",
        program: Some("tcptrace"),
        arguments: &["-n", "-l", "-r"],
        draws: false,
    },
    Reader {
        name: "capture: tshark -z conv,tcp",
        program: Some("tshark"),
        arguments: &["-n", "-q", "-z", "conv,tcp", "-r"],
        draws: false,
    },
];

impl Reader {
    fn path(&self) -> Option<PathBuf> {
        match self.program {
            None => program(),
            Some(name) => {
                let folders = std::env::var_os("PATH")?;
                std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
            }
        }
    }

    fn command(&self, capture: &Path) -> Option<Command> {
        let mut command = Command::new(self.path()?);
        command.args(self.arguments).arg(capture).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if self.draws {
            command.arg("--page").arg(capture.with_extension("html"));
            command.arg("--segments").arg(capture.with_extension("parquet"));
        }
        Some(command)
    }
}

pub(crate) fn is_one(name: &str) -> bool {
    READERS.iter().any(|reader| reader.name == name)
}

/// All programs that are there, if `lastmile` is built.
pub(crate) fn names() -> Vec<String> {
    let there = READERS.iter().filter(|reader| program().is_some() && reader.path().is_some());
    there.map(|reader| reader.name.to_owned()).collect()
}

/// The capture, next to this program; it is there while a [`Prepared`] is.
fn capture() -> Option<PathBuf> {
    Some(std::env::current_exe().ok()?.with_file_name("bench-capture.pcapng"))
}

/// The capture as a file. It and what is written next to it are removed at the end.
pub(crate) struct Prepared(PathBuf);

impl Prepared {
    /// Simulates the downloads and keeps their packets.
    pub(crate) fn new() -> Result<Self, String> {
        let path = capture().ok_or("the path of this program is unknown")?;
        let program = program().ok_or("lastmile is not built")?;
        let folder =
            tempfile::tempdir_in(path.parent().unwrap_or(Path::new("."))).map_err(|error| error.to_string())?;
        let (scenario, out) = (folder.path().join("capture.toml"), folder.path().join("out"));
        std::fs::write(&scenario, SCENARIO).map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.arg("run").arg(&scenario).args(["--capture", LINK, "--out"]).arg(&out);
        let output = command.output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        std::fs::rename(out.join(LINK).with_extension("pcapng"), &path).map_err(|error| error.to_string())?;
        Ok(Self(path))
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        for extension in ["pcapng", "html", "parquet"] {
            let _ = std::fs::remove_file(self.0.with_extension(extension));
        }
    }
}

/// Runs one program over the capture.
pub(crate) fn run(name: &str) -> Option<Measurement> {
    let reader = READERS.iter().find(|reader| reader.name == name)?;
    let capture = capture().filter(|path| path.exists())?;
    let packets = packets(&capture)?;
    let clock = Clock::now();
    let usage = Usage::of(reader.command(&capture)?.spawn().ok()?)?;
    let wall_s = clock.elapsed().as_secs_f64();
    Some(Measurement {
        data_packets: packets,
        peak_bytes: usage.peak_bytes,
        capture: Some(OfCapture { cpu_s: usage.cpu_s, packets }),
        ..Measurement::of_events(name, wall_s, 0)
    })
}

/// The number of packets, as `lastmile analyse` counts them.
fn packets(capture: &Path) -> Option<u64> {
    let output = Command::new(program()?).arg("analyse").arg(capture).arg("--json").output().ok()?;
    let document: Value = serde_json::from_slice(&output.stdout).ok()?;
    document["files"][0]["packets"].as_u64()
}

/// Resources of a process at its end.
#[derive(Default)]
struct Usage {
    cpu_s: f64,
    peak_bytes: u64,
}

impl Usage {
    /// Waits for the process. Its times are those of the zombie, which has no memory left: the peak is
    /// the last reading of the running process.
    fn of(mut process: Child) -> Option<Self> {
        let folder = PathBuf::from(format!("/proc/{}", process.id()));
        let mut usage = Self::default();
        loop {
            let (is_over, ticks) = times(&std::fs::read_to_string(folder.join("stat")).ok()?)?;
            usage.cpu_s = ticks as f64 / TICKS_PER_SECOND;
            if is_over {
                break;
            }
            let status = std::fs::read_to_string(folder.join("status")).unwrap_or_default();
            usage.peak_bytes = usage.peak_bytes.max(peak_bytes(&status).unwrap_or(0));
            std::thread::sleep(Duration::from_millis(2));
        }
        process.wait().ok()?.success().then_some(usage)
    }
}

/// Whether a process has ended, and the ticks it ran: fields 3, 14 and 15 of /proc/PID/stat. The second is the name of
/// the program in parentheses, in which anything may be.
fn times(stat: &str) -> Option<(bool, u64)> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some((*fields.first()? == "Z", ticks(14)? + ticks(15)?))
}

fn peak_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

/// The programs side by side.
pub(crate) fn print_table(rows: &[Measurement]) {
    let costs: Vec<_> = rows.iter().filter_map(|row| Some((row, row.capture?))).collect();
    if costs.is_empty() {
        return;
    }
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
    table.set_header(["program", "packets", "processor s", "wall s", "M packets/s", "peak MiB"]);
    for (row, OfCapture { cpu_s, packets }) in costs {
        table.add_row([
            row.name.clone(),
            packets.to_string(),
            format!("{cpu_s:.2}"),
            format!("{:.2}", row.wall_s),
            format!("{:.2}", packets as f64 / cpu_s / 1e6),
            format!("{:.1}", row.peak_bytes as f64 / f64::from(1 << 20)),
        ]);
    }
    println!("{table}");
}

#[cfg(test)]
mod tests {
    use lastmile_scenario::Scenario;

    use super::*;

    #[test]
    fn the_state_and_the_times_of_a_process_are_read_whatever_its_name() {
        let stat = "7 (a) R 9 (b) Z 1 7 7 0 -1 4194560 100 0 0 0 41 9 0 0 20 0 1 0 100 0 0";
        assert_eq!(times(stat), Some((true, 50)));
        assert_eq!(times("7 (b) S 1 7 7 0 -1 4194560 100 0 0 0 3 0 0 0"), Some((false, 3)));
        assert_eq!(peak_bytes("Name:\tx\nVmHWM:\t    2048 kB\n"), Some(2 << 20));
    }

    #[test]
    fn a_process_that_fails_has_no_cost() {
        let of = |word: &str| Usage::of(Command::new(word).spawn().expect("coreutils"));
        assert!(of("true").is_some());
        assert!(of("false").is_none());
    }

    /// 1500 bytes are 12 000 bits: 16 666 packets a second for 97 s, without ACKs.
    #[test]
    fn the_capture_has_millions_of_packets() {
        let scenario = Scenario::parse("capture.toml", SCENARIO, &[]).unwrap_or_else(|error| panic!("{error}"));
        let network = scenario.network();
        let down = network.links.iter().find(|link| link.hop.name == "down").expect("the line");
        let data = down.hop.line.rate.expect("a rate").as_bps() / 12_000 * network.duration.as_ms() / 1000;
        assert_eq!(data, 16_666 * 97);
        assert!(network.links.iter().any(|link| link.hop.name == LINK));
    }
}
