//! Text in lines of a buffer.

use lastmile_text::escape;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::locale::Look;

/// Writes `text` from the left of `line` on, as far as it fits; returns the columns taken. Control
/// characters are shown as escapes.
pub(crate) fn left(buffer: &mut Buffer, line: Rect, text: &str, style: Style) -> u16 {
    let line = line.intersection(buffer.area);
    if line.is_empty() {
        return 0;
    }
    let (end, _) = buffer.set_stringn(line.x, line.y, escape::line(text), line.width.into(), style);
    end - line.x
}

/// Writes ASCII text at the right of `line`, if it fits.
pub(crate) fn right(buffer: &mut Buffer, line: Rect, text: &str, style: Style) -> u16 {
    let width = u16::try_from(text.len()).unwrap_or(u16::MAX);
    if width > line.width {
        return 0;
    }
    left(buffer, Rect { x: line.right() - width, width, ..line }, text, style)
}

/// Fills the rest of `line` with a rule, after `title`.
pub(crate) fn rule(buffer: &mut Buffer, line: Rect, title: &str, (look, style): (Look, Style)) {
    let dash = if look.unicode { "─" } else { "-" };
    let title = if title.is_empty() { String::new() } else { format!("{dash}{dash} {title} ") };
    let taken = left(buffer, line, &title, style);
    let rest = Rect { x: line.x + taken, width: line.width.saturating_sub(taken), ..line };
    left(buffer, rest, &dash.repeat(rest.width.into()), style);
}

/// The part of `area` below its first `rows` rows.
pub(crate) fn below(area: Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    Rect { y: area.y + rows, height: area.height - rows, ..area }
}

/// The first row of `area`; an empty area has an empty one.
pub(crate) fn first(area: Rect) -> Rect {
    Rect { height: area.height.min(1), ..area }
}
