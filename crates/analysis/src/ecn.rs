//! Explicit congestion notification (RFC 3168; Accurate ECN: RFC 9768): what both ends agreed on, and what packets of a
//! direction and their ACKs carry.

use lastmile_packet::{Meta, TcpFlags};

/// The feedback that the handshake agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EcnFeedback {
    /// No ECN.
    None,
    /// ACKs repeat ECE until CWR answers (RFC 3168, section 6.1).
    Classic,
    /// ACKs count marks in AE, CWR and ECE (RFC 9768, section 3.2).
    Accurate,
}

impl EcnFeedback {
    /// The name in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Classic => "classic",
            Self::Accurate => "accurate",
        }
    }

    /// What a SYN with these flags and its answer agree on (RFC 3168, section 6.1.1; RFC 9768, table 2).
    pub(crate) const fn of(syn: TcpFlags, syn_ack: TcpFlags) -> Self {
        const CLASSIC: u8 = 0b011;
        const ACCURATE: u8 = 0b111;
        match (syn.ace(), syn_ack.ace()) {
            (ACCURATE, 0b010 | 0b011 | 0b100 | 0b110) => Self::Accurate,
            // The answer with AE is that of a server with the nonce of RFC 3540.
            (ACCURATE | CLASSIC, 0b001 | 0b101) => Self::Classic,
            _ => Self::None,
        }
    }
}

/// Code points of a direction's packets, and flags of its feedback.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Codepoints {
    /// DSCP of the first packet with payload.
    pub dscp: Option<u8>,
    /// Packets with ECT(0).
    pub ect_0: u64,
    /// Packets with ECT(1).
    pub ect_1: u64,
    /// Packets that were marked before the capture (CE).
    pub ce: u64,
    /// Packets of the other side with ECE, without those of the handshake.
    pub ece: u64,
    /// Packets of the sender with CWR, without those of the handshake.
    pub cwr: u64,
}

impl Codepoints {
    /// Counts a packet of the direction.
    pub(crate) fn sent(&mut self, packet: &Meta) {
        match packet.ecn() {
            Meta::ECT_0 => self.ect_0 += 1,
            Meta::ECT_1 => self.ect_1 += 1,
            Meta::CE => self.ce += 1,
            _ => {}
        }
        self.cwr += u64::from(is_feedback(packet, TcpFlags::CWR));
    }

    /// Counts a packet of the other side.
    pub(crate) fn answered(&mut self, packet: &Meta) {
        self.ece += u64::from(is_feedback(packet, TcpFlags::ECE));
    }
}

fn is_feedback(packet: &Meta, flag: TcpFlags) -> bool {
    packet.flags.contains(flag) && !packet.flags.contains(TcpFlags::SYN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Analysis;
    use lastmile_packet::{FlowAddresses, FlowId, FlowKey, Parsed, SeqNumber};
    use lastmile_units::{Duration, Instant};

    /// The rows of table 2 of RFC 9768, AE, CWR and ECE of the SYN and of its answer.
    #[test]
    fn the_handshake_tells_the_feedback() {
        let flags = |ace: u8| TcpFlags::SYN.with_ace(ace);
        for (syn, syn_ack, expected) in [
            (0b111, 0b010, EcnFeedback::Accurate),
            (0b111, 0b011, EcnFeedback::Accurate),
            (0b111, 0b100, EcnFeedback::Accurate),
            (0b111, 0b110, EcnFeedback::Accurate),
            (0b111, 0b101, EcnFeedback::Classic),
            (0b111, 0b001, EcnFeedback::Classic),
            (0b111, 0b000, EcnFeedback::None),
            (0b111, 0b111, EcnFeedback::None),
            (0b011, 0b001, EcnFeedback::Classic),
            (0b011, 0b000, EcnFeedback::None),
            (0b000, 0b000, EcnFeedback::None),
            (0b011, 0b011, EcnFeedback::None),
        ] {
            assert_eq!(EcnFeedback::of(flags(syn), flags(syn_ack)), expected, "{syn:03b} {syn_ack:03b}");
        }
    }

    /// A download with ECT(0), of which the line marked one of three packets; the client tells it in two ACKs, and the
    /// server answers with CWR.
    #[test]
    fn codepoints_and_flags_after_the_handshake_are_counted() {
        let mut analysis = Analysis::new();
        let mut packet = |ms, up, flags: TcpFlags, ecn: u8, payload: u16| {
            let forward = FlowAddresses::of_simulated(FlowId::new(0));
            let key = FlowKey { addresses: if up { forward } else { forward.reversed() }, protocol: 6 };
            let (ack, traffic_class) = (SeqNumber::new(1), ecn);
            let meta = Meta { flags, ack, traffic_class, header_len: 40, ip_len: 40 + payload, ..Meta::default() };
            analysis.packet(Instant::ZERO + Duration::from_ms(ms), &Parsed { meta, key, transport_offset: 20 });
        };
        let (syn, ack) = (TcpFlags::SYN, TcpFlags::ACK);
        packet(0, true, syn.with(TcpFlags::ECE).with(TcpFlags::CWR), 0, 0);
        packet(10, false, syn.with(ack).with(TcpFlags::ECE), 0, 0);
        packet(20, true, ack, 0, 0);
        packet(30, false, ack, Meta::ECT_0, 100);
        packet(31, false, ack, Meta::CE, 100);
        packet(40, true, ack.with(TcpFlags::ECE), 0, 0);
        packet(41, true, ack.with(TcpFlags::ECE), 0, 0);
        packet(50, false, ack.with(TcpFlags::CWR), Meta::ECT_0, 100);
        let connection = analysis.finish().remove(0);
        assert_eq!(connection.handshake.ecn, Some(EcnFeedback::Classic));
        let down = Codepoints { dscp: Some(0), ect_0: 2, ect_1: 0, ce: 1, ece: 2, cwr: 1 };
        assert_eq!((connection.down.codepoints, connection.up.codepoints), (down, Codepoints::default()));
    }
}
