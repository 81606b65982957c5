use core::net::{Ipv4Addr, Ipv6Addr};
use std::num::NonZeroU32;

use lastmile_linklayer::preset;
use lastmile_packet::{FlowAddresses, FlowId, IpAddresses, Meta};
use lastmile_units::{ByteCount, Duration, Instant, PacketCount, WireBytes};

use super::*;
use crate::fair::{Among, FlowKeys, fq_codel, fq_pie, sfq, wf2q_plus, wfq};
use crate::{Discipline as _, Overflow, Spec};

/// Flow `10 * s + d` goes from host `s` to host `d`; from flow 100 on by IPv6.
struct Streets;

impl FlowDirectory for Streets {
    fn addresses(&self, flow: FlowId) -> FlowAddresses {
        let (source, destination) = ((flow.index() / 10 % 10) as u8, (flow.index() % 10) as u8);
        let ip = if flow.index() < 100 {
            let host = |street, host| Ipv4Addr::new(192, 0, street, host);
            IpAddresses::V4 { source: host(2, source), destination: host(3, destination) }
        } else {
            let host = |street: u16, host: u8| Ipv6Addr::new(0x2001, 0xdb8, street, 0, 0, 0, 0, host.into());
            IpAddresses::V6 { source: host(2, source), destination: host(3, destination) }
        };
        FlowAddresses { ip, ..FlowAddresses::of_simulated(flow) }
    }
}

fn environment() -> Environment {
    Environment::new(preset::IP.link).with_flows(Arc::new(Streets))
}

fn packet(flow: u32) -> Meta {
    Meta { flow: FlowId::new(flow), ip_len: 1000, ..Meta::default() }
}

#[test]
fn a_tag_is_that_of_the_flow_the_source_the_destination_or_both() {
    let same = |per, a: u32, b: u32| {
        let tags = Tags::new(per, &environment());
        tags.of(&packet(a)) == tags.of(&packet(b))
    };
    for six in [0, 100] {
        let of = |per| [(12, 12), (12, 13), (12, 22), (12, 21)].map(|(a, b)| same(per, six + a, six + b));
        assert_eq!(of(Per::Flow), [true, false, false, false]);
        assert_eq!(of(Per::Source), [true, true, false, false]);
        assert_eq!(of(Per::Destination), [true, false, true, false]);
        assert_eq!(of(Per::Hosts), [true, false, false, false]);
    }
    assert!(!same(Per::Source, 12, 112), "an IPv6 host is another");
}

/// Host 1 has four flows to hosts 1 to 4, host 2 has one; all send as much as they can. By flow host 1 gets four
/// fifths, by source half. Each discipline that separates flows does so.
#[test]
fn a_host_with_four_flows_gets_no_more_than_one_with_one() {
    let (limit, quantum) = (PacketCount::new(1000), WireBytes::new(1000));
    let buckets = FlowKeys::Buckets { count: NonZeroU32::new(1024).expect("above zero"), seed: 7 };
    let specs = |per| {
        let one = NonZeroU32::MIN;
        let mut specs = vec![
            Spec::Drr(Among::Flows { share: quantum, limit, per }),
            Spec::Wfq(wfq::Config(Among::Flows { share: one, limit, per })),
            Spec::Wf2qPlus(wf2q_plus::Config(Among::Flows { share: one, limit, per })),
        ];
        for flows in [FlowKeys::Exact, buckets] {
            let (perturb, depth, drop) = (Duration::ZERO, limit, Overflow::Tail);
            specs.push(Spec::Sfq(sfq::Config { flows, per, quantum, perturb, limit, depth, drop }));
            specs.push(Spec::FqCodel(fq_codel::Config { flows, per, quantum, limit, ..fq_codel::Config::default() }));
            specs.push(Spec::FqPie(fq_pie::Config { flows, per, quantum, limit, ..fq_pie::Config::default() }));
        }
        specs
    };
    for (per, expected) in [(Per::Flow, 80), (Per::Source, 50)] {
        for spec in specs(per) {
            let mut scheduler = spec.build_in::<Meta>(&environment()).expect("a tree that can be built");
            let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
            for _ in 0..100 {
                for flow in [11, 12, 13, 14, 21] {
                    scheduler.enqueue(Instant::ZERO, packet(flow), &mut none);
                }
            }
            let of_first = (0..100)
                .filter(|_| {
                    let packet = scheduler.dequeue(Instant::ZERO, &mut none).expect("a backlog");
                    packet.flow.index() / 10 == 1
                })
                .count();
            assert!(of_first.abs_diff(expected) <= 1, "{per:?}: {of_first} of 100 by {spec:?}");
        }
    }
    assert_eq!(ByteCount::new(1000), packet(1).ip_bytes());
}
