//! Google Congestion Control of one stream of packets, at its sender.
//!
//! Published: draft-ietf-rmcat-gcc-02 (delay-based control by a Kalman filter, an over-use detector with an adaptive
//! threshold, and rate control; loss-based control). Section numbers in this file are those of the draft.
//!
//! The receiver reports the arrival of each packet; groups of packets that depart within 5 ms are compared. The filter
//! estimates by how much the queue grows from group to group. Growth above the threshold for more than 10 ms, and in
//! two groups at least, is over-use, which reduces the rate to 0.85 of what arrives. Otherwise the rate grows, by 8 % a
//! second or, near the rate of the last over-use, by half a packet each response time. Losses above 10 % reduce the
//! rate by half their share.
//!
//! Differs. Feedback arrives more often than the receiver reports for which section 6 was written: as in libwebrtc,
//! losses are judged over a second and 20 packets at least, and lower the rate once in 300 ms and a round trip at most.
//! Also as in libwebrtc, the growth of the first group above the threshold counts for half the time since the group
//! ahead of it, and the detector compares the growth over the groups so far, at most 60, with the threshold; by the
//! draft's text it would be the growth from one group to the next, with which a queue of a second forms before an
//! over-use. The filter's coefficient chi is 0.01, for which the draft has a range. The bounds of the deviation of
//! rates at over-uses are those of libwebrtc. The least growth near them is the draft's 1000 bit/s a report; libwebrtc
//! has 4000 bit/s a second. Browsers use a line through recent delays (*trendline*) in place of the filter, and send
//! probes to rise faster; the draft has neither.
//!
//! Cost: O(1) a packet, and a queue of the packets of half a second.

use std::collections::VecDeque;

use lastmile_units::{BitRate, Duration, Instant};

/// Section 5.2: packets that depart within this time are one group.
const BURST: Duration = Duration::from_ms(5);
/// Section 5.3: variance of the state's noise, and the filter's coefficient.
const STATE_NOISE: f64 = 1e-3;
const CHI: f64 = 0.01;
/// Groups over which the growth of the queue, and the highest rate of groups, are taken.
const GROUPS: usize = 60;
/// Section 5.4, in milliseconds: the first threshold, its bounds and gains, and the time of an over-use.
const FIRST_THRESHOLD: f64 = 12.5;
const LEAST_THRESHOLD: f64 = 6.0;
const MOST_THRESHOLD: f64 = 600.0;
const OUTLIER: f64 = 15.0;
const RISE: f64 = 0.01;
const FALL: f64 = 0.000_18;
const OVERUSE_TIME: f64 = 10.0;
/// Section 5.5: window of the measured rate, growth a second, decrease, and the bound by what arrives.
const RATE_WINDOW: Duration = Duration::from_ms(500);
const GROWTH: f64 = 1.08;
const BETA: f64 = 0.85;
const ABOVE_RECEIVED: f64 = 1.5;
/// Section 5.5: weight of the average of the rates at over-uses, and the least growth a report in bit/s.
const MAXIMUM_WEIGHT: f64 = 0.05;
const LEAST_GROWTH: f64 = 1000.0;
/// Bounds of the variance of those rates relative to their average, in bit/s: 0.4 and 2.5 kbit/s in libwebrtc, a
/// deviation of 14 and 35 kbit/s at 500 kbit/s. The draft has none.
const LEAST_VARIANCE: f64 = 400.0;
const MOST_VARIANCE: f64 = 2_500.0;
/// Section 6: losses that raise and lower the rate, the raise, and the least time and packets of a judgement.
const FEW_LOSSES: f64 = 0.02;
const MANY_LOSSES: f64 = 0.1;
const LOSS_GROWTH: f64 = 1.05;
const LOSS_INTERVAL: Duration = Duration::from_s(1);
const LOSS_PACKETS: u64 = 20;
const LOSS_RESPITE: Duration = Duration::from_ms(300);
/// Bits of a full packet, for the expected size (section 5.5).
const PACKET_BITS: f64 = 1200.0 * 8.0;

/// The report on one packet. Of a missing one, it is the only thing that counts that it is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Report {
    pub(super) sent: Instant,
    /// `None`: it had not arrived when a later one had.
    pub(super) arrived: Option<Instant>,
    /// IP bytes.
    pub(super) size: u16,
}

/// Section 5.4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Signal {
    Normal,
    Overuse,
    Underuse,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Hold,
    Increase,
    Decrease,
}

/// Packets that departed within [`BURST`].
#[derive(Clone, Copy, Debug)]
struct Group {
    first_sent: Instant,
    last_sent: Instant,
    last_arrived: Instant,
}

/// The arrival-time filter and the detector (sections 5.3 and 5.4). Times in milliseconds.
#[derive(Clone, Debug)]
struct Detector {
    current: Option<Group>,
    before: Option<Group>,
    /// Send intervals of the latest groups, at most [`GROUPS`].
    intervals: VecDeque<f64>,
    /// The estimated growth of the queue from group to group, its variance, and that of the noise.
    growth: f64,
    variance: f64,
    noise: f64,
    threshold: f64,
    /// For how long, and in how many groups, the growth has exceeded the threshold.
    above: Option<(f64, u32)>,
    signal: Signal,
}

impl Detector {
    fn new() -> Self {
        Self {
            current: None,
            before: None,
            intervals: VecDeque::new(),
            growth: 0.0,
            variance: 0.1,
            noise: 1.0,
            threshold: FIRST_THRESHOLD,
            above: None,
            signal: Signal::Normal,
        }
    }

    fn on_packet(&mut self, sent: Instant, arrived: Instant) {
        let Some(group) = &mut self.current else {
            self.current = Some(Group { first_sent: sent, last_sent: sent, last_arrived: arrived });
            return;
        };
        let burst = sent.since(group.first_sent) <= BURST;
        // A packet behind a queue that drains belongs to the burst that the queue forms.
        let joined = arrived.since(group.last_arrived) < BURST
            && arrived.since(group.last_arrived) < sent.since(group.last_sent);
        if burst || joined {
            group.last_sent = group.last_sent.max(sent);
            group.last_arrived = group.last_arrived.max(arrived);
            return;
        }
        let whole = *group;
        if let Some(before) = self.before.replace(whole) {
            self.on_group(&before, &whole);
        }
        self.current = Some(Group { first_sent: sent, last_sent: sent, last_arrived: arrived });
    }

    fn on_group(&mut self, before: &Group, group: &Group) {
        let sent = ms(group.last_sent.since(before.last_sent));
        let arrived = ms(group.last_arrived.since(before.last_arrived));
        if self.intervals.len() == GROUPS {
            self.intervals.pop_front();
        }
        self.intervals.push_back(sent.max(0.1));
        let shortest = self.intervals.iter().copied().fold(f64::INFINITY, f64::min);
        // Section 5.3: chi for 30 groups a second.
        let keep = libm::pow(1.0 - CHI, 30.0 * shortest / 1000.0);
        let limit = 3.0 * libm::sqrt(self.noise);
        let residual = arrived - sent - self.growth;
        let z = residual.clamp(-limit, limit);
        self.noise = (keep * self.noise + (1.0 - keep) * z * z).max(1.0);
        let predicted = self.variance + STATE_NOISE;
        let gain = predicted / (self.noise + predicted);
        let previous = self.growth;
        self.growth += gain * z;
        self.variance = (1.0 - gain) * predicted;
        self.detect(previous, sent, arrived);
    }

    fn detect(&mut self, previous: f64, sent: f64, arrived: f64) {
        let growth = self.growth * self.intervals.len() as f64;
        if growth > self.threshold {
            // The growth began at an unknown time since the group ahead: half of that time counts.
            let (time, groups) = self.above.map_or((0.5 * sent, 1), |(time, groups)| (time + sent, groups + 1));
            self.above = Some((time, groups));
            if time > OVERUSE_TIME && groups > 1 && self.growth >= previous {
                self.signal = Signal::Overuse;
            }
        } else {
            self.above = None;
            self.signal = if growth < -self.threshold { Signal::Underuse } else { Signal::Normal };
        }
        let excess = growth.abs() - self.threshold;
        if excess <= OUTLIER {
            let gain = if excess < 0.0 { FALL } else { RISE };
            // A long silence counts as 100 ms.
            let moved = self.threshold + arrived.clamp(0.0, 100.0) * gain * excess;
            self.threshold = moved.clamp(LEAST_THRESHOLD, MOST_THRESHOLD);
        }
    }
}

/// The average of the rates at over-uses, and their variance relative to the average. Both in bit/s.
#[derive(Clone, Copy, Debug)]
struct Maximum {
    mean: f64,
    variance: f64,
}

impl Maximum {
    fn new(mean: f64) -> Self {
        Self { mean, variance: LEAST_VARIANCE }
    }

    /// Rates farther from the average than this are those of a line that has changed.
    fn band(&self) -> f64 {
        3.0 * libm::sqrt(self.variance * self.mean)
    }
}

/// The control of one stream.
#[derive(Clone, Debug)]
pub(super) struct Gcc {
    detector: Detector,
    state: State,
    /// Rates in bit/s: by delay, and by losses.
    by_delay: f64,
    by_loss: f64,
    bounds: [f64; 2],
    maximum: Option<Maximum>,
    /// Arrivals of the last half second, and their bytes.
    received: VecDeque<(Instant, u16)>,
    received_bytes: u64,
    updated: Option<Instant>,
    /// Packets judged since the time, and the lost ones among them.
    judged: (u64, u64),
    judged_since: Option<Instant>,
    lowered: Option<Instant>,
}

impl Gcc {
    pub(super) fn new(first: BitRate, [least, most]: [BitRate; 2]) -> Self {
        let bps = |rate: BitRate| rate.as_bps() as f64;
        Self {
            detector: Detector::new(),
            state: State::Increase,
            by_delay: bps(first),
            by_loss: bps(most),
            bounds: [bps(least), bps(most)],
            maximum: None,
            received: VecDeque::new(),
            received_bytes: 0,
            updated: None,
            judged: (0, 0),
            judged_since: None,
            lowered: None,
        }
    }

    /// The rate at which the stream may send, in bit/s.
    pub(super) fn rate(&self) -> f64 {
        self.by_delay.min(self.by_loss).clamp(self.bounds[0], self.bounds[1])
    }

    /// A report on packets in the order of their departure, after a round trip of `rtt`.
    pub(super) fn on_reports(&mut self, now: Instant, reports: &[Report], rtt: Duration) {
        for report in reports {
            self.judged.0 += 1;
            let Some(arrived) = report.arrived else {
                self.judged.1 += 1;
                continue;
            };
            self.received.push_back((arrived, report.size));
            self.received_bytes += u64::from(report.size);
            self.detector.on_packet(report.sent, arrived);
        }
        self.control(now, rtt);
        self.judge_losses(now, rtt);
    }

    /// The rate that arrives, in bit/s; `None` before half a second of it.
    fn arrives(&mut self) -> Option<f64> {
        let (first, last) = (self.received.front()?.0, self.received.back()?.0);
        let full = last.since(first) >= RATE_WINDOW;
        while let Some((at, size)) = self.received.front().copied()
            && last.since(at) >= RATE_WINDOW
        {
            self.received.pop_front();
            self.received_bytes -= u64::from(size);
        }
        full.then(|| self.received_bytes as f64 * 8.0 / RATE_WINDOW.as_secs_f64())
    }

    /// Section 5.5.
    fn control(&mut self, now: Instant, rtt: Duration) {
        let arrives = self.arrives();
        self.state = match (self.detector.signal, self.state) {
            (Signal::Overuse, _) => State::Decrease,
            (Signal::Normal, State::Decrease) | (Signal::Underuse, _) => State::Hold,
            (Signal::Normal, _) => State::Increase,
        };
        let since = self.updated.map_or(0.0, |updated| ms(now.since(updated)));
        self.updated = Some(now);
        match self.state {
            State::Hold => {}
            State::Increase => self.increase(since, arrives, rtt),
            State::Decrease => {
                if let Some(arrives) = arrives {
                    self.note_maximum(arrives);
                    self.by_delay = (BETA * arrives).min(self.by_delay);
                }
                // One over-use is one decrease.
                self.detector.signal = Signal::Normal;
                self.detector.above = None;
            }
        }
        self.by_delay = self.by_delay.clamp(self.bounds[0], self.bounds[1]);
    }

    fn increase(&mut self, since_ms: f64, arrives: Option<f64>, rtt: Duration) {
        if let (Some(maximum), Some(arrives)) = (self.maximum, arrives)
            && arrives > maximum.mean + maximum.band()
        {
            // The line has become faster: its rate is unknown.
            self.maximum = None;
        }
        let raised = if self.maximum.is_some() {
            let frame = self.by_delay / 30.0;
            let packet = frame / (frame / PACKET_BITS).ceil().max(1.0);
            let response = 100.0 + ms(rtt);
            self.by_delay + (0.5 * (since_ms / response).min(1.0) * packet).max(LEAST_GROWTH)
        } else {
            self.by_delay * libm::pow(GROWTH, (since_ms / 1000.0).min(1.0))
        };
        let most = arrives.map_or(f64::INFINITY, |arrives| ABOVE_RECEIVED * arrives);
        // The bound ends the growth, and lowers nothing: a source may send less than it may.
        self.by_delay = raised.min(most).max(self.by_delay.min(raised));
    }

    fn note_maximum(&mut self, arrives: f64) {
        let maximum = self.maximum.get_or_insert(Maximum::new(arrives));
        if arrives < maximum.mean - maximum.band() {
            // The line has become slower.
            *maximum = Maximum::new(arrives);
            return;
        }
        let apart = arrives - maximum.mean;
        maximum.mean += MAXIMUM_WEIGHT * apart;
        let relative = apart * apart / maximum.mean.max(1.0);
        let variance = maximum.variance + MAXIMUM_WEIGHT * (relative - maximum.variance);
        maximum.variance = variance.clamp(LEAST_VARIANCE, MOST_VARIANCE);
    }

    /// Section 6.
    fn judge_losses(&mut self, now: Instant, rtt: Duration) {
        let since = *self.judged_since.get_or_insert(now);
        let (packets, lost) = self.judged;
        if now.since(since) < LOSS_INTERVAL || packets < LOSS_PACKETS {
            return;
        }
        let share = lost as f64 / packets as f64;
        let respite = self.lowered.is_none_or(|at| now.since(at) >= LOSS_RESPITE + rtt);
        if share > MANY_LOSSES && respite {
            self.by_loss = self.rate() * (1.0 - 0.5 * share);
            self.lowered = Some(now);
        } else if share < FEW_LOSSES {
            self.by_loss = (self.by_loss * LOSS_GROWTH).min(self.bounds[1]);
        }
        self.judged = (0, 0);
        self.judged_since = Some(now);
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests;
