//! The share of cells for operation, administration and maintenance (OAM), which carry no user
//! data.
//!
//! Published: ITU-T I.432 has one physical-layer OAM cell in 27 on cell-based interfaces; Brouer
//! 2005 (section 5.1) quotes the figure for ADSL. Model: one OAM cell after every 26 user cells, by
//! counting, so that equal packets give equal cells in every run. Differs: a real line also sends
//! OAM cells while it is idle. These delay a packet that arrives behind one by at most one cell
//! time. Cost: an addition and a division by a small number a packet.

use core::num::NonZeroU16;

use lastmile_units::{BitRate, CellCount};

/// The share of OAM cells: one cell in `user_cells + 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OamShare {
    /// User cells between two OAM cells.
    user_cells: NonZeroU16,
}

impl OamShare {
    /// One cell in 27 (ITU-T I.432): 26 user cells, then an OAM cell.
    pub const I_432: Self = Self { user_cells: NonZeroU16::new(26).expect("not zero") };

    /// One cell in `cells`; `None` below 2, which leaves no user cells.
    #[must_use]
    pub const fn one_in(cells: u16) -> Option<Self> {
        match cells.checked_sub(1) {
            Some(user) => match NonZeroU16::new(user) {
                Some(user_cells) => Some(Self { user_cells }),
                None => None,
            },
            None => None,
        }
    }

    /// User cells between two OAM cells.
    #[must_use]
    pub const fn user_cells(self) -> u16 {
        self.user_cells.get()
    }

    /// The mean rate of user cells on a line of `rate`: 26/27 of it for one cell in 27, rounded
    /// down. `None` below 1 bit/s.
    #[must_use]
    pub const fn user_rate(self, rate: BitRate) -> Option<BitRate> {
        let user = self.user_cells.get() as u128;
        BitRate::from_bps((rate.as_bps() as u128 * user / (user + 1)) as u64)
    }

    /// A counter that has counted no cell.
    #[must_use]
    pub const fn counter(self) -> OamCounter {
        OamCounter { share: self, since: 0 }
    }
}

/// Counts user cells and returns the OAM cells that are due.
#[derive(Clone, Copy, Debug)]
pub struct OamCounter {
    share: OamShare,
    /// User cells since the last OAM cell, below `share.user_cells`.
    since: u16,
}

impl OamCounter {
    /// The OAM cells between and after the next `user` cells.
    #[inline]
    pub fn advance(&mut self, user: CellCount) -> CellCount {
        let every = u64::from(self.share.user_cells.get());
        // Whole groups are removed first, so that the sum of the rest cannot overflow.
        let (groups, rest) = (user.as_u64() / every, user.as_u64() % every);
        let since = u64::from(self.since) + rest;
        let (due, since) = if since >= every { (groups + 1, since - every) } else { (groups, since) };
        self.since = u16::try_from(since).expect("fewer than the cells between two OAM cells");
        CellCount::new(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{WireMeter, preset};
    use lastmile_units::ByteCount;
    use proptest::prelude::*;

    #[test]
    fn every_27th_cell_is_oam() {
        let mut counter = OamShare::I_432.counter();
        let oam: Vec<u64> = (0..54).map(|_| counter.advance(CellCount::new(1)).as_u64()).collect();
        let at: Vec<usize> = (0..54).filter(|&i| oam[i] == 1).collect();
        assert_eq!(at, [25, 51], "after the 26th and the 52nd user cell");
    }

    #[test]
    fn a_line_keeps_26_of_27_bits() {
        assert_eq!(OamShare::I_432.user_rate(BitRate::from_kbit_per_s(2_700)), BitRate::from_bps(2_600_000));
        assert_eq!(OamShare::I_432.user_rate(BitRate::from_bps(1).unwrap()), None);
        assert_eq!(OamShare::one_in(27), Some(OamShare::I_432));
        assert_eq!([0, 1].map(OamShare::one_in), [None, None]);
        assert_eq!(OamShare::one_in(u16::MAX).unwrap().user_cells(), u16::MAX - 1);
    }

    /// 1500 bytes over pppoa-vcmux are 32 cells: 13 packets are 416 user cells, 16 groups of 26.
    #[test]
    fn a_transmitter_sends_the_oam_cells_that_are_due() {
        let link = preset::PPPOA_VCMUX.link.with_oam(OamShare::I_432).unwrap();
        let mut meter = WireMeter::new(link);
        let sum: u64 = (0..13).map(|_| meter.on_wire(ByteCount::new(1_500)).as_u64()).sum();
        assert_eq!(sum, (416 + 16) * 53);
    }

    proptest! {
        /// The number of OAM cells does not depend on how the user cells are grouped into packets.
        #[test]
        fn grouping_changes_nothing(groups in prop::collection::vec(0..5_000_u64, 0..50), one_in in 2..2_000_u16) {
            let share = OamShare::one_in(one_in).expect("at least 2");
            let mut counter = share.counter();
            let oam: u64 = groups.iter().map(|&cells| counter.advance(CellCount::new(cells)).as_u64()).sum();
            prop_assert_eq!(oam, groups.iter().sum::<u64>() / u64::from(one_in - 1));
        }
    }
}
