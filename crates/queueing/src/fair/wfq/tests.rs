use std::num::NonZeroU32;

use lastmile_units::{PacketCount, WireBytes};

use super::{Among, Config, Wfq};
use crate::fair::Per;
use crate::fair::harness::{Trial, eleven_sessions, flows, long_run, weights};
use crate::fair::scheduler::Order as _;
use crate::spec::Spec;

/// Weights 1 and 2, packets of 100. Finish tags 100, 200 and 50, 100, 150, 200; of equal tags class
/// 0 is first.
#[test]
fn the_least_finish_tag_goes_first() {
    let mut trial = Trial::new(&Spec::Wfq(Config(Among::Classes(weights([1, 2])))));
    trial.offer(0, &[100; 2]);
    trial.offer(1, &[100; 4]);
    assert_eq!(trial.rest_classes(), [1, 0, 1, 1, 0, 1]);
}

/// Virtual time is the finish tag of the packet in service: 100 when class 1 becomes active. Its
/// packets of 99 have the tags 199 and 298, between those of class 0, 200 and 300. It has no claim
/// to earlier time.
#[test]
fn a_late_member_starts_at_the_finish_tag_of_the_packet_in_service() {
    let mut trial = Trial::new(&Spec::Wfq(Config(Among::Classes(weights([1, 1])))));
    trial.offer(0, &[100; 4]);
    assert_eq!(trial.take(1), [(0, 100)]);
    trial.offer(1, &[99; 2]);
    assert_eq!(trial.rest_classes(), [1, 0, 1, 0, 0]);
}

/// The example of Bennett and Zhang: a session with half of the line and ten with a twentieth each.
/// The first sends ten packets in a row (their tags are 10, 20, ... 100) before any other (100),
/// and its eleventh (110) waits for all ten.
#[test]
fn a_session_may_run_ahead_of_its_fluid_service() {
    let sent = eleven_sessions(|shares| Spec::Wfq(Config(Among::Classes(shares))));
    let expected: Vec<u32> = [0; 10].into_iter().chain(1..=10).chain([0]).collect();
    assert_eq!(sent, expected);
}

/// After a thousand days of 100 Gbit/s at weight 1, tags are as exact as on the first day.
#[test]
fn tags_last() {
    long_run(|shares| Box::new(Wfq::new(shares)));
}

/// Weight 3 and packets of 100: a finish tag of 33 1/3 is rounded down, and the remainder is kept.
#[test]
fn remainders_of_divisions_are_carried() {
    let shares = Among::Classes(weights([3])).shares(|weight| weight.get().into());
    let mut order = Wfq::new(shares);
    for _ in 0..3000 {
        order.head(0, Some(WireBytes::new(100)));
        assert_eq!(order.next(), Some(0));
        order.sent(0, WireBytes::new(100));
    }
    assert_eq!(order.virtual_time, 100_000 << 32);
}

#[test]
fn flows_have_equal_weights_and_the_fattest_loses_on_overflow() {
    flows(&Spec::Wfq(Config(Among::Flows { share: NonZeroU32::MIN, limit: PacketCount::new(4), per: Per::Flow })));
}

fn order<const N: usize>(of: [u32; N]) -> Wfq {
    Wfq::new(Among::Classes(weights(of)).shares(|weight| weight.get().into()))
}

fn bytes(count: u64) -> Option<WireBytes> {
    Some(WireBytes::new(count))
}

/// Class 1 sends 300 of 300, so virtual time is 300. Class 0 sends 100, where its head was expected
/// to have 1000: virtual time stays.
#[test]
fn virtual_time_never_goes_back() {
    let mut order = order([1, 1]);
    order.head(0, bytes(1000));
    order.head(1, bytes(300));
    assert_eq!(order.next(), Some(1));
    order.sent(1, WireBytes::new(300));
    order.head(1, None);
    assert_eq!(order.next(), Some(0));
    order.sent(0, WireBytes::new(100));
    assert_eq!(order.virtual_time, 300 << 32);
}

/// Class 1 has sent 50 when the head of class 0 is dropped: the packet of 200 behind it takes its
/// start tag, 0.
#[test]
fn the_packet_behind_a_dropped_head_takes_its_start_tag() {
    let mut order = order([1, 1]);
    order.head(0, bytes(100));
    order.head(1, bytes(50));
    assert_eq!(order.next(), Some(1));
    order.sent(1, WireBytes::new(50));
    order.head(1, bytes(50));
    order.head(0, bytes(200));
    assert_eq!(order.members[0].finish, Some(200 << 32));
    assert_eq!(order.tags.len(), 2);
}

/// Weight 3 and packets of 100: the third finish tag is exactly 100, with the remainders of the
/// first two. A pause discards the remainders.
#[test]
fn a_finish_tag_includes_remainders_of_earlier_divisions() {
    let mut order = order([3]);
    for _ in 0..2 {
        order.head(0, bytes(100));
        order.sent(0, WireBytes::new(100));
    }
    order.head(0, bytes(100));
    assert_eq!((order.members[0].finish, order.members[0].remainder), (Some(100 << 32), 2));
    order.sent(0, WireBytes::new(200));
    order.head(0, None);
    order.head(0, bytes(100));
    assert_eq!(order.members[0].remainder, 0);
}
