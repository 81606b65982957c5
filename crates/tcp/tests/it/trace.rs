//! Golden traces: one endpoint, driven line by line at exact simulated times, in the manner of packetdrill.
//!
//! A trace is a text file of lines:
//!
//! ```text
//! # a comment, on a line of its own or after two spaces at the end of a line
//! open active variant=reno mss=1000 iw=2      the endpoint under test, in the first line; see `set`
//! 0.000 connect                               a call of the application at a time in seconds
//! 0.000 > S 0:0(0) win 65535 <mss 1000>       it sent this segment (output)
//! 0.100 < S. 0:0(0) ack 1 win 65535 <mss 1000>   the peer's segment arrives
//! 0.100 ? cwnd 2000 ssthresh none             these values hold now (names are input, values output)
//! 2.000 end                                   time passes to this point
//! ```
//!
//! Calls: `connect`, `write BYTES`, `write forever`, `close`, `abort`, `read off`, `read on`, `end`. Flags:
//! `S F R P . E W` (`.` is ACK, `E` is ECE, `W` is CWR), `-` for none. `seq:end(len)` and acknowledgement
//! numbers count from each side's initial sequence number. `win` is the header's field. Options: `mss N`,
//! `sackOK`, `wscale N`, `TS value echo`, `sack left:right ...`. After them `[ect0]` or `[ce]` for the ECN
//! field, and `again` where the sender marks a retransmission.
//!
//! Settings that `open` does not name are those of `Config::default`, with four exceptions: the timer of
//! RFC 6298, losses found by counting (RFC 6675), no tail loss probe, and no undo.
//!
//! `replay` runs the input lines and rewrites the whole file: input lines and comments unchanged, output
//! lines from the run. Timers fire at their exact times; those due at the time of an input line fire before
//! it. Comments before or after an output line stay with it if the line is unchanged.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Arc;

use lastmile_packet::{FlowId, Meta, Protocol, SeqNumber, TcpFlags};
use lastmile_tcp::{
    ByteCounting, Config, CongestionConfig, Ecn, Endpoint, InitialWindow, LossDetection, Open, Recovery, RepairConfig,
    Rto, SlowStart, TimerConfig, Variant, WindowScale,
};
use lastmile_units::{ByteCount, Duration, Instant};

use crate::notation::{format_flags, format_options, format_time, parse_flags, parse_options, parse_time};

/// Sequence numbers of both sides begin just below the wrap, so that every trace crosses it.
const ISS: SeqNumber = SeqNumber::new(0u32.wrapping_sub(3000));
const PEER_ISS: SeqNumber = SeqNumber::new(0u32.wrapping_sub(1500));

type Outcome<T> = Result<T, String>;

/// Runs a trace and rewrites it. Errors name the line and its fault.
pub(crate) fn replay(text: &str) -> Outcome<String> {
    let mut out = String::new();
    let mut blocks = blocks(text).into_iter().peekable();
    let mut subject: Option<Subject> = None;
    while let Some(block) = blocks.next() {
        let mut sent = Vec::new();
        let input = match subject.as_mut() {
            None => {
                subject = Some(open(&block.input).map_err(|error| format!("{}: {error}", block.line))?);
                block.input.clone()
            }
            Some(subject) => {
                subject.run(&block.input, &mut sent).map_err(|error| format!("{}: {error}", block.line))?
            }
        };
        // Events before this input belong to the block before it.
        let at = sent.iter().position(Option::is_none).unwrap_or(0);
        let late: Vec<String> = sent.drain(..at).flatten().collect();
        write_outputs(&mut out, late, block.pending.clone());
        for comment in &block.comments {
            let _ = writeln!(out, "{comment}");
        }
        let _ = writeln!(out, "{input}{}", block.trailing);
        let now: Vec<String> = sent.into_iter().flatten().collect();
        let later = blocks.peek_mut();
        let mut old = block.outputs;
        let rest = take_outputs(&mut out, now, &mut old);
        match later {
            Some(later) => later.pending = rest,
            None => {
                for comment in rest.into_iter().flat_map(|line| line.comments) {
                    let _ = writeln!(out, "{comment}");
                }
            }
        }
    }
    Ok(out)
}

/// An output line of the file.
#[derive(Clone)]
struct OldLine {
    comments: Vec<String>,
    text: String,
    trailing: String,
}

struct Block {
    line: usize,
    comments: Vec<String>,
    input: String,
    trailing: String,
    outputs: VecDeque<OldLine>,
    /// Output lines of the last block that did not follow from its input, since timers fired later.
    pending: VecDeque<OldLine>,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut comments = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            comments.push(line.to_owned());
            continue;
        }
        let (body, trailing) = line.split_once("  #").map_or((line, String::new()), |(body, tail)| {
            (body.trim_end(), format!("{}#{tail}", " ".repeat(line.len() - body.trim_end().len() - tail.len() - 1)))
        });
        let comments = std::mem::take(&mut comments);
        if body.split(' ').nth(1) == Some(">")
            && let Some(block) = blocks.last_mut()
        {
            block.outputs.push_back(OldLine { comments, text: body.to_owned(), trailing });
        } else {
            blocks.push(Block {
                line: index + 1,
                comments,
                input: body.to_owned(),
                trailing,
                outputs: VecDeque::new(),
                pending: VecDeque::new(),
            });
        }
    }
    blocks
}

/// Writes `new` lines with the comments of the equal ones in `old`, and returns the rest of `old`.
fn take_outputs(out: &mut String, new: Vec<String>, old: &mut VecDeque<OldLine>) -> VecDeque<OldLine> {
    for text in new {
        if let Some(position) = old.iter().position(|line| line.text == text) {
            old.drain(..position);
            let line = old.pop_front().expect("just found");
            for comment in line.comments {
                let _ = writeln!(out, "{comment}");
            }
            let _ = writeln!(out, "{text}{}", line.trailing);
        } else {
            let _ = writeln!(out, "{text}");
        }
    }
    std::mem::take(old)
}

fn write_outputs(out: &mut String, new: Vec<String>, mut old: VecDeque<OldLine>) {
    take_outputs(out, new, &mut old);
}

struct Subject {
    endpoint: Endpoint,
    now: Instant,
    mss: u16,
}

fn open(line: &str) -> Outcome<Subject> {
    let mut words = line.split_whitespace();
    if words.next() != Some("open") {
        return Err("the first line says `open active` or `open passive`".to_owned());
    }
    let open = match words.next() {
        Some("active") => Open::Active,
        Some("passive") => Open::Passive,
        other => return Err(format!("open what? {other:?}")),
    };
    let mut config = Config {
        mss: 1000,
        timers: TimerConfig { rto: Rto::Rfc6298, ..TimerConfig::default() },
        repair: RepairConfig {
            undo: false,
            frto: false,
            loss_detection: LossDetection::Rfc6675,
            tail_loss_probe: false,
            recovery: Recovery::Rfc6675,
        },
        congestion: CongestionConfig { slow_start: SlowStart::Standard, ..CongestionConfig::default() },
        ..Config::default()
    };
    for word in words {
        let (key, value) = word.split_once('=').ok_or_else(|| format!("no `key=value`: {word}"))?;
        set(&mut config, key, value).ok_or_else(|| format!("cannot set {word}"))?;
    }
    config.check().map_err(|error| error.to_string())?;
    let mss = config.mss;
    let endpoint = Endpoint::new(Arc::new(config), FlowId::new(0), open, ISS);
    Ok(Subject { endpoint, now: Instant::ZERO, mss })
}

#[expect(clippy::too_many_lines, reason = "an arm for each word of a trace")]
fn set(config: &mut Config, key: &str, value: &str) -> Option<()> {
    let number = || value.parse::<u64>().ok();
    let on = || match value {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    };
    let ms = || number().map(Duration::from_ms);
    match key {
        "variant" => {
            config.variant = match value {
                "tahoe" => Variant::Tahoe,
                "reno" => Variant::Reno,
                "newreno" => Variant::NewReno,
                "sack" => Variant::Sack,
                "cubic" => Variant::Cubic,
                "bbr" => Variant::Bbr,
                "bbr3" => Variant::Bbr3,
                "ledbat++" => Variant::Ledbat,
                "dctcp" => Variant::Dctcp,
                "prague" => Variant::Prague,
                _ => return None,
            };
        }
        "mss" => config.mss = value.parse().ok()?,
        "window" => config.receive_window = ByteCount::new(number()?),
        "iw" if value == "rfc3390" => config.congestion.initial_window = InitialWindow::Rfc3390,
        "iw" => config.congestion.initial_window = InitialWindow::Segments(value.parse().ok()?),
        "ssthresh" => config.congestion.initial_ssthresh = Some(ByteCount::new(number()?)),
        "delayed_ack_ms" => config.acks.delayed_ack = ms()?,
        "ack_every" => config.acks.ack_every = value.parse().ok()?,
        "quick_acks" => config.acks.quick_acks = on()?,
        "sack" => config.sack = on()?,
        "dsack" => config.acks.dsack = on()?,
        "timestamps" => config.timestamps = on()?,
        "wscale" if value == "off" => config.window_scale = WindowScale::Off,
        "wscale" => config.window_scale = WindowScale::Shift(value.parse().ok()?),
        "rto" => {
            config.timers.rto = match value {
                "rfc6298" => Rto::Rfc6298,
                "linux" => Rto::Linux,
                _ => return None,
            };
        }
        "min_rto_ms" => config.timers.min_rto = ms()?,
        "max_rto_ms" => config.timers.max_rto = ms()?,
        "undo" => config.repair.undo = on()?,
        "frto" => config.repair.frto = on()?,
        "loss" => {
            config.repair.loss_detection = match value {
                "rfc6675" => LossDetection::Rfc6675,
                "rack" => LossDetection::Rack,
                _ => return None,
            };
        }
        "recovery" => {
            config.repair.recovery = match value {
                "rfc6675" => Recovery::Rfc6675,
                "prr" => Recovery::Prr,
                _ => return None,
            };
        }
        "slow_start" => {
            config.congestion.slow_start = match value {
                "standard" => SlowStart::Standard,
                "hystart" => SlowStart::HyStart,
                "hystart++" => SlowStart::HyStartPlusPlus,
                _ => return None,
            };
        }
        "tlp" => config.repair.tail_loss_probe = on()?,
        "tick_ms" => config.timers.clock_granularity = ms()?,
        "count" if value == "acks" => config.congestion.byte_counting = ByteCounting::PerAck,
        "count" => config.congestion.byte_counting = ByteCounting::Abc { limit: value.parse().ok()? },
        "ecn" => {
            config.ecn = match value {
                "off" => Ecn::Off,
                "on" => Ecn::Classic,
                "accurate" => Ecn::Accurate,
                _ => return None,
            };
        }
        "limited_transmit" => config.congestion.limited_transmit = on()?,
        "gro_us" => config.acks.gro = Duration::from_us(number()?),
        "read_delay_us" => config.acks.read_delay = Duration::from_us(number()?),
        "tso_deferral" => config.congestion.tso_deferral = on()?,
        "pacing" => config.congestion.pacing = on()?,
        "autotune" => config.autotune = on()?,
        "max_retries" => config.timers.max_retries = value.parse().ok()?,
        "max_syn_retries" => config.timers.max_syn_retries = value.parse().ok()?,
        _ => return None,
    }
    Some(())
}

impl Subject {
    /// Runs one input line. `sent`: the segments before it, a `None` for the line itself, the segments after it.
    /// Returns the line to write.
    fn run(&mut self, line: &str, sent: &mut Vec<Option<String>>) -> Outcome<String> {
        let (time, rest) = line.split_once(' ').ok_or("a time, then what happens")?;
        let time = parse_time(time).ok_or_else(|| format!("no time in seconds: {time}"))?;
        if time < self.now {
            return Err("time goes back".to_owned());
        }
        while let Some(due) = self.endpoint.next_timer().filter(|due| *due <= time) {
            self.now = due.max(self.now);
            self.endpoint.on_timer(self.now);
            self.drain(sent);
        }
        self.now = time;
        sent.push(None);
        let mut line = line.to_owned();
        match rest.split_once(' ').unwrap_or((rest, "")) {
            ("connect", "") => self.endpoint.connect(time),
            ("write", "forever") => self.endpoint.write_forever(),
            ("write", bytes) => self.endpoint.write(bytes.parse().map_err(|_| format!("no number: {bytes}"))?),
            ("close", "") => self.endpoint.close(),
            ("abort", "") => self.endpoint.abort(),
            ("read", "off") => self.endpoint.set_reading(false),
            ("read", "on") => self.endpoint.set_reading(true),
            ("end", "") => {}
            ("<", segment) => self.endpoint.on_segment(time, &parse_segment(segment)?),
            ("?", names) => line = format!("{} ? {}", format_time(time), self.values(names)?),
            _ => return Err(format!("nothing that can happen: {rest}")),
        }
        self.drain(sent);
        Ok(line)
    }

    fn drain(&mut self, sent: &mut Vec<Option<String>>) {
        while let Some(segment) = self.endpoint.poll_transmit(self.now) {
            assert!(segment.payload_len() <= self.mss, "more than a segment");
            sent.push(Some(format!("{} > {}", format_time(self.now), format_segment(&segment))));
        }
    }

    fn values(&self, names: &str) -> Outcome<String> {
        let endpoint = &self.endpoint;
        let stats = endpoint.stats();
        let mut out = Vec::new();
        // Values follow names. States and limits are words too, so either every second word is a name, or
        // all words are.
        let words: Vec<&str> = names.split_whitespace().collect();
        let step = if words.len() > 1 && known(words[0]) && known(words[1]) { 1 } else { 2 };
        for name in words.into_iter().step_by(step) {
            let value = match name {
                "cwnd" => endpoint.cwnd_bytes().to_string(),
                "ssthresh" => endpoint.ssthresh_bytes().map_or("none".to_owned(), |bytes| bytes.to_string()),
                "flight" => endpoint.in_flight().to_string(),
                "rto" => format_time(Instant::ZERO + endpoint.rto()),
                "srtt" => endpoint.srtt().map_or("none".to_owned(), |srtt| format_time(Instant::ZERO + srtt)),
                "state" => format!("{:?}", endpoint.state()),
                "limit" => endpoint.limit().map_or("none".to_owned(), |limit| format!("{limit:?}")),
                "delivered" => endpoint.delivered().to_string(),
                "acked" => endpoint.acked().to_string(),
                "timeouts" => stats.timeouts.to_string(),
                "fast_retransmits" => stats.fast_retransmits.to_string(),
                "retransmissions" => stats.retransmissions.to_string(),
                "probes" => stats.window_probes.to_string(),
                "failed" => endpoint.has_failed().to_string(),
                _ => return Err(format!("no value: {name}")),
            };
            out.push(format!("{name} {value}"));
        }
        Ok(out.join(" "))
    }
}

fn known(word: &str) -> bool {
    const NAMES: &[&str] = &[
        "cwnd",
        "ssthresh",
        "flight",
        "rto",
        "srtt",
        "state",
        "limit",
        "delivered",
        "acked",
        "timeouts",
        "fast_retransmits",
        "retransmissions",
        "probes",
        "failed",
    ];
    NAMES.contains(&word)
}

fn format_segment(segment: &Meta) -> String {
    let mut out = format_flags(segment.flags);
    let seq = segment.seq.distance_from(ISS);
    let _ = write!(out, " {seq}:{}({})", seq + u32::from(segment.payload_len()), segment.payload_len());
    if segment.flags.contains(TcpFlags::ACK) {
        let _ = write!(out, " ack {}", segment.ack.distance_from(PEER_ISS));
    }
    let _ = write!(out, " win {}", segment.window);
    let options = format_options(segment, PEER_ISS);
    if !options.is_empty() {
        let _ = write!(out, " <{options}>");
    }
    let header = 40 + segment.options().header_bytes();
    assert_eq!(segment.header_len, header, "header length of {out}");
    match segment.ecn() {
        0 => {}
        1 => out.push_str(" [ect1]"),
        2 => out.push_str(" [ect0]"),
        other => panic!("an endpoint sends ECN field {other}"),
    }
    if segment.mark.retransmission() {
        out.push_str(" again");
    }
    out
}

fn parse_segment(text: &str) -> Outcome<Meta> {
    let fields = [(" [ect1]", 1), (" [ect0]", 2), (" [ce]", 3)];
    let field = fields.iter().find_map(|(suffix, field)| Some((text.strip_suffix(suffix)?, *field)));
    let (text, ce) = field.unwrap_or((text, 0));
    let (fixed, options) = match text.split_once(" <") {
        Some((fixed, options)) => (fixed, options.strip_suffix('>').ok_or("options end with >")?),
        None => (text, ""),
    };
    let words: Vec<&str> = fixed.split_whitespace().collect();
    let bad = || format!("no segment: {text}");
    let flags = words.first().and_then(|letters| parse_flags(letters)).ok_or_else(bad)?;
    let (seq, rest) = words.get(1).and_then(|word| word.split_once(':')).ok_or_else(bad)?;
    let (end, len) = rest.strip_suffix(')').and_then(|rest| rest.split_once('(')).ok_or_else(bad)?;
    let number = |text: &str| text.parse::<u32>().map_err(|_| bad());
    let (seq, end, len) = (number(seq)?, number(end)?, number(len)?);
    if seq + len != end {
        return Err(format!("{seq} and {len} bytes make no {end}"));
    }
    let (mut ack, mut window) = (SeqNumber::default(), 0);
    for pair in words[2..].chunks(2) {
        match *pair {
            ["ack", value] => ack = ISS.add(number(value)?),
            ["win", value] => window = value.parse().map_err(|_| bad())?,
            _ => return Err(bad()),
        }
    }
    let options = parse_options(options, ISS).ok_or_else(bad)?;
    let header_len = 40 + options.header_bytes();
    let mut segment = Meta {
        seq: PEER_ISS.add(seq),
        ack,
        flags,
        window,
        header_len,
        ip_len: u16::from(header_len) + len as u16,
        protocol: Protocol::Tcp,
        traffic_class: ce,
        ..Meta::default()
    };
    segment.set_options(options);
    Ok(segment)
}
