//! Shapers that a controller steers: its pings cross the line, and the rates follow.

use lastmile_model::outcome::Series;
use lastmile_model::{Autorate, BuildError, Hop, Link, Network, Node};
use lastmile_queueing::autorate::{Config, Method, Rates};
use lastmile_queueing::cake;
use lastmile_queueing::line::Config as LineConfig;
use lastmile_queueing::spec::Spec;
use lastmile_sim::Simulation;
use lastmile_units::{BitRate, Duration, Instant, WireBytes};

use crate::build;

/// Client - router - server: links 0 `up` and 1 `down` between router and server, 2 and 3 the CAKEs of the router, up
/// and down, in front of the client. The base rates are half of the line, the minimum a quarter of that.
fn network(mbit: u64) -> Network {
    let mut network = build::line(1000 * mbit, 1000 * mbit, "ip", Duration::from_ms(10));
    network.nodes.push(Node { name: "router".into(), processing: Duration::ZERO });
    (network.links[0].from, network.links[1].to) = (2, 2);
    network.links.iter_mut().for_each(|link| link.hop.queue = build::fifo_bytes(mbit * 125_000 / 4));
    let [min, base, max] = [125 * mbit, 500 * mbit, 2000 * mbit].map(BitRate::from_kbit_per_s);
    for (name, from, to) in [("shaper-up", 0, 2), ("shaper-down", 2, 0)] {
        let config = cake::Config { bandwidth: Some(max), ..cake::Config::default() };
        let line = LineConfig::new(None, network.links[0].hop.line.link_layer, Duration::ZERO);
        network.links.push(Link { from, to, hop: Hop { name: name.into(), line, queue: Spec::Cake(config) } });
    }
    let rates = Rates { min, base, max, largest: WireBytes::new(1500) };
    network.autorates.push(Autorate { controller: Config::new([rates; 2]), shapers: [3, 2], from: 0, reflector: 1 });
    network
}

/// 10 s of pings every 50 ms, the first and the last included, cross both shapers and the line, and all but the last
/// are answered: 84 bytes at 8 Mbit/s and 10 ms each way.
#[test]
fn pings_are_packets_of_both_directions() {
    let network = network(8);
    let mut simulation = Simulation::new(&network, None).expect("valid");
    simulation.advance_to(Instant::ZERO + Duration::from_s(10));
    let sent = [2, 0, 1, 3].map(|link| simulation.link_stats(link).transmitted);
    assert_eq!(sent.map(|count| count.packets), [201, 201, 200, 200]);
    assert_eq!(sent[0].bytes, 84 * 201);
    assert!(simulation.conservation().holds());
}

/// Pings sleep after a minute: those of the 60 s and the 50 ms after which a reply finds the time exceeded.
#[test]
fn pings_sleep_on_an_idle_line() {
    let network = Network { duration: Duration::from_s(120), ..network(8) };
    let mut simulation = Simulation::new(&network, None).expect("valid");
    simulation.advance_to(Instant::ZERO + Duration::from_s(120));
    let sent = simulation.link_stats(2).transmitted.packets;
    // The first reply is 20.2 ms after the first ping; idle time counts from it, and exceeds 60 s with the reply
    // 60.05 s later, before which a ping has left at 60.05 s.
    assert_eq!(sent, 1 + 60_050 / 50);
}

/// A download begins at half of the line and fills most of it; the queue of the line stays near the threshold: 60 ms of
/// round trip, half for each direction, where its buffer holds 250 ms.
#[test]
fn a_rate_rises_until_delays_do() {
    for method in [Method::Fping, Method::FpingTs] {
        let mut network = Network { duration: Duration::from_s(30), ..network(20) };
        network.autorates[0].controller.pings.pinger_method = method;
        let tcp = lastmile_tcp::Config::default();
        network.traffic.push(build::download(&tcp, None));
        let mut simulation = Simulation::new(&network, None).expect("valid");
        let mut sent = Vec::new();
        for second in [1, 15, 30] {
            simulation.advance_to(Instant::ZERO + Duration::from_s(second));
            sent.push(simulation.link_stats(3).wire_bytes.bits());
        }
        let mean = |from: usize, seconds: u64| (sent[from + 1] - sent[from]) / seconds;
        assert!((16_000_000..20_000_000).contains(&mean(1, 15)), "{method:?}: {}", mean(1, 15));
        assert!(sent[0] < 12_000_000, "{method:?}: {} in the first second", sent[0]);
        let outcome = simulation.finish();
        let p90 = outcome.links[1].queue_delay_ns.value_at_quantile(0.9);
        assert!(p90 < 80_000_000, "{method:?}: {p90} ns");
    }
}

/// Every 100 ms, of both shapers: the base rate at first, and a rate that falls within its bounds and returns.
#[test]
fn the_rates_of_the_shapers_are_series() {
    let mut network = Network { duration: Duration::from_s(20), ..network(20) };
    network.record.interval = Some(Duration::from_ms(100));
    network.traffic.push(build::download(&lastmile_tcp::Config::default(), None));
    let outcome = lastmile_sim::run(&network).expect("valid");
    let rates = |link: &str| {
        let of = |series: &&Series| (series.name, series.entity.as_str()) == ("shaper_rate_bps", link);
        outcome.series.iter().find(of).expect("a series").points.clone()
    };
    for (link, highest) in [("shaper-down", 15e6), ("shaper-up", 10e6)] {
        let rates = rates(link);
        assert_eq!(rates.len(), 200, "{link}");
        assert!(rates[0].1 <= 10e6 && rates.iter().all(|(_, bps)| (2.5e6..=40e6).contains(bps)), "{link}");
        assert!(rates.iter().any(|(_, bps)| *bps >= highest), "{link}");
    }
    assert_eq!(outcome.series.iter().filter(|series| series.name == "shaper_rate_bps").count(), 2);
}

#[test]
fn a_queue_without_a_shaper_is_refused() {
    let mut network = network(8);
    network.links[3].hop.queue = Spec::fifo(100);
    let Err(BuildError::NoShaper { link }) = Simulation::new(&network, None) else { panic!("a FIFO has no rate") };
    assert_eq!(link, "shaper-down");
}

#[test]
fn rates_out_of_order_are_refused() {
    let mut network = network(8);
    network.autorates[0].controller.rates[0].max = BitRate::from_kbit_per_s(1);
    assert!(matches!(Simulation::new(&network, None), Err(BuildError::Autorate(_))));
}
