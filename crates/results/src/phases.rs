//! A run divided at changes of the offered traffic: the measurements and the name of each part.

use lastmile_model::outcome::Outcome;
use lastmile_model::{Network, Source};
use lastmile_tcp::LimitedTime;
use lastmile_units::Duration;

use crate::bounds;
use crate::comparison::WHOLE_RUN;
use crate::interval::Interval;
use crate::schema::Shares;

/// The most parts of a run. Beyond it the shortest parts are merged with the shorter of their
/// neighbours: 48 flows that start one after another do not make 48 readable phases.
const MOST_PARTS: usize = 12;

/// The name of the only part of a run whose offered traffic does not change.
const WHOLE: &str = "whole run";

/// A phase in a sentence: `during upload`, `over the whole run`.
#[must_use]
pub fn in_words(phase: &str) -> &str {
    if phase == WHOLE { WHOLE_RUN } else { phase }
}

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

/// The traffic that each part offers, by index.
pub(crate) fn offered(network: &Network, outcome: &Outcome, parts: &[Interval]) -> Vec<Vec<usize>> {
    let of_part = |part: &Interval| {
        let active = |index: &usize| is_active(network, outcome, *index, part);
        (0..network.traffic.len()).filter(active).collect()
    };
    parts.iter().map(of_part).collect()
}

/// The name of each part with this traffic, after that in addition to the traffic of the whole run.
///
/// `during upload`, or `during upload, voice`; without additional traffic `before upload` or
/// `after upload`. Repeated names are numbered.
pub(crate) fn names(network: &Network, all: &[Vec<usize>]) -> Vec<String> {
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
            WHOLE.to_owned()
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
        send_buffer: share(limited.send_buffer).filter(|_| !limited.send_buffer.is_zero()),
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
            send_buffer: Duration::from_ms(2),
            application: Duration::from_ms(1),
            pacing: Duration::from_ms(3),
            awaiting_ack: Duration::from_ps(7),
        };
        let sum: f64 = shares(&limited).iter().map(|(_, share)| share).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
        assert!(shares(&LimitedTime::default()).iter().next().is_none());
    }
}
