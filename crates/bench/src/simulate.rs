//! Whole simulations: the goals of the project, and the cost of a packet by the number of flows.

use std::time::Instant as Clock;

use lastmile_model::{Network, outcome::Outcome};
use lastmile_sim::Simulation;
use lastmile_units::{BitRate, Duration};

use crate::measurement::{Measurement, peak_bytes, resident_bytes};
use crate::networks::Dumbbell;

/// The share of each flow in the bottleneck, for any number of flows.
const PER_FLOW_KBIT: u64 = 1_000;
const FLOWS: [u32; 4] = [10, 100, 1_000, 100_000];

pub(crate) fn names() -> Vec<String> {
    let fixed = [
        "(a) 48 flows, 150 Mbit/s, 80 ms, 60 s",
        "(b) 500 flows, 1 Gbit/s, 40 ms, 10 s",
        "(c) 1 down + 1 up, 8 Mbit/s / 512 kbit/s, 60 s",
    ];
    fixed.iter().map(|name| (*name).to_owned()).chain(FLOWS.iter().map(|flows| scaling(*flows))).collect()
}

pub(crate) fn run(name: &str) -> Option<Measurement> {
    let before = resident_bytes();
    let (network, per_flow) = network(name)?;
    let clock = Clock::now();
    let simulation = Simulation::new(&network, None).expect("the network is sound");
    let built = resident_bytes();
    let outcome = simulation.finish();
    let wall_s = clock.elapsed().as_secs_f64();
    assert!(outcome.conservation.holds(), "packets were lost in silence: {:?}", outcome.conservation);
    Some(measurement(name, wall_s, &outcome, per_flow.then_some((before, built))))
}

fn network(name: &str) -> Option<(Network, bool)> {
    let dumbbell = |flows, down_kbit, up_kbit, round_trip_ms, packets, duration_s, upload| {
        Dumbbell {
            flows,
            down: BitRate::from_kbit_per_s(down_kbit),
            up: BitRate::from_kbit_per_s(up_kbit),
            round_trip: Duration::from_ms(round_trip_ms),
            packets,
            duration: Duration::from_s(duration_s),
            upload,
        }
        .network()
    };
    if let Some(flows) = FLOWS.iter().find(|flows| scaling(**flows) == name) {
        let rate = u64::from(*flows) * PER_FLOW_KBIT;
        // About a million data packets, or two seconds of simulated time, whichever is longer.
        let duration_s = (12_000_000 / rate).clamp(2, 400);
        let network = dumbbell(*flows, rate, rate, 40, u64::from(*flows), duration_s, false);
        return Some((network, *flows >= 1_000));
    }
    let network = match name.get(..3)? {
        "(a)" => dumbbell(48, 150_000, 150_000, 80, 1_000, 60, false),
        "(b)" => dumbbell(500, 1_000_000, 1_000_000, 40, 1_000, 10, false),
        "(c)" => dumbbell(1, 8_000, 512, 40, 100, 60, true),
        _ => return None,
    };
    Some((network, false))
}

/// True for a run that is short enough to count its instructions, which takes a hundred times
/// longer.
pub(crate) fn is_short(name: &str) -> bool {
    name.starts_with("(c)") || name == scaling(10) || name == scaling(1_000)
}

fn scaling(flows: u32) -> String {
    format!("{flows} flows of {} Mbit/s", PER_FLOW_KBIT / 1_000)
}

fn measurement(name: &str, wall_s: f64, outcome: &Outcome, memory: Option<(u64, u64)>) -> Measurement {
    let hops = outcome.links.iter().map(|link| link.stats.transmitted.packets).sum();
    let data_packets = outcome.flows.iter().map(|flow| flow.data_packets).sum();
    let flows = outcome.flows.len() as f64;
    let peak = peak_bytes();
    Measurement {
        name: name.to_owned(),
        wall_s,
        events: outcome.events.unwrap_or(0),
        hops,
        data_packets,
        peak_bytes: peak,
        instructions: None,
        queue: None,
        datapath: None,
        atm: None,
        capture: None,
        live: Vec::new(),
        state_bytes_per_flow: memory.map(|(before, built)| built.saturating_sub(before) as f64 / flows),
        bytes_per_flow: memory.map(|(before, _)| peak.saturating_sub(before) as f64 / flows),
    }
}
