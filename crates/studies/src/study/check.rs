//! Every point of a study is read before the first run: errors and warnings of all, and their need of memory.

use std::num::NonZeroUsize;
use std::thread;

use lastmile_scenario::{Diagnostic, Need, Report};

use super::cases::CASE;
use super::measured::may_be;
use super::plan::{Attend, Ended, Load, Means, Progress, Study};
use crate::error::Error;
use crate::parallel::in_order_attended;

/// The most points that are read before a study has a folder.
const MOST: usize = 1_000;

/// The findings of a study that can run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Checked {
    /// Warnings of all points, each once.
    pub warnings: Report,
    /// A large need of memory, in words.
    pub need: Option<String>,
}

/// The needs and warnings of a point, or its errors.
type Point = Result<(Vec<Need>, Report), Report>;

/// Reads every point with its first seed.
///
/// # Errors
/// A measure that no run has; errors of points; too little memory for as many runs as there are threads; the caller
/// ended it.
pub fn check<S: Send>(study: &Study<'_>, means: Means<'_>, attend: &mut Attend<'_, S>) -> Result<Checked, Ended<S>> {
    let (largest, warnings) = read(study, (means.load, means.threads), attend)?;
    let need = means.memory.admit_in_turn(&largest).map_err(Ended::Wrong)?;
    Ok(Checked { warnings, need })
}

/// Reads as many points as have every value of each key, up to a thousand of them: errors of values are known before a
/// study has a folder.
///
/// # Errors
/// As [`check`], apart from memory.
pub fn check_values<S: Send>(study: &Study<'_>, load: &Load<'_>, attend: &mut Attend<'_, S>) -> Result<(), Ended<S>> {
    let space = study.space.with_every_value(MOST);
    read(&Study { space: &space, ..study.clone() }, (load, None), attend).map(drop)
}

/// The needs of the largest points, as many as there are threads, and the warnings of all.
fn read<S: Send>(
    study: &Study<'_>,
    (load, threads): (&Load<'_>, Option<NonZeroUsize>),
    attend: &mut Attend<'_, S>,
) -> Result<(Vec<Vec<Need>>, Report), Ended<S>> {
    let wrong = |report: Report| Ended::Wrong(report.into());
    if study.space.keys.iter().any(|key| key == CASE) && study.space.cases.all().is_empty() {
        let error = Error::new("the values of the key case are names of settings, and the study has none");
        return Err(Ended::Wrong(error.hint("[[case]] of a study file, or cases() in Python, has names and settings")));
    }
    study.seeds.measure().map_or(Ok(()), |measure| may_be(measure)).map_err(Ended::Wrong)?;
    let file = load(study.common).map_err(wrong)?;
    let seed = file.network_ref().seed;
    study.seeds.check(seed).map_err(Ended::Wrong)?;
    let most = threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let (mut errors, mut warnings) = (Report::default(), Report::default());
    for finding in file.warnings().findings() {
        warnings.push(finding.clone());
    }
    let mut largest: Vec<Vec<Need>> = Vec::new();
    let mut ended = Ok(());
    let job = |number: usize| -> Point {
        let point = &study.space.points[number];
        let scenario = load(&study.variant(point, seed).overrides)?;
        scenario.needs_traffic(study.input.file.as_deref().unwrap_or("scenario"))?;
        Ok((scenario.needs().to_vec(), scenario.warnings().beyond(file.warnings())))
    };
    let mut number = 0;
    in_order_attended(study.space.points.len(), threads, job, |result| {
        if let Some(point) = result {
            let words = study.words(&study.space.points[number]);
            number += 1;
            match point {
                Ok((needs, found)) => {
                    add(&mut warnings, &found, study, &words);
                    largest.push(needs);
                    largest.sort_by_key(|needs| std::cmp::Reverse(needs.iter().map(|need| need.bytes).sum::<u64>()));
                    largest.truncate(most);
                }
                Err(found) => add(&mut errors, &found, study, &words),
            }
        }
        ended = attend(Progress::default()).map_err(Ended::Stop);
        ended.is_ok() && errors.findings().len() <= Report::SHOWN
    });
    ended?;
    if errors.has_errors() {
        return Err(wrong(errors));
    }
    Ok((largest, warnings))
}

/// Adds the findings of a point, each once. Those about a value in the study file name no point, since all points with
/// that value have them.
fn add(to: &mut Report, found: &Report, study: &Study<'_>, words: &str) {
    for finding in found.findings() {
        let is_own = study.places.values().any(|place| *place == finding.place);
        let alone = Report::of(finding.clone());
        let named = if is_own || words.is_empty() { alone } else { alone.within(words) };
        let known = |finding: &Diagnostic| to.findings().contains(finding);
        let new: Vec<Diagnostic> = named.findings().iter().filter(|finding| !known(finding)).cloned().collect();
        new.into_iter().for_each(|finding| to.push(finding));
    }
}
