//! What applications did for the people who use them.

use super::columns::{columns, without_empty_columns};
use super::{Kind, Table};
use crate::format;
use crate::schema::{Summary, Video};

/// One row per video viewer.
pub(crate) fn videos(summary: &Summary) -> Table {
    use Kind::{Name, Number, Words};
    let columns = columns(&[
        ("Video", Name),
        ("Start", Number),
        ("Played", Number),
        ("Stalls", Number),
        ("Stalled", Number),
        ("Longest", Number),
        ("Bit rate", Number),
        ("Switches", Number),
        ("Quality", Number),
        ("Segments by bit rate", Words),
    ]);
    let rows = summary.applications.videos.iter().map(video).collect();
    without_empty_columns(Table { title: "Videos".to_owned(), columns, rows })
}

fn video(video: &Video) -> Vec<String> {
    let stalled = (video.stalls > 0).then_some(video.stalled_s);
    let shares = video.ladder.iter().filter(|step| step.share > 0.0);
    let shares = shares.map(|step| format!("{} {}", format::rate(step.bit_rate_bps), format::percent(step.share)));
    vec![
        video.name.clone(),
        format::or_dash(video.start_s, format::seconds),
        format::seconds(video.played_s),
        format::grouped(video.stalls),
        format::or_dash(stalled, format::seconds),
        format::or_dash(video.stall_max_s, format::seconds),
        format::or_dash(video.bit_rate_mean_bps, format::rate),
        format::grouped(video.switches),
        format::or_dash(video.quality_bps, format::signed_rate),
        shares.collect::<Vec<_>>().join(", "),
    ]
}
