//! Policers under the contract.

use lastmile_queueing::DropReason::{AckMerged, Head, Policed, Tail};
use lastmile_queueing::ack::sad::Duplicates;
use lastmile_queueing::meter::policer::{Action, Coming, Remark, Rule, Then};
use lastmile_queueing::meter::{self, car, gcra, police, policer, srtcm, trtcm};
use lastmile_queueing::spec::{Over, Spec};
use lastmile_queueing::{Match, Overflow};
use lastmile_units::{BitRate, ByteCount, Duration, WireBytes};

use crate::contract::{Promise, contract};
use crate::disciplines::{BURST, BYTES, PACKETS, RATE, fifo, held_to, sad, tbf};

const DOUBLE_BURST: WireBytes = WireBytes::new(2 * BURST.as_u64());

fn rule(meter: meter::Config, exceed: Action) -> Rule {
    let (matches, coming, largest) = (Match::Any, Coming::DropPrecedence, ByteCount::new(1500));
    Rule { matches, meter, coming, largest, conform: Action::TRANSMIT, exceed, violate: Action::DROP }
}

fn policer(rules: Vec<Rule>, queue: Spec) -> Spec {
    Spec::Policer(Over { config: policer::Config { rules }, queue: Box::new(queue) })
}

fn bucket() -> meter::Config {
    meter::Config::TokenBucket { rate: RATE, burst: BURST }
}

contract!(token_bucket, Promise::of(&[Tail, Policed]), |line| {
    policer(vec![rule(bucket(), Action::DROP)], fifo(PACKETS, Overflow::Tail)).build(line)
});
contract!(committed_access_rate, Promise::of(&[Head, Policed]), |line| {
    let car = car::Config { rate: RATE, burst: BURST, extended: DOUBLE_BURST };
    policer(vec![rule(meter::Config::Car(car), Action::DROP)], fifo(BYTES, Overflow::Head)).build(line)
});
contract!(single_rate_marker, Promise::of(&[Tail, Policed]).remarks(), |line| {
    let meter = srtcm::Config { cir: RATE, cbs: BURST, ebs: BURST };
    let exceed = Action::mark(Remark::Dscp(12));
    policer(vec![rule(meter::Config::SrTcm(meter), exceed)], fifo(PACKETS, Overflow::Tail)).build(line)
});
contract!(two_rate_marker, Promise::of(&[Tail, Policed]).remarks(), |line| {
    let meter = trtcm::Config { pir: BitRate::from_mbit_per_s(1), pbs: BURST, cir: RATE, cbs: BURST };
    let exceed = Action::mark(Remark::Clp);
    policer(vec![rule(meter::Config::TrTcm(meter), exceed)], fifo(PACKETS, Overflow::Tail)).build(line)
});
contract!(cell_rate_over_a_shaper, Promise::of(&[Tail, Policed]).shapes(held_to(RATE, BURST)), |line| {
    let gcra = gcra::Config { rate: BitRate::from_mbit_per_s(1), tolerance: Duration::from_ms(20) };
    let queue = tbf(RATE, BURST, fifo(PACKETS, Overflow::Tail));
    policer(vec![rule(meter::Config::Gcra(gcra), Action::DROP)], queue).build(line)
});
contract!(ingress_policer, Promise::of(&[Tail, Policed]), |line| {
    let peak = Some(BitRate::from_mbit_per_s(2));
    let police = police::Config { rate: RATE, burst: DOUBLE_BURST, peak, mtu: BURST };
    policer(vec![rule(meter::Config::Police(police), Action::DROP)], fifo(PACKETS, Overflow::Tail)).build(line)
});
contract!(rules_that_continue, Promise::of(&[Tail, AckMerged, Policed]).rewrites_acks().remarks(), |line| {
    let on = Action { mark: Some(Remark::Dscp(8)), then: Then::Continue };
    let rules = vec![rule(bucket(), on), rule(bucket(), Action::DROP)];
    policer(rules, sad(Duplicates::Keep, fifo(PACKETS, Overflow::Tail))).build(line)
});
