//! How a claim comes out, and the rules by which it does.
//!
//! A claim is *shown* when every condition of it holds beyond the 95 % confidence interval, and no figure of its table lies more than half
//! of the published one away from it. It *hangs on an assumption* when another answer to something that the publication leaves open turns
//! that verdict. It is *quoted* where a publication quotes others, so that nothing is computed or simulated.

use serde::Serialize;

use crate::reproduction::RowResult;
use crate::sample::Sample;

/// How a claim came out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "verdict")]
pub enum Verdict {
    /// The figures show it.
    #[serde(rename = "shown")]
    Shown,
    /// They do not.
    #[serde(rename = "not shown")]
    NotShown,
    /// Another answer to an open question turns the verdict.
    #[serde(rename = "hangs on an assumption")]
    HangsOn {
        /// Whether the base case shows the claim.
        shown_in_base_case: bool,
        /// The questions, each with the answers that turn the verdict.
        assumptions: Vec<String>,
    },
    /// The publication quotes the figures: nothing is computed or simulated.
    #[serde(rename = "quoted")]
    Quoted,
}

impl Verdict {
    /// Shown or not.
    #[must_use]
    pub const fn of(shown: bool) -> Self {
        if shown { Self::Shown } else { Self::NotShown }
    }

    /// True of what is shown, and of what there is nothing to show of.
    #[must_use]
    pub const fn holds(&self) -> bool {
        matches!(self, Self::Shown | Self::Quoted)
    }

    /// The state in words.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Shown => "shown",
            Self::NotShown => "not shown",
            Self::HangsOn { .. } => "hangs on an assumption",
            Self::Quoted => "quoted",
        }
    }
}

/// Something that a table is to show.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Claim {
    /// The claim.
    pub text: String,
    /// How it came out.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The figures that show it or do not.
    pub evidence: String,
}

/// What a claim's conditions give: each holds beyond its interval, or by its mean alone, or not at all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    beyond_interval: bool,
    by_mean: bool,
    evidence: Vec<String>,
}

impl Default for Finding {
    fn default() -> Self {
        Self { beyond_interval: true, by_mean: true, evidence: Vec::new() }
    }
}

impl Finding {
    /// A claim that one condition decides, and the figures that it is about.
    #[must_use]
    pub fn new(holds: bool, evidence: impl Into<String>) -> Self {
        let mut finding = Self::default();
        finding.need(holds);
        finding.tell(evidence);
        finding
    }

    /// A condition without an interval.
    pub fn need(&mut self, holds: bool) {
        self.beyond_interval &= holds;
        self.by_mean &= holds;
    }

    /// A quantity has to be above `least`.
    pub fn above(&mut self, quantity: &Sample, least: f64) {
        let estimate = quantity.estimate();
        self.by_mean &= !quantity.is_empty() && estimate.mean > least;
        self.beyond_interval &= !quantity.is_empty() && estimate.is_above(least);
    }

    /// A quantity has to be below `most`.
    pub fn below(&mut self, quantity: &Sample, most: f64) {
        self.above(&quantity.map(|value| -value), -most);
    }

    /// A quantity has to be between two values.
    pub fn between(&mut self, quantity: &Sample, least: f64, most: f64) {
        self.above(quantity, least);
        self.below(quantity, most);
    }

    /// A difference has to be there: of the published sign beyond its interval, and at least half as large as published.
    pub fn difference(&mut self, ours: &Sample, published: f64) {
        let towards = ours.map(|difference| difference * published.signum());
        self.above(&towards, 0.0);
        self.need(published == 0.0 || towards.mean() >= published.abs() * HALF);
    }

    /// Figures that the claim is judged by.
    pub fn tell(&mut self, evidence: impl Into<String>) {
        let evidence = evidence.into();
        if !evidence.is_empty() {
            self.evidence.push(evidence);
        }
    }

    /// Both findings together.
    pub fn and(&mut self, other: Self) {
        self.by_mean &= other.by_mean;
        self.beyond_interval &= other.beyond_interval;
        self.evidence.extend(other.evidence);
    }

    /// The figures of a table have to be within half of the published ones.
    #[must_use]
    pub fn with_figures_of(mut self, rows: &[RowResult]) -> Self {
        if let Some(worst) = Agreement::of(rows).worst.filter(|worst| worst.relative.abs() > HALF) {
            self.need(false);
            self.tell(format!("{} is {:+.0} % from the published figure", worst.name, 100.0 * worst.relative));
        }
        self
    }

    /// True when every condition holds beyond its interval.
    #[must_use]
    pub const fn is_shown(&self) -> bool {
        self.beyond_interval
    }

    /// True when every condition holds by its mean: what a few seeds can tell.
    #[must_use]
    pub const fn holds_by_mean(&self) -> bool {
        self.by_mean
    }

    /// The figures, in one text.
    #[must_use]
    pub fn evidence(&self) -> String {
        self.evidence.join("; ")
    }

    /// The claim that this decides.
    #[must_use]
    pub fn claim(&self, text: &str) -> Claim {
        Claim { text: text.to_owned(), verdict: Verdict::of(self.is_shown()), evidence: self.evidence() }
    }
}

impl Finding {
    /// The claim that this decides, where parameters of the model were inferred from the very figures that it is about: it cannot be shown
    /// independently of them.
    #[must_use]
    pub fn claim_inferred(&self, text: &str, inferred: &[&str]) -> Claim {
        let claim = self.claim(text);
        if inferred.is_empty() || !self.is_shown() {
            return claim;
        }
        let assumptions = inferred.iter().map(|assumption| (*assumption).to_owned()).collect();
        Claim { verdict: Verdict::HangsOn { shown_in_base_case: true, assumptions }, ..claim }
    }
}

/// From what share of the published figure on a deviation, or a difference, counts as another result.
const HALF: f64 = 0.5;

/// How near the figures of a table lie to the published ones.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Agreement {
    /// Published figures other than zero that have one of ours beside them.
    pub figures: usize,
    /// Of these, within 10 % of the published one.
    pub within_10_pct: usize,
    /// Within 25 %.
    pub within_25_pct: usize,
    /// Within 50 %.
    pub within_50_pct: usize,
    /// The figure that is farthest off.
    #[serde(skip)]
    pub worst: Option<Off>,
}

/// By how much a figure is off.
#[derive(Clone, PartialEq, Debug)]
pub struct Off {
    /// Its name, and the parameters of its row.
    pub name: String,
    /// The deviation as a share of the published figure.
    pub relative: f64,
}

impl Agreement {
    /// Counts the figures of these rows. Zero is left out: nothing deviates from it by a share.
    #[must_use]
    pub fn of(rows: &[RowResult]) -> Self {
        Self::count(rows, |row| &row.deviation)
    }

    /// Counts the live figures.
    #[must_use]
    pub fn of_live(rows: &[RowResult]) -> Self {
        Self::count(rows, |row| &row.live_deviation)
    }

    fn count(rows: &[RowResult], deviation: impl Fn(&RowResult) -> &crate::Values) -> Self {
        let mut agreement = Self::default();
        for row in rows {
            for (name, off) in deviation(row).iter() {
                let published = row.published.number(name).filter(|published| *published != 0.0);
                let Some((published, off)) = published.zip(off.as_f64()) else { continue };
                // A figure that is printed as a lower bound is met by whatever lies above it.
                let off = if name.contains("_above") { off.min(0.0) } else { off };
                agreement.see(name, row, off / published);
            }
        }
        agreement
    }

    /// Adds the counts of other figures.
    pub fn add(&mut self, other: &Self) {
        self.figures += other.figures;
        self.within_10_pct += other.within_10_pct;
        self.within_25_pct += other.within_25_pct;
        self.within_50_pct += other.within_50_pct;
    }

    fn see(&mut self, name: &str, row: &RowResult, relative: f64) {
        // A tenth of a figure with two digits has no exact binary fraction.
        let within = |share: f64| usize::from(relative.abs() <= share + 1e-9);
        self.figures += 1;
        self.within_10_pct += within(0.1);
        self.within_25_pct += within(0.25);
        self.within_50_pct += within(HALF);
        if self.worst.as_ref().is_none_or(|worst| relative.abs() > worst.relative.abs()) {
            let of: Vec<String> = row.params.iter().map(|(name, value)| format!("{name} {value}")).collect();
            let name = if of.is_empty() { name.to_owned() } else { format!("{name} ({})", of.join(", ")) };
            self.worst = Some(Off { name, relative });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Values;

    fn row(published: f64, ours: f64) -> RowResult {
        let values = |value: f64| [("rate_mbps", value)].into_iter().collect::<Values>();
        let mut row =
            RowResult::unpublished([("factor", 3)].into_iter().collect(), crate::reproduction::Means::default());
        row.published = values(published);
        row.set_simulated(values(ours));
        row
    }

    /// 7.673 Mbit/s for every factor, where 6.65, 7.40 and 7.51 are published.
    #[test]
    fn a_flat_series_is_no_growth() {
        let flat = Sample::from(vec![7.673, 7.673, 7.673]);
        let mut finding = Finding::default();
        finding.difference(&flat.minus(&flat), 0.75);
        assert!(!finding.is_shown() && !finding.holds_by_mean());
        // A growth that is certain, but a tenth of the published one, is another result.
        let mut finding = Finding::default();
        finding.difference(&Sample::from(vec![0.074, 0.075, 0.076]), 0.75);
        assert!(!finding.is_shown());
        let mut finding = Finding::default();
        finding.difference(&Sample::from(vec![0.60, 0.61, 0.62]), 0.75);
        assert!(finding.is_shown());
    }

    #[test]
    fn a_difference_inside_its_interval_is_none() {
        // Mean 1, standard error 0.577: t(0.975, 2) = 4.303, so that the interval is 1 +- 2.48.
        let uncertain = Sample::from(vec![0.0, 1.0, 2.0]);
        let mut finding = Finding::default();
        finding.above(&uncertain, 0.0);
        assert!(!finding.is_shown() && finding.holds_by_mean(), "{finding:?}");
        let mut finding = Finding::default();
        finding.below(&uncertain, 4.0);
        assert!(finding.is_shown());
        let mut finding = Finding::default();
        finding.above(&Sample::default(), -1.0);
        assert!(!finding.holds_by_mean(), "nothing was measured");
    }

    #[test]
    fn a_figure_beyond_half_of_the_published_one_is_not_shown() {
        let judged = |ours| Finding::new(true, "grows").with_figures_of(&[row(10.0, 9.5), row(10.0, ours)]);
        assert!(judged(5.1).is_shown() && judged(14.9).is_shown());
        let off = judged(1.7);
        assert!(!off.is_shown() && !off.holds_by_mean());
        assert_eq!(off.evidence(), "grows; rate_mbps (factor 3) is -83 % from the published figure");
    }

    #[test]
    fn figures_are_counted_by_how_near_they_are() {
        let rows = [row(10.0, 9.0), row(10.0, 12.5), row(10.0, 15.0), row(10.0, 15.1), row(0.0, 1.0)];
        let agreement = Agreement::of(&rows);
        assert_eq!(
            (agreement.figures, agreement.within_10_pct, agreement.within_25_pct, agreement.within_50_pct),
            (4, 1, 2, 3),
            "zero has no share"
        );
    }

    /// A modem's buffer that is taken from a round trip cannot show that round trip.
    #[test]
    fn a_claim_about_figures_that_parameters_were_inferred_from_hangs_on_them() {
        let of = |shown| Finding::new(shown, "").claim_inferred("a", &["the modem's buffer"]).verdict;
        let assumptions = vec!["the modem's buffer".to_owned()];
        assert_eq!(of(true), Verdict::HangsOn { shown_in_base_case: true, assumptions });
        assert_eq!(of(false), Verdict::NotShown);
        assert!(!of(true).holds());
    }

    #[test]
    fn a_lower_bound_is_met_from_above() {
        let bound = |ours: f64| {
            let mut row = row(10.0, ours);
            row.published = [("rtt_ms_above", 1000.0)].into_iter().collect();
            row.set_simulated([("rtt_ms_above", ours)].into_iter().collect());
            Agreement::of(&[row])
        };
        assert_eq!(bound(2139.0).within_10_pct, 1);
        assert_eq!(bound(400.0).within_50_pct, 0);
    }

    #[test]
    fn a_claim_has_one_of_four_states_in_json() {
        let json = |verdict| {
            let claim = Claim { text: "a".to_owned(), verdict, evidence: "b".to_owned() };
            serde_json::to_string(&claim).unwrap()
        };
        assert_eq!(json(Verdict::Shown), r#"{"text":"a","verdict":"shown","evidence":"b"}"#);
        assert_eq!(json(Verdict::NotShown), r#"{"text":"a","verdict":"not shown","evidence":"b"}"#);
        assert_eq!(json(Verdict::Quoted), r#"{"text":"a","verdict":"quoted","evidence":"b"}"#);
        let hangs = Verdict::HangsOn { shown_in_base_case: true, assumptions: vec!["queue: 32 KiB".to_owned()] };
        assert_eq!(
            json(hangs),
            r#"{"text":"a","verdict":"hangs on an assumption","shown_in_base_case":true,"assumptions":["queue: 32 KiB"],"evidence":"b"}"#
        );
    }
}
