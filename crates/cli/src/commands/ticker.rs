//! The line of counters that a live program shows on a terminal without a live view.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use lastmile_live::bump::HopGlance;
use lastmile_live::stop::Stop;
use lastmile_text::escape;
use lastmile_units::Instant;

/// The counters of the hops, and their time.
pub(super) type Glance = (Instant, Vec<HopGlance>);

/// The time between updates of the line.
const TICK: Duration = Duration::from_secs(1);

/// True if standard error is a terminal.
pub(super) fn is_watched() -> bool {
    std::io::stderr().is_terminal()
}

/// Shows `brief` of consecutive glances until `end`, then erases the line.
pub(super) fn tick(glance: &dyn Fn() -> Option<Glance>, end: &Stop, brief: &dyn Fn(&Glance, &Glance) -> String) {
    let mut terminal = std::io::stderr();
    let Some(mut before) = glance() else { return };
    while end.within(TICK).is_ok_and(|ended| !ended) {
        let Some(now) = glance() else { break };
        // Cursor to the first column, and erase to the right: ECMA-48, EL. One column stays free,
        // so that the line does not wrap.
        let width = terminal_size::terminal_size_of(&terminal).map_or(80, |(width, _)| usize::from(width.0)) - 1;
        let line: String = escape::line(&brief(&before, &now)).chars().take(width).collect();
        let _ = write!(terminal, "\r\x1b[K{line}").and_then(|()| terminal.flush());
        before = now;
    }
    let _ = write!(terminal, "\r\x1b[K").and_then(|()| terminal.flush());
}

/// One direction, in the units of tc(8): `up 0.496Mbit 12p 3 dropped`.
pub(super) fn in_brief(name: &str, share: &str, mbit_per_s: f64, waiting: u64, dropped: u64) -> String {
    let decimals = if mbit_per_s < 10.0 { 3 } else { 1 };
    format!("{name} {share}{mbit_per_s:.decimals$}Mbit {waiting}p {dropped} dropped")
}

#[expect(clippy::cast_precision_loss, reason = "for the eye only")]
pub(super) fn mega(bits: u64, seconds: f64) -> f64 {
    bits as f64 / seconds.max(1e-3) / 1e6
}

/// One line for a shaper, each direction of one hop, with the longest delay since the preceding
/// glance.
pub(super) fn shaper(before: &Glance, now: &Glance) -> String {
    let seconds = now.0.since(before.0).as_secs_f64();
    let part = |(name, index): (&str, usize)| {
        let (was, is) = (before.1.get(index)?, now.1.get(index)?);
        let rate = mega(is.wire_bits.saturating_sub(was.wire_bits), seconds);
        let longest_ms = Duration::from_nanos(is.waited.max_ns).as_secs_f64() * 1e3;
        let brief = in_brief(name, "", rate, is.queued.packets.as_u64(), is.dropped_packets);
        let shaper = is.shaper_rate.map(|rate| format!(", shaper {rate}")).unwrap_or_default();
        Some(format!("{brief}{shaper}, waited {longest_ms:.1}ms"))
    };
    [("up", 0), ("down", 1)].into_iter().filter_map(part).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile_model::outcome::Waits;
    use lastmile_queueing::Backlog;
    use lastmile_units::{BitRate, ByteCount, Duration, PacketCount};

    #[test]
    fn a_shaper_shows_its_rate_its_backlog_its_longest_wait_and_its_drops() {
        let hop = |wire_bits, packets, max_ns, dropped_packets| HopGlance {
            shaper_rate: None,
            queued: Backlog { packets: PacketCount::new(packets), bytes: ByteCount::new(100 * packets) },
            wire_bits,
            dropped_packets,
            waited: Waits { packets: 1, sum_ns: max_ns, max_ns },
            acks_waited: Waits::default(),
        };
        let before = (Instant::ZERO, vec![hop(0, 0, 0, 0), hop(1_000_000, 0, 0, 0)]);
        let now =
            (Instant::ZERO + Duration::from_s(2), vec![hop(1_000_000, 12, 35_400_000, 3), hop(91_000_000, 0, 0, 0)]);
        assert_eq!(
            shaper(&before, &now),
            "up 0.500Mbit 12p 3 dropped, waited 35.4ms; down 45.0Mbit 0p 0 dropped, waited 0.0ms"
        );
        let steered = HopGlance { shaper_rate: BitRate::from_bps(9_500_000), ..now.1[0] };
        let words = shaper(&before, &(now.0, vec![steered]));
        assert_eq!(words, "up 0.500Mbit 12p 3 dropped, shaper 9.5 Mbit/s, waited 35.4ms");
    }
}
