//! The receiver's side of Accurate ECN: the counters of marked packets and octets, and the acknowledgements that report
//! them.
//!
//! Published: RFC 9768, sections 3.2.1 (counters), 3.2.2.5.1 (acknowledgements for marks), 3.2.3.3 (use of the option).
//!
//! An acknowledgement is due when a mark follows a packet without one, and when two marks have arrived since the last
//! acknowledgement. The option is sent with the handshake, when other counters move than before, and at least four
//! times in a round trip while any moves, as Linux does. SACK blocks have priority: an acknowledgement with several has
//! no option.
//!
//! Differs: the option has all three counters in order 0, never fewer. Its loss is not detected, since no simulated
//! path drops it.
//! Cost: a dozen operations for each data segment of a connection with Accurate ECN; 48 bytes, boxed.

use lastmile_packet::{EcnBytes, Meta, Options};
use lastmile_units::{Duration, Instant};

/// RFC 9768, section 3.2.1.
const FIRST_PACKETS: u8 = 5;
const FIRST_BYTES: EcnBytes = EcnBytes { ect0: 1, ce: 0, ect1: 1 };
/// Section 3.2.2.5.1: marks after which an acknowledgement is due.
const MARKS_FOR_ACK: u8 = 2;
/// The option is sent at least this often in a round trip (Linux: `TCP_ACCECN_BEACON_FREQ_SHIFT`).
const OPTIONS_A_ROUND: u64 = 4;

/// The counters of a receiver: r.cep, r.e0b, r.ceb, r.e1b.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AccEcnReceiver {
    packets: u8,
    bytes: EcnBytes,
    /// The ECN field of the last packet.
    last: u8,
    /// Marks since the last acknowledgement.
    unreported: u8,
    /// The next acknowledgement carries the option.
    option_due: bool,
    /// The counters have moved since the last option, which was sent at `option_at`.
    moved: bool,
    option_at: Instant,
}

impl AccEcnReceiver {
    /// `syn_ack_ce`: the SYN-ACK arrived with CE, which counts (section 3.2.2.2).
    pub(crate) fn new(syn_ack_ce: bool) -> Self {
        Self {
            packets: FIRST_PACKETS + u8::from(syn_ack_ce),
            bytes: FIRST_BYTES,
            last: Meta::NOT_ECT,
            unreported: 0,
            option_due: true,
            moved: false,
            option_at: Instant::ZERO,
        }
    }

    /// This number of packets with `len` octets of payload arrived together. True: an acknowledgement is due.
    pub(crate) fn on_packets(&mut self, ecn: u8, len: u16, packets: u16) -> bool {
        (1..packets).fold(self.on_packet(ecn, len), |due, _| self.on_packet(ecn, 0) | due)
    }

    /// A packet with `len` octets of payload arrived. True: an acknowledgement is due.
    fn on_packet(&mut self, ecn: u8, len: u16) -> bool {
        let len = u32::from(len);
        let counter = match ecn {
            Meta::CE => &mut self.bytes.ce,
            Meta::ECT_0 => &mut self.bytes.ect0,
            Meta::ECT_1 => &mut self.bytes.ect1,
            _ => return false,
        };
        *counter = counter.wrapping_add(len) & 0x00ff_ffff;
        self.moved |= len > 0;
        let before = core::mem::replace(&mut self.last, ecn);
        // Section 3.2.3.3: a change of the counter that moves.
        self.option_due |= before != ecn && len > 0;
        if ecn != Meta::CE {
            return false;
        }
        self.packets = (self.packets + 1) % 8;
        self.unreported = self.unreported.saturating_add(1);
        len > 0 && (before != Meta::CE || self.unreported >= MARKS_FOR_ACK)
    }

    /// The ACE field of a segment that is sent now.
    pub(crate) fn ace(&mut self) -> u8 {
        self.unreported = 0;
        self.packets % 8
    }

    /// The byte counters.
    pub(crate) fn bytes(&self) -> EcnBytes {
        self.bytes
    }

    /// The options of a segment that is sent now.
    pub(crate) fn add_option(&mut self, now: Instant, srtt: Option<Duration>, options: Options) -> Options {
        let beacon = srtt.is_some_and(|srtt| now.since(self.option_at).saturating_mul(OPTIONS_A_ROUND) >= srtt);
        let due = self.option_due || (self.moved && beacon);
        if !due || options.sack_count() > 1 || options.has_list() {
            return options;
        }
        (self.option_due, self.moved, self.option_at) = (false, false, now);
        options.with_accecn(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 3.2.2.5.1: the first mark after a packet without one, then every second mark.
    #[test]
    fn acknowledgements_are_due_for_a_change_and_for_two_marks() {
        let mut receiver = AccEcnReceiver::new(false);
        let due = [Meta::ECT_0, Meta::CE, Meta::CE, Meta::CE].map(|ecn| receiver.on_packet(ecn, 1000));
        assert_eq!(due, [false, true, true, true], "none was sent in between");
        assert_eq!(receiver.ace(), 0, "5 + 3");
        let due = [Meta::CE, Meta::CE, Meta::ECT_0].map(|ecn| receiver.on_packet(ecn, 1000));
        assert_eq!(due, [false, true, false]);
        assert_eq!(receiver.ace(), 2);
    }

    /// Receive offload joins more than 255 small segments.
    #[test]
    fn a_long_burst_of_marks_counts() {
        let mut receiver = AccEcnReceiver::new(false);
        assert!(receiver.on_packets(Meta::CE, 60_000, 300));
        assert_eq!(u16::from(receiver.ace()), (5 + 300) % 8);
    }

    #[test]
    fn payload_counts_by_the_field_of_its_packet() {
        let mut receiver = AccEcnReceiver::new(true);
        for (ecn, len) in [(Meta::ECT_0, 100), (Meta::CE, 200), (Meta::ECT_1, 300), (Meta::NOT_ECT, 400)] {
            receiver.on_packet(ecn, len);
        }
        let options = receiver.add_option(Instant::ZERO, None, Options::NONE);
        assert_eq!(options.accecn(), Some(EcnBytes { ect0: 101, ce: 200, ect1: 301 }));
        assert_eq!(receiver.ace(), 7, "5, the SYN-ACK, and one mark");
    }

    /// At once after a change, then every fourth of a round trip of 100 ms.
    #[test]
    fn the_option_is_sent_for_a_change_and_four_times_a_round() {
        let at = |ms| Instant::ZERO + Duration::from_ms(ms);
        let mut receiver = AccEcnReceiver::new(false);
        let mut sent = Vec::new();
        for ms in 0..100 {
            receiver.on_packet(if ms < 10 { Meta::ECT_0 } else { Meta::CE }, 1000);
            if receiver.add_option(at(ms), Some(Duration::from_ms(100)), Options::NONE).accecn().is_some() {
                sent.push(ms);
            }
        }
        assert_eq!(sent, [0, 10, 35, 60, 85]);
    }
}
