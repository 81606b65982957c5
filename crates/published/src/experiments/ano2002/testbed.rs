//! The testbed of Ano et al. 2002: hosts, virtual paths, the queues of the trunk, and runs over it.

use std::fmt::Write as _;

use lastmile_queueing::random::Stream;
use lastmile_scenario::Scenario;

use super::super::ExperimentError;
use super::super::trial::{Connection, Overrides, Trial, Variation};

const TESTBED: (&str, &str) = ("ano2002/testbed.toml", include_str!("../../../scenarios/ano2002/testbed.toml"));

/// Cells of the trunk, in Mbit/s.
pub(super) const TRUNK_MBPS: f64 = 149.76;
/// Virtual paths: those with a contract, and all.
pub(super) const AF: usize = 2;
pub(super) const PATHS: usize = 8;
/// TCP connections of a path.
pub(super) const CONNECTIONS: usize = 6;
/// TCP payload of what a cell's bits carry: 8192 bytes in 172 cells.
pub(super) const PAYLOAD: f64 = 8192.0 / (172.0 * 53.0);

/// What the paper leaves open, in the base case or otherwise.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) variant: &'static str,
    /// `delayed_ack` and `ack_every`.
    pub(super) delayed_ack: (&'static str, u8),
    pub(super) min_rto: &'static str,
    pub(super) weights: Weights,
    /// Cells in the memory from which those of CLP = 1 are dropped.
    pub(super) discard_from: u32,
    pub(super) shaping: Shaping,
    pub(super) starts_within_us: u64,
    pub(super) duration_s: u32,
}

/// Weights of the queues of AF and DF.
#[derive(Clone, Copy)]
pub(super) enum Weights {
    /// What the share formula gives all paths of each.
    Shares,
    /// The contracted rates, and what they leave.
    Contracts,
    Fixed(u32, u32),
}

/// What 35 Mbit/s hold for.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Shaping {
    Host,
    Channel,
    None,
}

impl Setup {
    pub(super) fn base() -> Self {
        Self {
            variant: "reno",
            delayed_ack: ("50 ms", 2),
            min_rto: "200 ms",
            weights: Weights::Shares,
            discard_from: 18_000,
            shaping: Shaping::Host,
            starts_within_us: 1_000_000,
            duration_s: 180,
        }
    }
}

/// What the paper varies.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) rtt_ms: u64,
    /// SCR0 of the second path, in kbit/s; that of the first is 18 720.
    pub(super) scr_kbps: u64,
    /// MBS0 of both, in cells.
    pub(super) mbs: u64,
}

impl Point {
    pub(super) fn at(rtt_ms: u64) -> Self {
        Self { rtt_ms, scr_kbps: 18_720, mbs: 8_256 }
    }

    fn weights(&self, setup: &Setup) -> (u32, u32) {
        let contracted = 18.72 + self.scr_kbps as f64 / 1e3;
        let rest = TRUNK_MBPS - contracted;
        let af = match setup.weights {
            Weights::Fixed(af, df) => return (af, df),
            Weights::Contracts => contracted,
            Weights::Shares => contracted + rest * AF as f64 / PATHS as f64,
        };
        ((af * 100.0).round() as u32, ((TRUNK_MBPS - af) * 100.0).round() as u32)
    }

    /// Contracts, paths, hosts, peers, connections and pings.
    fn hosts(&self, setup: &Setup, seed: u64) -> String {
        let mut starts = Stream::new(seed, "ano2002 starts");
        let mut text = String::new();
        let (pace, shape) = match setup.shaping {
            Shaping::Host => ("pace = \"35 Mbit/s\"\n", ""),
            Shaping::Channel => ("", "shape = \"35 Mbit/s\"\n"),
            Shaping::None => ("", ""),
        };
        if !shape.is_empty() {
            for (name, class) in [("shaped-af", "af"), ("shaped-df", "df")] {
                write!(text, "[[contract]]\nname = \"{name}\"\nclass = \"{class}\"\n{shape}").expect(TAKES_ALL);
            }
        }
        for (path, kbps) in [(1, 18_720), (2, self.scr_kbps)] {
            write!(
                text,
                "[[contract]]\nname = \"sbr-{path}\"\nkind = \"sbr3\"\npcr = \"149.76 Mbit/s\"\nscr = \"{kbps} kbit/s\"\nmbs = \"{} cells\"\n\
                 [[vp]]\nname = \"af-{path}\"\ncontract = \"sbr-{path}\"\n",
                self.mbs
            )
            .expect(TAKES_ALL);
        }
        for path in 1..=PATHS {
            write!(
                text,
                "[[link]]\nfrom = \"pc-{path}\"\nto = \"near\"\ninterface = \"oc-3c\"\n{pace}\
                 [[link]]\nfrom = \"far\"\nto = \"peer-{path}\"\ninterface = \"oc-3c\"\n"
            )
            .expect(TAKES_ALL);
            let (name, with) = if path <= AF {
                (format!("af-{path}"), format!("dscp = 10\nvp = \"af-{path}\"\n"))
            } else {
                (format!("df-{}", path - AF), String::new())
            };
            let contract = match (shape.is_empty(), path <= AF) {
                (true, _) => "",
                (false, true) => "contract = \"shaped-af\"\n",
                (false, false) => "contract = \"shaped-df\"\n",
            };
            for connection in 1..=CONNECTIONS {
                let start = starts.below(setup.starts_within_us);
                write!(
                    text,
                    "[[traffic]]\nname = \"{name}-{connection}\"\nkind = \"persistent\"\nfrom = \"pc-{path}\"\nto = \"peer-{path}\"\n\
                     start = \"{start} us\"\n{with}{contract}"
                )
                .expect(TAKES_ALL);
            }
        }
        // 2048 bytes of data, 28 of headers. They begin when the windows are open.
        for (name, dscp, ms) in [("ping-af", 10, 5_000), ("ping-df", 0, 5_050)] {
            write!(
                text,
                "[[traffic]]\nname = \"{name}\"\nkind = \"ping\"\nfrom = \"prober\"\nto = \"probed\"\ndscp = {dscp}\nsize = \"2076 B\"\n\
                 interval = \"100 ms\"\nstart = \"{ms} ms\"\n"
            )
            .expect(TAKES_ALL);
        }
        text
    }
}

impl Variation<Setup> for Point {
    fn scenario(&self, setup: &Setup, seed: u64, set: impl Fn(&mut Overrides)) -> Result<Scenario, ExperimentError> {
        let mut overrides = Overrides::default();
        overrides.set("seed", seed);
        overrides.set("duration", format_args!("{} s", setup.duration_s));
        overrides.set("tcp.variant", setup.variant);
        overrides.set("tcp.sack", setup.variant == "sack");
        overrides.set("tcp.delayed_ack", setup.delayed_ack.0);
        overrides.set("tcp.ack_every", setup.delayed_ack.1);
        overrides.set("tcp.min_rto", setup.min_rto);
        overrides.set("link.trunk.delay", format_args!("{} us", self.rtt_ms * 500));
        let (af, df) = self.weights(setup);
        overrides.set(
            "switch.near.queue",
            format_args!(
                "{{ kind = \"classes\", classes = [{{ name = \"af\", weight = {af}, queue = {{ limit = \"10000 cells\", low_priority_limit = \
                 \"{} cells\" }} }}, {{ name = \"df\", weight = {df}, queue = {{ limit = \"10000 cells\" }} }}] }}",
                setup.discard_from
            ),
        );
        set(&mut overrides);
        overrides.scenario(TESTBED.0, &format!("{}\n{}", TESTBED.1, self.hosts(setup, seed)))
    }
}

const TAKES_ALL: &str = "a string takes all";

/// The connections of a class: `af` or `df`.
pub(super) fn connections(trial: &Trial, class: &str) -> Vec<Connection> {
    let paths = if class == "af" { AF } else { PATHS - AF };
    (1..=paths).flat_map(|path| trial.connections(&format!("{class}-{path}"))).collect()
}

/// Their throughputs, in Mbit/s.
pub(super) fn mbps(connections: &[Connection]) -> Vec<f64> {
    connections.iter().map(|connection| connection.goodput_bps / 1e6).collect()
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Standard deviation over mean, in percent.
pub(super) fn spread_pct(values: &[f64]) -> f64 {
    let mean = mean(values);
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len().max(1) as f64;
    100.0 * variance.sqrt() / mean
}
