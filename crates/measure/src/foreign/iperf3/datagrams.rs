//! Datagrams of a UDP test, without I/O: their heads, and what a receiver makes of them.
//!
//! Source: iperf 3.12 to 3.21 (`iperf_udp.c`); the protocol has no specification. A datagram begins with the sender's
//! time (seconds and microseconds, 32 bits each) and a number of 64 bits that starts at one, all big-endian.

use serde::{Deserialize, Serialize};

use crate::train::Way;

/// Bytes of a datagram's payload: what iperf3 takes on Ethernet with TCP time stamps.
pub(super) const LEN: u16 = 1448;
/// Bytes of the head.
pub(super) const HEAD: usize = 16;
/// The datagram that opens a stream: the number 0x36373839 of a little-endian machine.
pub(super) const HELLO: [u8; 4] = *b"9876";

/// Whether a datagram answers [`HELLO`]: in the form of iperf 3.11 and later, or that of older ones in either byte
/// order.
pub(super) fn is_welcome(datagram: &[u8]) -> bool {
    let old = 987_654_321_u32;
    [*b"6789", *b"9876", old.to_le_bytes(), old.to_be_bytes()].iter().any(|welcome| welcome == datagram)
}

/// The datagrams of one direction, as their receiver counted them.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Datagrams {
    /// Direction of the datagrams.
    pub way: Way,
    /// Datagrams that the sender sent.
    pub sent: u64,
    /// Datagrams that arrived. Those behind the last of them were in flight at the end, or lost.
    pub received: u64,
    /// Datagrams that did not arrive, by the gaps in their numbers.
    pub lost: u64,
    /// Datagrams that arrived after one with a higher number; `None` of an upload, as iperf3's servers do not report
    /// it.
    pub reordered: Option<u64>,
    /// Jitter at the end of the test (RFC 3550, section 6.4.1).
    pub jitter_s: f64,
    /// Payload that the sender was to send, bit/s.
    pub offered_bps: u64,
}

/// A datagram's head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub(super) sent_us: u64,
    pub(super) number: u64,
}

impl Head {
    pub(super) fn write(self) -> [u8; HEAD] {
        let field = |value: u64| u32::try_from(value).unwrap_or(u32::MAX).to_be_bytes();
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&field(self.sent_us / 1_000_000));
        head[4..8].copy_from_slice(&field(self.sent_us % 1_000_000));
        head[8..].copy_from_slice(&self.number.to_be_bytes());
        head
    }

    /// `None` for a datagram without a whole head, or with the number zero.
    pub(super) fn read(datagram: &[u8]) -> Option<Self> {
        let (seconds, rest) = datagram.split_first_chunk()?;
        let (micros, rest) = rest.split_first_chunk()?;
        let (number, _) = rest.split_first_chunk()?;
        let sent_us = u64::from(u32::from_be_bytes(*seconds)) * 1_000_000 + u64::from(u32::from_be_bytes(*micros));
        let number = u64::from_be_bytes(*number);
        (number > 0).then_some(Self { sent_us, number })
    }
}

/// Counts of a receiver, kept as iperf3 keeps them: a gap counts as lost until a datagram with a lower number arrives.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Reception {
    pub(super) highest: u64,
    pub(super) lost: u64,
    pub(super) reordered: u64,
    pub(super) jitter_s: f64,
    transit_s: Option<f64>,
}

impl Reception {
    /// Takes a datagram that arrived at this time of the receiver's clock.
    #[expect(clippy::cast_precision_loss, reason = "below a microsecond for times below 280 years")]
    pub(super) fn take(&mut self, head: Head, arrived_us: u64) {
        if head.number > self.highest {
            self.lost += head.number - 1 - self.highest;
            self.highest = head.number;
        } else {
            self.reordered += 1;
            self.lost = self.lost.saturating_sub(1);
        }
        let transit_s = (i128::from(arrived_us) - i128::from(head.sent_us)) as f64 * 1e-6;
        let change_s = self.transit_s.map_or(0.0, |before_s| (transit_s - before_s).abs());
        self.jitter_s += (change_s - self.jitter_s) / 16.0;
        self.transit_s = Some(transit_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(number: u64, sent_us: u64) -> Head {
        Head { sent_us, number }
    }

    /// The head that iperf 3.12 sends: seconds, microseconds, number.
    #[test]
    fn heads_are_those_of_iperf3() {
        let bytes = [0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 1, 0];
        assert_eq!(head(256, 2_000_005).write(), bytes);
        assert_eq!(Head::read(&[&bytes[..], &[7; 100]].concat()), Some(head(256, 2_000_005)));
        assert_eq!(Head::read(&bytes[..15]), None);
        assert_eq!(Head::read(&[0; 16]), None);
    }

    #[test]
    fn a_gap_is_lost_until_it_is_filled() {
        let mut reception = Reception::default();
        for number in [1, 2, 5, 4, 6] {
            reception.take(head(number, 0), 0);
        }
        assert_eq!((reception.highest, reception.lost, reception.reordered), (6, 1, 1));
    }

    /// RFC 3550, section 6.4.1: each change of the transit time moves the jitter by a sixteenth of the difference. The
    /// clocks' offset does not count.
    #[test]
    fn jitter_is_that_of_the_rfc() {
        let mut reception = Reception::default();
        for (number, sent_us, arrived_us) in
            [(1, 1000, 900_000), (2, 2000, 901_000), (3, 3000, 902_160), (4, 4000, 903_000)]
        {
            reception.take(head(number, sent_us), arrived_us);
        }
        // Changes of 0, 160 and 160 us.
        let right_s = 10e-6 + (160e-6 - 10e-6) / 16.0;
        assert!((reception.jitter_s - right_s).abs() < 1e-9, "{}", reception.jitter_s);
    }

    #[test]
    fn a_server_of_any_age_welcomes() {
        for welcome in [&b"6789"[..], &[0xb1, 0x68, 0xde, 0x3a], &[0x3a, 0xde, 0x68, 0xb1]] {
            assert!(is_welcome(welcome), "{welcome:?}");
        }
        assert!(!is_welcome(b"") && !is_welcome(b"67890") && !is_welcome(&[0; 4]));
    }

    proptest::proptest! {
        #[test]
        fn no_datagram_upsets_the_counts(numbers in proptest::collection::vec(1_u64.., 0..50), at in 0_u64..) {
            let mut reception = Reception::default();
            for number in numbers {
                reception.take(head(number, at), at / 2);
                proptest::prop_assert!(reception.lost < reception.highest && reception.jitter_s.is_finite());
            }
        }
    }
}
