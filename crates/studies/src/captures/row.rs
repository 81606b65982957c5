//! The parts of a row of `connections`: the results of one direction of a connection. Unknown values
//! are `null`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use lastmile_analysis::{Basis, Connection, Direction, EcnFeedback, Limit};
use lastmile_packet::FlowAddresses;
use lastmile_results::format;
use lastmile_units::Duration;
use serde::Serialize;

/// Source and destination.
#[derive(Serialize)]
pub(super) struct Ends {
    pub(super) from: String,
    pub(super) to: String,
    #[serde(skip)]
    pub(super) from_ip: String,
    #[serde(skip)]
    pub(super) to_ip: String,
}

impl Ends {
    pub(super) fn new(addresses: FlowAddresses) -> Self {
        let (source, destination) = (addresses.ip.source(), addresses.ip.destination());
        Self {
            from: SocketAddr::new(source, addresses.source_port).to_string(),
            to: SocketAddr::new(destination, addresses.destination_port).to_string(),
            from_ip: source.to_string(),
            to_ip: destination.to_string(),
        }
    }
}

/// The position of the capture.
#[derive(Serialize)]
pub(super) struct Position {
    /// `sender`, `between`, `receiver`; `null` if unknown.
    pub(super) vantage: Option<&'static str>,
    pub(super) to_sender_s: Option<f64>,
    pub(super) to_receiver_s: Option<f64>,
}

impl Position {
    pub(super) fn new(direction: &Direction) -> Self {
        let position = direction.position;
        Self {
            vantage: position.vantage.name(),
            to_sender_s: seconds(position.to_sender),
            to_receiver_s: seconds(position.to_receiver),
        }
    }
}

/// Begin and end of the connection.
#[derive(Serialize)]
pub(super) struct Life {
    pub(super) start_s: f64,
    end_s: f64,
    closed: bool,
    pub(super) reset: bool,
    handshake_s: Option<f64>,
}

impl Life {
    pub(super) fn new(connection: &Connection) -> Self {
        Self {
            start_s: connection.from.as_secs_f64(),
            end_s: connection.to.as_secs_f64(),
            closed: connection.closed,
            reset: connection.reset,
            handshake_s: seconds(connection.handshake.took),
        }
    }
}

/// Options of the handshake, and the DSCP.
#[derive(Serialize)]
pub(super) struct Options {
    mss_bytes: Option<u16>,
    window_scale: Option<u8>,
    sack: Option<bool>,
    timestamps: Option<bool>,
    dscp: Option<u8>,
}

impl Options {
    pub(super) fn new(connection: &Connection, up: bool, direction: &Direction) -> Self {
        let handshake = connection.handshake;
        // The options that the receiver of this direction offered.
        let offered = if up { handshake.syn_ack } else { handshake.syn };
        let both = handshake.syn.zip(handshake.syn_ack);
        Self {
            mss_bytes: offered.and_then(|(options, _)| options.mss),
            window_scale: offered.and_then(|(options, _)| options.window_scale),
            sack: both
                .and_then(|((syn, _), (answer, _))| agreed([syn.sack_permitted, answer.sack_permitted], handshake.cut)),
            timestamps: both.and_then(|((_, syn), (_, answer))| agreed([syn, answer], handshake.cut)),
            dscp: direction.codepoints.dscp,
        }
    }
}

/// Whether both sides offered an option; `None` if the capture cut the options of a side that shows none.
fn agreed(offered: [bool; 2], cut: [bool; 2]) -> Option<bool> {
    let [own, other] = [0, 1].map(|side| if offered[side] || !cut[side] { Some(offered[side]) } else { None });
    match (own, other) {
        (Some(own), Some(other)) => Some(own && other),
        (Some(false), None) | (None, Some(false)) => Some(false),
        _ => None,
    }
}

/// Explicit congestion notification.
#[derive(Serialize)]
pub(super) struct Ecn {
    /// `none`, `classic` (RFC 3168) or `accurate` (RFC 9768); `null` without the handshake.
    ecn: Option<&'static str>,
    ect0_packets: u64,
    ect1_packets: u64,
    /// Packets that were marked before the capture.
    pub(super) ce_packets: u64,
    /// Packets of the other side with ECE, and of the sender with CWR, after the handshake; `null` with Accurate ECN,
    /// where both are bits of a counter.
    pub(super) ece_acks: Option<u64>,
    cwr_packets: Option<u64>,
}

impl Ecn {
    pub(super) fn new(connection: &Connection, direction: &Direction) -> Self {
        let (feedback, codepoints) = (connection.handshake.ecn, direction.codepoints);
        let is_flag = feedback != Some(EcnFeedback::Accurate);
        Self {
            ecn: feedback.map(EcnFeedback::name),
            ect0_packets: codepoints.ect_0,
            ect1_packets: codepoints.ect_1,
            ce_packets: codepoints.ce,
            ece_acks: (is_flag && direction.has_acks()).then_some(codepoints.ece),
            cwr_packets: (is_flag && direction.has_packets()).then_some(codepoints.cwr),
        }
    }
}

/// Packets, bytes and rates.
#[derive(Serialize)]
pub(super) struct Volume {
    packets: u64,
    data_packets: u64,
    ip_bytes: u64,
    pub(super) bytes_new: u64,
    bytes_repeated: u64,
    pub(super) bytes_acknowledged: Option<u64>,
    pub(super) bytes_unseen: Option<u64>,
    /// Payload bytes of the goodput.
    #[serde(skip)]
    pub(super) bytes_of_goodput: u64,
    pub(super) active_s: f64,
    pub(super) goodput_bps: f64,
    largest_segment_bytes: Option<u64>,
    initial_window_bytes: Option<u64>,
    max_in_flight_bytes: Option<u64>,
    max_window_bytes: Option<u64>,
    /// The mean window of the receiver while it limited the sender.
    limiting_window_bytes: Option<u64>,
}

impl Volume {
    pub(super) fn new(direction: &Direction) -> Self {
        let volume = direction.volume;
        let with_acks = |bytes: u64| direction.has_acks().then_some(bytes);
        Self {
            packets: volume.packets,
            data_packets: volume.data_packets,
            ip_bytes: volume.ip_bytes,
            bytes_new: volume.bytes_new,
            bytes_repeated: volume.bytes_repeated,
            bytes_acknowledged: with_acks(volume.bytes_acknowledged),
            bytes_unseen: with_acks(volume.bytes_unseen),
            bytes_of_goodput: volume.bytes_of_goodput,
            active_s: direction.active.as_secs_f64(),
            goodput_bps: direction.goodput_bps,
            largest_segment_bytes: (volume.data_packets > 0).then_some(direction.largest_segment),
            initial_window_bytes: direction.initial_window,
            max_in_flight_bytes: direction.has_both().then_some(direction.max_in_flight),
            max_window_bytes: direction.window.max,
            limiting_window_bytes: direction.window.limiting,
        }
    }
}

/// Round trips from the capture to the receiver (`rtt`), to the sender (`turnaround`), and of the
/// whole path (`round_trip`).
#[derive(Serialize)]
pub(super) struct Delays {
    rtt_samples: u64,
    rtt_min_s: Option<f64>,
    pub(super) rtt_median_s: Option<f64>,
    rtt_p95_s: Option<f64>,
    pub(super) turnaround_s: Option<f64>,
    turnaround_samples: u64,
    turnaround_median_s: Option<f64>,
    turnaround_p95_s: Option<f64>,
    pub(super) round_trip_median_s: Option<f64>,
    pub(super) round_trip_p95_s: Option<f64>,
    /// True if these two are sums of the parts above, away from the sender.
    pub(super) round_trip_is_sum: bool,
}

impl Delays {
    pub(super) fn new(direction: &Direction) -> Self {
        let delays = direction.delays;
        let (median, p95) = direction.whole_round_trip();
        Self {
            rtt_samples: delays.round_trips.count,
            rtt_min_s: seconds(delays.round_trips.least),
            rtt_median_s: seconds(delays.round_trips.median),
            rtt_p95_s: seconds(delays.round_trips.p95),
            turnaround_s: seconds(delays.turnaround),
            turnaround_samples: delays.answers.count,
            turnaround_median_s: seconds(delays.answers.median),
            turnaround_p95_s: seconds(delays.answers.p95),
            round_trip_median_s: seconds(median),
            round_trip_p95_s: seconds(p95),
            round_trip_is_sum: direction.is_sum(),
        }
    }
}

/// Retransmissions, if packets of the direction were captured; and their causes, if ACKs were, too.
#[derive(Serialize)]
pub(super) struct Repeats {
    pub(super) retransmissions: Option<u64>,
    pub(super) timeouts: Option<u64>,
    pub(super) fast_retransmits: Option<u64>,
    in_recovery: Option<u64>,
    after_timeout: Option<u64>,
    tail_loss_probes: Option<u64>,
    unexplained: Option<u64>,
    timeout_share: Option<f64>,
    pub(super) spurious: Option<u64>,
    spurious_timeouts: Option<u64>,
    timeouts_in_a_row: Option<u64>,
    lost_before_capture: Option<u64>,
    out_of_order: Option<u64>,
    duplicated: Option<u64>,
    probes: Option<u64>,
}

impl Repeats {
    pub(super) fn new(direction: &Direction) -> Self {
        let repeats = direction.repeats;
        let seen = |count: u64| direction.has_packets().then_some(count);
        let explained = |count: u64| direction.has_both().then_some(count);
        Self {
            retransmissions: seen(repeats.packets()),
            timeouts: explained(repeats.timeouts),
            fast_retransmits: explained(repeats.fast),
            in_recovery: explained(repeats.in_recovery),
            after_timeout: explained(repeats.after_timeout),
            tail_loss_probes: explained(repeats.tail_probes),
            unexplained: seen(repeats.unknown),
            timeout_share: repeats.timeout_share().filter(|_| direction.has_both()),
            spurious: explained(repeats.spurious),
            spurious_timeouts: explained(repeats.spurious_timeouts),
            timeouts_in_a_row: explained(repeats.most_in_a_row),
            lost_before_capture: seen(repeats.lost_before_capture),
            out_of_order: seen(repeats.out_of_order),
            duplicated: seen(repeats.duplicated),
            probes: seen(repeats.probes),
        }
    }
}

/// ACKs of the other side and its window, if ACKs were captured; and pauses, if packets were.
#[derive(Serialize)]
pub(super) struct Acks {
    acks: Option<u64>,
    duplicate_acks: Option<u64>,
    segments_per_ack: Option<f64>,
    compressed_acks_share: Option<f64>,
    pub(super) zero_windows: Option<u64>,
    pub(super) zero_window_s: Option<f64>,
    pub(super) longest_stall_s: Option<f64>,
    pauses: Option<u64>,
}

impl Acks {
    pub(super) fn new(direction: &Direction) -> Self {
        let (acks, window, events) = (direction.acks, direction.window, &direction.events);
        let (has_acks, has_both) = (direction.has_acks(), direction.has_both());
        Self {
            acks: has_acks.then_some(acks.pure),
            duplicate_acks: has_both.then_some(acks.duplicate),
            segments_per_ack: if has_both { share(direction.volume.segments, acks.pure) } else { None },
            compressed_acks_share: share(acks.compressed, acks.spaced),
            zero_windows: has_acks.then_some(window.closings),
            zero_window_s: has_acks.then_some(window.closed.as_secs_f64()),
            longest_stall_s: has_both.then_some(events.longest_stall.as_secs_f64()),
            pauses: direction.has_packets().then_some(events.pauses_count),
        }
    }
}

/// The sender's limits.
#[derive(Serialize)]
pub(super) struct Limits {
    /// The basis of `limited_by`: `packets`, `timestamps`, `round_trip`; `null` if the capture's
    /// position does not allow a verdict.
    limits_from: Option<&'static str>,
    pub(super) limited_by: BTreeMap<&'static str, Option<f64>>,
    /// The main limit, in words.
    pub(super) limit: String,
}

impl Limits {
    /// `round_trip_s` is the median of the whole path.
    pub(super) fn new(direction: &Direction, round_trip_s: Option<f64>) -> Self {
        let limits = direction.limits;
        Self {
            limits_from: limits.basis.map(Basis::name),
            limited_by: Limit::ALL.map(|limit| (limit.name(), limits.basis.map(|_| limits.shares.share(limit)))).into(),
            limit: main_limit(direction, round_trip_s),
        }
    }
}

/// The main limit of a direction, in words; with the bound for a window.
fn main_limit(direction: &Direction, round_trip_s: Option<f64>) -> String {
    if direction.limits.basis.is_none() {
        return "does not show from here".to_owned();
    }
    let Some(limit) = Limit::ALL
        .into_iter()
        .max_by_key(|limit| direction.limits.shares.of(*limit))
        .filter(|_| !direction.limits.shares.total().is_zero())
    else {
        return "–".to_owned();
    };
    let share = format::percent(direction.limits.shares.share(limit));
    match (limit, direction.window.limiting.or(direction.window.max), round_trip_s) {
        (Limit::ReceiveWindow, Some(bytes), Some(trip)) => {
            format!("receive window {share}: {} / {}", format::window(bytes), format::seconds(trip))
        }
        (Limit::CongestionWindow, _, Some(trip)) => {
            let least: f64 = [direction.position.to_sender, direction.position.to_receiver]
                .into_iter()
                .flatten()
                .map(Duration::as_secs_f64)
                .sum();
            // A round trip of twice the minimum includes a queue.
            let queue = if trip >= 2.0 * least { " (with a queue on the path)" } else { "" };
            format!("congestion window {share}{queue}")
        }
        (Limit::Window, ..) => format!("a window {share} (which one does not show here)"),
        (limit, ..) => format!("{} {share}", limit.name().replace('_', " ")),
    }
}

fn seconds(span: Option<Duration>) -> Option<f64> {
    span.map(Duration::as_secs_f64)
}

#[expect(clippy::cast_precision_loss, reason = "statistics")]
fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7323 and RFC 2018: an option is in use if both SYNs have it.
    #[test]
    fn an_option_that_was_cut_from_one_syn_is_unknown_unless_the_other_has_none() {
        for (offered, cut, expected) in [
            ([true, true], [false, false], Some(true)),
            ([true, false], [false, false], Some(false)),
            ([true, true], [true, true], Some(true)),
            ([true, false], [false, true], None),
            ([false, false], [true, true], None),
            ([false, false], [true, false], Some(false)),
        ] {
            assert_eq!(agreed(offered, cut), expected, "{offered:?} {cut:?}");
        }
    }

    /// Three packets before segmentation have 25 segments.
    #[test]
    fn segments_per_ack_are_those_of_packets_before_segmentation() {
        let volume = lastmile_analysis::Volume { packets: 3, data_packets: 3, segments: 25, ..Default::default() };
        let acks = lastmile_analysis::Acks { captured: 10, pure: 10, ..Default::default() };
        let direction = Direction { volume, acks, ..Direction::default() };
        assert_eq!(Acks::new(&direction).segments_per_ack, Some(2.5));
    }
}
