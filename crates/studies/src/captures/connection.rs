//! A row of `connections`: one direction of a connection, and its share of the line.

use lastmile_analysis::fairness::Share;
use lastmile_analysis::{Connection, Direction, Limit, Opener};
use serde::Serialize;

use super::row::{Acks, Delays, Ecn, Ends, Life, Limits, Options, Position, Repeats, Volume};

/// The least share of a connection's payload from which a direction counts for fairness, together
/// with a full segment.
const OF_THE_PAYLOAD: f64 = 0.1;

/// One direction of a connection that carried data. The parts are flattened: all fields are keys of
/// one object, in this order.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) connection: usize,
    pub(super) direction: &'static str,
    #[serde(flatten)]
    pub(super) ends: Ends,
    pub(super) opener_seen: bool,
    #[serde(flatten)]
    pub(super) position: Position,
    #[serde(flatten)]
    pub(super) life: Life,
    #[serde(flatten)]
    pub(super) options: Options,
    #[serde(flatten)]
    pub(super) ecn: Ecn,
    #[serde(flatten)]
    pub(super) volume: Volume,
    #[serde(flatten)]
    pub(super) delays: Delays,
    #[serde(flatten)]
    pub(super) repeats: Repeats,
    #[serde(flatten)]
    pub(super) acks: Acks,
    #[serde(flatten)]
    pub(super) limits: Limits,
    /// True if it is large enough to count for fairness.
    #[serde(skip)]
    pub(super) counts: bool,
    #[serde(skip)]
    pub(super) group: Option<String>,
}

impl Row {
    pub(super) fn new(number: usize, connection: &Connection, name: &'static str, direction: &Direction) -> Self {
        let up = name == "up";
        let other = if up { &connection.down } else { &connection.up };
        let delays = Delays::new(direction);
        Self {
            connection: number,
            direction: name,
            ends: Ends::new(if up { connection.addresses } else { connection.addresses.reversed() }),
            opener_seen: connection.opener == Opener::Seen,
            position: Position::new(direction),
            life: Life::new(connection),
            options: Options::new(connection, up, direction),
            ecn: Ecn::new(connection, direction),
            volume: Volume::new(direction),
            limits: Limits::new(direction, delays.round_trip_median_s),
            delays,
            repeats: Repeats::new(direction),
            acks: Acks::new(direction),
            counts: counts_for_fairness(direction, other),
            group: None,
        }
    }

    pub(super) fn share(&self) -> Share {
        let of = |limit: Limit| self.limits.limited_by.get(limit.name()).copied().flatten().unwrap_or(0.0);
        Share {
            number: self.connection,
            goodput_bps: self.volume.goodput_bps,
            start_s: self.life.start_s,
            end_s: self.life.start_s + self.volume.active_s,
            timeouts: self.repeats.timeouts.unwrap_or(0),
            fast_retransmits: self.repeats.fast_retransmits.unwrap_or(0),
            timer_share: of(Limit::Timer),
            window_share: of(Limit::ReceiveWindow),
            idle_share: of(Limit::Application),
            rtt_s: self.delays.rtt_median_s.map(|own| own + self.delays.turnaround_s.unwrap_or(0.0)),
        }
    }
}

/// True for a transfer, false for the requests of one.
#[expect(clippy::cast_precision_loss, reason = "statistics")]
fn counts_for_fairness(direction: &Direction, other: &Direction) -> bool {
    let (own, other) = (&direction.volume, &other.volume);
    let payload = (own.bytes_new + other.bytes_new) as f64;
    own.bytes_new as f64 >= OF_THE_PAYLOAD * payload
        && own.bytes_new >= direction.largest_segment.max(1)
        && own.data_packets > 1
}
