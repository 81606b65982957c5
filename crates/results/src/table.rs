//! The result on a terminal: tables that fit its width, and the limits of each flow.
//!
//! The text has no escape sequences, for any names. A caller may print headings in bold.

use lastmile_text::escape;
use lastmile_text::table::wrap;

use crate::format;
use crate::schema::{Flow, PhaseFlow, Summary};
use crate::seeds::Seeded;
use crate::tabular::{self, Table};

/// The most rows of one table; `summary.json` has them all.
const MOST_ROWS: usize = 40;
/// The most flows whose limits are given in words.
const MOST_EXPLAINED: usize = 8;
/// The result of a run for a terminal of `width` columns.
#[must_use]
pub fn run(summary: &Summary, width: u16) -> String {
    let mut text = String::new();
    let mut first = tabular::worst_or_all(summary);
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
    table(&mut text, &tabular::videos(summary), width);
    table(&mut text, &tabular::backups(summary), width);
    table(&mut text, &tabular::conferences(summary), width);
    table(&mut text, &tabular::games(summary), width);
    table(&mut text, &tabular::lines(summary), width);
    table(&mut text, &tabular::links(summary), width);
    table(&mut text, &tabular::grants(summary), width);
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

/// Means over seeds, for a terminal of `width` columns.
#[must_use]
pub fn over_seeds(seeded: &[Seeded], width: u16) -> String {
    let mut text = String::new();
    whole(&mut text, &tabular::over_seeds(seeded), width);
    text
}

/// Appends a table under its heading, with every row.
pub(crate) fn whole(text: &mut String, table: &Table, width: u16) {
    table_with(text, table, (table.rows.len(), table.rows.len()), width);
}

/// Appends a table under its heading, with at most [`MOST_ROWS`] rows; nothing for a table without
/// rows.
fn table(text: &mut String, table: &Table, width: u16) {
    table_of(text, table, (MOST_ROWS, table.rows.len()), width);
}

/// Appends a table with at most `most` of its rows, of `all` in the result.
fn table_of(text: &mut String, table: &Table, (most, all): (usize, usize), width: u16) {
    table_with(text, table, (all, most), width);
}

/// Appends a table with at most `most` rows, and the number of rows omitted.
fn table_with(text: &mut String, table: &Table, (all, most): (usize, usize), width: u16) {
    if table.rows.is_empty() {
        return;
    }
    let first = Table { rows: table.rows.iter().take(most).cloned().collect(), ..table.clone() };
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(&format!("{}\n{}", escape::line(&table.title), first.render_within(width)));
    if all > most {
        text.push_str(&format!(" … {} more\n", all - most));
    }
}

/// The limits of each flow, in words; nothing where none is known, as for many flows that were not recorded one by one.
fn explanations(text: &mut String, summary: &Summary, first: &[&Flow], width: u16) {
    let in_phases = summary.phases.iter().flat_map(|phase| &phase.flows).map(|flow| &flow.explanation);
    let mut known = first.iter().map(|flow| &flow.limits.explanation).chain(in_phases);
    if known.all(String::is_empty) {
        return;
    }
    text.push_str("\nWhat limited each flow\n");
    let first = &first[..first.len().min(MOST_EXPLAINED)];
    for flow in first {
        let mut phases: Vec<String> = Vec::new();
        for phase in &summary.phases {
            let same = phase.flows.iter().filter(|other| other.name == flow.name && !other.explanation.is_empty());
            let sentence =
                |same: &PhaseFlow| format!("{}, {}: {}", phase.name, format::rate(same.goodput_bps), same.explanation);
            phases.extend(same.map(sentence));
        }
        if phases.len() > 1 {
            wrap(text, &flow.name, 1, width);
            phases.iter().for_each(|phase| wrap(text, phase, 3, width));
        } else {
            let why = if flow.limits.explanation.is_empty() { "not known" } else { &flow.limits.explanation };
            wrap(text, &format!("{}, {}: {why}", flow.name, format::rate(flow.goodput_bps)), 1, width);
        }
    }
    if summary.flows.len() > first.len() {
        text.push_str(&format!(" … {} more flows\n", summary.flows.len() - first.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{FlowLimits, Group, Phase};

    fn summary() -> Summary {
        let explanation =
            "receive window 64 KiB / round trip 3.22 s, of which 3.17 s is the queue of link up".to_owned();
        let flow = Flow {
            name: "download".into(),
            goodput_bps: 1.2e6,
            limits: FlowLimits { bound_bps: Some(1.6e6), ..FlowLimits::default() },
            ..Flow::default()
        };
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

    /// Of 100 flows the three worst are explained. None is where no limit is known.
    #[test]
    fn flows_without_their_limits_are_counted() {
        let text = |words: &str| {
            let limits = FlowLimits { explanation: words.into(), ..FlowLimits::default() };
            let flow = |n| Flow { name: format!("f-{n}"), limits: limits.clone(), ..Flow::default() };
            let worst = [7, 8, 9].map(|n| format!("f-{n}")).to_vec();
            let groups = vec![Group { worst, ..Group::default() }];
            run(&Summary { flows: (0..100).map(flow).collect(), groups, ..Summary::default() }, 100)
        };
        let known = text("congestion window");
        assert_eq!(known.matches("congestion window").count(), 3, "{known}");
        assert!(known.contains("… 97 more flows\n"), "{known}");
        assert!(!text("").contains("What limited"), "{}", text(""));
    }

    #[test]
    fn a_column_that_only_a_flow_beyond_those_shown_needs_is_there() {
        let mut flows: Vec<Flow> = (0..100).map(|n| Flow { name: format!("f-{n}"), ..Flow::default() }).collect();
        let text = |flows: &Vec<Flow>| run(&Summary { flows: flows.clone(), ..Summary::default() }, 100);
        assert!(!text(&flows).contains("Timeouts"));
        flows[99].transport.timeouts = Some(1);
        assert!(text(&flows).contains("Timeouts"));
    }
}
