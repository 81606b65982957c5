//! Encapsulation, gross rates, buffers and shapers of a line, inferred from trains and echoes.
//!
//! | step, each way | module |
//! | --- | --- |
//! | the rate that stays under overload, and a burst before it | `rate` |
//! | queue, shaper or policer: an overload from an idle line | [`buffer`] |
//! | time per packet against size on the busy line, until one class of laws is left | `framing`, [`posterior`], [`hypothesis`] |
//! | overloads with a second size: what the buffer counts | [`buffer`] |
//! | a light train and a heavy one: loss on the wire, traffic of others | `disturbance` |
//!
//! [`idle`] needs no server at the other end: it reads cells off the round-trip times of echoes, as
//! the ATM overhead detector does. [`scenario`] writes what was found as a scenario file.
//! [`simulated`] and [`cases`] are the test bench.
//!
//! Sources: ITU-T I.363.5 and I.361 (cells), IEEE 802.3 61.3.3 and ITU-T G.992.3 Annex N (64/65),
//! Brouer 2005, 3.5 (buffers by overload), Birge 1932 (scatter between and within).

use serde::{Deserialize, Serialize};

use lastmile_linklayer::Framing;
use lastmile_units::{ByteCount, Duration};

use crate::error::Error;
use crate::report::Estimate;
use crate::train::{Departure, Path, Way};

pub mod buffer;
pub mod cases;
mod disturbance;
mod framing;
pub mod hypothesis;
pub mod idle;
pub mod posterior;
mod rate;
pub mod scenario;
pub mod simulated;
mod train;

pub use buffer::{Buffer, Limiter, Unit};

use buffer::{Fill, scaled};
use disturbance::Others;
use framing::{Bounds, Outcome, certainty};
use rate::{Burst, Found, Sustained};

/// 95 % of a normal law, in standard errors.
const Z: f64 = 1.96;
/// Length of the echoes that measure the idle round-trip time, as IP packets.
const ECHO_BYTES: u64 = 64;
/// Standard error of a rate that no average removes, relative: the clocks of two computers differ
/// by up to 1e-4, evenly spread.
const CLOCKS: f64 = 5.8e-5;

/// Bounds of a detection.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Time by [`Path::elapsed`] in which the detection ends.
    pub allowance: Duration,
    /// Most packets per second that the senders can send.
    pub packets_per_second: u32,
    /// Most packets of a train.
    pub packets: usize,
    /// Least probability of a name.
    pub sure: f64,
    /// Smallest IP packet of a train.
    pub smallest: ByteCount,
    /// Length of the overload that shows whether a rate stays.
    pub overload: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            allowance: Duration::from_s(175),
            packets_per_second: 60_000,
            packets: 65_000,
            sure: 0.999,
            smallest: ByteCount::new(64),
            overload: Duration::from_s(8),
        }
    }
}

impl Options {
    fn smallest(&self) -> u16 {
        u16::try_from(self.smallest.as_u64()).unwrap_or(64)
    }
}

/// The results of a detection: both ways of a line.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Detection {
    /// Largest IP packet.
    pub mtu_bytes: u16,
    /// Smallest round-trip time of a small packet over the idle line, in seconds.
    pub idle_rtt_s: Option<Estimate>,
    /// From the server to the client.
    pub down: Side,
    /// From the client to the server.
    pub up: Side,
    /// Time that the detection took, in seconds.
    pub took_s: f64,
    /// Steps that were not possible, and why, in sentences.
    pub warnings: Vec<String>,
}

/// The results for one way of a line.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Side {
    /// How bytes are counted.
    pub encapsulation: Encapsulation,
    /// Rate of IP bytes in packets of the largest size, bit/s.
    pub ip_bps: Estimate,
    /// Rate of the wire by [`Side::encapsulation`], bit/s. An interval that covers the rates of all
    /// candidates where no name is sure.
    pub gross_bps: Option<Estimate>,
    /// Line, shaper or policer.
    pub limiter: Limiter,
    /// The buffer, where it filled.
    pub buffer: Option<Buffer>,
    /// Share of packets lost without overload, where any was.
    pub loss_share: Option<Estimate>,
    /// Share of the way that traffic of others asked for, where any was seen. Rates are then
    /// extrapolated to a way without it.
    pub others_share: Option<f64>,
}

/// How sure an encapsulation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The first candidate is sure.
    Sure,
    /// Several candidates are left.
    NotSure,
    /// A shaper limits the way below the line's rate: the candidates state how the shaper counts.
    Shaper,
    /// A policer limits the way below the line's rate.
    Policer,
    /// No candidate explains the times.
    Misfit,
    /// The line carries all that the senders can send.
    Unloaded,
}

/// The encapsulation of one way.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Encapsulation {
    /// How sure it is.
    pub verdict: Verdict,
    /// Classes of encapsulations by falling probability, 99.9 % of it together, at most ten.
    pub candidates: Vec<Candidate>,
}

/// Encapsulations that timing cannot tell apart.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Candidate {
    /// Names of presets; empty where none has this overhead.
    pub presets: Vec<String>,
    /// Bytes around each IP packet.
    pub overhead_bytes: i32,
    /// Least bytes of packet and overhead together.
    pub minimum_bytes: u32,
    /// `none`, `atm` or `ptm`.
    pub framing: String,
    /// Probability.
    pub probability: f64,
    /// Rate of the wire, bit/s.
    pub gross_bps: Estimate,
}

/// Detects what the line of `path` is. `tell` gets a sentence at each step.
///
/// # Errors
/// The path cannot carry trains: [`idle::detect`] needs only echoes.
pub fn detect(path: &mut dyn Path, options: &Options, tell: &mut dyn FnMut(&str)) -> Result<Detection, Error> {
    let start = path.elapsed().as_secs_f64();
    let allowance = options.allowance.as_secs_f64();
    let mtu = u16::try_from(path.mtu()?.as_u64()).unwrap_or(u16::MAX).min(9_000);
    let mut warnings = Vec::new();
    let idle_rtt_s = match idle_rtt(path) {
        Ok(rtt) => rtt,
        Err(error) => {
            warnings.push(format!("no echoes: {error}"));
            None
        }
    };
    let mut sides = Vec::new();
    for (number, way) in [Way::Down, Way::Up].into_iter().enumerate() {
        let name = if way == Way::Down { "down" } else { "up" };
        let elapsed = path.elapsed().as_secs_f64() - start;
        // The second way has the time that the first leaves.
        let share = if number == 0 { (allowance - elapsed) / 2.0 } else { allowance - elapsed };
        let until_s = start + elapsed + share;
        sides.push(Examination { path, way, name, mtu, options, until_s, warnings: &mut warnings, tell }.run()?);
    }
    let (Some(up), Some(down)) = (sides.pop(), sides.pop()) else { unreachable!("two ways were examined") };
    Ok(Detection { mtu_bytes: mtu, idle_rtt_s, down, up, took_s: path.elapsed().as_secs_f64() - start, warnings })
}

/// The smallest of 60 round-trip times; its interval reaches to the next ones.
fn idle_rtt(path: &mut dyn Path) -> Result<Option<Estimate>, Error> {
    let request = |i: u64| Departure { at: Duration::from_ms(25 * i), ip_len: ByteCount::new(ECHO_BYTES) };
    let requests: Vec<Departure> = (0..60).map(request).collect();
    let answers = path.echoes(&requests)?;
    let mut times: Vec<f64> = answers.iter().filter_map(|echo| Some(echo.round_trip?.as_secs_f64())).collect();
    times.sort_by(f64::total_cmp);
    let low = times.first().copied();
    // The gap to the third: as much may be missing below the smallest.
    Ok(low.map(|value| {
        let step = times.get(2).copied().unwrap_or(value) - value;
        Estimate { value, low: (value - step).max(0.0), high: value + step }
    }))
}

/// The examination of one way.
struct Examination<'a> {
    path: &'a mut dyn Path,
    way: Way,
    name: &'a str,
    mtu: u16,
    options: &'a Options,
    until_s: f64,
    warnings: &'a mut Vec<String>,
    tell: &'a mut dyn FnMut(&str),
}

impl Examination<'_> {
    fn run(mut self) -> Result<Side, Error> {
        let bits = f64::from(self.mtu) * 8.0;
        (self.tell)(&format!("{}: the rate under overload", self.name));
        let rate = f64::from(self.options.packets_per_second);
        let long_s = self.options.overload.as_secs_f64();
        let sustained = match rate::sustained(self.path, self.way, self.mtu, rate, (long_s, self.options.packets))? {
            Found::Rate(sustained) => sustained,
            Found::Above(offered) => {
                self.warnings.push(format!(
                    "{}: all of {:.1} Mbit/s arrived; the line is faster",
                    self.name,
                    offered / 1e6
                ));
                return Ok(unloaded(offered));
            }
        };
        let packet_s = sustained.packet_s;
        let ip_bps = inverse(bits, packet_s, within(sustained.error_s / packet_s));
        (self.tell)(&format!("{}: {:.3} Mbit/s of IP; filling its buffer", self.name, ip_bps.value / 1e6));
        let mut large = Vec::new();
        let first = self.fill(self.mtu, &sustained, packet_s)?;
        let first = self.confirmed(first, &sustained)?;
        large.push(first);
        let mut side = Side {
            encapsulation: Encapsulation { verdict: Verdict::Policer, candidates: Vec::new() },
            ip_bps,
            gross_bps: None,
            limiter: limiter(&first, &sustained, self.mtu),
            buffer: None,
            loss_share: sustained.losses.share(),
            others_share: None,
        };
        if matches!(side.limiter, Limiter::Policer { .. }) {
            return Ok(side);
        }
        (self.tell)(&format!("{}: time per packet against size", self.name));
        // The time for two more overloads, estimated from the first.
        let wait_s = first.packets.map_or(0.0, |(count, _)| count * packet_s);
        let fills = if wait_s > 0.0 { 2.0 * (3.2 * wait_s + 1.5) } else { 5.0 };
        let disturbed = disturbance::LONGEST_S + disturbance::cost_s(&sustained, wait_s);
        let bounds = Bounds {
            sizes: (self.options.smallest(), self.mtu),
            packets_per_second: rate,
            packets: self.options.packets,
            sure: self.options.sure,
            until_s: self.until_s - fills.min(30.0) - disturbed.min(20.0),
        };
        let outcome = framing::search(self.path, self.way, packet_s, bounds)?;
        let candidates = candidates(&outcome);
        side.gross_bps = gross(&outcome, &candidates);
        let verdict = match (&side.limiter, outcome.sure) {
            (Limiter::Shaper { .. }, _) => Verdict::Shaper,
            _ if outcome.posterior.misfit() => Verdict::Misfit,
            (_, true) => Verdict::Sure,
            (_, false) => Verdict::NotSure,
        };
        side.encapsulation = Encapsulation { verdict, candidates };
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
        (self.tell)(&format!("{}: what its buffer counts", self.name));
        let packet_s = sustained.packet_s;
        let rate = f64::from(self.options.packets_per_second);
        let mut small = None;
        // A short burst may have four times the packets per second of a long train.
        let size = (self.mtu / 5).max((f64::from(self.mtu) * buffer::OVERLOAD / (4.0 * rate * packet_s)) as u16);
        let cost = large[0].packets.map_or(4.0, |(count, _)| 3.2 * count * packet_s + 1.5);
        if size < self.mtu / 2 && self.has_time(cost) {
            small = Some((size, self.fill(size, sustained, outcome.packet_s(size))?));
        }
        if self.has_time(cost) {
            let again = self.fill(self.mtu, sustained, packet_s)?;
            large.push(again);
        }
        let others = self.disturbances(&mut side, sustained, &large, outcome)?;
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
        if side.buffer.is_none() {
            self.warnings.push(no_buffer(self.name, &side.limiter));
        }
        Ok(side)
    }

    /// Loss on the wire and traffic of others: what they do to the rates, and the latter's packets.
    fn disturbances(
        &mut self,
        side: &mut Side,
        sustained: &Sustained,
        large: &[Fill],
        outcome: &Outcome,
    ) -> Result<Option<Others>, Error> {
        let rate = f64::from(self.options.packets_per_second);
        let smallest = self.options.smallest();
        let wait_s = large.iter().filter_map(|fill| fill.packets).map(|fill| fill.0 * sustained.packet_s);
        let wait_s = wait_s.fold(0.0, f64::max);
        let mut others = None;
        if matches!(side.limiter, Limiter::Line) && self.has_time(disturbance::cost_s(sustained, wait_s)) {
            // Sizes compare by the law of the encapsulation, if it is known.
            let least = if outcome.sure { smallest } else { self.mtu };
            let size = disturbance::Size::smallest(least..=self.mtu, |size| outcome.packet_s(size), rate);
            let sender = (rate, self.options.packets);
            others = disturbance::others(self.path, self.way, size, sustained, wait_s, sender)?;
        }
        if let Some(others) = others {
            let alone = others.rate(f64::from(self.mtu) * 8.0);
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
        Ok(others)
    }

    fn has_time(&self, seconds: f64) -> bool {
        self.path.elapsed().as_secs_f64() + seconds < self.until_s
    }

    /// An overload again, if it showed a bucket: late receivers and senders look like one at times. A
    /// bucket that the second does not show within a quarter is none.
    fn confirmed(&mut self, fill: Fill, sustained: &Sustained) -> Result<Fill, Error> {
        let (Some((count, error)), None) = (fill.bucket, sustained.burst) else { return Ok(fill) };
        let again = self.fill(self.mtu, sustained, sustained.packet_s)?;
        let agrees = |other: (f64, f64)| (other.0 - count).abs() < 0.25 * count + Z * error.hypot(other.1);
        if again.bucket.is_some_and(agrees) { Ok(fill) } else { Ok(Fill { bucket: None, ..again }) }
    }

    /// An overload from idle, repeated after a longer pause if a bucket had no time to fill.
    fn fill(&mut self, size: u16, sustained: &Sustained, packet_s: f64) -> Result<Fill, Error> {
        // Overload, but below the rate of a burst, so that the bucket empties before packets wait.
        let ratio = |burst: Burst| sustained.packet_s / burst.packet_s;
        let bounded = sustained.burst.filter(|burst| burst.bounded);
        let overload = bounded.map_or(buffer::OVERLOAD, |burst| buffer::OVERLOAD.min(f64::midpoint(1.0, ratio(burst))));
        let most = self.options.packets;
        let bucket_s = sustained.burst.map_or(0.0, |burst| burst.length_s * (ratio(burst) - 1.0));
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

/// A rate that lost packets have lowered, if they are lost behind the queue. The interval includes
/// the case that they are lost before it, where they take no time of the line.
fn regained(rate: Estimate, loss: Estimate) -> Estimate {
    Estimate { value: rate.value / (1.0 - loss.value), low: rate.low, high: rate.high / (1.0 - loss.high) }
}

/// An estimate for the best candidate, which also covers that of all candidates if none is sure.
fn covering(best: Estimate, all: Estimate, sure: bool) -> Estimate {
    if sure { best } else { Estimate { value: best.value, low: best.low.min(all.low), high: best.high.max(all.high) } }
}

fn no_buffer(name: &str, limiter: &Limiter) -> String {
    match limiter {
        Limiter::Shaper { .. } => format!("{name}: the buffer behind the shaper's bucket did not show itself"),
        _ => format!("{name}: no buffer of a fixed size showed itself"),
    }
}

fn unloaded(offered: f64) -> Side {
    Side {
        encapsulation: Encapsulation { verdict: Verdict::Unloaded, candidates: Vec::new() },
        ip_bps: Estimate { value: offered, low: offered, high: f64::MAX },
        gross_bps: None,
        limiter: Limiter::Unknown,
        buffer: None,
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

/// Half-width of a rate's 95 % interval, relative, by the standard error of its time.
fn within(error: f64) -> f64 {
    Z * error.hypot(CLOCKS)
}

/// `bits` over `seconds` with a relative half-width.
fn inverse(bits: f64, seconds: f64, relative: f64) -> Estimate {
    let value = bits / seconds;
    Estimate { value, low: value * (1.0 - relative), high: value * (1.0 + relative) }
}

fn candidates(outcome: &Outcome) -> Vec<Candidate> {
    let beliefs = &outcome.posterior.beliefs;
    let mut order: Vec<usize> = (0..beliefs.len()).collect();
    order.sort_by(|&a, &b| beliefs[b].probability.total_cmp(&beliefs[a].probability));
    let mut covered = 0.0;
    let mut candidates = Vec::new();
    for &i in order.iter().take(10) {
        let (class, belief) = (&outcome.classes[i], &beliefs[i]);
        let link = class.law().link;
        candidates.push(Candidate {
            presets: class.presets.iter().map(|&name| name.to_owned()).collect(),
            overhead_bytes: link.overhead(),
            minimum_bytes: link.min_frame(),
            framing: framing_name(link.framing()).to_owned(),
            probability: belief.probability,
            gross_bps: inverse(8.0, belief.byte_s, within(belief.byte_error)),
        });
        covered += belief.probability;
        if covered > 0.999 {
            break;
        }
    }
    if let Some(first) = candidates.first_mut() {
        first.probability = certainty(&outcome.classes, &outcome.posterior);
    }
    candidates
}

fn framing_name(framing: Framing) -> &'static str {
    match framing {
        Framing::None => "none",
        Framing::Atm => "atm",
        Framing::Ptm => "ptm",
    }
}

/// The rate of the most probable candidate. Its interval covers all of them if none is sure.
fn gross(outcome: &Outcome, candidates: &[Candidate]) -> Option<Estimate> {
    let first = candidates.first()?.gross_bps;
    if outcome.sure {
        return Some(first);
    }
    let cover = |sum: Estimate, each: &Candidate| Estimate {
        value: sum.value,
        low: sum.low.min(each.gross_bps.low),
        high: sum.high.max(each.gross_bps.high),
    };
    Some(candidates.iter().fold(first, cover))
}

#[cfg(test)]
mod tests;
