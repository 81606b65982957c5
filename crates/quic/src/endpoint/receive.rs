//! A packet arrives.

use lastmile_units::Instant;

use super::Endpoint;
use super::control::Frame;
use crate::packet::{Form, Packet};
use crate::received_packets::Arrival;

impl Endpoint {
    /// A packet arrives.
    pub fn on_packet(&mut self, now: Instant, packet: &Packet) {
        let frames = &packet.frames;
        self.handshake.on_datagram(now, packet.size);
        if self.received.is_duplicate(packet.number) {
            self.on_duplicate();
            return;
        }
        // RFC 9000, section 17.4: the server repeats the bit of the newest packet, the client inverts it.
        if packet.form == Form::Short && self.received.is_newest(packet.number) {
            self.spin = packet.spin ^ !self.handshake.is_server();
        }
        if let Some(request) = &frames.ack_frequency {
            self.received.on_request(request);
        }
        self.received.on_packet(
            now,
            Arrival {
                number: packet.number,
                elicits: frames.elicits_ack(),
                // RFC 9000, section 13.2.1: packets of the handshake are acknowledged at once.
                immediate: packet.form != Form::Short || frames.flags.immediate_ack,
            },
        );
        self.stats.acks_received += u64::from(frames.ack.is_some() && !frames.carries_data());
        if let Some(ack) = &frames.ack {
            self.on_ack(now, ack);
        }
        if frames.flags.handshake_done {
            self.handshake.confirm();
        }
        if let Some(chunk) = frames.crypto
            && self.handshake.on_crypto(chunk)
        {
            self.establish(now);
        }
        if let Some(limit) = frames.max_data {
            self.send.raise_limit(limit);
        }
        self.stats.data_received += u64::from(frames.streams[0].is_some());
        for chunk in frames.streams.into_iter().flatten() {
            self.receive.on_chunk(chunk);
        }
        if self.receive.new_limit().is_some() {
            self.control.max_data = Frame::Due;
        }
    }

    /// A packet arrives whose contents arrived before.
    pub fn on_duplicate(&mut self) {
        self.stats.duplicates += 1;
    }

    /// The handshake of this end is over.
    fn establish(&mut self, now: Instant) {
        self.controller.establish(now, self.rtt.smoothed());
        if self.handshake.is_server() {
            self.control.handshake_done = Frame::Due;
        }
    }
}
