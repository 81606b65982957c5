//! The most that a station with one request on the way can send.
//!
//! A request is answered after the response time, in a slot that begins then or later. A grant that one slot does not
//! hold goes on in the next ones. The next request leaves with the data of the last of them, or at the next opportunity
//! after it has begun; for single packets, at the next opportunity after the packet has been sent. So the mean time
//! between the grants bounds the rate of the station: the request-grant time of `theory`, MAP interval plus MAP-ahead,
//! for packets that are sent between two opportunities. A request that fills its last slot may bring a higher rate than
//! a larger one: the bound is the highest of all sizes.

use lastmile_units::{BitRate, Duration, Instant, WireBytes};

use super::capacity::{bytes_in, rate_of};
use super::{Asks, Config, Outstanding, Requests, Span};

/// Requests over which the mean is taken: patterns and opportunities meet anew after fewer.
const REQUESTS: u64 = 4_096;

/// The most that one request brings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PerRequest {
    /// One packet of any size.
    Packet,
    /// Bytes on the wire.
    Bytes(WireBytes),
    /// Whole packets of at most these bytes on the wire; a part of a packet that exceeds them.
    Burst(WireBytes),
}

/// A station with one request on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cycle {
    /// The least mean time from one grant to the next.
    pub time: Duration,
    /// The most that each brings.
    pub brings: PerRequest,
}

impl Cycle {
    /// The rate that requests bring; `None` for packets of any size.
    #[must_use]
    pub fn rate(&self) -> Option<BitRate> {
        match self.brings {
            PerRequest::Packet => None,
            PerRequest::Bytes(bytes) | PerRequest::Burst(bytes) => BitRate::from_bps(rate_of(bytes, self.time)),
        }
    }
}

impl Config {
    /// The cycle with the highest rate that the station can have. `None` if requests overtake one another, ask for any
    /// size, or are not needed. Single packets have the cycle of the shortest ones; see [`Config::cycle_of`].
    #[must_use]
    pub fn cycle(&self) -> Option<Cycle> {
        let requests = self.requests.as_ref().filter(|_| self.proactive.is_none())?;
        let brings = match (requests.asks, requests.outstanding) {
            (Asks::Packet, _) => PerRequest::Packet,
            // Such a request waits until the one before it is granted, and no data reports the backlog.
            (Asks::Backlog { most, first: Some(first) }, _) if !requests.piggyback => {
                let bytes = most.map_or(first, |most| most.min(first)).as_u64();
                PerRequest::Bytes(WireBytes::new(bytes.checked_next_multiple_of(self.unit.get())?))
            }
            (Asks::Backlog { most, first }, Outstanding::One) => {
                let whole = self.whole_burst();
                let most = match whole {
                    Some(burst) => Some(burst).filter(|burst| *burst < u64::MAX)?,
                    None => most?.max(first.unwrap_or(WireBytes::ZERO)).as_u64(),
                };
                let padded = WireBytes::new(most.checked_next_multiple_of(self.unit.get())?);
                if whole.is_some() { PerRequest::Burst(padded) } else { PerRequest::Bytes(padded) }
            }
            (Asks::Backlog { .. }, Outstanding::Many) => return None,
        };
        let cycle = |brings| Cycle { time: self.time_between_grants(requests, brings, WireBytes::ZERO), brings };
        let PerRequest::Bytes(most) = brings else { return Some(cycle(brings)) };
        let rate = |cycle: Cycle, bytes: WireBytes| (u128::from(bytes.as_u64()) << 64) / u128::from(cycle.time.as_ps());
        let sizes = self.sizes_that_fill_slots(most).chain([most]);
        sizes
            .map(|bytes| (cycle(PerRequest::Bytes(bytes)), bytes))
            .max_by_key(|&(of, bytes)| rate(of, bytes))
            .map(|(of, _)| of)
    }

    /// The cycle of packets of at least this size. Without it the time is that of the shortest packets.
    #[must_use]
    pub fn cycle_of(&self, packet: WireBytes) -> Option<Cycle> {
        let cycle = self.cycle()?;
        let requests = self.requests.as_ref().filter(|_| cycle.brings == PerRequest::Packet);
        let time = requests.map_or(cycle.time, |requests| self.time_between_grants(requests, cycle.brings, packet));
        Some(Cycle { time, ..cycle })
    }

    /// The sizes that fill slots, as large as a request may be: one for each slot of the pattern that may come first.
    fn sizes_that_fill_slots(&self, most: WireBytes) -> impl Iterator<Item = WireBytes> {
        let held = |span: &Span| bytes_in(self.rate, span.end - span.start) / self.unit.get() * self.unit.get();
        let spans = &self.slots.usable;
        let round: u64 = spans.iter().map(held).sum();
        let from = move |first: usize| {
            let mut bytes = most.as_u64() / round.max(1) * round;
            for held in spans.iter().cycle().skip(first).take(spans.len()).map(held) {
                if bytes + held > most.as_u64() {
                    break;
                }
                bytes += held;
            }
            WireBytes::new(bytes)
        };
        (0..spans.len()).map(from).filter(|bytes| *bytes > WireBytes::ZERO)
    }

    /// The least mean time between the grants of a station that always asks for this much; for single packets each of
    /// these bytes.
    fn time_between_grants(&self, requests: &Requests, brings: PerRequest, packet: WireBytes) -> Duration {
        let every = requests.every.as_ps();
        let grant_of = |asked: Instant| self.slots.starting_from(asked + requests.response).start;
        let first = grant_of(Instant::ZERO);
        let last = (0..REQUESTS).fold(first, |grant, _| {
            let (window, free) = match brings {
                PerRequest::Packet => self.transmission(grant, packet),
                PerRequest::Bytes(bytes) => (self.last_window(grant, bytes), grant),
                PerRequest::Burst(_) => (grant, grant),
            };
            let free = free.max(window + Duration::from_ps(1));
            let opportunity = Instant::from_ps(free.as_ps().div_ceil(every) * every);
            let opportunity = self.slots.of_direction_from(opportunity);
            grant_of(if requests.piggyback { window } else { opportunity }).max(grant + Duration::from_ps(1))
        });
        last.since(first) / REQUESTS
    }

    /// The start of the window that brings the end of a packet whose first begins at `grant`, and the earliest end of
    /// its transmission. A rate that changes is the highest. Without fragmentation there is one window.
    fn transmission(&self, grant: Instant, packet: WireBytes) -> (Instant, Instant) {
        let usable: Duration = self.slots.usable.iter().map(|span| span.end - span.start).sum();
        let time = self.rate.time_for(packet);
        let rounds = time.as_ps().saturating_sub(1) / usable.as_ps();
        let (mut left, mut at) = (time - usable * rounds, grant + self.slots.round() * rounds);
        loop {
            let span = self.slots.ending_after(at);
            let start = at.max(span.start);
            let room = span.end.since(start);
            if room >= left {
                return (if self.fragmentation { start } else { grant }, start + left);
            }
            (left, at) = (left - room, span.end);
        }
    }

    /// The start of the last of the windows that bring `bytes`, if the first starts at `grant`. A rate that changes is
    /// the highest.
    fn last_window(&self, grant: Instant, bytes: WireBytes) -> Instant {
        let (mut left, mut at) = (bytes.as_u64(), grant);
        loop {
            let span = self.slots.ending_after(at);
            let start = at.max(span.start);
            let held = bytes_in(self.rate, span.end - start);
            if held >= left {
                return start;
            }
            (left, at) = (left - held, span.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Slots;
    use super::*;

    fn config(every_ms: u64, response_ms: u64, asks: Asks, outstanding: Outstanding) -> Config {
        let slot = Duration::from_ms(every_ms);
        let slots = Slots::new(slot, vec![Span { start: Duration::ZERO, end: slot }]).expect("a slot");
        let response = Duration::from_ms(response_ms);
        let requests = Requests { every: slot, contention: None, piggyback: false, response, asks, outstanding };
        Config { requests: Some(requests), ..Config::new(BitRate::from_mbit_per_s(10), slots) }
    }

    /// "DOCSIS sub-throughput optimization" (CED, December 2006): MAP interval plus MAP-ahead.
    #[test]
    fn the_cycle_of_single_packets_is_the_request_grant_time() {
        for (ahead_ms, cycle_ms) in [(4, 5), (2, 3)] {
            let cycle = config(1, ahead_ms, Asks::Packet, Outstanding::Many).cycle();
            let expected = Cycle { time: Duration::from_ms(cycle_ms), brings: PerRequest::Packet };
            assert_eq!(cycle, Some(expected));
        }
        // With the granted data a request leaves a slot earlier.
        let mut piggyback = config(1, 4, Asks::Packet, Outstanding::One);
        piggyback.requests.iter_mut().for_each(|requests| requests.piggyback = true);
        assert_eq!(piggyback.cycle().map(|cycle| cycle.time), Some(Duration::from_ms(4)));
    }

    /// 1500 bytes take 1.2 ms of 10 Mbit/s, and the request after them leaves at 2 ms: 2 ms and 3 ms of response, and
    /// in slots of 2 ms 4 + 2 = 6 ms. Less than 1 ms of transmission changes nothing. 2.4 ms at half the rate are a
    /// request after 3 ms. With the data, requests leave at the start of a slot: of the first one without
    /// fragmentation, and with it of the second one, in which a packet of 2.4 ms ends.
    #[test]
    fn a_packet_is_sent_before_the_station_asks_for_the_next_one() {
        let cycle_ms = |slot_ms: u64, response_ms: u64, mbps: u64, bytes: u64, set: &dyn Fn(&mut Config)| {
            let mut config = config(slot_ms, response_ms, Asks::Packet, Outstanding::One);
            config.rate = BitRate::from_mbit_per_s(mbps);
            config.requests.iter_mut().for_each(|requests| requests.every = Duration::from_ms(1));
            set(&mut config);
            config.cycle_of(WireBytes::new(bytes)).map(|cycle| cycle.time.as_us() as f64 / 1e3)
        };
        let plain = |_: &mut Config| {};
        assert_eq!(cycle_ms(1, 3, 10, 1_500, &plain), Some(5.0));
        assert_eq!(cycle_ms(2, 3, 10, 1_500, &plain), Some(6.0));
        assert_eq!(cycle_ms(2, 3, 10, 64, &plain), Some(4.0));
        assert_eq!(cycle_ms(1, 4, 10, 1_250, &plain), Some(5.0));
        assert_eq!(cycle_ms(1, 4, 10, 1_251, &plain), Some(6.0));
        assert_eq!(cycle_ms(2, 3, 5, 1_500, &plain), Some(6.0));
        let piggyback = |config: &mut Config| config.requests.iter_mut().for_each(|requests| requests.piggyback = true);
        let whole_with_piggyback = |config: &mut Config| {
            config.fragmentation = false;
            piggyback(config);
        };
        assert_eq!(cycle_ms(2, 3, 5, 1_500, &piggyback), Some(6.0));
        assert_eq!(cycle_ms(2, 3, 5, 1_500, &whole_with_piggyback), Some(4.0));
        // Half of each slot of 2 ms: 2.4 ms end 0.4 ms into the third slot, 4.4 ms after the grant.
        let half = |config: &mut Config| {
            let span = Span { start: Duration::ZERO, end: Duration::from_ms(1) };
            config.slots = Slots::new(Duration::from_ms(2), vec![span]).expect("a slot");
        };
        assert_eq!(cycle_ms(2, 3, 5, 1_500, &half), Some(8.0));
        assert_eq!(cycle_ms(2, 3, 5, 15_000, &half), Some(50.0));
    }

    /// 20 Mbit/s have 5000 bytes in 2 ms. The first slot begins 4 ms after a request. 6000 and 10 000 bytes end in the
    /// next one, with which the next request leaves: 8 and 13.3 Mbit/s. 16 000 bytes have four slots: 12.8 Mbit/s. A
    /// station that may ask for 6000 has more with 5000, 10 Mbit/s, and one of 16 000 with 15 000, 15 Mbit/s.
    #[test]
    fn a_grant_in_several_slots_delays_the_next_request() {
        for (most, best, cycle_ms) in [(5_000, 5_000, 4), (6_000, 5_000, 4), (10_000, 10_000, 6), (16_000, 15_000, 8)] {
            let asks = Asks::Backlog { most: Some(WireBytes::new(most)), first: None };
            let mut config = config(2, 3, asks, Outstanding::One);
            config.rate = BitRate::from_mbit_per_s(20);
            config.requests.iter_mut().for_each(|requests| requests.piggyback = true);
            let brings = PerRequest::Bytes(WireBytes::new(best));
            assert_eq!(config.cycle(), Some(Cycle { time: Duration::from_ms(cycle_ms), brings }));
            let of_most = PerRequest::Bytes(WireBytes::new(most));
            let always =
                config.requests.as_ref().map(|requests| config.time_between_grants(requests, of_most, WireBytes::ZERO));
            let slots = most.div_ceil(5_000);
            assert_eq!(always, Some(Duration::from_ms(2 + 2 * slots)));
        }
    }

    /// 100 bytes every 10 ms, in LTE: a request at an opportunity each 10 ms, and its grant 8 ms later.
    #[test]
    fn a_scheduling_request_brings_its_first_grant_alone() {
        let asks =
            |most: Option<u64>| Asks::Backlog { most: most.map(WireBytes::new), first: Some(WireBytes::new(100)) };
        let cycle = |most, piggyback: bool| {
            let mut config = config(1, 8, asks(most), Outstanding::Many);
            let of_lte = |requests: &mut Requests| {
                (requests.every, requests.piggyback) = (Duration::from_ms(10), piggyback);
            };
            config.requests.iter_mut().for_each(of_lte);
            config.cycle()
        };
        let brings = |bytes| PerRequest::Bytes(WireBytes::new(bytes));
        let expected = Cycle { time: Duration::from_ms(10), brings: brings(100) };
        assert_eq!((cycle(None, false), cycle(None, true)), (Some(expected), None));
        assert_eq!(expected.rate(), Some(BitRate::from_kbit_per_s(80)));
        assert_eq!(cycle(Some(64), false).map(|cycle| cycle.brings), Some(brings(64)));
    }

    #[test]
    fn a_request_for_the_backlog_brings_what_it_may_ask_for() {
        let asks = |most: u64| Asks::Backlog { most: Some(WireBytes::new(most)), first: None };
        // 2500 bytes in a slot of 2 ms are 156 minislots. The next request leaves 2 ms after the start of the slot.
        let one = config(2, 2, asks(3_000), Outstanding::One);
        let one = Config { unit: core::num::NonZeroU64::new(16).expect("above zero"), ..one };
        let expected = Cycle { time: Duration::from_ms(4), brings: PerRequest::Bytes(WireBytes::new(2_496)) };
        assert_eq!(one.cycle(), Some(expected));
        assert_eq!(config(2, 2, asks(3_000), Outstanding::Many).cycle(), None);
        // 3000 bytes of whole packets; without a limit what 1 of 2 ms brings, 1250 bytes.
        let whole = |asks, usable_ms: u64| {
            let span = Span { start: Duration::ZERO, end: Duration::from_ms(usable_ms) };
            let slots = Slots::new(Duration::from_ms(2), vec![span]).expect("a slot");
            let config = Config { slots, fragmentation: false, ..config(2, 2, asks, Outstanding::One) };
            config.cycle().map(|cycle| cycle.brings)
        };
        assert_eq!(whole(asks(3_000), 2), Some(PerRequest::Burst(WireBytes::new(3_000))));
        let any = Asks::Backlog { most: None, first: None };
        assert_eq!((whole(any, 1), whole(any, 2)), (Some(PerRequest::Burst(WireBytes::new(1_250))), None));
        assert_eq!(config(2, 2, Asks::Backlog { most: None, first: None }, Outstanding::One).cycle(), None);
    }
}
