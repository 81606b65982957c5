use lastmile_units::{PacketCount, WireBytes};

use super::{Among, Config};
use crate::fair::Per;
use crate::fair::harness::{Trial, flows, line};
use crate::spec::Spec;

fn quanta<const N: usize>(quanta: [u64; N]) -> Spec {
    Spec::Drr(Config::Classes(line(quanta.map(WireBytes::new))))
}

/// Quanta of 500, as in the figures of the paper. Turn 1: 200 of 500, 300 stay; 500 of 500; 100,
/// 400 stay; 180, 320 stay. Turn 2: 750 and 20 of 800; 500 of 500; 600 and 200 of 900; 700 and 50
/// of 820.
#[test]
fn the_unused_part_of_a_turn_is_kept_for_the_next() {
    let mut trial = Trial::new(&quanta([500; 4]));
    for (class, sizes) in
        [(0, [200, 750, 20].as_slice()), (1, &[500, 500]), (2, &[100, 600, 200]), (3, &[180, 700, 50])]
    {
        trial.offer(class, sizes);
    }
    let turn_1 = [(0, 200), (1, 500), (2, 100), (3, 180)];
    let turn_2 = [(0, 750), (0, 20), (1, 500), (2, 600), (2, 200), (3, 700), (3, 50)];
    assert_eq!(trial.rest(), [turn_1.as_slice(), &turn_2].concat());
}

/// Class 0 has 1400 of 1500 unused when it becomes empty. When it has packets again its deficit is
/// 1500, not 2900: one packet of 1000, and in the next turn, with 2000, two.
#[test]
fn an_empty_queue_keeps_nothing() {
    let mut trial = Trial::new(&quanta([1500, 1500]));
    trial.offer(0, &[100]);
    trial.offer(1, &[1500; 3]);
    assert_eq!(trial.take(2), [(0, 100), (1, 1500)]);
    trial.offer(0, &[1000; 3]);
    assert_eq!(trial.rest(), [(0, 1000), (1, 1500), (0, 1000), (0, 1000), (1, 1500)]);
}

/// A quantum of 100 lets a packet of 250 pass in every third turn, then (50 are left) in every
/// second.
#[test]
fn a_quantum_smaller_than_a_packet_takes_turns_to_save() {
    let mut trial = Trial::new(&quanta([100, 100]));
    trial.offer(0, &[250; 2]);
    trial.offer(1, &[100; 6]);
    let expected = [(1, 100), (1, 100), (0, 250), (1, 100), (1, 100), (0, 250), (1, 100), (1, 100)];
    assert_eq!(trial.rest(), expected);
}

/// Without classes each flow has a turn, and on overflow the fattest loses a packet.
#[test]
fn flows_take_turns_and_the_fattest_loses_its_oldest() {
    let share = WireBytes::new(1500);
    let mut trial = Trial::new(&Spec::Drr(Among::Flows { share, limit: PacketCount::new(4), per: Per::Flow }));
    trial.offer(7, &[1500, 1400, 1300]);
    trial.offer(9, &[1000]);
    trial.offer(8, &[100]);
    assert_eq!(trial.dropped, [(7, 1500)]);
    assert_eq!(trial.rest(), [(7, 1400), (9, 1000), (8, 100), (7, 1300)]);
    flows(&Spec::Drr(Among::Flows { share, limit: PacketCount::new(4), per: Per::Flow }));
}
