//! Brouer 2005, chapters 6 and 7: what runs over the middlebox, and how it is set.

use lastmile_queueing::random::Stream;

use crate::data::{Row, Table};
use crate::reproduction::TableResult;
use crate::value::Values;

use super::super::ExperimentError;
use super::super::trial::{Overrides, Trial};
use super::measured::runs;
use super::{MIDDLEBOX, OPEN_LINE, number};

pub(super) const STOCK: &str = "Listings B.17 and B.19 are taken to have a class of the whole rate above the three, \
                                with bursts of 2000 bytes everywhere.";

pub(super) const PINGS: &str = "How often it pings is not stated: once a second in each class in chapter 6, as \
                                ping(8) does (the naive cut allows for 7 small packets a \
                     second), ten times in chapter 7. Pings of the middlebox itself leave 0.1 ms after a tick of \
                                its clock, which wakes them; those of the \
                     host behind it drift through the ticks.";

pub(super) const JITTER: &str =
    "The measured idle line varies by 2.6 ms, ours only where two pings meet: the modem's own jitter is not simulated.";

/// A ping of the middlebox, woken by its clock; or of the host behind it, whose clock is another.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Ping {
    /// As ping(8) does, once a second: chapter 6, where ten a second would be more than the naive cut allows for.
    Seldom,
    FromMiddlebox,
    FromBehind,
}

/// The traffic over the middlebox.
pub(super) struct Load {
    /// When the upload starts, in s, and how many bytes it has.
    pub(super) upload: Option<(u64, Option<&'static str>)>,
    /// Packets of 40 bytes a second, and from when to when, in s: several times with pauses between.
    pub(super) udp: Option<(u64, &'static [(u64, u64)])>,
    pub(super) ping: Ping,
    pub(super) duration_s: u64,
}

impl Load {
    pub(super) fn traffic(&self, seed: u64, overrides: &mut Overrides) -> String {
        let mut chance = Stream::new(seed, "brouer2005 middlebox");
        overrides.set("duration", format_args!("{} s", self.duration_s));
        let mut traffic = String::new();
        if let Some((start, bytes)) = self.upload {
            let start = start * 1000 + chance.below(1_000);
            let kind = bytes.map_or_else(
                || "kind = \"persistent\"".to_owned(),
                |bytes| format!("kind = \"bulk\"\nbytes = \"{bytes}\""),
            );
            traffic += &format!(
                "[[traffic]]\nname = \"upload\"\n{kind}\nfrom = \"host\"\nto = \"server\"\ndscp = 30\nstart = \"{start} ms\"\n"
            );
        }
        if let Some((rate, spans)) = self.udp {
            // The generator's clock has nothing to do with the middlebox's.
            let phase = chance.below(10_000);
            for (number, (start, stop)) in spans.iter().enumerate() {
                traffic += &format!(
                    "[[traffic]]\nname = \"udp-{number}\"\nkind = \"blast\"\nfrom = \"host\"\nto = \"server\"\ndscp \
                     = 50\nsize = \"40 B\"\n\
                     rate = \"{rate} packets/s\"\nstart = \"{} us\"\nstop = \"{stop} s\"\n",
                    start * 1_000_000 + phase
                );
            }
        }
        let (from, start, interval) = match self.ping {
            Ping::Seldom => ("middlebox", 100 + 10_000 * chance.below(10), "1 s"),
            Ping::FromMiddlebox => ("middlebox", 100 + 10_000 * chance.below(10), "100 ms"),
            Ping::FromBehind => ("host", chance.below(100_000), "100.13 ms"),
        };
        let stop = self.duration_s - 5;
        for (name, dscp, interval, after) in [("ping-10", 10, interval, 0), ("ping-30", 30, "1 s", 450_000)] {
            let start = start + after;
            traffic += &format!(
                "[[traffic]]\nname = \"{name}\"\nkind = \"ping\"\nfrom = \"{from}\"\nto = \"bbras\"\ndscp = \
                 {dscp}\nstart = \"{start} us\"\n\
                 stop = \"{stop} s\"\ninterval = \"{interval}\"\n"
            );
        }
        traffic
    }
}

pub(super) fn htb(overrides: &mut Overrides, hysteresis: bool, timer: &str) {
    overrides.set("link.box.queue.hysteresis", hysteresis);
    overrides.set("link.box.queue.timer", timer);
}

/// Hysteresis and clock of the middlebox, as a row has them.
pub(super) fn htb_of(overrides: &mut Overrides, settings: &Values) -> Result<(), ExperimentError> {
    let on = settings.switch("htb_hysteresis").ok_or(ExperimentError::MissingSetting("htb_hysteresis"))?;
    htb(overrides, on, &tick(number(settings, "timer_hz")?));
    Ok(())
}

/// The tick of a clock of `hz`.
pub(super) fn tick(hz: f64) -> String {
    format!("{:.0} ns", 1e9 / hz)
}

/// Small packets a second, of a load such as `1000 packets/s in 1:50`.
pub(super) fn small_packets(settings: &Values) -> Result<u64, ExperimentError> {
    let load = settings.text("load").and_then(|load| load.split(' ').next()?.parse().ok());
    load.ok_or(ExperimentError::MissingSetting("load"))
}

/// Runs of figures 7.5 to 7.8 with the settings of a row.
pub(super) fn runs_of_row(table: &Table, row: &Row, ping: Ping) -> Result<Vec<Trial>, ExperimentError> {
    let settings = table.settings(row);
    let mut keys = Overrides::default();
    htb_of(&mut keys, &settings)?;
    latency_runs(Some(small_packets(&settings)?), ping, |overrides| overrides.extend(&keys))
}

pub(super) fn assume(result: &mut TableResult) {
    result.assumptions.extend(OPEN_LINE.map(String::from));
    result.assumptions.extend([STOCK, PINGS, JITTER].map(String::from));
}

/// The five minutes between two pauses of the generator, which begin with full buckets: 3000 pings with each seed.
pub(super) fn latency_runs(
    udp: Option<u64>,
    ping: Ping,
    set: impl Fn(&mut Overrides),
) -> Result<Vec<Trial>, ExperimentError> {
    load_runs(&Load { upload: None, udp: udp.map(|rate| (rate, &[(0, 300)][..])), ping, duration_s: 305 }, set)
}

pub(super) fn load_runs(load: &Load, set: impl Fn(&mut Overrides)) -> Result<Vec<Trial>, ExperimentError> {
    runs(MIDDLEBOX, |seed, overrides| {
        set(overrides);
        load.traffic(seed, overrides)
    })
}
