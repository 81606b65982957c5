//! Capture files, packet by packet: pcap and pcapng, also compressed by gzip or Zstandard.
//!
//! Link layers: Ethernet with VLAN tags and PPPoE, PPP, raw IP, Linux cooked and loopback captures. A file
//! that ends in the middle of a packet is read up to there. Times are nanoseconds since 1970; pcapng tells
//! their unit interface by interface (`if_tsresol`, by default the microsecond).

mod blocks;
mod frame;
mod link;
mod pcap;
mod pcapng;
mod unpack;

use std::io::Read;

use lastmile_units::{Duration, Instant};

use self::frame::Take;
pub use self::frame::{Extent, Frame};
pub use self::link::Sighting;

/// First four bytes of a pcapng file, in either byte order.
const PCAPNG: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Reads a capture and hands over its packets in the order of the file, until `take` refuses one.
///
/// # Errors
///
/// When the file is no capture, or of a link layer that is not known, and what `take` returns.
pub fn read(file: impl Read, take: &mut Take<'_>) -> Result<Extent, String> {
    let mut file = unpack::unpack(file).map_err(|error| error.to_string())?;
    let mut magic = Vec::new();
    (&mut file).take(4).read_to_end(&mut magic).map_err(|error| error.to_string())?;
    if magic.len() < 4 {
        return Err("too short for a capture".to_owned());
    }
    let whole = magic.as_slice().chain(file);
    if magic == PCAPNG { pcapng::read(whole, take) } else { pcap::read(whole, take) }
}

/// The times of a capture's packets, counted from its first one.
#[derive(Clone, Debug, Default)]
pub struct Times {
    first_ns: Option<u64>,
}

impl Times {
    /// The longest capture. Sums of a few such spans are still times.
    pub const LONGEST: Duration = Duration::from_s(50 * 86_400);

    /// When a packet came; at the beginning if it came before the first one. `None` for one that came later
    /// than [`Times::LONGEST`]: a damaged time.
    #[inline]
    pub fn since_first(&mut self, at_ns: u64) -> Option<Instant> {
        let since_ns = at_ns.saturating_sub(*self.first_ns.get_or_insert(at_ns));
        (since_ns <= Self::LONGEST.as_ns()).then(|| Instant::ZERO + Duration::from_ns(since_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_another_age_is_none_of_the_capture() {
        let mut times = Times::default();
        assert_eq!(times.since_first(1_000), Some(Instant::ZERO));
        assert_eq!(times.since_first(3_000), Some(Instant::ZERO + Duration::from_us(2)));
        assert_eq!(times.since_first(500), Some(Instant::ZERO), "before the first");
        assert_eq!(times.since_first(u64::MAX), None);
        let longest = Times::LONGEST.as_ns();
        assert_eq!(times.since_first(1_000 + longest), Some(Instant::ZERO + Times::LONGEST));
        assert_eq!(times.since_first(1_001 + longest), None);
    }
}
