//! What a sender waited for, of a capture that does not stand next to it.
//!
//! Behind the way to the capture, what was in flight when a packet was sent does not show in what has passed: at the receiver every segment is
//! acknowledged as it comes. Each packet says which ACK its sender had received last (see `turnaround.rs`); without timestamps it is the
//! last one that can have reached it, as far as the fastest answer tells. From there it is the same account as next to the sender, span by
//! span between packets of data.
//!
//! Without timestamps a queue on the way to the capture hides: more ACKs seem to have arrived than had. A receive window that seems full was
//! full; one that does not may have been. What was neither is [`Limit::Window`].

use std::collections::VecDeque;

use lastmile_units::{Duration, Instant};

use crate::limit::{Limit, Shares};

/// Most ACKs on their way to the sender that are remembered.
const MOST_ACKS: usize = 8_192;

/// Where the account comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Basis {
    /// Packets as they passed the capture.
    Packets,
    /// Timestamps that packets echo.
    Timestamps,
    /// The round trip from the capture to the sender in the handshake.
    RoundTrip,
}

impl Basis {
    /// Its name in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packets => "packets",
            Self::Timestamps => "timestamps",
            Self::RoundTrip => "round_trip",
        }
    }
}

/// What a sender knew when it sent a packet: the offset acknowledged, the window offered with it if its scale is known, and when that passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) at: Instant,
    pub(crate) ack: i64,
    pub(crate) window: Option<i64>,
    /// It is only the most that the sender can have known.
    pub(crate) at_most: bool,
}

/// A packet of data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) start: i64,
    /// One past the highest offset sent, with this packet.
    pub(crate) next: i64,
    pub(crate) mss: i64,
    /// Its application had more to send.
    pub(crate) is_full: bool,
    /// Losses are being repaired; with this packet a timer has expired.
    pub(crate) repairs: bool,
    pub(crate) timer: bool,
    /// It is the SYN.
    pub(crate) opens: bool,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct AtSender {
    acks: VecDeque<Known>,
    known: Option<Known>,
    since: Option<Instant>,
    limit: Option<Limit>,
    shares: Shares,
    /// Packets whose sender's knowledge could not be told, and all.
    blind: u64,
    packets: u64,
    at_most: bool,
}

impl AtSender {
    /// An ACK passes towards a sender that has no timestamps.
    pub(crate) fn passed(&mut self, known: Known) {
        // What it has been told before says nothing new: packets of data repeat an ACK for as long as they come.
        let last = self.acks.back().or(self.known.as_ref());
        if last.is_some_and(|last| (last.ack, last.window) == (known.ack, known.window)) {
            return;
        }
        if self.acks.len() == MOST_ACKS {
            self.acks.pop_front();
        }
        self.acks.push_back(known);
    }

    /// The last of these ACKs that can have reached the sender before what it sends passes `now`.
    pub(crate) fn reached(&mut self, now: Instant, turnaround: Duration) -> Option<Known> {
        while let Some(known) = self.acks.front().copied().filter(|known| now.since(known.at) >= turnaround) {
            self.known = Some(known);
            self.acks.pop_front();
        }
        self.known
    }

    /// A packet passes that was sent knowing this. `turnaround` is the fastest answer of the sender.
    pub(crate) fn sent(&mut self, now: Instant, packet: Sent, known: Option<Known>, turnaround: Duration) {
        let idle =
            known.filter(|known| known.ack >= packet.start).map(|known| now.since(known.at).saturating_sub(turnaround));
        if let (Some(since), Some(limit)) = (self.since, self.limit) {
            let span = now.since(since);
            // All that was sent had been acknowledged: then it had nothing to send, or was not allowed to.
            let idle = idle.unwrap_or_default().min(span);
            let closed = known.is_some_and(|known| known.window == Some(0));
            if packet.timer {
                self.shares.add(Limit::Timer, span);
            } else {
                self.shares.add(if closed { Limit::ReceiveWindow } else { Limit::Application }, idle);
                self.shares.add(limit, span - idle);
            }
        }
        self.packets += 1;
        self.since = Some(now);
        self.limit = Some(match known {
            _ if packet.opens => Limit::Handshake,
            _ if packet.repairs => Limit::Recovery,
            Some(known) => {
                self.at_most |= known.at_most;
                let full = known.window.is_some_and(|window| packet.next - known.ack + packet.mss > window);
                match (full, packet.is_full, known.at_most) {
                    (true, ..) => Limit::ReceiveWindow,
                    (_, false, _) => Limit::Application,
                    (_, _, true) => Limit::Window,
                    (_, _, false) => Limit::CongestionWindow,
                }
            }
            None => {
                self.blind += 1;
                if packet.is_full { Limit::Window } else { Limit::Application }
            }
        });
    }

    /// The account; `None` where what the sender knew is not known of most packets. `advanced` is when something was acknowledged last.
    pub(crate) fn finish(&self, advanced: Option<Instant>, turnaround: Option<Duration>) -> Option<(Shares, Basis)> {
        let mut shares = self.shares;
        if let (Some(since), Some(limit), Some(advanced)) = (self.since, self.limit, advanced)
            && advanced > since
        {
            shares.add(limit, advanced.since(since) + turnaround.unwrap_or_default());
        }
        let basis = if self.at_most { Basis::RoundTrip } else { Basis::Timestamps };
        (self.blind * 2 <= self.packets).then_some((shares, basis))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    fn known(ms: u64, ack: i64, window: i64) -> Known {
        Known { at: at(ms), ack, window: Some(window), at_most: false }
    }

    fn sent(start: i64, is_full: bool) -> Sent {
        Sent { start, next: start + 1000, mss: 1000, is_full, repairs: false, timer: false, opens: false }
    }

    /// The capture stands at the receiver, 20 ms from the sender and back: each segment is acknowledged as it comes.
    #[test]
    fn at_the_receiver_a_full_line_is_no_idle_application() {
        let mut sender = AtSender::default();
        let turnaround = Duration::from_ms(20);
        for number in 0..100 {
            // Ten segments in flight, one every 2 ms; the sender has heard of all but the last ten.
            let (ms, start) = (2 * number, 1000 * i64::try_from(number).unwrap());
            sender.sent(
                at(ms),
                sent(start, true),
                Some(known(ms.saturating_sub(20), start - 9_000, 64_000)),
                turnaround,
            );
        }
        let (shares, basis) = sender.finish(None, None).unwrap();
        assert_eq!(basis, Basis::Timestamps);
        assert!(shares.share(Limit::CongestionWindow) > 0.999, "{shares:?}");
    }

    #[test]
    fn a_window_that_is_full_at_the_sender_and_an_application_that_pauses_show() {
        let turnaround = Duration::from_ms(20);
        let mut full = AtSender::default();
        for number in 0..100 {
            let (ms, start) = (2 * number, 1000 * i64::try_from(number).unwrap());
            full.sent(at(ms), sent(start, true), Some(known(ms.saturating_sub(20), start - 9_000, 10_000)), turnaround);
        }
        assert!(full.finish(None, None).unwrap().0.share(Limit::ReceiveWindow) > 0.999);
        // A segment every 100 ms, acknowledged as it comes: 20 ms until the sender knows, and 80 ms of nothing.
        let mut idle = AtSender::default();
        for number in 0..100 {
            let (ms, start) = (100 * number, 1000 * i64::try_from(number).unwrap());
            idle.sent(at(ms), sent(start, true), Some(known(ms.saturating_sub(100), start, 64_000)), turnaround);
        }
        let shares = idle.finish(None, None).unwrap().0;
        assert!((shares.share(Limit::Application) - 0.8).abs() < 0.01, "{shares:?}");
    }

    #[test]
    fn without_timestamps_only_a_full_receive_window_is_sure() {
        let turnaround = Duration::from_ms(20);
        for (window, limit) in [(64_000, Limit::Window), (10_000, Limit::ReceiveWindow)] {
            let mut sender = AtSender::default();
            for number in 0..100 {
                let (ms, start) = (2 * number, 1000 * i64::try_from(number).unwrap());
                let reached = sender.reached(at(ms), turnaround);
                sender.sent(at(ms), sent(start, true), reached, turnaround);
                sender.passed(Known { at_most: true, ..known(ms, start + 1000, window) });
            }
            let (shares, basis) = sender.finish(None, None).unwrap();
            assert_eq!(basis, Basis::RoundTrip);
            assert!(shares.share(limit) > 0.85, "{window}: {shares:?}");
        }
    }
}
