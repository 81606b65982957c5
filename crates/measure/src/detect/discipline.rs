//! The behaviour of a queue below its limit: fair turns of flows, and a controlled delay.
//!
//! An overload that no queue controls against (CoDel drops ever faster, yet takes seconds to reach a third of all
//! packets) shows its limit alone. So this overload is slight: a burst lets [`STANDING_S`] of packets wait, and then
//! [`EXCESS`] packets a second more come than depart. A tail drop keeps or grows that wait. CoDel and PIE bring it down
//! within seconds, and their drops differ: by RFC 8289, section 5.3, the time to CoDel's next drop is `interval /
//! sqrt(count)`, so that times between drops change slowly, while PIE (RFC 8033, section 4.1) draws a random number for
//! each packet. Small echoes of another flow wait as long as the overload does, or hardly at all in a fair queue.

use lastmile_analysis::quantiles::median as middle;
use serde::{Deserialize, Serialize};

use super::rate::Sustained;
use super::train::{ECHO_BYTES, Plan, Seen, span};
use crate::error::Error;
use crate::report::Estimate;
use crate::statistics::median;
use crate::train::{Departure, Echo, Path, Way};
use lastmile_units::ByteCount;

/// Wait of the burst: above the targets of CoDel (5 ms) and PIE (15 ms), below most buffers. On a slow line, it is that
/// of [`STANDING_PACKETS`].
const STANDING_S: f64 = 0.025;
const STANDING_PACKETS: f64 = 8.0;
/// Packets a second beyond the rate: CoDel drops as many 0.4 s after its first drop. At most a tenth of the rate.
const EXCESS: f64 = 20.0;
/// Length of the slight overload: CoDel takes 3.5 s for a standing queue of 300 packets.
const LENGTH_S: f64 = 6.0;
/// Pause ahead of all: a probability that an overload has left behind falls to a fifteenth (RFC 8033, section 4.2: by a
/// fiftieth each 15 ms).
const REST_S: f64 = 2.0;
/// Seconds at half the rate before the burst: the waits of the idle line.
const BEFORE_S: f64 = 0.5;
/// Least time between two echoes; on a slow line, that of five full packets.
const ECHO_S: f64 = 0.02;
/// Rate of the burst, as a multiple of the rate.
const BURST: f64 = 1.5;
/// Relative change from one time between drops to the next, as the median of the logarithm's: below the first for
/// CoDel (0.02 to 0.18 from 2 Mbit/s on), above the second for random drops (0.36 to 0.7).
const REGULAR: (f64, f64) = (0.22, 0.32);
/// Fewest times between drops that show a law.
const GAPS: usize = 16;
/// Share of a full buffer's delay below which a drop is none of a full buffer.
const EARLY: f64 = 0.8;
/// Share of an earlier wait below which the wait has been brought down.
const FALLEN: f64 = 0.75;
/// Least wait that a law brings down: above CoDel's target.
const LEAST_S: f64 = 0.006;
/// Targets of CoDel and PIE with their tolerance, and the time of a packet from which on neither these nor times
/// between drops, which are whole packets, distinguish the two.
const CODEL_S: f64 = 0.010;
const PIE_S: core::ops::Range<f64> = 0.005..0.025;
const SLOW_S: f64 = 0.008;

/// A kind of queue, as scenarios name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One queue that drops what does not fit.
    Fifo,
    /// Fair turns of flows, and drops of what does not fit.
    Sfq,
    /// One queue under CoDel.
    Codel,
    /// One queue under PIE.
    Pie,
    /// Fair turns of flows, each under CoDel; CAKE looks alike.
    FqCodel,
    /// Fair turns of flows, each under PIE.
    FqPie,
}

impl Kind {
    /// Its name in a scenario.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Sfq => "sfq",
            Self::Codel => "codel",
            Self::Pie => "pie",
            Self::FqCodel => "fq-codel",
            Self::FqPie => "fq-pie",
        }
    }

    /// Whether it drops only what does not fit.
    #[must_use]
    pub fn drops_at_its_limit_alone(self) -> bool {
        matches!(self, Self::Fifo | Self::Sfq)
    }
}

/// The discipline of a queue.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Discipline {
    /// The kinds that the waits and drops allow, the usual one first: one is sure, and none is a law of another kind.
    pub kinds: Vec<Kind>,
    /// Wait of the slight overload in the second half of its time, in seconds.
    pub own_wait_s: Option<Estimate>,
    /// Wait of another flow's small echoes meanwhile, in seconds; `None` where no second flow was possible.
    pub other_wait_s: Option<Estimate>,
}

impl Discipline {
    /// The kind, if one is sure.
    #[must_use]
    pub fn sure(&self) -> Option<Kind> {
        if let [kind] = self.kinds[..] { Some(kind) } else { None }
    }

    /// Whether a law holds the delay below that of a full buffer.
    pub(super) fn is_controlled(&self) -> bool {
        !self.kinds.iter().any(|kind| kind.drops_at_its_limit_alone())
    }

    /// A warning where no kind is sure.
    pub(super) fn warning(&self, name: &str) -> Option<String> {
        let names: Vec<&str> = self.kinds.iter().map(|kind| kind.name()).collect();
        let wait = self.own_wait_s.map_or(String::new(), |wait| format!(" at {:.1} ms", wait.value * 1e3));
        match names[..] {
            [_] => None,
            [] => Some(format!(
                "{name}: a law that is neither CoDel's nor PIE's holds its queue{wait}: the queue of a scenario is a \
                 default, and its latency under load not the line's"
            )),
            [first, ..] => Some(format!(
                "{name}: the kind of its queue is not sure ({}): a scenario has {first}",
                names.join(" or ")
            )),
        }
    }
}

/// The law by which packets are dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Law {
    /// The queue was full, or never dropped.
    Tail,
    Codel,
    Pie,
    /// CoDel or PIE.
    Controlled,
    /// Neither.
    Other,
    /// Nothing shows.
    Hidden,
}

/// Seconds that [`discipline`] takes, with the time for the queue to empty.
pub(super) fn cost_s(packet_s: f64) -> f64 {
    REST_S + BEFORE_S + LENGTH_S + 3.0 * standing_s(packet_s) + 1.0
}

fn standing_s(packet_s: f64) -> f64 {
    STANDING_S.max(STANDING_PACKETS * packet_s)
}

/// The discipline of the queue. `full_s` is the delay of a full buffer, where an overload filled it, `loss` the share
/// of packets lost without overload, and `most` the packets of a train.
pub(super) fn discipline(
    path: &mut dyn Path,
    way: Way,
    size: u16,
    sustained: &Sustained,
    (full_s, loss): (Option<f64>, f64),
    most: usize,
) -> Result<Discipline, Error> {
    // Packets lost behind the queue take time of the line, too.
    let packet_s = sustained.packet_s * (1.0 - loss);
    let rate = packet_s.recip();
    // An error of the rate must not eat the excess.
    let uncertain = 3.0 * rate * sustained.error_s / packet_s;
    let excess = EXCESS.max(uncertain).min(0.1 * rate);
    let mut plan = Plan::default();
    plan.packet(size, REST_S);
    let before = ((BEFORE_S / packet_s / 2.0) as usize).max(6);
    (0..before).for_each(|_| plan.packet(size, 2.0 * packet_s));
    // Each packet of the burst lets those after it wait for a third of its time more.
    let burst = (standing_s(packet_s) / packet_s / (1.0 - BURST.recip())) as usize;
    (0..burst).for_each(|_| plan.packet(size, packet_s / BURST));
    let start = plan.len();
    let interval = (rate + excess).recip();
    let count = ((LENGTH_S / interval) as usize).min(most.saturating_sub(start));
    (0..count).for_each(|_| plan.packet(size, interval));
    let every = ECHO_S.max(5.0 * packet_s);
    let echoes = (plan.length_s() / every) as usize;
    let request = |i: usize| Departure { at: span(i as f64 * every), ip_len: ByteCount::new(ECHO_BYTES) };
    let (seen, echoes) = plan.send_beside(path, way, &(0..echoes).map(request).collect::<Vec<_>>())?;
    Ok(judge(&seen, (before + 1, start), echoes.as_deref(), packet_s, (full_s, loss)))
}

/// Reads the train: packets before the burst, and from the start of the slight overload on.
fn judge(
    seen: &[Seen],
    (before, start): (usize, usize),
    echoes: Option<&[Echo]>,
    packet_s: f64,
    (full_s, loss): (Option<f64>, f64),
) -> Discipline {
    let hold = &seen[start.min(seen.len())..];
    let idle = middle(&delays(&seen[..before.min(seen.len())]));
    let half = &hold[hold.len() / 2..];
    let own_wait_s = median(&delays(half)).map(|delay| less(delay, idle));
    let idle_echoes: Vec<f64> =
        echoes.into_iter().flat_map(|echoes| round_trips(echoes, 0.0, REST_S + BEFORE_S)).collect();
    let echoes = echoes.filter(|_| idle_echoes.len() >= 3);
    let idle_echo = middle(&idle_echoes);
    let other_wait_s = echoes.zip(half.first()).and_then(|(echoes, half)| {
        let loaded: Vec<f64> = round_trips(echoes, half.sent, f64::INFINITY).collect();
        median(&loaded).map(|time| less(time, idle_echo))
    });
    // The burst has ended at its largest wait, unless a law has met it.
    let burst = &seen[before.min(seen.len())..start.min(seen.len())];
    let met_s = middle(&delays(&burst[burst.len() - burst.len() / 4..])) - idle;
    let law = own_wait_s.map_or(Law::Hidden, |own| law(hold, idle, (met_s, own), packet_s, (full_s, loss)));
    let fair = echoes.and_then(|echoes| fair(hold, echoes, idle, idle_echo));
    Discipline { kinds: kinds(law, fair), own_wait_s, other_wait_s }
}

fn delays(seen: &[Seen]) -> Vec<f64> {
    seen.iter().filter_map(|seen| Some(seen.arrived? - seen.sent)).collect()
}

fn less(estimate: Estimate, by: f64) -> Estimate {
    Estimate { value: estimate.value - by, low: estimate.low - by, high: estimate.high - by }
}

fn law(
    hold: &[Seen],
    idle: f64,
    (met, own): (f64, Estimate),
    packet_s: f64,
    (full_s, loss): (Option<f64>, f64),
) -> Law {
    let settled = own.value;
    let waits = windows(hold).map(|window| middle(&delays(window)) - idle);
    let windows: Vec<f64> = std::iter::once(met).chain(waits).collect();
    let fallen = (0..windows.len()).any(|at| has_fallen(windows[at], &windows[at + 1..]));
    let drops: Vec<usize> = (0..hold.len()).filter(|&at| hold[at].arrived.is_none()).collect();
    let change = change(&drops.iter().map(|&at| hold[at].sent).collect::<Vec<_>>());
    let near = |&at: &usize| middle(&delays(&hold[at.saturating_sub(5)..hold.len().min(at + 6)])) - idle;
    let at_drops = middle(&drops.iter().map(near).collect::<Vec<_>>());
    let early = at_drops > LEAST_S && full_s.is_none_or(|full| at_drops < EARLY * full);
    let regular = change.is_some_and(|change| change < REGULAR.0);
    let few = (drops.len() as f64) < 8.0 + 2.0 * loss * hold.len() as f64;
    if few || !(fallen || early && regular) {
        // CoDel would have dropped after 0.1 s, and PIE raised its probability all the time.
        let is_controlled = STANDING_S.max(3.0 * packet_s) * 0.8 > settled;
        let is_full = full_s.is_some_and(|full| settled > EARLY * full - packet_s);
        return if !fallen && (is_full || (few || early) && !is_controlled) { Law::Tail } else { Law::Hidden };
    }
    if packet_s > SLOW_S {
        return Law::Controlled;
    }
    // A fast line's packets end before CoDel has reached its target.
    let falls = windows[windows.len() - 1] < 0.9 * windows[windows.len() / 2];
    // A wait excludes a law where its whole interval does.
    let low = own.low < CODEL_S.max(3.5 * packet_s);
    let between = own.low < PIE_S.end && own.high >= PIE_S.start;
    match change {
        Some(change) if change < REGULAR.0 && (low || falls || !fallen) => Law::Codel,
        Some(change) if change > REGULAR.1 && between => Law::Pie,
        Some(change) if change < REGULAR.0 || change > REGULAR.1 => Law::Other,
        _ => Law::Controlled,
    }
}

/// Tenths of the slight overload.
fn windows(hold: &[Seen]) -> impl Iterator<Item = &[Seen]> {
    hold.chunks(hold.len().div_ceil(10).max(1))
}

/// Whether the wait comes down from `wait` in two later windows: a moment at a higher rate is not a law.
fn has_fallen(wait: f64, later: &[f64]) -> bool {
    wait > LEAST_S && later.iter().filter(|&&later| later < FALLEN * wait).count() >= 2
}

/// Whether echoes of another flow wait less than half as long as the overload: `None` where the 95 % interval of that
/// share includes a half.
fn fair(hold: &[Seen], echoes: &[Echo], idle: f64, idle_echo: f64) -> Option<bool> {
    let mut shares = Vec::new();
    for window in windows(hold) {
        let own = middle(&delays(window)) - idle;
        let (from, to) = (window[0].sent, window[window.len() - 1].sent);
        shares.extend(round_trips(echoes, from, to).map(|time| (time - idle_echo) / own).filter(|_| own > 0.0));
    }
    let share = median(&shares).filter(|_| shares.len() >= 8)?;
    (share.high < 0.5 || share.low > 0.5).then_some(share.high < 0.5)
}

/// Round-trip times of the echoes of a time.
fn round_trips(echoes: &[Echo], from: f64, to: f64) -> impl Iterator<Item = f64> {
    let of = echoes.iter().filter(move |echo| (from..to).contains(&echo.sent.as_secs_f64()));
    of.filter_map(|echo| Some(echo.round_trip?.as_secs_f64()))
}

/// Median relative change from one time between drops to the next; `None` for too few of them.
fn change(drops: &[f64]) -> Option<f64> {
    let gaps: Vec<f64> = drops.windows(2).map(|two| two[1] - two[0]).collect();
    let changes: Vec<f64> = gaps.windows(2).map(|two| (two[1] / two[0]).ln().abs()).collect();
    (gaps.len() >= GAPS).then(|| middle(&changes))
}

fn kinds(law: Law, fair: Option<bool>) -> Vec<Kind> {
    let pairs: &[(Kind, Kind)] = match law {
        Law::Tail => &[(Kind::Fifo, Kind::Sfq)],
        Law::Codel => &[(Kind::Codel, Kind::FqCodel)],
        Law::Pie => &[(Kind::Pie, Kind::FqPie)],
        Law::Controlled => &[(Kind::Codel, Kind::FqCodel), (Kind::Pie, Kind::FqPie)],
        Law::Other => &[],
        Law::Hidden => &[(Kind::Fifo, Kind::Sfq), (Kind::Codel, Kind::FqCodel), (Kind::Pie, Kind::FqPie)],
    };
    let of = |&(one, fair_one): &(Kind, Kind)| match fair {
        Some(true) => vec![fair_one],
        Some(false) => vec![one],
        None => vec![one, fair_one],
    };
    pairs.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8289, section 5.3: the n-th time between drops is `interval / sqrt(n)`. Of 20 of them, the tenth of 19
    /// changes is the median: `ln(sqrt(11 / 10))`.
    #[test]
    fn drops_of_codel_change_their_distance_slowly() {
        let mut at = 0.0;
        let drops: Vec<f64> = std::iter::once(0.0)
            .chain((1..=20).map(|n| {
                at += 0.1 / f64::from(n).sqrt();
                at
            }))
            .collect();
        let change = change(&drops).unwrap();
        assert!((change - 1.1_f64.sqrt().ln()).abs() < 1e-12 && change < REGULAR.0, "{change}");
        assert_eq!(super::change(&drops[..16]), None, "15 times are too few");
    }

    #[test]
    fn what_is_left_open_is_named() {
        assert_eq!(kinds(Law::Codel, Some(true)), [Kind::FqCodel]);
        assert_eq!(kinds(Law::Tail, None), [Kind::Fifo, Kind::Sfq]);
        assert_eq!(kinds(Law::Controlled, Some(false)), [Kind::Codel, Kind::Pie]);
        let held = Estimate { value: 0.04, low: 0.039, high: 0.041 };
        let other = Discipline { kinds: Vec::new(), own_wait_s: Some(held), other_wait_s: None };
        assert!(other.is_controlled() && other.warning("up").unwrap().contains("holds its queue at 40.0 ms"));
    }

    /// A queue at 4 Mbit/s that was brought down to 12 ms by drops at equal times: above CoDel's 10.5 ms, unless the
    /// interval of the wait reaches below them.
    #[test]
    fn a_wait_excludes_a_law_where_its_whole_interval_does() {
        let (idle, packet_s) = (0.01, 0.003);
        let seen = |at: usize| {
            let (sent, wait) = (at as f64 * packet_s, if at < 100 { 0.025 } else { 0.012 });
            Seen { size: 1500, sent, arrived: (at % 20 != 19).then_some(sent + idle + wait) }
        };
        let hold: Vec<Seen> = (0..1000).map(seen).collect();
        let found = |low, high| {
            let own = Estimate { value: 0.012, low, high };
            law(&hold, idle, (0.025, own), packet_s, (None, 0.0))
        };
        assert_eq!((found(0.0115, 0.0125), found(0.0095, 0.0145)), (Law::Other, Law::Codel));
    }

    /// One moment below is a change of the rate, two are a law; a wait of a few milliseconds is below all targets.
    #[test]
    fn a_wait_has_fallen_after_two_windows() {
        assert!(has_fallen(0.02, &[0.014, 0.016, 0.01]) && !has_fallen(0.02, &[0.014, 0.016, 0.02]));
        assert!(!has_fallen(0.005, &[0.001, 0.001]));
    }
}
