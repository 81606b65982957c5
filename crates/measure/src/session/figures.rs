//! From the samples of a session to the figures of its phases.

use std::time::Duration;

use crate::load::{Arrived, Direction};
use crate::probe::{Clocks, Kind, Sample, Subject};
use crate::report::{Estimate, Phase, Series, Throughput};
use crate::statistics;
use crate::train::Way;

use super::{clocks, responsiveness};

/// The share of the server's limit from which a load counts as held back by it. Ethernet of 1 Gbit/s carries 0.949
/// Gbit/s of payload, less than this share of the usual limit.
const AT_THE_LIMIT: f64 = 0.95;

/// Everything that a session has seen.
pub(super) struct Recorded {
    series: Vec<(Subject, Clocks)>,
    samples: Vec<Vec<Sample>>,
    phases: Vec<Phase>,
    warnings: Vec<String>,
}

impl Recorded {
    pub(super) fn new(series: Vec<(Subject, Clocks)>) -> Self {
        let samples = vec![Vec::new(); series.len()];
        Self { series, samples, phases: Vec::new(), warnings: Vec::new() }
    }

    pub(super) fn subject(&self, index: usize) -> &Subject {
        &self.series[index].0
    }

    /// The sample for a viewer: without differences of clocks that cannot be compared yet.
    pub(super) fn shown(&self, index: usize, sample: Sample) -> Sample {
        match self.series[index].1 {
            Clocks::Comparable => sample,
            Clocks::Apart => Sample { up_s: None, down_s: None, ..sample },
        }
    }

    pub(super) fn sample(&mut self, index: usize, sample: Sample) {
        self.samples[index].push(sample);
    }

    pub(super) fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// A phase has ended, with these readings of the transferred bytes.
    pub(super) fn phase(&mut self, mut phase: Phase, points: &[(Arrived, Arrived)], streams: u32) {
        let ramp = Duration::from_secs_f64(phase.ramp_s);
        let [down, up] = match phase.load {
            None => [false, false],
            Some(Direction::Download) => [true, false],
            Some(Direction::Upload) => [false, true],
            Some(Direction::Both) => [true, true],
        };
        let of = |points: Vec<Arrived>| throughput(&points, ramp, streams);
        phase.download = down.then(|| points.iter().map(|point| point.0).collect()).and_then(of);
        phase.upload = up.then(|| points.iter().map(|point| point.1).collect()).and_then(of);
        self.phases.push(phase);
    }

    /// The directions of the latest phase that reached the server's limit.
    #[expect(clippy::cast_precision_loss, reason = "a limit is compared with an estimate")]
    pub(super) fn limited(&self, limit_bps: u64) -> Vec<&'static str> {
        let Some(phase) = self.phases.last() else { return Vec::new() };
        let reached = |throughput: &Throughput| throughput.goodput_bps.value >= AT_THE_LIMIT * limit_bps as f64;
        [("download", &phase.download), ("upload", &phase.upload)]
            .into_iter()
            .filter_map(|(name, throughput)| throughput.as_ref().is_some_and(reached).then_some(name))
            .collect()
    }

    /// Whether every series that has answers on the idle line has one to a probe sent after
    /// `from_s` that took about as long.
    pub(super) fn is_as_idle_since(&self, from_s: f64) -> bool {
        let idle = self.phases.iter().find(|phase| phase.load.is_none());
        self.samples.iter().all(|samples| {
            let usual = idle.and_then(|phase| {
                let times: Vec<f64> = within(samples, phase).filter_map(|sample| sample.rtt_s).collect();
                statistics::median(&times).map(|median| median.value)
            });
            let Some(usual) = usual else { return true };
            let recent = samples.iter().filter(|sample| sample.sent_s >= from_s);
            recent.filter_map(|sample| sample.rtt_s).any(|rtt_s| rtt_s <= usual * 1.5 + 0.003)
        })
    }

    /// The phases with their figures, the meaning of one-way delays, and the warnings.
    pub(super) fn finish(mut self) -> (Vec<Phase>, Option<String>, Vec<String>) {
        let clocks = self.compare_clocks();
        for index in 0..self.series.len() {
            let Subject { target, kind, code_point } = &self.series[index].0;
            let samples = &self.samples[index];
            if !samples.is_empty() && samples.iter().all(|sample| sample.rtt_s.is_none()) {
                let class = if *code_point == 0 { String::new() } else { format!(" with code point {code_point}") };
                let warning = format!(
                    "none of {} {} to {target}{class} was answered: the target or the path drops them",
                    samples.len(),
                    probes_of(*kind)
                );
                self.warn(warning);
            }
        }
        let Self { series, samples, mut phases, warnings } = self;
        for phase in &mut phases {
            let of = |((subject, _), samples): (&(Subject, Clocks), &Vec<Sample>)| one(subject, samples, phase);
            phase.probes = series.iter().zip(&samples).map(of).collect();
            if phase.load.is_some() {
                phase.responsiveness = responsiveness::of(phase);
            }
        }
        (phases, clocks, warnings)
    }

    /// Turns differences of two clocks into delays, where the idle line allows it.
    fn compare_clocks(&mut self) -> Option<String> {
        let idle = self.phases.iter().find(|phase| phase.load.is_none()).map(|phase| {
            let from_s = phase.start_s;
            (from_s, from_s + phase.duration_s)
        });
        // Each meaning, with the series that have it.
        let mut meanings: Vec<(String, Vec<String>)> = Vec::new();
        for ((subject, kind), samples) in self.series.iter().zip(&mut self.samples) {
            if samples.iter().all(|sample| sample.up_s.is_none() && sample.down_s.is_none()) {
                continue;
            }
            let meaning = match kind {
                Clocks::Comparable => "one-way delays are differences of one clock".to_owned(),
                Clocks::Apart => clocks::correct(samples, idle),
            };
            let name = subject.to_string();
            match meanings.iter_mut().find(|(known, _)| *known == meaning) {
                Some((_, names)) => names.push(name),
                None => meanings.push((meaning, vec![name])),
            }
        }
        match &meanings[..] {
            [] => None,
            [(meaning, _)] => Some(meaning.clone()),
            several => {
                let each = several.iter().map(|(meaning, names)| format!("{}: {meaning}", names.join(" and ")));
                Some(each.collect::<Vec<_>>().join("; "))
            }
        }
    }
}

fn probes_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Icmp => "ICMP echo requests",
        Kind::Udp => "UDP echo requests",
        Kind::Irtt => "irtt requests",
        Kind::TcpConnect => "TCP connections",
        Kind::TlsHandshake => "TLS handshakes",
        Kind::HttpForeign | Kind::HttpSelf => "HTTP requests",
    }
}

/// The samples of probes that were sent in a phase.
fn within<'a>(samples: &'a [Sample], phase: &Phase) -> impl Iterator<Item = &'a Sample> {
    let (from_s, to_s) = (phase.start_s, phase.start_s + phase.duration_s);
    samples.iter().filter(move |sample| (from_s..to_s).contains(&sample.sent_s))
}

/// The figures of one series in a phase.
fn one(subject: &Subject, samples: &[Sample], phase: &Phase) -> Series {
    let mut samples: Vec<Sample> = within(samples, phase).copied().collect();
    // Answers came in their own order.
    samples.sort_by(|a, b| a.sent_s.total_cmp(&b.sent_s));
    let from_s = phase.start_s + phase.ramp_s;
    let counted: Vec<&Sample> = samples.iter().filter(|sample| sample.sent_s >= from_s).collect();
    let figures = |value: fn(&Sample) -> Option<f64>| {
        let firsts = counted.iter().filter(|sample| !sample.duplicate);
        statistics::delays(&firsts.filter_map(|sample| value(sample)).collect::<Vec<f64>>())
    };
    let count = |is: &dyn Fn(&Sample) -> bool| counted.iter().filter(|sample| is(sample)).count() as u64;
    let is_lost = |sample: &Sample| !sample.duplicate && sample.rtt_s.is_none();
    let lost = count(&is_lost);
    let lost_on = |way| count(&|sample| is_lost(sample) && sample.lost == Some(way));
    let known = samples.iter().any(|sample| sample.lost.is_some());
    Series {
        subject: subject.clone(),
        round_trip: figures(|sample| sample.rtt_s),
        up: figures(|sample| sample.up_s),
        down: figures(|sample| sample.down_s),
        lost,
        lost_up: known.then(|| lost_on(Way::Up)),
        lost_down: known.then(|| lost_on(Way::Down)),
        reordered: count(&|sample| !sample.duplicate && sample.reordered),
        duplicates: count(&|sample| sample.duplicate),
        samples,
    }
}

/// Payload rate between two readings, bit/s; `None` without new bytes.
#[expect(clippy::cast_precision_loss, reason = "statistics")]
pub(super) fn rate(before: Arrived, now: Arrived) -> Option<f64> {
    let time_s = now.at.saturating_sub(before.at).as_secs_f64();
    (time_s > 0.0).then(|| (now.bytes - before.bytes) as f64 * 8.0 / time_s)
}

/// The throughput of a direction; `None` where no byte arrived.
fn throughput(points: &[Arrived], ramp: Duration, streams: u32) -> Option<Throughput> {
    // Readings without new bytes add nothing: the next one covers their time.
    let mut distinct: Vec<Arrived> = points.to_vec();
    distinct.dedup_by_key(|point| point.bytes);
    let bytes = distinct.last()?.bytes;
    if bytes == 0 {
        return None;
    }
    let samples: Vec<(f64, f64)> =
        distinct.windows(2).filter_map(|pair| Some((pair[1].at.as_secs_f64(), rate(pair[0], pair[1])?))).collect();
    let goodput_bps = goodput(&distinct, ramp)?;
    Some(Throughput { bytes, streams, goodput_bps, samples })
}

/// The rate over the whole time after the ramp, with the interval of the rates of its parts.
fn goodput(points: &[Arrived], ramp: Duration) -> Option<Estimate> {
    // Where all bytes came during the ramp there is only the ramp.
    let from = points.iter().position(|point| point.at >= ramp).filter(|from| from + 1 < points.len()).unwrap_or(0);
    let points = &points[from..];
    let value = rate(*points.first()?, *points.last()?)?;
    let rates: Vec<f64> = points.windows(2).filter_map(|pair| rate(pair[0], pair[1])).collect();
    let Estimate { value: mean, low, high } = statistics::mean(&rates)?;
    Some(Estimate { value, low: (value - (mean - low)).max(0.0), high: value + (high - mean) })
}

/// Whether the intervals of all rates are within `share` of the rate on either side.
pub(super) fn is_enough(points: &[(Arrived, Arrived)], ramp: Duration, share: f64) -> bool {
    let estimates = |points: Vec<Arrived>| throughput(&points, ramp, 1).map(|throughput| throughput.goodput_bps);
    let both = [
        estimates(points.iter().map(|point| point.0).collect()),
        estimates(points.iter().map(|point| point.1).collect()),
    ];
    let known: Vec<Estimate> = both.into_iter().flatten().collect();
    !known.is_empty() && known.iter().all(|estimate| estimate.high - estimate.value <= share * estimate.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(kinds: &[(Kind, Clocks)]) -> Option<String> {
        let named = |(kind, clocks): &(Kind, Clocks)| {
            let subject = Subject { target: "192.0.2.1".to_owned(), kind: *kind, code_point: 0 };
            (subject, *clocks)
        };
        let mut recorded = Recorded::new(kinds.iter().map(named).collect());
        for index in 0..kinds.len() {
            let [up_s, down_s] = [7.010, -6.990].map(Some);
            recorded.sample(index, Sample { sent_s: 0.1, rtt_s: Some(0.020), up_s, down_s, ..Sample::default() });
        }
        recorded.compare_clocks()
    }

    /// Where both ends of one series share a clock and those of another do not, no sentence holds for both.
    #[test]
    fn each_meaning_of_one_way_delays_names_its_series() {
        let one = "one-way delays are differences of one clock";
        let none = "no one-way delays: the clocks of both ends cannot be compared without answers on the idle line";
        let (udp, irtt) = ((Kind::Udp, Clocks::Comparable), (Kind::Irtt, Clocks::Apart));
        assert_eq!(series(&[udp]).unwrap(), one);
        assert_eq!(series(&[udp, udp]).unwrap(), one);
        assert_eq!(series(&[udp, irtt]).unwrap(), format!("UDP 192.0.2.1: {one}; irtt 192.0.2.1: {none}"));
    }
}
