//! Fairness among connections, and its explanation.
//!
//! Published: Jain, Chiu and Hawe 1984 (the index). Ano, Decre and Hasegawa 2002, section 5,
//! explain unequal goodputs by retransmission timeouts.
//!
//! Connections share a line while they are active together. So those are compared that were active together with
//! another one for at least half of their own time. The goodput of all is what they carried, over the time in which at
//! least one was active: rates of connections one after another have no sum. A connection that was idle for nine tenths
//! of its time, as the control connection of a test, is not active; where all are, all count.

use lastmile_theory::fairness::jain;

/// The figures of one direction of a connection that fairness needs.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Share {
    /// Number of the connection, for the explanation.
    pub number: usize,
    /// Goodput of the direction, from `start_s` to `end_s`.
    pub goodput_bps: f64,
    /// When it began to be active.
    pub start_s: f64,
    /// When it ended.
    pub end_s: f64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast retransmits.
    pub fast_retransmits: u64,
    /// Share of the time spent waiting for retransmission timers, 0 to 1.
    pub timer_share: f64,
    /// Share of the time limited by the receiver's window, 0 to 1.
    pub window_share: f64,
    /// Share of the time without data to send, 0 to 1.
    pub idle_share: f64,
    /// Median round trip.
    pub rtt_s: Option<f64>,
}

/// Fairness of a group of connections.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Fairness {
    /// Number of connections.
    pub connections: usize,
    /// Those that were active together, of which all indices and correlations are.
    pub compared: usize,
    /// What all carried that were not idle, over the time in which at least one was active.
    pub goodput_bps: f64,
    /// Jain's index, from 1/n to 1; `None` if all goodputs are zero, or no two were active together.
    pub jain_index: Option<f64>,
    /// The index without waits for timers, each connection at its rate during the rest of the time.
    pub jain_index_without_timers: Option<f64>,
    /// Standard deviation of goodput over its mean.
    pub coefficient_of_variation: Option<f64>,
    /// Sum of the timeouts.
    pub timeouts: u64,
    /// Sum of the fast retransmits.
    pub fast_retransmits: u64,
    /// Correlation of goodput with the number of timeouts (Pearson), -1 to 1, of connections that were seldom without
    /// data to send: others have the goodput that they ask for.
    pub correlation_with_timeouts: Option<f64>,
    /// Change of goodput per timeout: the slope of the least-squares line.
    pub bps_per_timeout: Option<f64>,
    /// Correlation of goodput with the inverse of the round trip.
    pub correlation_with_inverse_rtt: Option<f64>,
    /// The explanation in words.
    pub explanation: String,
}

/// The index from which goodputs count as equal and get no explanation.
const EVEN: f64 = 0.98;
/// The least absolute correlation that is reported.
const TELLING: f64 = 0.7;
/// The least share of time that is reported.
const MUCH: f64 = 0.1;
/// The share of time without data to send from which a connection is idle.
const IDLE: f64 = 0.9;
/// The most connections that a sentence names.
const MOST_NAMED: usize = 8;

/// The times in which connections were active, up to each change.
struct Activity(Vec<Change>);

/// A change of the number of active connections, and the time before it with at least one and with at least two.
#[derive(Clone, Copy, Default)]
struct Change {
    at_s: f64,
    one_s: f64,
    two_s: f64,
}

impl Activity {
    fn of(shares: &[Share]) -> Self {
        let ends = |share: &Share| [(share.start_s, 1_i64), (share.end_s, -1)];
        let mut changes: Vec<(f64, i64)> = shares.iter().flat_map(ends).collect();
        changes.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (mut active, mut last) = (0, Change::default());
        let next = |(at_s, change): (f64, i64)| {
            let span = if active > 0 { at_s - last.at_s } else { 0.0 };
            let both = if active > 1 { span } else { 0.0 };
            active += change;
            last = Change { at_s, one_s: last.one_s + span, two_s: last.two_s + both };
            last
        };
        Self(changes.into_iter().map(next).collect())
    }

    /// The time with at least one.
    fn span_s(&self) -> f64 {
        self.0.last().map_or(0.0, |last| last.one_s)
    }

    /// True if another one was active for half of its time.
    fn is_together(&self, share: &Share) -> bool {
        let until = |at_s: f64| self.0.get(self.0.partition_point(|change| change.at_s < at_s)).map(|one| one.two_s);
        let together = until(share.end_s).zip(until(share.start_s)).map_or(0.0, |(end, start)| end - start);
        together > 0.0 && together >= HALF * (share.end_s - share.start_s)
    }
}

/// The least share of its time in which a connection is not alone.
const HALF: f64 = 0.5;

/// The fairness of these connections.
#[must_use]
pub fn fairness(connections: &[Share]) -> Fairness {
    let busy: Vec<Share> = connections.iter().filter(|share| share.idle_share < IDLE).copied().collect();
    let all = if busy.is_empty() { connections } else { &busy[..] };
    let activity = Activity::of(all);
    let bits = all.iter().map(|share| share.goodput_bps * (share.end_s - share.start_s)).sum::<f64>();
    let together: Vec<Share> = all.iter().filter(|share| activity.is_together(share)).copied().collect();
    let shares: &[Share] = match (all, &together[..]) {
        ([_], _) => all,
        (_, [] | [_]) => &[],
        (_, together) => together,
    };
    let goodputs = || shares.iter().map(|share| share.goodput_bps);
    let freed = |share: &Share| share.goodput_bps / (1.0 - share.timer_share.clamp(0.0, 0.99));
    let inverse =
        shares.iter().filter_map(|share| Some((share.rtt_s.filter(|rtt| *rtt > 0.0)?.recip(), share.goodput_bps)));
    let line = Line::through(shares.iter().filter(|share| share.idle_share < MUCH).map(timeouts_and_goodput));
    let mut fairness = Fairness {
        connections: connections.len(),
        compared: shares.len(),
        goodput_bps: if bits > 0.0 { bits / activity.span_s() } else { 0.0 },
        jain_index: jain(goodputs()),
        jain_index_without_timers: jain(shares.iter().map(freed)),
        coefficient_of_variation: variation(goodputs()),
        timeouts: connections.iter().map(|share| share.timeouts).sum(),
        fast_retransmits: connections.iter().map(|share| share.fast_retransmits).sum(),
        correlation_with_timeouts: line.as_ref().map(|line| line.correlation),
        bps_per_timeout: line.map(|line| line.slope),
        correlation_with_inverse_rtt: Line::through(inverse).map(|line| line.correlation),
        explanation: String::new(),
    };
    fairness.explanation = explain(shares, &fairness);
    fairness
}

#[expect(clippy::cast_precision_loss, reason = "statistics")]
fn timeouts_and_goodput(share: &Share) -> (f64, f64) {
    (share.timeouts as f64, share.goodput_bps)
}

/// The measured causes of unequal goodputs.
fn explain(shares: &[Share], fairness: &Fairness) -> String {
    if shares.is_empty() && fairness.connections > 1 {
        return "they were active one after another, and are not compared".to_owned();
    }
    let Some(index) = fairness.jain_index.filter(|_| shares.len() > 1) else { return String::new() };
    if index >= EVEN {
        return format!("goodputs are even (index {index:.2})");
    }
    let waiting = above(shares, |share| share.timer_share);
    if let Some(without) = fairness.jain_index_without_timers
        && !waiting.is_empty()
        && (without - index) * 3.0 >= 1.0 - index
    {
        let mean = mean(waiting.iter().map(|share| share.timer_share)) * 100.0;
        let names = names(&waiting);
        return format!(
            "{names} spent {mean:.0} % of the time waiting for retransmission timers; \
             without these waits the index would be {without:.2} instead of {index:.2}"
        );
    }
    if let Some(correlation) = fairness.correlation_with_timeouts.filter(|correlation| *correlation <= -TELLING) {
        return format!(
            "goodput falls with the number of timeouts (correlation {correlation:.2}, {:.0} bit/s for each), \
             and not by the waiting alone: each also closes the congestion window",
            fairness.bps_per_timeout.unwrap_or(0.0)
        );
    }
    let idle = above(shares, |share| share.idle_share);
    if !idle.is_empty() && idle.len() < shares.len() {
        let mean = mean(idle.iter().map(|share| share.idle_share)) * 100.0;
        return format!("{} had nothing to send for {mean:.0} % of the time", names(&idle));
    }
    if let Some(correlation) = fairness.correlation_with_inverse_rtt.filter(|correlation| *correlation >= TELLING) {
        return format!("goodput goes with the inverse of the round trip (correlation {correlation:.2})");
    }
    let limited = above(shares, |share| share.window_share);
    if !limited.is_empty() && limited.len() < shares.len() {
        let mean = mean(limited.iter().map(|share| share.window_share)) * 100.0;
        return format!("{} were held by the receiver's window for {mean:.0} % of the time", names(&limited));
    }
    format!("neither timeouts, round trips, windows nor idle applications explain it (index {index:.2})")
}

/// The connections whose share is at least [`MUCH`] and twice the mean of the others. All of them, where each has
/// [`MUCH`] and none has twice as much as others.
#[expect(clippy::cast_precision_loss, reason = "statistics")]
fn above(shares: &[Share], of: impl Fn(&Share) -> f64) -> Vec<&Share> {
    let mut sorted: Vec<f64> = shares.iter().map(&of).collect();
    sorted.sort_by(|one, other| other.total_cmp(one));
    let count = sorted.len();
    // The others are the smallest shares: as few of them as possible.
    let mut others = 0.0;
    let stands_out = |named: &usize| {
        others += sorted[*named];
        sorted[named - 1] >= MUCH.max(2.0 * others / (count - named) as f64)
    };
    let all = sorted.last().is_some_and(|least| *least >= MUCH).then_some(count);
    let named = (1..count).rev().find(stands_out).or(all);
    named.map_or_else(Vec::new, |named| shares.iter().filter(|share| of(share) >= sorted[named - 1]).collect())
}

fn names(shares: &[&Share]) -> String {
    let numbers: Vec<String> = shares.iter().take(MOST_NAMED).map(|share| share.number.to_string()).collect();
    match (&numbers[..], shares.len().saturating_sub(MOST_NAMED)) {
        ([only], 0) => format!("connection {only}"),
        ([others @ .., last], 0) => format!("connections {} and {last}", others.join(", ")),
        (some, more) => format!("connections {} and {more} others", some.join(", ")),
    }
}

#[expect(clippy::cast_precision_loss, reason = "statistics")]
fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count();
    if count == 0 { 0.0 } else { values.sum::<f64>() / count as f64 }
}

/// Standard deviation over mean, of the whole population.
fn variation(values: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let mean_value = mean(values.clone());
    let variance = mean(values.map(|value| (value - mean_value).powi(2)));
    (mean_value > 0.0).then(|| variance.sqrt() / mean_value)
}

/// A least-squares line.
struct Line {
    slope: f64,
    correlation: f64,
}

impl Line {
    /// The line through the points; `None` for fewer than three points, or without variation.
    fn through(points: impl Iterator<Item = (f64, f64)> + Clone) -> Option<Self> {
        if points.clone().count() < 3 {
            return None;
        }
        let (x_mean, y_mean) = (mean(points.clone().map(|point| point.0)), mean(points.clone().map(|point| point.1)));
        let sums = points.fold((0.0, 0.0, 0.0), |(xx, xy, yy), (x, y)| {
            let (x, y) = (x - x_mean, y - y_mean);
            (xx + x * x, xy + x * y, yy + y * y)
        });
        let (xx, xy, yy) = sums;
        (xx > 0.0 && yy > 0.0).then(|| Self { slope: xy / xx, correlation: xy / (xx * yy).sqrt() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A square of their number would take minutes.
    #[test]
    fn a_million_connections_are_compared_at_once() {
        let share = |number: usize| Share { number, timer_share: f64::from(u8::from(number == 7)), ..Share::default() };
        let shares: Vec<Share> = (0..1_000_000).map(share).collect();
        let named: Vec<usize> = above(&shares, |share| share.timer_share).iter().map(|share| share.number).collect();
        assert_eq!(named, [7]);
    }

    fn share(number: usize, goodput_bps: f64, timeouts: u64, timer_share: f64) -> Share {
        Share { number, goodput_bps, timeouts, timer_share, end_s: 10.0, ..Share::default() }
    }

    fn at(number: usize, start_s: f64, end_s: f64, goodput_bps: f64) -> Share {
        Share { start_s, end_s, ..share(number, goodput_bps, 0, 0.0) }
    }

    /// Three downloads of 100 bits one after another, with a pause of 10 s: 300 bits in 30 s of activity.
    #[test]
    fn connections_one_after_another_have_no_index_and_no_sum_of_rates() {
        let shares = [at(1, 0.0, 10.0, 10.0), at(2, 10.0, 20.0, 10.0), at(3, 30.0, 40.0, 10.0)];
        let fairness = fairness(&shares);
        assert_eq!((fairness.connections, fairness.compared, fairness.jain_index), (3, 0, None));
        assert!((fairness.goodput_bps - 10.0).abs() < 1e-9, "{}", fairness.goodput_bps);
        assert_eq!(fairness.explanation, "they were active one after another, and are not compared");
    }

    /// A long one of which others share a tenth of the time is not compared with them: 30 and 10 are, 40^2 / 2000.
    /// 1000 + 300 + 100 bits in 100 s are 14.
    #[test]
    fn connections_that_are_active_together_are_compared() {
        let shares = [at(1, 0.0, 100.0, 10.0), at(2, 20.0, 30.0, 30.0), at(3, 20.0, 30.0, 10.0)];
        let found = fairness(&shares);
        assert_eq!((found.connections, found.compared), (3, 2));
        assert!((found.jain_index.unwrap() - 0.8).abs() < 1e-9 && (found.goodput_bps - 14.0).abs() < 1e-9);
        // Those that overlap by a tenth were one after another.
        assert_eq!(fairness(&[at(1, 0.0, 10.0, 10.0), at(2, 9.0, 19.0, 10.0)]).jain_index, None);
    }

    /// Goodputs 100, 100 and 50, of which the last waited for half the time: (250)^2 / (3 *
    /// 22500) = 0.926, and 1 without the waits.
    #[test]
    fn timers_that_explain_everything_are_named_with_the_index_without_them() {
        let shares = [share(1, 100.0, 0, 0.0), share(2, 100.0, 0, 0.0), share(3, 50.0, 4, 0.5)];
        let fairness = fairness(&shares);
        assert!((fairness.jain_index.unwrap() - 0.926).abs() < 0.001);
        assert!((fairness.jain_index_without_timers.unwrap() - 1.0).abs() < 1e-9);
        assert!((fairness.correlation_with_timeouts.unwrap() + 1.0).abs() < 1e-9);
        assert!((fairness.bps_per_timeout.unwrap() + 12.5).abs() < 1e-9);
        assert_eq!(
            fairness.explanation,
            "connection 3 spent 50 % of the time waiting for retransmission timers; \
             without these waits the index would be 1.00 instead of 0.93"
        );
    }

    #[test]
    fn what_nothing_explains_is_told_as_such_and_one_alone_needs_no_explanation() {
        let shares = [share(1, 100.0, 0, 0.0), share(2, 10.0, 0, 0.0)];
        assert!(fairness(&shares).explanation.starts_with("neither timeouts"));
        assert_eq!(fairness(&shares[..1]).explanation, "");
        assert_eq!(fairness(&[]).jain_index, None);
    }

    /// A download and two connections that mostly wait, each with one timer: three points, of which two had nothing to
    /// send.
    #[test]
    fn timeouts_of_idle_connections_explain_no_goodput() {
        let idle = |number| Share { idle_share: 0.89, ..share(number, 1.0, 1, 0.001) };
        let fairness = fairness(&[share(1, 1e6, 0, 0.0), idle(2), idle(3)]);
        assert_eq!(fairness.correlation_with_timeouts, None);
        assert_eq!(fairness.explanation, "connections 2 and 3 had nothing to send for 89 % of the time");
    }

    /// An upload of 10 s and the control connection of its test, 20 s long: 1 Mbit/s, and not half of it.
    #[test]
    fn an_idle_connection_is_not_active() {
        let upload = Share { idle_share: 0.12, ..share(2, 1e6, 0, 0.0) };
        let control = Share { idle_share: 0.996, timeouts: 1, ..at(1, 0.0, 20.0, 800.0) };
        let found = fairness(&[control, upload]);
        assert_eq!((found.connections, found.compared, found.timeouts), (2, 1, 1));
        assert!((found.goodput_bps - 1e6).abs() < 1e-6, "{}", found.goodput_bps);
        assert_eq!(found.explanation, "");
        // Nothing but idle connections: 800 bit/s each.
        assert!((fairness(&[control, control]).goodput_bps - 1_600.0).abs() < 1e-9);
    }

    /// 60 % is twice the mean of 12 and 15 %; 30, 25 and 20 % are alike; 0.5 % is not much.
    #[test]
    fn those_are_named_that_have_twice_the_mean_of_the_others() {
        let named = |idle: &[f64]| {
            let shares: Vec<Share> = (1..)
                .zip(idle)
                .map(|(number, idle_share)| Share { idle_share: *idle_share, ..share(number, 1.0, 0, 0.0) })
                .collect();
            above(&shares, |share| share.idle_share).iter().map(|share| share.number).collect::<Vec<_>>()
        };
        assert_eq!(named(&[0.12, 0.6, 0.15]), [2]);
        assert_eq!(named(&[0.12, 0.996]), [2]);
        assert_eq!(named(&[0.99, 0.0, 0.99]), [1, 3]);
        assert_eq!(named(&[0.2, 0.3, 0.25]), [1, 2, 3]);
        assert_eq!(named(&[0.005, 0.0]), [0; 0]);
        assert_eq!(named(&[]), [0; 0]);
    }

    #[test]
    fn unequal_round_trips_are_found_where_there_is_no_timeout() {
        let far = |number, goodput_bps, rtt| Share { rtt_s: Some(rtt), ..share(number, goodput_bps, 0, 0.0) };
        let shares = [far(1, 100.0, 0.1), far(2, 50.0, 0.2), far(3, 25.0, 0.4)];
        assert!(fairness(&shares).explanation.starts_with("goodput goes with the inverse"));
    }
}
