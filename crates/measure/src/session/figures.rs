//! From the samples of a session to the figures of its phases.

use std::time::Duration;

use crate::load::{Arrived, Direction, Used};
use crate::probe::{Clocks, Kind, PATIENCE, Sample, Subject};
use crate::report::{Phase, Series, Throughput};
use crate::statistics;
use crate::train::Way;

use super::clocks;
use super::goodput::{self, Counts, Span};

/// The share of the server's limit from which a load counts as held back by it. Ethernet of 1 Gbit/s carries 0.949
/// Gbit/s of payload, less than this share of the usual limit.
const AT_THE_LIMIT: f64 = 0.95;

/// Everything that a session has seen.
pub(super) struct Recorded {
    series: Vec<(Subject, Clocks)>,
    samples: Vec<Vec<Sample>>,
    phases: Vec<Phase>,
    warnings: Vec<String>,
    /// The server, and when its connection ended by itself.
    gone: Option<(String, f64)>,
    /// Numbers of the phases whose load had a fault.
    doubted: Vec<usize>,
}

/// The figures of a session.
pub(super) struct Figures {
    pub(super) phases: Vec<Phase>,
    /// The meaning of one-way delays.
    pub(super) clocks: Option<String>,
    pub(super) warnings: Vec<String>,
    /// Numbers of the phases whose load had a fault.
    pub(super) doubted: Vec<usize>,
}

impl Recorded {
    pub(super) fn new(series: Vec<(Subject, Clocks)>) -> Self {
        let samples = vec![Vec::new(); series.len()];
        Self { series, samples, phases: Vec::new(), warnings: Vec::new(), gone: None, doubted: Vec::new() }
    }

    /// The load of `host` ended with an error at `at_s`; the first time counts.
    pub(super) fn gone(&mut self, host: &str, at_s: f64) {
        self.gone.get_or_insert_with(|| (host.to_owned(), at_s));
    }

    /// The last time at which a probe of this series was sent that counts as lost without an answer. Where the server
    /// ended, nobody answers those on their way: they say nothing about the line. A later answer says that it did.
    fn decided_until(&self, index: usize) -> f64 {
        match &self.gone {
            Some((host, at_s)) if self.subject(index).target == *host => {
                let answered = self.samples[index].iter().filter(|sample| sample.rtt_s.is_some());
                answered.map(|sample| sample.sent_s).fold(at_s - PATIENCE.as_secs_f64(), f64::max)
            }
            _ => f64::INFINITY,
        }
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

    /// Whether the series has told of a probe.
    pub(super) fn has_begun(&self, index: usize) -> bool {
        !self.samples[index].is_empty()
    }

    pub(super) fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }

    /// A phase has ended, with these counts of the transferred bytes.
    pub(super) fn phase(&mut self, mut phase: Phase, counts: &Counts, streams: u32, used: &Used) {
        let [ramp, end] = [phase.ramp_s, phase.duration_s].map(Duration::from_secs_f64);
        let [down, up] = match phase.load {
            None => [false, false],
            Some(Direction::Download) => [true, false],
            Some(Direction::Upload) => [false, true],
            Some(Direction::Both) => [true, true],
        };
        let of = |counts: &[Arrived]| goodput::throughput(counts, Span { ramp, end }, streams);
        let told =
            |throughput, congestion: &Option<String>| Throughput { congestion: congestion.clone(), ..throughput };
        phase.download = down.then(|| of(&counts.down)).flatten().map(|down| told(down, &used.down));
        phase.upload = up.then(|| of(&counts.up)).flatten().map(|up| told(up, &used.up));
        self.phases.push(phase);
    }

    /// The load of the latest phase had a fault: its responsiveness has low confidence.
    pub(super) fn doubt(&mut self) {
        self.doubted.extend(self.phases.len().checked_sub(1));
    }

    /// Notes the directions of the latest phase that reached the server's limit.
    #[expect(clippy::cast_precision_loss, reason = "a limit is compared with an estimate")]
    pub(super) fn limited(&mut self, limit_bps: u64) -> Option<Direction> {
        let phase = self.phases.last_mut()?;
        let reached = |throughput: &Throughput| throughput.goodput_bps.value >= AT_THE_LIMIT * limit_bps as f64;
        let [down, up] = [&phase.download, &phase.upload].map(|throughput| throughput.as_ref().is_some_and(reached));
        phase.limited = match (down, up) {
            (false, false) => None,
            (true, false) => Some(Direction::Download),
            (false, true) => Some(Direction::Upload),
            (true, true) => Some(Direction::Both),
        };
        phase.limited
    }

    /// The directions of the latest phase whose goodput includes the ramp, with the reason.
    pub(super) fn uncovered(&self) -> Vec<String> {
        let Some(phase) = self.phases.last() else { return Vec::new() };
        let Phase { duration_s, ramp_s, .. } = phase;
        let each = [("download", &phase.download), ("upload", &phase.upload)].into_iter().filter_map(|(name, of)| {
            let Throughput { bytes, samples, .. } = of.as_ref().filter(|of| of.ramp_included)?;
            let counted_s = samples.last().map_or(0.0, |(end_s, _)| *end_s);
            Some(format!(
                "the counts of the {name} end after {counted_s:.1} s of {duration_s:.1} s, of which the ramp is \
                 {ramp_s:.1} s: its goodput is that of all {bytes} bytes until then, ramp included"
            ))
        });
        each.collect()
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

    /// The figures of what was recorded.
    pub(super) fn finish(mut self) -> Figures {
        let clocks = self.compare_clocks();
        for index in 0..self.series.len() {
            let Subject { target, kind, code_point } = &self.series[index].0;
            let samples = &self.samples[index];
            if !samples.is_empty() && samples.iter().all(|sample| sample.rtt_s.is_none()) {
                let class = if *code_point == 0 { String::new() } else { format!(" with code point {code_point}") };
                let warning = format!(
                    "none of {} {} to {target}{class} was answered: the target or the path drops them{}",
                    samples.len(),
                    probes_of(*kind),
                    uncounted(samples, &self.phases)
                );
                self.warn(warning);
            }
        }
        let decided: Vec<f64> = (0..self.series.len()).map(|index| self.decided_until(index)).collect();
        self.warn_of_undecided(&decided);
        let Self { series, samples, mut phases, warnings, doubted, .. } = self;
        for phase in &mut phases {
            let of = |index: usize| one(&series[index].0, &samples[index], phase, decided[index]);
            phase.probes = (0..series.len()).map(of).collect();
        }
        Figures { phases, clocks, warnings, doubted }
    }

    /// Warns of the probes that count neither as answered nor as lost.
    fn warn_of_undecided(&mut self, decided: &[f64]) {
        let of = |(samples, until_s): (&Vec<Sample>, &f64)| {
            samples.iter().filter(|sample| is_lost(sample) && sample.sent_s > *until_s).count()
        };
        let count: usize = self.samples.iter().zip(decided).map(of).sum();
        if let (Some((host, _)), true) = (&self.gone, count > 0) {
            self.warn(format!(
                "{count} probes to {host} had no answer because the server had ended; they are not counted"
            ));
        }
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

/// The probes that the figures of no phase count, in words; empty where they count all.
fn uncounted(samples: &[Sample], phases: &[Phase]) -> String {
    let (mut ramps, mut counted) = (0, 0);
    for phase in phases {
        let from_s = phase.start_s + phase.ramp_s;
        ramps += within(samples, phase).filter(|sample| sample.sent_s < from_s).count();
        counted += within(samples, phase).filter(|sample| sample.sent_s >= from_s).count();
    }
    let between = samples.len() - ramps - counted;
    let parts = [(ramps, "in ramps"), (between, "between phases")];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, place)| format!("{count} {place}")).collect();
    match parts[..] {
        [] => String::new(),
        _ => format!("; {counted} of them count as lost, and no figure counts {}", parts.join(" and ")),
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

/// No answer came.
fn is_lost(sample: &Sample) -> bool {
    !sample.duplicate && sample.rtt_s.is_none()
}

/// The figures of one series in a phase. A probe that was sent later than `decided_s` is not lost without an answer.
fn one(subject: &Subject, samples: &[Sample], phase: &Phase, decided_s: f64) -> Series {
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
    let counts_as_lost = |sample: &Sample| is_lost(sample) && sample.sent_s <= decided_s;
    let lost = count(&counts_as_lost);
    let lost_on = |way| count(&|sample| counts_as_lost(sample) && sample.lost == Some(way));
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

    /// A probe each 100 ms of 6 s: an idle phase of 2 s, a second to settle, and a load of 3 s with a ramp of 1 s.
    #[test]
    fn probes_that_no_figure_counts_are_told() {
        let phase = |load, start_s, duration_s, ramp_s| Phase { load, start_s, duration_s, ramp_s, ..Phase::default() };
        let told = |phases: Vec<Phase>, probes: u32| {
            let subject = Subject { target: "192.0.2.1".to_owned(), kind: Kind::Icmp, code_point: 0 };
            let mut recorded = Recorded::new(vec![(subject, Clocks::Apart)]);
            (0..probes).for_each(|number| {
                recorded.sample(0, Sample { sent_s: f64::from(number) * 0.1 + 0.05, ..Sample::default() });
            });
            recorded.phases = phases;
            let Figures { phases, warnings, .. } = recorded.finish();
            (phases.iter().map(|phase| phase.probes[0].lost).collect::<Vec<_>>(), warnings)
        };
        let none = "ICMP echo requests to 192.0.2.1 was answered: the target or the path drops them";
        let idle = || phase(None, 0.0, 2.0, 0.0);
        assert_eq!(told(vec![idle()], 20), (vec![20], vec![format!("none of 20 {none}")]));
        let loaded = phase(Some(Direction::Download), 3.0, 3.0, 1.0);
        let rest = "; 40 of them count as lost, and no figure counts 10 in ramps and 10 between phases";
        assert_eq!(told(vec![idle(), loaded], 60), (vec![20, 20], vec![format!("none of 60 {none}{rest}")]));
    }

    /// Probes each 100 ms from 50 ms on, over 10 s: two are lost, those from 6 s on have no answer, and the load's
    /// connection ends at 7 s. Probes to another host lose what they lose.
    #[test]
    fn probes_to_a_server_that_has_ended_are_not_lost() {
        let lost = |target: &str, gone: Option<f64>, answered_until_s: f64| {
            let subject = Subject { target: target.to_owned(), kind: Kind::Udp, code_point: 0 };
            let mut recorded = Recorded::new(vec![(subject, Clocks::Comparable)]);
            for number in 0..100 {
                let sent_s = f64::from(number) * 0.1 + 0.05;
                let is_answered = sent_s < answered_until_s && number != 3 && number != 30;
                let rtt_s = is_answered.then_some(0.02);
                recorded.sample(0, Sample { sent_s, rtt_s, ..Sample::default() });
            }
            gone.into_iter().for_each(|at_s| recorded.gone("192.0.2.1", at_s));
            recorded.phases = vec![Phase { duration_s: 10.0, ..Phase::default() }];
            let Figures { phases, warnings, .. } = recorded.finish();
            (phases[0].probes[0].lost, warnings.join(" "))
        };
        let told = |count: u32| {
            format!("{count} probes to 192.0.2.1 had no answer because the server had ended; they are not counted")
        };
        assert_eq!(lost("192.0.2.1", Some(7.0), 6.0), (2, told(40)));
        // The last answer is older than the longest wait before the end: the line lost the ten probes until then.
        assert_eq!(lost("192.0.2.1", Some(7.0), 1.0), (11, told(80)));
        assert_eq!(lost("192.0.2.1", None, 6.0), (42, String::new()));
        assert_eq!(lost("192.0.2.2", Some(7.0), 6.0), (42, String::new()));
        // Another program than that of the load answers on.
        assert_eq!(lost("192.0.2.1", Some(7.0), 20.0), (2, String::new()));
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
