//! The document that `--json` prints. Names include their units; unknown values are `null`.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use lastmile_analysis::fairness::{Fairness, Share, fairness};
use lastmile_analysis::{Basis, Connection, Direction, Limit, Opener, RoundTrips, Vantage};
use lastmile_units::Duration;
use serde::Serialize;

use super::group::GroupBy;
use super::read::Analysed;
use super::run::Beside;

/// The least share of a connection's payload from which a direction counts for fairness, together
/// with a full segment.
const OF_THE_PAYLOAD: f64 = 0.1;

#[derive(Serialize)]
pub(super) struct Files<'a> {
    pub(super) files: &'a [Document],
}

/// One capture, or one folder of results without captures.
#[derive(Serialize)]
pub(super) struct Document {
    pub(super) file: String,
    /// False for a capture that could not be read to its end.
    pub(super) complete: bool,
    pub(super) broken: Option<String>,
    pub(super) packets: u64,
    pub(super) bytes_read: u64,
    pub(super) duration_s: f64,
    pub(super) stands: Stands,
    pub(super) packets_without_ip: u64,
    pub(super) packets_not_tcp: u64,
    pub(super) packets_unreadable: u64,
    pub(super) first_unreadable: Option<String>,
    pub(super) packets_with_cut_options: u64,
    pub(super) packets_back_in_time: u64,
    pub(super) packets_seen_at_other_interfaces: u64,
    pub(super) connections: Vec<Row>,
    pub(super) groups: Vec<Group>,
    pub(super) run: Option<Beside>,
}

/// One direction of a connection that carried data.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) connection: usize,
    pub(super) direction: &'static str,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) opener_seen: bool,
    /// The position of the capture: `sender`, `between`, `receiver`; `null` if unknown.
    pub(super) vantage: Option<&'static str>,
    pub(super) to_sender_s: Option<f64>,
    pub(super) to_receiver_s: Option<f64>,
    pub(super) start_s: f64,
    pub(super) end_s: f64,
    pub(super) closed: bool,
    pub(super) reset: bool,
    pub(super) handshake_s: Option<f64>,
    pub(super) mss_bytes: Option<u16>,
    pub(super) window_scale: Option<u8>,
    pub(super) sack: Option<bool>,
    pub(super) timestamps: Option<bool>,
    pub(super) dscp: Option<u8>,
    pub(super) packets: u64,
    pub(super) data_packets: u64,
    pub(super) ip_bytes: u64,
    pub(super) bytes_new: u64,
    pub(super) bytes_repeated: u64,
    pub(super) bytes_acknowledged: u64,
    pub(super) bytes_unseen: u64,
    pub(super) active_s: f64,
    pub(super) goodput_bps: f64,
    pub(super) largest_segment_bytes: u64,
    pub(super) initial_window_bytes: Option<u64>,
    pub(super) max_in_flight_bytes: u64,
    pub(super) max_window_bytes: Option<u64>,
    pub(super) rtt_samples: u64,
    pub(super) rtt_min_s: Option<f64>,
    pub(super) rtt_median_s: Option<f64>,
    pub(super) rtt_p95_s: Option<f64>,
    pub(super) turnaround_s: Option<f64>,
    pub(super) turnaround_median_s: Option<f64>,
    pub(super) turnaround_p95_s: Option<f64>,
    pub(super) round_trip_median_s: Option<f64>,
    pub(super) round_trip_p95_s: Option<f64>,
    pub(super) retransmissions: u64,
    pub(super) timeouts: u64,
    pub(super) fast_retransmits: u64,
    pub(super) in_recovery: u64,
    pub(super) after_timeout: u64,
    pub(super) tail_loss_probes: u64,
    pub(super) unexplained: u64,
    pub(super) timeout_share: Option<f64>,
    pub(super) spurious: u64,
    pub(super) spurious_timeouts: u64,
    pub(super) timeouts_in_a_row: u64,
    pub(super) lost_before_capture: u64,
    pub(super) out_of_order: u64,
    pub(super) duplicated: u64,
    pub(super) probes: u64,
    pub(super) acks: u64,
    pub(super) duplicate_acks: u64,
    pub(super) segments_per_ack: Option<f64>,
    pub(super) compressed_acks_share: Option<f64>,
    pub(super) zero_windows: u64,
    pub(super) zero_window_s: f64,
    pub(super) longest_stall_s: f64,
    pub(super) pauses: u64,
    /// The basis of `limited_by`: `packets`, `timestamps`, `round_trip`; `null` if the capture's
    /// position does not allow a verdict.
    pub(super) limits_from: Option<&'static str>,
    pub(super) limited_by: BTreeMap<&'static str, f64>,
    pub(super) limit: String,
    #[serde(skip)]
    pub(super) from_ip: String,
    #[serde(skip)]
    pub(super) to_ip: String,
    /// True if it is large enough to count for fairness.
    #[serde(skip)]
    pub(super) counts: bool,
    #[serde(skip)]
    pub(super) group: Option<String>,
}

/// Fairness among the connections of one direction and group.
#[derive(Serialize)]
pub(super) struct Group {
    pub(super) group: Option<String>,
    pub(super) direction: &'static str,
    pub(super) connections: usize,
    pub(super) goodput_bps: f64,
    pub(super) jain_index: Option<f64>,
    pub(super) jain_index_without_timers: Option<f64>,
    pub(super) coefficient_of_variation: Option<f64>,
    pub(super) timeouts: u64,
    pub(super) fast_retransmits: u64,
    pub(super) correlation_with_timeouts: Option<f64>,
    pub(super) bps_per_timeout: Option<f64>,
    pub(super) correlation_with_inverse_rtt: Option<f64>,
    pub(super) explanation: String,
}

/// The position of the capture, by all its connections.
#[derive(Serialize)]
pub(super) struct Stands {
    /// The address next to the capture, if it belongs to every connection with a known position.
    pub(super) next_to: Option<String>,
    pub(super) to_it_s: Option<f64>,
    pub(super) to_the_others_s: Option<f64>,
    /// Number of rows by position.
    pub(super) at_sender: usize,
    pub(super) between: usize,
    pub(super) at_receiver: usize,
    pub(super) unknown: usize,
}

impl Stands {
    fn new(rows: &[Row]) -> Self {
        let count = |vantage: Vantage| rows.iter().filter(|row| row.vantage == vantage.name()).count();
        let near = |row: &Row| match row.vantage {
            Some("sender") => Some((row.from_ip.clone(), row.to_sender_s, row.to_receiver_s)),
            Some("receiver") => Some((row.to_ip.clone(), row.to_receiver_s, row.to_sender_s)),
            _ => None,
        };
        let ends: Vec<_> = rows.iter().filter_map(near).collect();
        let between = count(Vantage::Between);
        let one = ends.first().filter(|first| between == 0 && ends.iter().all(|end| end.0 == first.0));
        let least = |times: Vec<f64>| one.and_then(|_| times.into_iter().reduce(f64::min));
        Self {
            next_to: one.map(|end| end.0.clone()),
            to_it_s: least(ends.iter().filter_map(|end| end.1).collect()),
            to_the_others_s: least(ends.iter().filter_map(|end| end.2).collect()),
            at_sender: count(Vantage::Sender),
            between,
            at_receiver: count(Vantage::Receiver),
            unknown: count(Vantage::Unknown),
        }
    }
}

/// The whole round trip of a direction, median and 95th percentile. Away from the sender it has two
/// parts: medians are added, and the 95th percentile of the larger part to the median of the other.
fn round_trip(direction: &Direction) -> (Option<Duration>, Option<Duration>) {
    let own = direction.round_trips;
    if !matches!(direction.vantage, Vantage::Between | Vantage::Receiver) {
        return (own.median, own.p95);
    }
    let other = direction.answers;
    let medians = own.median.zip(other.median);
    let larger = |a: RoundTrips, b: RoundTrips| if a.median >= b.median { (a, b) } else { (b, a) };
    let (large, small) = larger(own, other);
    (medians.map(|(own, other)| own + other), large.p95.zip(small.median).map(|(p95, median)| p95 + median))
}

impl Document {
    pub(super) fn new(analysed: &Analysed, group_by: Option<&GroupBy>) -> Self {
        let counts = &analysed.counts;
        let mut connections = Vec::new();
        for (index, connection) in analysed.connections.iter().enumerate() {
            for (name, direction) in [("up", &connection.up), ("down", &connection.down)] {
                if direction.data_packets > 0 || direction.bytes_acknowledged > 0 {
                    let row = Row::new(index + 1, connection, name, direction);
                    connections.push(Row { group: group_by.map(|by| by.key(connection, direction)), ..row });
                }
            }
        }
        let first = counts.first_unreadable.as_ref();
        Self {
            file: analysed.path.display().to_string(),
            complete: counts.broken.is_none(),
            broken: counts.broken.clone(),
            packets: counts.packets,
            bytes_read: counts.bytes,
            duration_s: counts.duration_s,
            stands: Stands::new(&connections),
            packets_without_ip: counts.foreign,
            packets_not_tcp: counts.other,
            packets_unreadable: counts.unreadable,
            first_unreadable: first.map(|(number, why)| format!("packet {number}: {why}")),
            packets_with_cut_options: counts.cut,
            packets_back_in_time: counts.back_in_time,
            packets_seen_at_other_interfaces: counts.seen_before,
            groups: groups(&connections),
            run: analysed.run.as_ref().map(|summary| Beside::new(summary, &connections)),
            connections,
        }
    }
}

impl Row {
    fn new(number: usize, connection: &Connection, name: &'static str, direction: &Direction) -> Self {
        let up = name == "up";
        let addresses = if up { connection.addresses } else { connection.addresses.reversed() };
        let handshake = connection.handshake;
        // The options that the receiver of this direction offered.
        let offered = if up { handshake.syn_ack } else { handshake.syn };
        let both = handshake.syn.zip(handshake.syn_ack);
        let seconds = |span: Option<Duration>| span.map(Duration::as_secs_f64);
        let repeats = direction.repeats;
        let (median, p95) = round_trip(direction);
        let other = if up { &connection.down } else { &connection.up };
        Self {
            connection: number,
            direction: name,
            from_ip: addresses.ip.source().to_string(),
            to_ip: addresses.ip.destination().to_string(),
            from: SocketAddr::new(addresses.ip.source(), addresses.source_port).to_string(),
            to: SocketAddr::new(addresses.ip.destination(), addresses.destination_port).to_string(),
            opener_seen: connection.opener == Opener::Seen,
            vantage: direction.vantage.name(),
            to_sender_s: seconds(direction.to_sender),
            to_receiver_s: seconds(direction.to_receiver),
            start_s: connection.from.as_secs_f64(),
            end_s: connection.to.as_secs_f64(),
            closed: connection.closed,
            reset: connection.reset,
            handshake_s: seconds(handshake.took),
            mss_bytes: offered.and_then(|(options, _)| options.mss),
            window_scale: offered.and_then(|(options, _)| options.window_scale),
            sack: both.map(|((syn, _), (answer, _))| syn.sack_permitted && answer.sack_permitted),
            timestamps: both.map(|((_, syn), (_, answer))| syn && answer),
            dscp: direction.dscp,
            packets: direction.packets,
            data_packets: direction.data_packets,
            ip_bytes: direction.ip_bytes,
            bytes_new: direction.bytes_new,
            bytes_repeated: direction.bytes_repeated,
            bytes_acknowledged: direction.bytes_acknowledged,
            bytes_unseen: direction.bytes_unseen,
            active_s: direction.active.as_secs_f64(),
            goodput_bps: direction.goodput_bps,
            largest_segment_bytes: direction.largest_segment,
            initial_window_bytes: direction.initial_window,
            max_in_flight_bytes: direction.max_in_flight,
            max_window_bytes: direction.max_window,
            rtt_samples: direction.round_trips.count,
            rtt_min_s: seconds(direction.round_trips.least),
            rtt_median_s: seconds(direction.round_trips.median),
            rtt_p95_s: seconds(direction.round_trips.p95),
            turnaround_s: seconds(direction.turnaround),
            turnaround_median_s: seconds(direction.answers.median),
            turnaround_p95_s: seconds(direction.answers.p95),
            round_trip_median_s: seconds(median),
            round_trip_p95_s: seconds(p95),
            retransmissions: repeats.packets(),
            timeouts: repeats.timeouts,
            fast_retransmits: repeats.fast,
            in_recovery: repeats.in_recovery,
            after_timeout: repeats.after_timeout,
            tail_loss_probes: repeats.tail_probes,
            unexplained: repeats.unknown,
            timeout_share: repeats.timeout_share(),
            spurious: repeats.spurious,
            spurious_timeouts: repeats.spurious_timeouts,
            timeouts_in_a_row: repeats.most_in_a_row,
            lost_before_capture: repeats.lost_before_capture,
            out_of_order: repeats.out_of_order,
            duplicated: repeats.duplicated,
            probes: repeats.probes,
            acks: direction.acks,
            duplicate_acks: direction.duplicate_acks,
            segments_per_ack: share(direction.data_packets, direction.acks),
            compressed_acks_share: share(direction.compressed_acks, direction.spaced_acks),
            zero_windows: direction.zero_windows,
            zero_window_s: direction.zero_window.as_secs_f64(),
            longest_stall_s: direction.longest_stall.as_secs_f64(),
            pauses: direction.pauses_count,
            limits_from: direction.limits_from.map(Basis::name),
            limited_by: Limit::ALL.map(|limit| (limit.name(), direction.limits.share(limit))).into(),
            limit: super::tables::limit(direction, median),
            counts: counts_for_fairness(direction, other),
            group: None,
        }
    }

    fn share(&self) -> Share {
        let of = |limit: Limit| self.limited_by.get(limit.name()).copied().unwrap_or(0.0);
        Share {
            number: self.connection,
            goodput_bps: self.goodput_bps,
            timeouts: self.timeouts,
            fast_retransmits: self.fast_retransmits,
            timer_share: of(Limit::Timer),
            window_share: of(Limit::ReceiveWindow),
            idle_share: of(Limit::Application),
            rtt_s: self.rtt_median_s.map(|own| own + self.turnaround_s.unwrap_or(0.0)),
        }
    }
}

/// True for a transfer, false for the requests of one.
#[expect(clippy::cast_precision_loss, reason = "statistics")]
fn counts_for_fairness(direction: &Direction, other: &Direction) -> bool {
    let payload = (direction.bytes_new + other.bytes_new) as f64;
    direction.bytes_new as f64 >= OF_THE_PAYLOAD * payload
        && direction.bytes_new >= direction.largest_segment.max(1)
        && direction.data_packets > 1
}

#[expect(clippy::cast_precision_loss, reason = "statistics")]
fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

/// By group and direction, in the order of their names; without groups by direction only.
fn groups(rows: &[Row]) -> Vec<Group> {
    let mut shares: BTreeMap<(Option<&String>, &'static str), Vec<Share>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.counts) {
        shares.entry((row.group.as_ref(), row.direction)).or_default().push(row.share());
    }
    shares
        .into_iter()
        .map(|((group, direction), shares)| Group::new(group.cloned(), direction, fairness(&shares)))
        .collect()
}

impl Group {
    fn new(group: Option<String>, direction: &'static str, fairness: Fairness) -> Self {
        Self {
            group,
            direction,
            connections: fairness.connections,
            goodput_bps: fairness.goodput_bps,
            jain_index: fairness.jain_index,
            jain_index_without_timers: fairness.jain_index_without_timers,
            coefficient_of_variation: fairness.coefficient_of_variation,
            timeouts: fairness.timeouts,
            fast_retransmits: fairness.fast_retransmits,
            correlation_with_timeouts: fairness.correlation_with_timeouts,
            bps_per_timeout: fairness.bps_per_timeout,
            correlation_with_inverse_rtt: fairness.correlation_with_inverse_rtt,
            explanation: fairness.explanation,
        }
    }
}
