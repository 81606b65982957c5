//! How a claim comes out, and the rules by which it does.
//!
//! A claim is *shown* when every condition of it holds beyond the 95 % confidence interval, and no
//! figure of its table lies more than half of the published one away from it. It *hangs on an
//! assumption* when another answer to something that the publication leaves open gives the opposite
//! verdict beyond the intervals. It is *quoted* where a publication quotes others, so that nothing
//! is computed or simulated.

use serde::Serialize;

use crate::row::RowResult;
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

/// The result of a claim's conditions. Each holds beyond its interval, fails beyond it, or is undecided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Every condition holds beyond its interval.
    shown: bool,
    /// At least one condition fails beyond its interval.
    refuted: bool,
    evidence: Vec<String>,
}

impl Default for Finding {
    fn default() -> Self {
        Self { shown: true, refuted: false, evidence: Vec::new() }
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
        self.condition(holds, !holds);
    }

    /// A quantity has to be above `least`.
    pub fn above(&mut self, quantity: &Sample, least: f64) {
        let estimate = quantity.estimate();
        let measured = !quantity.is_empty();
        self.condition(measured && estimate.is_above(least), !measured || estimate.is_at_most(least));
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

    /// A difference needs the published sign beyond its interval, and a mean of at least half the published one.
    pub fn difference(&mut self, ours: &Sample, published: f64) {
        let towards = ours.map(|difference| difference * published.signum());
        self.above(&towards, 0.0);
        let half = published.abs() * HALF;
        self.condition(published == 0.0 || towards.mean() >= half, towards.estimate().is_below(half));
    }

    fn condition(&mut self, holds: bool, fails: bool) {
        self.shown &= holds;
        self.refuted |= fails;
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
        self.condition(other.shown, other.refuted);
        self.evidence.extend(other.evidence);
    }

    /// The figures of a table have to be within half of the published ones.
    #[must_use]
    pub fn with_figures_of(mut self, rows: &[RowResult]) -> Self {
        if let Some(worst) = Agreement::of(rows).worst.filter(|worst| worst.relative.abs() > HALF) {
            let far = |off: Off| off.relative.abs() - off.half_width > HALF;
            self.condition(false, offs(rows).any(far));
            self.tell(format!("{} is {:+.0} % from the published figure", worst.name, 100.0 * worst.relative));
        }
        self
    }

    /// True when every condition holds beyond its interval.
    #[must_use]
    pub const fn is_shown(&self) -> bool {
        self.shown
    }

    /// True when a condition fails beyond its interval.
    #[must_use]
    pub const fn is_refuted(&self) -> bool {
        self.refuted
    }

    /// True when only more seeds can tell.
    #[must_use]
    pub const fn is_undecided(&self) -> bool {
        !self.shown && !self.refuted
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

/// From what share of the published figure on a deviation, or a difference, counts as another result.
const HALF: f64 = 0.5;

/// How near the figures of a table lie to the published ones.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Agreement {
    /// Published figures other than zero that have one of ours next to them.
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
    /// Half the width of the 95 % interval of our figure, as the same share; zero for a single run.
    pub half_width: f64,
}

/// The deviations of all figures other than zero, from which nothing deviates by a share.
fn offs(rows: &[RowResult]) -> impl Iterator<Item = Off> {
    rows.iter().flat_map(|row| row.deviation.iter().filter_map(|(name, off)| Off::new(row, name, off.as_f64()?)))
}

impl Off {
    fn new(row: &RowResult, name: &str, off: f64) -> Option<Self> {
        let published = row.published.number(name).filter(|published| *published != 0.0)?;
        // A figure that is printed as a lower bound is met by every figure above it.
        let relative = if name.contains("_above") { off.min(0.0) } else { off } / published;
        let half_width = (row.ci95.number(name).unwrap_or_default() / published).abs();
        let of: Vec<String> = row.params.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let name = if of.is_empty() { name.to_owned() } else { format!("{name} ({})", of.join(", ")) };
        Some(Self { name, relative, half_width })
    }
}

impl Agreement {
    /// Counts the figures of these rows. Zero is left out: nothing deviates from it by a share.
    #[must_use]
    pub fn of(rows: &[RowResult]) -> Self {
        let mut agreement = Self::default();
        offs(rows).for_each(|off| agreement.see(off));
        agreement
    }

    /// Adds the counts of other figures.
    pub fn add(&mut self, other: &Self) {
        self.figures += other.figures;
        self.within_10_pct += other.within_10_pct;
        self.within_25_pct += other.within_25_pct;
        self.within_50_pct += other.within_50_pct;
    }

    fn see(&mut self, off: Off) {
        // A tenth of a figure with two digits has no exact binary fraction.
        let within = |share: f64| usize::from(off.relative.abs() <= share + 1e-9);
        self.figures += 1;
        self.within_10_pct += within(0.1);
        self.within_25_pct += within(0.25);
        self.within_50_pct += within(HALF);
        if self.worst.as_ref().is_none_or(|worst| off.relative.abs() > worst.relative.abs()) {
            self.worst = Some(off);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Values;

    fn row(published: f64, ours: f64) -> RowResult {
        let values = |value: f64| [("rate_mbps", value)].into_iter().collect::<Values>();
        let mut row = RowResult::unpublished([("factor", 3)].into_iter().collect(), crate::row::Means::default());
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
        assert!(finding.is_refuted());
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
        assert!(finding.is_undecided(), "{finding:?}");
        let mut finding = Finding::default();
        finding.below(&uncertain, 4.0);
        assert!(finding.is_shown());
        let mut finding = Finding::default();
        finding.above(&Sample::default(), -1.0);
        assert!(finding.is_refuted(), "nothing was measured");
    }

    /// Means of three seeds that fall short do not refute a claim while their interval reaches as far as it asks for.
    #[test]
    fn a_mean_that_falls_short_within_its_interval_is_undecided() {
        // -1 +- 2.48, as above.
        let behind = Sample::from(vec![-2.0, -1.0, 0.0]);
        let mut finding = Finding::default();
        finding.above(&behind, 0.0);
        assert!(finding.is_undecided(), "{finding:?}");
        finding.above(&behind, 1.5);
        assert!(finding.is_refuted(), "1.5 lies beyond the interval");
        // Certain to be there, and as likely as not half as large as published: 1 +- 0.248 of 2.2.
        let mut finding = Finding::default();
        finding.difference(&Sample::from(vec![0.9, 1.0, 1.1]), 2.2);
        assert!(finding.is_undecided(), "{finding:?}");
        finding.difference(&Sample::from(vec![0.9, 1.0, 1.1]), 2.6);
        assert!(finding.is_refuted());
    }

    /// 60 +- 20 % above the published figure: more seeds may bring it within half.
    #[test]
    fn a_figure_whose_interval_reaches_within_half_is_undecided() {
        let with_interval = |half_width: f64| {
            let mut far = row(10.0, 16.0);
            far.ci95 = [("rate_mbps", half_width)].into_iter().collect();
            Finding::new(true, "").with_figures_of(&[far])
        };
        assert!(with_interval(2.0).is_undecided());
        assert!(with_interval(0.9).is_refuted());
    }

    #[test]
    fn a_figure_beyond_half_of_the_published_one_is_not_shown() {
        let judged = |ours| Finding::new(true, "grows").with_figures_of(&[row(10.0, 9.5), row(10.0, ours)]);
        assert!(judged(5.1).is_shown() && judged(14.9).is_shown());
        let off = judged(1.7);
        assert!(off.is_refuted());
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
            concat!(
                r#"{"text":"a","verdict":"hangs on an assumption","shown_in_base_case":true,"#,
                r#""assumptions":["queue: 32 KiB"],"evidence":"b"}"#
            )
        );
    }
}
