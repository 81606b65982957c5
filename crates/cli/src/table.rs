//! Text tables: columns padded to their widest cell, numbers to the right, two blanks between.

use core::ops::Range;
use std::borrow::Cow;

use lastmile_text::shown;

/// How a column lines up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A cell stays on its line, and is as wide as it looks.
fn shown(cell: String) -> String {
    match shown::line(&cell) {
        Cow::Borrowed(_) => cell,
        Cow::Owned(escaped) => escaped,
    }
}

/// A table with a head.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns and no rows.
    pub(crate) fn new<S: Into<String>>(columns: impl IntoIterator<Item = (S, Align)>) -> Self {
        Self {
            columns: columns.into_iter().map(|(title, align)| (shown(title.into()), align)).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; cells that it lacks are empty.
    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(|cell| shown(cell.into())).collect());
    }

    /// The table as lines, the first its head, none with blanks at the end.
    pub(crate) fn render(&self) -> String {
        self.part(&self.widths(), 0..self.columns.len())
    }

    /// The table in parts of at most `width` characters a line, one below the other, each with the first column. A column that does not fit beside
    /// the first has a part of its own.
    pub(crate) fn render_within(&self, width: usize) -> String {
        let widths = self.widths();
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut taken = 0;
        for (index, column) in widths.iter().enumerate().skip(1) {
            taken += GAP + column;
            match parts.last_mut() {
                Some(part) if taken <= width => part.end = index + 1,
                _ => {
                    taken = widths[0] + GAP + column;
                    parts.push(index..index + 1);
                }
            }
        }
        if parts.is_empty() {
            return self.render();
        }
        parts.into_iter().map(|part| self.part(&widths, part)).collect::<Vec<_>>().join("\n")
    }

    fn widths(&self) -> Vec<usize> {
        let width = |(index, (title, _)): (usize, &(String, Align))| {
            let cells = self.rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.chars().count());
            cells.chain([title.chars().count()]).max().unwrap_or(0)
        };
        self.columns.iter().enumerate().map(width).collect()
    }

    /// The first column, and those of `columns`.
    fn part(&self, widths: &[usize], columns: Range<usize>) -> String {
        let head: Vec<String> = self.columns.iter().map(|(title, _)| title.clone()).collect();
        let mut text = String::new();
        for row in std::iter::once(&head).chain(&self.rows) {
            let mut line = String::new();
            for (index, (&width, (_, align))) in widths.iter().zip(&self.columns).enumerate() {
                if index > 0 && !columns.contains(&index) {
                    continue;
                }
                let cell = row.get(index).map_or("", String::as_str);
                let padding = " ".repeat(width - cell.chars().count());
                line.push_str(&" ".repeat(if index == 0 { 0 } else { GAP }));
                match align {
                    Align::Left => line.extend([cell, &padding]),
                    Align::Right => line.extend([padding.as_str(), cell]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Blanks between columns.
const GAP: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_end_where_they_end() {
        let mut table = Table::new([("link", Align::Left), ("µs", Align::Right), ("note", Align::Left)]);
        table.row(["ip", "1"]);
        table.row(["pppoa", "1000", "two cells"]);
        assert_eq!(table.render(), "link     µs  note\nip        1\npppoa  1000  two cells\n");
    }

    #[test]
    fn columns_line_up_under_escapes() {
        let mut table = Table::new([("name\n", Align::Left), ("n", Align::Right)]);
        table.row(["a\u{1b}[2J\r\nb", "1"]);
        table.row(["\u{202e}x", "12"]);
        assert_eq!(table.render(), "name\\n            n\na\\u{1b}[2J\\r\\nb   1\n\\u{202e}x        12\n");
    }

    /// 4 + 2 + 3 + 2 + 3 characters are 14; the last column begins a second part.
    #[test]
    fn a_table_that_is_too_wide_goes_on_below_with_its_first_column() {
        let mut table =
            Table::new([("run", Align::Left), ("abc", Align::Right), ("b", Align::Right), ("c", Align::Right)]);
        table.row(["none", "1", "234", "5"]);
        table.row(["cake", "10", "2", "567"]);
        let parts = "run   abc    b\nnone    1  234\ncake   10    2\n\nrun     c\nnone    5\ncake  567\n";
        assert_eq!(table.render_within(14), parts);
        assert_eq!(table.render_within(19), table.render());
        assert_eq!(table.render_within(1).matches("run").count(), 3, "every column is somewhere");
    }
}
