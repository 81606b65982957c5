//! Working conditions of a measured line: a grade, and sentences.
//!
//! The grade has the thresholds of the DSLReports speed test (<https://www.dslreports.com/faq/17930>),
//! which Waveform's test uses, too: the mean of the increases of the round-trip time by a download
//! and by an upload, or the increase by the one of them that was measured; the sentence then names it. The increase
//! of a phase is that of its median. Calls are judged by the E-model
//! (ITU-T G.107) for G.711 in packets of 20 ms whose play-out buffer takes the 95th percentile, in the
//! worse direction: what one of the two people hears. [`CallDelay`] has the sources of its delay.

use serde::Serialize;

use lastmile_theory::voice::{self, Codec};

use crate::load::Direction;
use crate::report::{Delays, Estimate, Measurement, Phase, Series};
use crate::session::words;

/// Bufferbloat, as the DSLReports speed test grades it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Grade {
    /// Less than 5 ms.
    #[serde(rename = "A+")]
    APlus,
    /// Less than 30 ms.
    A,
    /// Less than 60 ms.
    B,
    /// Less than 200 ms.
    C,
    /// Less than 400 ms.
    D,
    /// 400 ms and more.
    F,
}

impl Grade {
    /// The grade of an increase of the round-trip time.
    #[must_use]
    pub fn of(increase_s: f64) -> Self {
        match increase_s {
            s if s < 0.005 => Self::APlus,
            s if s < 0.030 => Self::A,
            s if s < 0.060 => Self::B,
            s if s < 0.200 => Self::C,
            s if s < 0.400 => Self::D,
            _ => Self::F,
        }
    }

    /// The letter.
    #[must_use]
    pub fn letter(self) -> &'static str {
        match self {
            Self::APlus => "A+",
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
            Self::F => "F",
        }
    }
}

/// The source of the one-way delay of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallDelay {
    /// Measured one-way delays, of the direction with the lower rating.
    OneWay,
    /// The load has one direction, and so has the queue: half of the idle round-trip time and the whole increase.
    LoadedDirection,
    /// Half of the round-trip time: the load has both directions, and their queues are known together alone.
    Half,
}

/// The round-trip time of a phase compared with the idle line.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Increase {
    /// The load.
    pub load: Direction,
    /// Increase of the median, with its interval.
    pub increase_s: Estimate,
    /// Increase from the idle median to the 99th percentile under load: about the time that a full
    /// queue takes.
    pub most_s: f64,
    /// Transmission rating of a call beside the load, 0 to 100, in the worse direction.
    pub call_r: f64,
    /// One-way delay of the call in that direction: its network delay, and the 20 ms of a packet.
    pub call_delay_s: f64,
    /// The source of that delay.
    pub call_delay_from: CallDelay,
}

/// Working conditions of a line.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Conditions {
    /// Target of the probes that count: the first that were answered in all phases.
    pub target: Option<String>,
    /// The grade; `None` without an idle phase, or without a loaded one.
    pub grade: Option<Grade>,
    /// The loads whose increases the grade is the mean of. One direction alone is half of what the grade stands for.
    pub grade_loads: Vec<Direction>,
    /// One entry for each loaded phase.
    pub increases: Vec<Increase>,
    /// The grade in words.
    pub sentences: Vec<String>,
}

impl Conditions {
    /// The conditions of a measured line.
    #[must_use]
    pub fn of(measured: &Measurement) -> Self {
        let idle = measured.phases.iter().find(|phase| phase.load.is_none());
        let Some((index, idle)) = idle.and_then(|idle| Some((counted(measured)?, idle))) else {
            let (grade_loads, increases, sentences) = (Vec::new(), Vec::new(), Vec::new());
            return Self { target: None, grade: None, grade_loads, increases, sentences };
        };
        let usual = idle.probes[index].round_trip;
        let of = |phase: &&Phase| increase(phase.load?, &usual?, phase, index);
        let (full, others): (Vec<&Phase>, Vec<&Phase>) =
            measured.phases.iter().partition(|phase| phase.fills_the_line());
        let increases: Vec<Increase> = full.iter().filter_map(of).collect();
        let (grade, grade_loads) = grade(&increases);
        let mut sentences: Vec<String> = usual.iter().map(idle_in_words).collect();
        sentences.extend(increases.iter().map(in_words));
        sentences.extend(others.iter().filter_map(|phase| Some(unfilled(words(phase.load?), phase))));
        let target = Some(idle.probes[index].subject.target.clone());
        let mut conditions = Self { target, grade, grade_loads, increases, sentences };
        let graded = conditions.grade_in_short();
        conditions
            .sentences
            .extend(graded.map(|it| format!("Bufferbloat grade {it} by the thresholds of DSLReports.")));
        conditions
    }

    /// The letter of the grade, with its load where it is not the mean of a download and an upload.
    #[must_use]
    pub fn grade_in_short(&self) -> Option<String> {
        let of = only(&self.grade_loads).map(|load| format!(" of {load}")).unwrap_or_default();
        self.grade.map(|grade| format!("{}{of}", grade.letter()))
    }
}

/// The reason for which a load did not fill the line.
fn unfilled(name: &str, phase: &Phase) -> String {
    let of = match phase.limited {
        None => {
            return format!(
                "All datagrams of the phase {name} arrived, at their rate: they did not fill the line, so its delays \
                 are not those under load."
            );
        }
        Some(Direction::Download) => "The download",
        Some(Direction::Upload) => "The upload",
        Some(Direction::Both) => "Each direction",
    };
    format!(
        "{of} of the phase {name} reached the limit of the server: it did not fill the line, so its delays are not \
         those under load."
    )
}

/// The first series with answers in every phase.
fn counted(measured: &Measurement) -> Option<usize> {
    let count = measured.phases.iter().map(|phase| phase.probes.len()).min()?;
    (0..count).find(|index| measured.phases.iter().all(|phase| phase.probes[*index].round_trip.is_some()))
}

fn increase(load: Direction, idle: &Delays, phase: &Phase, index: usize) -> Option<Increase> {
    let series = phase.probes.get(index)?;
    let loaded = series.round_trip?;
    let Estimate { value, low, high } = loaded.p50_s;
    let base = idle.p50_s;
    // A probe over ICMP has no delays of one direction; one over UDP beside it may.
    let alike = |other: &&Series| other.subject.code_point == series.subject.code_point;
    let call = std::iter::once(series)
        .chain(phase.probes.iter().filter(alike))
        .find_map(one_way)
        .unwrap_or_else(|| of_round_trips(load, idle, &loaded, series));
    Some(Increase {
        load,
        increase_s: Estimate { value: value - base.value, low: low - base.high, high: high - base.low },
        most_s: loaded.p99_s - base.value,
        call_r: call.rating,
        call_delay_s: call.delay_s,
        call_delay_from: call.from,
    })
}

/// A call beside the load, in the worse direction.
struct Call {
    rating: f64,
    delay_s: f64,
    from: CallDelay,
}

impl Call {
    /// G.711 in packets of 20 ms, whose play-out buffer takes all of `network_s`.
    fn new(network_s: f64, loss: f64, from: CallDelay) -> Self {
        let delay_s = 0.020 + network_s;
        let path = voice::Path { delay_s, loss, burst_ratio: 1.0 };
        Self { rating: voice::r_factor(&Codec::G711, &path), delay_s, from }
    }
}

/// By the one-way delays of a series. A loss counts in both directions, unless it is known to be of one.
fn one_way(series: &Series) -> Option<Call> {
    let (up, down, answered) = (series.up?, series.down?, series.round_trip?.count);
    let in_direction = |delays: Delays, elsewhere: Option<u64>| {
        let lost = series.lost.saturating_sub(elsewhere.unwrap_or(0));
        Call::new(delays.p95_s, share(lost, series.lost + answered), CallDelay::OneWay)
    };
    let calls = [in_direction(up, series.lost_down), in_direction(down, series.lost_up)];
    calls.into_iter().min_by(|a, b| a.rating.total_cmp(&b.rating))
}

/// By round-trip times.
fn of_round_trips(load: Direction, idle: &Delays, loaded: &Delays, series: &Series) -> Call {
    let (half, added) = (loaded.p95_s / 2.0, loaded.p95_s - idle.p50_s.value);
    let (delay, from) = match load {
        Direction::Download | Direction::Upload => {
            (half.max(idle.p50_s.value / 2.0 + added), CallDelay::LoadedDirection)
        }
        Direction::Both => (half, CallDelay::Half),
    };
    Call::new(delay, share(series.lost, series.lost + loaded.count), from)
}

#[expect(clippy::cast_precision_loss, reason = "numbers of probes")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

/// Of downloads and uploads alone; of both at a time where there is nothing else. With the loads that it is of.
#[expect(clippy::cast_precision_loss, reason = "numbers of phases")]
fn grade(increases: &[Increase]) -> (Option<Grade>, Vec<Direction>) {
    let (both, alone): (Vec<&Increase>, Vec<&Increase>) =
        increases.iter().partition(|increase| increase.load == Direction::Both);
    let counted = if alone.is_empty() { both } else { alone };
    let sum: f64 = counted.iter().map(|increase| increase.increase_s.value).sum();
    let grade = (!counted.is_empty()).then(|| Grade::of(sum / counted.len() as f64));
    (grade, counted.iter().map(|increase| increase.load).collect())
}

/// The one kind of load that a grade is of, in words.
fn only(loads: &[Direction]) -> Option<&'static str> {
    let (first, rest) = loads.split_first()?;
    rest.iter().all(|load| load == first).then_some(match first {
        Direction::Download => "a download alone",
        Direction::Upload => "an upload alone",
        Direction::Both => "both directions at a time",
    })
}

fn idle_in_words(idle: &Delays) -> String {
    format!("The idle line answers within {} (median).", ms(idle.p50_s.value))
}

fn in_words(increase: &Increase) -> String {
    let load = match increase.load {
        Direction::Download => "A download adds",
        Direction::Upload => "An upload adds",
        Direction::Both => "A download and an upload together add",
    };
    let Estimate { value, low, high } = increase.increase_s;
    let half = match increase.call_delay_from {
        CallDelay::Half => ", if half of the round trip is each way",
        CallDelay::OneWay | CallDelay::LoadedDirection => "",
    };
    let call = format!("{}{half}", voice::satisfaction(increase.call_r));
    // An interval that contains zero shows no increase.
    if low <= 0.0 && value < 0.005 {
        return format!("{load} no delay that can be measured; a call next to it: {call}.");
    }
    format!(
        "{load} {} ({} to {}), at most {} in 99 of 100 cases; a call next to it: {call}.",
        ms(value),
        ms(low.max(0.0)),
        ms(high),
        ms(increase.most_s.max(value))
    )
}

/// Milliseconds with three digits.
fn ms(seconds: f64) -> String {
    let ms = seconds * 1e3;
    let decimals = if ms < 9.95 { 2 } else { usize::from(ms < 99.5) };
    format!("{ms:.decimals$} ms")
}

#[cfg(test)]
mod tests {
    use crate::foreign::iperf3::Datagrams;
    use crate::probe::{Kind, Subject};
    use crate::report::Throughput;
    use crate::train::Way;

    use super::*;

    /// Thresholds of the page that the module names.
    #[test]
    fn grades_are_those_of_dslreports() {
        let letters = [0.0, 0.0049, 0.005, 0.030, 0.060, 0.199, 0.200, 0.400, 3.0].map(|s| Grade::of(s).letter());
        assert_eq!(letters, ["A+", "A+", "A", "B", "C", "C", "D", "F", "F"]);
    }

    fn phase(load: Option<Direction>, median_s: f64) -> Phase {
        let p50_s = Estimate { value: median_s, low: median_s - 0.001, high: median_s + 0.001 };
        let round_trip = Some(Delays {
            count: 99,
            min_s: median_s,
            p50_s,
            p95_s: median_s * 1.2,
            p99_s: median_s * 1.5,
            max_s: median_s * 2.0,
            mean_s: median_s,
            jitter_s: 0.0,
        });
        let subject = || Subject { target: "server".to_owned(), kind: Kind::Icmp, code_point: 0 };
        let series = |round_trip| Series { round_trip, lost: 1, ..Series::new(subject(), Vec::new()) };
        // The first series was never answered.
        let probes = vec![series(None), series(round_trip)];
        Phase { load, duration_s: 10.0, probes, ..Phase::default() }
    }

    fn measured_in(phases: Vec<Phase>) -> Measurement {
        Measurement {
            schema: 1,
            version: String::new(),
            started_unix_s: 0.0,
            host: String::new(),
            load: None,
            phases,
            clocks: None,
            warnings: Vec::new(),
            complete: true,
        }
    }

    /// 9 Mbit/s of UDP on a line of 50 lose nothing and wait for nothing; the line under load is another matter.
    #[test]
    fn datagrams_that_all_arrive_at_their_rate_have_no_grade() {
        let of = |lost: u64, goodput: f64| {
            let datagrams = vec![Datagrams {
                way: Way::Down,
                sent: 1_000,
                received: 1_000 - lost,
                lost,
                reordered: None,
                jitter_s: 0.0,
                offered_bps: 9_000_000,
            }];
            let goodput_bps = Estimate { value: goodput, low: goodput, high: goodput };
            let download = Some(Throughput { goodput_bps, ..Throughput::default() });
            let loaded = Phase { datagrams, download, ..phase(Some(Direction::Download), 0.021) };
            Conditions::of(&measured_in(vec![phase(None, 0.020), loaded]))
        };
        let sparse = of(0, 8_600_000.0);
        assert_eq!((sparse.grade, sparse.increases.len()), (None, 0));
        assert!(sparse.sentences.iter().any(|it| it.starts_with("All datagrams of the phase download arrived")));
        assert_eq!(of(1, 9_000_000.0).grade, Some(Grade::APlus));
        // A queue that takes all that the line does not carry loses none of it: 95 % of the rate are 8.55 Mbit/s.
        assert_eq!(of(0, 8_500_000.0).grade, Some(Grade::APlus));
    }

    /// A server that lets 5 Mbit/s of a line of 50 pass: its download waits for nothing.
    #[test]
    fn a_load_at_the_limit_of_the_server_has_no_grade() {
        let of = |limited| {
            let download = Phase { limited, ..phase(Some(Direction::Download), 0.021) };
            let upload = phase(Some(Direction::Upload), 0.220);
            Conditions::of(&measured_in(vec![phase(None, 0.020), download, upload]))
        };
        let held = of(Some(Direction::Download));
        assert_eq!((held.grade_in_short().as_deref(), held.increases.len()), (Some("D of an upload alone"), 1));
        let sentence = "The download of the phase download reached the limit of the server: it did not fill the line, \
                        so its delays are not those under load.";
        assert!(held.sentences.iter().any(|it| it == sentence), "{:?}", held.sentences);
        // The mean of 1 and 200 ms.
        assert_eq!(of(None).grade_in_short().as_deref(), Some("C"));
    }

    #[test]
    fn the_grade_is_the_mean_of_both_directions() {
        let measured = measured_in(vec![
            phase(None, 0.020),
            phase(Some(Direction::Download), 0.030),
            phase(Some(Direction::Upload), 0.220),
            phase(Some(Direction::Both), 2.0),
        ]);
        let conditions = Conditions::of(&measured);
        // 10 and 200 ms.
        assert_eq!(conditions.grade, Some(Grade::C));
        let upload = &conditions.increases[1].increase_s;
        assert!((upload.value - 0.2).abs() < 1e-9 && (upload.low - 0.198).abs() < 1e-9, "{upload:?}");
        assert!(conditions.sentences[2].starts_with("An upload adds 200 ms (198 ms to 202 ms)"), "{conditions:?}");
        assert!(conditions.sentences[3].ends_with("not recommended, if half of the round trip is each way."));
        // 95th percentiles of 36 and of 264 ms (both 2400) where the idle line has 20: half of these, and the rest.
        let delays: Vec<(f64, CallDelay)> =
            conditions.increases.iter().map(|increase| (increase.call_delay_s, increase.call_delay_from)).collect();
        let expected =
            [(0.046, CallDelay::LoadedDirection), (0.274, CallDelay::LoadedDirection), (1.220, CallDelay::Half)];
        assert!(delays.iter().zip(expected).all(|(a, b)| (a.0 - b.0).abs() < 1e-9 && a.1 == b.1), "{delays:?}");
        assert_eq!(conditions.grade_loads, [Direction::Download, Direction::Upload]);
        let part = |phases: &[Phase]| {
            let conditions = Conditions::of(&Measurement { phases: phases.to_vec(), ..measured.clone() });
            (conditions.grade_in_short(), conditions.grade_loads, conditions.sentences.last().cloned())
        };
        let [idle, download, upload, both] = &measured.phases[..] else { panic!("four phases") };
        assert_eq!(part(std::slice::from_ref(idle)).0, None);
        // 10 ms, 200 ms and 1980 ms: the whole line has C.
        let (of_both, of_one) = (part(&[idle.clone(), both.clone()]), part(&[idle.clone(), download.clone()]));
        let both = Some("F of both directions at a time");
        assert_eq!((of_both.0.as_deref(), of_both.1), (both, vec![Direction::Both]));
        assert_eq!((of_one.0.as_deref(), of_one.1), (Some("A of a download alone"), vec![Direction::Download]));
        let sentence = "Bufferbloat grade A of a download alone by the thresholds of DSLReports.";
        assert_eq!(of_one.2.as_deref(), Some(sentence));
        assert_eq!(part(&[idle.clone(), upload.clone()]).0.as_deref(), Some("D of an upload alone"));
    }

    fn delays(median_s: f64, p95_s: f64) -> Delays {
        let p50_s = Estimate { value: median_s, low: median_s, high: median_s };
        let (min_s, p99_s, max_s, mean_s) = (median_s, p95_s, p95_s, median_s);
        Delays { count: 99, min_s, p50_s, p95_s, p99_s, max_s, mean_s, jitter_s: 0.0 }
    }

    /// An upload whose packets wait until they are 428 ms on the way up, and 10 ms on the way down: a call has 448 ms
    /// with the 20 ms of its packet, R 58.4 by G.107. With half of the round trip it had 239 ms, R 81.
    #[test]
    fn a_queue_in_one_direction_delays_a_call_by_all_of_it() {
        let idle = delays(0.020, 0.020);
        let mut loaded = phase(Some(Direction::Upload), 0.438);
        loaded.probes.remove(0);
        loaded.probes[0].lost = 0;
        loaded.probes[0].round_trip = Some(delays(0.438, 0.438));
        let call = |phase: &Phase| {
            let increase = increase(phase.load.unwrap(), &idle, phase, 0).unwrap();
            let sentence = in_words(&increase);
            ((increase.call_delay_s * 1e6).round() / 1e6, increase.call_delay_from, increase.call_r, sentence)
        };
        let (delay, from, rating, sentence) = call(&loaded);
        assert_eq!((delay, from), (0.448, CallDelay::LoadedDirection));
        assert!((rating - 58.36).abs() < 0.005, "{rating}");
        assert!(sentence.ends_with("a call next to it: nearly all users dissatisfied."), "{sentence}");
        // Measured delays of a second series of the same code point, and of both directions.
        loaded.load = Some(Direction::Both);
        assert_eq!(call(&loaded).1, CallDelay::Half);
        let mut second = loaded.probes[0].clone();
        (second.up, second.down) = (Some(delays(0.400, 0.428)), Some(delays(0.010, 0.010)));
        second.subject.code_point = 46;
        loaded.probes.push(second);
        assert_eq!(call(&loaded).1, CallDelay::Half, "its delays are those of another class");
        loaded.probes[1].subject.code_point = 0;
        let measured = call(&loaded);
        assert_eq!((measured.0, measured.1, measured.2), (0.448, CallDelay::OneWay, rating));
        // Every second packet is lost on the way down, where there is no delay: the worse direction decides.
        (loaded.probes[1].lost, loaded.probes[1].lost_up, loaded.probes[1].lost_down) = (99, Some(0), Some(99));
        let lossy = call(&loaded);
        assert_eq!((lossy.0, lossy.1), (0.030, CallDelay::OneWay));
    }
}
