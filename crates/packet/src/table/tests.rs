use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{FlowAddresses, IpAddresses};

fn key(n: u32) -> FlowKey {
    let ip = IpAddresses::V4 { source: Ipv4Addr::from(n), destination: Ipv4Addr::new(192, 0, 2, 1) };
    FlowKey { addresses: FlowAddresses { ip, source_port: 1, destination_port: 2 }, protocol: 6 }
}

fn table(max_flows: u32) -> FlowTable {
    FlowTable::new(max_flows, HashKey::default())
}

/// The number of a flow after this number of its packets.
fn hear(table: &mut FlowTable, flow: u32, packets: u32) -> FlowId {
    (0..packets).map(|_| table.intern(&key(flow)).id).last().expect("a packet")
}

#[test]
fn a_flow_keeps_its_number_and_its_reverse_has_another() {
    let mut table = table(10);
    let first = table.intern(&key(1));
    let reverse = table.intern(&key(1).reversed()).id;
    let udp = table.intern(&FlowKey { protocol: 17, ..key(1) }).id;
    assert!(first.new);
    assert_eq!([first.id, reverse, udp].map(FlowId::index), [0, 1, 2]);
    assert_eq!(table.intern(&key(1)), Interned { new: false, ..first });
    assert_eq!(table.key(first.id), Some(&key(1)));
    assert_eq!((table.get(&key(2)), table.evicted()), (None, 0));
}

/// The second and third of four flows have one packet each; the second arrived first.
#[test]
fn in_a_full_table_the_oldest_flow_of_one_packet_gives_way() {
    let mut table = table(4);
    for (flow, packets) in [(0, 2), (1, 1), (2, 1), (3, 2)] {
        hear(&mut table, flow, packets);
    }
    let second = table.get(&key(1)).unwrap();
    let new = table.intern(&key(4));
    assert_eq!((new.new, table.slot(new.id), table.slot(second)), (true, 1, 1));
    assert_ne!(new.id, second, "the slot is the same, the number another");
    assert_eq!((table.get(&key(1)), table.key(second), table.key(new.id)), (None, None, Some(&key(4))));
    assert_eq!((table.evicted(), table.len()), (1, 4));
    assert_eq!(table.slot(table.clone().intern(&key(5)).id), 2, "the new one is younger than the third");
}

/// A quarter of the slots is for fresh flows. The first two of seven settled flows were active
/// since their last visit.
#[test]
fn where_more_than_three_quarters_are_settled_one_of_them_is_fresh_again() {
    let mut table = table(8);
    for flow in 0..6 {
        hear(&mut table, flow, if flow < 2 { 3 } else { 2 });
    }
    hear(&mut table, 6, 1);
    hear(&mut table, 7, 1);
    hear(&mut table, 6, 1);
    hear(&mut table, 100, 1);
    let left = |table: &FlowTable| (0..8).filter(|flow| table.get(&key(*flow)).is_none()).collect::<Vec<_>>();
    assert_eq!(left(&table), [7], "it is older than the third");
    hear(&mut table, 101, 1);
    assert_eq!(left(&table), [2, 7]);
    // A fresh flow that becomes active is settled again, and the next one becomes fresh.
    hear(&mut table, 3, 1);
    assert_eq!((table.fresh.len(), table.settled.len()), (2, 6));
}

/// More consecutive active flows than one step visits: until all are visited, more flows are
/// settled than the limit.
#[test]
fn active_flows_in_a_row_are_passed_over_in_steps() {
    let mut table = table(100);
    for flow in 0..75 {
        hear(&mut table, flow, if flow < 40 { 3 } else { 2 });
    }
    for (new, settled) in [(75, 76), (76, 77), (77, 75)] {
        hear(&mut table, new, 2);
        assert_eq!(table.settled.len(), settled);
    }
    assert_eq!(table.fresh.first(), Some(40));
}

/// A million flows of one packet each, in uninterrupted sequence: 200 connections keep their
/// numbers, active or not.
#[test]
fn a_flood_of_one_packet_flows_costs_no_settled_flow_its_number() {
    let mut table = table(1 << 18);
    let connections: Vec<FlowId> = (0..200).map(|flow| hear(&mut table, flow, 2)).collect();
    for flow in 1000..1_001_000 {
        assert!(table.intern(&key(flow)).new);
    }
    assert_eq!((0..200).map(|flow| table.get(&key(flow)).unwrap()).collect::<Vec<_>>(), connections);
    assert_eq!(table.evicted(), 1_000_200 - (1 << 18));
}

/// Flows of two packets each become settled. Active connections keep their numbers.
#[test]
fn a_flood_of_two_packet_flows_costs_no_active_flow_its_number() {
    let mut table = table(1 << 12);
    let connections: Vec<FlowId> = (0..200).map(|flow| hear(&mut table, flow, 3)).collect();
    for flow in 1000..101_000 {
        hear(&mut table, flow, 2);
        assert_eq!(hear(&mut table, flow % 200, 1), connections[flow as usize % 200]);
    }
}

#[test]
fn a_number_that_is_known_keeps_its_flow_alive_without_its_hash() {
    let mut table = table(2);
    let first = table.intern(&key(1)).id;
    let second = table.intern(&key(2)).id;
    assert_eq!(table.touch_either_way(first, &key(1)), Some(false));
    assert_eq!(table.touch_either_way(first, &key(1).reversed()), Some(true));
    for other in [second, FlowId::new(2), FlowId::NONE] {
        assert_eq!(table.touch_either_way(other, &key(1)), None);
    }
    table.intern(&key(3));
    assert_eq!((table.get(&key(1)), table.get(&key(2))), (Some(first), None));
    // The slot holds a flow with this key again, under another number.
    table.intern(&key(2));
    assert_eq!(table.touch_either_way(second, &key(2)), None);
}

/// With a single slot there are 2^32 - 1 generations; with 2^20 slots 4095.
#[test]
fn a_number_comes_again_only_after_all_generations() {
    let mut table = table(FlowTable::MOST);
    let first = FlowId::new(7);
    let mut id = first;
    for generation in 1..4095 {
        id = table.next_generation(id);
        assert_eq!((table.slot(id), id.index() >> 20), (7, generation));
    }
    assert_eq!(table.next_generation(id), first);
    let last = FlowId::new(u32::MAX - 1);
    assert!(
        (0..5000)
            .scan(last, |id, _| {
                *id = table.next_generation(*id);
                Some(*id)
            })
            .all(|id| id != FlowId::NONE)
    );
    assert_eq!(table.intern(&key(1)).id, FlowId::new(0));
    assert_eq!(self::table(1).next_generation(FlowId::new(6)), FlowId::new(7));
}

/// Memory is bounded too, under endless new flows.
#[test]
fn endless_new_flows_take_no_more_memory_than_the_bound() {
    let mut table = table(100);
    for n in 0..100_000 {
        hear(&mut table, n, 1 + n % 3);
    }
    assert_eq!((table.len(), table.named.len()), (100, 100));
    assert_eq!(table.fresh.len() + table.settled.len(), 100);
    assert!(table.index.capacity() < 1000, "{}", table.index.capacity());
}

#[test]
fn the_hash_key_decides_the_hash_and_not_the_numbers() {
    let keyed = HashKey::new(*b"0123456789abcdef");
    assert_ne!(keyed.hash_one(key(1)), HashKey::default().hash_one(key(1)));
    assert_eq!(keyed.hash_one(key(1)), keyed.hash_one(key(1)));
}

proptest! {
    /// Compared with a plain map: numbers are exact, unique and independent of the hash key;
    /// evicted flows are fresh.
    #[test]
    fn the_table_is_an_exact_map(
        packets in prop::collection::vec(0..40_u32, 1..400),
        max_flows in 1..20_u32,
        hash_key in any::<[u8; 16]>(),
    ) {
        let mut under_test = FlowTable::new(max_flows, HashKey::new(hash_key));
        let mut other_key = table(max_flows);
        let mut model: BTreeMap<u32, (FlowId, u32)> = BTreeMap::new();
        let mut given = std::collections::BTreeSet::new();
        for flow in packets {
            let fresh = under_test.fresh.first().map(|slot| under_test.named[slot as usize].key);
            let full = model.len() as u32 == max_flows;
            let Interned { id, new } = under_test.intern(&key(flow));
            prop_assert_eq!(other_key.intern(&key(flow)), Interned { id, new });
            prop_assert_eq!(new, !model.contains_key(&flow));
            prop_assert!(under_test.slot(id) < max_flows as usize);
            if new {
                prop_assert!(given.insert(id), "a number is given once");
                if full {
                    let gone: Vec<u32> = model.keys().copied().filter(|old|
                        under_test.get(&key(*old)).is_none()).collect();
                    prop_assert_eq!(gone.len(), 1);
                    model.remove(&gone[0]).unwrap();
                    prop_assert_eq!(Some(key(gone[0])), fresh,
                        "with fewer settled than are looked at there is always a fresh one");
                }
            }
            let entry = model.entry(flow).or_insert((id, 0));
            prop_assert_eq!(entry.0, id);
            entry.1 += 1;
            prop_assert_eq!(under_test.len(), model.len());
            for (flow, (id, _)) in &model {
                prop_assert_eq!(under_test.get(&key(*flow)), Some(*id));
                prop_assert_eq!(under_test.key(*id), Some(&key(*flow)));
            }
        }
    }
}
