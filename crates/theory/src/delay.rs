//! The waiting time behind packets: the bound of a service class's delay is the sum of what may be
//! ahead of its packet (Brouer 2005, section 7.2).

use lastmile_linklayer::LinkLayer;
use lastmile_units::{BitRate, ByteCount, Duration};

const PS_PER_S: u128 = 1_000_000_000_000;

/// The waiting time behind `packets` packets of `ip` bytes each, rounded down to a picosecond; at
/// most [`Duration::MAX`].
#[must_use]
pub fn wait_behind(rate: BitRate, link: LinkLayer, packets: u64, ip: ByteCount) -> Duration {
    let queued = link.on_wire(ip).as_u64().saturating_mul(packets);
    let ps = u128::from(queued) * 8 * PS_PER_S / u128::from(rate.as_bps());
    Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Brouer 2005, section 7.2: at 512 kbit/s a packet of 1500 bytes takes 32 cells of 828.125 us.
    #[test]
    fn a_queue_of_cells_drains_at_the_rate_of_the_line() {
        let link = LinkLayer::from_name("pppoa-vcmux").expect("a preset");
        let wait = |packets| wait_behind(BitRate::from_kbit_per_s(512), link, packets, ByteCount::new(1500));
        assert_eq!(wait(1), Duration::from_us(26_500));
        assert_eq!(wait(200), Duration::from_ms(5_300));
        assert_eq!(wait(u64::MAX), Duration::MAX);
    }
}
