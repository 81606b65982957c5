//! The most that a station with one request on the way can send.
//!
//! A request is answered after the response time, in a slot that begins then or later. A grant that one slot does not
//! hold goes on in the next ones. The next request leaves with the data of the last of them, or at the next opportunity
//! after it has begun. So the mean time between the grants bounds the rate of the station: the request-grant time of
//! `theory`, MAP interval plus MAP-ahead. A request that fills its last slot may bring a higher rate than a larger one:
//! the bound is the highest of all sizes.

use lastmile_units::{Duration, Instant, WireBytes};

use super::capacity::bytes_in;
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

impl Config {
    /// The cycle with the highest rate that the station can have. `None` if requests overtake one another, ask for any
    /// size, or are not needed.
    #[must_use]
    pub fn cycle(&self) -> Option<Cycle> {
        let requests = self.requests.as_ref().filter(|_| self.proactive.is_none())?;
        let brings = match (requests.asks, requests.outstanding) {
            (Asks::Packet, _) => PerRequest::Packet,
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
        let cycle = |brings| Cycle { time: self.time_between_grants(requests, brings), brings };
        let PerRequest::Bytes(most) = brings else { return Some(cycle(brings)) };
        let rate = |cycle: Cycle, bytes: WireBytes| (u128::from(bytes.as_u64()) << 64) / u128::from(cycle.time.as_ps());
        let sizes = self.sizes_that_fill_slots(most).chain([most]);
        sizes
            .map(|bytes| (cycle(PerRequest::Bytes(bytes)), bytes))
            .max_by_key(|&(of, bytes)| rate(of, bytes))
            .map(|(of, _)| of)
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

    /// The least mean time between the grants of a station that always asks for this much.
    fn time_between_grants(&self, requests: &Requests, brings: PerRequest) -> Duration {
        let every = requests.every.as_ps();
        let grant_of = |asked: Instant| self.slots.starting_from(asked + requests.response).start;
        let first = grant_of(Instant::ZERO);
        let last = (0..REQUESTS).fold(first, |grant, _| {
            let window = self.last_window(grant, brings);
            let opportunity = self.slots.of_direction_from(Instant::from_ps((window.as_ps() / every + 1) * every));
            grant_of(if requests.piggyback { window } else { opportunity }).max(grant + Duration::from_ps(1))
        });
        last.since(first) / REQUESTS
    }

    /// The start of the last of the windows that bring the bytes of a request, if the first starts at `grant`. A rate
    /// that changes is the highest. Whole packets have one window.
    fn last_window(&self, grant: Instant, brings: PerRequest) -> Instant {
        let PerRequest::Bytes(bytes) = brings else { return grant };
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
    use lastmile_units::BitRate;

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
            let always = config.requests.as_ref().map(|requests| config.time_between_grants(requests, of_most));
            let slots = most.div_ceil(5_000);
            assert_eq!(always, Some(Duration::from_ms(2 + 2 * slots)));
        }
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
