//! The set-associative hash that finds the queue of a flow.

use std::collections::BTreeSet;

use super::*;

/// 256 flows over 1024 queues: with a plain hash some share, with eight ways none.
#[test]
fn flows_have_queues_of_their_own_up_to_a_load_of_a_quarter() {
    for from in [0, 10_000, 1_000_000] {
        let mut cake = build(&Config { isolation: Isolation::Flows, ..Config::default() });
        let flows = from..from + 256;
        let plain: BTreeSet<u64> = flows.clone().map(|flow| isolation::mix(u64::from(flow)) % QUEUES as u64).collect();
        for flow in flows {
            put(&mut cake, ms(0), packet(flow, 100));
        }
        assert!(plain.len() < 256, "a plain hash would do as well");
        assert_eq!(count(&cake, "best-effort", "way_misses"), 256);
        assert_eq!(count(&cake, "best-effort", "way_collisions"), 0);
    }
}

/// Nine flows of one set: the ninth shares a queue. Once others are gone, it still keeps its order.
#[test]
fn a_flow_without_a_queue_of_its_own_keeps_its_order() {
    let mut cake = build(&Config { isolation: Isolation::Flows, ..Config::default() });
    let set = |flow: u32| isolation::mix(u64::from(flow)) as usize % QUEUES / 8;
    let flows: Vec<u32> = (0..).filter(|&flow| set(flow) == 7).take(9).collect();
    let numbered = |flow, number| Meta { ip_id: number, ..packet(flow, 1000) };
    for &flow in &flows {
        for number in 0..10 {
            put(&mut cake, ms(0), numbered(flow, number));
        }
    }
    assert_eq!(count(&cake, "best-effort", "way_collisions"), 1);
    let mut seen = Vec::new();
    let mut take = |cake: &mut Cake<Meta>, now| {
        let packet = cake.dequeue(now, &mut none)?;
        seen.push((packet.flow.index(), packet.ip_id));
        Some(())
    };
    // All but the shared queue are empty after 82 packets and the check that finds them so; their
    // time to decay passes.
    for _ in 0..88 {
        take(&mut cake, ms(0));
    }
    for number in 10..20 {
        put(&mut cake, ms(0), numbered(flows[8], number));
    }
    while take(&mut cake, ms(0)).is_some() {}
    let of_the_ninth: Vec<u16> = seen.iter().filter(|(flow, _)| *flow == flows[8]).map(|(_, number)| *number).collect();
    assert_eq!(of_the_ninth, (0..20).collect::<Vec<_>>());
}

/// Two flows with one first choice: the second takes the next way, and each later packet of it is
/// found there.
#[test]
fn packets_found_outside_their_first_choice_are_counted() {
    let mut cake = build(&Config { isolation: Isolation::Flows, ..Config::default() });
    let slot = |flow: u32| isolation::mix(u64::from(flow)) as usize % QUEUES;
    let second = (1..).find(|&flow| slot(flow) == slot(0)).expect("a hash");
    for (flow, hits) in [(0, 0), (second, 0), (0, 0), (second, 1), (0, 1), (second, 2)] {
        put(&mut cake, ms(0), packet(flow, 100));
        assert_eq!(count(&cake, "best-effort", "way_hits"), hits);
    }
    assert_eq!(count(&cake, "best-effort", "way_misses"), 2);
}

/// Nine flows of one set, of which the ninth shares. It stops sharing when its queue is empty. Two
/// milliseconds later the others still keep their queues, so that it searches again and collides
/// again.
#[test]
fn sharing_of_a_queue_ends_once_it_is_empty() {
    let mut cake = build(&Config { isolation: Isolation::Flows, ..Config::default() });
    let set = |flow: u32| isolation::mix(u64::from(flow)) as usize % QUEUES / 8;
    let flows: Vec<u32> = (0..).filter(|&flow| set(flow) == 7).take(9).collect();
    flows.iter().for_each(|&flow| put(&mut cake, ms(0), packet(flow, 100)));
    let reported = |cake: &Cake<Meta>| ["way_misses", "way_collisions"].map(|name| count(cake, "best-effort", name));
    assert_eq!(reported(&cake), [8, 1]);
    // A later packet of the guest is no other collision.
    put(&mut cake, ms(0), packet(flows[8], 100));
    assert_eq!(reported(&cake), [8, 1]);
    assert_eq!(std::iter::from_fn(|| cake.dequeue(ms(0), &mut none)).count(), 10);
    // The checks that find the queues empty run while another flow is served: one of another set.
    let other = (0..).find(|&flow| set(flow) == 8).expect("a hash");
    for _ in 0..20 {
        put(&mut cake, ms(1), packet(other, 1500));
        put(&mut cake, ms(1), packet(other, 1500));
        while cake.dequeue(ms(1), &mut none).is_some() {}
    }
    put(&mut cake, ms(2), packet(flows[8], 100));
    assert_eq!(reported(&cake), [9, 2]);
}
