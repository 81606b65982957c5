//! A detection as a scenario file, commented, which `run`, `compare` and `emulate` take as it is.

use std::fmt::Write as _;

use lastmile_linklayer::{Framing, LinkLayer, aal5, preset};
use lastmile_units::ByteCount;

use super::train::ECHO_BYTES;
use super::{Buffer, Candidate, Detection, Discipline, Kind, Limiter, Side, Unit, Verdict};
use crate::report::Estimate;

/// The scenario of a line called `name`; `None` where the detection ended before both ways were examined: no default
/// stands for the rate of a line.
#[must_use]
pub fn scenario(detection: &Detection, name: &str) -> Option<String> {
    let ways = (detection.down.as_ref()?, detection.up.as_ref()?);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut text, detection, ways, name);
    Some(text)
}

fn write(text: &mut String, detection: &Detection, ways: (&Side, &Side), name: &str) -> std::fmt::Result {
    writeln!(text, "# A line as `lastmile measure --detect` found it, in {:.0} s.", detection.took_s)?;
    writeln!(text, "# Comments state the 95 % interval of each value.")?;
    for warning in &detection.warnings {
        writeln!(text, "# {}.", comment(warning))?;
    }
    for unseen in &detection.not_seen {
        writeln!(text, "# Not seen: {}.", comment(unseen))?;
    }
    writeln!(text, "\nname = {}\nduration = \"60 s\"\n\n[access]", quoted(name))?;
    match detection.mtu_bytes {
        Some(mtu) => writeln!(text, "mtu = \"{mtu} B\"")?,
        None => writeln!(text, "# The MTU is not known: the default of the encapsulation stands.")?,
    }
    writeln!(text, "# The delay of the whole path belongs to the line here.\nbackbone = {{ delay = \"0 ms\" }}")?;
    for (key, side) in [("down", ways.0), ("up", ways.1)] {
        writeln!(text, "\n[access.{key}]")?;
        way(text, side, one_way(detection.idle_rtt_s, ways))?;
    }
    text.push_str(TRAFFIC);
    Ok(())
}

const TRAFFIC: &str = r#"
[[traffic]]
name = "download"
kind = "bulk"
direction = "down"

[[traffic]]
name = "upload"
kind = "bulk"
direction = "up"
start = "20 s"
stop = "40 s"

[[traffic]]
name = "ping"
kind = "ping"
interval = "100 ms"
"#;

fn way(text: &mut String, side: &Side, delay: Option<f64>) -> std::fmt::Result {
    let candidate = side.encapsulation.candidates.first();
    let rate = side.gross_bps.filter(|_| candidate.is_some()).unwrap_or(side.ip_bps);
    let what = if candidate.is_some() && side.gross_bps.is_some() { "on the wire" } else { "of IP packets" };
    let interval = format!("# {} to {} {what}", bps(rate.low), bps(rate.high.min(1e12)));
    match side.limiter {
        Limiter::Line => writeln!(text, "rate = \"{}\" {interval}", bps(rate.value))?,
        Limiter::Unknown => {
            writeln!(text, "rate = \"{}\" # at least: the senders did not fill the line", bps(rate.value))?;
        }
        Limiter::Shaper { burst_bps, .. } => {
            let burst = burst_bps.map(|burst| burst.value * rate.value / side.ip_bps.value);
            let from = if burst.is_some() { "of a burst" } else { "unknown: twice what its shaper passes" };
            writeln!(
                text,
                "rate = \"{}\" # of the line behind the shaper: {from}",
                bps(burst.unwrap_or(2.0 * rate.value))
            )?;
        }
        Limiter::Policer { .. } => {
            writeln!(
                text,
                "rate = \"{}\" # of the line behind the policer, unknown: twice what it passes",
                bps(2.0 * rate.value)
            )?;
        }
    }
    encapsulation(text, side, candidate)?;
    match delay {
        Some(delay) => writeln!(
            text,
            "delay = \"{} us\" # half of the idle round-trip time, less a small packet's time",
            (delay * 1e6).round()
        )?,
        None => writeln!(text, "# The delay is not known: the default of 0 ms stands.")?,
    }
    if let Some(loss) = side.loss_share {
        let percent = |share: f64| share * 100.0;
        writeln!(
            text,
            "loss = \"{:.3} %\" # {:.3} to {:.3} %, without overload",
            percent(loss.value),
            percent(loss.low),
            percent(loss.high)
        )?;
    }
    if let Some(share) = side.others_share {
        writeln!(text, "# Others asked for {:.1} %: the rate is extrapolated to a line without them.", share * 100.0)?;
    }
    queue(text, side, candidate, rate)
}

fn encapsulation(text: &mut String, side: &Side, candidate: Option<&Candidate>) -> std::fmt::Result {
    let Some(candidate) = candidate else {
        let why = match side.encapsulation.verdict {
            Verdict::Policer => "the policer hides the encapsulation",
            _ => "the encapsulation is unknown",
        };
        return writeln!(text, "encapsulation = \"ip\" # {why}: rates count IP bytes");
    };
    let percent = (side.encapsulation.sure().unwrap_or(candidate.probability) * 100.0).min(99.99);
    let sure = match side.encapsulation.verdict {
        Verdict::Sure => format!("sure: {percent:.2} %"),
        Verdict::Shaper => format!("how the shaper counts, which hides the line: {percent:.2} %"),
        Verdict::Misfit => "not sure: no encapsulation explains the times, this one least badly".to_owned(),
        _ => format!("not sure: {percent:.2} %"),
    };
    match candidate.presets.split_first() {
        Some((first, [])) => writeln!(text, "encapsulation = \"{first}\" # {sure}")?,
        Some((first, rest)) => {
            writeln!(text, "encapsulation = \"{first}\" # {sure}; times are equal with {}", rest.join(", "))?;
        }
        None => writeln!(
            text,
            "encapsulation = {{ overhead = {}, framing = \"{}\", minimum = {} }} # {sure}; no preset has it",
            candidate.overhead_bytes, candidate.framing, candidate.minimum_bytes
        )?,
    }
    // The probability of the name covers its other law.
    let counted = |other: &Candidate| !candidate.presets.is_empty() && candidate.presets == other.presets;
    let others = side.encapsulation.candidates.iter().skip(1).filter(|other| !counted(other));
    for other in others.filter(|other| other.probability > 1e-3) {
        let names = if other.presets.is_empty() { "no preset".to_owned() } else { other.presets.join(", ") };
        writeln!(text, "# {:.2} %: {names}, {}", other.probability * 100.0, other.counts())?;
    }
    Ok(())
}

fn queue(text: &mut String, side: &Side, candidate: Option<&Candidate>, rate: Estimate) -> std::fmt::Result {
    // A token bucket holds one packet more than the queue in it.
    let outside = if matches!(side.limiter, Limiter::Shaper { .. }) { 1.0 } else { 0.0 };
    let inner = side.buffer.as_ref().map(|buffer| without(buffer, outside));
    let limit = inner.as_ref().map(|buffer| limit(buffer, candidate));
    if let Some(buffer) = &side.buffer {
        let Buffer { bytes, packets, wait_s, unit } = buffer;
        let unit = match unit {
            Unit::Bytes => "the limit counts IP bytes",
            Unit::WireBytes => "the limit counts bytes on the wire",
            Unit::Packets => "the limit counts packets",
            Unit::Unknown => "bytes or packets, which two sizes did not distinguish",
        };
        writeln!(
            text,
            "# Buffer: {:.0} to {:.0} bytes, {:.0} to {:.0} full packets; {unit}.",
            bytes.low, bytes.high, packets.low, packets.high
        )?;
        writeln!(text, "# A full buffer delays by {:.1} to {:.1} ms.", wait_s.low * 1e3, wait_s.high * 1e3)?;
    } else {
        writeln!(text, "# No buffer of a fixed size showed itself: its limit is a default.")?;
    }
    let found = side.discipline.as_ref();
    found.map_or(Ok(()), |found| discipline(text, found))?;
    let inner = match (found.and_then(|found| found.kinds.first()), limit) {
        (Some(Kind::Fifo) | None, None) => "{ kind = \"fifo\" }".to_owned(),
        (Some(Kind::Fifo) | None, Some(limit)) => format!("{{ limit = \"{limit}\" }}"),
        // Its limit is in packets.
        (Some(Kind::Sfq), Some(_)) => {
            let packets = inner.as_ref().map_or(127.0, |buffer| buffer.packets.value);
            format!("{{ kind = \"sfq\", limit = \"{packets:.0} packets\", depth = \"{packets:.0} packets\" }}")
        }
        (Some(kind), _) => format!("{{ kind = \"{}\" }}", kind.name()),
    };
    let per_ip = rate.value / side.ip_bps.value;
    let wire = |bytes: Estimate| (bytes.value * per_ip).max(2_000.0).round();
    match side.limiter {
        Limiter::Line | Limiter::Unknown => writeln!(text, "queue = {inner}"),
        Limiter::Shaper { bucket_bytes, .. } => {
            writeln!(text, "# A shaper: {:.0} to {:.0} IP bytes pass at once.", bucket_bytes.low, bucket_bytes.high)?;
            let burst = wire(bucket_bytes);
            writeln!(
                text,
                "queue = {{ kind = \"tbf\", rate = \"{}\", burst = \"{burst} wire bytes\", queue = {inner} }}",
                bps(rate.value)
            )
        }
        Limiter::Policer { bucket_bytes } => {
            writeln!(text, "# A policer: {:.0} to {:.0} IP bytes pass at once.", bucket_bytes.low, bucket_bytes.high)?;
            let burst = wire(bucket_bytes);
            writeln!(
                text,
                "queue = {{ kind = \"policer\", meter = {{ kind = \"token-bucket\", rate = \"{}\", burst = \"{burst} \
                 wire bytes\" }} }}",
                bps(rate.value)
            )
        }
    }
}

/// The behaviour of the queue below its limit, and the waits that showed it.
fn discipline(text: &mut String, found: &Discipline) -> std::fmt::Result {
    let names: Vec<&str> = found.kinds.iter().map(|kind| kind.name()).collect();
    let names = match names[..] {
        [] => "a law that is neither CoDel's nor PIE's: a default".to_owned(),
        ["fq-codel"] => "fq-codel with its defaults, or CAKE, which waits do not distinguish".to_owned(),
        [name] => format!("{name}, sure"),
        [first, ..] => format!("not sure: {}; {first} stands here", names.join(" or ")),
    };
    let ms = |wait: Estimate| format!("{:.1} to {:.1} ms", wait.low.max(0.0) * 1e3, wait.high.max(0.0) * 1e3);
    let wait = |wait: Option<Estimate>| wait.map_or("an unknown time".to_owned(), ms);
    let (own, other) = (wait(found.own_wait_s), wait(found.other_wait_s));
    writeln!(text, "# Queue: {names}.")?;
    writeln!(text, "# A slight overload waited {own}, packets of another flow {other}.")
}

/// A buffer with so many full packets less, and at least one.
fn without(buffer: &Buffer, packets: f64) -> Buffer {
    let whole = buffer.packets.value.max(1.0);
    let left = (whole - packets).max(1.0);
    let part = |of: Estimate| Estimate { value: of.value * left / whole, ..of };
    Buffer { bytes: part(buffer.bytes), packets: Estimate { value: left, ..buffer.packets }, ..*buffer }
}

fn limit(buffer: &Buffer, candidate: Option<&Candidate>) -> String {
    let packets = buffer.packets.value.max(1.0);
    match (buffer.unit, candidate.and_then(layer)) {
        (Unit::Packets, _) => format!("{packets:.0} packets"),
        (Unit::WireBytes, Some(layer)) => {
            let size = (buffer.bytes.value / packets).round();
            let wire = layer.on_wire(ByteCount::new(size as u64));
            let full = packets * wire.as_u64() as f64;
            match layer.framing() {
                // Each packet takes whole cells.
                Framing::Atm => format!("{:.0} cells", full / aal5::CELL_BYTES as f64),
                Framing::None | Framing::Ptm => format!("{full:.0} wire bytes"),
            }
        }
        (Unit::Bytes | Unit::WireBytes | Unit::Unknown, _) => format!("{:.0} B", buffer.bytes.value.max(1_500.0)),
    }
}

/// The link layer of a candidate.
fn layer(candidate: &Candidate) -> Option<LinkLayer> {
    let framing = match candidate.framing.as_str() {
        "atm" => Framing::Atm,
        "ptm" => Framing::Ptm,
        _ => Framing::None,
    };
    let link = LinkLayer::new(candidate.overhead_bytes, framing).ok()?;
    link.with_min_frame(candidate.minimum_bytes).ok()
}

/// One-way delay without the time on the line of the echo itself, divided evenly: echoes show only
/// the sum of both ways.
fn one_way(idle_rtt_s: Option<Estimate>, (down, up): (&Side, &Side)) -> Option<f64> {
    let rtt = idle_rtt_s?;
    let own = |side: &Side| {
        let link = side.encapsulation.candidates.first().and_then(layer);
        let wire = link.unwrap_or(preset::IP.link).on_wire(ByteCount::new(ECHO_BYTES));
        wire.bits() as f64 / side.gross_bps.unwrap_or(side.ip_bps).value
    };
    Some(((rtt.value - own(down) - own(up)) / 2.0).max(0.0))
}

fn bps(rate: f64) -> String {
    format!("{:.0} bit/s", rate.clamp(1.0, 1e12))
}

fn comment(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

fn quoted(text: &str) -> String {
    let plain: String = text.chars().filter(|c| !c.is_control()).collect();
    format!("\"{}\"", plain.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::super::{Blocks, Encapsulation};
    use super::*;

    fn exactly(value: f64) -> Estimate {
        Estimate { value, low: value, high: value }
    }

    /// That holds so many packets of 1500 bytes, and counts bytes on the wire.
    fn buffer(packets: f64) -> Buffer {
        let (bytes, packets) = (exactly(packets * 1_500.0), exactly(packets));
        Buffer { bytes, packets, wait_s: exactly(0.1), unit: Unit::WireBytes }
    }

    fn candidate(overhead_bytes: i32, minimum_bytes: u32, framing: &str) -> Candidate {
        Candidate {
            presets: Vec::new(),
            overhead_bytes,
            minimum_bytes,
            framing: framing.to_owned(),
            blocks: None,
            probability: 1.0,
            gross_bps: exactly(6e6),
        }
    }

    fn side(candidates: Vec<Candidate>) -> Side {
        Side {
            encapsulation: Encapsulation { verdict: Verdict::NotSure, name_probability: None, candidates },
            ip_bps: exactly(6e6),
            gross_bps: None,
            limiter: Limiter::Line,
            buffer: None,
            discipline: None,
            loss_share: None,
            others_share: None,
        }
    }

    /// Under 64/65 coding, a name stands for two laws, and an overhead of no name for one with a least frame and one
    /// without.
    #[test]
    fn candidates_that_are_left_differ_in_words() {
        let named = |blocks, probability| Candidate {
            presets: vec!["bridged-ptm".to_owned()],
            blocks: Some(blocks),
            probability,
            ..candidate(22, 0, "ptm")
        };
        let candidates = vec![
            candidate(22, 0, "none"),
            named(Blocks::Whole, 0.1636),
            named(Blocks::Continuous, 0.12),
            Candidate { probability: 0.05, ..candidate(22, 68, "none") },
        ];
        let side = side(candidates);
        let mut text = String::new();
        encapsulation(&mut text, &side, side.encapsulation.candidates.first()).unwrap();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        let expected = [
            "# 16.36 %: bridged-ptm, 22 bytes, framing ptm with the last block of each frame whole",
            "# 12.00 %: bridged-ptm, 22 bytes, framing ptm with blocks that continue across frames",
            "# 5.00 %: no preset, 22 bytes, framing none, at least 68 bytes",
        ];
        assert_eq!(lines, expected);
        let mut text = String::new();
        encapsulation(&mut text, &side, side.encapsulation.candidates.get(1)).unwrap();
        assert!(!text.contains("# 12.00 %"), "{text}");
    }

    /// A line that holds 64 packets has them in its queue; a token bucket has one of them outside its inner queue.
    #[test]
    fn the_queue_in_a_token_bucket_holds_one_packet_less() {
        let text = |limiter, unit| {
            let buffer = Some(Buffer { unit, ..buffer(64.0) });
            let side = Side { limiter, buffer, ..side(Vec::new()) };
            let mut text = String::new();
            queue(&mut text, &side, None, exactly(6e6)).unwrap();
            text
        };
        let shaper = Limiter::Shaper { bucket_bytes: exactly(10_000.0), burst_bps: None };
        let inner = |text: String| text.rsplit_once("limit = ").map(|(_, limit)| limit.to_owned());
        assert_eq!(inner(text(Limiter::Line, Unit::Packets)).as_deref(), Some("\"64 packets\" }\n"));
        assert_eq!(inner(text(shaper, Unit::Packets)).as_deref(), Some("\"63 packets\" } }\n"));
        assert_eq!(inner(text(shaper, Unit::Bytes)).as_deref(), Some("\"94500 B\" } }\n"));
    }

    /// 64 packets of 1500 bytes with 40 bytes around each take 33 cells each (RFC 2684: 32.08 cells of 48 bytes).
    #[test]
    fn a_buffer_over_atm_holds_the_cells_of_its_packets() {
        let (buffer, atm) = (buffer(64.0), candidate(40, 0, "atm"));
        assert_eq!(limit(&buffer, Some(&atm)), "2112 cells");
        assert_eq!(limit(&Buffer { unit: Unit::Packets, ..buffer }, Some(&atm)), "64 packets");
        assert_eq!(limit(&buffer, None), "96000 B");
    }

    /// 329 packets of 1500 bytes have 18 bytes around each over DOCSIS, and over 64/65 coding 1521 bytes each in 24
    /// blocks (IEEE 802.3, 61.3.3). A scenario reads the limit in that unit.
    #[test]
    fn a_buffer_in_bytes_on_the_wire_is_written_in_them() {
        let written = limit(&buffer(329.0), Some(&candidate(18, 64, "none")));
        assert_eq!(written, "499422 wire bytes");
        assert_eq!(written.parse(), Ok(lastmile_units::Limit::Wire(lastmile_units::WireBytes::new(329 * 1_518))));
        let coded = limit(&buffer(329.0), Some(&candidate(21, 0, "ptm")));
        assert_eq!(coded, format!("{} wire bytes", 329 * (1_521 + 24)));
    }
}
