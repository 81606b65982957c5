//! A panel: a heading, and for each series its label, value, sparkline and scale.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::symbols::bar::{NINE_LEVELS, Set};
use ratatui::widgets::{Sparkline, Widget};

use super::plan::{Plan, rows};
use super::style::{dim, head};
use crate::history::History;
use crate::locale::Look;
use crate::snapshot::{Panel, Series, Unit};
use crate::text::{below, first, left, right, rule};

/// Levels of a sparkline in one cell.
const LEVELS: f64 = 8.0;
/// Columns of a value with its unit, such as `16.0 Mbit/s`.
const VALUE: u16 = 11;
/// The most columns of a label.
const LABEL: usize = 16;
/// Columns of a scale, such as `max 16.0 Mbit/s`.
const SCALE: u16 = 16;
/// Scales are shown from this width of a panel on.
const WITH_SCALE: u16 = 56;

/// The levels in ASCII.
const ASCII: Set<'static> = Set {
    full: "#",
    seven_eighths: "#",
    three_quarters: "=",
    five_eighths: "=",
    half: "-",
    three_eighths: "-",
    one_quarter: ".",
    one_eighth: ".",
    empty: " ",
};

pub(super) fn draw(panel: &Panel, history: &History, buffer: &mut Buffer, area: Rect, plan: &Plan, look: Look) {
    rule(buffer, first(area), &panel.title, (look, head(look)));
    let shown = || panel.series.iter().take(plan.series);
    let labels = shown().map(|series| series.label.chars().count()).max().unwrap_or(0);
    let label = rows(labels.min(LABEL));
    let mut rest = below(area, 1);
    for series in shown() {
        let height = rows(plan.tall).min(rest.height);
        let room = Rect { height, ..rest };
        let line = first(room);
        left(buffer, Rect { width: line.width.min(label), ..line }, &series.label, Style::new());
        let value = series.value.map_or_else(|| "-".to_owned(), |value| series.unit.show(value));
        let place = Rect { x: line.x + label + 1, width: VALUE, ..line }.intersection(line);
        right(buffer, place, &value, Style::new());
        let taken = label + 1 + VALUE + 1;
        let scale = if area.width >= WITH_SCALE { SCALE } else { 0 };
        let width = area.width.saturating_sub(taken + scale);
        let bars = Rect { x: room.x + taken, width, ..room }.intersection(room);
        let values = history.latest(&panel.title, &series.label, width.into());
        let full = full_scale(series, &values);
        sparkline(series.unit, &values, (full, bars.height), look).render(bars, buffer);
        if scale > 0
            && let Some(full) = full
        {
            let scale_text = match series.full_scale {
                Some(full) => format!(" of {}", series.unit.show_constant(full)),
                None => format!(" max {}", series.unit.show(full)),
            };
            let place = Rect { x: line.right() - scale, width: scale, ..line };
            left(buffer, place, &scale_text, dim(look));
        }
        rest = below(rest, height);
    }
}

/// The value at the full height: the given one, or the largest that is shown. `None` if nothing is
/// above zero.
fn full_scale(series: &Series, values: &[Option<f64>]) -> Option<f64> {
    let largest = values.iter().flatten().copied().fold(0.0, f64::max);
    series.full_scale.or(Some(largest)).filter(|full| *full > 0.0)
}

/// The newest value is at the right. A value above zero has at least one level.
fn sparkline(unit: Unit, values: &[Option<f64>], (full, rows): (Option<f64>, u16), look: Look) -> Sparkline<'static> {
    // Far more than the levels of the tallest sparkline.
    const FINE: f64 = LEVELS * 1000.0;
    let least = FINE / (LEVELS * f64::from(rows.max(1)));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and FINE")]
    let level = |value: f64| match full {
        Some(full) if value > 0.0 => ((value / full).min(1.0) * FINE).max(least) as u64,
        _ => 0,
    };
    let colour = match unit {
        Unit::BitsPerSecond | Unit::Percent => Color::Green,
        Unit::Seconds => Color::Yellow,
        Unit::Bytes => Color::Blue,
        Unit::PerSecond | Unit::Count => Color::Magenta,
    };
    // Right to left, so that the newest value is at the right of a sparkline that is not full yet.
    Sparkline::default()
        .data(values.iter().rev().map(|value| value.map(level)).collect::<Vec<_>>())
        .direction(ratatui::widgets::RenderDirection::RightToLeft)
        .max(FINE as u64)
        .bar_set(if look.unicode { NINE_LEVELS } else { ASCII })
        .absent_value_symbol(" ")
        .style(if look.colour { Style::new().fg(colour) } else { Style::new() })
}
