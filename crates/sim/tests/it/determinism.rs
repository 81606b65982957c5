//! Equal seeds give equal runs, on any number of threads; different seeds give different runs.

use lastmile_model::outcome::Outcome;
use lastmile_model::{Network, Source, Steady};
use lastmile_model::{Observer, Passage};
use lastmile_queueing::Limit;
use lastmile_queueing::aqm::{docsis_pie, pie, red};
use lastmile_queueing::fair::fq_pie;
use lastmile_queueing::spec::Spec;
use lastmile_sim::{Advance, Simulation};
use lastmile_tcp::Config;
use lastmile_units::{BitRate, ByteCount, Duration, Instant, PacketCount, Ratio};
use std::sync::{Arc, Mutex};

use crate::build;

/// All passages of all packets, as text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Observer<lastmile_packet::Meta> for Log {
    fn packet(&mut self, at: Instant, link: usize, passage: Passage, packet: &lastmile_packet::Meta) {
        self.0.lock().unwrap().push(format!("{at} {link} {passage:?} {packet:?}"));
    }
}

fn lossy(seed: u64) -> Network {
    let mut network = build::line(2_000, 512, "pppoe-llcsnap", Duration::from_ms(10));
    network.seed = seed;
    network.links[1].hop.line.loss = Ratio::from_ppm(20_000).unwrap();
    let tcp = Config::default();
    network.traffic.push(build::download(&tcp, None));
    network.traffic.push(build::upload(&tcp, Some(100_000)));
    let poisson = Source::Poisson { rate: BitRate::from_kbit_per_s(50), size: ByteCount::new(200) };
    network.traffic.push(build::traffic("poisson", 0, 1, poisson));
    network
}

fn trace(seed: u64) -> Vec<String> {
    let log = Log::default();
    let network = lossy(seed);
    let outcome = Simulation::new(&network, Some(Box::new(log.clone()))).unwrap().finish();
    assert!(outcome.conservation.holds());
    let lines = log.0.lock().unwrap().clone();
    assert!(lines.len() > 1_000, "the run has packets");
    lines
}

#[test]
fn equal_seeds_give_equal_packets_on_any_thread() {
    let here = trace(7);
    let threads: Vec<_> = (0..3).map(|_| std::thread::spawn(|| trace(7))).collect();
    for thread in threads {
        let there = thread.join().unwrap();
        let differs = here.iter().zip(&there).position(|(a, b)| a != b);
        assert_eq!(differs, None, "first difference");
        assert_eq!(here.len(), there.len());
    }
}

/// With a capture each transmission has an event; without one, those of a FIFO wait for the next arrival or sample.
#[test]
fn a_capture_changes_no_result_but_the_number_of_events() {
    for constant in [None, Some(200)] {
        let mut network = lossy(7);
        network.record.interval = Some(Duration::from_ms(100));
        network.links[1].hop.line.loss = Ratio::ZERO;
        network.links[0].hop.line.rate = constant.map(BitRate::from_kbit_per_s);
        let captured = Simulation::new(&network, Some(Box::new(Log::default()))).unwrap().finish();
        let alone = Simulation::new(&network, None).unwrap().finish();
        assert!(alone.events < captured.events, "{:?} are not below {:?}", alone.events, captured.events);
        let text = |outcome: Outcome| format!("{:?}", Outcome { events: None, ..outcome });
        assert_eq!(text(alone), text(captured));
    }
}

/// Pauses do not change the run, and they occur after the work that was granted.
#[test]
fn pauses_change_nothing() {
    let whole = trace(7);
    let network = lossy(7);
    for work in [1, 7, 1_000] {
        let log = Log::default();
        let mut simulation = Simulation::new(&network, Some(Box::new(log.clone()))).unwrap();
        let mut pauses = 0;
        let end = Instant::ZERO + network.duration;
        loop {
            let before = simulation.events();
            if simulation.advance_by(end, work) == Advance::Reached {
                break;
            }
            assert!((1..=work).contains(&(simulation.events() - before)));
            assert!(simulation.now() < end);
            pauses += 1;
        }
        // Sent packets are half of the work.
        assert!(pauses >= simulation.events() / work, "{pauses} pauses");
        let outcome = simulation.finish();
        assert!(outcome.conservation.holds());
        assert!(*log.0.lock().unwrap() == whole, "with pauses after {work}");
    }
}

#[test]
fn another_seed_loses_other_packets() {
    assert_ne!(trace(7), trace(8));
}

/// Random numbers of queues differ from seed to seed and from link to link: a study over seeds measures their effect,
/// and lines do not drop in step.
#[test]
fn queues_draw_by_the_seed_of_the_run_and_by_the_link() {
    let rate = BitRate::from_mbit_per_s(1);
    let queues = [
        Spec::Pie(pie::Config::default()),
        Spec::DocsisPie(docsis_pie::Config::of(rate, Limit::Packets(PacketCount::new(200)))),
        Spec::FqPie(fq_pie::Config::default()),
        Spec::Red(red::Config { bandwidth: rate, ..red::Config::default() }),
    ];
    let drops = |seed, queue: &Spec| {
        let mut network = build::line(1_000, 1_000, "ip", Duration::from_ms(10));
        network.seed = seed;
        network.links.iter_mut().for_each(|link| link.hop.queue = queue.clone());
        let interval = Duration::from_us(3_300);
        let stream = Source::Constant { interval, size: ByteCount::new(500), kind: Steady::Voice };
        network.traffic.push(build::traffic("up", 0, 1, stream.clone()));
        network.traffic.push(build::traffic("down", 1, 0, stream));
        let log = Log::default();
        assert!(Simulation::new(&network, Some(Box::new(log.clone()))).unwrap().finish().conservation.holds());
        let lines = log.0.lock().unwrap().clone();
        [0, 1].map(|link| {
            let of_link = format!(" {link} Dropped(Aqm)");
            let lines = lines.iter().filter(|line| line.contains(&of_link));
            lines.filter_map(|line| line.split(' ').next().map(str::to_owned)).collect::<Vec<_>>()
        })
    };
    for queue in queues {
        let first = drops(1, &queue);
        assert!(first[0].len() > 20, "{queue:?}: {} drops", first[0].len());
        assert_eq!(first, drops(1, &queue), "{queue:?}");
        assert_ne!(first[0], first[1], "both links, {queue:?}");
        assert_ne!(first, drops(2, &queue), "{queue:?}");
    }
}
