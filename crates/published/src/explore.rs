//! Which assumptions bring simulated figures closest to published ones: what a search tries, and what it makes of what came of that.
//!
//! A search goes by [`Stage`]: every other answer to every open question alone, the others as in the base case; of the questions whose best
//! answer came closer than the base case did, the [`TOGETHER`] that helped most, in all combinations; every other answer from the closest
//! found so far; and combinations drawn at random from all that there are, which tell what the whole space holds, not only where the search
//! was led. All that is brief: [`worth_confirming`] says what deserves the effort of a base case. How close: the root mean square of the
//! relative deviations from all published figures of a table, and that of the tables; where none has a number, how many claims are shown.
//! What is found is told and changes nothing: the base case stays what it was.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use lastmile_queueing::random::Stream;
use serde::Serialize;

use crate::experiments::{Judged, Open};

/// Questions of which all combinations are tried.
pub const TOGETHER: usize = 4;

/// How many of the closest are worth confirming, beside the base case and what shows most claims.
const CLOSEST: usize = 2;

/// An answer to each question, by its place: 0 is the base case.
pub type Answers = Vec<usize>;

/// Why a combination is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// It is the base case.
    Base,
    /// It differs in one answer.
    Alone,
    /// It combines the answers that helped most.
    Together,
    /// It differs in one answer from the closest before.
    Around,
    /// It was drawn at random.
    Drawn,
}

/// Some answers, and what came of each table under them.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Why they were tried.
    pub stage: Stage,
    /// The answers.
    pub answers: Answers,
    /// By table, in the order asked for.
    pub tables: Vec<Judged>,
}

impl Tried {
    /// How far the published figures are, all tables together, in percent; `None` where none has a number.
    #[must_use]
    pub fn deviation_rms_pct(&self) -> Option<f64> {
        let squares =
            self.tables.iter().filter_map(|table| table.deviation_rms_pct).map(|deviation| deviation * deviation);
        let (count, sum) = squares.fold((0_u32, 0.0), |(count, sum), square| (count + 1, sum + square));
        (count > 0).then(|| (sum / f64::from(count)).sqrt())
    }

    /// How many tables show their claim.
    #[must_use]
    pub fn shown(&self) -> usize {
        self.tables.iter().filter(|table| table.shown).count()
    }

    fn distance(&self) -> f64 {
        self.deviation_rms_pct().unwrap_or(f64::INFINITY)
    }

    /// The closer first; of two as close, that which shows more claims.
    fn compare(&self, other: &Self) -> Ordering {
        self.distance().total_cmp(&other.distance()).then(other.shown().cmp(&self.shown()))
    }
}

/// The answers that can be combined: those to questions that concern at least one of the tables.
#[derive(Clone, Debug)]
pub struct Space {
    questions: Vec<Question>,
    tables: usize,
}

#[derive(Clone, Debug)]
struct Question {
    /// How many answers there are, the base case among them; one where no table is concerned.
    answers: usize,
    /// By table, whether it matters there.
    concerns: Vec<bool>,
}

impl Space {
    /// What the answers to these questions make of tables with these ids.
    #[must_use]
    pub fn new(open: &[Open], tables: &[&str]) -> Self {
        let question = |open: &Open| {
            let concerns: Vec<bool> =
                tables.iter().map(|table| open.tables.is_empty() || open.tables.contains(table)).collect();
            Question { answers: if concerns.contains(&true) { open.answers.len().max(1) } else { 1 }, concerns }
        };
        Self { questions: open.iter().map(question).collect(), tables: tables.len() }
    }

    /// How many tables it is about.
    #[must_use]
    pub fn tables(&self) -> usize {
        self.tables
    }

    /// How many combinations there are, the base case among them; so many or more where that is [`u64::MAX`].
    #[must_use]
    pub fn combinations(&self) -> u64 {
        self.questions.iter().fold(1, |all: u64, question| all.saturating_mul(question.answers as u64))
    }

    /// The base case.
    #[must_use]
    pub fn base(&self) -> Answers {
        vec![0; self.questions.len()]
    }

    /// What of these answers concerns the table at this place: two combinations that agree in it are one to the table.
    #[must_use]
    pub fn of_table(&self, answers: &[usize], place: usize) -> Answers {
        let concerns = |question: &Question| question.concerns.get(place) == Some(&true);
        self.questions
            .iter()
            .zip(answers)
            .map(|(question, answer)| if concerns(question) { *answer } else { 0 })
            .collect()
    }

    /// Each other answer to each question, the rest as given.
    #[must_use]
    pub fn one_step_from(&self, from: &[usize]) -> Vec<Answers> {
        let steps = self.questions.iter().enumerate().flat_map(|(question, known)| {
            (0..known.answers).filter(move |answer| *answer != from[question]).map(move |answer| {
                let mut answers = from.to_vec();
                answers[question] = answer;
                answers
            })
        });
        steps.collect()
    }

    /// A combination that is not among these, each of the rest equally likely; `None` where there is no other.
    #[must_use]
    pub fn draw(&self, random: &mut Stream, without: &BTreeSet<Answers>) -> Option<Answers> {
        if without.len() as u64 >= self.combinations() {
            return None;
        }
        loop {
            let drawn = self.questions.iter().map(|question| random.below(question.answers as u64) as usize).collect();
            if !without.contains(&drawn) {
                return Some(drawn);
            }
        }
    }
}

/// All combinations of the answers that helped most, of what `tried` has: first the base case, then each answer alone.
#[must_use]
pub fn together(tried: &[Tried]) -> Vec<Answers> {
    let Some((base, others)) = tried.split_first() else { return Vec::new() };
    // The best answer to each question that comes closer than the base case.
    let mut helped: Vec<(usize, &Tried)> = Vec::new();
    for one in others.iter().filter(|one| one.stage == Stage::Alone && one.compare(base).is_lt()) {
        let Some(question) = one.answers.iter().position(|answer| *answer > 0) else { continue };
        match helped.iter_mut().find(|(known, _)| *known == question) {
            Some((_, best)) if one.compare(best).is_lt() => *best = one,
            Some(_) => {}
            None => helped.push((question, one)),
        }
    }
    helped.sort_by(|(_, one), (_, other)| one.compare(other));
    helped.truncate(TOGETHER);
    let combinations = (0..1_usize << helped.len()).filter(|set| set.count_ones() > 1);
    let combined = |set: usize| {
        let mut answers = base.answers.clone();
        for (place, (question, one)) in helped.iter().enumerate() {
            if set & (1 << place) != 0 {
                answers[*question] = one.answers[*question];
            }
        }
        answers
    };
    combinations.map(combined).collect()
}

/// One step from the closest of these, in each direction that was not tried.
#[must_use]
pub fn around(space: &Space, tried: &[Tried]) -> Vec<Answers> {
    let Some(closest) = tried.iter().min_by(|one, other| one.compare(other)) else { return Vec::new() };
    let known: BTreeSet<&Answers> = tried.iter().map(|one| &one.answers).collect();
    space.one_step_from(&closest.answers).into_iter().filter(|answers| !known.contains(answers)).collect()
}

/// What deserves the effort of a base case: the base case itself, the closest, and what shows most claims.
#[must_use]
pub fn worth_confirming(tried: &[Tried]) -> Vec<Answers> {
    let mut ranked: Vec<&Tried> = tried.iter().collect();
    ranked.sort_by(|one, other| one.compare(other));
    let most = ranked.iter().map(|one| one.shown()).max().unwrap_or_default();
    let base = tried.first();
    let claims = ranked.iter().find(|one| one.shown() == most).copied();
    let mut chosen: Vec<Answers> = Vec::new();
    for one in base.into_iter().chain(ranked.iter().copied().take(CLOSEST)).chain(claims) {
        if !chosen.contains(&one.answers) {
            chosen.push(one.answers.clone());
        }
    }
    chosen
}

/// A table, in the light of all that was tried.
#[derive(Clone, Copy, Debug)]
pub struct OfTable<'a> {
    /// What comes closest to its figures.
    pub closest: &'a Tried,
    /// What comes closest of those that show its claim.
    pub closest_shown: Option<&'a Tried>,
    /// How many combinations of answers that concern it were tried.
    pub tried: usize,
    /// How many of these show its claim.
    pub shown: usize,
    /// How many combinations were drawn at random, those that agree in what concerns it counted one by one.
    pub drawn: usize,
    /// How many of these show its claim.
    pub drawn_shown: usize,
}

/// The table at this place, in the light of all that was tried; `None` where nothing was.
#[must_use]
pub fn of_table<'a>(space: &Space, tried: &'a [Tried], place: usize) -> Option<OfTable<'a>> {
    let judged = |one: &'a Tried| one.tables.get(place);
    let distance = |one| judged(one).and_then(|judged| judged.deviation_rms_pct).unwrap_or(f64::INFINITY);
    let shows = |one| judged(one).is_some_and(|judged| judged.shown);
    let order = |one: &&'a Tried, other: &&'a Tried| {
        distance(*one).total_cmp(&distance(*other)).then(shows(*other).cmp(&shows(*one)))
    };
    let closest = tried.iter().min_by(order)?;
    let closest_shown = tried.iter().filter(|one| shows(one)).min_by(order);
    let distinct = |of: &dyn Fn(&'a Tried) -> bool| {
        let answers = tried.iter().filter(|one| of(one)).map(|one| space.of_table(&one.answers, place));
        answers.collect::<BTreeSet<_>>().len()
    };
    let drawn = || tried.iter().filter(|one| one.stage == Stage::Drawn);
    Some(OfTable {
        closest,
        closest_shown,
        tried: distinct(&|_| true),
        shown: distinct(&shows),
        drawn: drawn().count(),
        drawn_shown: drawn().filter(|one| shows(one)).count(),
    })
}

/// The closest first.
pub fn rank(tried: &mut [Tried]) {
    tried.sort_by(Tried::compare);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(answers: &[&'static str], tables: &'static [&'static str]) -> Open {
        Open { asks: "what", answers: answers.to_vec(), tables }
    }

    fn judged(deviation_rms_pct: Option<f64>, shown: bool) -> Judged {
        Judged { deviation_rms_pct, shown, evidence: String::new() }
    }

    fn tried(answers: &[usize], deviation: f64) -> Tried {
        let stage = match answers.iter().filter(|answer| **answer > 0).count() {
            0 => Stage::Base,
            1 => Stage::Alone,
            _ => Stage::Together,
        };
        Tried { stage, answers: answers.to_vec(), tables: vec![judged(Some(deviation), deviation < 10.0)] }
    }

    #[test]
    fn each_other_answer_is_tried_alone_where_it_concerns_a_table() {
        let questions =
            [open(&["base", "one", "two"], &[]), open(&["base", "other"], &["a"]), open(&["base", "other"], &["b"])];
        let space = Space::new(&questions, &["a"]);
        assert_eq!(space.one_step_from(&space.base()), [vec![1, 0, 0], vec![2, 0, 0], vec![0, 1, 0]]);
        assert_eq!(space.combinations(), 6, "the third question is about another table");
        let both = Space::new(&questions, &["a", "b"]);
        assert_eq!(both.combinations(), 12);
        assert_eq!(both.of_table(&[2, 1, 1], 0), [2, 1, 0]);
        assert_eq!(both.of_table(&[2, 1, 1], 1), [2, 0, 1]);
    }

    #[test]
    fn what_helped_is_tried_together_with_the_best_answer_to_each_question() {
        let base = tried(&[0, 0, 0], 20.0);
        let alone =
            [tried(&[1, 0, 0], 15.0), tried(&[2, 0, 0], 12.0), tried(&[0, 1, 0], 25.0), tried(&[0, 0, 1], 18.0)];
        let all: Vec<Tried> = std::iter::once(base).chain(alone).collect();
        assert_eq!(together(&all), [vec![2, 0, 1]], "the second question's answer did not help");
        assert!(together(&all[..2]).is_empty(), "one alone was tried");
    }

    #[test]
    fn without_figures_claims_tell_what_helped() {
        let of = |answers: &[usize], shown| Tried { tables: vec![judged(None, shown)], ..tried(answers, 0.0) };
        let all = [of(&[0, 0, 0], false), of(&[1, 0, 0], true), of(&[0, 1, 0], false), of(&[0, 0, 1], true)];
        assert_eq!(together(&all), [vec![1, 0, 1]]);
    }

    #[test]
    fn from_the_closest_each_step_that_was_not_tried_is() {
        let space = Space::new(&[open(&["base", "one", "two"], &[]), open(&["base", "other"], &[])], &["a"]);
        let all = [tried(&[0, 0], 20.0), tried(&[1, 0], 25.0), tried(&[2, 0], 19.0), tried(&[0, 1], 15.0)];
        assert_eq!(around(&space, &all), [vec![1, 1], vec![2, 1]]);
    }

    #[test]
    fn draws_are_new_until_there_is_none() {
        let space = Space::new(&[open(&["base", "one", "two"], &[]), open(&["base", "other"], &[])], &["a"]);
        let mut without = BTreeSet::from([space.base()]);
        let mut random = Stream::new(1, "draws");
        for _ in 1..6 {
            let drawn = space.draw(&mut random, &without).unwrap();
            assert!(drawn[0] < 3 && drawn[1] < 2, "{drawn:?}");
            assert!(without.insert(drawn));
        }
        assert_eq!(space.draw(&mut random, &without), None);
    }

    #[test]
    fn the_closest_and_what_shows_most_are_worth_confirming_beside_the_base_case() {
        let mut all = vec![tried(&[0, 0], 20.0), tried(&[1, 0], 15.0), tried(&[0, 1], 30.0), tried(&[1, 1], 12.0)];
        assert_eq!(worth_confirming(&all), [vec![0, 0], vec![1, 1], vec![1, 0]], "nothing shows a claim");
        all[2].tables[0].shown = true;
        assert_eq!(worth_confirming(&all), [vec![0, 0], vec![1, 1], vec![1, 0], vec![0, 1]]);
        assert_eq!(worth_confirming(&all[..1]), [vec![0, 0]]);
    }

    #[test]
    fn a_table_is_told_what_comes_closest_to_it_alone_and_how_often_its_claim_is_shown() {
        let two = |answers: &[usize], first: f64, second: f64| {
            let of = |deviation| tried(answers, deviation).tables;
            Tried { tables: [of(first), of(second)].concat(), ..tried(answers, 0.0) }
        };
        let space = Space::new(&[open(&["base", "one", "two"], &["a"]), open(&["base", "other"], &["b"])], &["a", "b"]);
        let mut all = [two(&[0, 0], 9.0, 30.0), two(&[1, 0], 20.0, 30.0), two(&[2, 1], 5.0, 8.0)];
        all[2].stage = Stage::Drawn;
        let first = of_table(&space, &all, 0).unwrap();
        assert_eq!((&first.closest.answers[..], first.shown, first.tried), ([2, 1].as_slice(), 2, 3));
        assert_eq!(first.closest_shown.map(|one| &one.answers[..]), Some([2, 1].as_slice()));
        let second = of_table(&space, &all, 1).unwrap();
        assert_eq!((&second.closest.answers[..], second.shown), ([2, 1].as_slice(), 1));
        assert_eq!(second.tried, 2, "the first question does not concern it");
        assert_eq!((second.drawn, second.drawn_shown), (1, 1));
        all[2].tables[0].shown = false;
        let first = of_table(&space, &all, 0).unwrap();
        assert_eq!(&first.closest.answers[..], [2, 1], "whether it shows the claim or not");
        assert_eq!(first.closest_shown.map(|one| &one.answers[..]), Some([0, 0].as_slice()));
        assert!(of_table(&space, &[], 0).is_none());
    }

    #[test]
    fn tables_weigh_the_same_and_those_without_figures_nothing() {
        let of = |tables: Vec<Judged>| Tried { tables, ..tried(&[], 0.0) };
        let two = of(vec![judged(Some(3.0), true), judged(None, true), judged(Some(5.0), true)]);
        assert!((two.deviation_rms_pct().unwrap() - 17.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(two.shown(), 3);
        assert_eq!(of(vec![judged(None, false)]).deviation_rms_pct(), None);
    }
}
