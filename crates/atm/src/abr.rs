//! Available bit rate (ABR): sources send at the rate that the network allows, which resource
//! management (RM) cells carry.
//!
//! Published: ATM Forum TM 4.1 and ITU-T I.371 (ABR: source, destination and switch behaviour). A
//! source sends an RM cell among every [`Parameters::nrm`] cells; the destination returns it; switches
//! write the allowed rate into it ([`erica`]), or mark data cells (EFCI), which the destination
//! reports in the CI bit.
//! Differs: rates in RM cells are whole bit/s, not 9 bits of mantissa; MCR is at least 10 cells a
//! second (TCR), so no RM cell is out of rate; returned RM cells depart at once and do not count in
//! the rate of the other direction.

pub(crate) mod control;
pub mod erica;
pub(crate) mod rm;
pub(crate) mod sender;
pub mod source;

use lastmile_units::{BitRate, Duration};
use thiserror::Error;

/// The rate of out-of-rate RM cells (TCR): 10 cells of 424 bits a second. No minimum rate is below it.
pub const TCR: BitRate = match BitRate::from_bps(4_240) {
    Some(rate) => rate,
    None => unreachable!(),
};

/// The parameters of a source, in the words of TM 4.1. Rates count 424 bits a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// Peak cell rate: never above.
    pub pcr: BitRate,
    /// Minimum cell rate: never below. From [`TCR`] to PCR.
    pub mcr: BitRate,
    /// Initial cell rate: before the first RM cell returns, and after a pause. From MCR to PCR.
    pub icr: BitRate,
    /// Denominator of the rate increase factor: an RM cell without CI and NI adds PCR / `rif`. A
    /// power of two up to 32768.
    pub rif: u32,
    /// Denominator of the rate decrease factor: an RM cell with CI subtracts ACR / `rdf`. A power
    /// of two up to 32768.
    pub rdf: u32,
    /// The first of every `nrm` cells is an RM cell. A power of two from 2 to 256.
    pub nrm: u32,
    /// The longest time between RM cells with two or more data cells between them.
    pub trm: Duration,
    /// Denominator of the cutoff decrease factor: after `crm` RM cells without an answer, each RM
    /// cell sent subtracts ACR / `cdf`. A power of two up to 64. `None`: no decrease.
    pub cdf: Option<u32>,
    /// Missing RM cell count: the RM cells sent without an answer before the cutoff begins.
    pub crm: u32,
    /// ACR decrease time factor: after this time without an RM cell sent, ACR falls to ICR.
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

    /// Checks that the parameters are consistent.
    ///
    /// # Errors
    /// Rates out of order; factors that are not powers of two in their range; a CRM of 0.
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

/// An error in the parameters of a source or port.
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
    /// A factor or Nrm that is not a power of two in its range.
    #[error("{value} is no power of two from {least} to {most}")]
    NoPower {
        /// Name: `rif`, `rdf`, `nrm` or `cdf`.
        name: &'static str,
        /// The value of the parameter.
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
    /// An averaging interval of no time.
    #[error("an averaging interval of no time")]
    NoInterval,
}

/// A resource management cell: the fields that the rules read. Its direction is that of its VC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rm {
    /// Current cell rate, bit/s: the ACR of the source when it sent the cell.
    pub ccr: u64,
    /// Explicit rate, bit/s: the least rate that a port on the path allows.
    pub er: u64,
    /// Congestion indication: the source lowers its rate.
    pub ci: bool,
    /// No increase.
    pub ni: bool,
}
