//! The result on a terminal: tables that fit its width, and what limited each flow.
//!
//! Plain text without escape sequences, whatever names hold: whoever prints may set headings in bold where colour is wanted. Tables are laid out by
//! `comfy-table`; columns that do not fit wrap.

use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, TableStyle, Width};

use lastmile_text::shown;

use crate::Run;
use crate::format;
use crate::schema::{Flow, PhaseFlow, Summary};
use crate::seeds::Seeded;
use crate::tabular::{self, Kind, Table};

/// Rows of one table; `summary.json` has them all.
const MOST_ROWS: usize = 40;
/// Flows whose limits are told in words.
const MOST_EXPLAINED: usize = 8;
/// A word of more characters is cut where a table would be too wide.
const LONGEST_WORD: u16 = 20;
/// Narrower than this nothing can be laid out.
const LEAST_WIDTH: u16 = 40;

/// The result of a run for a terminal of `width` columns.
#[must_use]
pub fn run(summary: &Summary, width: u16) -> String {
    let mut text = String::new();
    let mut first = tabular::told_first(summary);
    first.truncate(MOST_ROWS);
    table(&mut text, &tabular::groups(summary), width);
    table_of(&mut text, &tabular::flows(summary, &first), (first.len(), summary.flows.len()), width);
    for note in &summary.notes {
        wrap(&mut text, note, 1, width);
    }
    explanations(&mut text, summary, &first, width);
    if summary.phases.len() > 1 {
        table(&mut text, &tabular::phases(summary), width);
    }
    let datagrams = tabular::datagram_flows(summary);
    table_of(&mut text, &tabular::datagrams(summary, MOST_ROWS), (MOST_ROWS, datagrams), width);
    table(&mut text, &tabular::datagram_classes(summary), width);
    table(&mut text, &tabular::probes(summary), width);
    table(&mut text, &tabular::pages(summary), width);
    table(&mut text, &tabular::lines(summary), width);
    table(&mut text, &tabular::links(summary), width);
    table(&mut text, &tabular::waits_by_class(summary), width);
    table(&mut text, &tabular::ports(summary), width);
    table(&mut text, &tabular::edges(summary), width);
    table(&mut text, &tabular::abr_sources(summary), width);
    table(&mut text, &tabular::virtual_paths(summary), width);
    if !summary.conservation.holds {
        table(&mut text, &tabular::conservation(summary), width);
    }
    text
}

/// Several runs of one scenario, a column each, for a terminal of `width` columns.
#[must_use]
pub fn comparison(runs: &[Run], width: u16) -> String {
    let mut text = String::new();
    table(&mut text, &tabular::comparison(runs), width);
    text
}

/// Means over seeds, for a terminal of `width` columns.
#[must_use]
pub fn over_seeds(seeded: &[Seeded], width: u16) -> String {
    let mut text = String::new();
    whole(&mut text, &tabular::over_seeds(seeded), width);
    text
}

/// Appends a table under its heading, every row of it.
pub(crate) fn whole(text: &mut String, table: &Table, width: u16) {
    table_with(text, table, (table.rows.len(), table.rows.len()), width);
}

/// Appends a table under its heading; nothing for a table without rows.
fn table(text: &mut String, table: &Table, width: u16) {
    table_of(text, table, (MOST_ROWS, table.rows.len()), width);
}

/// The same with at most so many rows, of so many in all.
fn table_of(text: &mut String, table: &Table, (most, all): (usize, usize), width: u16) {
    table_with(text, table, (all, most), width);
}

/// The same with at most so many rows.
fn table_with(text: &mut String, table: &Table, (all, most): (usize, usize), width: u16) {
    if table.rows.is_empty() {
        return;
    }
    let width = width.max(LEAST_WIDTH);
    let whole_words = laid_out(table, most, width, true);
    let fits = whole_words.lines().all(|line| line.chars().count() <= usize::from(width));
    let laid_out = if fits { whole_words } else { laid_out(table, most, width, false) };
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&format!("{}\n{laid_out}\n", shown::line(&table.title)));
    if all > most {
        text.push_str(&format!(" … {} more\n", all - most));
    }
}

/// The table in `width` columns of text, or in more if `whole_words` need more.
fn laid_out(table: &Table, most: usize, width: u16, whole_words: bool) -> String {
    let mut laid_out = comfy_table::Table::new();
    laid_out
        .load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')))
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width)
        .set_header(table.columns.iter().map(|column| cell(&shown::lines(&column.name), column.kind)));
    for row in table.rows.iter().take(most) {
        laid_out
            .add_row(row.iter().zip(&table.columns).map(|(content, column)| cell(&shown::line(content), column.kind)));
    }
    for (number, (column, laid_out)) in table.columns.iter().zip(laid_out.column_iter_mut()).enumerate() {
        // A number that wraps cannot be read; words can, but not their parts.
        if column.kind == Kind::Number {
            laid_out.set_constraint(ColumnConstraint::ContentWidth);
        } else if whole_words {
            let least = Width::Fixed(longest_word(table, number) + laid_out.padding_width());
            laid_out.set_constraint(ColumnConstraint::LowerBoundary(least));
        }
    }
    laid_out.trim_fmt()
}

/// Characters of the longest word of a column, its head included, that is not cut.
fn longest_word(table: &Table, column: usize) -> u16 {
    let cells = table.rows.iter().filter_map(|row| row.get(column)).map(String::as_str);
    let words = cells.chain([table.columns[column].name.as_str()]).flat_map(str::split_whitespace);
    let longest = words.map(|word| word.chars().count()).max().unwrap_or(0);
    longest.try_into().unwrap_or(LONGEST_WORD).min(LONGEST_WORD)
}

fn cell(content: &str, kind: Kind) -> Cell {
    let alignment = if kind == Kind::Number { CellAlignment::Right } else { CellAlignment::Left };
    Cell::new(content).set_alignment(alignment)
}

/// What limited each flow, in words.
fn explanations(text: &mut String, summary: &Summary, first: &[&Flow], width: u16) {
    if summary.flows.is_empty() {
        return;
    }
    text.push_str("\nWhat limited each flow\n");
    for flow in first.iter().take(MOST_EXPLAINED) {
        let mut phases: Vec<String> = Vec::new();
        for phase in &summary.phases {
            let same = phase.flows.iter().filter(|other| other.name == flow.name && !other.explanation.is_empty());
            let told =
                |same: &PhaseFlow| format!("{}, {}: {}", phase.name, format::rate(same.goodput_bps), same.explanation);
            phases.extend(same.map(told));
        }
        if phases.len() > 1 {
            wrap(text, &flow.name, 1, width);
            phases.iter().for_each(|told| wrap(text, told, 3, width));
        } else {
            let why = if flow.explanation.is_empty() { "not known" } else { &flow.explanation };
            wrap(text, &format!("{}, {}: {why}", flow.name, format::rate(flow.goodput_bps)), 1, width);
        }
    }
    if summary.flows.len() > MOST_EXPLAINED {
        text.push_str(&format!(" … {} more flows\n", summary.flows.len() - MOST_EXPLAINED));
    }
}

/// Appends `words` in lines of `width`, the first indented by `indent`, those after it by two more.
fn wrap(text: &mut String, words: &str, indent: usize, width: u16) {
    let width = usize::from(width.max(LEAST_WIDTH));
    let mut line = " ".repeat(indent);
    let mut empty = true;
    for word in shown::line(words).split(' ') {
        if !empty && line.chars().count() + 1 + word.chars().count() > width {
            text.push_str(&line);
            text.push('\n');
            line = " ".repeat(indent + 2);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    text.push_str(&line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Phase;

    fn summary() -> Summary {
        let explanation =
            "receive window 64 KiB / round trip 3.22 s, of which 3.17 s is the queue of link up".to_owned();
        let flow = Flow { name: "download".into(), goodput_bps: 1.2e6, bound_bps: Some(1.6e6), ..Flow::default() };
        let phase = |name: &str| Phase {
            name: name.into(),
            flows: vec![PhaseFlow {
                name: "download".into(),
                explanation: explanation.clone(),
                ..PhaseFlow::default()
            }],
            ..Phase::default()
        };
        Summary {
            flows: vec![flow],
            phases: vec![phase("before upload"), phase("during upload")],
            ..Summary::default()
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in [60, 80, 120, 200] {
            for line in run(&summary(), width).lines() {
                assert!(line.chars().count() <= usize::from(width), "{width}: {line:?}");
            }
        }
    }

    #[test]
    fn the_result_stands_beside_its_bound() {
        let text = run(&summary(), 120);
        let row = text.lines().find(|line| line.contains("download")).unwrap();
        assert!(row.contains("1.2 Mbit/s") && row.contains("1.6 Mbit/s") && row.contains("75 %"), "{row}");
        assert!(!text.contains('\u{1b}'), "no escape sequences");
    }

    #[test]
    fn each_phase_tells_what_limited_the_flow() {
        let text = run(&summary(), 200);
        assert!(text.contains("   during upload, 0 bit/s: receive window 64 KiB / round trip 3.22 s"), "{text}");
    }

    #[test]
    fn a_table_of_many_rows_ends_with_how_many_are_left() {
        let flows = (0..100).map(|n| Flow { name: format!("f-{n}"), ..Flow::default() }).collect();
        let text = run(&Summary { flows, ..Summary::default() }, 100);
        assert!(text.contains("… 60 more\n"), "{text}");
    }

    #[test]
    fn a_column_that_only_a_flow_beyond_those_shown_needs_is_there() {
        let mut flows: Vec<Flow> = (0..100).map(|n| Flow { name: format!("f-{n}"), ..Flow::default() }).collect();
        let text = |flows: &Vec<Flow>| run(&Summary { flows: flows.clone(), ..Summary::default() }, 100);
        assert!(!text(&flows).contains("Timeouts"));
        flows[99].timeouts = Some(1);
        assert!(text(&flows).contains("Timeouts"));
    }
}
