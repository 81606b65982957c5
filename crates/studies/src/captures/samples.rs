//! Events as samples for `series.parquet`: entities are connections and directions, such as
//! `3 down`.

use lastmile_analysis::{Connection, Direction};
use lastmile_results::Series;
use lastmile_units::Instant;

use super::read::Analysed;

pub(super) fn of(analysed: &Analysed) -> Vec<Series> {
    let both = |(index, connection): (usize, &Connection)| {
        let mut series = of_one(&format!("{} up", index + 1), &connection.up);
        series.extend(of_one(&format!("{} down", index + 1), &connection.down));
        series
    };
    analysed.connections.iter().enumerate().flat_map(both).collect()
}

/// The ordinal number of each event and the length of each pause, at its time.
fn of_one(entity: &str, direction: &Direction) -> Vec<Series> {
    let ordinals = |times: &[Instant]| -> Vec<(f64, f64)> {
        times.iter().zip(1_u32..).map(|(at, number)| (at.as_secs_f64(), f64::from(number))).collect()
    };
    let pauses = direction.events.pauses.iter().map(|pause| (pause.from.as_secs_f64(), pause.span.as_secs_f64()));
    let all = [
        ("timeouts", ordinals(&direction.events.timeouts_at)),
        ("fast_retransmits", ordinals(&direction.events.fast_retransmits_at)),
        ("pause_s", pauses.collect()),
    ];
    let filled = all.into_iter().filter(|(_, points)| !points.is_empty());
    filled.map(|(name, points)| Series { name: name.to_owned(), entity: entity.to_owned(), points }).collect()
}
