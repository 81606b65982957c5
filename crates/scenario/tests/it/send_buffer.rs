//! A send buffer limits as a receive window does: once per round trip.

use lastmile_model::outcome::Outcome;
use lastmile_scenario::Scenario;
use lastmile_units::{Duration, Instant};

const MIDDLE: Instant = Instant::from_ps(10_000_000_000_000);

/// 1 Gbit/s with a round trip of 100 ms, of which packets take 12 us.
fn run(tcp: &str) -> Outcome {
    let text = format!(
        "duration = \"20 s\"\nstart_jitter = \"0 ms\"\n\
         tcp = {{ receive_window = \"8 MB\", {tcp} }}\n\
         [[link]]\nname = \"down\"\nfrom = \"server\"\nto = \"client\"\nrate = \"1 Gbit/s\"\ndelay = \"50 ms\"\n\
         queue = {{ kind = \"fifo\", limit = \"10000 packets\" }}\n\
         [[traffic]]\nkind = \"bulk\"\nfrom = \"server\"\nto = \"client\"\n"
    );
    let scenario = Scenario::parse("x.toml", &text, &[]).unwrap_or_else(|report| panic!("{report}"));
    let mut network = scenario.network();
    network.record.cuts.push(MIDDLE);
    lastmile_sim::run(&network).expect("it is there")
}

/// The buffer of 1 MB holds 690 whole segments of 1448 bytes. It is full all the time after the slow start.
#[test]
fn the_goodput_is_the_send_buffer_over_the_round_trip() {
    for variant in ["cubic", "newreno"] {
        let outcome = run(&format!("variant = \"{variant}\", send_buffer = \"1 MB\""));
        let first = outcome.snapshots.iter().find(|snapshot| snapshot.at == MIDDLE).expect("it is there");
        let last = outcome.snapshots.last().expect("it is there");
        let goodput = (last.bytes_delivered[0] - first.bytes_delivered[0]) as f64 / 10.0;
        let formula = 690.0 * 1448.0 / 0.1;
        assert!((0.999..=1.0).contains(&(goodput / formula)), "{variant}: {goodput} of {formula}");
        let [before, after] = [first, last].map(|snapshot| snapshot.limited[0].expect("TCP has it").send_buffer);
        assert_eq!(after.saturating_sub(before), Duration::from_s(10), "{variant}");
        assert_eq!(outcome.flows[0].tcp.as_ref().expect("TCP has it").max_in_flight, 690 * 1448);
    }
}

/// BBR counts a full buffer as an application that has no more data: its window stays, and it paces a part of the time.
#[test]
fn a_model_is_limited_by_the_send_buffer_too() {
    let outcome = run("variant = \"bbr3\", send_buffer = \"1 MB\"");
    let tcp = outcome.flows[0].tcp.as_ref().expect("TCP has it");
    assert!(tcp.limited.send_buffer > Duration::from_s(17), "{:?}", tcp.limited);
    assert_eq!(tcp.max_in_flight, 690 * 1448);
}

#[test]
fn without_the_key_the_receive_window_limits() {
    let limited = run("variant = \"cubic\"").flows[0].tcp.as_ref().expect("TCP has it").limited;
    assert_eq!(limited.send_buffer, Duration::ZERO);
    assert!(limited.receive_window > Duration::from_s(17), "{limited:?}");
}
