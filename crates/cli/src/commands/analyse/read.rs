//! The inputs of an analysis: capture files, and folders with the results of a run.

use std::fs::File;
use std::io::{ErrorKind, Read, stdin};
use std::path::{Path, PathBuf};

use lastmile_analysis::{Analysis, Connection, Sighting, parse_captured};
use lastmile_results::Summary;
use lastmile_results::write::SUMMARY;
use lastmile_scenario::capture;
use lastmile_units::Instant;

use crate::failure::{Failure, Result};

/// The name of standard input.
pub(super) const STANDARD_INPUT: &str = "-";

/// A file with the results of its analysis.
pub(super) struct Analysed {
    pub(super) path: PathBuf,
    /// The summary of the run in this folder, or in the capture's folder.
    pub(super) run: Option<Summary>,
    pub(super) connections: Vec<Connection>,
    pub(super) counts: Counts,
}

/// Packets of a capture.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) packets: u64,
    /// Packets without IP.
    pub(super) foreign: u64,
    /// Packets with truncated or contradictory headers, and those without a time.
    pub(super) unreadable: u64,
    /// The number of the first unreadable packet, and its error.
    pub(super) first_unreadable: Option<(u64, String)>,
    /// IP packets without readable TCP.
    pub(super) other: u64,
    /// Packets with options that the snap length cut.
    pub(super) cut: u64,
    pub(super) back_in_time: u64,
    /// Packets seen before at another interface, and omitted.
    pub(super) seen_before: u64,
    /// Bytes of the file, before compression, up to the end of the last packet.
    pub(super) bytes: u64,
    /// Why the file could not be read to its end.
    pub(super) broken: Option<String>,
    pub(super) duration_s: f64,
}

/// Analyses a capture, or all captures of a folder.
pub(super) fn all(path: &Path) -> Result<Vec<Analysed>> {
    if path.is_dir() { folder(path) } else { Ok(vec![one(path, None)?]) }
}

fn folder(path: &Path) -> Result<Vec<Analysed>> {
    let failed = |path: &Path, error: &dyn std::fmt::Display| Failure::new(format_args!("{}: {error}", path.display()));
    let summary = path.join(SUMMARY);
    let text = std::fs::read_to_string(&summary).map_err(|error| {
        failed(&summary, &error)
            .hint("a folder must hold the results of a run, as `lastmile run --out DIR` writes them")
    })?;
    let summary: Summary = serde_json::from_str(&text).map_err(|error| failed(&summary, &error))?;
    let entries = std::fs::read_dir(path).map_err(|error| failed(path, &error))?;
    let mut captures: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    captures.retain(|path| is_capture(path));
    captures.sort();
    if captures.is_empty() {
        let (connections, counts) = (Vec::new(), Counts::default());
        return Ok(vec![Analysed { path: path.to_owned(), run: Some(summary), connections, counts }]);
    }
    captures.iter().map(|capture| one(capture, Some(summary.clone()))).collect()
}

/// True for the extensions `.pcap` and `.pcapng`, optionally followed by `.gz` or `.zst`.
fn is_capture(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    plain.ends_with(".pcap") || plain.ends_with(".pcapng")
}

/// The file of this name, or standard input.
fn open(path: &Path) -> std::io::Result<Box<dyn Read>> {
    if path == Path::new(STANDARD_INPUT) { Ok(Box::new(stdin().lock())) } else { Ok(Box::new(File::open(path)?)) }
}

fn one(path: &Path, run: Option<Summary>) -> Result<Analysed> {
    let wrong = |message: String| Failure::new(format_args!("{}: {message}", path.display()));
    let file = open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => wrong("no such file".to_owned()).hint(
            "pcap and pcapng can be read, also compressed (gz, zst) or from standard input (-), \
                 and folders of `run --out`",
        ),
        _ => wrong(error.to_string()),
    })?;
    let mut analysis = Analysis::new();
    let mut counts = Counts::default();
    let mut times = capture::Times::default();
    let mut last = Instant::ZERO;
    let extent = capture::read(file, &mut |frame| {
        counts.packets += 1;
        let Some(ip) = frame.ip else {
            counts.foreign += 1;
            return Ok(());
        };
        let parsed = match (frame.at_ns, parse_captured(ip)) {
            (Some(at_ns), Ok(parsed)) => match times.since_first(at_ns) {
                Some(at) => Ok((at, parsed)),
                None => Err(format!("its time is more than {} after that of the first", capture::Times::LONGEST)),
            },
            (None, _) => Err("it has no time".to_owned()),
            (_, Err(error)) => Err(error.to_string()),
        };
        match parsed {
            Ok((at, (parsed, cut))) => {
                last = last.max(at);
                counts.cut += u64::from(cut);
                let capture::Sighting { interface, sent } = frame.sighting;
                analysis.packet_at(at, Sighting { interface, sent }, &parsed);
            }
            Err(why) => {
                counts.unreadable += 1;
                counts.first_unreadable.get_or_insert((counts.packets, why));
            }
        }
        Ok(())
    });
    let extent = extent.map_err(|problem| {
        wrong(problem).hint("pcap and pcapng of Ethernet, raw IP, PPP, Linux cooked and loopback captures can be read")
    })?;
    (counts.bytes, counts.broken) = (extent.bytes, extent.broken);
    counts.duration_s = last.as_secs_f64();
    counts.other = analysis.other_packets();
    counts.back_in_time = analysis.packets_back_in_time();
    counts.seen_before = analysis.packets_seen_before();
    Ok(Analysed { path: path.to_owned(), run, connections: analysis.finish(), counts })
}
