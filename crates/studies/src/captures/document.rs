//! The document that `--json` prints. Names include their units; unknown values are `null`.

use std::collections::BTreeMap;

use lastmile_analysis::fairness::{Fairness, Share, fairness};
use lastmile_analysis::{Connection, Direction, Vantage};
use serde::Serialize;

use super::both_ends::BothEnds;
use super::connection::Row;
use super::flows::{self, FlowRow};
use super::group::GroupBy;
use super::read::{Analysed, SetClock};
use super::run::RunCounters;
use super::without_data::{self, WithoutData};

#[derive(Serialize)]
pub(super) struct Files<'a> {
    pub(super) files: Vec<&'a Document>,
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
    /// The link types of the interfaces.
    pub(super) link_types: Vec<String>,
    pub(super) duration_s: f64,
    pub(super) stands: CapturePosition,
    #[serde(flatten)]
    pub(super) incidents: Incidents,
    pub(super) connections: Vec<Row>,
    pub(super) connections_without_data: Vec<WithoutData>,
    pub(super) datagram_flows: Vec<FlowRow>,
    /// The comparison with the capture of `--with`.
    pub(super) joined: Option<BothEnds>,
    pub(super) groups: Vec<Group>,
    pub(super) run: Option<RunCounters>,
}

/// Packets that the analysis omits or corrects.
#[derive(Serialize)]
pub(super) struct Incidents {
    pub(super) packets_without_ip: u64,
    pub(super) packets_not_tcp: u64,
    pub(super) packets_unreadable: u64,
    pub(super) first_unreadable: Option<String>,
    pub(super) packets_with_cut_options: u64,
    /// Fragments of IP packets, among those that are not TCP.
    pub(super) packets_fragmented: u64,
    /// Packets of several segments, before segmentation by a device (TSO, GSO) or merged by a receiver (GRO, LRO).
    pub(super) packets_of_several_segments: u64,
    pub(super) packets_back_in_time: u64,
    #[serde(flatten)]
    pub(super) clock: ClockSteps,
    /// Why packets of an interface are left out.
    pub(super) interfaces_left_out: Option<String>,
    pub(super) packets_seen_at_other_interfaces: u64,
    /// Second copies of packets, as a mirror port makes them, which are left out.
    pub(super) packets_copied_by_mirror: u64,
}

/// Steps of the capture's clock.
#[derive(Serialize)]
pub(super) struct ClockSteps {
    /// How often the clock was set back by more than a second, and the largest step. Later times go on
    /// from there.
    pub(super) clock_steps_back: u64,
    pub(super) largest_clock_step_s: f64,
    /// How often the clock was set forward by more than 50 days, and the largest step.
    pub(super) clock_steps_forward: u64,
    pub(super) largest_clock_step_forward_s: f64,
    /// How often timestamps show that the clock was set forward by less, and the largest step. Times have these steps.
    pub(super) clock_steps_by_timestamps: u64,
    pub(super) largest_clock_step_by_timestamps_s: f64,
}

/// Fairness among the connections of one direction and group.
#[derive(Serialize)]
pub(super) struct Group {
    pub(super) group: Option<String>,
    pub(super) direction: &'static str,
    pub(super) connections: usize,
    /// Those that were active together for at least half of their time, of which are the indices and correlations.
    pub(super) connections_compared: usize,
    /// Payload of all connections over the time in which at least one was active.
    pub(super) goodput_bps: f64,
    pub(super) jain_index: Option<f64>,
    pub(super) jain_index_without_timers: Option<f64>,
    pub(super) coefficient_of_variation: Option<f64>,
    /// `null` where a connection lacks its ACKs: what needs them is, too.
    pub(super) timeouts: Option<u64>,
    pub(super) fast_retransmits: Option<u64>,
    pub(super) correlation_with_timeouts: Option<f64>,
    pub(super) bps_per_timeout: Option<f64>,
    pub(super) correlation_with_inverse_rtt: Option<f64>,
    pub(super) explanation: String,
}

/// The position of the capture, by all its connections.
#[derive(Serialize)]
pub(super) struct CapturePosition {
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

impl CapturePosition {
    fn new(rows: &[Row]) -> Self {
        let count = |vantage: Vantage| rows.iter().filter(|row| row.position.vantage == vantage.name()).count();
        let near = |row: &Row| match row.position.vantage {
            Some("sender") => Some((row.ends.from_ip.clone(), row.position.to_sender_s, row.position.to_receiver_s)),
            Some("receiver") => Some((row.ends.to_ip.clone(), row.position.to_receiver_s, row.position.to_sender_s)),
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

impl Document {
    pub(super) fn new(analysed: &Analysed, group_by: Option<&GroupBy>) -> Self {
        let counts = &analysed.counts;
        let mut connections = Vec::new();
        for (index, connection) in analysed.connections.iter().enumerate() {
            for (name, direction) in [("up", &connection.up), ("down", &connection.down)] {
                if without_data::has_data(direction) {
                    let row = Row::new(index + 1, connection, name, direction);
                    connections.push(Row { group: group_by.map(|by| by.key(connection, direction)), ..row });
                }
            }
        }
        let first = counts.first_unreadable.as_ref();
        Self {
            file: analysed.path.display().to_string(),
            complete: counts.extent.broken.is_none(),
            broken: counts.extent.broken.clone(),
            packets: counts.packets,
            bytes_read: counts.extent.bytes,
            link_types: counts.extent.links.clone(),
            duration_s: counts.duration_s,
            stands: CapturePosition::new(&connections),
            incidents: Incidents {
                packets_without_ip: counts.foreign,
                packets_not_tcp: counts.other,
                packets_unreadable: counts.unreadable,
                first_unreadable: first.map(|(number, why)| format!("packet {number}: {why}")),
                packets_with_cut_options: counts.cut,
                packets_fragmented: counts.fragments,
                packets_of_several_segments: several(&analysed.connections),
                packets_back_in_time: counts.back_in_time,
                clock: ClockSteps::new(counts.clock),
                interfaces_left_out: counts.extent.skipped.clone(),
                packets_seen_at_other_interfaces: counts.seen_before,
                packets_copied_by_mirror: counts.mirrored,
            },
            connections_without_data: without_data::all(&analysed.connections),
            datagram_flows: flows::rows(&analysed.datagrams),
            joined: None,
            groups: groups(&connections),
            run: analysed.run.as_ref().map(|summary| RunCounters::new(summary, &connections)),
            connections,
        }
    }
}

impl ClockSteps {
    fn new(clock: SetClock) -> Self {
        Self {
            clock_steps_back: clock.back.count,
            largest_clock_step_s: clock.back.largest_s,
            clock_steps_forward: clock.forward.count,
            largest_clock_step_forward_s: clock.forward.largest_s,
            clock_steps_by_timestamps: clock.by_timestamps.count,
            largest_clock_step_by_timestamps_s: clock.by_timestamps.largest_s,
        }
    }
}

fn several(connections: &[Connection]) -> u64 {
    let of = |direction: &Direction| direction.volume.packets_of_several;
    connections.iter().map(|connection| of(&connection.up) + of(&connection.down)).sum()
}

/// By group and direction, in the order of their names; without groups by direction only.
fn groups(rows: &[Row]) -> Vec<Group> {
    let mut members: BTreeMap<(Option<&String>, &'static str), Vec<&Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.counts) {
        members.entry((row.group.as_ref(), row.direction)).or_default().push(row);
    }
    let group = |((group, direction), rows): ((Option<&String>, _), Vec<&Row>)| {
        let shares: Vec<Share> = rows.iter().map(|row| row.share()).collect();
        let is_known = rows.iter().all(|row| row.repeats.timeouts.is_some());
        Group::new(group.cloned(), direction, fairness(&shares), is_known)
    };
    members.into_iter().map(group).collect()
}

impl Group {
    /// `is_known` is true if the causes of retransmissions are, and the limits of senders.
    fn new(group: Option<String>, direction: &'static str, fairness: Fairness, is_known: bool) -> Self {
        Self {
            group,
            direction,
            connections: fairness.connections,
            connections_compared: fairness.compared,
            goodput_bps: fairness.goodput_bps,
            jain_index: fairness.jain_index,
            jain_index_without_timers: fairness.jain_index_without_timers.filter(|_| is_known),
            coefficient_of_variation: fairness.coefficient_of_variation,
            timeouts: is_known.then_some(fairness.timeouts),
            fast_retransmits: is_known.then_some(fairness.fast_retransmits),
            correlation_with_timeouts: fairness.correlation_with_timeouts.filter(|_| is_known),
            bps_per_timeout: fairness.bps_per_timeout.filter(|_| is_known),
            correlation_with_inverse_rtt: fairness.correlation_with_inverse_rtt,
            explanation: if is_known { fairness.explanation } else { String::new() },
        }
    }
}
