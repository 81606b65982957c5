use std::num::NonZeroU32;

use lastmile_units::{Duration, PacketCount, WireBytes};

use super::{Among, Config, Wf2qPlus};
use crate::fair::Per;
use crate::fair::harness::{Trial, eleven_sessions, flows, long_run, weights};
use crate::fair::scheduler::Order as _;
use crate::spec::Spec;

fn classes<const N: usize>(of: [u32; N]) -> Spec {
    Spec::Wf2qPlus(Config(Among::Classes(weights(of))))
}

/// The example of the paper: a session with half of the line and ten with a twentieth each. The
/// first sends every second packet, as in the fluid system: when virtual time is 5, its second
/// packet (start tag 10) must still wait.
#[test]
fn no_session_runs_ahead_of_its_fluid_service() {
    let sent = eleven_sessions(|shares| Spec::Wf2qPlus(Config(Among::Classes(shares))));
    let expected: Vec<u32> = (1..=10).flat_map(|other| [0, other]).chain([0]).collect();
    assert_eq!(sent, expected);
}

/// Only one member has packets: virtual time jumps to its start tag, and the line does not wait.
#[test]
fn virtual_time_jumps_to_the_least_start_tag() {
    let mut trial = Trial::new(&classes([1, 9]));
    trial.offer(0, &[100; 3]);
    trial.offer(1, &[100]);
    assert_eq!(trial.rest_classes(), [1, 0, 0, 0]);
}

/// Weights 1 and 9: after a packet of 100 each, virtual time is 20, and class 0 has been served to
/// 100. While the line is busy, class 1 therefore sends three times (20 to 53.3) before class 0.
/// After a pause earlier service is released: of the start tags 0 and finish tags 100 and 11.1,
/// class 1 goes first. Class 0 is next, since at 10 the next packet of class 1 (11.1) has not
/// begun.
#[test]
fn a_pause_of_the_line_discards_earlier_service() {
    for (pause, expected) in [(Duration::ZERO, [1, 0, 1, 1]), (Duration::from_us(1), [1, 1, 1, 0])] {
        let mut trial = Trial::new(&classes([1, 9]));
        trial.offer(0, &[100]);
        trial.offer(1, &[100]);
        assert_eq!(trial.take(2), [(1, 100), (0, 100)]);
        trial.now += Duration::from_ms(1);
        trial.offer(0, &[100]);
        trial.offer(1, &[100; 3]);
        // The line dequeues when its transmission ends, or at once if it was idle.
        trial.now += pause;
        assert_eq!(trial.take_classes(4), expected);
    }
}

#[test]
fn tags_last() {
    long_run(|shares| Box::new(Wf2qPlus::new(shares)));
}

#[test]
fn flows_have_equal_weights_and_the_fattest_loses_on_overflow() {
    flows(&Spec::Wf2qPlus(Config(Among::Flows { share: NonZeroU32::MIN, limit: PacketCount::new(4), per: Per::Flow })));
}

fn order<const N: usize>(of: [u32; N]) -> Wf2qPlus {
    Wf2qPlus::new(Among::Classes(weights(of)).shares(|weight| weight.get().into()))
}

fn bytes(count: u64) -> Option<WireBytes> {
    Some(WireBytes::new(count))
}

/// Weight 3 and packets of 100: tags and virtual time are thirds, rounded down, and integers again
/// after every third packet.
#[test]
fn remainders_of_divisions_are_carried() {
    let mut order = order([3]);
    for packet in 1..=3000_u128 {
        order.head(0, bytes(100));
        assert_eq!(order.next(), Some(0));
        let (finish, _) = *order.eligible.first().expect("its turn has begun");
        assert_eq!(finish, (packet * (100 << 32)) / 3);
        assert_eq!(order.virtual_time, ((packet - 1) * (100 << 32)) / 3);
        order.sent(0, WireBytes::new(100));
    }
    assert_eq!(order.members[0].start, 100_000 << 32);
}

/// A remainder of virtual time is discarded when the sum of weights changes.
#[test]
fn a_new_sum_of_weights_begins_without_remainder() {
    let mut order = order([3, 1]);
    order.head(0, bytes(100));
    order.next();
    order.sent(0, WireBytes::new(100));
    order.head(0, bytes(100));
    order.next();
    assert_eq!(order.remainder, 1);
    order.head(1, bytes(100));
    assert_eq!((order.remainder, order.total_weight), (0, 4));
    order.remainder = 1;
    order.head(1, None);
    assert_eq!((order.remainder, order.total_weight), (0, 3));
}

/// Virtual time was far ahead of class 0 when it sent, and passes the start tag of its next packet.
/// When it has packets again it has no claim to the time between.
#[test]
fn a_member_behind_virtual_time_starts_at_it() {
    let mut order = order([1, 1]);
    order.head(0, bytes(100));
    assert_eq!(order.next(), Some(0));
    order.virtual_time = 2000 << 32;
    order.sent(0, WireBytes::new(100));
    order.head(0, None);
    assert_eq!(order.members[0].start, 100 << 32);
    order.head(0, bytes(100));
    assert_eq!(order.members[0].start, 2000 << 32);
    assert_eq!(order.waiting.len(), 1);
}
