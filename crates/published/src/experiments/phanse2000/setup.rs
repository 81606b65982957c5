//! What Phanse 2000 leaves open, and the keys of a scenario that it sets.

use lastmile_queueing::random::Stream;

use crate::data::Table;
use crate::reproduction::{Means, RowResult};
use crate::value::Values;

use super::super::ExperimentError;
use super::super::trial::Overrides;
use super::whole;

/// What the thesis leaves open, in the base case or otherwise.
#[derive(Clone)]
pub(super) struct Setup {
    /// One-way delays, in ms.
    pub(super) line_delay_ms: u32,
    pub(super) backbone_delay_ms: u32,
    /// Queues at CPE and DSLAM.
    pub(super) queue: &'static str,
    /// The queue at the CPE, where it is another.
    pub(super) cpe_queue: Option<&'static str>,
    /// Receive window of a download, in bytes.
    pub(super) window_bytes: u32,
    /// Receive window of an upload, in bytes.
    pub(super) upload_window_bytes: u32,
    /// Tick of the TCP clock and least timeout.
    pub(super) clock: (&'static str, &'static str),
    /// First window, in segments.
    pub(super) initial_window: u8,
    /// Where several downloads run: how many, and within which time they start.
    pub(super) downloads: u64,
    pub(super) starts_within_s: u64,
    /// Delay of ACKs beside voice and e-mail.
    pub(super) beside_load_delayed_ack: &'static str,
    /// E-mail beside downloads: mean lengths of a burst and of a silence, with 64 kbit/s in the mean.
    pub(super) email: (&'static str, &'static str),
    /// Mean rate of the e-mail that is policed.
    pub(super) policed_email: &'static str,
    /// Queue at the gateway, in packets.
    pub(super) gateway_queue: u32,
    /// Of four clients behind a DSLAM so many have two-way traffic.
    pub(super) two_way_of_four: u64,
}

impl Setup {
    pub(super) fn base() -> Self {
        Self {
            line_delay_ms: 2,
            backbone_delay_ms: 5,
            queue: "1000 packets",
            cpe_queue: None,
            window_bytes: 65_535,
            upload_window_bytes: 65_535,
            clock: ("0 ms", "1 s"),
            initial_window: 1,
            downloads: 4,
            starts_within_s: 10,
            beside_load_delayed_ack: "0 ms",
            email: ("1 s", "9 s"),
            policed_email: "10 kbit/s",
            gateway_queue: 100,
            two_way_of_four: 2,
        }
    }

    /// Rates, encapsulation and packet size of a row, and what is open of every run. A seed draws up to 1 ms of delay on the backbone.
    pub(super) fn overrides(&self, settings: &Values, seed: u64) -> Result<Overrides, ExperimentError> {
        let encapsulation = settings.text("link_layer").ok_or(ExperimentError::MissingSetting("link_layer"))?;
        // The rule that the data infer: the MTU less 40 bytes of headers.
        let mss = settings.integer("mss_bytes").map_or_else(|| Ok(whole(settings, "ip_mtu_bytes")? - 40), Ok)?;
        let mut overrides = self.open(seed);
        overrides.set("access.encapsulation", encapsulation);
        overrides.set("access.down.rate", format_args!("{} bit/s", whole(settings, "down_bps")?));
        overrides.set("access.up.rate", format_args!("{} bit/s", whole(settings, "up_bps")?));
        overrides.set("tcp.mss", format_args!("{mss} B"));
        if let Some(delay) = settings.integer("delayed_ack_ms") {
            overrides.set("tcp.delayed_ack", format_args!("{delay} ms"));
        }
        Ok(overrides)
    }

    /// What is open of every run: delays, queues, TCP.
    pub(super) fn open(&self, seed: u64) -> Overrides {
        let mut overrides = Overrides::default();
        overrides.set("seed", seed);
        for key in ["access.down.delay", "access.up.delay"] {
            overrides.set(key, format_args!("{} ms", self.line_delay_ms));
        }
        let drawn = Stream::new(seed, "phanse2000 backbone").below(1_000);
        overrides
            .set("access.backbone.delay", format_args!("{} us", u64::from(self.backbone_delay_ms) * 1_000 + drawn));
        overrides.set("access.down.queue.limit", self.queue);
        overrides.set("tcp.receive_window", format_args!("{} B", self.window_bytes));
        overrides.set("tcp.clock_granularity", self.clock.0);
        overrides.set("tcp.min_rto", self.clock.1);
        overrides.set("tcp.initial_window", self.initial_window);
        overrides
    }

    /// The queue of the line, with a Smart ACK Dropper or without.
    pub(super) fn upstream(&self, sad: bool) -> String {
        let limit = self.cpe_queue.unwrap_or(self.queue);
        if sad {
            format!(r#"{{ kind = "sad", queue = {{ limit = "{limit}" }} }}"#)
        } else {
            format!(r#"{{ limit = "{limit}" }}"#)
        }
    }
}

/// Sizes of the files, where the data infer them.
pub(super) fn set_files(table: &Table, overrides: &mut Overrides) {
    if let Some(bytes) = table.inferred.integer("file_bytes").or_else(|| table.inferred.integer("download_bytes")) {
        overrides.set("traffic.download.bytes", format_args!("{bytes} B"));
    }
    if let Some(bytes) = table.inferred.integer("upload_bytes") {
        overrides.set("traffic.upload.bytes", format_args!("{bytes} B"));
    }
}

/// A row beside the means, its time also with the start-up that the published times contain.
pub(super) fn with_start_up(table: &Table, row: &crate::data::Row, means: Means) -> RowResult {
    const NAME: &str = "download_time_with_start_up_s";
    let mut result = RowResult::of_means(row, means);
    let offset = table.inferred.number("response_time_offset_s");
    let Some((offset, time)) = offset.zip(result.simulated.number("download_time_s")) else { return result };
    let time = super::super::significant(time + offset);
    result.simulated.set(NAME, time);
    if let Some(published) = row.published.number("download_time_s") {
        result.deviation.set(NAME, super::super::significant(time - published));
    }
    result
}
