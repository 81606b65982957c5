//! The capacity of a line over time: steps in the file, a file beside it, or a generator.

use std::path::PathBuf;

use lastmile_queueing::line::Config;
use lastmile_queueing::line::trace::{Step, Trace};
use lastmile_units::parse::Problem;
use lastmile_units::{BitRate, Duration};

use crate::delay::MAX_DELAY;
use crate::diagnostics::{Diagnostic, Place, Report, Source as Text};
use crate::document::Document;
use crate::files;
use crate::overrides::Override;
use crate::reader::{Reader, Table, Tagged, Unopened};
use crate::schema::{Key, Kind, Section, names};

pub mod file;
pub mod generate;
mod rattan;
pub mod write;

use file::TimeUnit;
use generate::{Base, Generator};

pub(crate) const TRACE: Key = Key::optional(
    "trace",
    Kind::Table("`trace = { ... }`"),
    "constant rate, delay and loss",
    "Rate, delay and loss over time.",
);

pub(crate) static SECTION: Section = Section {
    heading: "`trace = { ... }`",
    about: "The capacity of a direction over time: steps, a file, or a generator. A file has one of three formats. \
            Whole numbers, one in a line, are a packet-delivery trace of mahimahi: at each of these milliseconds \
            1504 bytes may be sent, and the trace starts again after its last line; over plain IP (`encapsulation = \
            \"ip\"`) each packet counts four bytes more, the header of the TUN device of mahimahi, so that one of 1500 \
            bytes takes an opportunity. A file whose first line is \
            `at,rate` is a table of steps, with columns `delay` and `loss` if they change; rate `0` is an outage, \
            during which packets wait. A line `# repeat = \"60 s\"` in it says when it starts again. JSON is a trace \
            of Rattan (the crate netem-trace): static and repeated patterns of `Bw`, `Delay` and `Loss`; a list of \
            them, which Rattan does not have, is read too. A step that leaves a value out has that of the direction. \
            The loss of a step takes the place of a share of the direction; a loss model there, in bursts or with a \
            correlation, acts with it. Both directions start their traces with the run. A `start` in one direction \
            holds in the other too, unless that states its own. What needs one rate (the default queue, a limit in \
            time, the shapers of a policy, k) takes the mean over the period, or over the duration of the run where a \
            trace is played once; the unloaded round trip takes the least delay. Each access line and each `[[link]]` \
            has a generated trace of its own. All access lines have one `start`.",
    keys: &[
        Key::optional("file", Kind::Text, "the steps", "Name of the file, seen from the scenario's folder."),
        Key::optional("steps", Kind::Tables("the steps below"), "the file", "The steps in the order of time."),
        REPEAT,
        START,
        Key::optional(
            "unit",
            Kind::Choice(&names(&TimeUnit::NAMES)),
            "milliseconds, if length and rate are usual then",
            "Unit of the times in a packet-delivery trace.",
        ),
    ],
};

const REPEAT: Key = Key::optional(
    "repeat",
    Kind::Time,
    "as the file says; the last of steps holds to the end",
    "Time after which the trace starts again, instead of that of the file.",
);
const START: Key = Key::optional(
    "start",
    Kind::Time,
    "that of the other direction, or `\"0 s\"`",
    "Time of the trace at which the run begins. A trace that repeats continues with its beginning.",
);
const LENGTH: Key =
    Key::with_default("length", Kind::Time, "10 min", "Time after which the generated trace starts again.")
        .at_least("1 s")
        .at_most("24 h");
const SEED: Key = Key::optional(
    "seed",
    Kind::Count,
    "one for each access line and `[[link]]`, from the seed of the scenario",
    "Seed of the generator. Both directions, and `[[link]]`s, with equal seeds and times change together.",
);

pub(crate) static DSL_RETRAIN: Section = Section {
    heading: "`trace = { generate = \"dsl-retrain\" }`",
    about: "A DSL modem that loses synchronisation: an outage, then another rate. Times between retrains are \
            exponential; the outage is that of the initialisation of ITU-T G.992.3 and G.993.2, some 30 to 60 s.",
    keys: &[
        Key::required("generate", Kind::Choice(KINDS), "The rule."),
        LENGTH,
        START,
        SEED,
        Key::with_default("every", Kind::Time, "5 min", "Mean time between retrains.").at_least("1 s"),
        Key::with_default("outage_from", Kind::Time, "30 s", "Shortest outage."),
        Key::with_default("outage_to", Kind::Time, "60 s", "Longest outage.").at_most("1 h"),
        Key::with_default("least_rate", Kind::Share, "70 %", "Least rate after a retrain, as a share of `rate`."),
    ],
};

pub(crate) static STARLINK: Section = Section {
    heading: "`trace = { generate = \"starlink\" }`",
    about: "Satellites that are allocated anew at fixed times: rate and delay are drawn uniformly, after an \
            interruption (Mohan and others, WWW 2024; Garcia and others, LEO-NET 2023).",
    keys: &[
        Key::required("generate", Kind::Choice(KINDS), "The rule."),
        LENGTH,
        START,
        SEED,
        Key::with_default("every", Kind::Time, "15 s", "Time between two allocations.").at_least("1 ms"),
        Key::with_default("outage", Kind::Time, "100 ms", "Interruption before each."),
        Key::with_default("least_rate", Kind::Share, "25 %", "Least rate, as a share of `rate`."),
        Key::with_default("more_delay", Kind::Time, "15 ms", "Largest addition to `delay`.").at_most(MAX_DELAY),
    ],
};

pub(crate) static CELL: Section = Section {
    heading: "`trace = { generate = \"cell\" }`",
    about: "A radio cell: a Markov chain of levels in equal ratios, from one level to a neighbour, each kept for an \
            exponential time (Wang and Moayeri, 1995).",
    keys: &[
        Key::required("generate", Kind::Choice(KINDS), "The rule."),
        LENGTH,
        START,
        SEED,
        Key::with_default("levels", Kind::Count, "8", "Levels of the rate.").at_least("1").at_most("100"),
        Key::with_default("hold", Kind::Time, "500 ms", "Mean time at a level.").at_least("1 ms"),
        Key::with_default("least_rate", Kind::Share, "5 %", "The lowest level, as a share of `rate`."),
    ],
};

/// A rule of generated traces.
struct Rule {
    name: &'static str,
    section: &'static Section,
    read: fn(&Table<'_>) -> Option<Generator>,
}

static RULES: [Rule; 3] = [
    Rule { name: "dsl-retrain", section: &DSL_RETRAIN, read: dsl_retrain },
    Rule { name: "starlink", section: &STARLINK, read: starlink },
    Rule { name: "cell", section: &CELL, read: cell },
];
/// Their names.
pub const KINDS: &[&str] = &["dsl-retrain", "starlink", "cell"];

fn rule_named(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}

/// A trace that is given, and the rules of generated ones.
pub(crate) fn kinds() -> Tagged {
    let variants = RULES.iter().map(|rule| (rule.name, rule.section)).collect();
    Tagged { common: &SECTION, tag: "generate", variants }
}

/// All sections, for the reference.
pub(crate) fn sections() -> Vec<&'static Section> {
    vec![&SECTION, &STEP, &DSL_RETRAIN, &STARLINK, &CELL]
}

pub(crate) static STEP: Section = Section {
    heading: "`trace.steps`",
    about: "Values that hold from a point of time on.",
    keys: &[
        Key::required("at", Kind::Time, "From when on; the first step is at `\"0 s\"`."),
        Key::optional("rate", Kind::Rate, "as the direction says", "Rate of the wire."),
        Key::with_default("outage", Kind::Flag, "false", "Nothing is sent; packets wait."),
        Key::optional("delay", Kind::Time, "as the direction says", "Propagation delay.").at_most(MAX_DELAY),
        Key::optional("loss", Kind::Share, "as the direction says", "Share of packets lost on the wire."),
    ],
};

/// The line that a generated trace belongs to.
#[derive(Clone, Copy)]
pub(crate) enum Number {
    /// An access line, from 0. Lines share a table, so that its seed is that of the first.
    Line(u64),
    /// A `[[link]]`, from 0, or from 1 beside access lines.
    Link(u64),
}

impl Number {
    /// The seed of the generator, from that of the file or from the `own` one. Seeds are far from those that a user
    /// counts, of lines in one direction and of links in the other, so that a further line changes no link.
    fn seed(self, own: Option<u64>, of_file: u64) -> u64 {
        const APART: u64 = 0x9e37_79b9_7f4a_7c15;
        match (self, own) {
            (Self::Line(number), _) => own.unwrap_or(of_file).wrapping_add(number.wrapping_mul(APART)),
            (Self::Link(_), Some(own)) => own,
            (Self::Link(number), None) => of_file.wrapping_sub(number.wrapping_mul(APART)),
        }
    }
}

/// Reads the trace of the direction `line`, if `table` has one, and the rate that stands for it. `start`: that which
/// both directions share.
pub(crate) fn read(table: &Table<'_>, line: &mut Config, number: Number, start: Duration) -> Option<()> {
    let Some(own) = table.table("trace") else { return if table.has("trace") { None } else { Some(()) } };
    let base = Base { rate: line.rate, delay: line.delay, loss: line.loss };
    let trace = match own.text("generate").map(str::to_owned) {
        Some(name) => match rule_named(&name) {
            Some(rule) => generated(own, rule, base, number, start)?,
            None => {
                let hint = format!("known: {}", KINDS.join(", "));
                table.error("trace", format!("{}: unknown generator {name:?}", table.path("trace")), Some(hint));
                return None;
            }
        },
        None => given(&own.open(&SECTION), base, start)?,
    };
    if matches!(trace, Trace::Opportunities(_)) && table.has("rate") {
        let message = format!("{}: not used; a packet-delivery trace says when packets are sent", table.path("rate"));
        table.warning("rate", message, None);
    }
    line.rate = nominal(&trace, table.root_duration());
    if let Trace::Steps(steps) = &trace {
        line.delay = steps.steps().iter().map(|step| step.delay).min().unwrap_or(line.delay);
    }
    line.trace = Some(trace);
    Some(())
}

/// The trace that a rule makes: that of `trace = { generate = "RULE" }` with the keys of `overrides`, on a line that
/// has the values of `base` otherwise.
///
/// # Errors
/// No such rule, or keys and values that the rule does not have.
pub fn generate(rule: &str, base: Base, overrides: &[Override]) -> Result<Trace, Report> {
    let Some(rule) = rule_named(rule) else {
        let place = Place::Argument { text: format!("--generate {rule}") };
        return Err(Report::of(Diagnostic::error(place, format!("unknown rule; known: {}", KINDS.join(", ")))));
    };
    let document = Document::parse(Text::new("--generate", format!("generate = {:?}\n", rule.name)), overrides)?;
    let reader = Reader::new(document);
    let trace = generated(reader.root(), rule, base, Number::Line(0), Duration::ZERO);
    let (report, _) = reader.finish();
    if report.has_errors() { Err(report) } else { Ok(trace.expect("what could not be read is in the report")) }
}

/// A trace of steps or a file.
fn given(own: &Table<'_>, base: Base, start: Duration) -> Option<Trace> {
    let repeat: Option<Duration> = own.optional("repeat");
    let name: Option<String> = own.optional("file");
    let (key, trace) = match (name, own.has("steps")) {
        (Some(name), false) => ("file", from_file(own, &name, base, repeat)),
        (None, true) if own.has("unit") => return refuse(own, "unit", "times of steps have units"),
        (None, true) => ("steps", file::in_steps(steps(own, base)?, repeat)),
        (Some(_), true) => return refuse(own, "steps", "a file and steps: give one of them"),
        (None, false) => return refuse(own, "file", "neither a file nor steps nor a generator"),
    };
    let trace = trace.map_or_else(|message| refuse(own, key, &message), Some)?;
    from_start(own, &trace, start)
}

/// The trace from the time on at which the run begins: its own, or that which both directions share.
fn from_start(own: &Table<'_>, trace: &Trace, shared: Duration) -> Option<Trace> {
    let start = if own.has("start") { own.optional("start")? } else { shared };
    let started = trace.starting_at(start);
    started.map_or_else(|error| refuse(own, "start", &error.to_string()), Some)
}

/// The point at which the traces of two directions begin unless they say it: the first that one of them states. `paths`
/// lead from `table` to the starts.
pub(crate) fn shared_start(table: &Table<'_>, paths: [&[&str]; 2]) -> Duration {
    let stated = paths.into_iter().find_map(|path| table.text_at(path));
    // A start that is no time is reported where it is read.
    stated.and_then(|start| start.parse().ok()).unwrap_or_default()
}

/// True if the direction has a generated trace.
pub(crate) fn is_generated(table: &Table<'_>) -> bool {
    table.table("trace").is_some_and(|own| own.text("generate").is_some())
}

fn generated(own: Unopened<'_>, rule: &Rule, base: Base, number: Number, start: Duration) -> Option<Trace> {
    let own = &own.open(rule.section);
    let given = if own.has("seed") { Some(own.optional("seed")?) } else { None };
    let seed = number.seed(given, own.root_seed().unwrap_or(1));
    let (generator, length) = ((rule.read)(own)?, own.get("length")?);
    own.get::<String>("generate")?;
    let trace = generator.steps(base, length, seed).and_then(|steps| file::in_steps(steps, Some(length)));
    let trace = trace.map_or_else(|message| refuse(own, "generate", &message), Some)?;
    from_start(own, &trace, start)
}

fn dsl_retrain(own: &Table<'_>) -> Option<Generator> {
    let (every, least_rate) = (own.get("every"), own.get("least_rate"));
    let (outage_from, outage_to) = (own.get("outage_from")?, own.get("outage_to")?);
    if outage_from > outage_to {
        return refuse(own, "outage_from", "longer than outage_to");
    }
    Some(Generator::DslRetrain { every: every?, outage_from, outage_to, least_rate: least_rate? })
}

fn starlink(own: &Table<'_>) -> Option<Generator> {
    let (every, outage, least_rate) = (own.get("every")?, own.get("outage")?, own.get("least_rate"));
    if outage >= every {
        let key = if own.has("outage") { "outage" } else { "every" };
        let message = format!(
            "an outage of {outage} in each {every} leaves no time to send; `every` (15 s by default) is longer than \
             `outage` (100 ms by default)"
        );
        return refuse(own, key, &message);
    }
    Some(Generator::Starlink { every, outage, least_rate: least_rate?, more_delay: own.get("more_delay")? })
}

fn cell(own: &Table<'_>) -> Option<Generator> {
    let levels = own.get::<u64>("levels").and_then(|levels| u32::try_from(levels).ok());
    let (hold, least_rate) = (own.get("hold"), own.get("least_rate"));
    Some(Generator::Cell { levels: levels?, hold: hold?, least_rate: least_rate? })
}

/// A file that the table names, seen from the folder of the scenario.
pub(crate) fn beside(table: &Table<'_>, name: &str) -> PathBuf {
    table.directory().map_or_else(|| PathBuf::from(name), |directory| directory.join(name))
}

fn from_file(table: &Table<'_>, name: &str, base: Base, repeat: Option<Duration>) -> Result<Trace, String> {
    let path = beside(table, name);
    let text = files::text(table.files(), &path).map_err(|error| format!("{}: {error}", path.display()))?;
    let unit = table.optional_choice("unit", &TimeUnit::NAMES);
    let read = file::read(&text, base, repeat, unit).map_err(|error| format!("{}: {error}", path.display()));
    read.map(|read| read.trace)
}

fn refuse<T>(table: &Table<'_>, key: &'static str, message: &str) -> Option<T> {
    table.error(key, format!("{}: {message}", table.path(key)), None);
    None
}

/// The rate that stands for a trace where one is needed: the mean over its period, or over the `duration` of the run
/// where it is played once.
pub(crate) fn nominal(trace: &Trace, duration: Option<Duration>) -> Option<BitRate> {
    let first = match trace {
        Trace::Steps(steps) => steps.steps().iter().find_map(|step| step.rate),
        Trace::Opportunities(_) => None,
    };
    trace.period().or(duration).and_then(|span| trace.mean_rate(span)).or(first)
}

fn steps(table: &Table<'_>, base: Base) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    for step in table.tables("steps") {
        let step = step.open(&STEP);
        let (at, outage) = (step.get::<Duration>("at"), step.get::<bool>("outage"));
        if let Some(Err(zero)) = step.text_at(&["rate"]).map(str::parse::<BitRate>)
            && *zero.problem() == Problem::Zero
        {
            let hint = "outage = true, where nothing is sent".to_owned();
            step.error("rate", format!("{}: {zero}", step.path("rate")), Some(hint));
            return None;
        }
        let rate: Option<BitRate> = step.optional("rate");
        if outage? && rate.is_some() {
            return refuse(&step, "outage", "an outage with a rate");
        }
        let rate = if outage? { None } else { rate.or(base.rate) };
        if !outage? && rate.is_none() {
            // A rate that is there and cannot be read has its own error.
            if !step.has("rate") {
                step.missing("rate");
            }
            return None;
        }
        let delay = step.optional("delay").unwrap_or(base.delay);
        steps.push(Step { at: at?, rate, delay, loss: step.optional("loss").unwrap_or(base.loss) });
    }
    Some(steps)
}
