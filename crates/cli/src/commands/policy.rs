//! `lastmile policy`: the built-in policies, and the classes of a policy on its line.

use std::fmt::{self, Display, Write as _};
use std::path::Path;
use std::str::FromStr;

use clap::{Args, Subcommand};
use lastmile_queueing::ack::clamp::{Growth, Target};
use lastmile_queueing::autorate::{self, Rates};
use lastmile_queueing::meter::drain::Law;
use lastmile_scenario::Policy;
use lastmile_scenario::diagnostics::did_you_mean;
use lastmile_scenario::file::{self, Reading};
use lastmile_scenario::policy::{
    AckRate, Class, Down, Line, LineOf, Position, Promise, Regulated, Rule, ready, scheduler_has,
};
use lastmile_text::table::{Kind, Table};
use lastmile_units::{BitRate, ByteCount};

use super::overhead::link_by_name;
use crate::failure::{Exit, Failure, Result};
use crate::printer::Printer;

/// List, check and show policies
///
/// A policy is a file that describes line, classes and rules. A scenario uses one by `policy` in
/// [access] or `run --policy`.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the built-in policies
    List,
    /// Print a policy's classes with rates, sizes on the wire and bursts
    Show(Shown),
    /// Check a policy, and print its classes
    Check(Shown),
}

/// A policy, and its line.
#[derive(Args)]
pub(crate) struct OnLine {
    /// Name of a built-in policy, or a file
    pub(crate) policy: String,

    /// Upstream rate in place of the file's line, with --link; 0, or --down alone: the upstream is not shaped
    #[arg(long, value_name = "RATE")]
    pub(crate) up: Option<ShapedTo>,

    /// Downstream rate in place of the file's line; 0, or --up alone: the downstream is not shaped
    #[arg(long, value_name = "RATE")]
    pub(crate) down: Option<ShapedTo>,

    /// Encapsulation in place of the file's line: a preset, or words of tc-cake(8), such as "pppoe-ptm
    /// ether-vlan" for PPPoE over VDSL2 with a tag of the line (VLAN 7), or "ptm overhead 34"
    #[arg(long, value_name = "PRESET")]
    pub(crate) link: Option<String>,
}

/// The rate of a direction. As in sqm-scripts, 0 is that of a direction that is not shaped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ShapedTo(Option<BitRate>);

impl FromStr for ShapedTo {
    type Err = <BitRate as FromStr>::Err;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let unit = text.trim().trim_start_matches(['0', '.']);
        let is_zero = text.trim().starts_with('0') && !unit.starts_with(|digit: char| digit.is_ascii_digit());
        // Any unit of a rate, or none.
        if is_zero && (unit.is_empty() || format!("1{unit}").parse::<BitRate>().is_ok()) {
            return Ok(Self(None));
        }
        text.parse().map(|rate| Self(Some(rate)))
    }
}

impl Display for ShapedTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(rate) => rate.fmt(f),
            None => f.write_str("0"),
        }
    }
}

impl OnLine {
    /// The policy on the line of the command, or on its own line. Rates for a set-up are never
    /// guessed.
    pub(crate) fn load_for_a_line(&self, reading: Reading) -> Result<Policy> {
        if self.has_no_rate() && ready::text(&self.policy).is_some_and(|text| !text.contains("[line]")) {
            let failure = Failure::new(format_args!("the policy \"{}\" has no line of its own", self.policy));
            return Err(failure.hint("--up, --down or both, and --link say which it is"));
        }
        self.load_as(LineOf::Policy, reading)
    }

    /// The options of the line, as given.
    pub(crate) fn given(&self) -> Vec<(&'static str, String)> {
        let rates = [("up", self.up), ("down", self.down)].into_iter();
        let rates = rates.filter_map(|(name, rate)| Some((name, rate?.to_string())));
        rates.chain(self.link.clone().map(|link| ("link", link))).collect()
    }

    /// The policy on the line of the command, or else on `line`. An encapsulation is never guessed.
    fn load_as(&self, line: LineOf, reading: Reading) -> Result<Policy> {
        let rate = |given: Option<ShapedTo>| given.and_then(|ShapedTo(rate)| rate);
        let line = match &self.link {
            Some(_) if self.has_no_rate() => {
                return Err(Failure::new("an encapsulation without a rate").hint("--up, --down or both"));
            }
            None if self.has_no_rate() => line,
            Some(link) => LineOf::Caller(self::line(rate(self.up), rate(self.down), link)?),
            None => {
                let failure = Failure::new("a line without its encapsulation");
                return Err(failure.hint("--link names it; lastmile overhead lists those there are"));
            }
        };
        Policy::load_as(&self.policy, None, line, reading).map_err(Failure::Report)
    }

    /// The line is not that of the command.
    fn has_no_rate(&self) -> bool {
        self.up.is_none() && self.down.is_none()
    }

    /// The text of the policy's file.
    fn text(&self) -> Result<String> {
        text(&self.policy)
    }
}

/// The text of a built-in policy, or of a file.
pub(crate) fn text(policy: &str) -> Result<String> {
    let read = |path: &str| file::read(Path::new(path), Reading::Once);
    let text = ready::text(policy).map_or_else(|| read(policy), |text| Ok(text.to_owned()));
    text.map_err(|problem| {
        Failure::new(format_args!("{policy}: {problem}")).hint(meant(policy).unwrap_or_else(|| ready::hint(false)))
    })
}

/// The error for a name that is of no built-in policy, where files are not read.
pub(crate) fn unknown(name: &str) -> Failure {
    Failure::new(format_args!("there is no built-in policy \"{name}\"")).hint(ready::hint(false))
}

/// `did you mean "cake"?`: where a word that is no path is close to the name of a built-in policy.
pub(crate) fn meant(policy: &str) -> Option<String> {
    let is_path = policy.contains(['/', '.']);
    if is_path { None } else { did_you_mean(policy, ready::NAMES) }
}

#[derive(Args)]
struct Shown {
    #[command(flatten)]
    on_line: OnLine,

    /// Print the file itself
    #[arg(long, conflicts_with_all = ["up", "down", "link"])]
    file: bool,
}

/// The line for a policy without a line: kbit/s up, kbit/s down, encapsulation.
const EXAMPLE: (u64, u64, &str) = (512, 2000, "bridged-vcmux-fcs");

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    match &arguments.command {
        Command::List => list(printer),
        Command::Show(shown) | Command::Check(shown) => show(shown, printer),
    }
}

fn list(printer: &mut Printer) -> Result {
    let mut table = Table::new([("policy", Kind::Name), ("purpose", Kind::Words)]);
    for name in ready::NAMES {
        let policy = Policy::load(name, None, Some(example()?)).map_err(Failure::Report)?;
        table.row([name, policy.about.as_str()]);
    }
    printer.table(&table)?;
    Ok(Exit::Done)
}

fn example() -> Result<Line> {
    let (up, down, link) = EXAMPLE;
    line(Some(BitRate::from_kbit_per_s(up)), Some(BitRate::from_kbit_per_s(down)), link)
}

fn line(up: Option<BitRate>, down: Option<BitRate>, link: &str) -> Result<Line> {
    let layer = link_by_name(link)?;
    Ok(Line::steady(up, down, layer, layer))
}

fn show(shown: &Shown, printer: &mut Printer) -> Result {
    if shown.file {
        printer.exact(&shown.on_line.text()?)?;
        return Ok(Exit::Done);
    }
    let on_line = &shown.on_line;
    let policy = on_line.load_as(LineOf::PolicyOr(example()?), Reading::Once)?;
    printer.warnings(&policy.warnings);
    printer.heading(&policy.name)?;
    let is_example = on_line.has_no_rate() && !policy.line_is_own;
    printer.data(&describe(&policy, is_example))?;
    Ok(Exit::Done)
}

/// The derivation of the ACK class's rate.
pub(crate) fn ack_rate(ack: &AckRate) -> String {
    let AckRate { rate, needed, packet, ack, factor_ppm } = *ack;
    #[expect(clippy::cast_precision_loss, reason = "for printing")]
    let factor = factor_ppm as f64 / 1e6;
    let how = match needed {
        None => "given".to_owned(),
        Some(needed) if needed > rate => format!("half of the upstream, since a full download needs {needed}"),
        Some(_) => "computed".to_owned(),
    };
    format!("ACKs: {rate}, {how}: an ACK of {ack} for every {factor} packets of {packet} downstream")
}

/// The policy in words and a table.
fn describe(policy: &Policy, is_example: bool) -> String {
    let mut text = String::new();
    let line = &policy.line;
    let mut say = |sentence: fmt::Arguments<'_>| writeln!(text, "{sentence}").expect("a string takes all");
    if !policy.about.is_empty() {
        say(format_args!("{}", policy.about));
    }
    let rate = |rate: Option<BitRate>, of: &str| {
        rate.map_or_else(|| format!("{of} not shaped"), |rate| format!("{rate} {of}"))
    };
    say(format_args!("\nline: {}, {}", rate(line.up, "up"), rate(line.down, "down")));
    if is_example {
        say(format_args!(
            "This line is an example ({}): the policy names none; --up, --down and --link do.",
            EXAMPLE.2
        ));
    }
    say(format_args!(
        "on the wire: {} for a packet of 1500 bytes, {} for an ACK of 40 bytes",
        line.up_layer.on_wire(ByteCount::new(1500)),
        line.up_layer.on_wire(ByteCount::new(40)),
    ));
    if let Some(rate) = &policy.ack {
        say(format_args!("{}", ack_rate(rate)));
    }
    let place = match policy.place {
        Position::Modem => "in the modem, in place of its queue",
        Position::Middlebox => "in a middlebox before the modem",
    };
    let what = if policy.classes.is_empty() { "queue" } else { "scheduler" };
    if policy.rate.is_some() {
        say(format_args!("{what}: {}, {place}", policy.scheduler));
    }
    if !policy.classes.is_empty() {
        text.push('\n');
        text.push_str(&classes(|key| scheduler_has(&policy.scheduler, key), &policy.classes, &policy.rules));
    }
    if let Some(down) = &policy.down {
        text.push_str(&describe_down(down));
    }
    text.push_str(&describe_regulated(&policy.regulated));
    policy.autorate().into_iter().for_each(|controller| text.push_str(&describe_autorate(controller)));
    text
}

/// The table of classes, with a dash for what the scheduler knows nothing of.
fn classes(has: impl Fn(&str) -> bool, classes: &[Class], rules: &[Rule]) -> String {
    let names = ["priority", "rate", "ceil", "burst", "cburst", "rules"];
    let columns = [("class", Kind::Name)].into_iter().chain(names.map(|name| (name, Kind::Number)));
    let mut table = Table::new(columns);
    let cell = |key, value: &dyn Display| {
        if has(key) { value.to_string() } else { "–".to_owned() }
    };
    for class in classes {
        let rules = rules.iter().filter(|rule| rule.class == class.name).count();
        table.row([
            class.name.clone(),
            cell("priority", &class.priority),
            class.rate.map_or_else(|| "–".to_owned(), |rate| rate.to_string()),
            cell("ceil", &class.ceil),
            cell("burst", &class.burst),
            cell("cburst", &class.cburst),
            rules.to_string(),
        ]);
    }
    let mut text = table.render();
    for class in classes {
        if let Some(Promise { time, packet }) = class.delay {
            let _ = writeln!(text, "class {}: a packet of {packet} departs within {time} after a pause", class.name);
        }
    }
    text
}

/// The queue behind the downstream.
fn describe_down(down: &Down) -> String {
    let mut text = String::new();
    let mut say = |sentence: fmt::Arguments<'_>| writeln!(text, "{sentence}").expect("a string takes all");
    match down.rate {
        Some(rate) => say(format_args!("\nbehind the downstream: {} at {rate}", down.kind)),
        None => say(format_args!("\nbehind the downstream: {}, nothing is held back", down.kind)),
    }
    if let Some(law) = &down.drain {
        let Law { depth, patience, longest } = law;
        say(format_args!("drain: {depth} of the line after {patience} without idle time, for {longest} at most"));
    }
    if let Some(police) = &down.police {
        say(format_args!("policed: {} with a burst of {}", police.rate, police.burst));
    }
    if !down.classes.is_empty() {
        text.push('\n');
        let has = |key: &str| scheduler_has(down.scheduler, key) || (key == "priority" && down.drain.is_some());
        text.push_str(&classes(has, &down.classes, &down.rules));
    }
    text
}

/// The controller of the rates.
fn describe_autorate(controller: &autorate::Config) -> String {
    let mut text = String::new();
    for (direction, Rates { min, base, max, .. }) in ["down", "up"].into_iter().zip(controller.rates) {
        writeln!(text, "autorate {direction}: {min} to {max}, {base} without load").expect("a string takes all");
    }
    let (pings, thresholds) = (&controller.pings, &controller.thresholds);
    let (count, interval, delay) = (pings.no_pingers, pings.reflector_ping_interval, thresholds.owd_delta_delay_thr);
    writeln!(text, "pings: {count} reflectors, each every {interval}; a reply is delayed by more than {delay}")
        .expect("a string takes all");
    text
}

/// The ACK regulation of the upstream.
fn describe_regulated(regulated: &Regulated) -> String {
    let mut text = String::new();
    if let Some(pace) = &regulated.pace {
        writeln!(text, "ACKs paced: {} of payload, held for {} at most", pace.rate, pace.max_hold)
            .expect("a string takes all");
    }
    if let Some(Target::Shared { rate, rtt, growth }) = regulated.clamp.as_ref().map(|clamp| clamp.target) {
        let opening = growth.map_or_else(String::new, |Growth { slack, share }| {
            format!("; at first in the handshake's time + {slack}, which grows by {share} of the time")
        });
        writeln!(text, "windows clamped: {rate} of payload in {rtt}, all downloads together{opening}")
            .expect("a string takes all");
    }
    text
}
