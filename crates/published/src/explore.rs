//! Which assumptions bring simulated figures closest to published ones: a designed, bounded search.
//!
//! First every answer to every open question alone, the others as in the base case. Then, of the questions whose best answer came closer than
//! the base case did, the [`TOGETHER`] that helped most, in all combinations. How close: the root mean square of the relative deviations from
//! all published figures of a table, and that of the tables. What is found is told and changes nothing: the base case stays what it was.

use crate::experiments::{Judged, Open};

/// Questions of which all combinations are tried.
pub const TOGETHER: usize = 4;

/// An answer to each question, by its place: 0 is the base case.
pub type Answers = Vec<usize>;

/// Some answers, and what came of each table under them.
#[derive(Clone, Debug)]
pub struct Tried {
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
}

/// The base case, then each other answer alone.
#[must_use]
pub fn one_at_a_time(open: &[Open]) -> Vec<Answers> {
    let base = vec![0; open.len()];
    let others = open.iter().enumerate().flat_map(|(question, open)| {
        let base = base.clone();
        (1..open.answers.len()).map(move |answer| {
            let mut answers = base.clone();
            answers[question] = answer;
            answers
        })
    });
    std::iter::once(base.clone()).chain(others).collect()
}

/// All combinations of the answers that helped most, without those that `tried` has: first the base case, then each answer alone.
#[must_use]
pub fn together(tried: &[Tried]) -> Vec<Answers> {
    let Some((base, others)) = tried.split_first() else { return Vec::new() };
    // The best answer to each question that comes closer than the base case.
    let mut helped: Vec<(usize, usize, f64)> = Vec::new();
    for one in others {
        let Some(question) = one.answers.iter().position(|answer| *answer > 0) else { continue };
        let (answer, distance) = (one.answers[question], one.distance());
        if distance >= base.distance() {
            continue;
        }
        match helped.iter_mut().find(|(known, ..)| *known == question) {
            Some(best) if distance < best.2 => *best = (question, answer, distance),
            Some(_) => {}
            None => helped.push((question, answer, distance)),
        }
    }
    helped.sort_by(|one, other| one.2.total_cmp(&other.2));
    helped.truncate(TOGETHER);
    let combinations = (0..1_usize << helped.len()).filter(|set| set.count_ones() > 1);
    let combined = |set: usize| {
        let mut answers = base.answers.clone();
        for (place, (question, answer, _)) in helped.iter().enumerate() {
            if set & (1 << place) != 0 {
                answers[*question] = *answer;
            }
        }
        answers
    };
    combinations.map(combined).collect()
}

/// A table, in the light of all that was tried.
#[derive(Clone, Copy, Debug)]
pub struct OfTable<'a> {
    /// What comes closest to its figures.
    pub closest: &'a Tried,
    /// How many of those tried show its claim.
    pub shown: usize,
}

/// The table at this place, in the light of all that was tried; `None` where nothing was.
#[must_use]
pub fn of_table(tried: &[Tried], place: usize) -> Option<OfTable<'_>> {
    let judged = |one: &'_ Tried| one.tables.get(place).cloned();
    let distance = |one: &Tried| judged(one).and_then(|judged| judged.deviation_rms_pct).unwrap_or(f64::INFINITY);
    let closest = tried.iter().min_by(|one, other| distance(one).total_cmp(&distance(other)))?;
    let shown = tried.iter().filter(|one| judged(one).is_some_and(|judged| judged.shown)).count();
    Some(OfTable { closest, shown })
}

/// The closest first.
pub fn rank(tried: &mut [Tried]) {
    tried.sort_by(|one, other| one.distance().total_cmp(&other.distance()));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(answers: &[&'static str]) -> Open {
        Open { asks: "what", answers: answers.to_vec(), tables: &[] }
    }

    fn tried(answers: &[usize], deviation: f64) -> Tried {
        let judged = Judged { deviation_rms_pct: Some(deviation), shown: deviation < 10.0 };
        Tried { answers: answers.to_vec(), tables: vec![judged] }
    }

    #[test]
    fn each_other_answer_is_tried_alone() {
        let answers = one_at_a_time(&[open(&["base", "one", "two"]), open(&["base", "other"])]);
        assert_eq!(answers, [vec![0, 0], vec![1, 0], vec![2, 0], vec![0, 1]]);
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
    fn a_table_is_told_what_comes_closest_to_it_alone_and_how_often_its_claim_is_shown() {
        let two = |answers: &[usize], first: f64, second: f64| {
            let of = |deviation| tried(answers, deviation).tables;
            Tried { answers: answers.to_vec(), tables: [of(first), of(second)].concat() }
        };
        let all = [two(&[0], 9.0, 30.0), two(&[1], 20.0, 8.0), two(&[2], 5.0, 12.0)];
        let first = of_table(&all, 0).unwrap();
        assert_eq!((&first.closest.answers[..], first.shown), ([2].as_slice(), 2));
        let second = of_table(&all, 1).unwrap();
        assert_eq!((&second.closest.answers[..], second.shown), ([1].as_slice(), 1));
        assert!(of_table(&[], 0).is_none());
    }

    #[test]
    fn tables_weigh_the_same_and_those_without_figures_nothing() {
        let judged = |deviation| Judged { deviation_rms_pct: deviation, shown: true };
        let of = |tables: Vec<Judged>| Tried { answers: vec![], tables };
        let two = of(vec![judged(Some(3.0)), judged(None), judged(Some(5.0))]);
        assert!((two.deviation_rms_pct().unwrap() - 17.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(two.shown(), 3);
        assert_eq!(of(vec![judged(None)]).deviation_rms_pct(), None);
    }
}
