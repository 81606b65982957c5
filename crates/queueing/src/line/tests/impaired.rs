//! Wires with losses in bursts, bit errors, jitter, reordering and duplicates.

use super::*;
use crate::line::impairments::{
    BitErrorRate, Chance, Distribution, GilbertElliott, Impairments, Jitter, LossModel, Reorder, States,
};

/// Packets of a sample.
const MANY: u32 = 200_000;

fn percent(percent: u32) -> Ratio {
    Ratio::from_percent(percent).expect("at most 100")
}

fn impaired(impairments: Impairments) -> Config {
    Config { rate: None, impairments, ..config(1, "ip") }
}

/// Sends packets of 1500 bytes, 10 ms apart, and returns the number, transmission and arrival of each that arrives,
/// and the line.
fn cross(config: &Config, packets: u32) -> (Vec<(u32, Instant, Instant)>, Line<Meta>) {
    let (mut line, mut log) = (line(config, 100), Log::default());
    let mut arrived = Vec::new();
    let sent = |number: u32| at_us(u64::from(number) * 10_000);
    for number in 0..packets {
        line.enqueue(sent(number), packet(number, 1_500), &mut log);
        while let Some(at) = line.next_arrival().filter(|at| *at <= sent(number)) {
            let packet = line.take_arrival(at, &mut log).expect("it is there");
            arrived.push((packet.seq.raw(), sent(packet.seq.raw()), at));
        }
    }
    while let Some(at) = line.next_arrival() {
        let packet = line.take_arrival(at, &mut log).expect("it is there");
        arrived.push((packet.seq.raw(), sent(packet.seq.raw()), at));
    }
    (arrived, line)
}

/// For each packet, whether it is lost.
fn lost(config: &Config) -> Vec<bool> {
    let mut lost = vec![true; MANY as usize];
    cross(config, MANY).0.iter().for_each(|(number, ..)| lost[*number as usize] = false);
    lost
}

fn share(hits: &[bool]) -> f64 {
    hits.iter().filter(|hit| **hit).count() as f64 / hits.len() as f64
}

/// Lengths of the runs of losses.
fn runs(lost: &[bool]) -> Vec<usize> {
    lost.split(|lost| !lost).map(<[bool]>::len).filter(|len| *len > 0).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    libm::sqrt(values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / values.len() as f64)
}

/// Correlation of consecutive values.
fn correlation(values: &[f64]) -> f64 {
    let (mean, deviation) = (mean(values), deviation(values));
    let products: Vec<f64> = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).collect();
    self::mean(&products) / (deviation * deviation)
}

#[track_caller]
fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found}, where {expected} is expected, +- {tolerance}");
}

/// Gilbert (k = 1, h = 0), p = 1 %, r = 25 %: p / (p + r) = 3.85 % of the packets are lost, in runs whose length is
/// geometric with mean 1 / r = 4; a share of (1 - r)^4 = 31.6 % is longer than 4.
#[test]
fn losses_of_gilbert_come_in_geometric_runs() {
    let model = GilbertElliott { to_bad: percent(1), to_good: percent(25), bad: Ratio::ONE, good: Ratio::ZERO };
    let lost = lost(&impaired(Impairments { loss: Some(LossModel::GilbertElliott(model)), ..Impairments::default() }));
    near(share(&lost), 0.01 / 0.26, 0.003);
    let runs = runs(&lost);
    near(mean(&runs.iter().map(|len| *len as f64).collect::<Vec<_>>()), 4.0, 0.3);
    near(share(&runs.iter().map(|len| *len > 4).collect::<Vec<_>>()), 0.316, 0.04);
}

/// Gilbert-Elliott: p (1-h) + r (1-k) over p + r = (0.02 x 0.5 + 0.1 x 0.01) / 0.12 = 9.17 %.
#[test]
fn both_states_of_gilbert_and_elliott_lose() {
    let model = GilbertElliott { to_bad: percent(2), to_good: percent(10), bad: percent(50), good: percent(1) };
    let lost = lost(&impaired(Impairments { loss: Some(LossModel::GilbertElliott(model)), ..Impairments::default() }));
    near(share(&lost), 0.011 / 0.12, 0.006);
}

/// The stationary shares of the chain: with s1 received, s2 received within a burst, s3 lost in a burst, s4 lost
/// alone, balance gives s4 = p14 s1, s2 = s3 p32 / p23, s3 = s1 p13 / p31.
/// p13 = 1 %, p31 = 10 %, p32 = 20 %, p23 = 50 %, p14 = 2 %: 1 : 0.04 : 0.1 : 0.02, of which 0.12 / 1.16 are lost.
#[test]
fn four_states_have_their_shares() {
    let [p13, p31, p32, p23, p14] = [1, 10, 20, 50, 2].map(percent);
    let model = LossModel::States(States { p13, p31, p32, p23, p14 });
    let lost = lost(&impaired(Impairments { loss: Some(model), ..Impairments::default() }));
    near(share(&lost), 0.12 / 1.16, 0.006);
}

/// A share of 5 % stays 5 % with a correlation of 60 %, and the correlation is 60 %. A loss follows a loss with
/// 0.6 + 0.4 x 0.05 = 62 %.
#[test]
fn correlated_losses_keep_their_share() {
    let chance = Chance { share: percent(5), correlation: percent(60) };
    let lost = lost(&impaired(Impairments { loss: Some(LossModel::Correlated(chance)), ..Impairments::default() }));
    near(share(&lost), 0.05, 0.004);
    let numbers: Vec<f64> = lost.iter().map(|lost| f64::from(u8::from(*lost))).collect();
    near(correlation(&numbers), 0.6, 0.03);
    let after: Vec<bool> = lost.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
    near(share(&after), 0.62, 0.03);
}

/// 1500 bytes are 12 000 bits: 1 - (1 - 10^-5)^12000 = 11.3 %. As an AAL5 frame of 32 cells (pppoa-vcmux) they have
/// 32 x 384 = 12 288 bits of payload: 11.56 %. A packet of 40 bytes has 0.32 %.
#[test]
fn bit_errors_spoil_packets_by_their_length() {
    let rate = BitErrorRate::new(1e-5).expect("in range");
    let impairments = Impairments { bit_errors: Some(rate), ..Impairments::default() };
    for (preset, len, expected) in [("ip", 1_500, 0.1131), ("pppoa-vcmux", 1_500, 0.1156), ("ip", 40, 0.0032)] {
        let config = Config { rate: None, impairments: impairments.clone(), ..config(1, preset) };
        let (mut line, mut log) = (line(&config, 10), Log::default());
        (0..MANY).for_each(|number| line.enqueue(at_us(number.into()), packet(number, len), &mut log));
        assert!(log.dropped.iter().all(|(_, reason)| *reason == DropReason::BitError));
        let spoilt = line.stats().dropped[DropReason::BitError.index()].packets as f64 / f64::from(MANY);
        near(spoilt, expected, 0.04 * expected.max(0.02));
    }
    assert_eq!([0.0, 0.6, f64::NAN].map(BitErrorRate::new), [None; 3]);
}

/// Losses of a compressed header by bit errors leave the far end behind, as any loss.
#[test]
fn a_spoilt_packet_is_lost_to_header_compression() {
    let rate = BitErrorRate::new(1e-3).expect("in range");
    let impairments = Impairments { bit_errors: Some(rate), ..Impairments::default() };
    let compression = Compression::Rfc1144 { slots: 16 };
    let config = Config { rate: None, compression, impairments, ..config(1, "ip") };
    let (mut line, mut log) = (line(&config, 10), Log::default());
    let mut arrived = 0;
    for number in 1..=1_000_u32 {
        line.enqueue(at_us(0), ack(number * 100), &mut log);
        while line.take_arrival(at_us(5_000), &mut log).is_some() {
            arrived += 1;
        }
    }
    let dropped = |reason: DropReason| line.stats().dropped[reason.index()].packets;
    assert!(dropped(DropReason::BitError) > 10 && dropped(DropReason::HeaderCompression) > 0, "{:?}", line.stats());
    assert_eq!(arrived + dropped(DropReason::BitError) + dropped(DropReason::HeaderCompression), 1_000);
}

/// Delays over 100 ms with a spread of 10 ms, packets 10 ms apart, free to overtake.
fn delays(distribution: Distribution, correlation: u32) -> Vec<f64> {
    let jitter = Jitter { spread: Duration::from_ms(10), correlation: percent(correlation), distribution };
    let impairments = Impairments { jitter: Some(jitter), reorder: Some(Reorder::ByDelay), ..Impairments::default() };
    let config = Config { delay: Duration::from_ms(100), ..impaired(impairments) };
    let (mut arrived, _) = cross(&config, MANY);
    arrived.sort_unstable_by_key(|(number, ..)| *number);
    // In units of the spread.
    arrived.into_iter().map(|(_, sent, at)| (at.since(sent).as_secs_f64() - 0.1) / 0.01).collect()
}

/// Uniform from -1 to 1: deviation 1 / sqrt(3). Normal: 1. Pareto of shape 3: mean 1.5 and deviation sqrt(3) / 2 before
/// it is shifted and scaled by 4/3, and its median is 4/3 (2^(1/3) - 1.5) = -0.320; cutting it off at 4 takes 0.004 of
/// the mean. None of it depends on the correlation.
#[test]
fn jitter_has_its_distribution_whatever_its_correlation() {
    let expected = [
        (Distribution::Uniform, 0.0, 0.577, 0.0),
        (Distribution::Normal, 0.0, 1.0, 0.0),
        (Distribution::Pareto, -0.03, 0.84, -0.320),
        (Distribution::ParetoNormal, -0.02, 0.87, -0.240),
        (Distribution::Table(vec![-8_192, 0, 8_192, 16_384].into()), 0.5, 1.118, 0.5),
    ];
    for (distribution, middle, spread, median) in expected {
        for asked in [0, 70] {
            let mut delays = delays(distribution.clone(), asked);
            near(mean(&delays), middle, 0.03);
            near(deviation(&delays), spread, 0.03 * (1.0 + 2.0 * spread));
            if distribution == Distribution::Normal {
                near(correlation(&delays), f64::from(asked) / 100.0, 0.01);
            }
            if distribution == Distribution::Uniform {
                near(correlation(&delays), f64::from(asked) / 100.0, 0.025);
            }
            delays.sort_unstable_by(f64::total_cmp);
            near(
                delays[delays.len() / 2],
                median,
                if matches!(distribution, Distribution::Table(_)) { 0.6 } else { 0.02 },
            );
            assert!(delays[0] >= -4.0 && delays[delays.len() - 1] <= 4.0);
        }
    }
}

/// A spread of twice the distance of packets: about half would overtake, but none does.
#[test]
fn jitter_keeps_the_order_unless_reordering_is_asked_for() {
    let jitter = Jitter { spread: Duration::from_ms(20), correlation: Ratio::ZERO, distribution: Distribution::Normal };
    let in_order = Impairments { jitter: Some(jitter), ..Impairments::default() };
    let free = Impairments { reorder: Some(Reorder::ByDelay), ..in_order.clone() };
    let numbers = |impairments| cross(&impaired(impairments), 1_000);
    let (arrived, line) = numbers(in_order);
    assert!(arrived.is_sorted_by_key(|(number, ..)| *number) && arrived.is_sorted_by_key(|(.., at)| *at));
    assert_eq!(line.stats().reordered, Count::default());
    let (arrived, line) = numbers(free);
    assert!(!arrived.is_sorted_by_key(|(number, ..)| *number) && arrived.is_sorted_by_key(|(.., at)| *at));
    assert!(line.stats().reordered.packets > 100, "{:?}", line.stats());
}

/// A delay of 45 ms, packets 10 ms apart: every fifth packet arrives at once and overtakes four.
#[test]
fn one_packet_in_a_gap_overtakes() {
    let reorder = Reorder::Overtaking { chance: Chance::independent(Ratio::ONE), gap: 5 };
    let impairments = Impairments { reorder: Some(reorder), ..Impairments::default() };
    let (arrived, line) = cross(&Config { delay: Duration::from_ms(45), ..impaired(impairments) }, 20);
    let at_once: Vec<u32> = arrived.iter().filter(|(_, sent, at)| sent == at).map(|(number, ..)| *number).collect();
    assert_eq!(at_once, [4, 9, 14, 19]);
    assert_eq!(line.stats().reordered.packets, 4);
    assert_eq!(arrived.iter().map(|(number, ..)| *number).take(6).collect::<Vec<_>>(), [4, 0, 1, 2, 3, 9]);
}

/// A quarter of the packets arrives twice: everything that was given or made has arrived.
#[test]
fn duplicates_are_counted_as_made() {
    let impairments = Impairments { duplicate: Some(Chance::independent(percent(25))), ..Impairments::default() };
    let (arrived, line) = cross(&impaired(impairments), 10_000);
    let stats = line.stats();
    assert_eq!(stats.duplicated, stats.created);
    assert_eq!(stats.arrived.packets, 10_000 + stats.duplicated.packets);
    assert_eq!(arrived.len() as u64, stats.arrived.packets);
    near(stats.duplicated.packets as f64, 2_500.0, 4.0 * 43.3);
}

/// The `count` of sch_netem.c: a duplicated packet arrives whether it is lost or not, and a copy of one that is not
/// lost passes the losses. With 20 % of losses and 50 % of duplicates 0.2 * 0.5 of the packets are lost, and 0.5 *
/// 0.8 * 0.8 arrive twice; with a loss model as with independent losses.
#[test]
fn a_packet_that_is_lost_and_duplicated_arrives_once() {
    let duplicate = Some(Chance::independent(percent(50)));
    let model = Some(LossModel::Correlated(Chance::independent(percent(20))));
    let independent = Config { loss: percent(20), ..impaired(Impairments { duplicate, ..Impairments::default() }) };
    for config in [independent, impaired(Impairments { duplicate, loss: model, ..Impairments::default() })] {
        let (_, line) = cross(&config, MANY);
        let stats = line.stats();
        let lost = stats.dropped[DropReason::WireLoss.index()].packets;
        // Four standard deviations of a binomial distribution.
        near(lost as f64, 0.1 * f64::from(MANY), 4.0 * 134.2);
        near(stats.duplicated.packets as f64, 0.32 * f64::from(MANY), 4.0 * 208.6);
        assert_eq!(stats.arrived.packets, u64::from(MANY) - lost + stats.duplicated.packets);
    }
}

/// The random losses of a line are those that they are without other impairments, but for packets that have a copy: 3 %
/// of 10 % of 2000.
#[test]
fn an_impairment_changes_no_other_random_number() {
    let plain = Config { rate: None, loss: percent(10), ..config(1, "ip") };
    let arrived = |config: &Config| {
        let (arrived, _) = cross(config, 2_000);
        arrived.into_iter().map(|(number, ..)| number).collect::<std::collections::BTreeSet<u32>>()
    };
    let jitter = Jitter { spread: Duration::from_ms(1), correlation: Ratio::ZERO, distribution: Distribution::Pareto };
    let impairments = Impairments { jitter: Some(jitter), ..Impairments::default() };
    let duplicate = Some(Chance::independent(percent(3)));
    let duplicating = Impairments { duplicate, ..impairments.clone() };
    let arrive = arrived(&plain);
    assert_eq!(arrive, arrived(&Config { impairments, ..plain.clone() }));
    let with_copies = arrived(&Config { impairments: duplicating, ..plain });
    assert!(with_copies.is_superset(&arrive));
    near((with_copies.len() - arrive.len()) as f64, 6.0, 4.0 * 2.44);
}

proptest! {
    /// On any wire: enqueued + made = arrived + dropped + queued + on the wire, at any time.
    #[test]
    fn every_packet_of_an_impaired_line_is_somewhere(
        shares in prop::collection::vec(0_u32..100, 4),
        overtaking in any::<bool>(),
        kbit in 100_u64..10_000,
        preset in prop::sample::select(vec!["ip", "pppoa-vcmux"]),
        packets in prop::collection::vec((0_u64..20_000, 28_u16..1_500), 1..80),
        stop in 0_u64..1_000_000,
    ) {
        let chance = |index: usize| Chance { share: percent(shares[index]), correlation: percent(shares[3]) };
        let reorder = if overtaking {
            Reorder::Overtaking { chance: chance(0), gap: 2 }
        } else {
            Reorder::ByDelay
        };
        let distribution = Distribution::ParetoNormal;
        let jitter = Jitter { spread: Duration::from_ms(7), correlation: percent(20), distribution };
        let impairments = Impairments {
            loss: Some(LossModel::Correlated(chance(1))),
            bit_errors: BitErrorRate::new(1e-5),
            duplicate: Some(chance(2)),
            jitter: Some(jitter),
            reorder: Some(reorder),
        };
        let mut line = line(&Config { impairments, ..config(kbit, preset) }, 10);
        let mut log = Log::default();
        let mut at = 0;
        let mut last = Instant::ZERO;
        for (number, (gap, len)) in (0..).zip(&packets) {
            at += gap;
            line.transmit(at_us(at), &mut log);
            line.enqueue(at_us(at), packet(number, *len), &mut log);
            if at >= stop {
                break;
            }
            while let Some(arrived) = line.next_arrival().filter(|arrived| *arrived <= at_us(at)) {
                prop_assert!(arrived >= last);
                last = arrived;
                line.take_arrival(at_us(at), &mut log);
            }
        }
        let stats = line.stats();
        let gone: u64 = stats.dropped.iter().map(|count| count.packets).sum();
        let bytes: u64 = stats.dropped.iter().map(|count| count.bytes).sum();
        let (queued, wire) = (line.backlog(), line.in_flight());
        prop_assert_eq!(
            stats.enqueued.packets + stats.created.packets,
            stats.arrived.packets + gone + queued.packets.as_u64() + wire.packets
        );
        prop_assert_eq!(
            stats.enqueued.bytes + stats.created.bytes,
            stats.arrived.bytes + bytes + queued.bytes.as_u64() + wire.bytes
        );
    }
}
