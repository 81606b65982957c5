//! Tables for a terminal: a head, a rule, rows.
//!
//! Numbers are aligned right. Words are aligned left and wrap. A table wider than the terminal
//! continues below, with its name columns repeated. Cells are escaped ([`escape`]), so the result is
//! plain text for any names. `comfy-table` does the layout.

use core::ops::Range;

use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, TableStyle, Width};

use crate::escape;

/// Longer words may be split in a table that is too wide, in characters.
const LONGEST_WORD: usize = 20;
/// Longer names may wrap in a table that is too wide, in characters.
const LONGEST_NAME: usize = 32;
/// The least width of a table, in characters.
const LEAST_WIDTH: usize = 40;
/// Blanks to the left and right of a column's cells.
const PADDING: usize = 2;
/// Blanks between columns.
const GAP: usize = 1;

/// A table: a heading, columns, rows of text.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The heading, for the caller to print.
    pub title: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, each with a cell for every column.
    pub rows: Vec<Vec<String>>,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// The name, units included. It may have several lines.
    pub name: String,
    /// The alignment of its cells.
    pub kind: Kind,
}

/// The alignment of cells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// The name of the row: left.
    Name,
    /// Text: left.
    Text,
    /// A sentence: left.
    Words,
    /// A number: right, on one line.
    Number,
}

impl Table {
    /// A table without title and rows.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = (S, Kind)>) -> Self {
        let columns = columns.into_iter().map(|(name, kind)| Column { name: name.into(), kind });
        Self { columns: columns.collect(), ..Self::default() }
    }

    /// Adds a row. Missing cells at its end are empty.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let mut row: Vec<String> = cells.into_iter().map(Into::into).collect();
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// The table at its full width.
    #[must_use]
    pub fn render(&self) -> String {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        self.laid_out(&all, None, false) + "\n"
    }

    /// The table in lines of at most `width` characters, if each column fits such a line together
    /// with the name columns.
    #[must_use]
    pub fn render_within(&self, width: u16) -> String {
        let width = usize::from(width).max(LEAST_WIDTH);
        let heads = self.heads();
        let part = |part: Range<usize>| {
            let columns: Vec<usize> = (0..heads).chain(part).collect();
            let whole_words = self.laid_out(&columns, Some(width), true);
            let fits = whole_words.lines().all(|line| line.chars().count() <= width);
            if fits { whole_words } else { self.laid_out(&columns, Some(width), false) }
        };
        self.parts(width).into_iter().map(|columns| part(columns) + "\n").collect::<Vec<_>>().join("\n")
    }

    /// The number of columns that name the row: those of this kind at the left, or else one.
    fn heads(&self) -> usize {
        self.columns.iter().take_while(|column| column.kind == Kind::Name).count().max(1).min(self.columns.len())
    }

    /// The columns next to the names in each part of a table of `width`. A column that does not fit
    /// is a part of its own.
    fn parts(&self, width: usize) -> Vec<Range<usize>> {
        let least: Vec<usize> = (0..self.columns.len()).map(|column| self.least_width(column)).collect();
        let heads = self.heads();
        let names = least[..heads].iter().sum::<usize>() + GAP * heads.saturating_sub(1);
        let mut parts = Vec::new();
        let mut part = heads..heads;
        let mut taken = names;
        for (index, column) in least.iter().enumerate().skip(heads) {
            taken += GAP + column;
            if taken > width && part.start < part.end {
                parts.push(part);
                part = index..index;
                taken = names + GAP + column;
            }
            part.end = index + 1;
        }
        parts.push(part);
        parts
    }

    /// The least readable width of a column. Numbers do not wrap, nor do names of a usual length;
    /// words do.
    fn least_width(&self, column: usize) -> usize {
        let Column { name, kind } = &self.columns[column];
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| escape::line(cell).into_owned());
        let texts: Vec<String> = cells.chain([escape::lines(name).into_owned()]).collect();
        let lines = || texts.iter().flat_map(|text| text.lines());
        let longest = |parts: &mut dyn Iterator<Item = &str>| parts.map(|part| part.chars().count()).max().unwrap_or(0);
        let text = match kind {
            Kind::Number => longest(&mut lines()),
            Kind::Name => longest(&mut lines()).min(LONGEST_NAME),
            Kind::Text | Kind::Words => longest(&mut lines().flat_map(str::split_whitespace)).min(LONGEST_WORD),
        };
        text + PADDING
    }

    /// These columns in lines of `width`, or of more if `whole_words` need more.
    fn laid_out(&self, columns: &[usize], width: Option<usize>, whole_words: bool) -> String {
        let mut table = comfy_table::Table::new();
        let head = columns.iter().map(|&number| &self.columns[number]);
        table
            .load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')))
            .set_content_arrangement(width.map_or(ContentArrangement::Disabled, |_| ContentArrangement::Dynamic))
            .set_header(head.map(|column| cell(&escape::lines(&column.name), column.kind)));
        if let Some(width) = width {
            table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
        }
        for row in &self.rows {
            let text = |number: usize| row.get(number).map_or("", String::as_str);
            table.add_row(columns.iter().map(|&number| cell(&escape::line(text(number)), self.columns[number].kind)));
        }
        for (&number, column) in columns.iter().zip(table.column_iter_mut()) {
            if self.columns[number].kind == Kind::Number {
                column.set_constraint(ColumnConstraint::ContentWidth);
            } else if whole_words {
                let least = u16::try_from(self.least_width(number)).unwrap_or(u16::MAX);
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
            }
        }
        table.trim_fmt()
    }
}

fn cell(content: &str, kind: Kind) -> Cell {
    let alignment = if kind == Kind::Number { CellAlignment::Right } else { CellAlignment::Left };
    Cell::new(content).set_alignment(alignment)
}

/// Appends `words` to `text` in lines of at most `width` characters. The first line is indented by
/// `indent`, the others by two more.
pub fn wrap(text: &mut String, words: &str, indent: usize, width: u16) {
    let width = usize::from(width).max(LEAST_WIDTH);
    let mut line = " ".repeat(indent);
    let mut empty = true;
    for word in escape::line(words).split(' ') {
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

    fn runs() -> Table {
        let mut table =
            Table::new([("run", Kind::Name), ("abc", Kind::Number), ("b", Kind::Number), ("c", Kind::Number)]);
        table.row(["none", "1", "234", "5"]);
        table.row(["cake", "10", "2", "567"]);
        table
    }

    #[test]
    fn columns_line_up_and_lines_end_where_their_text_ends() {
        let mut table = Table::new([("link", Kind::Name), ("µs", Kind::Number), ("note", Kind::Text)]);
        table.row(["ip", "1"]);
        table.row(["pppoa", "1000", "two cells"]);
        let lines =
            [" link      µs   note", "──────────────────────────", " ip         1", " pppoa   1000   two cells", ""];
        assert_eq!(table.render(), lines.join("\n"));
    }

    #[test]
    fn columns_line_up_under_escapes() {
        let mut table = Table::new([("name", Kind::Name), ("n", Kind::Number)]);
        table.row(["a\u{1b}[2J\r\nb", "1"]);
        table.row(["\u{202e}x", "12"]);
        let lines: Vec<String> = table.render().lines().map(str::to_owned).collect();
        assert_eq!(lines[2..], [" a\\u{1b}[2J\\r\\nb    1", " \\u{202e}x         12"]);
    }

    /// The last column begins a second part.
    #[test]
    fn a_table_that_is_too_wide_continues_below_with_its_names() {
        let mut wide = runs();
        for row in &mut wide.rows {
            row[1] = row[1].repeat(12);
        }
        let told = wide.render_within(40);
        let lines: Vec<&str> = told.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= 40), "{told}");
        assert_eq!(lines.iter().filter(|line| line.starts_with(" run")).count(), 2, "{told}");
        assert_eq!(lines[5], " run      c", "{told}");
        assert_eq!(wide.render_within(80), wide.render());
    }

    #[test]
    fn all_leading_names_are_repeated() {
        let wide = "1".repeat(24);
        let mut table =
            Table::new([("policy", Kind::Name), ("rate", Kind::Name), ("x", Kind::Number), ("y", Kind::Number)]);
        table.row(["cake", "1 Mbit/s", &wide, &wide]);
        let told = table.render_within(50);
        assert_eq!(told.matches("1 Mbit/s").count(), 2, "{told}");
        assert_eq!(table.render_within(120).matches("1 Mbit/s").count(), 1);
    }

    #[test]
    fn sentences_wrap_and_numbers_do_not() {
        let mut table = Table::new([("flow", Kind::Name), ("why", Kind::Words), ("n", Kind::Number)]);
        table.row(["download", "the receive window and the queue of the link up, where its ACKs wait", "1 234 567"]);
        let told = table.render_within(40);
        assert!(told.lines().all(|line| line.chars().count() <= 40), "{told}");
        assert!(told.contains("1 234 567"), "{told}");
    }
}
