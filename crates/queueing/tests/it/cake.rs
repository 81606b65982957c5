//! CAKE under the contract.

use lastmile_packet::Meta;
use lastmile_queueing::DropReason::{AckFiltered, Aqm, Head, TooLarge};
use lastmile_queueing::ack::cake::Mode;
use lastmile_queueing::cake::{Config, Diffserv, Isolation};
use lastmile_queueing::spec::Spec;
use lastmile_units::{ByteCount, Duration};

use crate::contract::{Promise, Rate, contract};
use crate::disciplines::{BURST, RATE, held_to};

fn cake(config: Config) -> Spec {
    Spec::Cake(config)
}

/// Times so short that COBALT acts on random traffic.
fn short() -> Config {
    Config { rtt: Duration::from_ms(2), ..Config::default() }
}

fn tin_of_three(meta: &Meta) -> u8 {
    Diffserv::Three.tin(meta.dscp()) as u8
}

fn tin_of_four(meta: &Meta) -> u8 {
    Diffserv::Four.tin(meta.dscp()) as u8
}

fn tin_of_eight(meta: &Meta) -> u8 {
    Diffserv::Eight.tin(meta.dscp()) as u8
}

contract!(without_a_rate, Promise::of(&[Aqm]).marks_congestion().by_class(tin_of_three), |line| cake(short())
    .build(line));
contract!(
    shaped,
    Promise::of(&[Aqm]).marks_congestion().by_class(tin_of_four).pays_afterwards().shapes(held_to(RATE, BURST)),
    |line| { cake(Config { bandwidth: Some(RATE), diffserv: Diffserv::Four, ..short() }).build(line) }
);
contract!(
    short_of_memory,
    Promise::of(&[Aqm, Head]).marks_congestion().by_class(tin_of_eight).pays_afterwards().shapes(held_to(RATE, BURST)),
    |line| {
        let memory = Some(ByteCount::new(3000));
        cake(Config { bandwidth: Some(RATE), diffserv: Diffserv::Eight, memory, ..short() }).build(line)
    }
);
contract!(too_small_for_some, Promise::of(&[Aqm, Head, TooLarge]).marks_congestion(), |line| {
    let (memory, largest) = (Some(ByteCount::new(400)), ByteCount::new(400));
    let diffserv = Diffserv::BestEffort;
    cake(Config { memory, largest, diffserv, isolation: Isolation::DualSourceHost, ..short() }).build(line)
});
contract!(
    with_the_ack_filter,
    Promise::of(&[Aqm, AckFiltered])
        .marks_congestion()
        .by_class(tin_of_three)
        .pays_afterwards()
        .shapes(held_to(RATE, BURST)),
    |line| cake(Config { bandwidth: Some(RATE), ack_filter: Some(Mode::Aggressive), ..short() }).build(line)
);
contract!(
    behind_the_slow_line,
    Promise::of(&[Aqm, Head, AckFiltered]).marks_congestion().by_class(tin_of_four).pays_afterwards().shapes(Rate {
        rate: RATE,
        burst: BURST,
        reached: false
    }),
    |line| {
        let (memory, ack_filter) = (Some(ByteCount::new(3000)), Some(Mode::Aggressive));
        let ingress = Config { ingress: true, diffserv: Diffserv::Four, memory, ack_filter, ..short() };
        cake(Config { bandwidth: Some(RATE), ..ingress }).build(line)
    }
);
contract!(behind_the_slow_line_without_a_rate, Promise::of(&[Aqm]).marks_congestion().by_class(tin_of_three), |line| {
    cake(Config { ingress: true, ..short() }).build(line)
});
contract!(that_clears_code_points, Promise::of(&[Aqm]).marks_congestion().by_class(tin_of_eight).remarks(), |line| {
    cake(Config { wash: true, diffserv: Diffserv::Eight, ..short() }).build(line)
});
contract!(blind_to_flows, Promise::of(&[Aqm, AckFiltered]).marks_congestion(), |line| {
    let (diffserv, isolation) = (Diffserv::BestEffort, Isolation::FlowBlind);
    cake(Config { diffserv, isolation, ack_filter: Some(Mode::Normal), ..short() }).build(line)
});
