//! Equal seeds give equal runs, on any number of threads; other seeds give others.

use lastmile_sim::spec::{Network, Source};
use lastmile_sim::{CaptureSink, Passage, Simulation};
use lastmile_tcp::Config;
use lastmile_units::{BitRate, ByteCount, Duration, Instant};
use std::sync::{Arc, Mutex};

use crate::build;

/// Everything that happens to every packet, as text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl CaptureSink for Log {
    fn packet(&mut self, at: Instant, link: usize, passage: Passage, packet: &lastmile_packet::Meta) {
        self.0.lock().unwrap().push(format!("{at} {link} {passage:?} {packet:?}"));
    }
}

fn lossy(seed: u64) -> Network {
    let mut network = build::line(2_000, 512, "pppoe-llcsnap", Duration::from_ms(10));
    network.seed = seed;
    network.links[1].loss_ppb = 20_000_000;
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
    assert!(lines.len() > 1_000, "the run does something");
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

#[test]
fn another_seed_loses_other_packets() {
    assert_ne!(trace(7), trace(8));
}
