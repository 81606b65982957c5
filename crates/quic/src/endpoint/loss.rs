//! Acknowledgements and losses: RFC 9002, appendix A.7 to A.10 and B.5 to B.8.

use lastmile_tcp::Limit;
use lastmile_tcp::controller::Trips;
use lastmile_units::{Duration, Instant};

use super::Endpoint;
use super::control::Frame;
use crate::packet::AckFrame;
use crate::sent_packets::{Carried, Losses};

impl Endpoint {
    /// An ACK frame arrives.
    pub(super) fn on_ack(&mut self, now: Instant, frame: &AckFrame) {
        let used = self.window_is_the_limit();
        let (delivered, has_largest) = self.sent.deliver(frame);
        let Some(newest) = delivered.first().map(|sent| sent.flight) else { return };
        self.controller.begin();
        let mut latest = None;
        if has_largest {
            let trip = now.since(newest.sent());
            let limit = self.handshake.is_confirmed().then(|| self.control.peer_delay(&self.config));
            self.rtt.sample(trip, frame.delay, limit);
            self.timers.note_sample(now);
            latest = Some(trip);
        }
        for sent in &delivered {
            self.round_trips.add(sent.flight.len(), now.since(sent.flight.sent()));
            self.controller.on_delivered(sent.flight);
            self.on_delivered(&sent.carried);
        }
        let losses = self.sent.find_losses(now, self.rtt.loss_delay());
        self.on_losses(now, &losses);
        // RFC 9002, section 6.2.1: a client resets its back-off once the server has validated its address.
        if self.handshake.is_server() || self.handshake.is_established() {
            self.timers.end_backoff();
        }
        self.end_ack(now, latest, used);
    }

    /// Packets may have become lost by their age.
    pub(super) fn find_losses_by_age(&mut self, now: Instant) {
        let used = self.window_is_the_limit();
        self.controller.begin();
        let losses = self.sent.find_losses(now, self.rtt.loss_delay());
        self.on_losses(now, &losses);
        self.end_ack(now, None, used);
    }

    fn end_ack(&mut self, now: Instant, latest: Option<Duration>, used: bool) {
        self.sent.forget();
        let trips = Trips { latest, least: self.rtt.least(), smoothed: self.rtt.smoothed() };
        let oldest = self.sent.oldest().map(|sent| sent.flight);
        self.controller.end(now, trips, oldest, used);
    }

    /// RFC 9002, section 7.8: the window was the limit, or pacing was.
    fn window_is_the_limit(&self) -> bool {
        matches!(self.limits.current(), Some(Limit::CongestionWindow | Limit::Pacing))
    }

    fn on_delivered(&mut self, carried: &Carried) {
        if let Some(chunk) = carried.crypto {
            self.handshake.out.on_delivered(chunk);
        }
        carried.streams.iter().flatten().for_each(|chunk| self.send.on_delivered(*chunk));
        if carried.ack_frequency {
            self.control.ack_frequency = Frame::Delivered;
        }
        if let Some(reported) = carried.reported {
            self.received.forget(reported);
        }
    }

    fn on_losses(&mut self, now: Instant, losses: &Losses) {
        self.timers.set_loss(losses.next);
        let mut reduced = false;
        for (_, sent) in &losses.packets {
            self.stats.lost_packets += 1;
            reduced |= self.controller.on_lost(now, sent.flight);
            if let Some(chunk) = sent.carried.crypto {
                self.handshake.out.on_lost(chunk);
            }
            sent.carried.streams.iter().flatten().for_each(|chunk| self.send.on_lost(*chunk));
            let Carried { max_data, ack_frequency, handshake_done, .. } = sent.carried;
            let control = &mut self.control;
            let frames = [
                (max_data, &mut control.max_data),
                (ack_frequency, &mut control.ack_frequency),
                (handshake_done, &mut control.handshake_done),
            ];
            frames.into_iter().filter(|(carried, _)| *carried).for_each(|(_, frame)| frame.lose());
        }
        self.stats.reductions += u64::from(reduced);
        let span = self.rtt.persistent(self.control.peer_delay(&self.config));
        if self.sent.is_persistent(&losses.packets, span, self.timers.first_sample()) {
            self.stats.persistent_congestions += 1;
            self.rtt.renew_least();
            self.controller.on_persistent_congestion(now);
        }
    }
}
