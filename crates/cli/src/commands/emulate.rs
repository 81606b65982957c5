//! `lastmile emulate`: is the line of a scenario for real hosts, until it is interrupted or a command behind it ends.

mod path;
pub(super) mod summary;

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use clap::Args;
use lastmile_live::emulate::{Config, Ended, Outcome, Place, Side, Tuning, World};
use lastmile_live::io;
use lastmile_live::stop::Stop;
use lastmile_results::table;
use lastmile_scenario::Scenario;
use lastmile_units::Duration;

use crate::exit::{Exit, Failure, Result};
use crate::printer::Printer;

pub(super) use self::path::{Path, ends as two_nodes};

/// Be the line of a scenario for real hosts
///
/// Makes two network namespaces with a TUN device each, and carries what is sent from one to the other along the scenario's
/// links between client and server, each with its rate, encapsulation, delay and queue: by the code that simulates them. The
/// scenario's traffic is left out. Ends with Ctrl-C, after --duration, or with COMMAND, which runs at the client's end and
/// decides the exit code; then prints what each link did. Linux, as root.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Scenario file with an [access] line, or with links of its own and --between
    scenario: PathBuf,

    /// A command to run at the client's end, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    /// Override a key of the file, such as access.up.rate="1 Mbit/s"
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Nodes of the file that the two ends stand for [default: client,server]
    #[arg(long, value_name = "CLIENT,SERVER", value_parser = path::ends)]
    between: Option<(String, String)>,

    /// Existing network namespace for the client's end [default: a new one, removed at the end]
    #[arg(long, value_name = "NAME")]
    client_ns: Option<String>,

    /// Existing network namespace for the server's end [default: a new one, removed at the end]
    #[arg(long, value_name = "NAME", conflicts_with = "server_here")]
    server_ns: Option<String>,

    /// Put the server's end into this namespace: hosts behind the line then reach this machine
    #[arg(long)]
    server_here: bool,

    /// Be the line between two existing interfaces: what comes in through one goes out through the other
    ///
    /// The client's end is behind the first, the server's behind the second. They need no address; nothing else on this
    /// machine sees what comes in through them. If both are ports of a bridge of the kernel, that carries on when
    /// lastmile ends, however it ends.
    #[arg(long, value_name = "IF1,IF2", value_parser = interfaces, conflicts_with_all = ["client_ns", "server_ns", "server_here", "mtu", "command"])]
    bridge: Option<(String, String)>,

    /// With --bridge, by what frames come and go: auto, packet-sockets, or xdp
    #[arg(long, value_name = "PATH", default_value = "auto", value_parser = packet_path, requires = "bridge")]
    path: io::Path,

    /// MTU of both devices, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(68..))]
    mtu: u16,

    /// Stop after this time [default: at Ctrl-C or when COMMAND ends]
    #[arg(long, value_name = "TIME", conflicts_with = "command")]
    duration: Option<Duration>,

    /// Stay awake for this long before each departure: more punctual, costs processor time [default: 150 us where there is
    /// more than one processor]
    #[arg(long, value_name = "TIME")]
    spin: Option<Duration>,

    /// Stay awake for this long after each packet: the next is not held up by a wake-up, costs processor time [default: 250 ms
    /// where there is more than one processor, 0 s with --bridge]
    #[arg(long, value_name = "TIME")]
    awake: Option<Duration>,

    /// Run before every ordinary process (SCHED_FIFO)
    #[arg(long)]
    realtime: bool,

    /// Print JSON: the summary of `lastmile run`, and what only real packets have under "live"
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let scenario = Scenario::load(&arguments.scenario, &arguments.set).map_err(Failure::Report)?;
    printer.warnings(scenario.warnings());
    let path = Path::of(&scenario, arguments.between.as_ref())?;
    let config = config(arguments, &path, scenario.network_ref().seed);
    // Before anything is made: from here on a signal ends the run, and the run takes away what it made.
    let stop = Stop::on_signals()?;
    let mut world = World::build(&config)?;
    let outcome = match arguments.command.split_first() {
        None => {
            printer.talk(&ends(&world));
            world.run(&stop, arguments.duration)
        }
        Some((program, rest)) => world.run_command(&stop, Command::new(program).args(rest)),
    };
    let outcome = outcome?;
    drop(world);
    print(arguments, &scenario, &path, &outcome, printer)?;
    Ok(exit(&outcome))
}

fn config(arguments: &Arguments, path: &Path, seed: u64) -> Config {
    let place = |name: &Option<String>| name.clone().map_or(Place::New, Place::Existing);
    let interface = |name: &String| Place::Interface { namespace: None, name: name.clone() };
    let (client, server) = match &arguments.bridge {
        Some((client, server)) => (interface(client), interface(server)),
        None if arguments.server_here => (place(&arguments.client_ns), Place::Here),
        None => (place(&arguments.client_ns), place(&arguments.server_ns)),
    };
    Config {
        client,
        server,
        mtu: arguments.mtu,
        path: arguments.path,
        seed,
        tuning: tuning(arguments),
        ..Config::new(path.up(), path.down())
    }
}

fn tuning(arguments: &Arguments) -> Tuning {
    let usual = Tuning::default();
    // An interface may have packets all day, and packet sockets know when they came.
    let awake = if arguments.bridge.is_some() { usual.awake } else { Tuning::awake_between_packets() };
    Tuning {
        spin: arguments.spin.unwrap_or(usual.spin),
        awake: arguments.awake.unwrap_or(awake),
        realtime: arguments.realtime,
    }
}

/// Where the two ends are, and how to use them.
fn ends(world: &World) -> String {
    let place = |side: &Side| match side.namespace() {
        Some(namespace) => format!("in network namespace {}", namespace.name()),
        None => "in this network namespace".to_owned(),
    };
    let (client, server) = (world.client(), world.server());
    let (Some(client_address), Some(server_address)) = (client.address(), server.address()) else {
        return format!(
            "client behind interface {}, packet path: {}\nserver behind interface {}, packet path: {}\nCtrl-C ends the line",
            client.device(),
            client.path(),
            server.device(),
            server.path(),
        );
    };
    let prefix =
        client.namespace().map_or_else(String::new, |namespace| format!("ip netns exec {} ", namespace.name()));
    format!(
        "client {client_address} {}, device {}\nserver {server_address} {}, device {}\nfor example: {prefix}ping {server_address}; Ctrl-C ends the line",
        place(client),
        client.device(),
        place(server),
        server.device(),
    )
}

pub(super) fn packet_path(text: &str) -> std::result::Result<io::Path, String> {
    io::Path::ALL.into_iter().find(|path| path.name() == text).ok_or_else(|| {
        let names = io::Path::ALL.map(io::Path::name);
        format!("one of {} is needed", names.join(", "))
    })
}

/// `IF1,IF2`.
fn interfaces(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once(',') {
        Some((one, other)) if one == other => Err("two different interfaces are needed".to_owned()),
        Some((one, other)) if !one.is_empty() && !other.is_empty() && !other.contains(',') => {
            Ok((one.to_owned(), other.to_owned()))
        }
        _ => Err("two interfaces with a comma between them are needed, such as eth1,eth2".to_owned()),
    }
}

/// On standard output; beside a command, whose output that is, on standard error.
fn print(
    arguments: &Arguments,
    scenario: &Scenario,
    path: &Path,
    outcome: &Outcome,
    printer: &mut Printer,
) -> Result<()> {
    let document = summary::document(arguments, scenario, path, outcome);
    let text = if arguments.json {
        let mut text = serde_json::to_string_pretty(&document).map_err(std::io::Error::from)?;
        text.push('\n');
        text
    } else {
        format!("{}\n{}", table::run(&document.summary, printer.width()), document.live.table())
    };
    if arguments.command.is_empty() {
        printer.data(&text)?;
    } else {
        printer.talk(text.trim_end());
    }
    Ok(())
}

fn exit(outcome: &Outcome) -> Exit {
    match outcome.ended {
        // Ctrl-C is how a line without a command ends.
        Ended::Asked | Ended::Signal(_) | Ended::Limit => Exit::Done,
        Ended::Command(status) => Exit::Command(code(status)),
    }
}

/// As a shell has it: the status, or 128 and the number of the signal that ended the command.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(2);
    u8::try_from(code).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_that_of_the_command() {
        // wait(2): the status is in the upper byte, a signal in the lower.
        assert_eq!(code(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(code(ExitStatus::from_raw(15)), 143);
    }
}
