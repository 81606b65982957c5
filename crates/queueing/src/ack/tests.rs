use lastmile_packet::{EcnBytes, EcnLayout, EcnOrder, FlowId, Options, TcpFlags};

use super::*;
use crate::Discipline;
use crate::classify::Match;

/// The non-zero counters of a regulator, without those of its queue.
pub(super) fn counted(discipline: &impl Discipline<Meta>) -> Vec<(&'static str, u64)> {
    let mut counts = Vec::new();
    discipline.counters(&mut |counter| {
        if counter.path.is_empty() && counter.value > 0 {
            counts.push((counter.name, counter.value));
        }
    });
    counts
}

/// Segments of 1000 bytes: block (a, b) holds segments a to b - 1 above the number 10 000.
fn fields(ack: u32, blocks: &[(u32, u32)]) -> AckFields {
    let number = |segments: u32| SeqNumber::new(10_000 + segments * 1000);
    let blocks: Vec<_> =
        blocks.iter().map(|&(left, right)| SackBlock { left: number(left), right: number(right) }).collect();
    AckFields { ack: number(ack), window: 1000, options: Options::NONE.with_sack(&blocks) }
}

/// An ACK and seven duplicates of it, each with a block that is a segment longer, but for the seventh, which reports a
/// duplicate segment (D-SACK).
pub(super) fn duplicates_with_sack() -> [Meta; 8] {
    let duplicate = |blocks: &[(u32, u32)]| {
        let AckFields { ack, window, options } = fields(0, blocks);
        let header_len = 40 + options.header_bytes();
        let ip_len = u16::from(header_len);
        let mut meta = Meta { ip_len, header_len, flags: TcpFlags::ACK, ack, window, ..Meta::default() };
        meta.set_options(options);
        meta
    };
    [0, 1, 2, 3, 4, 5, 6, 7].map(|segments| match segments {
        0 => duplicate(&[]),
        7 => duplicate(&[(3, 4), (2, 8)]),
        _ => duplicate(&[(2, 2 + segments)]),
    })
}

#[test]
fn a_wider_block_covers_a_narrower_one() {
    assert!(covers_sack(&fields(0, &[(2, 3)]), &fields(0, &[(2, 5)])));
    assert!(!covers_sack(&fields(0, &[(2, 5)]), &fields(0, &[(2, 3)])));
}

#[test]
fn every_block_must_be_covered() {
    assert!(covers_sack(&fields(0, &[(2, 3), (5, 6)]), &fields(0, &[(5, 7), (2, 3)])));
    assert!(!covers_sack(&fields(0, &[(2, 3), (5, 6)]), &fields(0, &[(5, 7)])));
}

/// The hole is filled: the blocks lie below the number.
#[test]
fn the_cumulative_number_covers_blocks_below_it() {
    assert!(covers_sack(&fields(0, &[(2, 3)]), &fields(3, &[])));
    assert!(!covers_sack(&fields(0, &[(2, 4)]), &fields(3, &[])));
    assert!(covers_sack(&fields(0, &[(2, 9)]), &fields(3, &[(3, 9)])));
    // Segment 3, or segment 8, would not be reported.
    assert!(!covers_sack(&fields(0, &[(2, 9)]), &fields(3, &[(4, 9)])));
    assert!(!covers_sack(&fields(0, &[(2, 9)]), &fields(3, &[(3, 8)])));
}

/// RFC 2883, section 4: the duplicate lies below the number, or inside the second block.
#[test]
fn a_dsack_is_never_covered() {
    let below = fields(4, &[(1, 2)]);
    let inside = fields(4, &[(6, 7), (6, 9)]);
    assert!(is_dsack(&below) && is_dsack(&inside));
    assert!(!covers_sack(&below, &fields(9, &[])));
    assert!(!covers_sack(&inside, &fields(9, &[])));
    assert!(!is_dsack(&fields(4, &[(6, 9), (11, 12)])));
}

#[test]
fn an_ack_without_timestamps_does_not_stand_for_one_with() {
    let plain = fields(1, &[]);
    let stamped = AckFields { options: Options::NONE.with_timestamps(7, 7), ..fields(0, &[]) };
    assert!(!may_replace(&stamped, &plain));
    assert!(may_replace(&plain, &stamped));
    assert!(may_replace(&stamped, &AckFields { options: Options::NONE.with_timestamps(8, 7), ..plain }));
    // PAWS: the sender would take the older value for an old segment, whatever its echo.
    assert!(may_replace(&stamped, &AckFields { options: Options::NONE.with_timestamps(7, 6), ..plain }));
    assert!(!may_replace(&stamped, &AckFields { options: Options::NONE.with_timestamps(6, 8), ..plain }));
    let last = AckFields { options: Options::NONE.with_timestamps(u32::MAX, 7), ..fields(0, &[]) };
    assert!(
        may_replace(&last, &AckFields { options: Options::NONE.with_timestamps(2, 7), ..plain }),
        "the clock wraps"
    );
}

fn ack(number: u32, window: u16, options: Options) -> Meta {
    let mut meta = Meta { ip_len: 40, header_len: 40, flags: TcpFlags::ACK, window, ..Meta::default() };
    meta.ack = SeqNumber::new(number);
    meta.set_options(options);
    meta
}

fn segment(meta: &Meta) -> Segment<'_> {
    meta.segment().expect("a simulated segment is sound")
}

/// RFC 5681, section 2: a duplicate has the number and the window of the previous ACK. RFC 6675,
/// section 2: or SACK blocks.
#[test]
fn a_window_update_is_no_duplicate_unless_it_has_sack_blocks() {
    let newest = Newest::of(segment(&ack(u32::MAX, 100, Options::NONE)));
    let sack = Options::NONE.with_sack(&[SackBlock::default()]);
    assert_eq!(newest.kind_of(segment(&ack(u32::MAX, 100, Options::NONE))), AckKind::Duplicate);
    assert_eq!(newest.kind_of(segment(&ack(u32::MAX, 0, Options::NONE))), AckKind::WindowUpdate);
    assert_eq!(newest.kind_of(segment(&ack(u32::MAX, 0, sack))), AckKind::Duplicate);
    assert_eq!(newest.kind_of(segment(&ack(5, 100, Options::NONE))), AckKind::Advance);
    assert_eq!(newest.kind_of(segment(&ack(u32::MAX - 1, 100, Options::NONE))), AckKind::Old);
}

#[test]
fn an_overtaken_ack_is_not_the_newest() {
    let mut newest = Newest::of(segment(&ack(2000, 100, Options::NONE)));
    newest.note(segment(&ack(1000, 50, Options::NONE)));
    assert_eq!(newest.kind_of(segment(&ack(2000, 100, Options::NONE))), AckKind::Duplicate);
    newest.note(segment(&ack(2000, 50, Options::NONE)));
    assert_eq!(newest.kind_of(segment(&ack(2000, 50, Options::NONE))), AckKind::Duplicate);
}

#[test]
fn unregulated_packets_are_counted_by_reason() {
    let mut passed = Passed::default();
    let plain = ack(1, 1, Options::NONE);
    let mut exempt = Condition::from(Match::Flow(FlowId::new(9)));
    let mut list = lastmile_packet::AckList::EMPTY;
    assert!(list.push(1460, lastmile_packet::AckList::MAX_OPTION_BYTES));
    let mut damaged = plain;
    damaged.mark.set_unverified();
    let others = [
        Meta { protocol: Protocol::Other, ..plain },
        Meta { ip_len: 41, ..plain },
        Meta { flags: TcpFlags::ACK.with(TcpFlags::PSH), ..plain },
        ack(1, 1, Options::NONE.with_unknown()),
        Meta { flow: FlowId::new(9), ..plain },
        Meta { traffic_class: 3, ..plain },
        ack(1, 1, Options::NONE.with_list(&list)),
        damaged,
    ];
    for other in others {
        assert_eq!(passed.may_regulate(Instant::ZERO, &other, &mut exempt), None, "{other:?}");
    }
    assert!(passed.may_regulate(Instant::ZERO, &plain, &mut exempt).is_some());
    // ECT(0): some stacks send ACKs that may be marked (RFC 8311); only the mark matters.
    let may_be_marked = Meta { traffic_class: 2, ..plain };
    assert!(passed.may_regulate(Instant::ZERO, &may_be_marked, &mut exempt).is_some());
    let mut counts = Vec::new();
    passed.show("test", &mut |counter| counts.push(counter.value));
    assert_eq!(counts, [1, 1, 1, 1, 1, 1, 1, 1, 0]);
}

/// RFC 9768, section 3.2.3: the last report of marked bytes must arrive.
#[test]
fn a_report_of_marked_bytes_is_not_lost() {
    let plain = fields(1, &[]);
    let counted = |ce| {
        let counters = EcnBytes { ect0: 1, ce, ect1: 1 };
        AckFields { options: Options::NONE.with_accecn(counters), ..plain }
    };
    assert!(may_replace(&counted(1), &counted(2)));
    assert!(may_replace(&plain, &counted(2)));
    assert!(!may_replace(&counted(2), &plain));
    let short = |count| {
        let layout = EcnLayout::new(EcnOrder::Ect1First, count).unwrap();
        let counters = EcnBytes { ect0: 1, ce: 2, ect1: 1 };
        AckFields { options: Options::NONE.with_accecn_as(counters, layout), ..plain }
    };
    assert!(may_replace(&short(1), &short(2)) && may_replace(&short(2), &counted(2)));
    assert!(!may_replace(&short(2), &short(1)) && !may_replace(&counted(2), &short(2)));
}
