use lastmile_linklayer::Framing;
use lastmile_packet::{FlowId, Meta};
use lastmile_units::WireBytes;

use super::*;
use crate::fair::harness::{Trial, line};
use crate::spec::Spec;

const NOW: Instant = Instant::ZERO;

fn packet(ip_len: u16) -> Meta {
    Meta { ip_len, ..Meta::default() }
}

/// Quanta of 1000. The fattest flow loses its 1500 bytes; its new head has 100, for which it need
/// not save two turns.
#[test]
fn a_flow_that_loses_its_head_has_a_new_head_size() {
    let share = WireBytes::new(1000);
    let mut trial = Trial::new(&Spec::Drr(Among::Flows { share, limit: PacketCount::new(3), per: Per::Flow }));
    trial.offer(7, &[1500, 100]);
    trial.offer(9, &[1000]);
    trial.offer(8, &[100]);
    assert_eq!(trial.dropped, [(7, 1500)]);
    assert_eq!(trial.rest(), [(7, 100), (9, 1000), (8, 100)]);
}

/// A packet without a matching class goes to the last class. 40, 576 and 1500 bytes are 1, 13 and
/// 32 cells.
#[test]
fn classes_count_sent_packets() {
    let atm = LinkLayer::new(8, Framing::Atm).expect("an overhead of 8 bytes");
    let classes = line([WireBytes::new(2000), WireBytes::new(2000)]);
    let mut scheduler: Node<Meta> = Spec::Drr(Among::Classes(classes)).build(&atm).expect("it can be built");
    let mut none = |_, packet, reason| panic!("{packet:?} dropped: {reason:?}");
    for (flow, size) in [(0, 40), (1, 1500), (9, 576)] {
        scheduler.enqueue(NOW, Meta { flow: FlowId::new(flow), ..packet(size) }, &mut none);
    }
    assert_eq!(std::iter::from_fn(|| scheduler.dequeue(NOW, &mut none)).count(), 3);
    let mut counters = Vec::new();
    scheduler.counters(&mut |counter| {
        if counter.kind == "drr" {
            counters.push(format!("{} {} {}", counter.path, counter.name, counter.value));
        }
    });
    let expected = [
        "classes.0 sent_packets 1",
        "classes.0 sent_bytes 40",
        "classes.0 sent_wire_bytes 53",
        "classes.1 sent_packets 2",
        "classes.1 sent_bytes 2076",
        "classes.1 sent_wire_bytes 2385",
    ];
    assert_eq!(counters, expected);
}
