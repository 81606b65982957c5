use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use lastmile_linklayer::Framing;
use lastmile_packet::{FlowId, Meta};
use proptest::prelude::*;

use super::*;

fn atm() -> LinkLayer {
    LinkLayer::new(8, Framing::Atm).expect("an overhead of 8 bytes")
}

fn wire(sizes: &VecDeque<u16>) -> u64 {
    sizes.iter().map(|&size| atm().on_wire(ByteCount::new(size.into())).as_u64()).sum()
}

proptest! {
    /// Compared with a FIFO of the standard library for each flow. The store has no more slots and
    /// queues than were ever in use.
    #[test]
    fn every_flow_has_a_fifo_of_its_own(steps in prop::collection::vec((0..4_u32, 0..4_u8, 40..1500_u16), 1..200)) {
        let mut flows: Flows<Meta, u8> = Flows::new(FlowKeys::Exact, &atm());
        let mut model: BTreeMap<u32, (u32, VecDeque<u16>)> = BTreeMap::new();
        let mut most = 0;
        for (flow, step, ip_len) in steps {
            let queue = flows.queue_of(flow.into());
            let (number, sizes) = model.entry(flow).or_insert((queue, VecDeque::new()));
            prop_assert_eq!(*number, queue);
            prop_assert_eq!(*flows.state(queue) > 0, !sizes.is_empty(), "a new flow begins anew");
            match step {
                0 | 1 => {
                    flows.push(queue, Meta { flow: FlowId::new(flow), ip_len, ..Meta::default() });
                    *flows.state_mut(queue) = 7;
                    sizes.push_back(ip_len);
                }
                2 => prop_assert_eq!(flows.pop(queue).map(|packet| packet.ip_len), sizes.pop_front()),
                _ => prop_assert_eq!(flows.pop_newest(queue).map(|packet| packet.ip_len), sizes.pop_back()),
            }
            prop_assert_eq!(flows.head(queue).map(|packet| packet.ip_len), sizes.front().copied());
            prop_assert_eq!(flows.packets_in(queue) as usize, sizes.len());
            prop_assert_eq!(flows.wire_in(queue).as_u64(), wire(sizes));
            if sizes.is_empty() {
                flows.release(queue);
                model.remove(&flow);
            }
            let fattest = model.values().max_by_key(|(number, sizes)| (wire(sizes), Reverse(*number)));
            prop_assert_eq!(flows.fattest(), fattest.map(|(number, _)| *number), "the first of several");
            let packets: usize = model.values().map(|(_, sizes)| sizes.len()).sum();
            let bytes: u64 = model.values().flat_map(|(_, sizes)| sizes).map(|&size| u64::from(size)).sum();
            let backlog = Backlog { packets: PacketCount::new(packets as u64), bytes: ByteCount::new(bytes) };
            prop_assert_eq!(flows.backlog(), backlog);
            most = most.max(packets);
            prop_assert!(flows.slots.len() <= most && flows.queues.len() <= 4);
        }
    }
}

#[test]
fn another_seed_lets_other_flows_share_a_bucket() {
    let of = |seed| {
        let count = NonZeroU32::new(64).expect("above zero");
        let mut flows: Flows<Meta, ()> = Flows::new(FlowKeys::Buckets { count, seed }, &atm());
        (0..100).map(|flow| flows.queue_of(flow)).collect::<Vec<_>>()
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
    assert!(of(1).iter().all(|&bucket| bucket < 64));
}
