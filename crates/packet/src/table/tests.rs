use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{FlowAddresses, IpAddresses};

const IDLE: Duration = Duration::from_s(60);

fn key(n: u32) -> FlowKey {
    let ip = IpAddresses::V4 { source: Ipv4Addr::from(n), destination: Ipv4Addr::new(192, 0, 2, 1) };
    FlowKey { addresses: FlowAddresses { ip, source_port: 1, destination_port: 2 }, protocol: 6 }
}

fn at(seconds: u64) -> Instant {
    Instant::from_ps(Duration::from_s(seconds).as_ps())
}

fn table(max_flows: u32) -> FlowTable {
    FlowTable::new(max_flows, IDLE, HashKey::default())
}

fn never(flow: FlowId, _: FlowKey) {
    panic!("{flow:?} was evicted");
}

#[test]
fn a_flow_keeps_its_number_and_its_reverse_has_another() {
    let mut table = table(10);
    let first = table.intern(at(0), &key(1), never).unwrap();
    let reverse = table.intern(at(0), &key(1).reversed(), never).unwrap();
    let udp = table.intern(at(0), &FlowKey { protocol: 17, ..key(1) }, never).unwrap();
    assert_eq!([first, reverse, udp].map(FlowId::index), [0, 1, 2]);
    assert_eq!(table.intern(at(1000), &key(1), never), Some(first));
    assert_eq!(table.key(first), Some(&key(1)));
    assert_eq!(table.get(&key(2)), None);
}

#[test]
fn a_full_table_gives_no_number_until_a_flow_is_idle() {
    let mut table = table(2);
    table.intern(at(0), &key(1), never);
    table.intern(at(1), &key(2), never);
    table.intern(at(2), &key(1), never);
    assert_eq!(table.intern(at(60), &key(3), never), None);
    let mut evicted = Vec::new();
    let third = table.intern(at(61), &key(3), |flow, key| evicted.push((flow, key)));
    assert_eq!(third, Some(FlowId::new(1)));
    assert_eq!(evicted, [(FlowId::new(1), key(2))]);
    assert_eq!((table.get(&key(2)), table.key(FlowId::new(1))), (None, Some(&key(3))));
    assert_eq!(table.len(), 2);
}

#[test]
fn a_number_that_is_known_keeps_its_flow_alive_without_its_hash() {
    let mut table = table(2);
    let first = table.intern(at(0), &key(1), never).unwrap();
    let second = table.intern(at(0), &key(2), never).unwrap();
    assert_eq!(table.touch_either_way(at(40), first, &key(1)), Some(false));
    assert_eq!(table.touch_either_way(at(50), first, &key(1).reversed()), Some(true));
    for other in [second, FlowId::new(2)] {
        assert_eq!(table.touch_either_way(at(50), other, &key(1)), None);
    }
    let mut evicted = Vec::new();
    assert_eq!(table.expire(at(70), |flow, _| evicted.push(flow)), 1);
    assert_eq!(evicted, [second], "the first was touched 20 s before");
    assert_eq!(table.touch_either_way(at(70), second, &key(2)), None, "its number was given back");
}

/// Nine flows live and the tenth is idle: a new flow looks at four a packet.
#[test]
fn an_idle_flow_among_many_is_found_after_a_few_packets() {
    let mut table = table(10);
    for n in 0..10 {
        table.intern(at(0), &key(n), never);
    }
    for n in 0..9 {
        table.intern(at(59), &key(n), never);
    }
    assert_eq!(table.intern(at(60), &key(10), never), None);
    assert_eq!(table.intern(at(60), &key(10), never), None);
    assert_eq!(table.intern(at(60), &key(10), |_, _| {}), Some(FlowId::new(9)));
    assert_eq!(table.intern(at(60), &key(11), never), None, "all have been looked at");
}

#[test]
fn expiry_finds_a_flow_before_it_is_idle_twice_as_long() {
    let mut table = table(10);
    for n in 0..4 {
        table.intern(at(u64::from(n)), &key(n), never);
    }
    table.intern(at(10), &key(0), never);
    let mut evicted = Vec::new();
    assert_eq!(table.expire(at(62), |flow, _| evicted.push(flow.index())), 2);
    assert_eq!(evicted, [1, 2]);
    assert_eq!(table.key(FlowId::new(1)), None);
    assert_eq!(table.expire(at(121), |flow, _| evicted.push(flow.index())), 1);
    assert_eq!(table.expire(at(122), |flow, _| evicted.push(flow.index())), 1);
    assert_eq!(evicted, [1, 2, 3, 0]);
    assert!(table.is_empty());
}

/// The bound holds for memory too: neither slots nor free list outgrow `max_flows` under endless new flows.
#[test]
fn endless_new_flows_take_no_more_memory_than_the_bound() {
    let mut table = table(100);
    for n in 0..100_000 {
        table.intern(at(u64::from(n)), &key(n), |_, _| {});
    }
    assert!(table.named.len() <= 100 && table.free.len() <= 100 && table.looks.len() <= 100);
    assert!(table.index.capacity() < 1000, "{}", table.index.capacity());
}

#[test]
fn the_hash_key_decides_the_hash_and_not_the_numbers() {
    let keyed = HashKey::new(*b"0123456789abcdef");
    assert_ne!(keyed.hash_one(key(1)), HashKey::default().hash_one(key(1)));
    assert_eq!(keyed.hash_one(key(1)), keyed.hash_one(key(1)));
}

proptest! {
    /// Against a plain map: numbers are exact and unique, the callback hears of each that goes, at no hash key otherwise.
    #[test]
    fn the_table_is_an_exact_map(
        packets in prop::collection::vec((0..20u32, 0..30u64), 1..200),
        hash_key in any::<[u8; 16]>(),
    ) {
        let mut under_test = FlowTable::new(8, IDLE, HashKey::new(hash_key));
        let mut other_key = table(8);
        let mut model: BTreeMap<u32, (FlowKey, Instant)> = BTreeMap::new();
        let mut now = 0;
        for (flow, gap) in packets {
            now += gap;
            let mut evicted = Vec::new();
            let id = under_test.intern(at(now), &key(flow), |id, key| evicted.push((id.index(), key)));
            prop_assert_eq!(id, other_key.intern(at(now), &key(flow), |_, _| {}));
            for (id, key) in evicted {
                let (known, seen) = model.remove(&id).unwrap();
                prop_assert_eq!(known, key);
                prop_assert!(at(now).since(seen) >= IDLE);
            }
            match id {
                Some(id) => {
                    if let Some((known, _)) = model.insert(id.index(), (key(flow), at(now))) {
                        prop_assert_eq!(known, key(flow));
                    }
                }
                None => prop_assert_eq!(model.len(), 8),
            }
            prop_assert_eq!(under_test.len(), model.len());
            prop_assert_eq!(under_test.looks.len(), model.len());
            for (id, (key, _)) in &model {
                prop_assert_eq!(under_test.get(key), Some(FlowId::new(*id)));
                prop_assert_eq!(under_test.key(FlowId::new(*id)), Some(key));
            }
        }
    }
}

proptest! {
    #[test]
    fn the_hash_of_a_key_is_that_of_a_hasher(
        ip in crate::testing::ip_addresses(),
        ports in any::<[u16; 2]>(),
        protocol in any::<u8>(),
        secret in any::<[u8; 16]>(),
    ) {
        let [source_port, destination_port] = ports;
        let key = FlowKey { addresses: FlowAddresses { ip, source_port, destination_port }, protocol };
        prop_assert_eq!(HashKey::new(secret).hash_flow(&key), HashKey::new(secret).hash_one(key));
    }
}
