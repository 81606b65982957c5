//! Shapers.

use lastmile_packet::Meta;
use lastmile_queueing::meter::tbf::Peak;
use lastmile_queueing::spec::Spec;
use lastmile_units::{BitRate, ByteCount, Duration, WireBytes};

use super::{BELOW, DROP, LIMIT, Wire, below};
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};

pub(crate) static TBF: Section = Section {
    heading: "`kind = \"tbf\"`",
    about: "Token bucket filter: the queue below leaves at a rate, with a burst above it. Sizes are those on the wire.",
    keys: &[
        Key::required("rate", Kind::Rate, "Rate on the wire, headers and cells included."),
        Key::required(
            "burst",
            Kind::WireBytes,
            "What may leave at once after a pause, such as \"3392 wire bytes\"; at least the largest packet.",
        ),
        Key::optional("peak", Kind::Rate, "as fast as the line", "The rate within a burst; above `rate`."),
        Key::optional("peak_burst", Kind::WireBytes, "one packet of `largest`", "What may leave at once even so."),
        Key::with_default("largest", Kind::Bytes, "1500 B", "The largest IP packet to expect.")
            .at_least("1 B")
            .at_most("65535 B"),
        BELOW,
        LIMIT,
        DROP,
    ],
};

pub(super) fn tbf(table: &Table<'_>, wire: &Wire, depth: usize) -> Option<Spec> {
    let rate: Option<BitRate> = table.get("rate");
    let burst: Option<WireBytes> = table.get("burst");
    let largest: Option<ByteCount> = table.get("largest");
    let peak: Option<BitRate> = table.optional("peak");
    let peak_burst: Option<WireBytes> = table.optional("peak_burst");
    if table.has("peak_burst") && !table.has("peak") {
        table.error("peak_burst", "peak_burst without peak", None);
    }
    let queue = below(table, &wire.shaped_to(rate), depth);
    let (rate, burst, largest) = (rate?, burst?, largest?);
    let peak = peak.map(|rate| Peak { rate, burst: peak_burst.unwrap_or_else(|| wire.layer.on_wire(largest)) });
    let shaper = |queue| Spec::Tbf { rate, burst, peak, largest, catch_up: Duration::ZERO, queue: Box::new(queue) };
    if let Err(error) = shaper(Spec::fifo(1)).build::<Meta>(&wire.layer) {
        let key = match error.problem.to_string() {
            problem if problem.starts_with("a peak rate") => "peak",
            problem if problem.starts_with("a peak burst") => "peak_burst",
            _ => "burst",
        };
        let hint =
            (key == "burst").then(|| format!("at least {} for packets of {largest}", wire.layer.on_wire(largest)));
        table.error(key, format!("{}: {}", table.path(key), error.problem), hint);
        return None;
    }
    queue.map(shaper)
}
