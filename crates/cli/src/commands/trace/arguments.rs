//! The command line of `lastmile trace`.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueEnum};
use lastmile_queueing::line::trace::Trace;
use lastmile_scenario::trace::file::{Format, TimeUnit};
use lastmile_units::{BitRate, Duration};

use crate::failure::Failure;

/// Show, convert or make a trace of a line's capacity over time
///
/// FILE is a trace (a table of steps, a packet-delivery trace of mahimahi, or JSON of Rattan), a
/// scenario whose link --link has a trace, a capture (pcap, pcapng; .gz and .zst too) whose IP bytes
/// become steps of the rate that it carried, or the JSON of `lastmile measure`, of which one phase
/// counts without its ramp. A trace of what was carried is the capacity of a line only as far as
/// the line was full. Without --to, the output is a
/// summary: mean, percentiles over time, outages, and a chart. Scenarios read traces with
/// `trace = { file = "..." }`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Trace, scenario, capture or measurement
    #[arg(value_name = "FILE", required_unless_present = "generate", conflicts_with = "generate")]
    pub(super) file: Option<PathBuf>,

    /// Make a trace by this rule, as `trace = { generate = "RULE" }` of a scenario
    #[arg(long, value_name = "RULE", requires = "rate")]
    pub(super) generate: Option<Rule>,

    /// Set a key of the rule, such as levels=4 or every="30 s"
    #[arg(long, value_name = "KEY=VALUE", requires = "generate")]
    pub(super) set: Vec<String>,

    /// Link of a scenario: down or up of an access line, or a name [default: down]
    #[arg(long, value_name = "NAME")]
    pub(super) link: Option<String>,

    /// Unit of the times in a packet-delivery trace [default: ms, if length and rate are usual then]
    #[arg(long)]
    pub(super) unit: Option<Unit>,

    /// Largest rate of a generated trace; rate of steps of a file that have none
    #[arg(long)]
    pub(super) rate: Option<BitRate>,

    /// Least delay of a generated trace; delay of steps that have none. Without it, such steps are
    /// written without a delay
    #[arg(long)]
    pub(super) delay: Option<Duration>,

    /// Length of a generated trace, and of steps that are played once, in the summary and for
    /// mahimahi [default: 10 min, or a second after the last step where that is later]
    #[arg(long, value_name = "TIME")]
    pub(super) length: Option<Duration>,

    /// Seed of a generated trace [default: 1]
    #[arg(long)]
    pub(super) seed: Option<u64>,

    #[command(flatten)]
    pub(super) measurement: Measurement,

    /// Count only packets of a capture to these addresses, such as 192.0.2.0/24 or 2001:db8::/32
    /// [default: all, if they are of one direction]
    #[arg(long, value_name = "PREFIX")]
    pub(super) towards: Option<Prefix>,

    /// Steps of this length, from a capture or from mahimahi's opportunities [default: 100 ms]
    #[arg(long, value_name = "TIME")]
    pub(super) interval: Option<Duration>,

    /// Print the trace in this format
    #[arg(long, value_name = "FORMAT")]
    pub(super) to: Option<To>,

    /// Write it to this file, instead of standard output
    #[arg(long, value_name = "FILE", requires = "to")]
    pub(super) out: Option<PathBuf>,

    /// Print the summary as JSON
    #[arg(long, conflicts_with = "to")]
    pub(super) json: bool,
}

/// The part of a measurement.
#[derive(Args)]
pub(crate) struct Measurement {
    /// Direction of a measurement [default: down]
    #[arg(long)]
    pub(super) direction: Option<Direction>,

    /// Phase of a measurement [default: that which loaded the direction alone]
    #[arg(long, value_name = "NAME")]
    pub(super) phase: Option<LoadedPhase>,
}

impl Arguments {
    pub(super) fn interval(&self) -> Duration {
        self.interval.unwrap_or(Duration::from_ms(100))
    }

    /// Refuses the options that change nothing for this source.
    pub(super) fn check(&self, source: Source) -> Result<(), Failure> {
        let part = &self.measurement;
        let options: [(&str, bool, &[Source]); 9] = [
            ("--rate", self.rate.is_some(), &[Source::Rule, Source::Trace]),
            ("--delay", self.delay.is_some(), &[Source::Rule, Source::Trace, Source::Capture, Source::Measurement]),
            ("--unit", self.unit.is_some(), &[Source::Trace]),
            ("--interval", self.interval.is_some(), &[Source::Capture, Source::Trace, Source::Scenario]),
            ("--seed", self.seed.is_some(), &[Source::Rule]),
            ("--link", self.link.is_some(), &[Source::Scenario]),
            ("--towards", self.towards.is_some(), &[Source::Capture]),
            ("--direction", part.direction.is_some(), &[Source::Measurement]),
            ("--phase", part.phase.is_some(), &[Source::Measurement]),
        ];
        let without_effect = options.iter().find(|(_, given, of)| *given && !of.contains(&source));
        let Some((name, _, of)) = without_effect else { return Ok(()) };
        let of: Vec<_> = of.iter().map(|source| source.words()).collect();
        Err(self.without_effect(name, &format!("it is for {}", of.join(", "))))
    }

    /// Refuses an interval of a trace in a file or a scenario, unless opportunities become steps of it.
    pub(super) fn check_interval(&self, trace: &Trace) -> Result<(), Failure> {
        let to_steps = matches!(trace, Trace::Opportunities(_)) && matches!(self.to, Some(To::Csv | To::Rattan));
        if self.interval.is_none() || to_steps {
            return Ok(());
        }
        Err(self.without_effect(
            "--interval",
            "it is for captures, and for packet-delivery traces with --to csv and --to rattan",
        ))
    }

    /// Refuses a length of a trace whose end it does not say.
    pub(super) fn check_length(&self, trace: &Trace) -> Result<(), Failure> {
        let why = match (trace.period(), self.to) {
            _ if self.length.is_none() => return Ok(()),
            (Some(period), _) => format!("this trace starts again after {period}"),
            (None, Some(To::Csv | To::Rattan)) => "the last step holds for ever, also where it is written".to_owned(),
            (None, _) => return Ok(()),
        };
        Err(self.without_effect("--length", &why))
    }

    fn without_effect(&self, option: &str, why: &str) -> Failure {
        let file = self.file.as_deref().unwrap_or(Path::new("--generate"));
        Failure::new(format_args!("{}: {option} changes nothing; {why}", file.display()))
    }
}

/// What a trace is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Rule,
    Scenario,
    Capture,
    Measurement,
    Trace,
}

impl Source {
    const fn words(self) -> &'static str {
        match self {
            Self::Rule => "a generated trace",
            Self::Scenario => "a scenario",
            Self::Capture => "a capture",
            Self::Measurement => "a measurement",
            Self::Trace => "a trace in a file",
        }
    }
}

/// Rules of generated traces.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Rule {
    /// DSL that retrains
    DslRetrain,
    /// Satellites allocated every 15 s
    Starlink,
    /// Markov-modulated rate of a radio cell
    Cell,
}

impl Rule {
    /// Its name in scenarios.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::DslRetrain => "dsl-retrain",
            Self::Starlink => "starlink",
            Self::Cell => "cell",
        }
    }
}

/// Units of times without one.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Unit {
    /// Seconds
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
}

impl From<Unit> for TimeUnit {
    fn from(unit: Unit) -> Self {
        match unit {
            Unit::S => Self::Seconds,
            Unit::Ms => Self::Milliseconds,
            Unit::Us => Self::Microseconds,
        }
    }
}

/// Formats to write.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum To {
    /// Table of steps
    Csv,
    /// Milliseconds of packet-delivery opportunities
    Mahimahi,
    /// JSON of Rattan (netem-trace)
    Rattan,
}

impl From<To> for Format {
    fn from(to: To) -> Self {
        match to {
            To::Csv => Self::Csv,
            To::Mahimahi => Self::Mahimahi,
            To::Rattan => Self::Rattan,
        }
    }
}

/// Direction of a measurement.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Direction {
    /// To the client
    Down,
    /// From the client
    Up,
}

impl Direction {
    /// The name of its goodput in a measurement.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Down => "download",
            Self::Up => "upload",
        }
    }
}

/// Phases of a measurement with a load.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum LoadedPhase {
    /// To the client alone
    Download,
    /// From the client alone
    Upload,
    /// Both directions at a time
    Both,
}

impl LoadedPhase {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Download => "download",
            Self::Upload => "upload",
            Self::Both => "both",
        }
    }
}

/// Addresses that begin alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    address: IpAddr,
    bits: u32,
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| format!("{address:?} is no IP address"))?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most).ok_or(format!("a length is 0 to {most}"))?,
        };
        Ok(Self { address, bits })
    }
}

impl Prefix {
    pub(super) fn holds(self, other: IpAddr) -> bool {
        let differ = match (self.address, other) {
            (IpAddr::V4(one), IpAddr::V4(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
            (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits() ^ other.to_bits()).leading_zeros(),
            _ => return false,
        };
        differ >= self.bits
    }
}
