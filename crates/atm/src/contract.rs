//! Traffic contracts: the limits of a connection, in the words of ITU-T I.371 (ATM transfer
//! capabilities).
//!
//! Published: ITU-T I.371 (2004), sections 6.4 (DBR), 6.5 (SBR1 to SBR3) and 6.8 (GFR); ATM Forum
//! TM 4.1 calls them CBR, VBR.1 to VBR.3, UBR.1, UBR.2, GFR.1 and GFR.2. Real-time and
//! non-real-time VBR differ in the promises of the network, not in conformance.

pub mod policer;

use lastmile_units::{BitRate, CellCount, Duration};
use thiserror::Error;

use crate::time::Spacing;

/// A peak cell rate, for cells of both priorities together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peak {
    /// PCR, 424 bits a cell.
    pub rate: BitRate,
    /// Cell delay variation tolerance: how early a cell may be.
    pub cdvt: Duration,
}

/// A sustainable (SBR) or minimum (GFR) cell rate and the burst that may come at the peak rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sustainable {
    /// SCR or MCR, 424 bits a cell. Not above the peak rate.
    pub rate: BitRate,
    /// MBS: cells that may come at the peak rate. At least 1.
    pub mbs: CellCount,
    /// Tolerance in addition to the burst tolerance of MBS.
    pub cdvt: Duration,
}

impl Sustainable {
    /// Burst tolerance, (MBS - 1) * (1/SCR - 1/PCR): how early cells may be so that MBS of them
    /// conform at the peak rate (ITU-T I.371, section 5.4.2). Zero if the rate is that of the peak.
    #[must_use]
    pub fn burst_tolerance(&self, peak: BitRate) -> Spacing {
        let each = Spacing::of_cell(self.rate).minus(Spacing::of_cell(peak));
        each.times(self.mbs.as_u64().saturating_sub(1))
    }
}

/// The cells that the sustainable rate of SBR counts, and the treatment of excess cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sbr {
    /// SBR1: cells of both priorities; excess cells are dropped.
    One,
    /// SBR2: cells of CLP = 0; excess cells are dropped.
    Two,
    /// SBR3: cells of CLP = 0; excess cells are tagged, that is, pass with CLP = 1.
    Three,
}

impl Sbr {
    /// True if the sustainable rate counts cells of this priority.
    #[inline]
    pub(crate) fn asks(self, low_priority: bool) -> bool {
        self == Self::One || !low_priority
    }
}

/// A traffic contract.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contract {
    /// Deterministic bit rate (CBR): a peak rate; excess cells are dropped.
    Dbr {
        /// The rate.
        peak: Peak,
    },
    /// Statistical bit rate (VBR): peak and sustainable rate together.
    Sbr {
        /// The cells that count, and the treatment of excess cells.
        variant: Sbr,
        /// Both priorities. Excess cells are dropped.
        peak: Peak,
        /// The cells that count by `variant`.
        sustainable: Sustainable,
    },
    /// Unspecified bit rate: no promise.
    Ubr {
        /// Excess cells are dropped. `None`: no rate is policed.
        peak: Option<Peak>,
        /// UBR.2: every cell is tagged, so it is dropped before cells of better contracts.
        tagging: bool,
    },
    /// Guaranteed frame rate: whole frames up to a minimum rate.
    Gfr {
        /// Both priorities. Excess cells are dropped, with the rest of their frames.
        peak: Peak,
        /// MCR and MBS: frames of CLP = 0 within them are eligible for the guarantee.
        minimum: Sustainable,
        /// MFS: the longest frame. Of a longer one cell number MFS and all later ones are dropped, but for the last.
        mfs: CellCount,
        /// GFR.2: frames that are not eligible are tagged, all their cells.
        tagging: bool,
    },
}

/// An error in a contract.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ContractError {
    /// A sustainable or minimum rate above the peak rate.
    #[error("the sustainable cell rate {sustainable} is above the peak cell rate {peak}")]
    SustainableAbovePeak {
        /// SCR or MCR.
        sustainable: BitRate,
        /// PCR.
        peak: BitRate,
    },
    /// A burst of no cells.
    #[error("the maximum burst size is 0 cells; it must be at least 1")]
    NoBurst,
    /// A longest frame of no cells, or above the burst.
    #[error(
        "the maximum frame size of {mfs} cells must be at least 1 and at most the maximum burst size of {mbs} cells"
    )]
    FrameSize {
        /// MFS.
        mfs: u64,
        /// MBS.
        mbs: u64,
    },
}

impl Contract {
    /// Checks that the parameters are consistent.
    ///
    /// # Errors
    /// SCR or MCR above PCR, MBS of no cells, MFS of no cells or above MBS.
    pub fn check(&self) -> Result<(), ContractError> {
        let (peak, sustainable) = match self {
            Self::Dbr { .. } | Self::Ubr { .. } => return Ok(()),
            Self::Sbr { peak, sustainable, .. } => (peak, sustainable),
            Self::Gfr { peak, minimum, .. } => (peak, minimum),
        };
        if sustainable.rate > peak.rate {
            return Err(ContractError::SustainableAbovePeak { sustainable: sustainable.rate, peak: peak.rate });
        }
        if sustainable.mbs == CellCount::ZERO {
            return Err(ContractError::NoBurst);
        }
        if let Self::Gfr { mfs, minimum, .. } = self
            && (*mfs == CellCount::ZERO || *mfs > minimum.mbs)
        {
            return Err(ContractError::FrameSize { mfs: mfs.as_u64(), mbs: minimum.mbs.as_u64() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sbr3(scr_kbit: u64, mbs: u64) -> Contract {
        Contract::Sbr {
            variant: Sbr::Three,
            peak: Peak { rate: BitRate::from_kbit_per_s(149_760), cdvt: Duration::ZERO },
            sustainable: Sustainable {
                rate: BitRate::from_kbit_per_s(scr_kbit),
                mbs: CellCount::new(mbs),
                cdvt: Duration::ZERO,
            },
        }
    }

    #[test]
    fn a_contract_that_contradicts_itself_is_refused() {
        assert_eq!(sbr3(18_720, 8256).check(), Ok(()));
        assert_eq!(sbr3(149_760, 1).check(), Ok(()), "SCR may be PCR");
        let error = sbr3(149_761, 1).check().expect_err("above");
        assert_eq!(
            error.to_string(),
            "the sustainable cell rate 149.761 Mbit/s is above the peak cell rate 149.76 Mbit/s"
        );
        assert_eq!(sbr3(18_720, 0).check(), Err(ContractError::NoBurst));
    }

    #[test]
    fn a_frame_must_fit_the_burst() {
        let Contract::Sbr { peak, sustainable: minimum, .. } = sbr3(1_000, 30) else { unreachable!() };
        let gfr = |mfs| Contract::Gfr { peak, minimum, mfs: CellCount::new(mfs), tagging: true }.check();
        assert_eq!(gfr(30), Ok(()));
        assert_eq!(gfr(31), Err(ContractError::FrameSize { mfs: 31, mbs: 30 }));
        assert_eq!(gfr(0), Err(ContractError::FrameSize { mfs: 0, mbs: 30 }));
    }
}
