//! The limits of a sender, reconstructed by a capture that is not next to it.
//!
//! At a distance, captured packets do not show the data in flight at the sender: at the receiver
//! every segment is acknowledged on arrival. Each packet's timestamp echo identifies the last ACK
//! that its sender had received (see `response_time.rs`). Without timestamps it is assumed to be the
//! last ACK that can have reached the sender, by its fastest response. The account of time per
//! limit is then kept as at the sender, span by span between packets of data.
//!
//! Without timestamps a queue between capture and sender is invisible: more ACKs seem to have
//! arrived than did. A receive window that seems full was full, but one that does not may have been
//! full too. Undecidable spans are [`Limit::Window`].

use std::collections::VecDeque;

use lastmile_units::{Duration, Instant};

use crate::limit::{Limit, Shares};

/// The most ACKs in transit to the sender that are stored.
const MOST_ACKS: usize = 8_192;

/// The basis of the account.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Basis {
    /// Packets at the capture, which is next to the sender.
    Packets,
    /// Timestamp echoes.
    Timestamps,
    /// The round trip from the capture to the sender in the handshake.
    RoundTrip,
}

impl Basis {
    /// The name in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packets => "packets",
            Self::Timestamps => "timestamps",
            Self::RoundTrip => "round_trip",
        }
    }
}

/// The sender's knowledge at the transmission of a packet: the acknowledged offset, the window
/// offered with it if its scale is known, and the time at which that ACK was captured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) at: Instant,
    pub(crate) ack: i64,
    pub(crate) window: Option<i64>,
    /// True if this is an upper limit of the sender's knowledge.
    pub(crate) at_most: bool,
}

/// A packet of data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) start: i64,
    /// One past the highest offset sent, this packet included.
    pub(crate) next: i64,
    pub(crate) mss: i64,
    /// When the last new acknowledgement was captured.
    pub(crate) advanced: Option<Instant>,
    /// For how long the receiver's window was closed since then, until it opened.
    pub(crate) closed: Duration,
    /// True if the application had more data.
    pub(crate) is_full: bool,
    /// Whether losses are being repaired, and whether a timer expired with this packet: that of a
    /// retransmission or of a probe.
    pub(crate) repairs: bool,
    pub(crate) timer: bool,
    /// True for the SYN.
    pub(crate) opens: bool,
}

/// The account at the sender, as the module describes.
#[derive(Clone, Debug, Default)]
pub(crate) struct AtSender {
    acks: VecDeque<Known>,
    known: Option<Known>,
    since: Option<Instant>,
    limit: Option<Limit>,
    shares: Shares,
    /// Packets with unknown knowledge of the sender, and all packets.
    blind: u64,
    packets: u64,
    at_most: bool,
}

impl AtSender {
    /// Records an ACK towards a sender without timestamps.
    pub(crate) fn passed(&mut self, known: Known) {
        // Packets of data repeat an ACK; only the first of equal ones counts.
        let last = self.acks.back().or(self.known.as_ref());
        if last.is_some_and(|last| (last.ack, last.window) == (known.ack, known.window)) {
            return;
        }
        if self.acks.len() == MOST_ACKS {
            self.acks.pop_front();
        }
        self.acks.push_back(known);
    }

    /// The last of these ACKs that can have reached the sender before it sent the packet captured
    /// at `now`.
    pub(crate) fn reached(&mut self, now: Instant, turnaround: Duration) -> Option<Known> {
        while let Some(known) = self.acks.front().copied().filter(|known| now.since(known.at) >= turnaround) {
            self.known = Some(known);
            self.acks.pop_front();
        }
        self.known
    }

    /// Records a packet and the sender's knowledge at its transmission. `turnaround` is the
    /// sender's fastest response.
    pub(crate) fn sent(&mut self, now: Instant, packet: Sent, known: Option<Known>, turnaround: Duration) {
        let is_idle = known.is_some_and(|known| known.ack >= packet.start);
        let idle = packet.advanced.filter(|_| is_idle).map(|advanced| now.since(advanced).saturating_sub(turnaround));
        if let (Some(since), Some(limit)) = (self.since, self.limit) {
            let span = now.since(since);
            // All data had been acknowledged: the application had none to send, or the window was
            // closed.
            let idle = idle.unwrap_or_default().min(span);
            let is_closed = known.is_some_and(|known| known.window == Some(0));
            let closed = if is_closed { idle } else { packet.closed.min(idle) };
            if packet.timer {
                self.shares.add(Limit::Timer, span);
            } else {
                self.shares.add(Limit::ReceiveWindow, closed);
                self.shares.add(Limit::Application, idle - closed);
                self.shares.add(limit, span - idle);
            }
        }
        self.packets += 1;
        self.since = Some(now);
        self.limit = Some(match known {
            _ if packet.opens => Limit::Handshake,
            _ if packet.repairs => Limit::Recovery,
            _ if packet.timer => Limit::Timer,
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

    /// The account; `None` if the sender's knowledge is unknown for most packets. `advanced` is the
    /// time of the last new acknowledgement.
    pub(crate) fn finish(&self, advanced: Option<Instant>, turnaround: Option<Duration>) -> Option<(Shares, Basis)> {
        let mut shares = self.shares;
        if let (Some(since), Some(limit), Some(advanced)) = (self.since, self.limit, advanced)
            && advanced >= since
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

    /// A segment, captured after the ACK of `advanced` ms.
    fn sent(start: i64, is_full: bool, advanced: u64) -> Sent {
        let (next, advanced) = (start + 1000, Some(at(advanced)));
        let (closed, repairs, timer, opens) = (Duration::ZERO, false, false, false);
        Sent { start, next, mss: 1000, advanced, closed, is_full, repairs, timer, opens }
    }

    /// The capture is at the receiver, 20 ms of round trip from the sender: each segment is
    /// acknowledged on arrival.
    #[test]
    fn at_the_receiver_a_full_line_is_no_idle_application() {
        let mut sender = AtSender::default();
        let turnaround = Duration::from_ms(20);
        for number in 0..100 {
            // Ten segments in flight, one every 2 ms; the sender has the ACKs of all but the last
            // ten.
            let (ms, start) = (2 * number, 1000 * i64::try_from(number).unwrap());
            sender.sent(
                at(ms),
                sent(start, true, ms),
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
            full.sent(
                at(ms),
                sent(start, true, ms),
                Some(known(ms.saturating_sub(20), start - 9_000, 10_000)),
                turnaround,
            );
        }
        assert!(full.finish(None, None).unwrap().0.share(Limit::ReceiveWindow) > 0.999);
        // A segment every 100 ms, acknowledged on arrival: 20 ms until the sender has the ACK, then
        // 80 ms without data. Its other ACKs show that it has received packets since.
        let mut idle = AtSender::default();
        for number in 0..100 {
            let (ms, start) = (100 * number, 1000 * i64::try_from(number).unwrap());
            let before = u64::saturating_sub(ms, 100);
            idle.sent(at(ms), sent(start, true, before), Some(known(ms, start, 64_000)), turnaround);
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
                sender.sent(at(ms), sent(start, true, ms), reached, turnaround);
                sender.passed(Known { at_most: true, ..known(ms, start + 1000, window) });
            }
            let (shares, basis) = sender.finish(None, None).unwrap();
            assert_eq!(basis, Basis::RoundTrip);
            assert!(shares.share(limit) > 0.85, "{window}: {shares:?}");
        }
    }
}
