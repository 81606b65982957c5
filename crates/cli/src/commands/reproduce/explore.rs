//! `lastmile reproduce --explore`: which assumptions bring the published figures closest.
//!
//! Nothing is printed before all has run: a search that is interrupted tells nothing.

use std::fmt::Write as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lastmile_published::explore::{Answers, TOGETHER, Tried, of_table, one_at_a_time, rank, together};
use lastmile_published::{ExperimentError, Explore, Judged, Open, Table as PublishedTable, explorable};
use serde::Serialize;

use crate::exit::{Exit, Failure, Result};
use crate::interrupt::Interrupt;
use crate::parallel::in_parallel;
use crate::printer::Printer;
use crate::table::{Align, Table};

/// How many combinations are told.
const TOLD: usize = 12;

/// What `--json` prints of a publication.
#[derive(Serialize)]
struct Explored {
    publication: String,
    tables: Vec<String>,
    /// The base case, and every other answer alone.
    one_at_a_time: Vec<Outcome>,
    /// All that was tried, the closest first.
    ranked: Vec<Outcome>,
    /// What comes closest to each table alone, and whether anything shows its claim.
    by_table: Vec<ByTable>,
}

/// A table, in the light of all that was tried.
#[derive(Serialize)]
struct ByTable {
    table: String,
    /// What differs from the base case in what comes closest.
    instead: Vec<[&'static str; 2]>,
    deviation_rms_pct: Option<f64>,
    base_deviation_rms_pct: Option<f64>,
    /// How many of those tried show the claim.
    claim_shown_by: usize,
    tried: usize,
}

impl ByTable {
    fn all(open: &[Open], tables: &[&PublishedTable], alone: &[Tried], tried: &[Tried]) -> Vec<Self> {
        let of = |(place, table): (usize, &&PublishedTable)| {
            let found = of_table(tried, place)?;
            Some(Self {
                table: table.id.clone(),
                instead: instead(open, &found.closest.answers).collect(),
                deviation_rms_pct: found.closest.tables[place].deviation_rms_pct,
                base_deviation_rms_pct: alone.first().and_then(|base| base.tables[place].deviation_rms_pct),
                claim_shown_by: found.shown,
                tried: tried.len(),
            })
        };
        tables.iter().enumerate().filter_map(of).collect()
    }
}

/// Some answers, and what came of them.
#[derive(Serialize)]
struct Outcome {
    /// What differs from the base case: what is open, and what was taken.
    instead: Vec<[&'static str; 2]>,
    deviation_rms_pct: Option<f64>,
    claims_shown: usize,
    tables: Vec<Judged>,
}

/// Explores each publication of which tables were chosen.
pub(super) fn explore(chosen: &[(&str, &PublishedTable)], json: bool, printer: &mut Printer) -> Result {
    let interrupt =
        Interrupt::watch().map_err(|error| Failure::new(format_args!("cannot watch for signals: {error}")))?;
    let mut explored = Vec::new();
    let mut publications: Vec<&str> = Vec::new();
    for (publication, _) in chosen {
        if !publications.contains(publication) {
            publications.push(publication);
        }
    }
    for publication in publications {
        let Some(explorable) = explorable(publication) else {
            return Err(Failure::new(format_args!("{publication} leaves nothing open that can be explored"))
                .hint("sun1998 and ano2002 can be"));
        };
        let known = explorable.tables();
        let of = |(key, table): &(&str, &_)| -> bool { *key == publication && known.contains(&id(table)) };
        let tables: Vec<&PublishedTable> = chosen.iter().filter(|one| of(one)).map(|(_, table)| *table).collect();
        if tables.is_empty() {
            return Err(Failure::new(format_args!("none of these tables of {publication} is simulated")));
        }
        match search(explorable, &tables, &interrupt, printer)? {
            Ok((alone, ranked)) => {
                let open = explorable.open();
                let outcome = |tried: &Tried| Outcome {
                    instead: instead(&open, &tried.answers).collect(),
                    deviation_rms_pct: tried.deviation_rms_pct(),
                    claims_shown: tried.shown(),
                    tables: tried.tables.clone(),
                };
                explored.push(Explored {
                    publication: publication.to_owned(),
                    tables: tables.iter().map(|table| table.id.clone()).collect(),
                    one_at_a_time: alone.iter().map(outcome).collect(),
                    ranked: ranked.iter().map(outcome).collect(),
                    by_table: ByTable::all(&open, &tables, &alone, &ranked),
                });
            }
            Err(interrupted) => return Ok(interrupted),
        }
    }
    if json {
        printer.json(&explored)?;
    } else {
        explored.iter().try_for_each(|explored| print(explored, printer))?;
    }
    Ok(Exit::Done)
}

fn id(table: &PublishedTable) -> &str {
    &table.id
}

/// What differs from the base case.
fn instead<'a>(open: &'a [Open], answers: &'a [usize]) -> impl Iterator<Item = [&'static str; 2]> + 'a {
    let other = |(open, answer): &(&Open, &usize)| **answer > 0 && **answer < open.answers.len();
    open.iter().zip(answers).filter(other).map(|(open, answer)| [open.asks, open.answers[*answer]])
}

/// All that was tried one at a time, and all that was tried, the closest first.
type Found = (Vec<Tried>, Vec<Tried>);

fn search(
    explore: &dyn Explore,
    tables: &[&PublishedTable],
    interrupt: &Interrupt,
    printer: &Printer,
) -> Result<std::result::Result<Found, Exit>> {
    let open = explore.open();
    let first = one_at_a_time(&open);
    let most = (first.len() + (1 << TOGETHER)) * tables.len();
    let bar = bar(most, printer);
    let attempt =
        |answers: &[Answers], known: Option<&Tried>| attempt(explore, tables, answers, known, interrupt, &bar);
    let base = match attempt(&first[..1], None)? {
        Ok(base) => base,
        Err(interrupted) => return Ok(Err(interrupted)),
    };
    let mut alone = base;
    match attempt(&first[1..], alone.first())? {
        Ok(others) => alone.extend(others),
        Err(interrupted) => return Ok(Err(interrupted)),
    }
    let mut ranked = alone.clone();
    match attempt(&together(&alone), alone.first())? {
        Ok(combined) => ranked.extend(combined),
        Err(interrupted) => return Ok(Err(interrupted)),
    }
    bar.finish_and_clear();
    rank(&mut ranked);
    Ok(Ok((alone, ranked)))
}

/// Simulates every table under each of these answers; where none of them concerns a table, what is known of the base case holds.
fn attempt(
    explore: &dyn Explore,
    tables: &[&PublishedTable],
    answers: &[Answers],
    known: Option<&Tried>,
    interrupt: &Interrupt,
    bar: &ProgressBar,
) -> Result<std::result::Result<Vec<Tried>, Exit>> {
    let open = explore.open();
    let job = |number: usize| -> std::result::Result<Option<Judged>, ExperimentError> {
        if interrupt.requested().is_some() {
            return Ok(None);
        }
        let (answers, place) = (&answers[number / tables.len()], number % tables.len());
        let concerns = |open: &Open| open.tables.is_empty() || open.tables.contains(&tables[place].id.as_str());
        let same = open.iter().zip(answers).all(|(open, answer)| *answer == 0 || !concerns(open));
        let judged = match known {
            Some(base) if same => base.tables[place].clone(),
            _ => explore.judge(tables[place], answers)?,
        };
        bar.inc(1);
        Ok(Some(judged))
    };
    let mut judged = in_parallel(answers.len() * tables.len(), None, job).into_iter();
    if let Some(exit) = interrupt.requested() {
        bar.finish_and_clear();
        return Ok(Err(exit));
    }
    let mut tried = Vec::new();
    for answers in answers {
        let mut of = Vec::new();
        for judged in judged.by_ref().take(tables.len()) {
            of.extend(judged.map_err(Failure::new)?);
        }
        tried.push(Tried { answers: answers.clone(), tables: of });
    }
    Ok(Ok(tried))
}

fn bar(most: usize, printer: &Printer) -> ProgressBar {
    let style = ProgressStyle::with_template("exploring {bar:40} {percent:>3} %  {eta} left")
        .expect("the template is a constant")
        .progress_chars("\u{2501}\u{2501} ");
    let target = if printer.is_watched() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    ProgressBar::with_draw_target(u64::try_from(most).ok(), target).with_style(style)
}

fn print(explored: &Explored, printer: &mut Printer) -> Result<()> {
    let tables = explored.tables.len();
    printer.heading(&format!("{}: which assumptions bring {tables} tables closest", explored.publication))?;
    let mut text = String::from("One at a time, two seeds each\n");
    text += &render(&explored.one_at_a_time, tables);
    writeln!(text, "\nThe closest of all that was tried, together too").expect("a string takes all");
    text += &render(&explored.ranked[..explored.ranked.len().min(TOLD)], tables);
    text += "\nWhat comes closest to each table alone, and by how much of all that was tried its claim is shown\n";
    text += &render_by_table(&explored.by_table);
    text += "\nThis is what assumptions would do to the figures, not what was assumed: the base case stays as it was chosen.\n\n";
    printer.data(&text)?;
    Ok(())
}

fn render(outcomes: &[Outcome], tables: usize) -> String {
    let mut table =
        Table::new([("deviation, %", Align::Right), ("claims shown", Align::Right), ("taken instead", Align::Left)]);
    for outcome in outcomes {
        table.row([
            outcome.deviation_rms_pct.map_or_else(String::new, |deviation| format!("{deviation:.1}")),
            format!("{} of {tables}", outcome.claims_shown),
            taken(&outcome.instead),
        ]);
    }
    table.render()
}

fn render_by_table(tables: &[ByTable]) -> String {
    let figures = ["base case, %", "closest, %", "claim shown by"].map(|name| (name, Align::Right));
    let columns = [("table", Align::Left)].into_iter().chain(figures).chain([("taken instead", Align::Left)]);
    let mut rendered = Table::new(columns);
    let pct = |deviation: Option<f64>| deviation.map_or_else(String::new, |deviation| format!("{deviation:.1}"));
    for table in tables {
        rendered.row([
            table.table.clone(),
            pct(table.base_deviation_rms_pct),
            pct(table.deviation_rms_pct),
            format!("{} of {}", table.claim_shown_by, table.tried),
            taken(&table.instead),
        ]);
    }
    rendered.render()
}

/// What differs from the base case, in words.
fn taken(instead: &[[&'static str; 2]]) -> String {
    let taken: Vec<String> = instead.iter().map(|[asks, answer]| format!("{asks}: {answer}")).collect();
    if taken.is_empty() { "the base case".to_owned() } else { taken.join("; ") }
}
