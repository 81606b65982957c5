//! The layout: a heading, panels, tables, messages, in the order of importance.
//!
//! On a terminal that is too small the messages are cut first, then the less important series, then
//! the tables. On a tall one the sparklines grow.

mod panel;
mod plan;
mod style;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use lastmile_text::table::wrap;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use crate::history::History;
use crate::locale::Look;
use crate::snapshot::Snapshot;
use crate::text::{below, first, left, right, rule};
use plan::{Plan, rows};
use style::{dim, head};

/// Columns between panels that stand side by side.
const GUTTER: u16 = 2;

/// All that a view shows.
#[derive(Default, Debug)]
pub(crate) struct Content {
    pub(crate) title: String,
    pub(crate) snapshot: Snapshot,
    pub(crate) history: History,
    /// Messages, the newest last.
    pub(crate) log: VecDeque<String>,
}

/// Draws `content` in an area of this size. `elapsed` is the age of the view.
pub(crate) fn draw(content: &Content, area: Rect, look: Look, elapsed: Duration) -> Buffer {
    let mut buffer = Buffer::empty(area);
    let mut rest = heading(content, &mut buffer, area, look, elapsed);
    let tables = tables(content, area.width, look);
    let log = log(content, area);
    let plan = Plan::new(&content.snapshot.panels, rest.height.into(), area.width, (tables.len(), log.len()));
    for panels in content.snapshot.panels.chunks(plan.across) {
        let rows = rows(plan.panel_rows(panels));
        let across = u16::try_from(plan.across).unwrap_or(1);
        let width = (area.width - GUTTER.min(area.width) * (across - 1)) / across;
        for (index, panel) in (0_u16..).zip(panels) {
            let place = Rect { x: rest.x + index * (width + GUTTER), width, ..rest }.intersection(rest);
            panel::draw(panel, &content.history, &mut buffer, place, &plan, look);
        }
        rest = below(rest, rows);
    }
    for (style, line) in cut(tables, plan.tables) {
        left(&mut buffer, first(rest), &line, style);
        rest = below(rest, 1);
    }
    if plan.log > 0 {
        rule(&mut buffer, first(rest), "messages", (look, head(look)));
        rest = below(rest, 1);
        for line in &log[log.len() - plan.log..] {
            left(&mut buffer, first(rest), line, Style::new());
            rest = below(rest, 1);
        }
    }
    buffer
}

/// Draws title, time and status; returns the area below.
fn heading(content: &Content, buffer: &mut Buffer, area: Rect, look: Look, elapsed: Duration) -> Rect {
    let seconds = elapsed.as_secs();
    let time = format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let column = content.history.interval().map(|interval| format!("a column is {:.1} s  ", interval.as_secs_f64()));
    let keys = format!("{}{time}  q leaves", column.filter(|_| area.width >= 72).unwrap_or_default());
    let line = first(area);
    let taken = right(buffer, line, &keys, dim(look));
    let room = Rect { width: line.width.saturating_sub(taken + 1), ..line };
    left(buffer, room, &content.title, Style::new().add_modifier(Modifier::BOLD));
    let rest = below(area, 1);
    if content.snapshot.status.is_empty() {
        return rest;
    }
    left(buffer, first(rest), &content.snapshot.status, Style::new());
    below(rest, 1)
}

/// The lines of all tables, each with its style.
fn tables(content: &Content, width: u16, look: Look) -> Vec<(Style, String)> {
    let mut lines = Vec::new();
    for table in content.snapshot.tables.iter().filter(|table| !table.rows.is_empty()) {
        let text = table.render_within(width);
        let text = if look.unicode { text } else { text.replace('─', "-") };
        let title = (!table.title.is_empty()).then(|| (head(look), table.title.clone()));
        lines.extend(title.into_iter().chain(text.lines().map(|line| (Style::new(), line.to_owned()))));
    }
    lines
}

/// The latest messages, in lines of the width of `area`, as many as it has rows.
fn log(content: &Content, area: Rect) -> Vec<String> {
    let newest = content.log.len().saturating_sub(area.height.into());
    let mut text = String::new();
    content.log.range(newest..).for_each(|message| wrap(&mut text, message, 0, area.width));
    text.lines().map(str::to_owned).collect()
}

/// The first `rows` lines, of which the last one says how many are missing.
fn cut(mut lines: Vec<(Style, String)>, rows: usize) -> Vec<(Style, String)> {
    if lines.len() > rows {
        let missing = lines.len() - rows + 1;
        lines.truncate(rows);
        if let Some((_, last)) = lines.last_mut() {
            *last = format!(" ... {missing} more lines on a taller terminal");
        }
    }
    lines
}
