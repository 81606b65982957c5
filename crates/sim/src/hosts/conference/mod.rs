//! A video conference in one direction: audio and video over RTP whose rate follows the line.
//!
//! Published: RTP (RFC 3550) with one flow for both media (RFC 9143), Google Congestion Control ([`gcc`]), an encoder
//! ([`encoder`]), feedback on each packet (draft-holmer-rmcat-transport-wide-cc-extensions-01) as SRTCP, and a receiver
//! that shows frames ([`receiver`]). A packet has 28 bytes of IPv4 and UDP, 12 of RTP, 8 of the header extension with
//! its number, and 10 of SRTP's tag (RFC 3711). A report has 28 bytes of IPv4 and UDP, 20 of RTCP and feedback header,
//! 2 bytes for 7 packets (status chunks of two-bit symbols), a byte for each that arrived, and 14 of SRTCP.
//!
//! The sender paces video at 2.5 times its target, as libwebrtc does, and audio not at all. It retransmits a video
//! packet that a report misses until its frame is a second old, and sends a key frame when the receiver asks for one.
//! It ignores requests that may have left before the latest key frame arrived: those within the round trip and the time
//! of a report after its capture, and, as libwebrtc does, within 300 ms.
//!
//! Differs: the reports also are the requests for retransmissions (browsers send NACKs at once, RFC 4585), and a
//! retransmitted packet is as large as the first (RFC 4588 adds 2 bytes). There is no forward error correction, no
//! simulcast, no change of resolution, and no signalling: ICE and DTLS are over when the conference starts.
//!
//! Cost: two or three events a frame, one for each paced packet; memory for the packets in the network and for those
//! dropped in the last seconds ([`in_transit`]).

mod encoder;
mod gcc;
mod in_transit;
mod receiver;

use std::collections::VecDeque;
use std::sync::Arc;

use lastmile_analysis::stream::{Reception, Stream as Measured};
use lastmile_model::{Conference as Model, IpFields};
use lastmile_packet::{FlowId, Meta, Protocol};
use lastmile_queueing::random::Stream;
use lastmile_units::{ByteCount, Duration, Instant};

use self::encoder::Encoder;
use self::gcc::{Gcc, Report};
use self::in_transit::{Contents, Feedback, InTransit, Sent};
use self::receiver::{Display, Part, RETRANSMITTED};
use super::{DataCounts, datagram};

/// Bytes of a report without its list, and the packets for each two bytes of status.
const REPORT: u64 = 20 + 14;
const STATUS: u64 = 7;
/// The pacer's rate in terms of the target.
const PACING: f64 = 2.5;
/// The least time from a key frame to one that is requested.
const BETWEEN_KEYS: Duration = Duration::from_ms(300);
/// The least target of the encoder, in bit/s.
const LEAST_VIDEO: f64 = 1e3;

/// A packet that waits for the pacer.
#[derive(Clone, Copy, Debug)]
struct Paced {
    size: u16,
    part: Part,
}

/// The counters of the media of a conference.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counts {
    /// Frames, key frames among them, and retransmitted packets.
    pub(crate) frames: u64,
    pub(crate) key_frames: u64,
    pub(crate) retransmitted: u64,
    /// IP bytes of video, and audio packets.
    pub(crate) video_bytes: u64,
    pub(crate) audio_sent: u64,
}

/// The sender's media and rate control.
#[derive(Debug)]
struct Sender {
    encoder: Encoder,
    control: Gcc,
    pacer: VecDeque<Paced>,
    next_paced: Instant,
    next_frame: Instant,
    next_audio: Instant,
    /// When each frame was captured.
    captured: Vec<Instant>,
    /// The number of the latest key frame.
    latest_key: u64,
    /// When each audio packet departed.
    audio: Vec<Instant>,
}

/// The receiver's displays and its next report.
#[derive(Debug)]
struct Receiver {
    display: Display,
    audio: Measured,
    base: u64,
    arrivals: Vec<Option<Instant>>,
    next_report: Option<Instant>,
}

/// A conference in one direction, both ends of it.
#[derive(Debug)]
pub struct Conference {
    pub(crate) traffic: usize,
    pub(crate) data: DataCounts,
    pub(crate) counts: Counts,
    model: Arc<Model>,
    flows: [FlowId; 2],
    ip: IpFields,
    stop: Option<Instant>,
    sender: Sender,
    receiver: Receiver,
    in_transit: InTransit,
    /// The event that is pending for the source.
    scheduled: Option<Instant>,
}

/// The results of a conference.
pub(crate) struct Finished {
    pub(crate) frames: Reception,
    pub(crate) freezes: Vec<Duration>,
    pub(crate) frozen_at: Vec<Instant>,
    pub(crate) audio: Reception,
    /// Frames, and audio packets, that are lost.
    pub(crate) lost: [u64; 2],
}

impl Conference {
    pub(crate) fn new(
        model: &Arc<Model>,
        traffic: usize,
        ids: ([FlowId; 2], IpFields),
        buffer: Duration,
        random: Stream,
    ) -> Self {
        let (flows, ip) = ids;
        let start = Instant::ZERO;
        Self {
            traffic,
            data: DataCounts::default(),
            counts: Counts::default(),
            model: Arc::clone(model),
            flows,
            ip,
            stop: None,
            sender: Sender {
                encoder: Encoder::new(model.frame_rate, random),
                control: Gcc::new(model.rates.start, [model.rates.least, model.rates.most]),
                pacer: VecDeque::new(),
                next_paced: start,
                next_frame: start,
                next_audio: start,
                captured: Vec::new(),
                latest_key: 0,
                audio: Vec::new(),
            },
            receiver: Receiver {
                display: Display::new(buffer),
                audio: Measured::new(buffer, true),
                base: 0,
                arrivals: Vec::new(),
                next_report: None,
            },
            in_transit: InTransit::default(),
            scheduled: None,
        }
    }

    /// The conference starts.
    pub(crate) fn start(&mut self, now: Instant, stop: Option<Instant>) {
        self.stop = stop;
        (self.sender.next_frame, self.sender.next_audio, self.sender.next_paced) = (now, now, now);
    }

    /// The time of the next event after `now`, unless a wake-up is pending at that time or earlier.
    pub(crate) fn take_wake(&mut self, now: Instant) -> Option<Instant> {
        // The pacer may have been idle when a report asked for retransmissions.
        let next = self.next_wake()?.max(now);
        if self.scheduled.is_some_and(|pending| pending <= next) {
            return None;
        }
        self.scheduled = Some(next);
        Some(next)
    }

    fn next_wake(&self) -> Option<Instant> {
        let sender = &self.sender;
        let media = [sender.next_frame, sender.next_audio].into_iter().filter(|at| self.goes_on(*at));
        let paced = (!sender.pacer.is_empty()).then_some(sender.next_paced);
        media.chain(paced).chain(self.receiver.next_report).min()
    }

    fn goes_on(&self, at: Instant) -> bool {
        self.stop.is_none_or(|stop| at < stop)
    }

    /// The packets to send at `now`, when an event fires.
    pub(crate) fn wake(&mut self, now: Instant, send: &mut dyn FnMut(Meta)) {
        if self.scheduled.is_some_and(|pending| pending <= now) {
            self.scheduled = None;
        }
        if self.sender.next_audio <= now && self.goes_on(self.sender.next_audio) {
            let number = self.counts.audio_sent;
            self.counts.audio_sent += 1;
            self.sender.audio.push(now);
            // A late event does not shift those after it.
            self.sender.next_audio += self.model.audio.interval;
            let size = self.model.audio.payload.as_u64() + Model::headers(self.ip);
            self.send(now, size as u16, Contents::Audio(number), send);
        }
        if self.sender.next_frame <= now && self.goes_on(self.sender.next_frame) {
            self.capture(now);
        }
        while let Some(paced) = self.sender.pacer.front().copied().filter(|_| self.sender.next_paced <= now) {
            self.sender.pacer.pop_front();
            self.counts.video_bytes += u64::from(paced.size);
            let seconds = f64::from(paced.size) * 8.0 / (PACING * self.sender.control.rate());
            self.sender.next_paced = self.sender.next_paced.max(now) + Duration::from_ns((seconds * 1e9) as u64);
            self.send(now, paced.size, Contents::Video(paced.part), send);
        }
        if self.receiver.next_report.is_some_and(|at| at <= now) {
            let report = self.report(now);
            send(report);
        }
    }

    fn send(&mut self, now: Instant, size: u16, contents: Contents, send: &mut dyn FnMut(Meta)) {
        let number = self.in_transit.send(now, size, contents);
        self.data.sent += 1;
        send(datagram(self.flows[0], Protocol::Udp, ByteCount::new(size.into()), number, self.ip));
    }

    /// A frame is captured, encoded and cut into packets of nearly equal size.
    fn capture(&mut self, now: Instant) {
        let interval = Duration::from_ps(Duration::from_s(1).as_ps() / u64::from(self.model.frame_rate));
        let (packet, headers) = (self.model.packet.as_u64(), Model::headers(self.ip));
        let target = self.sender.control.rate() - self.model.audio_bps(self.ip);
        let frame = self.sender.encoder.frame(now, target.max(LEAST_VIDEO));
        // The rate contains headers, and so do the bytes of the frame. Each packet has a byte of payload at least.
        let of = frame.bytes.div_ceil(packet + headers).min(u16::MAX.into());
        let payload = frame.bytes.saturating_sub(of * headers).max(of);
        for part in 0..of {
            // The parts' sizes differ by a byte at most, and add up to the frame.
            let bytes = payload * (part + 1) / of - payload * part / of;
            let size = bytes + headers;
            let part =
                Part { frame: self.counts.frames, part: part as u16, of: of as u16, key: frame.key, captured: now };
            self.sender.pacer.push_back(Paced { size: u16::try_from(size).unwrap_or(u16::MAX), part });
        }
        if frame.key {
            self.sender.latest_key = self.counts.frames;
        }
        self.sender.captured.push(now);
        self.sender.next_frame += interval;
        self.counts.frames += 1;
        self.counts.key_frames += u64::from(frame.key);
    }

    /// The report on the packets since the last one.
    fn report(&mut self, now: Instant) -> Meta {
        let receiver = &mut self.receiver;
        let arrivals = std::mem::take(&mut receiver.arrivals);
        let count = arrivals.len() as u64;
        let deltas = arrivals.iter().flatten().count() as u64;
        let wants_key = receiver.display.needs_key(now);
        let number = self.in_transit.report(Feedback { base: receiver.base, arrivals, at: now, wants_key });
        receiver.base += count;
        receiver.next_report = None;
        let list = 2 * count.div_ceil(STATUS) + deltas;
        let size = u64::from(self.ip.datagram_headers()) + REPORT + list.next_multiple_of(4);
        let size = ByteCount::new(size.min(u16::MAX.into()));
        datagram(self.flows[1], Protocol::Udp, size, number, self.ip)
    }

    /// A packet reaches its end.
    pub(crate) fn arrived(&mut self, now: Instant, packet: &Meta) {
        if packet.flow == self.flows[1] {
            if let Some((feedback, sent)) = self.in_transit.arrive_report(packet.seq.raw().into()) {
                self.on_feedback(now, &feedback, &sent);
            }
            return;
        }
        let number = u64::from(packet.seq.raw());
        if !self.data.arrived(now, number, packet.payload_len().into()) {
            return;
        }
        // One that a report has called missing is not reported again.
        let index = number.checked_sub(self.receiver.base);
        let Some(sent) = self.in_transit.arrive(number, index.is_some()) else { return };
        match sent.contents {
            Contents::Audio(number) => {
                self.receiver.audio.arrived(number, sent.at, now);
            }
            Contents::Video(part) => self.receiver.display.arrived(now, &part),
        }
        self.in_transit.played(self.receiver.audio.next(), self.receiver.display.next());
        if let Some(index) = index {
            let index = index as usize;
            let arrivals = &mut self.receiver.arrivals;
            arrivals.resize(arrivals.len().max(index + 1), None);
            arrivals[index] = Some(now);
            self.receiver.next_report.get_or_insert(now + self.model.feedback);
        }
    }

    /// The sender learns which packets have arrived, and when.
    fn on_feedback(&mut self, now: Instant, feedback: &Feedback, sent: &[Option<Sent>]) {
        let mut reports = Vec::with_capacity(feedback.arrivals.len());
        let mut rtt = Duration::ZERO;
        let mut retransmissions = Vec::new();
        for (arrived, sent) in feedback.arrivals.iter().zip(sent) {
            let Some(sent) = sent else {
                // It was dropped long ago.
                reports.push(Report { sent: now, arrived: None, size: 0 });
                continue;
            };
            reports.push(Report { sent: sent.at, arrived: *arrived, size: sent.size });
            match (arrived, sent.contents) {
                // The round trip without the time for which the report waited.
                (Some(arrived), _) => rtt = now.since(sent.at).saturating_sub(feedback.at.since(*arrived)),
                (None, Contents::Video(part)) if now.since(part.captured) < RETRANSMITTED => {
                    retransmissions.push(Paced { size: sent.size, part });
                }
                (None, _) => {}
            }
        }
        let latest_key = self.sender.captured.get(self.sender.latest_key as usize);
        let respite = BETWEEN_KEYS.max(rtt + self.model.feedback);
        if feedback.wants_key && latest_key.is_none_or(|captured| now.since(*captured) >= respite) {
            self.sender.encoder.request_key();
        }
        self.counts.retransmitted += retransmissions.len() as u64;
        // Retransmissions go first, the oldest ahead.
        retransmissions.into_iter().rev().for_each(|retransmission| self.sender.pacer.push_front(retransmission));
        self.sender.control.on_reports(now, &reports, rtt);
    }

    /// The network drops a packet.
    pub(crate) fn dropped(&mut self, flow: FlowId, number: u64) {
        if flow == self.flows[1] { self.in_transit.drop_report(number) } else { self.in_transit.drop_packet(number) }
    }

    /// Times kept for the end of the run.
    pub(crate) fn kept(&self) -> usize {
        self.sender.captured.capacity() + self.sender.audio.capacity() + 8 * self.in_transit.len()
    }

    /// The results at `end`.
    pub(crate) fn finish(self, end: Instant) -> Finished {
        let Sender { captured, audio: sent, latest_key, .. } = self.sender;
        let Receiver { display, audio, .. } = self.receiver;
        let ends = [end, self.stop.map_or(end, |stop| stop.min(end))];
        let ((frames, frames_lost), freezes, frozen_at) =
            display.finish(ends, &captured, latest_key, |frame| self.in_transit.has_dropped_frame(frame));
        let next = audio.next();
        let outstanding = (next..).zip(sent.into_iter().skip(next as usize));
        let outstanding = outstanding.map(|(number, sent)| (sent, self.in_transit.has_dropped_audio(number))).collect();
        let skipped = next.saturating_sub(audio.packets());
        let (audio, audio_lost) = receiver::finish(audio, end, outstanding);
        let lost = [frames_lost, skipped + audio_lost];
        Finished { frames, freezes, frozen_at, audio, lost }
    }
}
