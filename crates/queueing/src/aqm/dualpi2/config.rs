//! The parameters of DualPI2.

use lastmile_units::{BitRate, ByteCount, Duration, Limit, PacketCount, Ratio};

/// The parameters of DualPI2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The wait of classic packets that the controller aims at.
    pub target: Duration,
    /// The time between two updates of the probability.
    pub period: Duration,
    /// Gain of the distance from the target, in 256ths per second.
    pub alpha: u32,
    /// Gain of the change since the update before, in 256ths per second.
    pub beta: u32,
    /// The coupling factor k: the marking probability of the shallow queue is k times the base probability,
    /// that of the classic queue its square.
    pub coupling: u32,
    /// The shallow queue marks a packet that has waited as long. With `predicted`, the end of a ramp over the
    /// predicted wait.
    pub step: Duration,
    /// The shallow queue marks packets that arrive by the wait that this rate predicts, as DOCSIS does, in place of
    /// packets that depart by their sojourn time: the Maximum Sustained Traffic Rate, on the wire.
    pub predicted: Option<BitRate>,
    /// A packet that found at most this many others in the shallow queue is not marked by the step.
    pub min_qlen_step: PacketCount,
    /// The share of the rate that the classic queue gets while both have packets.
    pub classic_protection: Ratio,
    /// Moves packets of flows that build the shallow queue to the classic queue.
    pub queue_protection: bool,
    /// Packets with the code point NQB wait in the shallow queue too, as in DOCSIS (RFC 9332, section 2.5.1.1).
    pub nqb: bool,
    /// Capacity of both queues together.
    pub limit: Limit,
    /// The largest IP packet to expect: while less than two of them wait, nothing is signalled but by the step.
    pub largest: ByteCount,
    /// Seed of the random numbers that decide.
    pub seed: u64,
}

impl Default for Config {
    /// The defaults of tc-dualpi2(8), which are those of RFC 9332, appendix A, for round trips of up to 100 ms.
    fn default() -> Self {
        Self {
            target: Duration::from_ms(15),
            period: Duration::from_ms(16),
            alpha: 41,
            beta: 819,
            coupling: 2,
            step: Duration::from_ms(1),
            predicted: None,
            min_qlen_step: PacketCount::ZERO,
            classic_protection: Ratio::from_percent(10).expect("a share"),
            queue_protection: false,
            nqb: false,
            limit: Limit::Packets(PacketCount::new(10_000)),
            largest: ByteCount::new(1500),
            seed: 1,
        }
    }
}

/// Parameters with which DualPI2 cannot work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DualPi2Error {
    /// Every packet would wait too long.
    #[error("a target of zero: no queue could reach it; RFC 9332 has 15 ms")]
    ZeroTarget,
    /// The probability would be updated all the time.
    #[error("a time of zero between updates; tc-dualpi2(8) has 16 ms")]
    ZeroPeriod,
    /// A gain beyond any stable controller.
    #[error("a gain of {0} 256ths per second; it is at most {max}", max = Config::LARGEST_GAIN)]
    Gain(u32),
    /// A factor with which nothing is coupled, or one that an octet does not hold.
    #[error("a coupling factor of {0}; it is from 1 to 255, and 2 in RFC 9332")]
    Coupling(u32),
    /// One queue would never send while the other has packets.
    #[error("a classic protection of {0}; it is below 100 %, and 10 % in tc-dualpi2(8)")]
    ClassicProtection(Ratio),
}

impl Config {
    /// The recommended code point of traffic that does not build a queue (draft-ietf-tsvwg-nqb, section 4).
    pub const NQB: u8 = 45;

    /// The largest gain: 256 per second.
    pub const LARGEST_GAIN: u32 = 256 * 256;

    /// Refuses parameters with which DualPI2 cannot work.
    ///
    /// # Errors
    /// A time of zero, a gain above [`Config::LARGEST_GAIN`], a coupling factor outside 1 to 255, or a classic
    /// protection of 100 %.
    pub fn check(&self) -> Result<(), DualPi2Error> {
        if self.target.is_zero() {
            return Err(DualPi2Error::ZeroTarget);
        }
        if self.period.is_zero() {
            return Err(DualPi2Error::ZeroPeriod);
        }
        let gain = self.alpha.max(self.beta);
        if gain > Self::LARGEST_GAIN {
            return Err(DualPi2Error::Gain(gain));
        }
        if !(1..=255).contains(&self.coupling) {
            return Err(DualPi2Error::Coupling(self.coupling));
        }
        if self.classic_protection >= Ratio::ONE {
            return Err(DualPi2Error::ClassicProtection(self.classic_protection));
        }
        Ok(())
    }
}
