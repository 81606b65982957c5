//! The examination of one way, step by step.

use lastmile_linklayer::Framing;

use super::buffer::{self, Fill, Limiter, scaled};
use super::discipline;
use super::disturbance::{self, Faster};
use super::estimate::{agreed, covering, inverse, regained, within};
use super::found::{Blocks, Candidate, Encapsulation, Side, Verdict};
use super::framing::{self, Bounds, Outcome, certainty};
use super::hypothesis::Law;
use super::options::Options;
use super::rate::{self, Burst, Found, Sustained};
use crate::error::Error;
use crate::report::Estimate;
use crate::statistics::Z;
use crate::train::{Path, Way};

/// The examination of one way.
pub(super) struct Examination<'a> {
    pub(super) path: &'a mut dyn Path,
    pub(super) way: Way,
    pub(super) name: &'a str,
    pub(super) mtu: u16,
    pub(super) options: &'a Options,
    pub(super) until_s: f64,
    pub(super) warnings: &'a mut Vec<String>,
    pub(super) tell: &'a mut dyn FnMut(&str),
}

impl Examination<'_> {
    /// All steps of the examination.
    pub(super) fn run(mut self) -> Result<Side, Error> {
        let bits = f64::from(self.mtu) * 8.0;
        (self.tell)(&format!("{}: the rate under overload", self.name));
        let rate = f64::from(self.options.packets_per_second);
        let long_s = self.options.overload.as_secs_f64();
        let mut sustained = match rate::sustained(self.path, self.way, self.mtu, rate, (long_s, self.options.packets))?
        {
            Found::Rate(sustained) => sustained,
            Found::Above(carried) => {
                self.warnings.push(format!(
                    "{}: it carries at least {:.1} Mbit/s, and the senders cannot send enough more to fill it: \
                     the queue of a scenario is a default, and its latency under load not the line's",
                    self.name,
                    carried / 1e6
                ));
                return Ok(unloaded(carried));
            }
        };
        let packet_s = sustained.packet_s;
        let ip_bps = inverse(bits, packet_s, within(sustained.error_s / packet_s));
        (self.tell)(&format!("{}: {:.3} Mbit/s of IP; filling its buffer", self.name, ip_bps.value / 1e6));
        let mut large = Vec::new();
        let first = self.fill(self.mtu, &sustained, packet_s)?;
        let first = self.confirmed(first, &mut sustained)?;
        large.push(first);
        let mut side = Side {
            encapsulation: Encapsulation { verdict: Verdict::Policer, name_probability: None, candidates: Vec::new() },
            ip_bps,
            gross_bps: None,
            limiter: limiter(&first, &sustained, self.mtu),
            buffer: None,
            discipline: None,
            loss_share: sustained.losses.share(),
            others_share: None,
        };
        if matches!(side.limiter, Limiter::Policer { .. }) {
            return Ok(side);
        }
        (self.tell)(&format!("{}: time per packet against size", self.name));
        // The time for two more overloads, estimated from the first; the discipline may need that of the second.
        let wait_s = first.packets.map_or(0.0, |(count, _)| count * packet_s);
        let fill = if wait_s > 0.0 { 3.2 * wait_s + 1.5 } else { 2.5 };
        let fills = fill + fill.max(discipline::cost_s(packet_s));
        let disturbed = disturbance::LONGEST_S + disturbance::cost_s(&sustained, wait_s);
        let bounds = Bounds {
            sizes: (self.options.smallest(), self.mtu),
            packets_per_second: rate,
            packets: self.options.packets,
            sure: self.options.sure,
            until_s: self.until_s - fills.min(30.0) - disturbed.min(20.0),
        };
        let outcome = framing::search(self.path, self.way, packet_s, bounds)?;
        let candidates = candidates(&outcome, self.mtu, &sustained);
        side.gross_bps = gross(&outcome, &candidates);
        let verdict = match (&side.limiter, outcome.sure) {
            (Limiter::Shaper { .. }, _) => Verdict::Shaper,
            _ if outcome.posterior.misfit() => Verdict::Misfit,
            (_, true) => Verdict::Sure,
            (_, false) => Verdict::NotSure,
        };
        let name_probability = Some(certainty(&outcome.classes, &outcome.posterior));
        side.encapsulation = Encapsulation { verdict, name_probability, candidates };
        self.finish(side, &sustained, large, &outcome)
    }

    /// The buffer, by a second overload with the largest size and one with a smaller.
    fn finish(
        &mut self,
        mut side: Side,
        sustained: &Sustained,
        mut large: Vec<Fill>,
        outcome: &Outcome,
    ) -> Result<Side, Error> {
        let packet_s = sustained.packet_s;
        // Where nothing showed a full buffer, more overloads may not either.
        let full = large[0].packets.is_some();
        let mut is_controlled = !full && self.discipline(&mut side, sustained, &large)?;
        let rate = f64::from(self.options.packets_per_second);
        let mut small = None;
        // A short burst may have four times the packets per second of a long train.
        let size = (self.mtu / 5).max((f64::from(self.mtu) * buffer::OVERLOAD / (4.0 * rate * packet_s)) as u16);
        let cost = large[0].packets.map_or(4.0, |(count, _)| 3.2 * count * packet_s + 1.5);
        if !is_controlled {
            (self.tell)(&format!("{}: the unit of its buffer", self.name));
        }
        if size < self.mtu / 2 && !is_controlled && self.has_time(cost) {
            small = Some((size, self.fill(size, sustained, outcome.packet_s(size))?));
        }
        if !is_controlled && self.has_time(cost + discipline::cost_s(packet_s)) {
            let again = self.fill(self.mtu, sustained, packet_s)?;
            large.push(again);
        }
        let faster = self.disturbances(&mut side, sustained, &large, outcome)?;
        let changes = matches!(faster, Some(Faster::Changed(..)));
        let others = faster.and_then(|faster| if let Faster::Others(others) = faster { Some(others) } else { None });
        if full && !changes {
            is_controlled = self.discipline(&mut side, sustained, &large)?;
        }
        let best = outcome.posterior.best();
        let wire = |size: u16| outcome.classes[best].wire_bytes(size);
        let wire = (size < self.mtu).then(|| (wire(self.mtu), wire(size)));
        // Beside others or with loss, the backlog of ours is not the queue's; its delay is.
        let alone_s = others.map_or(packet_s, |others| others.packet_s);
        let waiting = |(count, error): (f64, f64)| (count * packet_s / alone_s, error * packet_s / alone_s);
        let disturbed = others.is_some() || side.loss_share.is_some();
        let packets = |fill: &Fill| if disturbed { fill.waiting.map(waiting) } else { fill.packets };
        let fills: Vec<(f64, f64)> = large.iter().filter_map(packets).collect();
        let small = small.filter(|_| others.is_none()).and_then(|(size, fill)| Some((size, packets(&fill)?)));
        side.buffer = buffer::buffer(self.mtu, alone_s, &fills, small, wire);
        if is_controlled || changes {
            side.buffer = None;
        } else if side.buffer.is_none() {
            self.warnings.push(no_buffer(self.name, &side.limiter));
        }
        Ok(side)
    }

    /// The behaviour of the queue below its limit: whether a law controls it, so that it has no buffer that fills.
    fn discipline(&mut self, side: &mut Side, sustained: &Sustained, large: &[Fill]) -> Result<bool, Error> {
        if !matches!(side.limiter, Limiter::Line) || !self.has_time(discipline::cost_s(sustained.packet_s)) {
            return Ok(false);
        }
        (self.tell)(&format!("{}: the behaviour of its queue below its limit", self.name));
        let loss = side.loss_share.map_or(0.0, |loss| loss.high);
        let waits: Vec<f64> = large.iter().filter_map(|fill| Some(fill.waiting?.0 * sustained.packet_s)).collect();
        let full_s = (!waits.is_empty()).then(|| waits.iter().sum::<f64>() / waits.len() as f64);
        let most = self.options.packets;
        let found = discipline::discipline(self.path, self.way, self.mtu, sustained, (full_s, loss), most)?;
        self.warnings.extend(found.warning(self.name));
        Ok(side.discipline.insert(found).is_controlled())
    }

    /// Loss on the wire and traffic of others: what they do to the rates, and the latter's packets.
    fn disturbances(
        &mut self,
        side: &mut Side,
        sustained: &Sustained,
        large: &[Fill],
        outcome: &Outcome,
    ) -> Result<Option<Faster>, Error> {
        let rate = f64::from(self.options.packets_per_second);
        let bits = f64::from(self.mtu) * 8.0;
        let smallest = self.options.smallest();
        let wait_s = large.iter().filter_map(|fill| fill.packets).map(|fill| fill.0 * sustained.packet_s);
        let wait_s = wait_s.fold(0.0, f64::max);
        let mut faster = None;
        if matches!(side.limiter, Limiter::Line) && self.has_time(disturbance::cost_s(sustained, wait_s)) {
            // Sizes compare by the law of the encapsulation, if it is known.
            let least = if outcome.sure { smallest } else { self.mtu };
            let size = disturbance::Size::smallest(least..=self.mtu, |size| outcome.packet_s(size), rate);
            let sender = (rate, self.options.packets);
            let others = disturbance::others(self.path, self.way, size, sustained, wait_s, sender)?;
            faster = others.map(Faster::Others);
            if let Some(others) = others.filter(|_| self.has_time(disturbance::again_s(sustained))) {
                let again = disturbance::again(self.path, self.way, self.mtu, sustained, self.options.packets)?;
                faster = again.map_or(faster, |again| Some(Faster::why(sustained, others, again)));
            }
        }
        if let Some(Faster::Changed(least_s, most_s)) = faster {
            side.change(sustained.packet_s, (least_s, most_s));
            self.warnings.push(format!(
                "{}: the rate changes: {:.1} to {:.1} Mbit/s of IP; a scenario has one rate, and its queue is a \
                 default",
                self.name,
                bits / most_s / 1e6,
                bits / least_s / 1e6
            ));
        }
        if let Some(Faster::Others(others)) = faster {
            let alone = others.rate(bits);
            side.ip_bps = alone;
            let wire = outcome.classes[outcome.posterior.best()].wire_bytes(self.mtu) * 8.0;
            // The rates of other candidates, as much too low.
            let factor = alone.high / f64::from(self.mtu) / 8.0 * outcome.packet_s(self.mtu);
            let raised = |gross: Estimate| Estimate { high: gross.high * factor.max(1.0), ..gross };
            side.gross_bps = side.gross_bps.map(|gross| covering(others.rate(wire), raised(gross), outcome.sure));
            side.others_share = Some(others.share);
            self.warnings.push(format!(
                "{}: others ask for {:.1} % of it; rates are extrapolated to a line without them",
                self.name,
                others.share * 100.0
            ));
        }
        if self.has_time(disturbance::LONGEST_S) {
            let packet = (smallest, outcome.packet_s(smallest));
            let losses = disturbance::light(self.path, self.way, packet, rate)?.and(sustained.losses);
            side.loss_share = losses.share();
        }
        if let Some(loss) = side.loss_share {
            side.ip_bps = regained(side.ip_bps, loss);
            side.gross_bps = side.gross_bps.map(|gross| regained(gross, loss));
            self.warnings.push(format!(
                "{}: {:.2} % of packets are lost without overload; rates include the time of lost packets, and their \
                 intervals the case that packets are lost before the line",
                self.name,
                loss.value * 100.0
            ));
        }
        Ok(faster)
    }

    fn has_time(&self, seconds: f64) -> bool {
        self.path.elapsed().as_secs_f64() + seconds < self.until_s
    }

    /// Another overload, if one of two showed a bucket: late receivers and senders look like one at times. A bucket
    /// that the second does not show about as large is none.
    fn confirmed(&mut self, fill: Fill, sustained: &mut Sustained) -> Result<Fill, Error> {
        match (fill.bucket, sustained.burst) {
            (Some((count, error)), None) => {
                let again = self.fill(self.mtu, sustained, sustained.packet_s)?;
                let agrees = |other: (f64, f64)| (other.0 - count).abs() < 0.25 * count + Z * error.hypot(other.1);
                if again.bucket.is_some_and(agrees) { Ok(fill) } else { Ok(Fill { bucket: None, ..again }) }
            }
            (None, Some(burst)) => {
                // After a pause that fills a part of a bucket, the burst is shorter.
                let refill_s = burst.refill_s(sustained);
                let pause_s = (1.3 * refill_s).clamp(1.0, 20.0);
                let expected_s = burst.length_s * (pause_s / refill_s).min(1.0);
                let overload_s = 2.0 * burst.length_s + 1.0;
                if !self.has_time(pause_s + overload_s) {
                    return Ok(fill);
                }
                let most = self.options.packets;
                let again = rate::burst(self.path, self.way, self.mtu, sustained, (pause_s, overload_s, most))?;
                if again.is_some_and(|again| again.agrees(expected_s, burst.packet_s)) {
                    return Ok(fill);
                }
                sustained.burst = None;
                self.fill(self.mtu, sustained, sustained.packet_s)
            }
            _ => Ok(fill),
        }
    }

    /// An overload from idle, repeated after a longer pause if a bucket had no time to fill.
    fn fill(&mut self, size: u16, sustained: &Sustained, packet_s: f64) -> Result<Fill, Error> {
        // Overload, but below the rate of a burst, so that the bucket empties before packets wait.
        let ratio = |burst: Burst| sustained.packet_s / burst.packet_s;
        let bounded = sustained.burst.filter(|burst| burst.bounded);
        let overload = bounded.map_or(buffer::OVERLOAD, |burst| buffer::OVERLOAD.min(f64::midpoint(1.0, ratio(burst))));
        let most = self.options.packets;
        let bucket_s = sustained.burst.map_or(0.0, |burst| burst.refill_s(sustained));
        let refill = (1.3 * bucket_s).clamp(1.0, 20.0);
        let left = (self.until_s - self.path.elapsed().as_secs_f64()).max(1.0);
        let longest = (left / 3.0).min(20.0);
        let first = (1.3 * bucket_s / (overload - 1.0) + 0.5).min(longest);
        let fill = buffer::fill(self.path, self.way, size, packet_s, overload, (first, longest, refill), most)?;
        let bucket_s = fill.bucket.map_or(0.0, |bucket| bucket.0 * packet_s);
        if bucket_s > 0.7 * refill && self.has_time(4.0 * bucket_s) {
            return buffer::fill(
                self.path,
                self.way,
                size,
                packet_s,
                overload,
                (longest, longest, 2.0 * bucket_s),
                most,
            );
        }
        Ok(fill)
    }
}

impl Side {
    /// Widens the rates, measured with `packet_s`, to those from the least to the most seconds.
    fn change(&mut self, packet_s: f64, (least_s, most_s): (f64, f64)) {
        for rate in [Some(&mut self.ip_bps), self.gross_bps.as_mut()].into_iter().flatten() {
            rate.low = rate.low.min(rate.value * packet_s / most_s);
            rate.high = rate.high.max(rate.value * packet_s / least_s);
        }
    }
}

fn no_buffer(name: &str, limiter: &Limiter) -> String {
    let seen = match limiter {
        Limiter::Shaper { .. } => "the buffer behind the shaper's bucket did not show itself",
        _ => "no buffer of a fixed size showed itself",
    };
    format!("{name}: {seen}: the queue of a scenario is a default, and its latency under load not the line's")
}

fn unloaded(carried: f64) -> Side {
    Side {
        encapsulation: Encapsulation { verdict: Verdict::Unloaded, name_probability: None, candidates: Vec::new() },
        ip_bps: Estimate { value: carried, low: carried, high: f64::MAX },
        gross_bps: None,
        limiter: Limiter::Unknown,
        buffer: None,
        discipline: None,
        loss_share: None,
        others_share: None,
    }
}

fn limiter(fill: &Fill, sustained: &Sustained, mtu: u16) -> Limiter {
    let bytes = |(count, error): (f64, f64)| {
        let error = Z * error + 1.0;
        scaled(Estimate { value: count, low: (count - error).max(0.0), high: count + error }, f64::from(mtu))
    };
    let bits = f64::from(mtu) * 8.0;
    let burst_bps = sustained.burst.filter(|burst| burst.bounded).map(|burst| inverse(bits, burst.packet_s, 0.02));
    match (fill.policed, fill.bucket, sustained.burst) {
        (true, _, _) => Limiter::Policer { bucket_bytes: bytes(fill.packets.unwrap_or_default()) },
        (false, Some(bucket), _) => Limiter::Shaper { bucket_bytes: bytes(bucket), burst_bps },
        (false, None, Some(burst)) => {
            let count = burst.length_s / burst.packet_s * (1.0 - burst.packet_s / sustained.packet_s);
            Limiter::Shaper { bucket_bytes: bytes((count, 0.2 * count)), burst_bps }
        }
        (false, None, None) => Limiter::Line,
    }
}

/// Candidates by falling probability. `sustained` is the overload with packets of `mtu` bytes.
fn candidates(outcome: &Outcome, mtu: u16, sustained: &Sustained) -> Vec<Candidate> {
    let beliefs = &outcome.posterior.beliefs;
    let mut order: Vec<usize> = (0..beliefs.len()).collect();
    order.sort_by(|&a, &b| beliefs[b].probability.total_cmp(&beliefs[a].probability));
    let mut covered = 0.0;
    let mut candidates = Vec::new();
    for &i in order.iter().take(10) {
        let (class, belief) = (&outcome.classes[i], &beliefs[i]);
        let Law { link, continuous } = class.law();
        let overload = within(sustained.error_s / sustained.packet_s);
        let overload = inverse(class.wire_bytes(mtu) * 8.0, sustained.packet_s, overload);
        candidates.push(Candidate {
            presets: class.presets.iter().map(|&name| name.to_owned()).collect(),
            overhead_bytes: link.overhead(),
            minimum_bytes: link.min_frame(),
            framing: link.framing().to_string(),
            blocks: (link.framing() == Framing::Ptm).then_some(if continuous {
                Blocks::Continuous
            } else {
                Blocks::Whole
            }),
            probability: belief.probability,
            gross_bps: agreed(inverse(8.0, belief.byte_s, within(belief.byte_error)), overload),
        });
        covered += belief.probability;
        if covered > 0.999 {
            break;
        }
    }
    candidates
}

/// The rate of the most probable candidate. Its interval covers all of them if none is sure.
fn gross(outcome: &Outcome, candidates: &[Candidate]) -> Option<Estimate> {
    let first = candidates.first()?.gross_bps;
    if outcome.sure {
        return Some(first);
    }
    Some(candidates.iter().fold(first, |sum, each| covering(sum, each.gross_bps, false)))
}

#[cfg(test)]
mod tests {
    use super::super::hypothesis::classes;
    use super::super::losses::Losses;
    use super::super::posterior::{Belief, Posterior};
    use super::*;

    /// 100 Mbit/s, and 150 and 60 at other times.
    #[test]
    fn the_intervals_of_a_rate_that_changes_cover_both_ends() {
        let mut side = Side { gross_bps: Some(inverse(12_300.0, 12e-5, 0.01)), ..unloaded(1e8) };
        side.ip_bps = inverse(12_000.0, 12e-5, 0.01);
        side.change(12e-5, (8e-5, 20e-5));
        let whole = |rate: Estimate| [rate.low, rate.value, rate.high].map(|bps| bps.round() as u64);
        assert_eq!(whole(side.ip_bps), [60_000_000, 100_000_000, 150_000_000]);
        assert_eq!(side.gross_bps.map(whole), Some([61_500_000, 102_500_000, 153_750_000]));
    }

    /// A line of 64/65 coding whose two laws have 96 % and 3 %, and a class without these names that has 1 %.
    #[test]
    fn candidates_have_their_own_probabilities_and_the_name_has_that_of_both_laws() {
        let classes = classes(48, 1500);
        let named = |i: &usize| classes[*i].presets.contains(&"pppoe-ptm");
        let [whole, continuous] = (0..classes.len()).filter(named).collect::<Vec<_>>()[..] else { panic!("two laws") };
        let other = (0..classes.len()).find(|i| classes[*i].presets.is_empty()).unwrap();
        let belief = |i: usize| Belief {
            log_likelihood: 0.0,
            probability: [(whole, 0.96), (continuous, 0.03), (other, 0.01)]
                .iter()
                .find(|(class, _)| *class == i)
                .map_or(0.0, |(_, probability)| *probability),
            byte_s: 8e-7,
            byte_error: 1e-4,
        };
        let beliefs = (0..classes.len()).map(belief).collect();
        let posterior = Posterior { beliefs, birge: 1.0, patterns: 9, noise: 1e-3 };
        let sure = certainty(&classes, &posterior);
        let outcome = Outcome { classes, posterior, sure: true };
        let sustained =
            Sustained { packet_s: 1.2e-3, error_s: 1e-6, interval_s: 1e-3, burst: None, losses: Losses::default() };
        let found = candidates(&outcome, 1500, &sustained);
        let probabilities: Vec<f64> = found.iter().map(|candidate| candidate.probability).collect();
        assert_eq!(probabilities, [0.96, 0.03, 0.01]);
        assert_eq!(found[1].blocks.map(|blocks| Some(blocks) == found[0].blocks), Some(false));
        assert!((sure - 0.99).abs() < 1e-12, "{sure}");
        let earlier = Encapsulation { verdict: Verdict::Sure, name_probability: None, candidates: found };
        assert_eq!(earlier.sure(), Some(0.96));
        assert_eq!(Encapsulation { name_probability: Some(sure), ..earlier }.sure(), Some(sure));
    }
}
