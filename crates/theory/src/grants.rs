//! Downloads whose ACKs wait for upstream grants.
//!
//! A station that has one request outstanding sends one burst in a request-grant time: bursts a
//! second = 1 / request-grant time. If a burst is one ACK, a download is limited to the bytes that
//! an ACK acknowledges, times bursts a second ("DOCSIS sub-throughput optimization", CED, December
//! 2006). The request-grant time of that article is the mean MAP interval plus the mean MAP-ahead
//! time, for bursts that are sent between two opportunities to ask.

use lastmile_units::{BitRate, ByteCount, Duration};

use crate::Fraction;

const PS_PER_S: u128 = 1_000_000_000_000;

/// Bursts a second of a station with one request outstanding; `None` for a request-grant time of 0.
#[must_use]
pub fn bursts_per_s(request_grant: Duration) -> Option<Fraction> {
    Fraction::new(PS_PER_S, u128::from(request_grant.as_ps()))
}

/// The rate in bit/s to which the ACKs of a download limit it: a burst carries `acks`, and each
/// acknowledges `segments` packets of `packet` bytes. The rate counts the bytes that `packet`
/// counts. `None` for a request-grant time of 0, or beyond 64 bits.
#[must_use]
pub fn download_bps(request_grant: Duration, acks: u64, segments: Fraction, packet: ByteCount) -> Option<Fraction> {
    let bits = packet.as_u64().checked_mul(8)?.checked_mul(acks)?;
    bursts_per_s(request_grant)?.checked_mul(Fraction::whole(bits))?.checked_mul(segments)
}

/// The packets of a download of rate `down` that arrive in a request-grant time. With ACK suppression one ACK
/// acknowledges them all, so that grants do not limit the download. `None` for packets of 0 bytes.
#[must_use]
pub fn suppressed_acks(request_grant: Duration, down: BitRate, packet: ByteCount) -> Option<Fraction> {
    let work = u128::from(down.as_bps()) * u128::from(request_grant.as_ps());
    Fraction::new(work, u128::from(packet.as_u64()) * 8 * PS_PER_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CED, December 2006: 5 and 3 ms allow 200 bursts a second and downloads of 2.4 and 4 Mbit/s, twice as much if an
    /// ACK acknowledges two packets.
    #[test]
    fn the_figures_of_ced_2006() {
        let kbps = |ms, segments| {
            let rate = download_bps(Duration::from_ms(ms), 1, Fraction::whole(segments), ByteCount::new(1500));
            (rate.expect("a time").as_f64() / 1e3).round() as u32
        };
        assert_eq!(bursts_per_s(Duration::from_ms(5)), Some(Fraction::whole(200)));
        assert_eq!([kbps(5, 1), kbps(3, 1), kbps(5, 2), kbps(3, 2)], [2400, 4000, 4800, 8000]);
        assert_eq!(bursts_per_s(Duration::ZERO), None);
    }

    /// In 5 ms of 12 Mbit/s five packets of 1500 bytes arrive; 200 ACKs a second for five packets are 12 Mbit/s.
    #[test]
    fn an_ack_that_stands_for_all_that_arrived_fills_the_line() {
        let (time, packet) = (Duration::from_ms(5), ByteCount::new(1500));
        let segments = suppressed_acks(time, BitRate::from_mbit_per_s(12), packet);
        assert_eq!(segments, Some(Fraction::whole(5)));
        assert_eq!(download_bps(time, 1, Fraction::whole(5), packet), Some(Fraction::whole(12_000_000)));
        assert_eq!(suppressed_acks(time, BitRate::from_mbit_per_s(12), ByteCount::ZERO), None);
    }

    /// Concatenation of ten ACKs in a burst raises the limit tenfold.
    #[test]
    fn concatenated_acks_add_up() {
        let rate = |acks| download_bps(Duration::from_ms(5), acks, Fraction::whole(2), ByteCount::new(1500));
        assert_eq!(rate(10).map(Fraction::as_f64), rate(1).map(|rate| rate.as_f64() * 10.0));
    }
}
