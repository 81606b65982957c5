//! Queues under active management, and fair ones, held to the contract: a line each.

use lastmile_queueing::DropReason::{Aqm, Tail, TooLarge};
use lastmile_queueing::Limit;
use lastmile_queueing::aqm::codel;
use lastmile_queueing::spec::Spec;
use lastmile_units::{ByteCount, Duration, PacketCount};

use crate::contract::{Promise, contract};

const PACKETS: Limit = Limit::Packets(PacketCount::new(10));
const BYTES: Limit = Limit::Bytes(ByteCount::new(4000));
const SMALL: Limit = Limit::Bytes(ByteCount::new(400));

/// Times as short as the waits of random traffic.
fn codel(limit: Limit, ecn: bool) -> Spec {
    let (target, interval) = (Duration::from_ms(1), Duration::from_ms(5));
    Spec::Codel(codel::Config { target, interval, limit, ecn, largest: ByteCount::new(300) })
}

contract!(codel_that_drops, Promise::of(&[Tail, Aqm]), |line| codel(PACKETS, false).build(line));
contract!(codel_that_marks, Promise::of(&[Tail, Aqm]).marks_congestion(), |line| codel(BYTES, true).build(line));
contract!(codel_too_small_for_some, Promise::of(&[Tail, TooLarge, Aqm]), |line| codel(SMALL, false).build(line));
