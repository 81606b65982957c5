//! Every discipline under the contract: a line each.

use lastmile_packet::{Meta, Protocol};
use lastmile_queueing::DropReason::{
    AckCollapsed, AckDuplicate, AckFiltered, AckMerged, AckSignal, Head, Tail, TooLarge,
};
use lastmile_queueing::ack::cake::{self, Mode};
use lastmile_queueing::ack::filter::{self, Fraction, Rules};
use lastmile_queueing::ack::regenerator::{Config, Factor, Know, Release};
use lastmile_queueing::ack::sad::{Duplicates, Report};
use lastmile_queueing::ack::{clamp, collapsing, handshakes, pacing, sad};
use lastmile_queueing::classify::{Bound, rules};
use lastmile_queueing::meter::tbf::Peak;
use lastmile_queueing::meter::{drain, tbf};
use lastmile_queueing::sched::custom::{self, Count, Excess};
use lastmile_queueing::sched::hfsc::{self, ServiceCurve, Share};
use lastmile_queueing::sched::tree::{self, Rule, Tree};
use lastmile_queueing::sched::{cbq, htb, priority};
use lastmile_queueing::spec::{ClassSpec, Over, Spec};
use lastmile_queueing::{Limit, Match, Overflow, fifo};
use lastmile_units::{BitRate, ByteCount, CellCount, Duration, PacketCount, Ratio, WireBytes};

use crate::contract::{Promise, Rate, contract};

pub(crate) const PACKETS: Limit = Limit::Packets(PacketCount::new(10));
pub(crate) const BYTES: Limit = Limit::Bytes(ByteCount::new(4000));
const SMALL: Limit = Limit::Bytes(ByteCount::new(400));
const CELLS: Limit = Limit::Cells(CellCount::new(40));

pub(crate) fn fifo(limit: Limit, drop: Overflow) -> Spec {
    Spec::Fifo(fifo::Config { limit, drop })
}

contract!(fifo_in_packets_tail, Promise::of(&[Tail]), |line| fifo(PACKETS, Overflow::Tail).build(line));
contract!(fifo_in_packets_head, Promise::of(&[Head]), |line| fifo(PACKETS, Overflow::Head).build(line));
contract!(fifo_in_bytes_tail, Promise::of(&[Tail]), |line| fifo(BYTES, Overflow::Tail).build(line));
contract!(fifo_in_bytes_head, Promise::of(&[Head]), |line| fifo(BYTES, Overflow::Head).build(line));
contract!(fifo_in_cells_tail, Promise::of(&[Tail]), |line| fifo(CELLS, Overflow::Tail).build(line));
contract!(fifo_in_cells_head, Promise::of(&[Head]), |line| fifo(CELLS, Overflow::Head).build(line));
contract!(fifo_too_small_for_some_tail, Promise::of(&[Tail, TooLarge]), |line| fifo(SMALL, Overflow::Tail).build(line));
contract!(fifo_too_small_for_some_head, Promise::of(&[Head, TooLarge]), |line| fifo(SMALL, Overflow::Head).build(line));

fn acks_first(urgent: Spec, rest: Spec) -> Spec {
    let class = |matches, queue| ClassSpec { matches, queue };
    Spec::Priority(priority::Config { classes: vec![class(Match::PureAck, urgent), class(Match::Any, rest)] })
}

fn is_ack(meta: &Meta) -> u8 {
    u8::from(meta.is_pure_ack() || meta.protocol == Protocol::AckSignal)
}

contract!(priority_over_fifos, Promise::of(&[Tail, Head]).by_class(is_ack), |line| {
    acks_first(fifo(PACKETS, Overflow::Head), fifo(BYTES, Overflow::Tail)).build(line)
});
contract!(priority_over_a_shaped_class, Promise::of(&[Tail]).waits().by_class(is_ack), |line| {
    acks_first(tbf(RATE, BURST, fifo(PACKETS, Overflow::Tail)), fifo(BYTES, Overflow::Tail)).build(line)
});

fn in_turns(count: Count, excess: Excess, rest: Spec) -> Spec {
    let class = |matches, queue| custom::Class { class: ClassSpec { matches, queue }, count };
    let classes = vec![class(Match::PureAck, fifo(PACKETS, Overflow::Head)), class(Match::Any, rest)];
    Spec::Custom(custom::Config { classes, excess })
}

contract!(custom_in_bytes, Promise::of(&[Tail, Head]).by_class(is_ack), |line| {
    in_turns(Count::Bytes(WireBytes::new(300)), Excess::Forgotten, fifo(BYTES, Overflow::Tail)).build(line)
});
contract!(custom_that_carries_its_excess, Promise::of(&[Tail, Head]).by_class(is_ack), |line| {
    in_turns(Count::Bytes(WireBytes::new(300)), Excess::Carried, fifo(BYTES, Overflow::Tail)).build(line)
});
contract!(custom_in_packets_over_a_shaped_class, Promise::of(&[Tail, Head]).waits().by_class(is_ack), |line| {
    let shaped = tbf(RATE, BURST, fifo(PACKETS, Overflow::Tail));
    in_turns(Count::Packets(PacketCount::new(3)), Excess::Carried, shaped).build(line)
});

/// A family of two next to a third class; ACKs and datagrams have one each, and all other packets
/// the third.
fn tree<S>(share: impl Fn(&str) -> S, ack: Spec, datagram: Spec, rest: Spec) -> Tree<S> {
    let class = |name: &str, parent: &str, queue| tree::Class {
        name: name.into(),
        parent: (!parent.is_empty()).then(|| parent.into()),
        share: share(name),
        queue,
    };
    let classes = vec![
        class("line", "", None),
        class("family", "line", None),
        class("ack", "family", Some(ack)),
        class("datagram", "family", Some(datagram)),
        class("rest", "line", Some(rest)),
    ];
    let rule = |matches, class: &str| Rule { matches, class: class.into() };
    let rules = vec![rule(Match::PureAck, "ack"), rule(Match::Protocol(Protocol::Udp), "datagram")];
    Tree { classes, rules, default: Some("rest".into()) }
}

fn kind(meta: &Meta) -> u8 {
    if meta.protocol == Protocol::Udp { 2 } else { is_ack(meta) }
}

fn htb(hysteresis: bool, rest: Spec) -> Spec {
    let share = |name: &str| {
        let (rate, ceil, priority) = match name {
            "line" => (777, 777, 0),
            "family" => (500, 600, 0),
            "ack" => (50, 600, 0),
            "datagram" => (333, 777, 1),
            _ => (200, 777, 1),
        };
        let ceil = Some(BitRate::from_kbit_per_s(ceil));
        htb::Share { ceil, priority, ..htb::Share::of(BitRate::from_kbit_per_s(rate)) }
    };
    let tree = tree(share, fifo(PACKETS, Overflow::Tail), fifo(BYTES, Overflow::Head), rest);
    Spec::Htb(htb::Config { hysteresis, ..htb::Config::new(tree) })
}

fn cbq(borrow: bool, rest: Spec) -> Spec {
    let share = |name: &str| {
        let percent = match name {
            "line" => 100,
            "family" => 60,
            "ack" => 20,
            "datagram" => 35,
            _ => 40,
        };
        let share = cbq::Portion::Share(Ratio::from_percent(percent).expect("a share"));
        cbq::Share { borrow: borrow || name == "ack", isolated: !borrow && name == "ack", ..cbq::Share::of(share) }
    };
    let tree = tree(share, fifo(PACKETS, Overflow::Tail), fifo(BYTES, Overflow::Head), rest);
    Spec::Cbq(cbq::Config::new(tree, RATE))
}

/// A class sends within its rate whatever the class above owes, so in any interval each of the five
/// may have a burst and a packet, with hysteresis another burst, and all together at most the rate
/// of the root.
fn below_a_root(bursts: u64) -> Rate {
    Rate { rate: RATE, burst: WireBytes::new(5 * bursts * BURST.as_u64()), reached: false }
}

contract!(
    htb_of_two_levels,
    Promise::of(&[Tail, Head]).shapes(below_a_root(2)).names_times_too_early().by_class(kind),
    |line| htb(false, fifo(PACKETS, Overflow::Tail)).build(line)
);
contract!(
    htb_with_hysteresis,
    Promise::of(&[Tail, Head]).shapes(below_a_root(3)).names_times_too_early().by_class(kind),
    |line| htb(true, fifo(PACKETS, Overflow::Tail)).build(line)
);
contract!(
    htb_with_a_coarse_timer,
    Promise::of(&[Tail, Head]).shapes(below_a_root(2)).waits().names_times_too_early().by_class(kind),
    |line| {
        let Spec::Htb(config) = htb(false, fifo(PACKETS, Overflow::Tail)) else { unreachable!("it is an HTB") };
        Spec::Htb(htb::Config { timer: Duration::from_ms(10), ..config }).build(line)
    }
);
contract!(
    htb_over_a_shaped_class,
    Promise::of(&[Tail, Head]).shapes(below_a_root(2)).names_times_too_early().by_class(kind),
    |line| htb(false, tbf(BitRate::from_kbit_per_s(100), BURST, fifo(PACKETS, Overflow::Tail))).build(line)
);
contract!(
    htb_over_sad,
    Promise::of(&[Tail, Head, AckMerged])
        .rewrites_acks()
        .shapes(below_a_root(2))
        .names_times_too_early()
        .by_class(kind),
    |line| sad(Duplicates::Keep, htb(false, sad(Duplicates::Keep, fifo(PACKETS, Overflow::Tail)))).build(line)
);
/// ACKs with a guarantee of a concave curve and a share, the rest with a convex one, below a class with this limit.
fn hfsc(limit: Option<BitRate>, rest: Spec) -> Spec {
    let (kbit, line) = (BitRate::from_kbit_per_s, ServiceCurve::linear);
    let curve = |first, rate| ServiceCurve::two_pieces(first, Duration::from_ms(1), kbit(rate));
    let class = |name: &str, parent: Option<&str>, share, queue| tree::Class {
        name: name.into(),
        parent: parent.map(Into::into),
        share,
        queue,
    };
    let share = |real_time, rate| Share { real_time, link_share: Some(line(kbit(rate))), upper_limit: None };
    let all = Share { upper_limit: limit.map(line), ..share(None, 1) };
    let classes = vec![
        class("all", None, all, None),
        class("ack", Some("all"), share(Some(curve(Some(kbit(900)), 100)), 1), Some(fifo(PACKETS, Overflow::Head))),
        class("rest", Some("all"), share(Some(curve(None, 100)), 3), Some(rest)),
    ];
    let rules = vec![Rule { matches: Match::PureAck, class: "ack".into() }];
    Spec::Hfsc(hfsc::Config { tree: Tree { classes, rules, default: None } })
}

/// A guarantee alone.
fn hfsc_of_guarantees() -> Spec {
    let Spec::Hfsc(mut config) = hfsc(None, fifo(PACKETS, Overflow::Tail)) else { unreachable!("it is HFSC") };
    config.tree.classes.remove(0);
    for class in &mut config.tree.classes {
        class.parent = None;
        class.share.link_share = None;
    }
    Spec::Hfsc(config)
}

contract!(hfsc_that_shares, Promise::of(&[Tail, Head]).by_class(is_ack), |line| {
    hfsc(None, fifo(PACKETS, Overflow::Tail)).build(line)
});
contract!(hfsc_with_a_limit, Promise::of(&[Tail, Head]).waits().by_class(is_ack), |line| {
    hfsc(Some(RATE), fifo(PACKETS, Overflow::Tail)).build(line)
});
contract!(hfsc_with_guarantees_only, Promise::of(&[Tail, Head]).waits().by_class(is_ack), |line| {
    hfsc_of_guarantees().build(line)
});
contract!(hfsc_over_a_shaped_class, Promise::of(&[Tail, Head]).waits().by_class(is_ack), |line| {
    hfsc(None, tbf(BitRate::from_kbit_per_s(100), BURST, fifo(PACKETS, Overflow::Tail))).build(line)
});
contract!(
    hfsc_with_a_limit_over_a_shaped_class,
    Promise::of(&[Tail, Head]).waits().names_times_too_early().by_class(is_ack),
    |line| {
        let shaped = tbf(BitRate::from_kbit_per_s(100), BURST, fifo(PACKETS, Overflow::Tail));
        hfsc(Some(RATE), shaped).build(line)
    }
);
contract!(cbq_that_borrows, Promise::of(&[Tail, Head]).by_class(kind), |line| {
    cbq(true, fifo(PACKETS, Overflow::Tail)).build(line)
});
contract!(cbq_bounded, Promise::of(&[Tail, Head]).waits().names_times_too_early().by_class(kind), |line| {
    cbq(false, fifo(PACKETS, Overflow::Tail)).build(line)
});
contract!(cbq_over_htb, Promise::of(&[Tail, Head]).waits().names_times_too_early().by_class(kind), |line| {
    cbq(true, htb(false, fifo(PACKETS, Overflow::Tail))).build(line)
});

/// A rate that does not divide a second into whole picoseconds a bit.
pub(crate) const RATE: BitRate = BitRate::from_kbit_per_s(777);
/// The largest packet on the wire: 1508 bytes in 32 cells.
pub(crate) const BURST: WireBytes = WireBytes::new(32 * 53);

pub(crate) fn tbf(rate: BitRate, burst: WireBytes, queue: Spec) -> Spec {
    let largest = ByteCount::new(1500);
    Spec::Tbf(Over {
        config: tbf::Config { rate, burst, peak: None, largest, catch_up: Duration::ZERO },
        queue: Box::new(queue),
    })
}

pub(crate) fn held_to(rate: BitRate, burst: WireBytes) -> Rate {
    Rate { rate, burst, reached: true }
}

const LARGE_BURST: WireBytes = WireBytes::new(10_000);

contract!(tbf_with_a_burst_of_one_packet, Promise::of(&[Tail]).shapes(held_to(RATE, BURST)), |line| {
    tbf(RATE, BURST, fifo(PACKETS, Overflow::Tail)).build(line)
});
contract!(tbf_with_a_large_burst, Promise::of(&[Head]).shapes(held_to(RATE, LARGE_BURST)), |line| {
    tbf(RATE, LARGE_BURST, fifo(BYTES, Overflow::Head)).build(line)
});
contract!(
    tbf_with_a_peak_rate,
    Promise::of(&[Tail]).shapes(Rate { rate: BitRate::from_mbit_per_s(2), burst: BURST, reached: false }),
    |line| {
        let queue = Box::new(fifo(PACKETS, Overflow::Tail));
        let peak = Some(Peak { rate: BitRate::from_mbit_per_s(2), burst: BURST });
        let (largest, catch_up) = (ByteCount::new(1500), Duration::ZERO);
        Spec::Tbf(Over { config: tbf::Config { rate: RATE, burst: LARGE_BURST, peak, largest, catch_up }, queue })
            .build(line)
    }
);
contract!(tbf_over_tbf, Promise::of(&[Tail]).waits().names_times_too_early(), |line| {
    tbf(RATE, BURST, tbf(BitRate::from_mbit_per_s(1), LARGE_BURST, fifo(PACKETS, Overflow::Tail))).build(line)
});
contract!(tbf_over_sad, Promise::of(&[Tail, AckMerged]).rewrites_acks().shapes(held_to(RATE, BURST)), |line| {
    tbf(RATE, BURST, sad(Duplicates::Keep, fifo(PACKETS, Overflow::Tail))).build(line)
});

fn drain(law: Option<drain::Law>, urgent: Match, queue: Spec) -> Spec {
    let share = Ratio::from_percent(90).expect("a share");
    let (line, largest, catch_up) = (BitRate::from_kbit_per_s(864), ByteCount::new(1500), Duration::ZERO);
    Spec::Drain(Over {
        config: drain::Config { line, share, drain: law, urgent, largest, catch_up },
        queue: Box::new(queue),
    })
}

/// A drain that begins soon and is given up soon.
const LAW: drain::Law = drain::Law {
    depth: Ratio::from_percent(50).expect("a share"),
    patience: Duration::from_ms(50),
    longest: Duration::from_ms(100),
};

/// 90 % of 864 kbit/s.
const DRAINED_RATE: BitRate = BitRate::from_bps(777_600).expect("a rate");

contract!(
    drain_that_never_drains,
    Promise::of(&[Tail]).shapes(held_to(DRAINED_RATE, BURST)).pays_afterwards(),
    |line| drain(None, Match::Never, fifo(PACKETS, Overflow::Tail)).build(line)
);
contract!(
    drain_over_a_fifo,
    Promise::of(&[Tail]).shapes(Rate { reached: false, ..held_to(DRAINED_RATE, BURST) }),
    |line| drain(Some(LAW), Match::Never, fifo(PACKETS, Overflow::Tail)).build(line)
);
contract!(
    drain_with_urgent_packets,
    // Two of the largest ahead, the one that exceeds them, and the first.
    Promise::of(&[Tail, Head])
        .shapes(Rate { reached: false, ..held_to(DRAINED_RATE, WireBytes::new(4 * BURST.as_u64())) })
        .by_class(is_ack),
    |line| drain(Some(LAW), Match::PureAck, fifo(PACKETS, Overflow::Head)).build(line)
);
contract!(drain_over_htb, Promise::of(&[Tail, Head]).waits().names_times_too_early().by_class(kind), |line| {
    drain(Some(LAW), Match::Never, htb(false, fifo(PACKETS, Overflow::Tail))).build(line)
});

pub(crate) fn sad(duplicates: Duplicates, queue: Spec) -> Spec {
    Spec::Sad(Over {
        config: sad::Config { duplicates, report: Report::None, exempt: Match::Never },
        queue: Box::new(queue),
    })
}

contract!(sad_keeping_duplicates, Promise::of(&[Tail, AckMerged]).rewrites_acks(), |line| {
    sad(Duplicates::Keep, fifo(PACKETS, Overflow::Tail)).build(line)
});
contract!(sad_counting_duplicates, Promise::of(&[Tail, AckMerged, AckDuplicate]).rewrites_acks(), |line| {
    sad(Duplicates::Count, fifo(PACKETS, Overflow::Tail)).build(line)
});
contract!(sad_over_head_drop, Promise::of(&[Head, TooLarge, AckMerged, AckDuplicate]).rewrites_acks(), |line| {
    sad(Duplicates::Count, fifo(SMALL, Overflow::Head)).build(line)
});
contract!(sad_reporting_in_lists, Promise::of(&[Tail, TooLarge, AckMerged, AckDuplicate]).rewrites_acks(), |line| {
    reporting(Duplicates::Count, Report::List, fifo(SMALL, Overflow::Tail)).build(line)
});
contract!(sad_reporting_in_signals, Promise::of(&[Head, AckMerged]).rewrites_acks().creates(), |line| {
    reporting(Duplicates::Keep, Report::Signal, fifo(BYTES, Overflow::Head)).build(line)
});
contract!(
    tbf_over_sad_reporting_in_signals,
    Promise::of(&[Tail, AckMerged]).rewrites_acks().creates().shapes(held_to(RATE, BURST)),
    |line| tbf(RATE, BURST, reporting(Duplicates::Keep, Report::Signal, fifo(PACKETS, Overflow::Tail))).build(line)
);

fn reporting(duplicates: Duplicates, report: Report, queue: Spec) -> Spec {
    Spec::Sad(Over { config: sad::Config { duplicates, report, exempt: Match::Never }, queue: Box::new(queue) })
}

contract!(regenerator_from_lists, Promise::of(&[Tail]).rewrites_acks().creates(), |line| {
    regenerator(Config::default(), fifo(PACKETS, Overflow::Tail)).build(line)
});
contract!(
    regenerator_from_signals_threefold,
    Promise::of(&[Head, TooLarge, AckSignal]).rewrites_acks().creates(),
    |line| {
        let factor = Factor::new(3, 1).expect("a factor");
        regenerator(Config { know: Know::Signal, factor, ..Config::default() }, fifo(SMALL, Overflow::Head)).build(line)
    }
);
contract!(regenerator_by_interpolation, Promise::of(&[Tail]).rewrites_acks().creates(), |line| {
    let factor = Factor::new(3, 2).expect("a factor");
    let know = Know::Interpolate { stride: 1460 };
    regenerator(Config { know, factor, ..Config::default() }, fifo(BYTES, Overflow::Tail)).build(line)
});
contract!(regenerator_spread_over_time, Promise::of(&[Tail]).rewrites_acks().creates().waits(), |line| {
    let (know, release) = (Know::Interpolate { stride: 700 }, Release::Paced { hold: Duration::from_ms(8) });
    regenerator(Config { know, release, ..Config::default() }, fifo(PACKETS, Overflow::Tail)).build(line)
});
fn regenerator(config: Config, queue: Spec) -> Spec {
    Spec::AckRegenerator(Over { config, queue: Box::new(queue) })
}

contract!(sad_over_priority, Promise::of(&[Tail, Head, AckMerged]).rewrites_acks().by_class(is_ack), |line| sad(
    Duplicates::Keep,
    acks_first(fifo(PACKETS, Overflow::Head), fifo(BYTES, Overflow::Tail))
)
.build(line));
contract!(sad_over_sad, Promise::of(&[Tail, AckMerged, AckDuplicate]).rewrites_acks(), |line| {
    sad(Duplicates::Count, sad(Duplicates::Count, fifo(PACKETS, Overflow::Tail))).build(line)
});
contract!(sad_over_an_ack_filter, Promise::of(&[Head, AckFiltered, AckMerged]).rewrites_acks(), |line| {
    sad(Duplicates::Keep, ack_filter(BYTES, Overflow::Head, Rules::default())).build(line)
});
contract!(sad_with_an_exempt_flow, Promise::of(&[Tail, AckMerged]).rewrites_acks(), |line| {
    let exempt = Match::Flow(lastmile_packet::FlowId::new(1));
    Spec::Sad(Over {
        config: sad::Config { duplicates: Duplicates::Keep, report: Report::None, exempt },
        queue: Box::new(fifo(PACKETS, Overflow::Tail)),
    })
    .build(line)
});

fn ack_filter(limit: Limit, drop: Overflow, rules: Rules) -> Spec {
    Spec::AckFilter(filter::Config { limit, drop, rules })
}

fn half() -> Rules {
    Rules { fraction: Fraction::new(1, 2).expect("a half"), ..Rules::default() }
}

fn by_number_alone() -> Rules {
    Rules { duplicates: filter::Duplicates::Remove, ..Rules::default() }
}

contract!(ack_filter_tail, Promise::of(&[Tail, AckFiltered]), |line| {
    ack_filter(PACKETS, Overflow::Tail, Rules::default()).build(line)
});
contract!(ack_filter_head, Promise::of(&[Head, AckFiltered]), |line| {
    ack_filter(BYTES, Overflow::Head, Rules::default()).build(line)
});
contract!(ack_filter_in_cells, Promise::of(&[Tail, AckFiltered]), |line| {
    ack_filter(CELLS, Overflow::Tail, Rules::default()).build(line)
});
contract!(ack_filter_of_a_half, Promise::of(&[Tail, AckFiltered]), |line| {
    ack_filter(PACKETS, Overflow::Tail, half()).build(line)
});
contract!(ack_filter_by_number_alone, Promise::of(&[Head, TooLarge, AckFiltered]), |line| {
    ack_filter(SMALL, Overflow::Head, by_number_alone()).build(line)
});

fn ack_collapsing(limit: Limit, drop: Overflow) -> Spec {
    Spec::AckCollapsing(collapsing::Config { limit, drop, exempt: Match::Never })
}

contract!(ack_collapsing_tail, Promise::of(&[Tail, AckCollapsed]), |line| {
    ack_collapsing(CELLS, Overflow::Tail).build(line)
});
contract!(ack_collapsing_head, Promise::of(&[Head, TooLarge, AckCollapsed]), |line| {
    ack_collapsing(SMALL, Overflow::Head).build(line)
});
contract!(sad_over_ack_collapsing, Promise::of(&[Tail, AckCollapsed, AckMerged]).rewrites_acks(), |line| {
    sad(Duplicates::Keep, ack_collapsing(PACKETS, Overflow::Tail)).build(line)
});

fn cake_ack_filter(limit: Limit, drop: Overflow, mode: Mode) -> Spec {
    Spec::CakeAckFilter(cake::Config { limit, drop, rules: cake::Rules { mode, exempt: Match::Never } })
}

contract!(cake_ack_filter_normal, Promise::of(&[Tail, AckFiltered]), |line| {
    cake_ack_filter(PACKETS, Overflow::Tail, Mode::Normal).build(line)
});
contract!(cake_ack_filter_aggressive, Promise::of(&[Head, TooLarge, AckFiltered]), |line| {
    cake_ack_filter(SMALL, Overflow::Head, Mode::Aggressive).build(line)
});

/// Rules of every kind with state, over a scheduler whose classes they name.
fn ruled(queue: Spec) -> Spec {
    let rule = |matches, class| rules::Rule { matches, class, last: false };
    let rules = vec![
        rule(Match::PureAck, 0),
        rule(Match::All(vec![Match::PureAck, Match::ConnectionBytes(Bound::Above, ByteCount::new(100_000))]), 0),
        rule(Match::All(vec![Match::Not(Box::new(Match::PureAck)), Match::FtpData]), 0),
    ];
    Spec::Rules(rules::Config { rules, otherwise: 1, names: Vec::new(), queue: Box::new(queue) })
}

contract!(rules_over_priority, Promise::of(&[Tail, Head]).by_class(is_ack), |line| {
    let class = |number, queue| ClassSpec { matches: Match::Class(number), queue };
    let classes = vec![class(0, fifo(PACKETS, Overflow::Head)), class(1, fifo(BYTES, Overflow::Tail))];
    ruled(Spec::Priority(priority::Config { classes })).build(line)
});
contract!(rules_over_a_fifo, Promise::of(&[Tail]), |line| ruled(fifo(PACKETS, Overflow::Tail)).build(line));

/// A segment of 1460 bytes takes 11.68 ms.
fn ack_pacing(queue: Spec) -> Spec {
    let (rate, max_hold) = (BitRate::from_mbit_per_s(1), Duration::from_ms(30));
    Spec::AckPacing(Over { config: pacing::Config { rate, max_hold, exempt: Match::Never }, queue: Box::new(queue) })
}

contract!(ack_pacing_over_a_fifo, Promise::of(&[Tail]).waits(), |line| {
    ack_pacing(fifo(PACKETS, Overflow::Tail)).build(line)
});
contract!(ack_pacing_over_collapsing, Promise::of(&[Head, AckCollapsed]).waits(), |line| {
    ack_pacing(ack_collapsing(BYTES, Overflow::Head)).build(line)
});
contract!(ack_pacing_over_tbf, Promise::of(&[Tail]).waits().names_times_too_early(), |line| {
    ack_pacing(tbf(RATE, BURST, fifo(PACKETS, Overflow::Tail))).build(line)
});

fn window_clamp(target: clamp::Target, queue: Spec) -> Spec {
    let config = clamp::Config { target, mss: ByteCount::new(500), exempt: Match::Never };
    Spec::WindowClamp(Over { config, queue: Box::new(queue) })
}

contract!(window_clamp_to_a_window, Promise::of(&[Tail]).lowers_windows(), |line| {
    window_clamp(clamp::Target::Window(ByteCount::new(1200)), fifo(PACKETS, Overflow::Tail)).build(line)
});
contract!(window_clamp_shared, Promise::of(&[Tail, AckMerged]).lowers_windows().rewrites_acks(), |line| {
    let target = clamp::Target::Shared { rate: BitRate::from_mbit_per_s(1), rtt: Duration::from_ms(40), growth: None };
    window_clamp(target, sad(Duplicates::Keep, fifo(PACKETS, Overflow::Tail))).build(line)
});

contract!(a_witness_of_handshakes, Promise::of(&[Tail]), |line| {
    Spec::Witness(Over { config: handshakes::Config, queue: Box::new(fifo(PACKETS, Overflow::Tail)) }).build(line)
});
