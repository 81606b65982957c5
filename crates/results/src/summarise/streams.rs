//! Delays from end to end, calls, and verdicts by service class.

use std::collections::BTreeMap;

use lastmile_analysis::quantiles::nearest_rank;
use lastmile_model::outcome::{Buckets, FlowOutcome, ProbeOutcome, Reception};
use lastmile_model::{Codec, Source, Traffic};
use lastmile_theory::{voice, y1541};
use lastmile_units::Duration;

use super::class::class;
use super::run::Run;
use crate::format::to_f64;
use crate::schema::{DatagramClass, Datagrams, Flow, OneWay, RoundTrip, Voice, Y1541};

impl Run<'_> {
    /// One row per code point and direction of datagram flows; `flows` are the rows of all flows.
    pub(super) fn datagram_classes(&self, flows: &[Flow]) -> Vec<DatagramClass> {
        let mut classes: BTreeMap<(u8, &str), Vec<usize>> = BTreeMap::new();
        for (index, flow) in
            self.outcome.flows.iter().enumerate().filter(|(index, _)| flows[*index].datagrams.is_some())
        {
            let traffic = &self.network.traffic[flow.traffic];
            classes.entry((traffic.ip.dscp, &traffic.direction)).or_default().push(index);
        }
        let row = |((dscp, direction), members): ((u8, &str), Vec<usize>)| DatagramClass {
            direction: direction.to_owned(),
            ..self.datagram_class(dscp, &members, flows)
        };
        classes.into_iter().map(row).collect()
    }

    fn datagram_class(&self, dscp: u8, members: &[usize], flows: &[Flow]) -> DatagramClass {
        let rows = || members.iter().map(|index| &flows[*index]);
        let datagrams = || rows().filter_map(|flow| flow.datagrams.as_deref());
        let voices = || datagrams().filter_map(|datagrams| datagrams.voice.as_ref());
        let mean = |values: Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        let received_packets = rows().map(|flow| flow.transport.data_packets_received).sum();
        let lost_packets = datagrams().map(|datagrams| datagrams.lost_packets).sum();
        let (delay_s, tail_s) = self.delay_of_class(members);
        DatagramClass {
            class: class(dscp),
            direction: String::new(),
            flows: members.len() as u64,
            sent_packets: rows().map(|flow| flow.transport.data_packets).sum(),
            received_packets,
            lost_packets,
            late_packets: datagrams().map(|datagrams| datagrams.late_packets).sum(),
            jitter_mean_s: mean(datagrams().filter_map(|datagrams| datagrams.jitter_mean_s).collect()),
            jitter_max_s: datagrams().filter_map(|datagrams| datagrams.jitter_max_s).reduce(f64::max),
            r_factor_mean: mean(voices().map(|voice| voice.r_factor).collect()),
            r_factor_min: voices().map(|voice| voice.r_factor).reduce(f64::min),
            mos_mean: mean(voices().map(|voice| voice.mos).collect()),
            mos_min: voices().map(|voice| voice.mos).reduce(f64::min),
            y1541: one_way_verdict(&delay_s, tail_s, received_packets, lost_packets),
            delay_s,
        }
    }

    /// The delays of all packets of these flows, and their 99.999th percentile.
    fn delay_of_class(&self, members: &[usize]) -> (OneWay, Option<f64>) {
        let mut traffics: Vec<usize> = members.iter().map(|index| self.outcome.flows[*index].traffic).collect();
        traffics.dedup();
        let mut all: Option<Buckets> = None;
        let distributions = &self.outcome.datagram_delays_ns;
        for distribution in traffics.iter().filter_map(|traffic| distributions.get(*traffic)?.as_deref()) {
            match &mut all {
                Some(all) => all.add(distribution),
                None => all = Some(distribution.clone()),
            }
        }
        let receptions = || members.iter().filter_map(|index| self.outcome.flows[*index].data_delays.as_deref());
        let seen = || receptions().filter(|reception| reception.packets > 0);
        let count: u64 = seen().map(|reception| reception.packets).sum();
        let sum_ps: u128 = seen().map(|reception| reception.sum_ps).sum();
        let min = seen().map(|reception| reception.min).min();
        let max = seen().map(|reception| reception.max).max();
        let exact = OneWay {
            min: min.map(Duration::as_secs_f64),
            mean: (count > 0).then(|| sum_ps as f64 / to_f64(count) / 1e12),
            max: max.map(Duration::as_secs_f64),
            count,
            ..OneWay::default()
        };
        (with_percentiles(exact, all.as_ref()), percentile(&exact, all.as_ref(), TAIL))
    }
}

/// The quantile of the delay whose variation classes 6 and 7 of Y.1541 bound.
const TAIL: f64 = 0.99999;

/// The distribution of the delays of a flow.
pub(super) fn one_way(reception: &Reception) -> OneWay {
    let seen = reception.packets > 0;
    let exact = OneWay {
        min: seen.then(|| reception.min.as_secs_f64()),
        mean: reception.mean_s(),
        max: seen.then(|| reception.max.as_secs_f64()),
        count: reception.packets,
        ..OneWay::default()
    };
    with_percentiles(exact, reception.distribution.as_deref())
}

/// `exact` with the percentiles of a distribution in nanoseconds.
fn with_percentiles(exact: OneWay, distribution: Option<&Buckets>) -> OneWay {
    let at = |quantile: f64| percentile(&exact, distribution, quantile);
    OneWay { p50: at(0.5), p95: at(0.95), p99: at(0.99), p999: at(0.999), ..exact }
}

/// A percentile of a distribution in nanoseconds, which returns the upper end of a value's bucket.
fn percentile(exact: &OneWay, distribution: Option<&Buckets>, quantile: f64) -> Option<f64> {
    let value_s = to_f64(distribution.filter(|delays| !delays.is_empty())?.value_at_quantile(quantile)) / 1e9;
    Some(value_s.clamp(exact.min?, exact.max?))
}

/// The service classes that the data of a flow meet, by the distribution of their delays.
pub(super) fn flow_verdict(delays: &Reception, lost: u64) -> Option<Y1541> {
    let delay_s = one_way(delays);
    let tail_s = percentile(&delay_s, delays.distribution.as_deref(), TAIL);
    one_way_verdict(&delay_s, tail_s, delay_s.count, lost)
}

/// Results at the receiver of a datagram flow.
pub(super) fn datagrams(traffic: &Traffic, flow: &FlowOutcome) -> Option<Datagrams> {
    let interval = match traffic.source {
        Source::Constant { interval, .. } => Some(interval),
        _ => None,
    };
    Some(heard(traffic, interval, flow.data_delays.as_deref()?, flow.data_packets_lost?))
}

/// Results of a stream of datagrams; `interval` is that of the packets of a call.
pub(super) fn heard(
    traffic: &Traffic,
    interval: Option<Duration>,
    reception: &Reception,
    lost_packets: u64,
) -> Datagrams {
    let late_packets = reception.late + reception.overdue;
    let judged = reception.packets + lost_packets + reception.overdue;
    let unplayed_share = (judged > 0).then(|| to_f64(lost_packets + late_packets) / to_f64(judged));
    // Random loss of a share p comes in runs of 1 / (1 - p).
    let lost_share = unplayed_share.filter(|share| *share > 0.0);
    let burst_ratio = reception.mean_run().zip(lost_share).map(|(run, share)| run * (1.0 - share));
    let heard = Heard { reception, loss: unplayed_share, burst_ratio };
    let call = interval.zip(traffic.listener.codec);
    Datagrams {
        jitter_mean_s: reception.jitter_mean_s(),
        jitter_max_s: (reception.packets > 1).then_some(reception.jitter_max_s),
        lost_packets,
        playout_buffer_s: traffic.listener.buffer.as_secs_f64(),
        late_packets,
        unplayed_share,
        burst_ratio,
        voice: call.and_then(|(interval, codec)| heard.voice(traffic, interval, &codec)),
    }
}

/// The received part of a call.
struct Heard<'a> {
    reception: &'a Reception,
    loss: Option<f64>,
    burst_ratio: Option<f64>,
}

impl Heard<'_> {
    /// The quality of the call; `None` if no packet was due to be played.
    fn voice(&self, traffic: &Traffic, interval: Duration, codec: &Codec) -> Option<Voice> {
        let loss = self.loss?;
        let fixed_s = interval.as_secs_f64() + codec.look_ahead_s + traffic.listener.buffer.as_secs_f64();
        let mouth_to_ear_s = self.reception.base_s().map(|delay_s| delay_s + fixed_s);
        // The model's range ends far below the loss of a call that does not arrive.
        let r_factor = mouth_to_ear_s.map_or(0.0, |delay_s| {
            voice::r_factor(codec, &voice::Path { delay_s, loss, burst_ratio: self.burst_ratio.unwrap_or(1.0) })
        });
        Some(Voice {
            codec: codec.name.to_owned(),
            ie: codec.ie,
            bpl: codec.bpl,
            mouth_to_ear_s,
            r_factor,
            mos: voice::mos(r_factor),
            satisfaction: voice::satisfaction(r_factor).to_owned(),
        })
    }
}

/// The service classes that packets with this one-way delay and loss meet; `None` if none arrived
/// and none was lost.
fn one_way_verdict(delay_s: &OneWay, tail_s: Option<f64>, received: u64, lost: u64) -> Option<Y1541> {
    let all = received + lost;
    let above_least = |percentile: Option<f64>| Some(percentile? - delay_s.min?);
    let measured = || y1541::Measured {
        delay_s: delay_s.mean,
        variation_s: above_least(delay_s.p999),
        tail_variation_s: above_least(tail_s),
        loss: Some(to_f64(lost) / to_f64(all)),
    };
    (all > 0).then(|| verdict("one_way", &measured(), delay_s.count))
}

/// The service classes that a probe meets if both directions take half its round trip.
pub(super) fn probe_verdict(probe: &ProbeOutcome, rtt_s: &RoundTrip, unanswered: u64) -> Option<Y1541> {
    let judged = probe.received + unanswered;
    let loss = (judged > 0).then(|| to_f64(unanswered) / to_f64(judged))?;
    let mut times: Vec<Duration> = probe.replies.iter().map(|(_, took)| *took).collect();
    times.sort_unstable();
    let tail = nearest_rank(&times, 99_999, 100_000).zip(times.first()).map(|(tail, least)| tail - *least);
    let measured = y1541::Measured {
        delay_s: rtt_s.mean.map(|mean| mean / 2.0),
        variation_s: rtt_s.jitter,
        tail_variation_s: tail.map(Duration::as_secs_f64),
        loss: Some(loss),
    };
    Some(verdict("half_round_trip", &measured, probe.received))
}

fn verdict(delay_from: &str, measured: &y1541::Measured, packets: u64) -> Y1541 {
    let classes: Vec<u8> = y1541::met(measured).collect();
    Y1541 {
        delay_from: delay_from.to_owned(),
        iptd_s: measured.delay_s,
        ipdv_s: measured.variation_s,
        iplr: measured.loss,
        packets,
        enough_packets: classes.iter().all(|class| y1541::is_judged(*class, packets)),
        classes,
    }
}
