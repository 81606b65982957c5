use lastmile_linklayer::Framing;
use lastmile_packet::{FlowId, Meta};
use lastmile_units::WireBytes;

use super::*;
use crate::fair::harness::{Trial, line};
use crate::spec::Spec;

const NOW: Instant = Instant::ZERO;

fn plain() -> LinkLayer {
    LinkLayer::new(0, Framing::None).expect("no overhead")
}

fn packet(ip_len: u16) -> Meta {
    Meta { ip_len, ..Meta::default() }
}

/// Two of three packets have equal sizes. A packet refused on arrival is the newest of its size;
/// any other drop is the oldest.
#[test]
fn the_size_of_a_dropped_packet_is_removed_at_its_position() {
    use DropReason::{AckFiltered, Aqm, Head, Policed, Tail, TooLarge};
    let left = |arriving, reason| {
        let mut sizes = VecDeque::from([100, 200, 100]);
        let mut dropped = 0;
        let mut sink = |_, _, _| dropped += 1;
        let mut tracker = SizeTracker { sizes: &mut sizes, link_layer: &plain(), arriving, drops: &mut sink };
        tracker.dropped(NOW, packet(100), reason);
        assert_eq!(dropped, 1, "it is handed on");
        Vec::from(sizes)
    };
    for reason in [Tail, TooLarge, Aqm, Policed] {
        assert_eq!(left(true, reason), [100, 200], "{reason:?}");
        assert_eq!(left(false, reason), [200, 100], "{reason:?}");
    }
    for reason in [Head, AckFiltered] {
        assert_eq!([left(true, reason), left(false, reason)], [[200, 100]; 2], "{reason:?}");
    }
}

#[test]
fn a_packet_of_changed_size_removes_the_oldest_entry() {
    let mut sizes = VecDeque::from([100, 200]);
    remove_size(&mut sizes, 300, false);
    assert_eq!(sizes, [200]);
}

#[test]
fn a_packet_made_below_is_recorded_and_reported() {
    struct Made(usize);
    impl DropSink<Meta> for Made {
        fn dropped(&mut self, _: Instant, packet: Meta, _: DropReason) {
            panic!("{packet:?} dropped");
        }
        fn created(&mut self, _: Instant, _: &Meta) {
            self.0 += 1;
        }
    }
    let (mut sizes, mut made) = (VecDeque::from([100]), Made(0));
    SizeTracker { sizes: &mut sizes, link_layer: &plain(), arriving: true, drops: &mut made }.created(NOW, &packet(40));
    assert_eq!((sizes, made.0), (VecDeque::from([100, 40]), 1));
}

/// Quanta of 1000. The fattest flow loses its 1500 bytes; its new head has 100, for which it need
/// not save two turns.
#[test]
fn a_flow_that_loses_its_head_has_a_new_head_size() {
    let share = WireBytes::new(1000);
    let mut trial = Trial::new(&Spec::Drr(Among::Flows { share, limit: PacketCount::new(3) }));
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
