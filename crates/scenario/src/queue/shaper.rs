//! Shapers.

use lastmile_queueing::meter::tbf::{Config, Peak, TbfError};
use lastmile_queueing::spec::Over;
use lastmile_units::{BitRate, ByteCount, Duration, WireBytes};

use super::{BELOW, DROP, LIMIT, Readable, Wire, below};
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};

impl Readable for Over<Config> {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"tbf\"`",
        about: "Token bucket filter: the queue below leaves at a rate, with a burst above it. Sizes are those on \
                the wire.",
        keys: &[
            Key::required("rate", Kind::Rate, "Rate on the wire, headers and cells included."),
            Key::required(
                "burst",
                Kind::WireBytes,
                "Burst after a pause, such as \"3392 wire bytes\"; at least the largest packet.",
            ),
            Key::optional("peak", Kind::Rate, "as fast as the line", "The rate within a burst; above `rate`."),
            Key::optional("peak_burst", Kind::WireBytes, "one packet of `largest`", "Burst at the peak rate."),
            Key::with_default("largest", Kind::Bytes, "1500 B", "The largest IP packet to expect.")
                .at_least("1 B")
                .at_most("65535 B"),
            BELOW,
            LIMIT,
            DROP,
        ],
    };

    fn read(table: &Table<'_>, wire: &Wire, depth: usize) -> Option<Self> {
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
        let config = Config { rate, burst, peak, largest, catch_up: Duration::ZERO };
        if let Err(error) = config.check(&wire.layer) {
            let (key, hint) = match error {
                TbfError::BurstTooSmall { needed, .. } => {
                    ("burst", Some(format!("at least {needed} for packets of {largest}")))
                }
                TbfError::PeakBurstTooSmall { .. } => ("peak_burst", None),
                TbfError::PeakNotAboveRate { .. } => ("peak", None),
            };
            table.error(key, format!("{}: {error}", table.path(key)), hint);
            return None;
        }
        Some(Self::new(config, queue?))
    }
}
