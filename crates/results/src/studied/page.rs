//! The page of a study.

use maud::{Markup, html};

use super::design::Design;
use super::model::{Key, Study, Value};
use super::{figures, heat, paired, rows};
use crate::format::grouped;
use crate::report::document::styled;
use crate::report::gallery::Gallery;

const STYLE: &str = "\
h1,h2,h3,.caption{overflow-wrap:anywhere}
.plot .dots{fill:none;stroke-width:5.5;stroke-linecap:round}
.plot .cell{fill:var(--accent)}
.plot .in-cell{fill:var(--ink);stroke:var(--paper);stroke-width:3px;paint-order:stroke}
.plot .in-cell{font-size:11px;pointer-events:none}
.warning{border-left:4px solid var(--c1);padding-left:.6rem}
td.sure{font-weight:600}
";

/// The page as HTML: one file that needs no network. Equal studies give equal pages.
#[must_use]
pub fn page(study: &Study) -> String {
    let gallery = Gallery::default();
    let points = study.points();
    let design = Design::of(study, &points);
    let body = html! {
        header {
            h1 { (study.name) }
            @for line in &study.lines { p.caption { (line) } }
            @for warning in study.warnings.iter().take(MOST_WARNINGS) { p.warning { (warning) } }
            @if study.warnings.len() > MOST_WARNINGS {
                p.caption {
                    (study.warnings.len() - MOST_WARNINGS) " more such runs: lastmile study status prints them."
                }
            }
        }
        (varied(study))
        @if let Some(design) = &design {
            (figures::section(study, &points, design, &gallery))
            (heat::section(study, &points))
            (paired::section(study, &points, design))
        }
        (rows::section(study, &points))
        @if let Some(text) = &study.text {
            h2 { "Study file" }
            details { summary { "Text" } pre { (text.replace("\r\n", "\n")) } }
        }
        footer { p { "lastmile " (study.version) } }
    };
    styled((&study.name, study.version), STYLE, &body, &gallery)
}

/// The most runs without a result that the page names.
const MOST_WARNINGS: usize = 20;
/// The most values of a key that the page lists.
const MOST_VALUES: usize = 12;

/// The keys and their values.
fn varied(study: &Study) -> Markup {
    let values = |key: &Key| {
        let count = key.values.len();
        let texts = |values: &[Value]| values.iter().map(|value| value.text.clone()).collect::<Vec<_>>().join(", ");
        if count <= MOST_VALUES {
            return texts(&key.values);
        }
        let numbers: Vec<(f64, &str)> =
            key.values.iter().filter_map(|value| Some((value.number?, value.text.as_str()))).collect();
        let ends =
            numbers.iter().min_by(|a, b| a.0.total_cmp(&b.0)).zip(numbers.iter().max_by(|a, b| a.0.total_cmp(&b.0)));
        match ends {
            Some((low, high)) if numbers.len() == count => format!("from {} to {}", low.1, high.1),
            _ => format!("{}, …", texts(&key.values[..MOST_VALUES])),
        }
    };
    html! {
        @if !study.keys.is_empty() {
            h2 { "Keys and values" }
            div.scroll { table {
                thead { tr {
                    th.left scope="col" { "key" } th scope="col" { "number" } th.left scope="col" { "values" }
                } }
                tbody { @for key in &study.keys { tr {
                    td.name { (key.name) } td { (grouped(key.values.len() as u64)) } td.words { (values(key)) }
                } } }
            } }
        }
    }
}
