//! Every packet is accounted for: sent = delivered + dropped + queued + in flight, at any time, in any network.

use lastmile_model::Source;
use lastmile_queueing::line::impairments::{
    BitErrorRate, Chance, Distribution, GilbertElliott, Impairments, Jitter, LossModel, Reorder,
};
use lastmile_queueing::spec::Spec;
use lastmile_sim::Simulation;
use lastmile_tcp::{Config, Variant};
use lastmile_units::{BitRate, ByteCount, Duration, Instant, Ratio};
use proptest::prelude::*;

use crate::build;

/// Jitter that overtakes, duplicates, bit errors and losses in bursts.
fn disordered() -> Impairments {
    let percent = |percent| Ratio::from_percent(percent).unwrap();
    let jitter =
        Jitter { spread: Duration::from_ms(20), correlation: percent(25), distribution: Distribution::ParetoNormal };
    let bursts = GilbertElliott { to_bad: percent(1), to_good: percent(30), bad: Ratio::ONE, good: Ratio::ZERO };
    Impairments {
        loss: Some(LossModel::GilbertElliott(bursts)),
        bit_errors: BitErrorRate::new(1e-6),
        duplicate: Some(Chance::independent(percent(5))),
        jitter: Some(jitter),
        reorder: Some(Reorder::ByDelay),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_is_somewhere(
        (down, up) in (64_u64..4_000, 16_u64..1_000),
        preset in prop::sample::select(vec!["ip", "aal5", "pppoe-llcsnap", "bridged-ptm", "docsis"]),
        delay_ms in 0_u64..200,
        loss_ppm in 0_u32..100_000,
        packets in 1_u64..60,
        sad in any::<bool>(),
        disorder in any::<bool>(),
        variant in prop::sample::select(
            vec![Variant::Tahoe, Variant::Reno, Variant::NewReno, Variant::Sack, Variant::Cubic]
        ),
        stop_ms in 100_u64..20_000,
        seed in any::<u64>(),
    ) {
        let mut network = build::line(down, up, preset, Duration::from_ms(delay_ms));
        network.seed = seed;
        network.duration = Duration::from_s(20);
        for link in &mut network.links {
            link.hop.line.loss = Ratio::from_ppm(loss_ppm).unwrap();
            link.hop.queue = Spec::fifo(packets);
            if disorder {
                link.hop.line.impairments = disordered();
            }
            if sad {
                link.hop.queue = build::sad(link.hop.queue.clone());
            }
        }
        let tcp = Config { variant, ..Config::default() };
        network.traffic.push(build::download(&tcp, None));
        network.traffic.push(build::upload(&tcp, Some(50_000)));
        let poisson = Source::Poisson { rate: BitRate::from_kbit_per_s(20), size: ByteCount::new(300) };
        network.traffic.push(build::traffic("poisson", 1, 0, poisson));
        let (interval, size) = (Duration::from_ms(100), ByteCount::new(84));
        let ping = Source::Ping { interval, size, echo: lastmile_model::Echo::Icmp };
        network.traffic.push(build::traffic("ping", 0, 1, ping));
        let mut simulation = Simulation::new(&network, None).unwrap();
        simulation.advance_to(Instant::ZERO + Duration::from_ms(stop_ms));
        let half_way = simulation.conservation();
        prop_assert!(half_way.holds(), "{half_way:?}");
        let outcome = simulation.finish();
        prop_assert!(outcome.conservation.holds(), "{:?}", outcome.conservation);
        prop_assert!(outcome.conservation.delivered.packets > 0);
    }
}
