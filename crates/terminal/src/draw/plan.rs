//! The rows given to each part of a view.

use crate::snapshot::Panel;

/// Panels stand side by side from this width on.
const SIDE_BY_SIDE: u16 = 100;
/// The most rows of one sparkline.
const TALLEST: usize = 4;
/// Series of a panel that are shown before a table is cut.
const LEAST: usize = 5;
/// Lines of messages that are shown before sparklines grow.
const LEAST_LOG: usize = 3;
/// The least rows of tables that are worth showing: head, rule, row.
const LEAST_TABLE: usize = 4;

/// The rows given to each part.
#[derive(Debug)]
pub(super) struct Plan {
    /// Panels in one row of panels.
    pub(super) across: usize,
    /// Series shown of each panel, at most.
    pub(super) series: usize,
    /// Rows of each sparkline.
    pub(super) tall: usize,
    /// Lines of tables.
    pub(super) tables: usize,
    /// Lines of messages.
    pub(super) log: usize,
}

impl Plan {
    /// The plan for `rows` rows below the heading.
    pub(super) fn new(panels: &[Panel], rows: usize, width: u16, (tables, lines): (usize, usize)) -> Self {
        let across = if width >= SIDE_BY_SIDE { 2 } else { 1 };
        let series = panels.iter().map(|panel| panel.series.len()).max().unwrap_or(0);
        let mut plan = Self { across, series, tall: 1, tables, log: lines.min(LEAST_LOG) };
        let excess = |plan: &Self| plan.rows(panels).saturating_sub(rows);
        while excess(&plan) > 0 && plan.log > 0 {
            plan.log -= 1;
        }
        while excess(&plan) > 0 && plan.series > LEAST {
            plan.series -= 1;
        }
        let cut = tables.saturating_sub(excess(&plan));
        plan.tables = if cut >= LEAST_TABLE || cut == tables { cut } else { 0 };
        while excess(&plan) > 0 && plan.series > 1 {
            plan.series -= 1;
        }
        let fits = |plan: Self| (plan.rows(panels) <= rows).then_some(plan);
        while plan.tall < TALLEST
            && let Some(taller) = fits(Self { tall: plan.tall + 1, ..plan })
        {
            plan = taller;
        }
        while plan.log < lines
            && let Some(longer) = fits(Self { log: plan.log + 1, ..plan })
        {
            plan = longer;
        }
        plan
    }

    /// The rows of all parts. Messages have a rule above them.
    fn rows(&self, panels: &[Panel]) -> usize {
        let panels: usize = panels.chunks(self.across).map(|chunk| self.panel_rows(chunk)).sum();
        panels + self.tables + self.log + usize::from(self.log > 0)
    }

    /// The rows of panels that stand side by side.
    pub(super) fn panel_rows(&self, panels: &[Panel]) -> usize {
        let series = panels.iter().map(|panel| panel.series.len()).max().unwrap_or(0).min(self.series);
        1 + series * self.tall
    }
}

/// Rows of a terminal.
pub(super) fn rows(rows: usize) -> u16 {
    u16::try_from(rows).unwrap_or(u16::MAX)
}
