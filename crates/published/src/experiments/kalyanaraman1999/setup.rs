//! What Kalyanaraman et al. 1999 leave open, and the keys of a scenario that it sets.

use lastmile_queueing::random::Stream;

use crate::data::{Row, Table};

use super::super::ExperimentError;
use super::super::trial::{Overrides, Trial};
use super::whole;

const DOWNLOAD: (&str, &str) =
    ("kalyanaraman1999/download.toml", include_str!("../../../scenarios/kalyanaraman1999/download.toml"));
const BOTH_WAYS: (&str, &str) =
    ("kalyanaraman1999/both-ways.toml", include_str!("../../../scenarios/kalyanaraman1999/both-ways.toml"));

/// What the paper leaves open, in the base case or otherwise.
#[derive(Clone)]
pub(super) struct Setup {
    /// One-way delay of the line, in ms.
    pub(super) delay_ms: u32,
    /// Queues, in packets.
    pub(super) down_queue: u32,
    pub(super) up_queue: u32,
    pub(super) variant: &'static str,
    /// Receive window of each transfer, in bytes.
    pub(super) window_bytes: u32,
    /// That of the upload, where it is another.
    pub(super) upload_window_bytes: Option<u32>,
    /// `delayed_ack` and `ack_every`.
    pub(super) delayed_ack: (&'static str, u8),
    pub(super) min_rto: &'static str,
    /// TCP payload of a packet, in bytes.
    pub(super) mss: u32,
    pub(super) duration_s: u32,
    /// Whether the dropper keeps duplicate ACKs.
    pub(super) keep_duplicates: bool,
    /// `release` of the regenerator.
    pub(super) release: &'static str,
    /// Regeneration factor where a table does not vary it.
    pub(super) factor: u64,
    /// Whether classes borrow.
    pub(super) borrow: bool,
}

/// What stands upstream, and what runs.
#[derive(Clone, Copy)]
pub(super) enum Network {
    /// A download in a FIFO.
    Alone,
    /// A download with the dropper.
    Dropper,
    /// A download with dropper and regenerator.
    Regenerator { factor: u64 },
    /// A download and an upload in a FIFO.
    BothWays,
    /// A download and an upload, with dropper, regenerator and two classes in each direction: their packet shares.
    Classes { reverse: f64, forward: f64 },
}

impl Setup {
    pub(super) fn base() -> Self {
        Self {
            delay_ms: 5,
            down_queue: 50,
            up_queue: 1000,
            variant: "reno",
            window_bytes: 64 * 1024,
            upload_window_bytes: None,
            delayed_ack: ("0 ms", 2),
            min_rto: "1 s",
            mss: 960,
            duration_s: 100,
            keep_duplicates: true,
            release: "burst",
            factor: 1,
            borrow: true,
        }
    }

    /// Runs a row.
    pub(super) fn run(&self, table: &Table, row: &Row, network: Network, seed: u64) -> Result<Trial, ExperimentError> {
        let settings = table.settings(row);
        let (down, up) = (whole(&settings, "down_bps")?, whole(&settings, "up_bps")?);
        let mut overrides = self.common(seed);
        overrides.set("access.down.rate", format_args!("{down} bit/s"));
        overrides.set("access.up.rate", format_args!("{up} bit/s"));
        let both = matches!(network, Network::BothWays | Network::Classes { .. });
        let mut chance = Stream::new(seed, "kalyanaraman1999");
        overrides.set("access.backbone.delay", format_args!("{} us", chance.below(1_000)));
        overrides.set("traffic.download.start", format_args!("{} us", chance.below(100_000)));
        if both {
            overrides.set("traffic.upload.start", format_args!("{} us", chance.below(100_000)));
            let window = self.upload_window_bytes.unwrap_or(self.window_bytes);
            overrides.set("traffic.upload.tcp.receive_window", format_args!("{window} B"));
        }
        match network {
            Network::Alone | Network::BothWays => {}
            Network::Dropper => overrides.set("access.up.queue", self.dropper("none")),
            Network::Regenerator { factor } => {
                overrides.set("access.up.queue", self.dropper("list"));
                overrides.set("access.aggregation.queue", self.regenerator(factor));
            }
            Network::Classes { reverse, forward } => {
                overrides.set("access.up.queue", self.classes(up, reverse, &self.dropper("list"), self.up_queue));
                let acks = "{ limit = \"1000 packets\" }";
                overrides.set("access.down.queue", self.classes(down, forward, acks, self.down_queue));
                overrides.set("access.aggregation.queue", self.regenerator(self.factor));
            }
        }
        let (name, text) = if both { BOTH_WAYS } else { DOWNLOAD };
        Trial::whole(name, text, &overrides)
    }

    fn common(&self, seed: u64) -> Overrides {
        let mut overrides = Overrides::default();
        overrides.set("seed", seed);
        overrides.set("duration", format_args!("{} s", self.duration_s));
        for (key, packets) in [("access.down.queue.limit", self.down_queue), ("access.up.queue.limit", self.up_queue)] {
            overrides.set(key, format_args!("{packets} packets"));
        }
        for key in ["access.down.delay", "access.up.delay"] {
            overrides.set(key, format_args!("{} ms", self.delay_ms));
        }
        overrides.set("tcp.variant", self.variant);
        overrides.set("tcp.mss", format_args!("{} B", self.mss));
        overrides.set("tcp.receive_window", format_args!("{} B", self.window_bytes));
        overrides.set("tcp.delayed_ack", self.delayed_ack.0);
        overrides.set("tcp.ack_every", self.delayed_ack.1);
        overrides.set("tcp.min_rto", self.min_rto);
        overrides
    }

    /// The dropper, which tells a regenerator what it drops, or nobody.
    fn dropper(&self, report: &str) -> String {
        // Duplicates are counted for a regenerator alone.
        let duplicates = if self.keep_duplicates || report == "none" { "keep" } else { "count" };
        format!(
            r#"{{ kind = "sad", report = "{report}", duplicates = "{duplicates}", queue = {{ limit = "{} packets" }} }}"#,
            self.up_queue
        )
    }

    /// A regenerator at the end of the reverse link.
    fn regenerator(&self, factor: u64) -> String {
        format!(
            r#"{{ kind = "ack-regenerator", know = "list", factor = {factor}, release = "{}", queue = {{ limit = "1000 packets" }} }}"#,
            self.release
        )
    }

    fn classes(&self, bps: u64, packets: f64, acks: &str, limit: u32) -> String {
        let share = |share: f64| super::super::significant(100.0 * share);
        let borrow = self.borrow;
        format!(
            r#"{{ kind = "cbq", rate = "{bps} bit/s", classes = [{{ name = "acks", share = "{} %", borrow = {borrow}, match = {{ pure_ack = true }}, queue = {acks} }}, {{ name = "packets", share = "{} %", borrow = {borrow}, match = {{}}, limit = "{limit} packets" }}] }}"#,
            share(1.0 - packets),
            share(packets),
        )
    }
}
