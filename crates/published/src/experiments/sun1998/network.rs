//! The network of Sun 1998, chapter 4: N sources, each with an edge device, three switches, N sinks; and what it measures.

use std::fmt::Write as _;

use lastmile_queueing::random::Stream;
use lastmile_scenario::Scenario;

use super::super::ExperimentError;
use super::super::trial::{Overrides, Trial, Variation};

const NETWORK: (&str, &str) = ("sun1998/network.toml", include_str!("../../../scenarios/sun1998/network.toml"));

/// What the thesis leaves open, in the base case or otherwise.
#[derive(Clone)]
pub(super) struct Setup {
    /// TCP payload of a packet, in bytes.
    pub(super) mss: u32,
    /// Tick of the TCP clock and least timeout.
    pub(super) clock: (&'static str, &'static str),
    /// `delayed_ack` and `ack_every`.
    pub(super) delayed_ack: (&'static str, u8),
    /// Sources start within so many microseconds.
    pub(super) starts_within_us: u64,
    /// How long a run is, in ms.
    pub(super) duration_ms: u32,
    /// `last_cell` of the switches.
    pub(super) last_cell: &'static str,
    /// Discard at Switch2 alone; elsewhere cells are lost only when the buffer is full.
    pub(super) second_switch_alone: bool,
    /// Hosts take 0.3 ms for one packet after the other in place of delaying each by 0.3 ms.
    pub(super) serial_hosts: bool,
    /// SPD compares with `q > SPDth`.
    pub(super) strictly_above: bool,
    /// Bytes of an arrival in section 5.4; `None` is one packet.
    pub(super) arrival_bytes: Option<u64>,
    /// Mean rate of a source there, where it is not that of `mu`, in bit/s.
    pub(super) arrival_bps: Option<u64>,
    /// CongestTh in section 5.2, in cells.
    pub(super) activation: u64,
    /// Buffer and CongestTh of the table with 5 VCs, in cells.
    pub(super) small: (u64, u64),
    /// Per-VC EPD divides its threshold by the VCs of which cells wait, not by all.
    pub(super) active_share: bool,
    /// CongestTh with the buffer of 5000 cells.
    pub(super) large_activation: u64,
    /// How long two traffic sets are counted, in ms.
    pub(super) shared_ms: u32,
    /// One-way delay of each trunk where two traffic sets share one, in ms.
    pub(super) shared_delay_ms: u32,
}

impl Setup {
    pub(super) fn base() -> Self {
        Self {
            mss: 1024,
            clock: ("500 ms", "1 s"),
            delayed_ack: ("0 ms", 2),
            starts_within_us: 10_000,
            duration_ms: 20_000,
            last_cell: "pass",
            second_switch_alone: false,
            serial_hosts: false,
            strictly_above: false,
            arrival_bytes: None,
            arrival_bps: None,
            activation: 200,
            small: (200, 40),
            active_share: false,
            large_activation: 1000,
            shared_ms: 10_000,
            shared_delay_ms: 3,
        }
    }

    /// What stands in `[tcp]` of every run, and how long it is.
    pub(super) fn common(&self, seed: u64) -> Overrides {
        let mut overrides = Overrides::default();
        overrides.set("seed", seed);
        overrides.set("duration", format_args!("{} ms", self.duration_ms));
        overrides.set("tcp.mss", format_args!("{} B", self.mss));
        overrides.set("tcp.clock_granularity", self.clock.0);
        overrides.set("tcp.min_rto", self.clock.1);
        overrides.set("tcp.delayed_ack", self.delayed_ack.0);
        overrides.set("tcp.ack_every", self.delayed_ack.1);
        overrides
    }
}

/// How a switch discards frames.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Scheme {
    /// EPD by the total queue.
    Epd,
    /// EPD by the total queue and the VC's share of its threshold.
    EpdPerVc,
    /// SPD from this many cells of the VC on, and above so many in all.
    Spd { from: u64, activation: u64 },
}

/// What the applications hand to TCP.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Sources {
    /// Always more.
    Persistent,
    /// Arrivals at the instants of a Poisson process, so many bits a second in the mean.
    Poisson { bps: u64 },
}

/// One configuration of the switches.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) vcs: u64,
    /// Buffer, in cells.
    pub(super) buffer: u64,
    /// Threshold of EPD, in cells.
    pub(super) threshold: u64,
    pub(super) scheme: Scheme,
    pub(super) sources: Sources,
}

impl Point {
    /// The queue of a switch, as a scenario writes it.
    pub(super) fn queue(&self, setup: &Setup) -> String {
        let Self { vcs, buffer, threshold, scheme, .. } = *self;
        let last = setup.last_cell;
        let limits = format!("limit = \"{buffer} cells\", threshold = \"{threshold} cells\", last_cell = \"{last}\"");
        match scheme {
            Scheme::Epd => format!("{{ kind = \"epd\", {limits} }}"),
            Scheme::EpdPerVc if setup.active_share => format!("{{ kind = \"epd-per-vc\", {limits} }}"),
            Scheme::EpdPerVc => format!("{{ kind = \"epd-per-vc\", {limits}, vcs = {vcs} }}"),
            Scheme::Spd { from, activation } => {
                let from = from + u64::from(setup.strictly_above);
                format!(
                    "{{ kind = \"spd\", {limits}, vc_threshold = \"{from} cells\", activation = \"{activation} cells\" }}"
                )
            }
        }
    }
}

impl Variation<Setup> for Point {
    fn scenario(&self, setup: &Setup, seed: u64, set: impl Fn(&mut Overrides)) -> Result<Scenario, ExperimentError> {
        let mut overrides = setup.common(seed);
        let queue = self.queue(setup);
        let plain = format!("{{ kind = \"ppd\", limit = \"{} cells\" }}", self.buffer);
        for switch in ["one", "two", "three"] {
            let discards = switch == "two" || !setup.second_switch_alone;
            overrides.set(&format!("switch.{switch}.queue"), if discards { &queue } else { &plain });
        }
        set(&mut overrides);
        let mut edges = Edges::new(setup, seed, self.sources);
        edges.add("source", self.vcs, ("one", "three"));
        overrides.scenario(NETWORK.0, &format!("{}\n{}", NETWORK.1, edges.text))
    }
}

/// Sources and sinks with their edge devices, as they stand in a scenario.
pub(super) struct Edges<'a> {
    setup: &'a Setup,
    starts: Stream,
    /// Keys of a traffic.
    kind: String,
    pub(super) text: String,
}

impl<'a> Edges<'a> {
    pub(super) fn new(setup: &'a Setup, seed: u64, sources: Sources) -> Self {
        let kind = match (sources, setup.arrival_bytes) {
            (Sources::Persistent, _) => "kind = \"persistent\"".to_owned(),
            (Sources::Poisson { bps }, None) => format!("kind = \"writes\"\nrate = \"{bps} bit/s\""),
            (Sources::Poisson { bps }, Some(bytes)) => {
                format!("kind = \"writes\"\nrate = \"{bps} bit/s\"\nsize = \"{bytes} B\"")
            }
        };
        Self { setup, starts: Stream::new(seed, "sun1998 starts"), kind, text: String::new() }
    }

    /// So many sources at one switch, with sinks at another.
    pub(super) fn add(&mut self, name: &str, count: u64, (near, far): (&str, &str)) {
        // 1064 bytes in 0.3 ms are 28.4 Mbit/s.
        let (delay, rate) = if self.setup.serial_hosts { ("0 ms", "rate = \"28.4 Mbit/s\"\n") } else { ("0.3 ms", "") };
        for number in 1..=count {
            let start =
                if self.setup.starts_within_us == 0 { 0 } else { self.starts.below(self.setup.starts_within_us) };
            let (from, to) = (format!("{name}-host-{number}"), format!("{name}-sink-{number}"));
            for (host, switch) in [(&from, near), (&to, far)] {
                write!(
                    self.text,
                    "[[node]]\nname = \"{host}\"\nprocessing = \"{delay}\"\n\
                     [[node]]\nname = \"{host}-edge\"\nprocessing = \"300 ns\"\n\
                     [[link]]\nfrom = \"{host}\"\nto = \"{host}-edge\"\n{rate}queue = {{ limit = \"1000 packets\" }}\n\
                     [[link]]\nfrom = \"{host}-edge\"\nto = \"{switch}\"\nrate = \"155 Mbit/s\"\ndelay = \"50 ns\"\n"
                )
                .expect("a string takes all");
            }
            writeln!(
                self.text,
                "[[traffic]]\nname = \"{name}-{number}\"\n{}\nfrom = \"{from}\"\nto = \"{to}\"\nstart = \"{start} us\"",
                self.kind
            )
            .expect("a string takes all");
        }
    }
}

/// Cells from Switch2 to Switch3 of packets that are complete, as a share of those from Switch1 to Switch2.
pub(super) fn goodput_to_input(trial: &Trial) -> f64 {
    trial.cells("link23").good_cells as f64 / trial.cells("link12").cells.sent.max(1) as f64
}

/// Share of the rate of the link from Switch2 to Switch3 that complete packets took, in percent: what the ratio does not tell.
pub(super) fn carried_pct(trial: &Trial) -> f64 {
    const LINK23_CELLS_PER_S: f64 = 10e6 / 424.0;
    100.0 * trial.cells("link23").good_cells as f64 / trial.time_s() / LINK23_CELLS_PER_S
}
