//! A run divided at changes of the offered traffic: the measurements and the name of each part.

use lastmile_model::outcome::{Loss, Losses, Outcome, Snapshot, Waits};
use lastmile_model::{Network, Source};
use lastmile_tcp::LimitedTime;
use lastmile_units::{Duration, Instant};

use crate::bounds;
use crate::schema::Shares;

/// The measurements between two snapshots. Lists are by flow, without pings, or by link.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    pub(crate) from: Instant,
    pub(crate) to: Instant,
    /// Payload bytes delivered.
    pub(crate) bytes: Vec<u64>,
    /// Time by limit; `None` for flows without TCP.
    pub(crate) limited: Vec<Option<LimitedTime>>,
    /// Retransmitted segments.
    pub(crate) retransmissions: Vec<u64>,
    /// Bits sent.
    pub(crate) wire_bits: Vec<u64>,
    /// Delays of the packets that left the queue.
    pub(crate) waits: Vec<Waits>,
    /// Delays of the pure ACKs that left the queue.
    pub(crate) ack_waits: Vec<Waits>,
    /// Dropped packets; flows are indices into [`Outcome::flows`].
    pub(crate) losses: Losses,
}

impl Interval {
    /// Its length in seconds.
    pub(crate) fn length_s(&self) -> f64 {
        self.to.since(self.from).as_secs_f64()
    }

    /// The share of pure ACKs among the packets that left the queue of `link`.
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub(crate) fn ack_share(&self, link: usize) -> f64 {
        self.ack_waits[link].packets as f64 / (self.waits[link].packets.max(1)) as f64
    }

    /// Adds the following part.
    fn join(&mut self, next: Self) {
        self.to = next.to;
        add_each(&mut self.bytes, &next.bytes);
        add_each(&mut self.retransmissions, &next.retransmissions);
        add_each(&mut self.wire_bits, &next.wire_bits);
        self.losses.extend(next.losses);
        for (own, next) in self.limited.iter_mut().zip(next.limited) {
            *own = match (*own, next) {
                (Some(own), Some(next)) => Some(joined(own, next)),
                (own, next) => own.or(next),
            };
        }
        for (own, next) in [(&mut self.waits, &next.waits), (&mut self.ack_waits, &next.ack_waits)] {
            own.iter_mut().zip(next).for_each(|(own, next)| own.join(next));
        }
    }

    fn between(before: &Snapshot, after: &Snapshot, places: &[usize]) -> Self {
        let difference = |of: fn(&Snapshot) -> &Vec<u64>| {
            let (old, new) = (of(before), of(after));
            places.iter().map(|place| new[*place].saturating_sub(old[*place])).collect()
        };
        let limited = places.iter().map(|place| {
            let new = after.limited[*place]?;
            Some(before.limited[*place].map_or(new, |old| less(new, old)))
        });
        let wire_bits = after.wire_bits.iter().zip(&before.wire_bits).map(|(new, old)| new.saturating_sub(*old));
        Self {
            from: before.at,
            to: after.at,
            bytes: difference(|snapshot| &snapshot.bytes_delivered),
            limited: limited.collect(),
            retransmissions: difference(|snapshot| &snapshot.retransmissions),
            wire_bits: wire_bits.collect(),
            waits: after.queue_delay.clone(),
            ack_waits: after.ack_queue_delay.clone(),
            losses: of_flows(&after.losses, places),
        }
    }
}

fn add_each(to: &mut [u64], more: &[u64]) {
    to.iter_mut().zip(more).for_each(|(to, more)| *to += more);
}

fn joined(one: LimitedTime, other: LimitedTime) -> LimitedTime {
    LimitedTime {
        congestion_window: one.congestion_window + other.congestion_window,
        receive_window: one.receive_window + other.receive_window,
        application: one.application + other.application,
        pacing: one.pacing + other.pacing,
        awaiting_ack: one.awaiting_ack + other.awaiting_ack,
    }
}

/// The `losses` of flows, by index into [`Outcome::flows`]; those of pings are omitted.
pub(crate) fn of_flows(losses: &[(Loss, u64)], places: &[usize]) -> Losses {
    let of_flow = |(loss, count): &(Loss, u64)| {
        let flow = places.binary_search(&loss.flow).ok()?;
        Some((Loss { flow, ..*loss }, *count))
    };
    losses.iter().filter_map(of_flow).collect()
}

fn less(new: LimitedTime, old: LimitedTime) -> LimitedTime {
    LimitedTime {
        congestion_window: new.congestion_window.saturating_sub(old.congestion_window),
        receive_window: new.receive_window.saturating_sub(old.receive_window),
        application: new.application.saturating_sub(old.application),
        pacing: new.pacing.saturating_sub(old.pacing),
        awaiting_ack: new.awaiting_ack.saturating_sub(old.awaiting_ack),
    }
}

/// The most parts of a run. Beyond it the shortest parts are merged with the shorter of their
/// neighbours: 48 flows that start one after another do not make 48 readable phases.
const MOST_PARTS: usize = 12;

/// The parts of a run, in order. Snapshots at one time, as of two sources that start together, have
/// no part between them.
pub(crate) fn intervals(network: &Network, outcome: &Outcome) -> Vec<Interval> {
    let places = places(network);
    let between = outcome.snapshots.windows(2).map(|pair| Interval::between(&pair[0], &pair[1], &places));
    let mut parts: Vec<Interval> = between.filter(|part| part.from < part.to).collect();
    while parts.len() > MOST_PARTS {
        let length = |at: usize| parts[at].to.since(parts[at].from);
        let shortest = (0..parts.len()).min_by_key(|at| length(*at)).expect("there are several");
        let after = shortest == 0 || (shortest + 1 < parts.len() && length(shortest + 1) <= length(shortest - 1));
        let first = if after { shortest } else { shortest - 1 };
        let second = parts.remove(first + 1);
        parts[first].join(second);
    }
    parts
}

/// Index of each flow in the lists of a snapshot, which include pings.
pub(crate) fn places(network: &Network) -> Vec<usize> {
    let mut places = Vec::new();
    let mut next = 0;
    for traffic in &network.traffic {
        let count = traffic.count as usize;
        if !matches!(traffic.source, Source::Ping { .. }) {
            places.extend(next..next + count);
        }
        next += count;
    }
    places
}

/// The name of each part, after the traffic that runs in it in addition to the traffic of the whole
/// run.
///
/// `during upload`, or `during upload, voice`; without additional traffic `before upload` or
/// `after upload`. Repeated names are numbered.
pub(crate) fn names(network: &Network, outcome: &Outcome, parts: &[Interval]) -> Vec<String> {
    let all: Vec<Vec<usize>> = parts
        .iter()
        .map(|part| {
            let active = |index: &usize| is_active(network, outcome, *index, part);
            (0..network.traffic.len()).filter(active).collect()
        })
        .collect();
    let always = |index: &usize| all.iter().all(|active| active.contains(index));
    let extra: Vec<Vec<usize>> =
        all.iter().map(|active| active.iter().copied().filter(|index| !always(index)).collect()).collect();
    let joined = |indices: &[usize]| names_of(network, indices);
    let mut names: Vec<String> = Vec::new();
    for (number, active) in extra.iter().enumerate() {
        let later = || extra[number + 1..].iter().find(|active| !active.is_empty());
        let earlier = || extra[..number].iter().rev().find(|active| !active.is_empty());
        let name = if !active.is_empty() {
            format!("during {}", joined(active))
        } else if let Some(next) = later() {
            format!("before {}", joined(next))
        } else if let Some(last) = earlier() {
            format!("after {}", joined(last))
        } else {
            "whole run".to_owned()
        };
        names.push(name);
    }
    numbered(&names)
}

/// Starts and stops of pings divide phases too.
fn is_active(network: &Network, outcome: &Outcome, index: usize, part: &Interval) -> bool {
    let traffic = &network.traffic[index];
    if matches!(traffic.source, Source::Ping { .. }) {
        return traffic.start < part.to && traffic.stop.is_none_or(|stop| stop > part.from);
    }
    bounds::active(network, outcome, index, (part.from, part.to)) > 0
}

fn names_of(network: &Network, indices: &[usize]) -> String {
    const MOST: usize = 3;
    let names: Vec<&str> = indices.iter().take(MOST).map(|index| network.traffic[*index].name.as_str()).collect();
    match indices.len().saturating_sub(MOST) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

fn numbered(names: &[String]) -> Vec<String> {
    let mut numbered: Vec<String> = Vec::with_capacity(names.len());
    for (place, name) in names.iter().enumerate() {
        let before = names[..place].iter().filter(|other| *other == name).count();
        numbered.push(if before == 0 { name.clone() } else { format!("{name} ({})", before + 1) });
    }
    numbered
}

/// The shares of a sender's time by limit; all empty if the time is zero.
pub(crate) fn shares(limited: &LimitedTime) -> Shares {
    let total = limited.total();
    if total.is_zero() {
        return Shares::default();
    }
    let share = |part: Duration| Some(part.as_secs_f64() / total.as_secs_f64());
    Shares {
        application: share(limited.application),
        awaiting_ack: share(limited.awaiting_ack),
        congestion_window: share(limited.congestion_window),
        // Only senders that pace have it.
        pacing: share(limited.pacing).filter(|_| !limited.pacing.is_zero()),
        receive_window: share(limited.receive_window),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_comes_twice_is_numbered() {
        let names = ["during a", "before a", "during a"].map(str::to_owned).to_vec();
        assert_eq!(numbered(&names), ["during a", "before a", "during a (2)"]);
    }

    #[test]
    fn shares_sum_to_one() {
        let limited = LimitedTime {
            congestion_window: Duration::from_ms(10),
            receive_window: Duration::from_ms(37),
            application: Duration::from_ms(1),
            pacing: Duration::from_ms(3),
            awaiting_ack: Duration::from_ps(7),
        };
        let sum: f64 = shares(&limited).iter().map(|(_, share)| share).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
        assert!(shares(&LimitedTime::default()).iter().next().is_none());
    }
}
