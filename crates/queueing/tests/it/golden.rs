//! Golden traces of ACK regulation: for each feature of TCP that it must not break, the arriving
//! packets, and for every regulator the packets that the sender receives, with their times.
//!
//! ```text
//! # a comment
//! line 0.010                                     the time that a packet takes on the line
//! 0.000 < S win 8000 <mss 1000,sackOK,wscale 0>  it arrives
//! 0.020 < . ack 1001 win 8000
//! 0.021 < . seq 2 ack 1001 win 8000 len 100      other than sequence number 1, with payload
//! == fifo, ack-filter                            output of these regulators, below its comment
//! 0.010 > S win 8000 <mss 1000,sackOK,wscale 0>  it has left the line and the regenerator behind it
//! ```
//!
//! Times, flags and options are written as in the traces of TCP; `[ect0]` and `[ce]` for the ECN
//! field. Numbers count from just below the wrap. Regulators with equal output share a section.
//!
//! After an intended change, `cargo test -p lastmile-queueing --test it -- --ignored bless`
//! rewrites the traces. Read every line of the difference against the RFC before you commit it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_packet::{FlowId, Meta, Protocol, SeqNumber, TcpFlags};
use lastmile_queueing::ack::regenerator::{self, Know};
use lastmile_queueing::ack::sad::{Duplicates, Report};
use lastmile_queueing::ack::{cake, clamp, collapsing, filter, pacing, sad};
use lastmile_queueing::spec::{Over, Spec};
use lastmile_queueing::{DropReason, DropSink, Limit, Match, Node, Overflow};
use lastmile_units::{BitRate, ByteCount, Duration, Instant, PacketCount};

use crate::diff::diff;
use crate::notation::{format_flags, format_options, format_time, parse_flags, parse_options, parse_time};
use crate::traffic::Probe;

const LIMIT: Limit = Limit::Packets(PacketCount::new(100));
/// Base of acknowledgement numbers and of the receiver's own sequence numbers.
const BASE: SeqNumber = SeqNumber::new(0u32.wrapping_sub(1500));

const REGULATORS: [&str; 11] = [
    "fifo",
    "sad-keep",
    "sad-count",
    "sad-list-regenerator",
    "sad-signal-regenerator",
    "ack-filter",
    "ack-collapsing",
    "cake",
    "cake-aggressive",
    "ack-pacing",
    "window-clamp",
];

/// The disciplines in front of the line and behind it.
fn regulator(name: &str) -> (Spec, Spec) {
    let fifo = || Box::new(Spec::fifo(100));
    let sad = |duplicates, report| {
        Spec::Sad(Over { config: sad::Config { duplicates, report, exempt: Match::Never }, queue: fifo() })
    };
    let regenerator = |know| {
        let config = regenerator::Config { know, ..regenerator::Config::default() };
        Spec::AckRegenerator(Over { config, queue: fifo() })
    };
    let cake = |mode| {
        Spec::CakeAckFilter(cake::Config {
            limit: LIMIT,
            drop: Overflow::Tail,
            rules: cake::Rules { mode, exempt: Match::Never },
        })
    };
    let ahead = match name {
        "fifo" => Spec::fifo(100),
        "sad-keep" => sad(Duplicates::Keep, Report::None),
        "sad-count" => sad(Duplicates::Count, Report::None),
        "sad-list-regenerator" => return (sad(Duplicates::Count, Report::List), regenerator(Know::List)),
        "sad-signal-regenerator" => return (sad(Duplicates::Count, Report::Signal), regenerator(Know::Signal)),
        "ack-filter" => {
            Spec::AckFilter(filter::Config { limit: LIMIT, drop: Overflow::Tail, rules: filter::Rules::default() })
        }
        "ack-collapsing" => {
            Spec::AckCollapsing(collapsing::Config { limit: LIMIT, drop: Overflow::Tail, exempt: Match::Never })
        }
        "cake" => cake(cake::Mode::Normal),
        "cake-aggressive" => cake(cake::Mode::Aggressive),
        // A segment of 1000 bytes in 20 ms.
        "ack-pacing" => {
            let rate = BitRate::from_kbit_per_s(400);
            let config = pacing::Config { rate, max_hold: Duration::from_ms(100), exempt: Match::Never };
            Spec::AckPacing(Over { config, queue: fifo() })
        }
        "window-clamp" => {
            let target = clamp::Target::Window(ByteCount::new(3000));
            let config = clamp::Config { target, mss: ByteCount::new(1000), exempt: Match::Never };
            Spec::WindowClamp(Over { config, queue: fifo() })
        }
        other => panic!("no regulator {other}"),
    };
    (ahead, Spec::fifo(100))
}

fn traces() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let entries = std::fs::read_dir(folder).expect("the folder of golden traces");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a directory entry").path()).collect();
    files.sort();
    files
}

fn read(path: &Path) -> (String, Result<String, String>) {
    let written = std::fs::read_to_string(path).expect("a readable trace");
    let actual = replay(&written);
    (written, actual)
}

#[test]
fn every_regulator_reproduces_its_golden_traces() {
    let files = traces();
    assert!(files.len() >= 7, "only {} golden traces found", files.len());
    let mut report = String::new();
    for path in files {
        let name = path.file_name().expect("a file").to_string_lossy();
        match read(&path) {
            (written, Ok(actual)) if actual == written => {}
            (written, Ok(actual)) => report += &diff(&name, &written, &actual),
            (_, Err(error)) => writeln!(report, "{name}:{error}").expect("a string takes all"),
        }
    }
    assert!(report.is_empty(), "\n{report}");
}

#[test]
#[ignore = "rewrites the golden traces"]
fn bless() {
    for path in traces() {
        let (_, actual) = read(&path);
        let actual = actual.unwrap_or_else(|error| panic!("{}:{error}", path.display()));
        std::fs::write(&path, actual).expect("a writable trace");
    }
}

/// Regulators with equal output.
#[derive(Default)]
struct Section {
    names: Vec<String>,
    comments: String,
    output: String,
}

/// Runs a trace through every regulator and rewrites it. The error names the line and the fault.
fn replay(text: &str) -> Result<String, String> {
    let head: String = text.split_inclusive('\n').take_while(|line| !line.starts_with("==")).collect();
    let (mut line, mut comes) = (Duration::ZERO, Vec::new());
    for (index, written) in head.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let bad = || format!("{}: neither `line SECONDS` nor `SECONDS < PACKET`: {written}", index + 1);
        let (first, rest) = written.split_once(' ').ok_or_else(bad)?;
        if first == "line" {
            line = parse_time(rest).ok_or_else(bad)?.since(Instant::ZERO);
        } else {
            let packet = rest.strip_prefix("< ").and_then(parse_packet).ok_or_else(bad)?;
            comes.push((parse_time(first).ok_or_else(bad)?, packet));
        }
    }
    let mut sections: Vec<Section> = Vec::new();
    for written in sections_of(text) {
        let mut comments = written.comments;
        for name in written.names {
            if !REGULATORS.contains(&name.as_str()) || sections.iter().any(|section| section.names.contains(&name)) {
                return Err(format!("no regulator, or one that is there twice: {name}"));
            }
            let output = run(&name, line, &comes);
            match sections.iter_mut().find(|section| section.output == output) {
                Some(section) => section.names.push(name),
                None => sections.push(Section { names: vec![name], comments: std::mem::take(&mut comments), output }),
            }
        }
    }
    let mut out = head;
    for section in sections {
        let _ = write!(out, "== {}\n{}{}", section.names.join(", "), section.comments, section.output);
    }
    Ok(out)
}

/// The sections of a trace without their output, and one of the regulators that have none yet.
fn sections_of(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in text.split_inclusive('\n') {
        if let Some(names) = line.strip_prefix("== ") {
            let names = names.trim().split(", ").map(str::to_owned).collect();
            sections.push(Section { names, ..Section::default() });
        } else if let Some(section) = sections.last_mut()
            && line.starts_with('#')
        {
            section.comments += line;
        }
    }
    let is_there = |name: &str| sections.iter().any(|section| section.names.iter().any(|there| there == name));
    let names = REGULATORS.iter().filter(|name| !is_there(name)).map(|name| (*name).to_owned()).collect();
    sections.push(Section { names, ..Section::default() });
    sections
}

/// The queue has space for all packets: only regulation drops.
struct Regulation;

impl DropSink<Probe> for Regulation {
    fn dropped(&mut self, _now: Instant, packet: Probe, reason: DropReason) {
        use DropReason::{AckCollapsed, AckDuplicate, AckFiltered, AckMerged, AckSignal};
        let regulated = matches!(reason, AckCollapsed | AckDuplicate | AckFiltered | AckMerged | AckSignal);
        assert!(regulated, "{reason:?}: {packet:?}");
    }
}

/// The packets that the sender receives. At one instant a packet leaves the line before others
/// arrive, and those arrive before the next transmission begins.
fn run(name: &str, line: Duration, comes: &[(Instant, Meta)]) -> String {
    let link_layer = LinkLayer::new(0, Framing::None).expect("plain IP");
    let (ahead, behind) = regulator(name);
    let mut ahead: Node<Probe> = ahead.build(&link_layer).expect("a regulator");
    let mut behind: Node<Probe> = behind.build(&link_layer).expect("a regulator");
    let mut comes = comes.iter().peekable();
    let mut on_line: Option<(Instant, Probe)> = None;
    let (mut now, mut out) = (Instant::ZERO, String::new());
    loop {
        let begins = if on_line.is_none() { ahead.next_ready(now) } else { None };
        let next = [on_line.as_ref().map(|(ends, _)| *ends), comes.peek().map(|(at, _)| *at), begins];
        let Some(next) = next.into_iter().flatten().min() else { return out };
        now = now.max(next);
        if let Some((_, packet)) = on_line.take_if(|(ends, _)| *ends == now) {
            behind.enqueue(now, packet, &mut Regulation);
            while let Some(packet) = behind.dequeue(now, &mut Regulation) {
                let _ = writeln!(out, "{} > {}", format_time(now), format_packet(&packet));
            }
        }
        while let Some((at, packet)) = comes.next_if(|(at, _)| *at <= now) {
            ahead.enqueue(now, Meta { arrived: *at, ..*packet }.into(), &mut Regulation);
        }
        if on_line.is_none() {
            on_line = ahead.dequeue(now, &mut Regulation).map(|packet| (now + line, packet));
        }
    }
}

fn parse_packet(text: &str) -> Option<Meta> {
    let (text, ecn) = match text {
        marked if marked.ends_with(" [ce]") => (marked.strip_suffix(" [ce]")?, Meta::CE),
        capable if capable.ends_with(" [ect0]") => (capable.strip_suffix(" [ect0]")?, 2),
        plain => (plain, 0),
    };
    let (fixed, options) = match text.split_once(" <") {
        Some((fixed, options)) => (fixed, options.strip_suffix('>')?),
        None => (text, ""),
    };
    let options = parse_options(options, BASE)?;
    let mut words = fixed.split(' ');
    let flags = parse_flags(words.next()?)?;
    let first = if flags.contains(TcpFlags::SYN) { 0 } else { 1 };
    let (mut seq, mut ack, mut window, mut payload) = (first, SeqNumber::new(0), None, 0);
    while let Some(word) = words.next() {
        let value: u32 = words.next()?.parse().ok()?;
        match word {
            "seq" => seq = value,
            "ack" => ack = BASE.add(value),
            "win" => window = Some(u16::try_from(value).ok()?),
            "len" => payload = u16::try_from(value).ok()?,
            _ => return None,
        }
    }
    let header_len = 40 + options.header_bytes();
    let mut packet = Meta {
        flow: FlowId::new(0),
        seq: BASE.add(seq),
        ack,
        flags,
        window: window?,
        header_len,
        ip_len: u16::from(header_len) + payload,
        protocol: Protocol::Tcp,
        traffic_class: ecn,
        ..Meta::default()
    };
    packet.set_options(options);
    Some(packet)
}

fn format_packet(packet: &Meta) -> String {
    assert_eq!(packet.protocol, Protocol::Tcp, "a signal that no regenerator consumed");
    assert!(!packet.options().has_list(), "a list that no regenerator removed");
    assert_eq!(packet.header_len, 40 + packet.options().header_bytes(), "header length of {packet:?}");
    let mut out = format_flags(packet.flags);
    let seq = packet.seq.distance_from(BASE);
    if seq != u32::from(!packet.flags.contains(TcpFlags::SYN)) {
        let _ = write!(out, " seq {seq}");
    }
    if packet.flags.contains(TcpFlags::ACK) {
        let _ = write!(out, " ack {}", packet.ack.distance_from(BASE));
    }
    let _ = write!(out, " win {}", packet.window);
    if packet.payload_len() > 0 {
        let _ = write!(out, " len {}", packet.payload_len());
    }
    let options = format_options(packet, BASE);
    if !options.is_empty() {
        let _ = write!(out, " <{options}>");
    }
    match packet.ecn() {
        0 => {}
        2 => out.push_str(" [ect0]"),
        Meta::CE => out.push_str(" [ce]"),
        other => panic!("nothing has ECN field {other}"),
    }
    out
}

const TINY: &str = "line 0.010\n0.000 < . ack 1 win 9\n";

/// The reader ignores the output in the file, and adds missing regulators.
#[test]
fn a_wrong_expectation_and_a_missing_regulator_are_found() {
    let actual = replay(&format!("{TINY}== fifo\n0.010 > . ack 2 win 9\n")).expect("a good trace");
    let all = REGULATORS.join(", ");
    assert_eq!(actual, format!("{TINY}== {all}\n0.010 > . ack 1 win 9\n"));
}

#[test]
fn a_bad_line_is_named() {
    let error = replay(&format!("{TINY}0.001 < . acc 1 win 9\n")).expect_err("a misspelt word");
    assert!(error.starts_with("3: "), "{error}");
    let error = replay(&format!("{TINY}== fifo, fifo\n")).expect_err("twice");
    assert!(error.contains("twice: fifo"), "{error}");
}
