//! What a search found, as it is printed.

use std::fmt::Write as _;

use lastmile_published::explore::{Space, Stage, Tried, of_table, rank};
use lastmile_published::{Effort, Explore, Judged, Open};
use serde::Serialize;

use super::search::{Counted, Found, told};
use crate::exit::Result;
use crate::printer::Printer;
use crate::table::{Align, Table};

/// How many combinations are told.
const TOLD: usize = 12;

/// What `--json` prints of a publication.
#[derive(Serialize)]
pub(super) struct Explored {
    publication: String,
    tables: Vec<String>,
    /// How many combinations of answers concern these tables.
    combinations: u64,
    /// Seeds of what was tried, and what else was shorter than a base case.
    seeds: usize,
    brief: &'static str,
    /// How long the search was allowed to take, where that was limited.
    within_s: Option<f64>,
    /// How far each stage came.
    stages: Vec<Counted>,
    /// How many combinations were meant and not tried, for want of time or since it was interrupted.
    left_out: usize,
    interrupted: bool,
    /// All that was tried, the closest first.
    ranked: Vec<Outcome>,
    /// What comes closest to each table alone, and whether anything shows its claim.
    by_table: Vec<ByTable>,
    /// Seeds of what follows: those of the base case, over runs as long.
    confirmed_seeds: usize,
    /// The base case, the closest and what shows most claims, with the effort of a base case.
    confirmed: Vec<Outcome>,
    /// How many of these there was no time for.
    not_confirmed: usize,
}

/// A table, in the light of all that was tried.
#[derive(Serialize)]
struct ByTable {
    table: String,
    /// What differs from the base case in what comes closest.
    instead: Vec<[&'static str; 2]>,
    deviation_rms_pct: Option<f64>,
    base_deviation_rms_pct: Option<f64>,
    /// What it gives.
    evidence: String,
    /// What comes closest of those that show the claim, where another does.
    closest_shown: Option<Shown>,
    /// How many of the combinations that concern the table show its claim.
    claim_shown_by: usize,
    tried: usize,
    /// The same of what was drawn at random, by draw.
    claim_shown_by_drawn: usize,
    drawn: usize,
}

/// Some answers under which a table shows its claim.
#[derive(Serialize)]
struct Shown {
    instead: Vec<[&'static str; 2]>,
    deviation_rms_pct: Option<f64>,
    evidence: String,
}

/// Some answers, and what came of them.
#[derive(Serialize)]
struct Outcome {
    /// Why they were tried.
    stage: Stage,
    /// What differs from the base case: what is open, and what was taken.
    instead: Vec<[&'static str; 2]>,
    deviation_rms_pct: Option<f64>,
    claims_shown: usize,
    tables: Vec<Judged>,
}

impl Outcome {
    fn of(open: &[Open], tried: &Tried) -> Self {
        Self {
            stage: tried.stage,
            instead: instead(open, &tried.answers).collect(),
            deviation_rms_pct: tried.deviation_rms_pct(),
            claims_shown: tried.shown(),
            tables: tried.tables.clone(),
        }
    }
}

impl Explored {
    pub(super) fn new(
        (publication, explore): (&str, &dyn Explore),
        tables: &[&str],
        space: &Space,
        found: &Found,
        within_s: Option<f64>,
    ) -> Self {
        let open = explore.open();
        let (seeds, brief) = explore.told(Effort::Brief);
        let by_table = |(place, table): (usize, &&str)| {
            let of = of_table(space, &found.tried, place)?;
            let closest = &of.closest.tables[place];
            let instead = |tried: &Tried| instead(&open, &space.of_table(&tried.answers, place)).collect();
            let closest_shown = of.closest_shown.filter(|_| !closest.shown).map(|tried| Shown {
                instead: instead(tried),
                deviation_rms_pct: tried.tables[place].deviation_rms_pct,
                evidence: tried.tables[place].evidence.clone(),
            });
            Some(ByTable {
                table: (*table).to_owned(),
                instead: instead(of.closest),
                deviation_rms_pct: closest.deviation_rms_pct,
                evidence: closest.evidence.clone(),
                closest_shown,
                base_deviation_rms_pct: found.tried.first().and_then(|base| base.tables[place].deviation_rms_pct),
                claim_shown_by: of.shown,
                tried: of.tried,
                claim_shown_by_drawn: of.drawn_shown,
                drawn: of.drawn,
            })
        };
        let mut ranked = found.tried.clone();
        rank(&mut ranked);
        Self {
            publication: publication.to_owned(),
            tables: tables.iter().map(|&table| table.to_owned()).collect(),
            combinations: space.combinations(),
            seeds,
            brief,
            within_s,
            stages: found.stages.clone(),
            left_out: found.left_out(),
            interrupted: found.interrupted,
            ranked: ranked.iter().map(|tried| Outcome::of(&open, tried)).collect(),
            by_table: tables.iter().enumerate().filter_map(by_table).collect(),
            confirmed_seeds: explore.told(Effort::Whole).0,
            confirmed: found.confirmed.iter().map(|tried| Outcome::of(&open, tried)).collect(),
            not_confirmed: found.worth_confirming - found.confirmed.len(),
        }
    }

    pub(super) fn print(&self, printer: &mut Printer) -> Result<()> {
        let tables = self.tables.len();
        let named = if tables == 1 { "a table".to_owned() } else { format!("{tables} tables") };
        printer.heading(&format!(
            "{}: which assumptions bring {named} closest ({})",
            self.publication,
            self.tables.join(", ")
        ))?;
        let mut text = self.effort();
        text += "\nOne at a time\n";
        let alone = |outcome: &&Outcome| matches!(outcome.stage, Stage::Base | Stage::Alone);
        text += &render(self.ranked.iter().filter(alone), tables);
        text += "\nThe closest of all that was tried\n";
        text += &render(self.ranked.iter().take(TOLD), tables);
        text += "\nWhat comes closest to each table alone, and by how much of what was tried its claim is shown\n";
        text += &render_by_table(&self.by_table);
        for table in &self.by_table {
            table.tell(&mut text);
        }
        if !self.confirmed.is_empty() {
            let seeds = self.confirmed_seeds;
            write!(text, "\nThe base case, the closest and what shows most claims again, as the base case is run: {seeds} seeds\n")
                .expect("a string takes all");
            text += &render(self.confirmed.iter(), tables);
        }
        if self.not_confirmed > 0 {
            writeln!(text, "{} more were worth it and not run again, {}", self.not_confirmed, self.why())
                .expect("a string takes all");
        }
        text += "\nThis is what assumptions would do to the figures, not what was assumed: the base case stays as it was chosen.\n\n";
        printer.data(&text)?;
        Ok(())
    }

    /// Why something was left out.
    fn why(&self) -> &'static str {
        if self.interrupted { "since it was interrupted" } else { "for want of time" }
    }

    /// What was done, and what was not.
    fn effort(&self) -> String {
        let mut text =
            format!("{} seeds each, {} where they leave a claim undecided", self.seeds, self.confirmed_seeds);
        if !self.brief.is_empty() {
            write!(text, ", {}", self.brief).expect("a string takes all");
        }
        let tried: usize = self.stages.iter().map(|counted| counted.tried).sum();
        writeln!(text, "; of {} combinations of answers {tried} were tried:", self.combinations)
            .expect("a string takes all");
        for Counted { stage, planned, tried } in &self.stages {
            let of = planned.map_or_else(String::new, |planned| format!(" of {planned}"));
            writeln!(text, "  {}: {tried}{of}", told(*stage)).expect("a string takes all");
        }
        if self.left_out > 0 {
            writeln!(text, "  left out, {}: {}", self.why(), self.left_out).expect("a string takes all");
        }
        text
    }
}

impl ByTable {
    /// The figures that show the claim or do not.
    fn tell(&self, text: &mut String) {
        let Self { table, evidence, .. } = self;
        writeln!(text, "{table}, the closest: {evidence}").expect("a string takes all");
        if let Some(Shown { instead, deviation_rms_pct, evidence }) = &self.closest_shown {
            let deviation = deviation_rms_pct.map_or_else(String::new, |pct| format!(" ({pct:.1} %)"));
            writeln!(text, "{table}, the closest that shows the claim{deviation}: {}: {evidence}", taken(instead))
                .expect("a string takes all");
        }
    }
}

fn render<'a>(outcomes: impl Iterator<Item = &'a Outcome>, tables: usize) -> String {
    let mut table =
        Table::new([("deviation, %", Align::Right), ("claims shown", Align::Right), ("taken instead", Align::Left)]);
    for outcome in outcomes {
        table.row([
            pct(outcome.deviation_rms_pct),
            format!("{} of {tables}", outcome.claims_shown),
            taken(&outcome.instead),
        ]);
    }
    table.render()
}

fn render_by_table(tables: &[ByTable]) -> String {
    let figures = ["base case, %", "closest, %", "claim shown by", "of those drawn"].map(|name| (name, Align::Right));
    let columns = [("table", Align::Left)].into_iter().chain(figures).chain([("taken instead", Align::Left)]);
    let mut rendered = Table::new(columns);
    for table in tables {
        rendered.row([
            table.table.clone(),
            pct(table.base_deviation_rms_pct),
            pct(table.deviation_rms_pct),
            format!("{} of {}", table.claim_shown_by, table.tried),
            if table.drawn > 0 { format!("{} of {}", table.claim_shown_by_drawn, table.drawn) } else { String::new() },
            taken(&table.instead),
        ]);
    }
    rendered.render()
}

fn pct(deviation: Option<f64>) -> String {
    deviation.map_or_else(String::new, |deviation| format!("{deviation:.1}"))
}

/// What differs from the base case.
pub(super) fn instead<'a>(open: &'a [Open], answers: &'a [usize]) -> impl Iterator<Item = [&'static str; 2]> + 'a {
    let other = |(open, answer): &(&Open, &usize)| **answer > 0 && **answer < open.answers.len();
    open.iter().zip(answers).filter(other).map(|(open, answer)| [open.asks, open.answers[*answer]])
}

/// The same in words.
pub(super) fn taken(instead: &[[&'static str; 2]]) -> String {
    let taken: Vec<String> = instead.iter().map(|[asks, answer]| format!("{asks}: {answer}")).collect();
    if taken.is_empty() { "the base case".to_owned() } else { taken.join("; ") }
}

#[cfg(test)]
mod tests {
    use lastmile_published::explorable;

    use super::*;

    #[test]
    fn a_table_is_told_by_its_figures_and_by_what_shows_its_claim() {
        let explore = explorable("sun1998").unwrap();
        let space = Space::new(&explore.open(), &["5.8"]);
        let told = |shown: [bool; 2]| {
            let mut acks_delayed = space.base();
            acks_delayed[1] = 1;
            let tried = [(Stage::Base, space.base(), 20.0), (Stage::Alone, acks_delayed, 30.0)];
            let tried = tried.into_iter().zip(shown).map(|((stage, answers, deviation), shown)| {
                let judged =
                    Judged { deviation_rms_pct: Some(deviation), shown, evidence: format!("figures {deviation}") };
                Tried { stage, answers, tables: vec![judged] }
            });
            let found = Found { tried: tried.collect(), ..Found::default() };
            let mut text = String::new();
            Explored::new(("sun1998", explore), &["5.8"], &space, &found, None).by_table[0].tell(&mut text);
            text
        };
        assert_eq!(told([true, true]), "5.8, the closest: figures 20\n");
        assert_eq!(told([false, false]), "5.8, the closest: figures 20\n");
        assert_eq!(
            told([false, true]),
            "5.8, the closest: figures 20\n\
             5.8, the closest that shows the claim (30.0 %): delayed ACKs: one for two segments, within 200 ms: figures 30\n"
        );
    }
}
