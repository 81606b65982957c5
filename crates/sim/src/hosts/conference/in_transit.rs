//! The contents of a conference's packets and reports, which a network carries by their number alone.
//!
//! A packet is kept until the sender knows whether it has arrived: until the report that covers it has arrived or is
//! dropped. A dropped packet is kept for some seconds, since the network may have copied it. The lab does not know
//! which packets are dropped: there, packets are kept as far back as late ones count ([`WINDOW`]).
//!
//! Cost: O(log n) a packet, and once a second a pass over n; memory for the n packets between their departure and
//! their report, and for those that were dropped in the last seconds.

use std::collections::{BTreeMap, BTreeSet};

use lastmile_analysis::duplicates::WINDOW;
use lastmile_units::{Duration, Instant};

use super::receiver::Part;

/// For how long a dropped packet is kept: a copy of it may arrive.
const COPIES: Duration = Duration::from_s(4);
/// Time between two passes.
const PASS: Duration = Duration::from_s(1);

/// The contents of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Contents {
    Audio(u64),
    Video(Part),
}

/// A packet on its way, or one that no report has covered yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sent {
    pub(super) at: Instant,
    pub(super) size: u16,
    pub(super) contents: Contents,
    fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    UnderWay,
    Arrived,
    Dropped,
}

/// A feedback packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Feedback {
    /// The number of the first packet, and the arrival of each from there on.
    pub(super) base: u64,
    pub(super) arrivals: Vec<Option<Instant>>,
    pub(super) at: Instant,
    pub(super) wants_key: bool,
}

impl Feedback {
    fn covers(&self, number: u64) -> bool {
        (self.base..self.base + self.arrivals.len() as u64).contains(&number)
    }
}

/// Packets and reports of one conference.
#[derive(Debug, Default)]
pub(super) struct InTransit {
    packets: BTreeMap<u64, Sent>,
    /// Each with whether it was dropped.
    reports: BTreeMap<u64, (Feedback, bool)>,
    /// Numbers of the next packet and of the next report.
    next: [u64; 2],
    /// One past the highest number that has arrived.
    arrived: u64,
    passed: Instant,
    /// Audio packets that were dropped, and parts of frames of which the latest packet was dropped.
    audio: BTreeSet<u64>,
    parts: BTreeSet<(u64, u16)>,
}

impl InTransit {
    /// A packet enters the network. Returns its number.
    pub(super) fn send(&mut self, at: Instant, size: u16, contents: Contents) -> u64 {
        if let Contents::Video(part) = contents {
            self.parts.remove(&(part.frame, part.part));
        }
        let number = self.next[0];
        self.next[0] += 1;
        self.packets.insert(number, Sent { at, size, contents, fate: Fate::UnderWay });
        self.pass(at);
        number
    }

    /// A report enters the network. Returns its number.
    pub(super) fn report(&mut self, feedback: Feedback) -> u64 {
        let number = self.next[1];
        self.next[1] += 1;
        self.reports.insert(number, (feedback, false));
        number
    }

    /// A packet arrives for the first time; `covered` if its next report is still to come.
    pub(super) fn arrive(&mut self, number: u64, covered: bool) -> Option<Sent> {
        self.arrived = self.arrived.max(number + 1);
        let sent = self.packets.get_mut(&number)?;
        sent.fate = Fate::Arrived;
        let sent = *sent;
        match sent.contents {
            Contents::Audio(audio) => self.audio.remove(&audio),
            Contents::Video(part) => self.parts.remove(&(part.frame, part.part)),
        };
        if !covered && !self.reports.values().any(|(report, _)| report.covers(number)) {
            self.packets.remove(&number);
        }
        Some(sent)
    }

    /// A report arrives, with the packets that it covers where they are known. Reports before it are lost, or too late
    /// to count.
    pub(super) fn arrive_report(&mut self, number: u64) -> Option<(Feedback, Vec<Option<Sent>>)> {
        let (feedback, _) = self.reports.remove(&number)?;
        let later = self.reports.split_off(&number);
        let before = std::mem::replace(&mut self.reports, later);
        let sent = (feedback.base..).take(feedback.arrivals.len()).map(|packet| self.packets.get(&packet).copied());
        let sent = sent.collect();
        before.values().for_each(|(report, _)| self.settle(report));
        self.settle(&feedback);
        Some((feedback, sent))
    }

    /// The network drops a packet.
    pub(super) fn drop_packet(&mut self, number: u64) {
        let Some(sent) = self.packets.get_mut(&number).filter(|sent| sent.fate == Fate::UnderWay) else { return };
        sent.fate = Fate::Dropped;
        match sent.contents {
            Contents::Audio(audio) => self.audio.insert(audio),
            Contents::Video(part) => self.parts.insert((part.frame, part.part)),
        };
    }

    /// The network drops a report.
    pub(super) fn drop_report(&mut self, number: u64) {
        if let Some((_, dropped)) = self.reports.get_mut(&number) {
            *dropped = true;
        }
    }

    /// Whether the network has dropped this audio packet.
    pub(super) fn has_dropped_audio(&self, number: u64) -> bool {
        self.audio.contains(&number)
    }

    /// Whether the network has dropped a part of this frame that was not sent again.
    pub(super) fn has_dropped_frame(&self, frame: u64) -> bool {
        self.parts.range((frame, 0)..(frame + 1, 0)).next().is_some()
    }

    /// Forgets drops of audio and frames that cannot be played any more: those before these numbers.
    pub(super) fn played(&mut self, audio: u64, frame: u64) {
        while self.audio.first().is_some_and(|number| *number < audio) {
            self.audio.pop_first();
        }
        while self.parts.first().is_some_and(|(number, _)| *number < frame) {
            self.parts.pop_first();
        }
    }

    /// Packets that are kept.
    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }

    /// No report on these packets is to come any more.
    fn settle(&mut self, report: &Feedback) {
        for number in (report.base..).take(report.arrivals.len()) {
            if self.packets.get(&number).is_some_and(|sent| sent.fate == Fate::Arrived) {
                self.packets.remove(&number);
            }
        }
    }

    /// Forgets what was dropped, once a second.
    fn pass(&mut self, now: Instant) {
        if now.since(self.passed) < PASS {
            return;
        }
        self.passed = now;
        let gone: Vec<u64> = (self.reports.iter())
            .filter(|(_, (report, dropped))| *dropped && now.since(report.at) > COPIES)
            .map(|(number, _)| *number)
            .collect();
        for number in gone {
            if let Some((report, _)) = self.reports.remove(&number) {
                self.settle(&report);
            }
        }
        let arrived = self.arrived;
        self.packets.retain(|number, sent| match sent.fate {
            Fate::UnderWay => number + WINDOW > arrived,
            Fate::Arrived => true,
            Fate::Dropped => now.since(sent.at) <= COPIES,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    fn report(base: u64, arrived: &[bool], ms: u64) -> Feedback {
        let arrivals = arrived.iter().map(|arrived| arrived.then_some(at(ms))).collect();
        Feedback { base, arrivals, at: at(ms), wants_key: false }
    }

    fn video(frame: u64, part: u16) -> Contents {
        Contents::Video(Part { frame, part, of: 2, key: false, captured: at(0) })
    }

    /// Packets 0 to 2 take 30 s, and so does the report on them. The sender learns the contents of all three; it keeps
    /// the second, which is still under way.
    #[test]
    fn contents_are_kept_until_their_report_arrives() {
        let mut transit = InTransit::default();
        (0..3).for_each(|number| assert_eq!(transit.send(at(number), 100, Contents::Audio(number)), number));
        transit.send(at(29_000), 100, Contents::Audio(3));
        assert!(transit.arrive(0, true).is_some() && transit.arrive(2, true).is_some());
        let number = transit.report(report(0, &[true, false, true], 30_000));
        transit.send(at(60_000), 100, Contents::Audio(4));
        let (_, sent) = transit.arrive_report(number).unwrap();
        assert_eq!(sent.iter().flatten().map(|sent| sent.at).collect::<Vec<_>>(), [at(0), at(1), at(2)]);
        assert_eq!(transit.packets.keys().copied().collect::<Vec<_>>(), [1, 3, 4]);
        // It comes at last, after its report.
        assert!(transit.arrive(1, false).is_some() && transit.arrive(1, false).is_none());
        assert_eq!((transit.len(), transit.arrive_report(number)), (2, None));
    }

    /// The copy of a packet or report of which another was dropped counts if it comes within 4 s.
    #[test]
    fn dropped_packets_are_forgotten_after_a_while() {
        let mut transit = InTransit::default();
        transit.send(at(0), 100, Contents::Audio(0));
        transit.send(at(0), 100, Contents::Audio(1));
        (0..2).for_each(|number| transit.drop_packet(number));
        assert!(transit.has_dropped_audio(0) && transit.has_dropped_audio(1));
        transit.send(at(4_000), 100, Contents::Audio(2));
        assert!(transit.arrive(0, true).is_some());
        assert!(!transit.has_dropped_audio(0) && transit.has_dropped_audio(1));
        let number = transit.report(report(0, &[true], 4_100));
        transit.drop_report(number);
        transit.send(at(8_200), 100, Contents::Audio(3));
        assert_eq!((transit.arrive(1, true), transit.reports.len(), transit.len()), (None, 0, 2));
        transit.played(2, 0);
        assert!(!transit.has_dropped_audio(1));
    }

    /// An hour of 50 packets a second on a line that drops all: those of 4 s and of the second between two passes.
    #[test]
    fn a_dead_line_takes_no_memory() {
        let mut transit = InTransit::default();
        for number in 0..180_000 {
            transit.send(at(20 * number), 100, video(number, 0));
            transit.drop_packet(number);
            transit.played(0, number.saturating_sub(10));
        }
        assert!(transit.len() <= 251 && transit.parts.len() <= 11, "{}", transit.len());
    }

    #[test]
    fn a_retransmission_makes_up_for_a_dropped_part() {
        let mut transit = InTransit::default();
        let sent = [(7, 0), (7, 1), (8, 0)].map(|(frame, part)| transit.send(at(0), 100, video(frame, part)));
        sent.into_iter().for_each(|number| transit.drop_packet(number));
        transit.send(at(100), 100, video(7, 1));
        assert!(transit.has_dropped_frame(7) && !transit.has_dropped_frame(6));
        let number = transit.send(at(100), 100, video(7, 0));
        assert!(!transit.has_dropped_frame(7) && transit.has_dropped_frame(8));
        transit.drop_packet(number);
        assert!(transit.has_dropped_frame(7));
    }
}
