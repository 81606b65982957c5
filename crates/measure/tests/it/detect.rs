use std::thread;

use lastmile_linklayer::LinkLayer;
use lastmile_queueing::Limit;
use lastmile_queueing::random::Stream;
use lastmile_scenario::Scenario;
use lastmile_units::{BitRate, ByteCount, Duration, PacketCount, Ratio, WireBytes};

use crate::cases::{self, Case, Row};
use crate::simulated::{Before, Jitter, Queue, Side as Truth, Simulated};
use lastmile_measure::Error;
use lastmile_measure::detect::{Detection, Kind, Limiter, Options, Verdict, detect, scenario};
use lastmile_measure::train::{Departure, Echo, Passage, Path, Way};

fn truth(bps: u64, preset: &str, buffer: u64) -> Truth {
    Truth {
        rate: BitRate::from_bps(bps).unwrap(),
        link: LinkLayer::from_name(preset).unwrap(),
        delay: Duration::from_ms(10),
        buffer: Limit::Bytes(ByteCount::new(buffer)),
        queue: Queue::Fifo,
        before: Before::Nothing,
        jitter: Jitter::EachPacket(Duration::from_ms(5)),
        loss: Ratio::ZERO,
        cross: None,
        stalls: None,
    }
}

fn detected(down: Truth, up: Truth, seed: u64) -> Detection {
    let mut path = Simulated::new(down, up, ByteCount::new(1500), true, seed).unwrap();
    detect(&mut path, &Options::default(), &mut |_| {}).unwrap()
}

/// Another seed than the table's: what holds for one draw of the noise must hold for another.
fn rows(cases: &[Case]) -> Vec<Row> {
    cases.iter().flat_map(|case| case.run(7).unwrap()).collect()
}

/// The claims of issue 18: no wrong name, three minutes, rates within 1 %, buffers within 10 %.
fn hold(rows: &[Row]) {
    for row in rows {
        assert!(!row.wrong && !row.limiter_wrong && !row.queue_wrong, "{row:?}");
        assert!(row.took_s < 180.0, "{row:?}");
        assert!(row.rate_error.is_none_or(|error| error.abs() < 0.01), "{row:?}");
        assert!(row.buffer_error.is_some_and(|error| error.abs() < 0.10), "{row:?}");
    }
    let sure = rows.iter().filter(|row| !row.named.starts_with("not sure")).count();
    assert!(sure * 20 >= rows.len() * 19, "{sure} of {} ways have a name", rows.len());
}

/// Every third case, all presets and rates among them; `make detect-table` tries all.
#[test]
fn atm_lines_get_their_name_rate_and_buffer() {
    hold(&rows(&cases::adsl().into_iter().step_by(3).collect::<Vec<_>>()));
}

#[test]
fn lines_without_cells_get_their_name_rate_and_buffer() {
    hold(&rows(&cases::fast().into_iter().step_by(4).collect::<Vec<_>>()));
}

/// Shapers, policers, loss, cross traffic and drifting delay may leave it open, but never give a
/// wrong name, limiter or rate.
#[test]
fn hard_lines_get_no_wrong_name() {
    for row in rows(&cases::hard()) {
        assert!(!row.wrong && !row.limiter_wrong && !row.queue_wrong, "{row:?}");
        assert!(row.took_s < 180.0, "{row:?}");
        // Beside others the rate is extrapolated, and its interval is as wide as that.
        let others = row.case.contains("cross traffic");
        assert!(row.rate_error.is_none_or(|error| error.abs() < 0.01) || others, "{row:?}");
        assert!(row.buffer_error.is_none_or(|error| error.abs() < 0.10) || others, "{row:?}");
        let disturbed = ["cross traffic", "loss"].iter().any(|what| row.case.contains(what));
        assert!(!disturbed || row.rate_error.is_none() || row.rate_covered == Some(true), "{row:?}");
        // A bucket of 5 MB hides a buffer from backlogs, and not from delays.
        assert!(!row.case.contains("boost") || row.buffer_error.is_some(), "{row:?}");
    }
}

/// Queues that are controlled or fair get their kind. A packet takes 17.7 ms at 768 kbit/s: both CoDel and PIE keep one
/// or two, and the kind is left open.
#[test]
fn queues_get_their_kind() {
    for row in rows(&cases::queues()) {
        assert!(!row.wrong && !row.limiter_wrong && !row.queue_wrong, "{row:?}");
        assert!(row.took_s < 180.0, "{row:?}");
        let (kind, slow) = (row.case.split(':').next().unwrap(), row.case.contains("768k") && row.case.ends_with("up"));
        let open = if kind == "fq-codel" { "not sure: fq-codel or fq-pie" } else { "not sure: codel or pie" };
        assert_eq!(row.queue, if slow && kind != "sfq" { open } else { kind }, "{row:?}");
        // A controlled queue has no buffer that fills.
        assert_eq!(row.buffer_error.is_some(), kind == "sfq", "{row:?}");
    }
}

/// 120 lines drawn at random, both ways of each: 240 intervals of 95 %. A share of 0.95 has a standard
/// error of 0.014 there. Intervals of a buffer end at whole packets, so they cover more.
#[test]
fn intervals_cover_the_truth() {
    let mut draw = Stream::new(42, "lines");
    let mut pick = |from: &[u64]| from[draw.below(from.len() as u64) as usize];
    let cases: Vec<(u64, Case)> = (0..120)
        .map(|seed| {
            let presets = ["pppoe-llcsnap", "pppoa-vcmux", "ipoa-vcmux", "docsis", "bridged-ptm"];
            let preset = presets[pick(&[0, 1, 2, 3, 4]) as usize];
            let mut side = |rates: &[u64]| {
                truth(pick(rates) + pick(&[0, 1_234, 56_789]), preset, pick(&[32_000, 48_500, 64_000, 100_000]))
            };
            let (down, up) = (side(&[2_000_000, 5_000_000, 9_000_000]), side(&[512_000, 768_000, 1_000_000]));
            (1_000 + seed, Case { name: format!("{preset} {seed}"), down, up, mtu: 1500 })
        })
        .collect();
    let (mut rates, mut buffers, mut widths) = (Vec::new(), Vec::new(), Vec::new());
    let run = |cases: &[(u64, Case)]| -> Vec<Row> {
        cases.iter().flat_map(|(seed, case)| case.run(*seed).unwrap()).collect()
    };
    let (first, second) = cases.split_at(60);
    let (first, second) = thread::scope(|scope| {
        let other = scope.spawn(|| run(second));
        (run(first), other.join().unwrap())
    });
    for row in first.into_iter().chain(second) {
        rates.extend(row.rate_covered.filter(|_| row.rate_error.is_some()));
        buffers.extend(row.buffer_covered);
        widths.extend(row.rate_within);
    }
    let covered = |all: &[bool]| all.iter().filter(|covered| **covered).count() as f64 / all.len() as f64;
    widths.sort_by(f64::total_cmp);
    let widest = widths[widths.len() * 9 / 10];
    let said = format!(
        "{:.3} of {} rates, {:.3} of {} buffers, nine in ten within {widest}",
        covered(&rates),
        rates.len(),
        covered(&buffers),
        buffers.len()
    );
    assert!(rates.len() > 220 && buffers.len() > 220, "{said}");
    assert!((0.91..=0.996).contains(&covered(&rates)) && covered(&buffers) > 0.91, "{said}");
    assert!(widest < 2e-3, "{said}");
}

/// A device that looks away for up to 1 ms in each 2 ms lets 40 packets of 300 Mbit/s wait before the queue. The
/// backlog at drops would be too large by up to a third of that wait.
#[test]
fn a_device_that_looks_away_widens_the_interval_of_a_buffer_and_moves_it_little() {
    let fast = |stalls| Truth { stalls, ..truth(300_000_000, "docsis", 206_000) };
    let draws = [(1, 500), (2, 500), (3, 500), (1, 2_000), (2, 2_000), (3, 2_000), (2, 4_000), (4, 4_000)];
    for (seed, stalls_us) in draws {
        let side = fast(Some(Duration::from_us(stalls_us)));
        let Detection { down, .. } = detected(side, truth(25_000_000, "docsis", 206_000), seed);
        let bytes = down.unwrap().buffer.expect("a buffer").bytes;
        assert!(bytes.low <= 206_000.0 && 206_000.0 <= bytes.high, "{stalls_us} us: {bytes:?}");
        assert!((bytes.value / 206_000.0 - 1.0).abs() < 0.1, "{stalls_us} us: {bytes:?}");
    }
    let steady =
        detected(fast(None), truth(25_000_000, "docsis", 206_000), 1).down.unwrap().buffer.expect("a buffer").bytes;
    assert!(steady.high - steady.low < 4_500.0, "{steady:?}");
}

/// A path whose first train of eight seconds comes `late` from its middle on, as by a receiver that gets less and less
/// of its processor.
struct Late {
    path: Simulated,
    late: bool,
}

impl Path for Late {
    fn trains(&mut self, trains: &[(Way, &[Departure])]) -> Result<Vec<Vec<Passage>>, Error> {
        let mut passages = self.path.trains(trains)?;
        let long = trains[0].1.last().is_some_and(|last| last.at > Duration::from_s(7));
        if long && self.late {
            self.late = false;
            let middle = passages[0][0].sent + Duration::from_s(4);
            for arrived in passages[0].iter_mut().filter_map(|passage| passage.arrived.as_mut()) {
                *arrived += arrived.saturating_sub(middle) / 15;
            }
        }
        Ok(passages)
    }

    fn echoes(&mut self, requests: &[Departure]) -> Result<Vec<Echo>, Error> {
        self.path.echoes(requests)
    }

    fn elapsed(&self) -> Duration {
        self.path.elapsed()
    }

    fn mtu(&mut self) -> Result<Option<ByteCount>, Error> {
        self.path.mtu()
    }
}

/// A path that drops echoes, as one that drops ICMP does to those of ICMP.
struct Mute(Simulated);

impl Path for Mute {
    fn trains(&mut self, trains: &[(Way, &[Departure])]) -> Result<Vec<Vec<Passage>>, Error> {
        self.0.trains(trains)
    }

    fn echoes(&mut self, requests: &[Departure]) -> Result<Vec<Echo>, Error> {
        Err(Error::Unsupported(format!("none of {} echo requests was answered", requests.len())))
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn mtu(&mut self) -> Result<Option<ByteCount>, Error> {
        Ok(None)
    }
}

/// Without an echo, neither MTU nor delay nor fair turns are known, and the scenario claims none of them.
#[test]
fn a_path_without_echoes_leaves_open_what_they_show() {
    let side = Truth { queue: Queue::Codel, ..truth(10_000_000, "docsis", 1_000_000) };
    let mut path = Mute(Simulated::new(side, side, ByteCount::new(1500), true, 3).unwrap());
    let found = detect(&mut path, &Options::default(), &mut |_| {}).unwrap();
    assert_eq!((found.mtu_bytes, found.idle_rtt_s), (None, None));
    let discipline = found.down.as_ref().unwrap().discipline.as_ref().unwrap();
    assert_eq!((&discipline.kinds, discipline.other_wait_s), (&vec![Kind::Codel, Kind::FqCodel], None));
    let ip = found.down.as_ref().unwrap().ip_bps;
    // 18 bytes of DOCSIS around each of 576.
    assert!((ip.value / (10e6 * 576.0 / 594.0) - 1.0).abs() < 1e-3, "{ip:?}");
    let warned = |text: &str| found.warnings.iter().any(|warning| warning.contains(text));
    assert!(warned("idle round-trip time is not known: none of 60 echo requests"), "{:?}", found.warnings);
    assert!(warned("MTU is not known") && warned("down: the kind of its queue is not sure (codel or fq-codel)"));
    let (text, _) = parsed(&found);
    assert!(!text.contains("\nmtu = ") && !text.contains("\ndelay = "), "{text}");
    assert!(text.contains("# The delay is not known: the default of 0 ms stands."), "{text}");
    assert!(text.contains("# The MTU is not known: the default of the encapsulation stands."), "{text}");
    assert!(text.contains("# Queue: not sure: codel or fq-codel; codel stands here."), "{text}");
}

/// FQ-CoDel, SFQ and PIE in the scenario: its queue is the kind, and the limit of a fair queue that drops is in
/// packets.
#[test]
fn the_scenario_has_the_kind_of_the_queue() {
    let queued = |queue, buffer| Truth { queue, buffer, ..truth(10_000_000, "docsis", 0) };
    let packets = |count| Limit::Packets(PacketCount::new(count));
    let (text, _) = parsed(&detected(queued(Queue::FqCodel, packets(1)), queued(Queue::Sfq, packets(127)), 3));
    assert!(text.contains("\nqueue = { kind = \"fq-codel\" }\n"), "{text}");
    assert!(text.contains("# Queue: fq-codel with its defaults, or CAKE, which waits do not distinguish."), "{text}");
    // The packet in transmission has left the queue.
    assert!(
        text.contains("\nqueue = { kind = \"sfq\", limit = \"127 packets\", depth = \"127 packets\" }\n"),
        "{text}"
    );
    let found = detected(queued(Queue::Pie, packets(1_000)), queued(Queue::Codel, packets(1_000)), 3);
    let (text, _) = parsed(&found);
    assert!(text.contains("\nqueue = { kind = \"pie\" }\n") && text.contains("\nqueue = { kind = \"codel\" }\n"));
    // RFC 8289, section 4.3: CoDel keeps a standing queue at its target of 5 ms; a packet takes 1.2 ms.
    let codel = found.up.unwrap().discipline.unwrap();
    let (own, other) = (codel.own_wait_s.unwrap(), codel.other_wait_s.unwrap());
    assert!((0.004..0.0075).contains(&own.value) && other.high > own.value / 2.0, "{own:?} {other:?}");
}

#[test]
fn a_rate_that_falls_once_is_no_shaper() {
    let side = truth(20_000_000, "docsis", 64_000);
    let path = Simulated::new(side, side, ByteCount::new(1500), true, 3).unwrap();
    let mut path = Late { path, late: true };
    let detection = detect(&mut path, &Options::default(), &mut |_| {}).unwrap();
    assert!(!path.late, "no long overload");
    assert!(
        matches!(detection.down.as_ref().unwrap().limiter, Limiter::Line),
        "{:?}",
        detection.down.as_ref().unwrap().limiter
    );
    assert!(
        matches!(detection.up.as_ref().unwrap().limiter, Limiter::Line),
        "{:?}",
        detection.up.as_ref().unwrap().limiter
    );
}

/// More than the senders can send: no name, and a lower bound.
#[test]
fn a_line_faster_than_its_senders_is_not_named() {
    let fast = truth(2_000_000_000, "ethernet", 206_000);
    let detection = detected(fast, fast, 1);
    assert_eq!(detection.down.as_ref().unwrap().encapsulation.verdict, Verdict::Unloaded);
    assert!(detection.down.as_ref().unwrap().ip_bps.value > 600e6, "{:?}", detection.down.as_ref().unwrap().ip_bps);
}

/// 1000 packets of 1500 bytes a second are 12 Mbit/s, and the line has 11.5: too little more to fill it, and not the
/// rate of the line.
#[test]
fn a_line_a_little_slower_than_its_senders_has_at_least_what_arrived() {
    let line = truth(11_500_000, "ip", 206_000);
    let mut path = Simulated::new(line, line, ByteCount::new(1500), true, 1).unwrap();
    let options = Options { packets_per_second: 1_000, ..Options::default() };
    let found = detect(&mut path, &options, &mut |_| {}).unwrap();
    assert_eq!(found.up.as_ref().unwrap().encapsulation.verdict, Verdict::Unloaded);
    // Of 150 arrivals with 5 ms of jitter, three standard errors are 0.8 %.
    assert!(
        (11.3e6..11.502e6).contains(&found.up.as_ref().unwrap().ip_bps.low),
        "{:?}",
        found.up.as_ref().unwrap().ip_bps
    );
    assert!(found.warnings.iter().any(|warning| warning.starts_with("up: it carries at least 11.")));
}

#[test]
fn a_path_without_a_server_says_so() {
    let slow = truth(2_000_000, "pppoa-vcmux", 64_000);
    let mut path = Simulated::new(slow, slow, ByteCount::new(1500), false, 1).unwrap();
    let error = detect(&mut path, &Options::default(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("no server of lastmile"), "{error}");
}

/// A path whose server vanishes after some trains.
struct Vanishing {
    path: Simulated,
    trains: u32,
}

impl Path for Vanishing {
    fn trains(&mut self, trains: &[(Way, &[Departure])]) -> Result<Vec<Vec<Passage>>, Error> {
        self.trains = self.trains.checked_sub(1).ok_or(Error::Stopped)?;
        self.path.trains(trains)
    }

    fn echoes(&mut self, requests: &[Departure]) -> Result<Vec<Echo>, Error> {
        self.path.echoes(requests)
    }

    fn elapsed(&self) -> Duration {
        self.path.elapsed()
    }

    fn mtu(&mut self) -> Result<Option<ByteCount>, Error> {
        self.path.mtu()
    }
}

/// Steps that have ended stay, with the reason for the end, and no default stands for a way that was not examined.
#[test]
fn a_detection_that_ends_early_keeps_what_it_found() {
    let side = truth(20_000_000, "docsis", 64_000);
    let path = || Simulated::new(side, side, ByteCount::new(1500), true, 3).unwrap();
    let mut whole = Vanishing { path: path(), trains: u32::MAX };
    let all = detect(&mut whole, &Options::default(), &mut |_| {}).unwrap();
    assert!(all.complete && all.down.is_some() && all.up.is_some());
    let sent = u32::MAX - whole.trains;
    for (trains, down, name) in [(1, false, "down"), (sent - 1, true, "up")] {
        let found = detect(&mut Vanishing { path: path(), trains }, &Options::default(), &mut |_| {}).unwrap();
        assert_eq!((found.complete, found.down.is_some(), found.up.is_some()), (false, down, false), "{trains}");
        assert_eq!(found.down, if down { all.down.clone() } else { None });
        assert_eq!((found.mtu_bytes, found.idle_rtt_s), (Some(1500), all.idle_rtt_s));
        let reason = format!("the detection ended in the examination of `{name}`: it was stopped");
        assert_eq!(found.warnings.last(), Some(&reason));
        assert_eq!(scenario::scenario(&found, "line"), None);
    }
}

fn parsed(detection: &Detection) -> (String, Scenario) {
    let text = scenario::scenario(detection, "A \"line\"\\").unwrap();
    let scenario = Scenario::parse("detected.toml", &text, &[]).unwrap_or_else(|report| panic!("{report}\n{text}"));
    assert!(scenario.warnings().is_empty(), "{}\n{text}", scenario.warnings());
    (text, scenario)
}

#[test]
fn the_scenario_is_one_that_the_other_commands_read() {
    let adsl = detected(truth(8_000_000, "pppoe-llcsnap", 64_000), truth(768_000, "pppoe-llcsnap", 32_000), 3);
    let (text, scenario) = parsed(&adsl);
    assert_eq!(scenario.name(), "A \"line\"\\");
    assert!(text.contains("encapsulation = \"pppoe-llcsnap\" # sure: 99.9"), "{text}");
    assert!(text.contains("\n# Not seen: grants of an upstream (cable, PON, cellular, satellite): a wait"), "{text}");
    let network = scenario.network();
    let up = network.links.iter().find(|link| link.hop.name.as_str() == "up").unwrap();
    let rate = up.hop.line.rate.unwrap().as_bps() as f64;
    assert!((rate / 768e3 - 1.0).abs() < 0.01, "{rate}");
    let delay = up.hop.line.delay.as_secs_f64();
    // 10 ms of line and at least no jitter; 5 ms are the most.
    assert!((0.0099..0.0125).contains(&delay), "{delay}");
}

#[test]
fn scenarios_of_shapers_policers_and_unknown_lines_are_read() {
    let frame = LinkLayer::from_name("docsis").unwrap();
    let before = |before| Truth { before, ..truth(50_000_000, "bridged-ptm", 64_000) };
    let shaper = before(Before::Shaper(BitRate::from_mbit_per_s(10), WireBytes::new(64_000), frame));
    let policer = before(Before::Policer(BitRate::from_mbit_per_s(10), WireBytes::new(64_000), frame));
    let (text, _) = parsed(&detected(shaper, policer, 4));
    assert!(text.contains("kind = \"tbf\"") && text.contains("kind = \"policer\""), "{text}");
    let fast = truth(2_000_000_000, "ethernet", 206_000);
    let (text, _) = parsed(&detected(fast, fast, 5));
    assert!(text.contains("at least: the senders did not fill the line"), "{text}");
    let first: Vec<&str> = text.lines().take(4).collect();
    let unlike = first.iter().filter(|line| line.ends_with("is a default, and its latency under load not the line's."));
    assert_eq!(unlike.count(), 2, "one for each way: {text}");
}
