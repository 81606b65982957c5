//! One result schema: summary, series, captures, report.
