//! The choice of the next packet and of its frames.
//!
//! Published: RFC 9000, sections 13.2 (an ACK frame joins any packet that departs) and 13.3; RFC 9002, section 6.2.4
//! (probes).

use lastmile_tcp::Limit;
use lastmile_units::{Duration, Instant};

use super::Endpoint;
use super::control::{Control, Frame};
use crate::config::LEAST_DATAGRAM;
use crate::packet::{Chunk, Form, Frames, Header, Packet};
use crate::sent_packets::{Carried, Sent};
use crate::stream::Next;

/// The least octets for which a second STREAM frame joins a packet.
const LEAST_SECOND: u64 = 16;

/// The reason why a packet departs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    Probe,
    Crypto,
    Data,
    Control,
    Ack,
}

impl Endpoint {
    /// The next packet to send at `now`.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        if !self.handshake.is_open() {
            return None;
        }
        match self.choose(now) {
            Ok(purpose) => Some(self.build(now, purpose)),
            Err(limit) => {
                // As in TCP, flow control is no lack of data: samples of such a time are of the path.
                if matches!(limit, Limit::Application | Limit::AwaitingAck) {
                    self.controller.note_unused();
                }
                self.limits.set(now, Some(limit).filter(|_| !self.send.is_finished()));
                None
            }
        }
    }

    fn choose(&mut self, now: Instant) -> Result<Purpose, Limit> {
        if self.handshake.is_blocked() {
            return Err(Limit::AwaitingAck);
        }
        if self.timers.probes() > 0 {
            return Ok(Purpose::Probe);
        }
        let full = Self::full(&self.config).into();
        if self.handshake.out.peek().is_ok() && self.controller.admits(full) {
            return Ok(Purpose::Crypto);
        }
        let limit = match self.data_waits_for(now) {
            None => return Ok(Purpose::Data),
            Some(limit) => limit,
        };
        if self.handshake.is_established() && self.control.is_due() && self.controller.admits(full) {
            return Ok(Purpose::Control);
        }
        if self.received.is_due(now) {
            return Ok(Purpose::Ack);
        }
        Err(limit)
    }

    /// The reason why no octets of the stream may be sent.
    fn data_waits_for(&mut self, now: Instant) -> Option<Limit> {
        let full = Self::full(&self.config).into();
        let limit = if !self.handshake.is_established() {
            Limit::AwaitingAck
        } else if let Err(limit) = self.send.peek() {
            // The end of the stream is in flight.
            let ended = limit == Limit::Application && self.send.is_closing();
            if ended { Limit::AwaitingAck } else { limit }
        } else if !self.controller.admits(full) {
            Limit::CongestionWindow
        } else {
            return (!self.controller.is_due(now)).then_some(Limit::Pacing);
        };
        self.controller.stop_waiting();
        Some(limit)
    }

    fn build(&mut self, now: Instant, purpose: Purpose) -> Packet {
        let mut frames = Frames { ack: self.received.frame(now, purpose == Purpose::Ack), ..Frames::default() };
        let crypto = match purpose {
            Purpose::Crypto => self.handshake.out.peek().ok(),
            Purpose::Probe if !self.handshake.is_confirmed() => self.handshake.out.unfinished(),
            _ => None,
        };
        let form = match crypto {
            Some(0) => Form::Initial,
            Some(_) => Form::Handshake,
            None if self.handshake.is_established() => Form::Short,
            // A client without the server's messages has no other keys.
            None => {
                if self.handshake.is_server() {
                    Form::Handshake
                } else {
                    Form::Initial
                }
            }
        };
        let number = self.sent.next_number();
        let header =
            Header { form, number, acked: self.sent.largest_acked(), connection_id: self.config.connection_id };
        let full = if form == Form::Short { Self::full(&self.config) } else { LEAST_DATAGRAM };
        let room = u64::from(full).saturating_sub(header.overhead());
        if let Some(start) = crypto {
            let room = room.saturating_sub(frames.size() + Chunk::crypto_header(start));
            let out = &mut self.handshake.out;
            frames.crypto = out.take(room).or_else(|| out.oldest(room)).map(|next| next.chunk);
        } else if form == Form::Short {
            // Draft, section 9.4: a probe asks for an acknowledgement at once.
            frames.flags.immediate_ack = purpose == Purpose::Probe && self.config.ack_frequency.is_some();
            self.add_control(now, purpose, &mut frames);
            if matches!(purpose, Purpose::Data | Purpose::Probe) {
                self.add_data(room, purpose, &mut frames);
            }
        }
        if purpose == Purpose::Probe {
            self.timers.take_probe();
            frames.flags.ping |= !frames.elicits_ack();
        }
        let size = u16::try_from(header.packet_size(frames.size())).unwrap_or(u16::MAX);
        self.note_sent(now, size, &frames);
        Packet { number, size, form, spin: self.spin, frames }
    }

    /// Adds the control frames that are due.
    fn add_control(&mut self, now: Instant, purpose: Purpose, frames: &mut Frames) {
        let control = &mut self.control;
        let take = |frame: &mut Frame| {
            let due = *frame == Frame::Due;
            if due {
                *frame = Frame::InFlight;
            }
            due
        };
        frames.max_data = take(&mut control.max_data).then(|| self.receive.limit());
        if take(&mut control.ack_frequency) {
            frames.ack_frequency = Control::request(&self.config);
        }
        frames.flags.handshake_done = take(&mut control.handshake_done);
        // RFC 9000, section 13.2.4: a receiver of data learns once a round trip which of its reports have arrived, so
        // that it need not repeat ranges.
        let trip = self.rtt.smoothed().unwrap_or(Duration::ZERO);
        let recent = self.sent.last_eliciting().is_some_and(|at| now.since(at) < trip);
        frames.flags.ping = purpose == Purpose::Ack && self.received.has_gaps() && !recent;
    }

    /// Adds octets of the stream: lost ones first.
    fn add_data(&mut self, room: u64, purpose: Purpose, frames: &mut Frames) {
        for index in 0..2 {
            let left = room.saturating_sub(frames.size());
            let start = match self.send.peek() {
                Ok(start) => start,
                Err(_) if index == 0 && purpose == Purpose::Probe => self.send.acked(),
                Err(_) => return,
            };
            let header = Chunk::stream_header(start);
            if left < header + if index == 0 { 0 } else { LEAST_SECOND } {
                return;
            }
            let next = self.send.take(left - header).or_else(|| match purpose {
                Purpose::Probe if index == 0 => self.send.oldest(left - header),
                _ => None,
            });
            let Some(Next { chunk, again }) = next else { return };
            let octets = chunk.end - chunk.start;
            self.stats.data_bytes_sent += octets;
            if again {
                self.stats.retransmitted_bytes += octets;
                self.stats.retransmissions += u64::from(index == 0);
            }
            frames.streams[index] = Some(chunk);
        }
    }

    /// A packet of `size` bytes departs.
    fn note_sent(&mut self, now: Instant, size: u16, frames: &Frames) {
        self.handshake.on_sent(size);
        self.stats.data_packets += u64::from(frames.streams[0].is_some());
        if frames.ack.is_some() {
            self.received.on_reported();
            if !frames.carries_data() {
                self.stats.acks_sent += 1;
                self.stats.ack_bytes_sent += u64::from(size);
            }
        }
        let sent = frames.elicits_ack().then(|| Sent {
            flight: self.controller.on_sent(now, size),
            carried: Carried {
                crypto: frames.crypto,
                streams: frames.streams,
                max_data: frames.max_data.is_some(),
                ack_frequency: frames.ack_frequency.is_some(),
                handshake_done: frames.flags.handshake_done,
                reported: frames.ack.as_ref().map(crate::packet::AckFrame::largest),
            },
        });
        self.sent.push(sent);
    }
}
