//! The sender's side of Accurate ECN: the number of marked packets and octets, from the counters that a receiver
//! repeats in each acknowledgement.
//!
//! Published: RFC 9768, sections 3.2.2.5 and 3.2.3, appendix A.2.
//!
//! The ACE field has three bits. Eight marks between two acknowledgements are no change of it, so a sender whose
//! acknowledgements are thinned assumes the safest likely number: all of the packets that the acknowledgement covers,
//! as far as the field allows. The byte counters of the AccECN option show that a lower number is right.
//!
//! Differs: without the option, the safe number is assumed only where an acknowledgement covers fewer than four packets
//! on average, as appendix A.2.1 suggests, since a sender behind an ACK filter would see marks all the time. Checks for
//! mangled fields (section 3.2.2.3) and for continuous CE are absent, but a zero in the handshake turns ECT off.
//! Cost: a dozen additions and comparisons for each acknowledgement of a connection with Accurate ECN; 48 bytes, boxed.

use lastmile_packet::{EcnBytes, Meta};

/// RFC 9768, section 3.2.1: the initial counters.
const FIRST_PACKETS: u8 = 5;
const FIRST_BYTES: EcnBytes = EcnBytes { ect0: 1, ce: 0, ect1: 1 };
/// DIVACE and DIVOPT of appendix A: the counters' moduli.
const ACE: u8 = 8;
const BYTES: u32 = 1 << 24;
/// `SAFETY_FACTOR` of appendix A.2.2.
const SAFETY: u64 = 2;
/// Packets for each acknowledgement, in eighths, from which an acknowledgement of more than seven is no evidence of
/// missing acknowledgements.
const THINNED: u32 = 4 * 8;

/// Newly reported marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Marks {
    pub(crate) packets: u64,
    pub(crate) octets: u64,
}

/// The congestion feedback of an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Feedback {
    ace: u8,
    bytes: Option<EcnBytes>,
}

/// The counters of a sender: s.cep, s.ceb.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AccEcnSender {
    /// The ACE field last seen.
    ace: u8,
    bytes: EcnBytes,
    /// The octets that acknowledgements without the option covered since the last one with it.
    unreported: Marks,
    /// The mean number of packets that an acknowledgement covers, in eighths.
    mean: u32,
    /// The newest timestamp of an acknowledgement without new data.
    newest: Option<u32>,
}

impl AccEcnSender {
    /// `handshake_ce`: the peer's acknowledgement of a SYN-ACK reports that this arrived with CE.
    pub(crate) fn new(handshake_ce: bool) -> Self {
        let ace = FIRST_PACKETS + u8::from(handshake_ce);
        Self { ace, bytes: FIRST_BYTES, unreported: Marks::default(), mean: 8, newest: None }
    }

    /// The marks that an acknowledgement reports, which newly delivers `delivered` octets. Section 3.2.2.2: one that
    /// another has overtaken is ignored.
    pub(crate) fn read(&mut self, segment: &Meta, delivered: u64, mss: u64) -> Marks {
        if delivered == 0 && !self.is_newer(segment) {
            return Marks::default();
        }
        let bytes = segment.options().accecn();
        self.on_ack(Feedback { ace: segment.flags.ace(), bytes }, delivered, mss)
    }

    /// The timestamp of an acknowledgement without new data is newer than any before it.
    fn is_newer(&mut self, segment: &Meta) -> bool {
        let Some((value, _)) = segment.options().timestamps() else { return false };
        let newer = self.newest.is_none_or(|newest| value.wrapping_sub(newest).cast_signed() > 0);
        if newer {
            self.newest = Some(value);
        }
        newer
    }

    /// An acknowledgement that no other has overtaken, for `acked` octets.
    fn on_ack(&mut self, feedback: Feedback, acked: u64, mss: u64) -> Marks {
        let least = u64::from((feedback.ace + ACE - self.ace) % ACE);
        self.ace = feedback.ace;
        let packets = acked / mss;
        if packets > 0 {
            self.mean = self.mean - self.mean / 8 + packets.min(1 << 20) as u32;
        }
        let safe = safest(least, packets);
        let Some(bytes) = feedback.bytes else {
            let packets = if self.mean < THINNED { safe } else { least };
            let marks = Marks { packets, octets: (packets * mss).min(acked) };
            self.unreported.packets += marks.packets;
            self.unreported.octets += marks.octets;
            return marks;
        };
        let octets = u64::from((bytes.ce + BYTES - self.bytes.ce) % BYTES);
        self.bytes = bytes;
        // Marks that acknowledgements without the option have reported since are in the counter, too.
        let reported = core::mem::take(&mut self.unreported);
        let octets = octets.saturating_sub(reported.octets);
        Marks { packets: by_octets(least, safe, octets, mss), octets }
    }
}

/// RFC 9768, appendix A.2.1: the most marks that an acknowledgement of this many packets can report, of those that are
/// `least` modulo 8.
fn safest(least: u64, packets: u64) -> u64 {
    if packets < least { least } else { packets - (packets - least) % u64::from(ACE) }
}

/// Appendix A.2.2: the least number of packets, unless the marked octets need more.
fn by_octets(least: u64, safe: u64, octets: u64, mss: u64) -> u64 {
    let fits = octets <= mss * least;
    // s <= MSS, and sSafer < MSS / SAFETY_FACTOR.
    if fits && octets * SAFETY < mss * safe { least } else { safe.max(least) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Appendix A.2.1: 9 packets and a step of 2 are 2 marks, since 9 - ((9 - 2) % 8) = 2. 10 packets are 10.
    #[test]
    fn the_safest_number_is_that_of_the_appendix() {
        assert_eq!(safest(2, 9), 2);
        assert_eq!(safest(2, 10), 10);
        assert_eq!(safest(2, 7), 2);
        assert_eq!(safest(3, 1), 3, "control packets are not counted");
    }

    /// Appendix A.2.2, with an MSS of 1460.
    #[test]
    fn marked_octets_choose_between_the_least_and_the_safest() {
        assert_eq!(by_octets(0, 8, 1460, 1460), 8, "none would be larger than a segment");
        assert_eq!(by_octets(2, 10, 1460, 1460), 2);
        assert_eq!(by_octets(7, 15, 10_200, 1460), 7);
    }

    fn counters(ce: u32) -> EcnBytes {
        EcnBytes { ect0: 1, ce, ect1: 1 }
    }

    /// The field begins at 5. It wraps from 7 to 0.
    #[test]
    fn each_step_of_the_field_is_a_mark() {
        let mut sender = AccEcnSender::new(false);
        let marks = [5, 6, 6, 0, 1].map(|ace| sender.on_ack(Feedback { ace, bytes: None }, 2000, 1000).packets);
        assert_eq!(marks, [0, 1, 0, 2, 1]);
    }

    /// 20 packets, of which 10 were marked: 5 + 10 is 7 modulo 8. The octets show that two would be too few.
    #[test]
    fn the_option_recovers_a_field_that_wrapped() {
        let mut sender = AccEcnSender::new(false);
        let marks = sender.on_ack(Feedback { ace: 15 % 8, bytes: Some(counters(10_000)) }, 20_000, 1000);
        assert_eq!((marks.packets, marks.octets), (18, 10_000), "the safest number that the octets do not refute");
        let marks = sender.on_ack(Feedback { ace: 16 % 8, bytes: Some(counters(11_000)) }, 20_000, 1000);
        assert_eq!((marks.packets, marks.octets), (1, 1000));
    }

    /// A sender whose acknowledgements always cover ten packets does not take each for a wrap.
    #[test]
    fn thinned_acknowledgements_are_not_taken_for_marks() {
        let mut sender = AccEcnSender::new(false);
        let marks: Vec<u64> =
            (0..40).map(|_| sender.on_ack(Feedback { ace: 5, bytes: None }, 10_000, 1000).packets).collect();
        assert!(marks[20..].iter().all(|&marks| marks == 0), "{marks:?}");
    }

    /// An acknowledgement without the option is not counted a second time by the next one with it.
    #[test]
    fn octets_are_counted_once() {
        let mut sender = AccEcnSender::new(false);
        let first = sender.on_ack(Feedback { ace: 6, bytes: None }, 2000, 1000);
        assert_eq!(first.octets, 1000);
        let second = sender.on_ack(Feedback { ace: 7, bytes: Some(counters(2000)) }, 2000, 1000);
        assert_eq!((second.packets, second.octets), (1, 1000));
    }

    proptest! {
        /// Packets with random marks, acknowledged in pairs, of which any acknowledgement may be lost as long as fewer
        /// than eight marks and eight packets lie between two that arrive: the field alone gives the exact count.
        #[test]
        fn fewer_than_eight_packets_between_two_acknowledgements_lose_no_mark(
            packets in proptest::collection::vec((any::<bool>(), any::<bool>()), 1..400),
        ) {
            let mut sender = AccEcnSender::new(false);
            let (mut received, mut counted, mut waiting) = (5_u64, 0, 0_u64);
            for (index, &(marked, lost)) in packets.iter().enumerate() {
                received += u64::from(marked);
                waiting += 1;
                let due = index % 2 == 1 || marked;
                if (due && !lost) || waiting == 7 {
                    let feedback = Feedback { ace: (received % 8) as u8, bytes: None };
                    counted += sender.on_ack(feedback, waiting * 1000, 1000).packets;
                    waiting = 0;
                }
            }
            let feedback = Feedback { ace: (received % 8) as u8, bytes: None };
            counted += sender.on_ack(feedback, waiting * 1000, 1000).packets;
            prop_assert_eq!(counted, received - 5);
        }

        /// Whatever is lost, the option gives the exact number of octets, and the number of packets is no less than the
        /// true one and right modulo 8.
        #[test]
        fn the_option_gives_exact_octets_whatever_is_lost(
            packets in proptest::collection::vec((any::<bool>(), 0_u8..40), 1..600),
        ) {
            let mut sender = AccEcnSender::new(false);
            let (mut ce_packets, mut ce, mut waiting) = (0_u64, 0_u64, 0_u64);
            let (mut counted, mut octets) = (0, 0);
            for &(marked, survives) in &packets {
                ce_packets += u64::from(marked);
                ce += 1000 * u64::from(marked);
                waiting += 1;
                if survives == 0 {
                    let bytes = Some(counters(ce as u32));
                    let feedback = Feedback { ace: ((5 + ce_packets) % 8) as u8, bytes };
                    let marks = sender.on_ack(feedback, waiting * 1000, 1000);
                    (counted, octets, waiting) = (counted + marks.packets, octets + marks.octets, 0);
                    prop_assert_eq!(octets, ce);
                    prop_assert!(counted >= ce_packets, "{} of {}", counted, ce_packets);
                    prop_assert_eq!(counted % 8, ce_packets % 8);
                }
            }
        }
    }
}
