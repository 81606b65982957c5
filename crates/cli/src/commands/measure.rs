//! `lastmile measure`: measures a real line, and serves the other end.

mod detect;
mod key;
mod options;
mod outputs;
mod page;
mod progress;
mod server;
mod show;
mod source;
mod table;
mod unit;

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use lastmile_measure::conditions::Conditions;
use lastmile_measure::foreign::responsiveness::{Trust, Unsent};
use lastmile_measure::load::{Load, Stop};
use lastmile_measure::own::Client;
use lastmile_measure::own::wire::PORT;
use lastmile_measure::report::Measurement;
use lastmile_measure::session::{self, Plan};

use crate::commands::live_view::Display;
use crate::failure::{Exit, Failure, Result};
use crate::folders::Folders;
use crate::printer::Printer;

use self::options::{Phases, Ping};
use self::outputs::{Outputs, write};
use self::progress::Progress;
use self::source::{Protocol, Source, Wanted, first};

/// Measure a real line: bandwidth, and latency under load
///
/// Measures the idle line, a download, an upload, and both at a time, each with the round-trip
/// times of probes. HOST runs `lastmile measure --serve` with the same key, or `iperf3 -s`. Every
/// figure has its 95 % interval. Results go to standard output, progress to standard error.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    client: Measured,

    #[command(flatten)]
    server: server::Serving,

    #[command(flatten)]
    key: key::Secret,
}

#[derive(Subcommand)]
enum Command {
    Show(show::Arguments),
    /// Print a unit for systemd that keeps a server running
    Unit(unit::Arguments),
}

#[derive(Args)]
struct Measured {
    /// Name or address of the server
    #[arg(required_unless_present = "serve", conflicts_with = "serve", value_parser = options::host)]
    host: Option<String>,

    /// Port of the server [default: 5209 of lastmile, TCP and UDP; 5201 of iperf3, 2112 of irtt,
    /// 443 of a responsiveness server]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,

    /// Protocol of the server
    #[arg(long, value_name = "NAME", default_value = "auto", conflicts_with = "serve")]
    protocol: Protocol,

    /// Phases in their order: idle, download, upload, both [default: all four; idle alone of an irtt
    /// server]
    #[arg(long, value_name = "LIST", conflicts_with = "serve")]
    phases: Option<Phases>,

    /// Length of each phase; the first 3 s of a load (a third of a short phase) are its ramp, which
    /// figures leave out
    #[arg(long, value_name = "TIME", default_value = "10 s", conflicts_with = "serve", value_parser = options::length)]
    duration: Duration,

    #[command(flatten)]
    load: LoadOptions,

    /// Further probes: HOST for ICMP echo, HOST:PORT for TCP handshakes, irtt/HOST for an irtt
    /// server, with the code point of their packets (0 to 63) after an @, such as 192.0.2.1@46;
    /// repeatable
    #[arg(long, value_name = "TARGET[@DSCP]", conflicts_with = "serve")]
    ping: Vec<Ping>,

    /// Time between two probes of a series
    #[arg(
        long,
        value_name = "TIME",
        default_value = "100 ms",
        conflicts_with = "serve",
        value_parser = options::interval
    )]
    interval: Duration,

    /// End a phase after 5 s or later once the intervals of its rates are within this percentage
    #[arg(long, value_name = "PERCENT", conflicts_with = "serve", value_parser = options::percent)]
    precision: Option<f64>,

    #[command(flatten)]
    trust: Trusting,

    #[command(flatten)]
    irtt_key: key::IrttSecret,

    #[command(flatten)]
    outputs: Outputs,

    /// Print a line each second on a terminal, and no live view
    #[arg(long, conflicts_with = "serve")]
    plain: bool,

    #[command(flatten)]
    detecting: detect::Detecting,
}

/// The load of the phases.
#[derive(Args)]
struct LoadOptions {
    /// TCP connections in each direction
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4,
        conflicts_with = "serve",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    streams: u32,

    /// Congestion control of both ends, such as cubic [default: that of each machine]
    #[arg(long, value_name = "NAME", conflicts_with = "serve")]
    congestion: Option<String>,

    /// Load an iperf3 server's line with UDP datagrams at this rate of payload in each direction, such
    /// as "5 Mbit/s", in place of TCP; loss, jitter and reordering are reported
    #[arg(long, value_name = "RATE", conflicts_with_all = ["serve", "congestion"], value_parser = options::rate)]
    udp: Option<NonZeroU64>,

    /// Let uploads to a responsiveness server fill the buffers of their sockets, as those of most
    /// programs do, in place of at most 5 ms of unsent data
    #[arg(long, conflicts_with = "serve")]
    fill_buffers: bool,
}

/// The certificates of a responsiveness server.
#[derive(Args)]
struct Trusting {
    /// Trust the authorities of this PEM file, in place of those of the web; for a responsiveness
    /// server
    #[arg(long, value_name = "FILE", conflicts_with = "serve")]
    authorities: Option<PathBuf>,

    /// Trust any certificate of a responsiveness server
    #[arg(long, conflicts_with_all = ["serve", "authorities"])]
    insecure: bool,
}

impl Trusting {
    fn trust(&self) -> Trust {
        match (&self.authorities, self.insecure) {
            (_, true) => Trust::Anyone,
            (Some(file), false) => Trust::Authorities(file.clone()),
            (None, false) => Trust::Web,
        }
    }
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    match (&arguments.command, &arguments.client.host) {
        (Some(Command::Show(arguments)), _) => show::run(arguments, printer),
        (Some(Command::Unit(arguments)), _) => unit::run(arguments, printer),
        (None, None) => server::run(&arguments.server, arguments.client.port, &arguments.key, printer),
        (None, Some(host)) => measure(host, &arguments.client, &arguments.key, printer),
    }
}

fn measure(host: &str, options: &Measured, key: &key::Secret, printer: &mut Printer) -> Result {
    let mut folders = Folders::default();
    options.outputs.prepare(&mut folders)?;
    options.detecting.prepare(&mut folders)?;
    if options.detecting.detect_idle {
        detect::idle(first(host, 0)?.ip(), &options.outputs, printer)?;
        return Ok(Exit::Done);
    }
    let stop = Arc::new(Stop::default());
    let signal = watch(&stop)?;
    if options.detecting.detect {
        let key = key.read()?;
        let mut client = Client::connect(host, options.port.unwrap_or(PORT), &key)?;
        // A server whose sessions are all taken leaves the detection without another flow.
        let (address, port) = (client.address().ip().to_string(), client.address().port());
        let other = Client::connect(&address, port, &key).ok();
        let complete =
            detect::loaded((&mut client, other), &stop, host, &options.detecting, &options.outputs, printer)?;
        return Ok(if complete { Exit::Done } else { signal.ended() });
    }
    let wanted = options.wanted(host)?;
    wanted.congestion.map_or(Ok(()), source::check_congestion)?;
    let mut source = Source::open(options.protocol, &wanted, key)?;
    let mut probers = source.probers(&wanted);
    probers.extend(source::chosen(&options.ping, &wanted, &source)?);
    let lacks = source.lacks();
    let mut load = source.load(&wanted);
    let plan = plan(host, options, load.is_some())?;
    match &load {
        Some(load) => {
            printer.talk(&format!("load: {}, {}", load.peer(), source::streams(&wanted, &**load)));
        }
        None => printer.talk("no load: the idle line alone"),
    }
    let view = Display { plain: options.plain }.view(&format!("lastmile measure {host}"), "");
    let mut progress = Progress::new(printer, view);
    let load = load.as_mut().map(|load| &mut **load as &mut dyn Load);
    let mut measured = session::run(&plan, load, &mut probers, &stop, &mut |event| progress.tell(&event));
    // The view goes, and gives the terminal back for the results.
    drop(progress);
    measured.warnings.extend(lacks.into_iter().chain(no_delay(&measured).map(str::to_owned)));
    let conditions = Conditions::of(&measured);
    write(&measured, &conditions, &options.outputs, printer)?;
    Ok(match signal.received() {
        Some(signal) => Exit::Interrupted(signal),
        // Not one phase: the load never came about.
        None if measured.phases.is_empty() => Exit::CouldNotRun,
        None if !measured.complete => Exit::No,
        None => Exit::Done,
    })
}

impl Measured {
    fn wanted<'a>(&'a self, host: &'a str) -> Result<Wanted<'a>> {
        Ok(Wanted {
            host,
            port: self.port,
            streams: self.load.streams,
            congestion: self.load.congestion.as_deref(),
            duration: self.duration,
            loads: self.phases.as_ref().is_none_or(|phases| phases.0.iter().any(Option::is_some)),
            interval: self.interval,
            trust: self.trust.trust(),
            unsent: if self.load.fill_buffers { Unsent::SocketBuffer } else { Unsent::default() },
            irtt_key: self.irtt_key.read()?,
            udp_bps: self.load.udp,
        })
    }
}

/// The plan, with the usual phases of the protocol if none are named.
fn plan(host: &str, options: &Measured, has_load: bool) -> Result<Plan> {
    let usual = || Phases(if has_load { Phases::ALL.to_vec() } else { vec![None] });
    let phases = options.phases.clone().unwrap_or_else(usual).0;
    if let Some(load) = phases.iter().copied().flatten().next().filter(|_| !has_load) {
        return Err(Failure::new(format_args!("--phases {}: an irtt server has no load", session::words(load)))
            .hint("--phases idle, or irtt probes next to another load: --ping irtt/HOST"));
    }
    Ok(Plan {
        host: host.to_owned(),
        phases,
        duration: options.duration,
        ramp: Plan::usual_ramp(options.duration),
        enough: options.precision.map(|percent| percent / 100.0),
    })
}

/// The remedy where not one probe was answered, as behind a path that drops ICMP next to a load of iperf3.
fn no_delay(measured: &Measurement) -> Option<&'static str> {
    let mut series = measured.phases.iter().flat_map(|phase| &phase.probes).peekable();
    let is_silent = series.peek().is_some() && series.all(|series| series.round_trip.is_none());
    is_silent.then_some("no delay was measured: `--ping HOST:PORT` of another service probes by TCP handshakes")
}

/// A signal ends the measurement, and the results so far are printed.
fn watch(stop: &Arc<Stop>) -> Result<Signal> {
    let heard = lastmile_live::stop::Stop::on_signals()?;
    let heard = Arc::new(heard);
    let (watched, stop) = (Arc::clone(&heard), Arc::clone(stop));
    // The thread ends with the program.
    std::thread::spawn(move || {
        while let Ok(false) = watched.within(Duration::from_secs(3600)) {}
        stop.request();
    });
    Ok(Signal(heard))
}

struct Signal(Arc<lastmile_live::stop::Stop>);

impl Signal {
    /// The exit of a measurement that is not complete.
    fn ended(&self) -> Exit {
        self.received().map_or(Exit::No, Exit::Interrupted)
    }

    fn received(&self) -> Option<u8> {
        self.0.signal().and_then(|signal| u8::try_from(signal).ok())
    }
}

impl From<lastmile_measure::Error> for Failure {
    fn from(error: lastmile_measure::Error) -> Self {
        Self::new(error)
    }
}

#[cfg(test)]
mod tests {
    use clap::ArgMatches;
    use lastmile_measure::probe::{Kind, Subject};
    use lastmile_measure::report::{Delays, Estimate, Phase, Series};

    use super::*;

    #[test]
    fn a_measurement_without_any_delay_names_the_remedy() {
        let of = |answered: &[bool]| {
            let series = |is_answered: &bool| {
                let subject = Subject { target: "192.0.2.1".to_owned(), kind: Kind::Icmp, code_point: 0 };
                let p50_s = Estimate::default();
                let (min_s, p95_s, p99_s, max_s, mean_s, jitter_s) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
                let delays = Delays { count: 1, min_s, p50_s, p95_s, p99_s, max_s, mean_s, jitter_s };
                Series { round_trip: is_answered.then_some(delays), ..Series::new(subject, Vec::new()) }
            };
            let phase = Phase { probes: answered.iter().map(series).collect(), ..Phase::default() };
            no_delay(&Measurement {
                schema: 1,
                version: String::new(),
                started_unix_s: 0.0,
                host: String::new(),
                load: None,
                phases: vec![phase],
                clocks: None,
                warnings: Vec::new(),
                complete: true,
            })
        };
        assert!(of(&[false, false]).is_some_and(|remedy| remedy.contains("`--ping HOST:PORT`")));
        assert_eq!([of(&[false, true]), of(&[])], [None, None]);
    }

    /// A value that the option takes; `None` for one without a value.
    fn value(id: &str) -> Option<&'static str> {
        Some(match id {
            "protocol" => "iperf3",
            "phases" => "idle",
            "duration" | "limit_time" => "5 s",
            "interval" => "50 ms",
            "streams" | "limit_clients" | "port" => "2",
            "precision" => "5",
            "udp" | "limit_rate" => "5 Mbit/s",
            "listen" => "192.0.2.1",
            "metrics" => "127.0.0.1:9101",
            "plain" | "insecure" | "fill_buffers" | "detect" | "detect_idle" => return None,
            _ => "x",
        })
    }

    fn parsed(words: &[&str]) -> std::result::Result<ArgMatches, clap::Error> {
        Arguments::augment_args(clap::Command::new("measure")).try_get_matches_from([&["measure"], words].concat())
    }

    /// No option is taken and ignored: each belongs to a measurement, to a server, or is read by both.
    #[test]
    fn every_option_of_one_mode_is_refused_by_the_other() {
        let command = Arguments::augment_args(clap::Command::new("measure"));
        let (mut both, mut seen) = (Vec::new(), 0);
        for argument in command.get_arguments().filter(|argument| argument.get_long().is_some()) {
            let id = argument.get_id().as_str();
            if matches!(id, "serve" | "help") {
                continue;
            }
            let long = format!("--{}", argument.get_long().unwrap());
            let option: Vec<&str> = std::iter::once(long.as_str()).chain(value(id)).collect();
            let detect: &[&str] = if id == "scenario" { &["--detect"] } else { &[] };
            let as_client = parsed(&[&["192.0.2.1"], detect, &option].concat());
            let as_server = parsed(&[&["--serve"], detect, &option].concat());
            match (as_client, as_server) {
                (Ok(_), Ok(_)) => both.push(id.to_owned()),
                (Ok(_), Err(error)) | (Err(error), Ok(_)) => {
                    assert_eq!(error.kind(), clap::error::ErrorKind::ArgumentConflict, "{long}: {error}");
                    assert!(error.to_string().contains(if detect.is_empty() { &long } else { "--serve" }), "{error}");
                }
                (Err(error), Err(_)) => panic!("{long}: {error}"),
            }
            seen += 1;
        }
        both.sort();
        assert_eq!(both, ["key_file", "port"]);
        assert!(seen > 20, "{seen} options");
    }
}
