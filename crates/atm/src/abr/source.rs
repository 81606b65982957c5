//! Source end system of ABR: the allowed cell rate, and the kind of the next cell.
//!
//! Published: ATM Forum TM 4.1, source behaviour. The rules have names here: *order* (which cell is
//! an RM cell), *use it or lose it* (ADTF), *missing* (CRM, CDF), *feedback* (CI, NI, RIF, RDF) and
//! *explicit rate*.
//! Differs: rates are whole bit/s, fractions cut.
//! Cost: a few comparisons a cell, two divisions an RM cell.

use super::{Parameters, Rm};
use crate::time::{Moment, Spacing};
use lastmile_units::BitRate;

/// Cells between RM cells at least, where time calls for one (Mrm).
const MRM: u32 = 2;

/// The rate of a source.
#[derive(Clone, Debug)]
pub struct Source {
    parameters: Parameters,
    /// ACR, bit/s.
    acr: u64,
    /// Cells since the last RM cell, including it. 0: no RM cell was sent.
    since_rm: u32,
    /// Departure of the last RM cell.
    rm_at: Moment,
    /// RM cells sent since the last one returned.
    unanswered: u32,
}

impl Source {
    /// A source that has sent nothing.
    #[must_use]
    pub const fn new(parameters: &Parameters) -> Self {
        let acr = parameters.icr.as_bps();
        Self { parameters: *parameters, acr, since_rm: 0, rm_at: Moment::from_parts(0, 0), unanswered: 0 }
    }

    /// ACR: the allowed cell rate, in bit/s.
    #[must_use]
    pub const fn acr(&self) -> u64 {
        self.acr
    }

    /// From one cell to the next at ACR.
    #[must_use]
    pub fn spacing(&self) -> Spacing {
        Spacing::of_cell(BitRate::from_bps(self.acr).expect("at least MCR, which is not zero"))
    }

    /// A cell departs at `at`: an RM cell, or `None` for a data cell.
    pub fn send(&mut self, at: Moment) -> Option<Rm> {
        let Parameters { nrm, trm, .. } = self.parameters;
        let late = self.since_rm > MRM && at.since(self.rm_at) >= Spacing::of(trm);
        if self.since_rm != 0 && self.since_rm < nrm && !late {
            self.since_rm += 1;
            return None;
        }
        self.before_rm(at);
        (self.since_rm, self.rm_at) = (1, at);
        self.unanswered = self.unanswered.saturating_add(1);
        Some(Rm { ccr: self.acr, er: self.parameters.pcr.as_bps(), ci: false, ni: false })
    }

    /// Use it or lose it, and missing RM cells.
    fn before_rm(&mut self, at: Moment) {
        let Parameters { icr, mcr, adtf, cdf, crm, .. } = self.parameters;
        if self.since_rm != 0 && at.since(self.rm_at) > Spacing::of(adtf) {
            self.acr = self.acr.min(icr.as_bps());
        }
        if let Some(cdf) = cdf
            && self.unanswered >= crm
        {
            self.acr = (self.acr - self.acr / u64::from(cdf)).max(mcr.as_bps());
        }
    }

    /// An RM cell has returned.
    pub fn feedback(&mut self, rm: &Rm) {
        let Parameters { pcr, mcr, rif, rdf, .. } = self.parameters;
        self.unanswered = 0;
        if rm.ci {
            self.acr -= self.acr / u64::from(rdf);
        } else if !rm.ni {
            self.acr = (self.acr + pcr.as_bps() / u64::from(rif)).min(pcr.as_bps());
        }
        self.acr = self.acr.min(rm.er).max(mcr.as_bps());
    }
}

#[cfg(test)]
mod tests {
    use lastmile_units::{Duration, Instant};

    use super::*;

    const fn mbit(count: u64) -> BitRate {
        BitRate::from_mbit_per_s(count)
    }

    fn ms(count: u64) -> Moment {
        Moment::at(Instant::ZERO + Duration::from_ms(count))
    }

    /// PCR 16 Mbit/s, MCR 1, ICR 8; RIF 1/16, RDF 1/4, CDF 1/2 from the third RM cell without
    /// answer; an RM cell every 4 cells.
    fn parameters() -> Parameters {
        Parameters {
            mcr: mbit(1),
            icr: mbit(8),
            rif: 16,
            rdf: 4,
            nrm: 4,
            cdf: Some(2),
            crm: 3,
            ..Parameters::new(mbit(16))
        }
    }

    fn source() -> Source {
        Source::new(&parameters())
    }

    const OPEN: Rm = Rm { ccr: 0, er: u64::MAX, ci: false, ni: false };

    #[test]
    fn the_first_cell_and_every_nrm_th_is_an_rm_cell() {
        let mut source = source();
        let sent: Vec<bool> = (0..9).map(|_| source.send(ms(1)).is_some()).collect();
        assert_eq!(sent, [true, false, false, false, true, false, false, false, true]);
        let rm = Source::new(&parameters()).send(ms(0)).expect("the first");
        assert_eq!(rm, Rm { ccr: 8_000_000, er: 16_000_000, ci: false, ni: false });
    }

    /// Two cells came since the RM cell, and Trm (100 ms) has passed.
    #[test]
    fn a_slow_source_sends_an_rm_cell_by_time() {
        let mut source = source();
        let sent = [0, 60, 120, 180].map(|at| source.send(ms(at)).is_some());
        assert_eq!(sent, [true, false, false, true], "at 120 ms only one other had gone");
    }

    /// By hand: 8 + 16/16 = 9; CI: 9 - 9/4 = 6.75; NI: stays; ER 2: 2; CI: 1.5; CI: 1.125; CI:
    /// 0.84, not below MCR; ER 0.5: MCR.
    #[test]
    fn feedback_adds_a_share_of_pcr_and_takes_a_share_of_acr() {
        let mut source = source();
        let mut after = |rm: Rm| {
            source.feedback(&rm);
            source.acr()
        };
        let ci = Rm { ci: true, ..OPEN };
        assert_eq!(after(OPEN), 9_000_000);
        assert_eq!(after(ci), 6_750_000);
        assert_eq!(after(Rm { ni: true, ..OPEN }), 6_750_000);
        assert_eq!(after(Rm { er: 2_000_000, ..OPEN }), 2_000_000);
        assert_eq!([after(ci), after(ci), after(ci)], [1_500_000, 1_125_000, 1_000_000]);
        assert_eq!(after(Rm { er: 500_000, ..OPEN }), 1_000_000);
        for _ in 0..20 {
            after(OPEN);
        }
        assert_eq!(after(OPEN), 16_000_000, "never above PCR");
    }

    /// CI and a lower ER together: first the decrease, then the explicit rate.
    #[test]
    fn the_explicit_rate_comes_last() {
        let mut source = source();
        source.feedback(&Rm { ci: true, er: 7_000_000, ..OPEN });
        assert_eq!(source.acr(), 6_000_000);
        source.feedback(&Rm { er: 6_500_000, ..OPEN });
        assert_eq!(source.acr(), 6_500_000);
    }

    /// CRM 3: the fourth RM cell without an answer, and each after it, halves ACR before it is
    /// sent, down to MCR. An answer ends that.
    #[test]
    fn missing_rm_cells_lower_the_rate() {
        let mut source = source();
        let mut rates = Vec::new();
        for _ in 0..28 {
            rates.extend(source.send(ms(1)).map(|rm| rm.ccr / 1000));
        }
        assert_eq!(rates, [8000, 8000, 8000, 4000, 2000, 1000, 1000]);
        source.feedback(&Rm { ni: true, ..OPEN });
        for _ in 0..4 {
            assert!(source.send(ms(1)).is_none_or(|rm| rm.ccr == 1_000_000));
        }
        let mut never = Source::new(&Parameters { cdf: None, ..parameters() });
        assert!((0..100).filter_map(|_| never.send(ms(1))).all(|rm| rm.ccr == 8_000_000));
    }

    /// ADTF 500 ms: the RM cell that follows a longer pause goes at ICR, if ACR was above.
    #[test]
    fn a_rate_that_is_not_used_is_lost() {
        let after = |pause, feedback: Rm| {
            let mut source = source();
            source.send(ms(0));
            (0..3).for_each(|_| assert_eq!(source.send(ms(1)), None));
            (0..4).for_each(|_| source.feedback(&feedback));
            source.send(ms(pause)).expect("an RM cell").ccr
        };
        assert_eq!(after(500, OPEN), 12_000_000);
        assert_eq!(after(501, OPEN), 8_000_000);
        assert_eq!(after(501, Rm { er: 3_000_000, ..OPEN }), 3_000_000, "never raised");
    }

    #[test]
    fn parameters_that_contradict_each_other() {
        let refused = |change: fn(&mut Parameters)| {
            let mut parameters = parameters();
            change(&mut parameters);
            parameters.check().expect_err("no sense").to_string()
        };
        assert_eq!(parameters().check(), Ok(()));
        assert_eq!(
            refused(|p| p.mcr = mbit(17)),
            "the minimum cell rate 17 Mbit/s is above the peak cell rate 16 Mbit/s"
        );
        assert_eq!(
            refused(|p| p.icr = mbit(17)),
            "the initial cell rate 17 Mbit/s must be from the minimum of 1 Mbit/s to the peak of 16 Mbit/s"
        );
        assert_eq!(refused(|p| p.nrm = 31), "31 is no power of two from 2 to 256");
        assert_eq!(refused(|p| p.rif = 0), "0 is no power of two from 1 to 32768");
        assert_eq!(refused(|p| p.cdf = Some(128)), "128 is no power of two from 1 to 64");
        assert!(refused(|p| p.mcr = BitRate::from_bps(4_239).unwrap()).contains("below 4240 bit/s"));
    }
}
