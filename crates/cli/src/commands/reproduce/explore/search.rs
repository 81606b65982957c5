//! A search through what a publication leaves open, stage by stage, until it is through or its time is over.
//!
//! A table is simulated once for all combinations that agree in the answers which concern it. Nothing begins that is not expected to end in
//! time: as long as the longest brief judgement of the table so far, or, to confirm, as its own brief one times what the publication says.
//! Of the time that is left after the base case as much is kept as confirming takes, half of all at most, and nothing where that is not
//! enough for one combination. What was not begun is counted, never guessed.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use lastmile_published::explore::{Answers, Space, Stage, Tried, around, together, worth_confirming};
use lastmile_published::{Effort, Judged};
use lastmile_queueing::random::Stream;
use serde::Serialize;

use crate::parallel::until_stopped;

/// Combinations that are drawn at a time.
const DRAWN_AT_ONCE: usize = 8;

/// Combinations that are confirmed, at most.
const CONFIRMED: u32 = 4;

/// What a search is to keep to.
#[derive(Clone, Copy, Default)]
pub(super) struct Limits {
    /// How long it may take.
    pub(super) within: Option<Duration>,
    /// How many combinations are drawn at random; without a number as many as there is time for, and none where that has no limit.
    pub(super) draw: Option<usize>,
    pub(super) threads: Option<NonZeroUsize>,
}

/// Judges the table at a place under some answers. The error says which, and what is wrong.
pub(super) type Judge = dyn Fn(usize, &Answers, Effort) -> Result<Judged, String> + Send + Sync;

/// What a search needs to know.
pub(super) struct Search<'a> {
    pub(super) space: &'a Space,
    pub(super) judge: Arc<Judge>,
    /// How many times as long as a brief judgement a whole one takes, by table.
    pub(super) whole_by_brief: &'a [f64],
    /// The time since it began.
    pub(super) clock: Arc<dyn Fn() -> Duration + Send + Sync>,
    /// True when it is to end at once, without what is being judged.
    pub(super) stopped: Arc<dyn Fn() -> bool + Send + Sync>,
    pub(super) limits: Limits,
}

/// How far a stage came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Counted {
    pub(super) stage: Stage,
    /// Combinations that were meant; `None` where as many as there was time for.
    pub(super) planned: Option<usize>,
    pub(super) tried: usize,
}

/// What a search found.
#[derive(Default)]
pub(super) struct Found {
    /// All that was tried, briefly, in that order: the base case is the first.
    pub(super) tried: Vec<Tried>,
    pub(super) stages: Vec<Counted>,
    /// With the effort of a base case.
    pub(super) confirmed: Vec<Tried>,
    /// How many were worth it.
    pub(super) worth_confirming: usize,
    /// Whether it was ended before it was through or its time was over.
    pub(super) interrupted: bool,
}

impl Found {
    /// How many combinations were meant and not tried.
    pub(super) fn left_out(&self) -> usize {
        let of = |counted: &Counted| counted.planned.map_or(0, |planned| planned.saturating_sub(counted.tried));
        self.stages.iter().map(of).sum()
    }
}

/// A table, the answers that concern it, and the effort.
type Key = (usize, Answers, bool);

struct Known {
    judged: Judged,
    took: Duration,
}

/// What has been simulated.
type Memory = BTreeMap<Key, Known>;

fn key(table: usize, answers: Answers, effort: Effort) -> Key {
    (table, answers, effort == Effort::Whole)
}

impl Search<'_> {
    /// Goes through all stages; `tell` is told of each that begins, and of how many combinations it has. What is found is empty where there
    /// was no time even for the base case.
    pub(super) fn run(&self, tell: &mut dyn FnMut(&str, Option<usize>)) -> Result<Found, String> {
        let mut begin = |what: &str, combinations| {
            if !(self.stopped)() {
                tell(what, combinations);
            }
        };
        let mut memory = Memory::new();
        let mut found = Found::default();
        let mut stage = |memory: &mut Memory, found: &mut Found, stage, planned: Vec<Answers>, until| {
            if !planned.is_empty() {
                begin(told(stage), Some(planned.len()));
                self.stage(memory, found, stage, &planned, until)?;
            }
            Ok::<(), String>(())
        };
        stage(&mut memory, &mut found, Stage::Base, vec![self.space.base()], self.limits.within)?;
        if found.tried.is_empty() {
            return Ok(found);
        }
        let until = self.limits.within.map(|within| within.saturating_sub(self.kept(&memory, within)));
        let alone = self.space.one_step_from(&self.space.base());
        stage(&mut memory, &mut found, Stage::Alone, alone.clone(), until)?;
        let planned = together(&found.tried);
        stage(&mut memory, &mut found, Stage::Together, planned, until)?;
        // What there was no time for alone is not counted again.
        let planned = around(self.space, &found.tried).into_iter().filter(|answers| !alone.contains(answers)).collect();
        stage(&mut memory, &mut found, Stage::Around, planned, until)?;
        if self.limits.draw.is_some_and(|draw| draw > 0) || self.limits.draw.is_none() && until.is_some() {
            begin(told(Stage::Drawn), self.limits.draw);
            self.draw(&mut memory, &mut found, until)?;
        }
        let worth = worth_confirming(&found.tried);
        begin("again with the effort of the base case", Some(worth.len()));
        found.worth_confirming = worth.len();
        found.confirmed = self.attempt(&mut memory, Stage::Base, &worth, Effort::Whole, self.limits.within)?;
        for confirmed in &mut found.confirmed {
            let brief = found.tried.iter().find(|one| one.answers == confirmed.answers);
            confirmed.stage = brief.map_or(Stage::Base, |brief| brief.stage);
        }
        found.interrupted = (self.stopped)();
        Ok(found)
    }

    /// The time that is kept for confirming: for as many combinations as half of all is enough for, which may be none.
    fn kept(&self, memory: &Memory, within: Duration) -> Duration {
        let base = self.space.base();
        let whole: Vec<Duration> = (0..self.space.tables())
            .map(|table| self.expected(memory, &key(table, self.space.of_table(&base, table), Effort::Whole)))
            .collect();
        let threads = self.limits.threads.or_else(|| available_parallelism().ok()).map_or(1, NonZeroUsize::get);
        let threads = u32::try_from(threads).unwrap_or(u32::MAX);
        // The tables of a combination run side by side, but none of them on more than one thread.
        let one = whole.iter().max().copied().unwrap_or_default().max(whole.iter().sum::<Duration>() / threads);
        let half = within / 2;
        (1..=CONFIRMED).rev().map(|count| one * count).find(|kept| *kept <= half).unwrap_or_default()
    }

    fn stage(
        &self,
        memory: &mut Memory,
        found: &mut Found,
        stage: Stage,
        planned: &[Answers],
        until: Option<Duration>,
    ) -> Result<(), String> {
        let tried = self.attempt(memory, stage, planned, Effort::Brief, until)?;
        found.stages.push(Counted { stage, planned: Some(planned.len()), tried: tried.len() });
        found.tried.extend(tried);
        Ok(())
    }

    fn draw(&self, memory: &mut Memory, found: &mut Found, until: Option<Duration>) -> Result<(), String> {
        let mut random = Stream::new(1, "explore");
        let mut known: BTreeSet<Answers> = found.tried.iter().map(|one| one.answers.clone()).collect();
        let mut counted = Counted { stage: Stage::Drawn, planned: self.limits.draw, tried: 0 };
        loop {
            let left = self.limits.draw.map_or(DRAWN_AT_ONCE, |draw| DRAWN_AT_ONCE.min(draw - counted.tried));
            let mut drawn = Vec::new();
            while drawn.len() < left
                && let Some(answers) = self.space.draw(&mut random, &known)
            {
                known.insert(answers.clone());
                drawn.push(answers);
            }
            let tried = self.attempt(memory, Stage::Drawn, &drawn, Effort::Brief, until)?;
            counted.tried += tried.len();
            let through = tried.len() < drawn.len() || drawn.len() < DRAWN_AT_ONCE;
            found.tried.extend(tried);
            if through {
                break;
            }
        }
        // There may be fewer than were asked for.
        let all = usize::try_from(self.space.combinations()).unwrap_or(usize::MAX);
        counted.planned = counted.planned.map(|draw| draw.min(counted.tried.saturating_add(all - found.tried.len())));
        found.stages.push(counted);
        Ok(())
    }

    /// Simulates every table under each of these answers; returns those combinations for which there was time, in their order.
    fn attempt(
        &self,
        memory: &mut Memory,
        stage: Stage,
        planned: &[Answers],
        effort: Effort,
        until: Option<Duration>,
    ) -> Result<Vec<Tried>, String> {
        let keys = |answers: &Answers| {
            (0..self.space.tables()).map(|table| key(table, self.space.of_table(answers, table), effort)).collect()
        };
        let mut jobs: Vec<Key> = Vec::new();
        for key in planned.iter().flat_map(|answers| -> Vec<Key> { keys(answers) }) {
            if !memory.contains_key(&key) && !jobs.contains(&key) {
                jobs.push(key);
            }
        }
        let expected: Vec<Duration> = jobs.iter().map(|key| self.expected(memory, key)).collect();
        let (clock, judge, stopped) = (Arc::clone(&self.clock), Arc::clone(&self.judge), Arc::clone(&self.stopped));
        let todo = jobs.clone();
        let job = move |number: usize| {
            let begun = clock();
            if until.is_some_and(|until| begun >= until || begun + expected[number] > until) {
                return None;
            }
            let (table, answers, _) = &todo[number];
            Some(judge(*table, answers, effort).map(|judged| Known { judged, took: clock() - begun }))
        };
        let made = until_stopped(jobs.len(), self.limits.threads, job, move || stopped());
        for (key, made) in jobs.into_iter().zip(made) {
            if let Some(made) = made.flatten() {
                memory.insert(key, made?);
            }
        }
        let of = |answers: &Answers| {
            let judged = keys(answers).into_iter().map(|key| memory.get(&key).map(|known| known.judged.clone()));
            Some(Tried { stage, answers: answers.clone(), tables: judged.collect::<Option<_>>()? })
        };
        Ok(planned.iter().filter_map(of).collect())
    }

    fn expected(&self, memory: &Memory, (table, answers, whole): &Key) -> Duration {
        if *whole {
            let brief =
                memory.get(&key(*table, answers.clone(), Effort::Brief)).map_or(Duration::ZERO, |known| known.took);
            return brief.mul_f64(self.whole_by_brief[*table]);
        }
        memory.iter().filter(|((of, ..), _)| of == table).map(|(_, known)| known.took).max().unwrap_or_default()
    }
}

/// What is said of a stage.
pub(super) fn told(stage: Stage) -> &'static str {
    match stage {
        Stage::Base => "the base case",
        Stage::Alone => "one other answer",
        Stage::Together => "the answers that helped most, together",
        Stage::Around => "one step from the closest",
        Stage::Drawn => "drawn at random",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use lastmile_published::Open;

    use super::*;

    /// Two questions about both tables, one about the second alone; a judgement takes a second, a whole one five.
    struct World {
        space: Space,
        made: Mutex<Vec<(usize, Answers, Effort)>>,
        now: Mutex<Duration>,
    }

    impl World {
        fn new() -> Arc<Self> {
            let open = |answers: &[&'static str], tables| Open { asks: "what", answers: answers.to_vec(), tables };
            let questions =
                [open(&["base", "one", "two"], &[]), open(&["base", "other"], &[]), open(&["base", "other"], &["b"])];
            let space = Space::new(&questions, &["a", "b"]);
            Arc::new(Self { space, made: Mutex::default(), now: Mutex::default() })
        }

        /// The first answer brings figures closer by 4 or 8, the second by 1, the third takes them away.
        fn judge(&self, table: usize, answers: &Answers, effort: Effort) -> Result<Judged, String> {
            self.made.lock().unwrap().push((table, answers.clone(), effort));
            *self.now.lock().unwrap() += Duration::from_secs(if effort == Effort::Whole { 5 } else { 1 });
            let deviation = 20.0 - 4.0 * answers[0] as f64 - answers[1] as f64 + answers[2] as f64;
            Ok(Judged { deviation_rms_pct: Some(deviation), shown: false, evidence: String::new() })
        }

        fn search(self: &Arc<Self>, limits: Limits, stopped_after: usize) -> Found {
            let world = [(); 3].map(|()| Arc::clone(self));
            let [judge, clock, stopped] = world;
            let search = Search {
                space: &self.space,
                judge: Arc::new(move |table, answers, effort| judge.judge(table, answers, effort)),
                whole_by_brief: &[5.0, 5.0],
                clock: Arc::new(move || *clock.now.lock().unwrap()),
                stopped: Arc::new(move || stopped.made.lock().unwrap().len() >= stopped_after),
                limits: Limits { threads: NonZeroUsize::new(1), ..limits },
            };
            search.run(&mut |_, _| ()).unwrap()
        }
    }

    fn counts(found: &Found) -> Vec<(Stage, Option<usize>, usize)> {
        found.stages.iter().map(|counted| (counted.stage, counted.planned, counted.tried)).collect()
    }

    #[test]
    fn a_search_goes_through_its_stages_and_confirms_what_it_found() {
        let world = World::new();
        let found = world.search(Limits::default(), usize::MAX);
        let done = |stage, count| (stage, Some(count), count);
        // Of the closest, which two answers together make, three steps lead to what was not tried before.
        assert_eq!(
            counts(&found),
            [done(Stage::Base, 1), done(Stage::Alone, 4), done(Stage::Together, 1), done(Stage::Around, 2)]
        );
        assert_eq!((found.left_out(), found.interrupted), (0, false));
        let confirmed: Vec<&Answers> = found.confirmed.iter().map(|one| &one.answers).collect();
        assert_eq!(confirmed, [&vec![0, 0, 0], &vec![2, 1, 0], &vec![2, 1, 1]]);
        assert_eq!(found.confirmed[1].stage, Stage::Together);
        let made = world.made.lock().unwrap();
        let distinct: BTreeSet<(usize, Answers, bool)> =
            made.iter().map(|(table, answers, effort)| (*table, answers.clone(), *effort == Effort::Whole)).collect();
        assert_eq!(distinct.len(), made.len(), "nothing is simulated twice");
        assert!(
            !made.iter().any(|(table, answers, _)| *table == 0 && answers[2] > 0),
            "it does not concern that table"
        );
    }

    #[test]
    fn what_is_drawn_is_new_and_no_more_than_asked_for_or_there_is() {
        let drawn = |draw| {
            let found = World::new().search(Limits { draw: Some(draw), ..Limits::default() }, usize::MAX);
            let distinct: BTreeSet<&Answers> = found.tried.iter().map(|one| &one.answers).collect();
            assert_eq!(distinct.len(), found.tried.len());
            (found.stages.last().map(|last| (last.planned, last.tried)), found.tried.len(), found.left_out())
        };
        assert_eq!(drawn(2), (Some((Some(2), 2)), 10, 0));
        assert_eq!(drawn(100), (Some((Some(4), 4)), 12, 0), "there are twelve in all");
        assert_eq!(drawn(0).1, 8);
    }

    #[test]
    fn a_search_ends_in_its_time_and_counts_what_was_left_out() {
        let within = |seconds| {
            let world = World::new();
            let found =
                world.search(Limits { within: Some(Duration::from_secs(seconds)), ..Limits::default() }, usize::MAX);
            let took = *world.now.lock().unwrap();
            assert!(took <= Duration::from_secs(seconds), "{took:?}");
            found
        };
        // The base case takes 2 s, and 10 to confirm, which half of the time is enough for: 10 s are left to search in. One other answer takes
        // 7, two together 2, and of two steps from there a table of one is through.
        let found = within(22);
        let done = |stage, count| (stage, Some(count), count);
        assert_eq!(
            counts(&found),
            [
                done(Stage::Base, 1),
                done(Stage::Alone, 4),
                done(Stage::Together, 1),
                (Stage::Around, Some(2), 0),
                (Stage::Drawn, None, 0)
            ]
        );
        assert_eq!(found.left_out(), 2);
        assert_eq!((found.confirmed.len(), found.worth_confirming), (1, 3));
        // Where it is not enough for one, nothing is kept, and the search has all the time.
        let found = within(15);
        assert_eq!((found.tried.len(), found.left_out()), (9, 0), "all steps, and one that is drawn");
        assert!(found.confirmed.is_empty() && found.worth_confirming == 3);
        // With all the time there is the space is exhausted, and nothing is left out.
        let found = within(1000);
        assert_eq!((found.tried.len(), found.left_out()), (12, 0));
        assert_eq!(found.confirmed.len(), found.worth_confirming);
        let found = within(0);
        assert!(found.tried.is_empty() && !found.interrupted);
    }

    #[test]
    fn a_search_that_is_stopped_keeps_what_it_has() {
        let found = World::new().search(Limits::default(), 4);
        assert_eq!(
            (found.tried.len(), found.left_out()),
            (2, 5),
            "three alone, and two steps from the closest that are not among them"
        );
        assert!(found.confirmed.is_empty());
        assert!(found.interrupted);
    }

    #[test]
    fn what_goes_wrong_ends_it() {
        let world = World::new();
        let search = Search {
            space: &world.space,
            judge: Arc::new(|_, _, _| Err("no network".to_owned())),
            whole_by_brief: &[1.0, 1.0],
            clock: Arc::new(|| Duration::ZERO),
            stopped: Arc::new(|| false),
            limits: Limits::default(),
        };
        assert_eq!(search.run(&mut |_, _| ()).err().as_deref(), Some("no network"));
    }
}
