use std::num::NonZeroU32;

use lastmile_units::{Duration, PacketCount};

use super::{Among, Config, Wf2qPlus};
use crate::fair::trial::{Trial, eleven_sessions, flows, long_run, weights};
use crate::spec::Spec;

fn classes<const N: usize>(of: [u32; N]) -> Spec {
    Spec::Wf2qPlus(Config::Classes(weights(of)))
}

/// The example of the paper: a session with half of the line and ten with a twentieth each. The first sends every second
/// packet, as it would in the fluid system: when virtual time is 5, its second packet (start tag 10) must still wait.
#[test]
fn no_session_runs_ahead_of_its_fluid_service() {
    let sent = eleven_sessions(|shares| Spec::Wf2qPlus(Config::Classes(shares)));
    let expected: Vec<u32> = (1..=10).flat_map(|other| [0, other]).chain([0]).collect();
    assert_eq!(sent, expected);
}

/// Nobody else has packets: virtual time jumps to the start tag of the one who has, and the line does not wait.
#[test]
fn virtual_time_jumps_to_the_least_start_tag() {
    let mut trial = Trial::new(&classes([1, 9]));
    trial.offer(0, &[100; 3]);
    trial.offer(1, &[100]);
    assert_eq!(trial.rest_classes(), [1, 0, 0, 0]);
}

/// Weights 1 and 9: after a packet of 100 each, virtual time is 20, and class 0 has been served to 100. While the line is
/// busy that counts, and class 1 goes three times (20 to 53.3) before it. After a pause it does not: of the start tags 0 and
/// finish tags 100 and 11.1, class 1 goes first, and class 0 next, since at 10 the next of class 1 (11.1) has not begun.
#[test]
fn a_pause_of_the_line_ends_what_a_class_owes() {
    for (pause, expected) in [(Duration::ZERO, [1, 0, 1, 1]), (Duration::from_us(1), [1, 1, 1, 0])] {
        let mut trial = Trial::new(&classes([1, 9]));
        trial.offer(0, &[100]);
        trial.offer(1, &[100]);
        assert_eq!(trial.take(2), [(1, 100), (0, 100)]);
        trial.now += Duration::from_ms(1);
        trial.offer(0, &[100]);
        trial.offer(1, &[100; 3]);
        // The line asks when it is done with the packet before, or at once if it was idle.
        trial.now += pause;
        assert_eq!(trial.take_classes(4), expected);
    }
}

#[test]
fn tags_last() {
    long_run(|shares| Box::new(Wf2qPlus::new(shares)));
}

#[test]
fn flows_have_equal_weights_and_the_fattest_pays_for_a_packet_too_many() {
    flows(&Spec::Wf2qPlus(Among::Flows { share: NonZeroU32::MIN, limit: PacketCount::new(4) }));
}
