//! The negotiation of ECN in the handshake: RFC 3168, and Accurate ECN with the ECN fields of SYN and SYN-ACK.
//!
//! Published: RFC 3168, section 6.1.1; RFC 9768, sections 3.1 (negotiation), 3.2.2.1 (handshake encoding).
//! Differs: a lost SYN is retransmitted with the same offer, where RFC 9768 (3.1.4.1) lets hosts fall back; SYNs,
//! retransmissions and pure acknowledgements are not ECN-capable (no RFC 8311 experiment). A client does not lower its
//! initial window for a SYN that was marked, since no SYN of a simulation is ECN-capable.

use lastmile_packet::{Meta, TcpFlags};

use super::Endpoint;
use crate::Ecn;

/// The state of Accurate ECN in the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct EcnHandshake {
    /// The ECN field of the latest SYN or SYN-ACK.
    peer_field: u8,
    /// The next pure acknowledgement reports the ECN field of the SYN-ACK.
    report_due: bool,
    /// The segment that arrives has the handshake encoding, not the counter.
    encoded: bool,
    /// No packet may be ECN-capable any more (section 3.1.5).
    refused: bool,
}

/// RFC 9768, table 2 and table 3: the ECN field of a SYN or SYN-ACK as AE, CWR and ECE.
const fn encoded(field: u8) -> u8 {
    match field {
        Meta::ECT_1 => 0b011,
        Meta::ECT_0 => 0b100,
        Meta::CE => 0b110,
        _ => 0b010,
    }
}

/// The mode that the peer's SYN or SYN-ACK leads to (RFC 9768, table 2 and sections 3.1.2 and 3.1.3).
const fn agreed(own: Ecn, is_answer: bool, code: u8) -> Ecn {
    match (own, is_answer, code) {
        // RFC 3168, section 6.1.1: an ECN-setup SYN has ECE and CWR, an ECN-setup SYN-ACK has ECE alone.
        (Ecn::Classic, false, 0b011 | 0b111)
        | (Ecn::Classic, true, 0b001 | 0b101)
        | (Ecn::Accurate, false, 0b011)
        | (Ecn::Accurate, true, 0b001) => Ecn::Classic,
        (Ecn::Off | Ecn::Classic, ..) | (Ecn::Accurate, _, 0b000) | (Ecn::Accurate, true, 0b111) => Ecn::Off,
        (Ecn::Accurate, ..) => Ecn::Accurate,
    }
}

impl Endpoint {
    /// The peer's SYN or SYN-ACK arrived.
    pub(super) fn agree_ecn(&mut self, segment: &Meta) {
        let is_answer = segment.flags.contains(TcpFlags::ACK);
        self.ecn = agreed(self.config.ecn, is_answer, segment.flags.ace());
        if self.ecn == Ecn::Accurate {
            let field = segment.ecn();
            self.handshake.ecn = EcnHandshake { peer_field: field, report_due: is_answer, ..EcnHandshake::default() };
            self.rcv.start_accecn(is_answer && field == Meta::CE);
            self.snd.start_accecn(false);
        }
    }

    /// A SYN or SYN-ACK arrived once more (section 3.1.5: the latest is reported).
    pub(super) fn note_repeated_syn(&mut self, segment: &Meta) {
        self.handshake.ecn.peer_field = segment.ecn();
        let is_answer = segment.flags.contains(TcpFlags::ACK);
        self.handshake.ecn.report_due |= is_answer && self.ecn == Ecn::Accurate;
        // Section 3.1.5: a server that has received a SYN without ECN sends no ECN-capable packet.
        self.handshake.ecn.refused |= !is_answer && segment.flags.ace() == 0;
    }

    /// The flags of a SYN, or of a SYN-ACK (`answer`).
    pub(super) fn syn_ecn_flags(&self, answer: bool) -> TcpFlags {
        let code = match (answer, if answer { self.ecn } else { self.config.ecn }) {
            (_, Ecn::Off) => 0,
            (true, Ecn::Classic) => 0b001,
            (false, Ecn::Classic) => 0b011,
            (true, Ecn::Accurate) => encoded(self.handshake.ecn.peer_field),
            (false, Ecn::Accurate) => 0b111,
        };
        TcpFlags::NONE.with_ace(code)
    }

    /// The acknowledgement of this server's SYN-ACK arrived (RFC 9768, table 4).
    pub(super) fn read_handshake_ecn(&mut self, segment: &Meta) {
        let bare = segment.payload_len() == 0 && !segment.flags.contains(TcpFlags::FIN);
        if self.ecn != Ecn::Accurate || !bare || segment.options().sack_count() > 0 {
            return;
        }
        self.handshake.ecn.encoded = true;
        match segment.flags.ace() {
            0b000 => {
                self.handshake.ecn.refused = true;
                self.snd.stop_accecn();
            }
            0b110 => self.snd.start_accecn(true),
            _ => {}
        }
    }

    /// The ECN mode by which the sender reads a segment of an established connection.
    #[inline]
    pub(super) fn take_ecn(&mut self) -> Ecn {
        if core::mem::take(&mut self.handshake.ecn.encoded) { Ecn::Off } else { self.ecn }
    }

    /// New data may be ECN-capable.
    #[inline]
    pub(super) fn sends_ect(&self) -> bool {
        self.ecn != Ecn::Off && !self.handshake.ecn.refused
    }

    /// The flags of a segment of a connection with ECN. `pure`: an acknowledgement without data and SACK blocks.
    #[cold]
    pub(super) fn ecn_flags(&mut self, flags: TcpFlags, pure: bool) -> TcpFlags {
        match self.ecn {
            Ecn::Off => flags,
            Ecn::Classic if self.rcv.echoes_congestion() => flags.with(TcpFlags::ECE),
            Ecn::Classic => flags,
            Ecn::Accurate if pure && core::mem::take(&mut self.handshake.ecn.report_due) => {
                flags.with_ace(encoded(self.handshake.ecn.peer_field))
            }
            Ecn::Accurate => flags.with_ace(self.rcv.ace()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9768, table 2: the client's SYN, the server's SYN-ACK, and the mode of both. `true`: the server has Accurate
    /// ECN.
    #[test]
    fn the_modes_follow_the_table_of_the_rfc() {
        // Full AccECN: SYN 111, and SYN-ACKs for each ECN field.
        assert_eq!(agreed(Ecn::Accurate, false, 0b111), Ecn::Accurate);
        for field in [Meta::NOT_ECT, Meta::ECT_1, Meta::ECT_0, Meta::CE] {
            assert_eq!(agreed(Ecn::Accurate, true, encoded(field)), Ecn::Accurate);
        }
        assert_eq!([0, 1, 2, 3].map(encoded), [0b010, 0b011, 0b100, 0b110]);
        // AccECN client, Nonce server (reserved, section 3.1.3), ECN server, server without ECN, broken server.
        let client = [0b101, 0b001, 0b000, 0b111].map(|code| agreed(Ecn::Accurate, true, code));
        assert_eq!(client, [Ecn::Accurate, Ecn::Classic, Ecn::Off, Ecn::Off]);
        // AccECN server: Nonce client 101 (section 3.1.3), ECN client, client without ECN.
        let server = [0b101, 0b011, 0b000].map(|code| agreed(Ecn::Accurate, false, code));
        assert_eq!(server, [Ecn::Accurate, Ecn::Classic, Ecn::Off]);
        // RFC 3168 servers take the SYN of AccECN for their own.
        assert_eq!(agreed(Ecn::Classic, false, 0b111), Ecn::Classic);
        assert_eq!(agreed(Ecn::Classic, true, 0b010), Ecn::Off);
        assert_eq!(agreed(Ecn::Off, false, 0b111), Ecn::Off);
    }
}
