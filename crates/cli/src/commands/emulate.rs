//! `lastmile emulate`: emulates the line of a scenario for real hosts, until it is interrupted or
//! its command ends.

mod dashboard;
pub(super) mod devices;
mod exit;
mod operator;
pub(super) mod status;
mod summary;
pub(super) mod what_if;

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::{Args, Subcommand};
use lastmile_lab::path::Path;
use lastmile_lab::what_if::{Alternatives, Script};
use lastmile_live::autorate::{Reflectors, Steering};
use lastmile_live::control::Listener;
use lastmile_live::emulate::{Config, Handle, Outcome, Place, Side, Tuning, World};
use lastmile_live::netns::Namespace;
use lastmile_live::stop::Stop;
use lastmile_live::user::{self, Inside};
use lastmile_live::{Error, io};
use lastmile_scenario::Override;
use lastmile_units::Duration;
use signal_hook::consts::SIGUSR1;

use crate::failure::{Failure, Result};
use crate::printer::Printer;

use super::live_view::{self, Display};
use super::web::Web;
use super::{control, leftovers, links, ticker};
use lastmile_studies::variant::policy_override;

use self::dashboard::Dashboard;
use self::exit::exit;
use self::operator::Operator;
use self::status::{Status, Teller};

/// Emulate a scenario's line for real hosts
///
/// Creates two network namespaces with a TUN device each, and carries packets between them along
/// the scenario's links between client and server, each with its rate, encapsulation, delay and
/// queue. The code is that of the simulation. The scenario's traffic is ignored. A terminal shows a
/// live view without COMMAND; `q` leaves it. Ends with Ctrl-C, after --duration, or with COMMAND,
/// which runs at the client's end and decides the exit code; then prints the counters of each
/// link. Linux; as root, or without root if the kernel allows user namespaces to all users: then
/// only the other end is behind the line.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    asked: Option<Asked>,

    // Not an option: clap treats an optional group with a group inside as absent.
    #[command(flatten)]
    start: Start,
}

#[derive(Subcommand)]
enum Asked {
    /// Show the counters of a running line: sent, dropped, overlimits, backlog, bytes on the wire
    Status(Looking),
}

#[derive(Args)]
struct Looking {
    /// The process of the line, if you run several
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,

    /// Its control socket, if one was given
    #[arg(long, value_name = "PATH", conflicts_with = "pid")]
    control: Option<PathBuf>,

    #[command(flatten)]
    look: control::Look,
}

/// Options of a line between two namespaces that a line between two interfaces does not have.
const NAMESPACE_OPTIONS: [&str; 7] = ["client_ns", "server_ns", "server_here", "server", "map_root", "mtu", "command"];

#[derive(Args)]
struct Start {
    /// Scenario file with an [access] line, or with links of its own and --between
    #[arg(required = true)]
    scenario: Option<PathBuf>,

    /// A command to run at the client's end, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    /// Override a key of the file, such as access.up.rate="1 Mbit/s"
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<Override>,

    /// Policy in place of the file's: a built-in one, a file, or none for the line's own queues
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,

    #[command(flatten)]
    ends: Ends,

    /// Stop after this time [default: at Ctrl-C or when COMMAND ends]
    #[arg(long, value_name = "TIME", conflicts_with = "command")]
    duration: Option<Duration>,

    /// Busy-wait for this long before each departure: less lateness, more processor time [default:
    /// 150 us with more than one processor, for at most 5 % of the time]
    #[arg(long, value_name = "TIME")]
    spin: Option<Duration>,

    /// Stay awake for this long after each packet: no wake-up delays the next, more processor time
    /// [default: 250 ms with --realtime and more than one processor, otherwise and with --bridge 0
    /// s]
    #[arg(long, value_name = "TIME")]
    awake: Option<Duration>,

    /// Take precedence over all ordinary processes (SCHED_FIFO), and sleep for at least a tenth of
    /// each millisecond
    #[arg(long)]
    realtime: bool,

    /// Socket for `lastmile emulate status` [default: one named after this process, which status
    /// finds]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,

    #[command(flatten)]
    web: Web,

    // Copied from `Display`: clap treats an optional group within another group as absent.
    /// Show a line of counters on a terminal, and no live view
    #[arg(long)]
    plain: bool,

    /// Print JSON: the summary of `lastmile run`, and results of real packets only under "live"
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Ends {
    /// Nodes of the file for the two ends [default: client,server]
    #[arg(long, value_name = "CLIENT,SERVER", value_parser = two_nodes)]
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

    /// A command to run at the server's end, by sh: COMMAND begins when the server can be reached,
    /// and the server ends with the line; one that failed before makes the exit code 2 in place of 0
    #[arg(long, value_name = "COMMAND")]
    server: Option<String>,

    /// Without root: be root behind the line, for commands that set up networks [default: the same
    /// user]
    #[arg(long)]
    map_root: bool,

    /// Emulate the line between two existing interfaces: packets received on one are sent on the
    /// other
    ///
    /// The client's end is behind the first interface, the server's behind the second. They need no
    /// address; nothing else on this machine sees the packets that they receive. If both are ports
    /// of a bridge of the kernel, that bridge carries packets again when lastmile ends, for
    /// whatever reason.
    #[arg(long, value_name = "IF1,IF2", value_parser = interfaces, conflicts_with_all = NAMESPACE_OPTIONS)]
    bridge: Option<(String, String)>,

    /// With --bridge, the packet path: auto, packet-sockets, packet-sockets-nft, or xdp
    #[arg(long, value_name = "PATH", default_value = "auto", value_parser = packet_path, requires = "bridge")]
    path: io::Path,

    /// MTU of both devices, in bytes [default: that of the line, and 1500 where it has none]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(68..))]
    mtu: Option<u16>,
}

impl Start {
    /// The changes of the file.
    fn overrides(&self) -> Vec<Override> {
        self.set.iter().cloned().chain(self.policy.as_deref().map(policy_override)).collect()
    }
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    match (&arguments.asked, &arguments.start.scenario) {
        (Some(Asked::Status(looking)), _) => {
            let found = looking.control.clone().map_or_else(|| operator::find(looking.pid), Ok)?;
            control::look::<Status>(&found, &looking.look, printer, &|seen, _| Status::text(seen))
        }
        (None, Some(scenario)) => emulate(scenario, &arguments.start, printer),
        (None, None) => Err(Failure::new("no scenario to be the line of")),
    }
}

fn emulate(file: &std::path::Path, start: &Start, printer: &mut Printer) -> Result {
    let (script, scenario) = Script::read(file, &start.overrides(), start.ends.between.as_ref())?;
    printer.warnings(scenario.warnings());
    let path = Path::of(&scenario, start.ends.between.as_ref())?;
    let autorates = path.autorates();
    if start.ends.bridge.is_some() && !autorates.is_empty() {
        return Err(Error::NoReflector.into());
    }
    let mut config = config(start, &path, scenario.network_ref().seed);
    // Before namespaces are created: from here on a signal ends the run, and the run removes them.
    let stop = Stop::on_signals()?;
    // Namespaces have a loopback interface of their own.
    let dashboard = start.web.open(false)?.map(|opened| Dashboard {
        opened,
        alternatives: Alternatives::of(script, &scenario, [&config.up, &config.down]),
    });
    // The path depends on the user outside of the namespaces.
    let listener = operator::listen(start.control.as_deref())?;
    if config.client == Place::New && config.server == Place::New && !user::has_rights() {
        user::enter(if start.ends.map_root { Inside::Root } else { Inside::Themselves })?;
        (config.client, config.server) = (Place::Unnamed, Place::Unnamed);
    }
    if [&config.client, &config.server].iter().all(|place| **place == Place::New) {
        leftovers::remove(printer);
    }
    let mut world = World::build(&config)?;
    if let Some(server) = &start.ends.server {
        // Standard output is for data.
        let mut command = Command::new("sh");
        command.args(["-c", server]).stdin(Stdio::null());
        if start.command.is_empty() && start.display().is_possible() {
            let (one, other) = live_view::messages()?;
            command.stdout(one).stderr(other);
        } else {
            command.stdout(std::io::stderr().as_fd().try_clone_to_owned()?);
        }
        world.serve(&stop, &mut command)?;
    }
    let ends = ends(&world);
    if start.command.is_empty() {
        printer.talk_lines(&ends);
    }
    dashboard.iter().for_each(|dashboard| dashboard.opened.tell(printer));
    for side in [world.client(), world.server()] {
        if let Some(obstacle) = side.without_stamps() {
            printer.talk(&without_stamps(side.device(), obstacle));
        }
    }
    let steered = world.steering(&autorates)?;
    let teller = Teller::new(scenario.name(), &config.up, &config.down);
    let watch = start.command.is_empty().then(|| Watch {
        title: format!("lastmile emulate {}", scenario.name()),
        printed: ends,
        display: start.display(),
    });
    let outcome = attended(&teller, (listener, dashboard, steered), &mut world, watch.as_ref(), |world| {
        match start.command.split_first() {
            None => world.run(&stop, start.duration),
            Some((program, rest)) => world.run_command(&stop, Command::new(program).args(rest)),
        }
    })?;
    let server = world.server_ended();
    if let Some(status) = server {
        printer.talk(&format!("the command at the server's end ended before the line did ({status})"));
    }
    drop(world);
    summary::print(start, &scenario, &path, &outcome, printer)?;
    Ok(exit(outcome.ended, server))
}

/// The view on a terminal while packets are carried.
struct Watch {
    title: String,
    /// The messages before.
    printed: String,
    display: Display,
}

impl Watch {
    /// Shows the live view, and a line of counters without it, until `end`.
    fn run(&self, handle: &Handle, end: &Stop, teller: &Teller) {
        if let Some(view) = self.display.view(&self.title, &self.printed) {
            let mut before = None;
            let left = live_view::show(&view, end, || {
                let now = handle.states()?;
                let snapshot = teller.view(before.as_ref(), &now);
                before = Some(now);
                Some(snapshot)
            });
            if !left {
                return;
            }
        }
        if ticker::is_watched() {
            ticker::tick(&|| handle.glance(), end, &|before, now| teller.brief(before, now));
        }
    }
}

/// Carries packets while other threads answer at the control socket and show counters.
fn attended(
    teller: &Teller,
    (listener, dashboard, steered): (Option<Listener>, Option<Dashboard>, Vec<(Steering, Reflectors)>),
    world: &mut World,
    watch: Option<&Watch>,
    carry: impl FnOnce(&mut World) -> std::result::Result<Outcome, Error>,
) -> Result<Outcome> {
    let (end, asked) = (Stop::new()?, Stop::on(&[SIGUSR1])?);
    let (ending, handle, links) = (end.handle()?, world.handle(), world.links()?);
    let mut operator = Operator { teller, handle: handle.clone() };
    let outcome = std::thread::scope(|scope| {
        if let Some(mut listener) = listener {
            let (end, asked, operator) = (&end, &asked, &mut operator);
            // The line works without a control socket, too.
            scope.spawn(move || drop(listener.serve(end, asked, operator)));
        }
        if let Some(watch) = watch {
            scope.spawn(|| watch.run(&handle, &end, teller));
        }
        for (steering, mut reflectors) in steered {
            let end = &end;
            scope.spawn(move || steering.run(&mut reflectors, end, &mut links::tell));
        }
        if let Some(links) = &links {
            scope.spawn(|| links::watch(links, &end));
        }
        if let Some(dashboard) = dashboard {
            dashboard::show(dashboard, scope, (&handle, teller), &end);
        }
        let outcome = carry(world);
        ending.stop();
        outcome
    });
    Ok(outcome?)
}

impl Start {
    fn display(&self) -> Display {
        Display { plain: self.plain }
    }
}

fn config(arguments: &Start, path: &Path, seed: u64) -> Config {
    let place = |name: &Option<String>| name.clone().map_or(Place::New, Place::Existing);
    let interface = |name: &String| Place::Interface { namespace: None, name: name.clone() };
    let (client, server) = match &arguments.ends.bridge {
        Some((client, server)) => (interface(client), interface(server)),
        None if arguments.ends.server_here => (place(&arguments.ends.client_ns), Place::Here),
        None => (place(&arguments.ends.client_ns), place(&arguments.ends.server_ns)),
    };
    let line = Config::new(path.up(), path.down());
    Config {
        client,
        server,
        mtu: arguments.ends.mtu.unwrap_or(line.mtu),
        path: arguments.ends.path,
        seed,
        tuning: tuning(arguments),
        records: arguments.web.web.is_some(),
        ..line
    }
}

fn tuning(arguments: &Start) -> Tuning {
    let usual = Tuning::default();
    // Without priority, a thread that stays awake waits longer for others than one that sleeps. An
    // interface may receive packets all day, and packet sockets know their times of arrival.
    let stays = arguments.realtime && arguments.ends.bridge.is_none();
    let awake = if stays { Tuning::awake_between_packets() } else { usual.awake };
    let tuning = Tuning { awake: arguments.awake.unwrap_or(awake), realtime: arguments.realtime, ..usual };
    tuning.with_spin(arguments.spin)
}

/// The two ends, and how to use them.
fn ends(world: &World) -> String {
    let place = |side: &Side| match side.namespace() {
        Some(namespace) if namespace.is_named() => format!("in network namespace {}", namespace.name()),
        Some(namespace) => format!("in the network namespace {}", namespace.way_in()),
        None => "in this network namespace".to_owned(),
    };
    let (client, server) = (world.client(), world.server());
    let (Some(client_address), Some(server_address)) = (client.address(), server.address()) else {
        return format!(
            "client behind interface {}, packet path: {}\nserver behind interface {}, packet path: {}\n\
             Ctrl-C ends the line",
            client.device(),
            client.path(),
            server.device(),
            server.path(),
        );
    };
    let and_v6 = |side: &Side| side.address_v6().map_or_else(String::new, |address| format!(" and {address}"));
    let (client_v6, server_v6) = (and_v6(client), and_v6(server));
    let prefix = |namespace: &Namespace| match namespace.is_named() {
        true => format!("ip netns exec {} ", namespace.name()),
        false => format!("nsenter --preserve-credentials -U -t {} --net={} ", std::process::id(), namespace.way_in()),
    };
    let prefix = client.namespace().map_or_else(String::new, prefix);
    format!(
        "client {client_address}{client_v6} {}, device {}\nserver {server_address}{server_v6} {}, device {}\n\
         for example: {prefix}ping {server_address}; Ctrl-C ends the line",
        place(client),
        client.device(),
        place(server),
        server.device(),
    )
}

fn without_stamps(device: &str, obstacle: &std::io::Error) -> String {
    let needs = if obstacle.kind() == std::io::ErrorKind::PermissionDenied { "; it takes CAP_NET_RAW" } else { "" };
    format!(
        "warning: no packet socket for device {device} ({obstacle}{needs}): \
         packets count as arrived when they are read, so a late wake-up delays them"
    )
}

pub(super) fn packet_path(text: &str) -> std::result::Result<io::Path, String> {
    io::Path::ALL.into_iter().find(|path| path.name() == text).ok_or_else(|| {
        let names = io::Path::ALL.map(io::Path::name);
        format!("one of {} is needed", names.join(", "))
    })
}

/// Parses two names of nodes: `CLIENT,SERVER`.
pub(super) fn two_nodes(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once(',').map(|(client, server)| (client.trim(), server.trim())) {
        Some((client, server)) if client == server => Err("two different nodes are needed".to_owned()),
        Some((client, server)) if !client.is_empty() && !server.is_empty() && !server.contains(',') => {
            Ok((client.to_owned(), server.to_owned()))
        }
        _ => Err("two nodes with a comma between them are needed, such as client,server".to_owned()),
    }
}

/// Parses `IF1,IF2`.
fn interfaces(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once(',') {
        Some((one, other)) if one == other => Err("two different interfaces are needed".to_owned()),
        Some((one, other)) if !one.is_empty() && !other.is_empty() && !other.contains(',') => {
            Ok((one.to_owned(), other.to_owned()))
        }
        _ => Err("two interfaces with a comma between them are needed, such as eth1,eth2".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_nodes_have_one_comma_between_them() {
        assert_eq!(two_nodes("a, b"), Ok(("a".to_owned(), "b".to_owned())));
        for wrong in ["a", "a,", ",b", "a,a", "a,b,c"] {
            assert!(two_nodes(wrong).is_err(), "{wrong}");
        }
    }
}
