//! Columns of tables, and the removal of empty ones.

use lastmile_text::table::{Column, Kind, Table};

/// The table without columns that are empty in every row.
pub(super) fn without_empty_columns(mut table: Table) -> Table {
    keep_filled(&mut table.columns, &mut table.rows);
    table
}

/// Keeps the columns that have a value in any row.
fn keep_filled<C>(columns: &mut Vec<C>, rows: &mut [Vec<String>]) {
    let filled: Vec<bool> = (0..columns.len()).map(|column| is_filled(rows, column)).collect();
    for row in rows {
        keep(row, &filled);
    }
    keep(columns, &filled);
}

/// True if any row has a value in this column.
pub(super) fn is_filled(rows: &[Vec<String>], column: usize) -> bool {
    rows.iter().any(|row| row[column] != NOTHING)
}

/// Keeps those of `columns` that are `filled`.
pub(super) fn keep<C>(columns: &mut Vec<C>, filled: &[bool]) {
    let mut filled = filled.iter();
    columns.retain(|_| filled.next().is_some_and(|filled| *filled));
}

/// The cell without a value.
pub(crate) const NOTHING: &str = "–";

pub(super) fn columns(names: &[(&str, Kind)]) -> Vec<Column> {
    names.iter().map(|(name, kind)| Column { name: (*name).to_owned(), kind: *kind }).collect()
}
