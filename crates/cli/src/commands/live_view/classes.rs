//! The table of a policy's classes.

use lastmile_lab::classes::classes;
use lastmile_live::bump::Interval;
use lastmile_scenario::policy::Class;
use lastmile_terminal::Unit;
use lastmile_text::table::{Kind, Table};
use lastmile_units::BitRate;

use super::hops::{cells, reasons};

/// The classes with a queue in an interval: rate on the wire, backlog and its time at the ceiling
/// of the class, delays, drops since the start. Their shaper was built with the rate `shaper`.
pub(in crate::commands) fn table(
    title: &str,
    (policy, shaper): (&[Class], Option<BitRate>),
    hop: &Interval<'_>,
) -> Table {
    let numbers = ["rate", "backlog B", "ms", "p50 ms", "p99 ms"].map(|name| (name, Kind::Number));
    let drops = ("drops", Kind::Text);
    let mut table = Table::new([(title, Kind::Name)].into_iter().chain(numbers).chain([drops]));
    for one in classes(policy, shaper, hop) {
        #[expect(clippy::cast_precision_loss, reason = "for the eye only")]
        let ms = |bytes: f64| bytes * hop.wire_per_byte() * 8e3 / one.ceil.as_bps() as f64;
        let or_none = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
        let row = [
            one.class.name.clone(),
            or_none(one.sent_bps.map(|bps| Unit::BitsPerSecond.show(bps))),
            or_none(one.backlog_bytes.map(|bytes| format!("{bytes:.0}"))),
            or_none(one.backlog_bytes.map(|bytes| format!("{:.1}", ms(bytes)))),
        ];
        table.row(row.into_iter().chain(cells(one.waited)).chain([reasons(one.dropped.into_iter())]));
    }
    table
}
