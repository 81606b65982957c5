use lastmile_linklayer::Framing;
use lastmile_units::{BitRate, CellCount, Duration, PacketCount};

use super::*;
use crate::Overflow;
use crate::fifo::Fifo;
use crate::meter::{self, car, gcra, police, srtcm, trtcm};

/// 8 kbit/s are 1000 bytes a second.
const RATE: BitRate = BitRate::from_kbit_per_s(8);

fn bucket(burst: u64) -> meter::Config {
    meter::Config::TokenBucket { rate: RATE, burst: WireBytes::new(burst) }
}

fn rule(matches: Match, meter: meter::Config) -> Rule {
    Rule {
        matches,
        meter,
        coming: Coming::Blind,
        largest: ByteCount::new(1000),
        conform: Action::TRANSMIT,
        exceed: Action::DROP,
        violate: Action::DROP,
    }
}

fn policer(rules: &[Rule]) -> Policer<Meta, Fifo<Meta>> {
    let plain = LinkLayer::new(0, Framing::None).expect("no overhead");
    Policer::new(rules, &Environment::new(plain), Fifo::in_packets(PacketCount::new(1000), Overflow::Tail))
}

fn packet(dscp: u8) -> Meta {
    Meta { ip_len: 1000, header_len: 40, traffic_class: dscp << 2 | 2, ..Meta::default() }
}

/// The packets that reach the queue, of those that arrive at once.
fn passed(policer: &mut Policer<Meta, Fifo<Meta>>, packets: &[Meta]) -> Vec<Meta> {
    for packet in packets {
        policer.enqueue(Instant::ZERO, *packet, &mut |_, _, reason| assert_eq!(reason, DropReason::Policed));
    }
    std::iter::from_fn(|| policer.dequeue(Instant::ZERO, &mut |_, _, _| unreachable!("a FIFO drops none here")))
        .collect()
}

fn count(policer: &Policer<Meta, Fifo<Meta>>, path: &str, name: &str) -> u64 {
    let mut found = None;
    policer.counters(&mut |counter| {
        if (counter.path, counter.kind, counter.name) == (path, "policer", name) {
            assert_eq!(found.replace(counter.value), None, "{name} is there once");
        }
    });
    found.expect(name)
}

#[test]
fn exceeding_packets_are_dropped_and_both_kinds_counted() {
    let mut policer = policer(&[rule(Match::Any, bucket(3000))]);
    assert_eq!(passed(&mut policer, &[packet(0); 5]), [packet(0); 3]);
    let expected = [
        ("conformed_packets", 3),
        ("conformed_bytes", 3000),
        ("conformed_wire_bytes", 3000),
        ("exceeded_packets", 2),
        ("exceeded_bytes", 2000),
        ("violated_packets", 0),
        ("remarked", 0),
        ("dropped_policed", 2),
    ];
    for (name, value) in expected {
        assert_eq!(count(&policer, "", name), value, "{name}");
    }
}

/// AF11 green, AF12 yellow, AF13 red: RFC 2697, section 1, names assured forwarding as the use of the marker.
#[test]
fn colors_become_code_points_and_the_ecn_field_stays() {
    let meter = srtcm::Config { cir: RATE, cbs: WireBytes::new(1000), ebs: WireBytes::new(2000) };
    let [conform, exceed, violate] = [10, 12, 14].map(|dscp| Action::mark(Remark::Dscp(dscp)));
    let marker = Rule { conform, exceed, violate, ..rule(Match::Any, meter::Config::SrTcm(meter)) };
    let mut policer = policer(&[marker]);
    let expected = [packet(10), packet(12), packet(12), packet(14)];
    assert_eq!(passed(&mut policer, &[packet(10); 4]), expected);
    assert_eq!((count(&policer, "", "violated_packets"), count(&policer, "", "remarked")), (1, 3));
}

#[test]
fn tagged_packets_keep_their_bytes() {
    let tagging = Rule { exceed: Action::mark(Remark::Clp), ..rule(Match::Any, bucket(1000)) };
    let mut policer = policer(&[tagging]);
    let left = passed(&mut policer, &[packet(0); 2]);
    assert_eq!(left.iter().map(|packet| packet.mark.clp()).collect::<Vec<_>>(), [false, true]);
    assert_eq!(count(&policer, "", "remarked"), 1);
}

#[test]
fn packets_without_a_rule_pass_uncounted() {
    let mut policer = policer(&[rule(Match::Dscp(8), bucket(1000))]);
    let left = passed(&mut policer, &[packet(8), packet(8), packet(0), packet(0)]);
    assert_eq!(left, [packet(8), packet(0), packet(0)]);
    assert_eq!(count(&policer, "", "conformed_packets") + count(&policer, "", "exceeded_packets"), 2);
}

/// Two rules for scavengers: 1000 bytes of them conform unchanged; exceeding ones are marked CS1
/// and continue to a rule for all CS1 traffic, which takes 2000 bytes of it. Other traffic matches
/// neither.
#[test]
fn continue_leads_to_the_next_rule_that_covers_the_re_marked_packet() {
    let on = Action { mark: Some(Remark::Dscp(8)), then: Then::Continue };
    let first = Rule { exceed: on, ..rule(Match::Dscp(1), bucket(1000)) };
    let mut policer = policer(&[first, rule(Match::Dscp(8), bucket(2000)), rule(Match::Dscp(1), bucket(1000))]);
    let left = passed(&mut policer, &[packet(1), packet(1), packet(1), packet(1), packet(0)]);
    assert_eq!(left, [packet(1), packet(8), packet(8), packet(0)]);
    assert_eq!(count(&policer, "rules.0", "exceeded_packets"), 3);
    assert_eq!(
        (count(&policer, "rules.1", "conformed_packets"), count(&policer, "rules.1", "dropped_policed")),
        (2, 1)
    );
    assert_eq!(count(&policer, "rules.2", "conformed_packets"), 0, "transmit ends it");
}

/// A packet that continues past the last rule passes.
#[test]
fn the_last_rule_may_say_continue() {
    let on = Action { mark: None, then: Then::Continue };
    let mut policer = policer(&[Rule { exceed: on, ..rule(Match::Any, bucket(1000)) }]);
    assert_eq!(passed(&mut policer, &[packet(0); 2]), [packet(0); 2]);
}

/// RFC 2597, section 6: AF11 to AF43 are 10, 12, 14, 18, ... 38; every other code point is green.
#[test]
fn a_color_aware_meter_reads_the_drop_precedence() {
    let color = |dscp| Coming::DropPrecedence.color(&packet(dscp));
    let all: Vec<u8> = (0..64).collect();
    let of = |wanted| all.iter().copied().filter(|&dscp| color(dscp) == wanted).collect::<Vec<_>>();
    assert_eq!(of(Color::Yellow), [12, 20, 28, 36]);
    assert_eq!(of(Color::Red), [14, 22, 30, 38]);
    let mut tagged = packet(14);
    assert_eq!((Coming::Blind.color(&tagged), Coming::CellLossPriority.color(&tagged)), (Color::Green, Color::Green));
    tagged.mark.set_clp();
    assert_eq!((Coming::Blind.color(&tagged), Coming::CellLossPriority.color(&tagged)), (Color::Green, Color::Yellow));
}

/// A packet arrives yellow, so green tokens are left for the packet that arrives green: color-blind
/// it would take them.
#[test]
fn color_aware_and_color_blind_differ() {
    let meter = meter::Config::TrTcm(trtcm::Config {
        pir: RATE,
        pbs: WireBytes::new(4000),
        cir: RATE,
        cbs: WireBytes::new(1000),
    });
    let [conform, exceed, violate] = [10, 12, 14].map(|dscp| Action::mark(Remark::Dscp(dscp)));
    let blind = Rule { conform, exceed, violate, ..rule(Match::Any, meter) };
    let aware = Rule { coming: Coming::DropPrecedence, ..blind.clone() };
    let sent = [packet(12), packet(10), packet(14)];
    assert_eq!(passed(&mut policer(&[aware]), &sent), [packet(12), packet(10), packet(14)]);
    assert_eq!(passed(&mut policer(std::slice::from_ref(&blind)), &sent), [packet(10), packet(12), packet(12)]);
    // The single rate marker: a yellow packet takes from the excess bucket, 2000 bytes.
    let meter = meter::Config::SrTcm(srtcm::Config { cir: RATE, cbs: WireBytes::new(1000), ebs: WireBytes::new(2000) });
    let blind = Rule { meter, ..blind };
    let aware = Rule { coming: Coming::DropPrecedence, ..blind.clone() };
    assert_eq!(passed(&mut policer(&[aware]), &sent), [packet(12), packet(10), packet(14)]);
    assert_eq!(passed(&mut policer(&[blind]), &sent), [packet(10), packet(12), packet(12)]);
}

/// 1000 bytes and 8 of trailer are 21 cells, 1113 bytes on the wire: all meters count these.
#[test]
fn every_meter_counts_bytes_on_the_wire() {
    let atm = LinkLayer::new(8, Framing::Atm).expect("an overhead of 8 bytes");
    let two = WireBytes::new(2 * 1113);
    let one = WireBytes::new(1113);
    let cell = RATE.time_for(CellCount::new(1).wire_bytes());
    let meters = [
        bucket(2 * 1113),
        meter::Config::Car(car::Config { rate: RATE, burst: two, extended: two }),
        meter::Config::SrTcm(srtcm::Config { cir: RATE, cbs: one, ebs: one }),
        meter::Config::TrTcm(trtcm::Config { pir: RATE, pbs: two, cir: RATE, cbs: one }),
        meter::Config::Gcra(gcra::Config { rate: RATE, tolerance: cell.saturating_mul(41) }),
        meter::Config::Police(police::Config { rate: RATE, burst: two, peak: None, mtu: one }),
    ];
    for meter in meters {
        let rules = [Rule { exceed: Action::TRANSMIT, violate: Action::DROP, ..rule(Match::Any, meter.clone()) }];
        let mut policer: Policer<Meta, _> =
            Policer::new(&rules, &Environment::new(atm), Fifo::in_packets(PacketCount::new(10), Overflow::Tail));
        let mut colors = Vec::new();
        for _ in 0..3 {
            policer.enqueue(Instant::ZERO, packet(0), &mut |_, _, _| {});
            colors.push(["conformed_wire_bytes", "exceeded_wire_bytes"].map(|name| count(&policer, "", name)));
        }
        assert_eq!(colors[1].iter().sum::<u64>(), 2 * 1113, "{meter:?}");
        let conformed = colors[2][0];
        assert!(conformed == 2 * 1113 || conformed == 1113 && colors[2][1] >= 1113, "{meter:?}: {colors:?}");
    }
}

#[test]
fn meters_that_pass_nothing_are_refused() {
    let largest = WireBytes::new(1500);
    let bytes = WireBytes::new;
    let refused = |config: meter::Config| config.check(largest).expect_err("refused").to_string();
    let never = |what, burst| {
        format!("a {what} of {burst} wire bytes never lets the largest packet conform, which takes 1500 wire bytes")
    };
    assert_eq!(refused(bucket(1499)), never("burst", 1499));
    let car = |burst, extended| {
        meter::Config::Car(car::Config { rate: RATE, burst: bytes(burst), extended: bytes(extended) })
    };
    assert_eq!(refused(car(1499, 1499)), never("burst", 1499));
    assert_eq!(refused(car(700, 799)), never("burst with its extension", 1499));
    assert_eq!(car(700, 800).check(largest), Ok(()));
    assert_eq!(
        refused(car(3000, 2999)),
        "an extended burst of 2999 wire bytes is below the burst of 3000 wire bytes; \
         equal to it, nothing is ever borrowed"
    );
    let srtcm = |cbs, ebs| meter::Config::SrTcm(srtcm::Config { cir: RATE, cbs: bytes(cbs), ebs: bytes(ebs) });
    assert_eq!(
        refused(srtcm(0, 0)),
        "a committed and an excess burst of zero: at least one of them must be larger (RFC 2697)"
    );
    assert_eq!(refused(srtcm(1499, 0)), never("committed burst", 1499));
    assert_eq!(refused(srtcm(0, 1499)), never("excess burst", 1499));
    assert_eq!((srtcm(1500, 0).check(largest), srtcm(0, 1500).check(largest)), (Ok(()), Ok(())));
    let trtcm =
        |pir, pbs, cbs| meter::Config::TrTcm(trtcm::Config { pir, pbs: bytes(pbs), cir: RATE, cbs: bytes(cbs) });
    let slow = BitRate::from_bps(7_999).expect("a rate");
    assert_eq!(
        refused(trtcm(slow, 1500, 1500)),
        "a peak rate of 7.999 kbit/s is below the committed rate of 8 kbit/s (RFC 2698)"
    );
    assert_eq!(refused(trtcm(RATE, 1499, 1500)), never("peak burst", 1499));
    assert_eq!(refused(trtcm(RATE, 1500, 1499)), never("committed burst", 1499));
    assert_eq!(trtcm(RATE, 1500, 1500).check(largest), Ok(()));
    let police = |peak, burst, mtu| {
        meter::Config::Police(police::Config { rate: RATE, burst: bytes(burst), peak, mtu: bytes(mtu) })
    };
    assert_eq!(refused(police(Some(RATE), 1500, 1500)), "a peak rate of 8 kbit/s is not above the rate of 8 kbit/s");
    assert_eq!(refused(police(None, 1499, 1500)), never("burst", 1499));
    assert_eq!(refused(police(None, 1500, 1499)), never("mtu", 1499));
    // 29 cells, of which 28 are early: 28 * 53 ms.
    let gcra = |ms| meter::Config::Gcra(gcra::Config { rate: RATE, tolerance: Duration::from_ms(ms) });
    assert_eq!(
        refused(gcra(1483)),
        "a tolerance of 1.483 s never lets the largest packet conform, whose cells need 1.484 s"
    );
    assert_eq!(gcra(1484).check(largest), Ok(()));
}

/// A bucket of 1112 bytes covers the 1000 of the packet, but not its 21 cells.
#[test]
fn a_packet_conforms_by_its_bytes_on_the_wire() {
    let atm = LinkLayer::new(8, Framing::Atm).expect("an overhead of 8 bytes");
    for (burst, conforms) in [(1112, 0), (1113, 1)] {
        let queue = Fifo::in_packets(PacketCount::new(10), Overflow::Tail);
        let mut policer = Policer::new(&[rule(Match::Any, bucket(burst))], &Environment::new(atm), queue);
        assert_eq!(passed(&mut policer, &[packet(0)]).len(), conforms);
    }
}
