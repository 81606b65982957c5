//! Open questions of a publication: a base case that is fixed for stated reasons, and the results of other answers.
//!
//! The base case is the set of answers with which the program reproduces. Each other answer is tried alone and
//! reported next to the table, and [`Reproducible`] tries them together; neither changes the base case.

use crate::data::Table;
use crate::reproduction::{RowResult, Sensitivity, TableResult};
use crate::verdict::{Agreement, Claim, Finding, Verdict};

use super::seeds::SEEDS;
use crate::error::ExperimentError;
use crate::rounding::significant;

/// The number of seeds of each case that is tried in addition to the base case: the fewest with a useful interval.
const FEW: usize = 3;

/// A part of a table's reproduction, of which each can be made on a thread of its own.
#[derive(Clone, Debug)]
pub struct Part(Made);

#[derive(Clone, Debug)]
enum Made {
    /// All of it.
    Whole(TableResult),
    /// The rows of the base case.
    Base(Vec<RowResult>),
    /// The result of another answer.
    Tried(Tried),
}

/// The result of another answer, and its effect on the claim.
#[derive(Clone, Debug)]
struct Tried {
    question: String,
    answer: String,
    attempt: Attempt,
}

/// The figures and the finding of a table under other answers.
#[derive(Clone, Debug)]
struct Attempt {
    seeds: usize,
    deviation_rms_pct: Option<f64>,
    finding: Finding,
}

impl Tried {
    /// True when the verdict is the opposite one beyond the intervals.
    fn turns(&self, base: &Finding) -> bool {
        if base.is_shown() { self.attempt.finding.is_refuted() } else { self.attempt.finding.is_shown() }
    }

    fn beside(&self, base: &Finding) -> Sensitivity {
        Sensitivity {
            question: self.question.clone(),
            answer: self.answer.clone(),
            deviation_rms_pct: self.attempt.deviation_rms_pct,
            shown: self.attempt.finding.is_shown(),
            undecided: self.attempt.finding.is_undecided(),
            seeds: self.attempt.seeds,
            turns_the_verdict: self.turns(base),
            evidence: self.attempt.finding.evidence(),
        }
    }
}

/// The verdict of the base case, unless another answer turns it.
fn verdict(base: &Finding, tried: &[Tried]) -> Verdict {
    let mut assumptions: Vec<(&str, Vec<&str>)> = Vec::new();
    for turned in tried.iter().filter(|tried| tried.turns(base)) {
        match assumptions.iter_mut().find(|(question, _)| *question == turned.question) {
            Some((_, answers)) => answers.push(&turned.answer),
            None => assumptions.push((&turned.question, vec![&turned.answer])),
        }
    }
    if assumptions.is_empty() {
        return Verdict::of(base.is_shown());
    }
    let told = |(question, answers): (&str, Vec<&str>)| match answers.join(" / ") {
        answers if answers.is_empty() => "number and length of the runs".to_owned(),
        answers => format!("{question}: {answers}"),
    };
    Verdict::HangsOn { shown_in_base_case: base.is_shown(), assumptions: assumptions.into_iter().map(told).collect() }
}

impl Part {
    pub(super) fn whole(result: TableResult) -> Self {
        Self(Made::Whole(result))
    }

    pub(super) fn into_whole(self) -> Option<TableResult> {
        if let Made::Whole(result) = self.0 { Some(result) } else { None }
    }
}

/// The root mean square of the relative deviations from all figures published; `None` where none
/// has a number other than zero, from which nothing deviates by a share.
pub(super) fn deviation_rms_pct(rows: &[RowResult]) -> Option<f64> {
    let relative = rows.iter().flat_map(|row| {
        row.deviation.iter().filter_map(|(name, deviation)| {
            let published = row.published.number(name).filter(|published| *published != 0.0)?;
            Some(deviation.as_f64()? / published)
        })
    });
    let (count, squares) = relative.fold((0_u32, 0.0), |(count, sum), relative| (count + 1, sum + relative * relative));
    (count > 0).then(|| significant(100.0 * (squares / f64::from(count)).sqrt()))
}

/// A publication whose open questions can be answered otherwise.
///
/// An attempt at a table is the base case (`None`), the base case as short as the others (0), or
/// another answer (from 1 on, in the order of [`attempts`](Self::attempts)).
pub trait Reproducible: Sync {
    /// Its key.
    fn publication(&self) -> &str;

    /// Its simulated tables, by id.
    fn tables(&self) -> Vec<&str>;

    /// The other answers that are tried for a table: the question and the answer.
    fn attempts<'a>(&'a self, table: &'a Table) -> Vec<(&'a str, &'a str)>;

    /// With how many seeds the base case of a table runs.
    fn seeds(&self, table: &str) -> usize;

    /// By how much a run of a table is shorter in other attempts than in the base case.
    fn shorter(&self, table: &str) -> f64;

    /// The rows of a table in an attempt, with each of these seeds.
    ///
    /// # Errors
    /// As the experiment's.
    fn rows_of(&self, table: &Table, attempt: Option<usize>, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError>;

    /// Whether rows show what the table claims.
    fn judge(&self, table: &Table, rows: &[RowResult]) -> Finding;

    /// The text of that claim, and the parts of the table's claim that are judged apart from it.
    fn claims<'a>(&'a self, table: &'a Table, _rows: &[RowResult]) -> (&'a str, Vec<Claim>) {
        (&table.claim, Vec::new())
    }

    /// The assumptions of the base case for a table, and further notes.
    ///
    /// # Errors
    /// As the experiment's, where a note has figures.
    fn assumptions(&self, table: &Table) -> Result<Vec<String>, ExperimentError>;

    /// Parameters that were inferred from the figures of a table.
    fn inferred(&self, _table: &Table) -> &[String] {
        &[]
    }

    /// Of how many parts the reproduction of a table is made: the base case, and each other attempt.
    fn parts(&self, table: &Table) -> usize {
        2 + self.attempts(table).len()
    }

    /// Makes one of them.
    ///
    /// # Errors
    /// As the experiment's.
    fn part(&self, table: &Table, number: usize) -> Result<Part, ExperimentError> {
        let Some(other) = number.checked_sub(1) else {
            return Ok(Part(Made::Base(self.rows_of(table, None, &SEEDS[..self.seeds(&table.id)])?)));
        };
        let (question, answer) = match other.checked_sub(1) {
            None => ("nothing: the base case, as short as the others", ""),
            Some(place) => {
                *self.attempts(table).get(place).ok_or(ExperimentError::MissingSetting("part of that number"))?
            }
        };
        let attempt = brief(self, table, other)?;
        Ok(Part(Made::Tried(Tried { question: question.to_owned(), answer: answer.to_owned(), attempt })))
    }

    /// The reproduction that these parts make, in their order.
    ///
    /// # Errors
    /// As the experiment's.
    fn join(&self, table: &Table, parts: Vec<Part>) -> Result<TableResult, ExperimentError> {
        let mut result = TableResult::new(self.publication(), table);
        result.seeds = SEEDS[..self.seeds(&table.id)].to_vec();
        let mut tried = Vec::new();
        for part in parts {
            match part.0 {
                Made::Whole(whole) => return Ok(whole),
                Made::Base(rows) => result.rows = rows,
                Made::Tried(one) => tried.push(one),
            }
        }
        let finding = self.judge(table, &result.rows).with_figures_of(&result.rows);
        let verdict = match (verdict(&finding, &tried), self.inferred(table)) {
            (Verdict::Shown, inferred @ [_, ..]) => {
                Verdict::HangsOn { shown_in_base_case: true, assumptions: inferred.to_vec() }
            }
            (verdict, _) => verdict,
        };
        let (text, mut claims) = self.claims(table, &result.rows);
        claims.push(Claim { text: text.to_owned(), verdict, evidence: finding.evidence() });
        result.claims = claims;
        result.agreement = Some(Agreement::of(&result.rows));
        result.sensitivity = tried.iter().map(|tried| tried.beside(&finding)).collect();
        result.assumptions = self.assumptions(table)?;
        Ok(result)
    }

    /// The table in the base case, with what other answers would give.
    ///
    /// # Errors
    /// As the experiment's.
    fn reproduce(&self, table: &Table) -> Result<TableResult, ExperimentError> {
        let parts = (0..self.parts(table)).map(|number| self.part(table, number)).collect::<Result<_, _>>()?;
        self.join(table, parts)
    }

    /// The duration of the base case of this table over that of another attempt, about.
    fn whole_by_brief(&self, table: &str) -> f64 {
        self.shorter(table) * self.seeds(table) as f64 / FEW as f64
    }
}

/// An attempt with few seeds, and with all of the base case where few leave the claim undecided.
fn brief(known: &(impl Reproducible + ?Sized), table: &Table, attempt: usize) -> Result<Attempt, ExperimentError> {
    let with = |seeds: &[u64]| {
        let rows = known.rows_of(table, Some(attempt), seeds)?;
        let finding = known.judge(table, &rows).with_figures_of(&rows);
        Ok(Attempt { seeds: seeds.len(), deviation_rms_pct: deviation_rms_pct(&rows), finding })
    };
    let all = known.seeds(&table.id);
    let few = with(&SEEDS[..FEW])?;
    if few.finding.is_undecided() && all > FEW { with(&SEEDS[..all]) } else { Ok(few) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    fn tried(question: &'static str, answer: &'static str, lead: [f64; 3]) -> Tried {
        let mut finding = Finding::default();
        finding.above(&Sample::from(lead.to_vec()), 0.0);
        Tried {
            question: question.to_owned(),
            answer: answer.to_owned(),
            attempt: Attempt { seeds: 3, deviation_rms_pct: None, finding },
        }
    }

    /// A queue of 32 KiB gives one verdict and one of 1000 packets the other: neither is the publication's.
    #[test]
    fn a_verdict_that_another_answer_turns_hangs_on_that_question() {
        let base = Finding::new(true, "ahead");
        let same = tried("delays", "20 ms", [1.0, 1.1, 1.2]);
        let turned = tried("queue", "1000 packets", [-1.0, -1.1, -1.2]);
        let another = tried("queue", "50 packets", [-2.0, -1.1, -1.2]);
        assert_eq!(verdict(&base, std::slice::from_ref(&same)), Verdict::Shown);
        let hangs =
            |shown_in_base_case, on: &str| Verdict::HangsOn { shown_in_base_case, assumptions: vec![on.to_owned()] };
        assert_eq!(verdict(&base, &[same, turned, another]), hangs(true, "queue: 1000 packets / 50 packets"));
        let behind = Finding::new(false, "behind");
        let shown = tried("queue", "32 KiB", [1.0, 1.1, 1.2]);
        assert_eq!(verdict(&behind, std::slice::from_ref(&shown)), hangs(false, "queue: 32 KiB"));
    }

    /// Few seeds have wide intervals: they turn a verdict only where they leave no doubt.
    #[test]
    fn an_attempt_that_is_undecided_turns_no_verdict() {
        let (shown, not) = (Finding::new(true, ""), Finding::new(false, ""));
        for lead in [[0.0, 1.0, 2.0], [-2.0, -1.0, 0.0]] {
            let undecided = || tried("delays", "20 ms", lead);
            assert_eq!(verdict(&shown, &[undecided()]), Verdict::Shown, "{lead:?}");
            assert_eq!(verdict(&not, &[undecided()]), Verdict::NotShown, "{lead:?}");
        }
    }

    /// Leads of 0, 1 and 2 leave open whether there is one (1 +- 2.48); ten seeds decide it (1 +- 0.34).
    #[test]
    fn what_few_seeds_leave_undecided_runs_with_all_seeds_of_the_base_case() {
        struct Leads([f64; 10]);
        impl Reproducible for Leads {
            fn publication(&self) -> &str {
                "sun1998"
            }
            fn tables(&self) -> Vec<&str> {
                vec!["5.7"]
            }
            fn attempts<'a>(&'a self, _: &'a Table) -> Vec<(&'a str, &'a str)> {
                Vec::new()
            }
            fn seeds(&self, _: &str) -> usize {
                10
            }
            fn shorter(&self, _: &str) -> f64 {
                1.0
            }
            fn rows_of(&self, _: &Table, _: Option<usize>, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
                let samples = vec![("lead_s".to_owned(), self.0[..seeds.len()].to_vec().into())];
                let measured = crate::reproduction::Means { samples, ..Default::default() };
                Ok(vec![RowResult::unpublished(crate::Values::new(), measured)])
            }
            fn judge(&self, _: &Table, rows: &[RowResult]) -> Finding {
                let mut finding = Finding::default();
                finding.above(&rows[0].sample("lead_s"), 0.0);
                finding
            }
            fn assumptions(&self, _: &Table) -> Result<Vec<String>, ExperimentError> {
                Ok(Vec::new())
            }
        }
        let publications = crate::publications().unwrap();
        let table = publications.iter().find_map(|publication| publication.table("5.7")).unwrap();
        let certain = brief(&Leads([1.0; 10]), table, 0).unwrap();
        assert!(certain.seeds == FEW && certain.finding.is_shown());
        let uncertain = [0.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
        let decided = brief(&Leads(uncertain), table, 0).unwrap();
        assert!(decided.seeds == 10 && decided.finding.is_shown());
    }
}
