//! Available bit rate (ABR): sources that send at the rate that the network allows, and resource management (RM) cells that tell it.
//!
//! Published: ATM Forum TM 4.1 and ITU-T I.371 (ABR: source, destination and switch behaviour). A source puts an RM cell between every
//! [`Parameters::nrm`] cells; the destination turns it round; switches write into it what they allow ([`erica`]), or only mark data cells
//! (EFCI), which the destination tells by the CI bit.
//! Differs: rates in RM cells are whole bit/s, not 9 bits of mantissa; MCR is at least 10 cells a second (TCR), so that no RM cell goes out of rate;
//! what is turned round goes at once, beside the rate of the other direction.

pub(crate) mod control;
pub mod erica;
pub(crate) mod rm;
pub(crate) mod sender;
pub mod source;

use lastmile_units::{BitRate, Duration};
use thiserror::Error;

/// The rate at which RM cells would go out of rate (TCR): 10 cells of 424 bits a second. No minimum rate is below it.
pub const TCR: BitRate = match BitRate::from_bps(4_240) {
    Some(rate) => rate,
    None => unreachable!(),
};

/// What a source is set up with, in the words of TM 4.1. Rates count 424 bits a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// Peak cell rate: never above.
    pub pcr: BitRate,
    /// Minimum cell rate: never below. From [`TCR`] to PCR.
    pub mcr: BitRate,
    /// Initial cell rate: before the first RM cell is back, and after a pause. From MCR to PCR.
    pub icr: BitRate,
    /// Rate increase factor, as its denominator: an RM cell that allows it adds PCR / `rif`. A power of two up to 32768.
    pub rif: u32,
    /// Rate decrease factor, as its denominator: an RM cell with CI takes ACR / `rdf` away. A power of two up to 32768.
    pub rdf: u32,
    /// An RM cell is the first of so many cells. A power of two from 2 to 256.
    pub nrm: u32,
    /// An RM cell comes no later than this after the one before, if two cells came between.
    pub trm: Duration,
    /// Cutoff decrease factor, as its denominator: without RM cells from the network ACR / `cdf` goes away with each sent. A power of two up to
    /// 64. `None`: nothing does.
    pub cdf: Option<u32>,
    /// Missing RM cells: so many have been sent since one came back.
    pub crm: u32,
    /// ACR decrease time factor: after so long without an RM cell sent, ACR falls to ICR.
    pub adtf: Duration,
}

impl Parameters {
    /// The defaults of TM 4.1, with ICR at PCR and MCR at [`TCR`] (there 0).
    #[must_use]
    pub const fn new(pcr: BitRate) -> Self {
        Self {
            pcr,
            mcr: TCR,
            icr: pcr,
            rif: 16,
            rdf: 16,
            nrm: 32,
            trm: Duration::from_ms(100),
            cdf: Some(16),
            // TBE of 2^24 - 1 cells over Nrm, rounded up.
            crm: 524_288,
            adtf: Duration::from_ms(500),
        }
    }

    /// Checks that the numbers go together.
    ///
    /// # Errors
    /// Rates out of order, factors that are no powers of two in their range, no cells between RM cells.
    pub fn check(&self) -> Result<(), AbrError> {
        let Self { pcr, mcr, icr, .. } = *self;
        if mcr > pcr {
            return Err(AbrError::MinimumAbovePeak { mcr, pcr });
        }
        if mcr < TCR {
            return Err(AbrError::MinimumTooLow { mcr });
        }
        if icr > pcr || icr < mcr {
            return Err(AbrError::Initial { icr, mcr, pcr });
        }
        let powers = [
            ("rif", u64::from(self.rif), 1, 32_768),
            ("rdf", u64::from(self.rdf), 1, 32_768),
            ("nrm", u64::from(self.nrm), 2, 256),
            ("cdf", u64::from(self.cdf.unwrap_or(1)), 1, 64),
        ];
        if let Some(&(name, value, least, most)) =
            powers.iter().find(|(_, value, least, most)| !value.is_power_of_two() || value < least || value > most)
        {
            return Err(AbrError::NoPower { name, value, least, most });
        }
        if self.crm == 0 {
            return Err(AbrError::NoMissing);
        }
        Ok(())
    }
}

/// Why a source cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum AbrError {
    /// MCR above PCR.
    #[error("the minimum cell rate {mcr} is above the peak cell rate {pcr}")]
    MinimumAbovePeak {
        /// MCR.
        mcr: BitRate,
        /// PCR.
        pcr: BitRate,
    },
    /// MCR below TCR.
    #[error(
        "the minimum cell rate {mcr} is below 4240 bit/s, ten cells a second: no RM cell would bring the rate back"
    )]
    MinimumTooLow {
        /// MCR.
        mcr: BitRate,
    },
    /// ICR not between MCR and PCR.
    #[error("the initial cell rate {icr} must be from the minimum of {mcr} to the peak of {pcr}")]
    Initial {
        /// ICR.
        icr: BitRate,
        /// MCR.
        mcr: BitRate,
        /// PCR.
        pcr: BitRate,
    },
    /// A factor or Nrm that RM cells cannot say.
    #[error("{value} is no power of two from {least} to {most}")]
    NoPower {
        /// Which: `rif`, `rdf`, `nrm`, `cdf`.
        name: &'static str,
        /// Its value.
        value: u64,
        /// Least possible.
        least: u64,
        /// Most possible.
        most: u64,
    },
    /// CRM of none.
    #[error("a CRM of 0 would lower the rate with every RM cell; it must be at least 1")]
    NoMissing,
    /// A target of ERICA out of range.
    #[error("a target utilisation of {permille} thousandths must be from 1 to 1000")]
    Target {
        /// Thousandths.
        permille: u32,
    },
    /// Nothing to measure over.
    #[error("an averaging interval of no time")]
    NoInterval,
}

/// A resource management cell: the fields that rules read. Direction is that of the VC it is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rm {
    /// Current cell rate, bit/s: the ACR of the source when it sent the cell.
    pub ccr: u64,
    /// Explicit rate, bit/s: the most that anybody on the way allows.
    pub er: u64,
    /// Congestion indication: the source lowers its rate.
    pub ci: bool,
    /// No increase.
    pub ni: bool,
}
