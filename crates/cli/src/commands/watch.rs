//! `lastmile watch`: a daemon that keeps the latency and the queues of a line for years.

mod metrics;
mod unit;
mod web;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use clap::{Args, Subcommand};
use lastmile_live::gateway;
use lastmile_live::http::Server;
use lastmile_live::shape::notify::Manager;
use lastmile_live::shape::sandbox;
use lastmile_live::stop::Stop;
use lastmile_units::{ByteCount, Duration};
use lastmile_watch::collect::kernel::Devices;
use lastmile_watch::collect::names::look_up;
use lastmile_watch::collect::pings::{Host, Pings, Target};
use lastmile_watch::collect::shaper::Shaper;
use lastmile_watch::daemon::{Audience, Config};
use lastmile_watch::recorder::Seen;
use lastmile_watch::store::{self, Limits, Store};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::failure::{Exit, Failure, Result};
use crate::printer::Printer;

use super::device;
use super::web::{Web, publish};

use self::metrics::Metrics;
use self::web::{Reporter, Watcher};

/// The control socket of a shaper.
const SHAPER: &str = "/run/lastmile/shape.sock";
/// The dashboard that goes with the metrics.
const DASHBOARD: &str = include_str!("../../grafana/watch.json");

/// Watch a line: pings, the queues of a shaper and of the kernel, kept for years
///
/// Pings the default gateway and each target, and reads the classes of a running `lastmile shape`
/// and the counters of the kernel, every interval. The store is one file of SQLite: each interval
/// for a week, minutes for 90 days, hours for five years, within a limit. `lastmile history` shows
/// it. No other host gets a packet. Ends with Ctrl-C or SIGTERM. Linux; root, CAP_NET_RAW, or a
/// group in net.ipv4.ping_group_range.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    start: Option<Start>,
}

#[derive(Subcommand)]
enum Command {
    /// Print a unit for systemd that keeps a watcher running
    ///
    /// Its options stand in /etc/lastmile/watch.env.
    Unit(unit::Arguments),
    /// Print the dashboard for Grafana that shows the metrics
    Dashboard,
}

// The group is present if the store is: clap leaves out the members of a group that has another group within.
#[derive(Args)]
#[group(args = ["store"])]
struct Start {
    /// Hosts to ping: addresses, or names, which are looked up each 30 s, each 5 s while one has no
    /// address
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,

    /// The store; made if it does not exist
    #[arg(long, value_name = "FILE")]
    store: PathBuf,

    /// Time between two pings of a path, and between two readings of counters; 100 ms to 1 min
    #[arg(long, value_name = "TIME", default_value = "1 s", value_parser = interval)]
    interval: Duration,

    /// Code points of the pings: 0 to 63, or names such as EF; each target is pinged with each
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0",
        value_parser = lastmile_scenario::code_point_named)]
    code_points: Vec<u8>,

    /// Do not ping the default gateway
    #[arg(long)]
    no_gateway: bool,

    /// Control socket of a shaper to watch; may be given several times
    #[arg(long, value_name = "PATH", default_value = SHAPER)]
    shaper: Vec<PathBuf>,

    /// Interfaces to read the counters and the kernel's queues of [default: those of the default
    /// routes]
    #[arg(long, value_name = "IF", value_parser = device::name)]
    device: Vec<String>,

    /// Days that each ping and each reading is kept
    #[arg(long, value_name = "DAYS", default_value_t = Limits::default().raw_days,
        value_parser = clap::value_parser!(u32).range(1..=36_500))]
    raw_days: u32,

    /// Days that minutes are kept
    #[arg(long, value_name = "DAYS", default_value_t = Limits::default().minute_days,
        value_parser = clap::value_parser!(u32).range(1..=36_500))]
    minute_days: u32,

    /// Days that hours are kept
    #[arg(long, value_name = "DAYS", default_value_t = Limits::default().hour_days,
        value_parser = clap::value_parser!(u32).range(1..=36_500))]
    hour_days: u32,

    /// The most that the store may take on the disk, at least 32 MB; the oldest rows go first
    #[arg(long, value_name = "SIZE", default_value = "1 GB", value_parser = limit)]
    limit: ByteCount,

    /// Serve metrics for Prometheus at http://ADDRESS/metrics, such as 127.0.0.1:9101
    #[arg(long, value_name = "ADDRESS", value_parser = listener)]
    metrics: Option<SocketAddr>,

    #[command(flatten)]
    web: Web,
}

fn listener(text: &str) -> std::result::Result<SocketAddr, String> {
    text.parse().map_err(|_| "an address and a port are needed, such as 127.0.0.1:9101 or [::1]:9101".to_owned())
}

fn interval(text: &str) -> std::result::Result<Duration, String> {
    let interval: Duration = text.parse().map_err(|error: lastmile_units::parse::ParseError| error.to_string())?;
    let fits = (Duration::from_ms(100)..=Duration::from_s(60)).contains(&interval);
    fits.then_some(interval).ok_or_else(|| "an interval is 100 ms to 60 s".to_owned())
}

fn limit(text: &str) -> std::result::Result<ByteCount, String> {
    let limit: ByteCount = text.parse().map_err(|error: lastmile_units::parse::ParseError| error.to_string())?;
    let fits = limit.as_u64() >= Limits::LEAST_LIMIT_BYTES;
    fits.then_some(limit).ok_or_else(|| "a store needs at least 32 MB".to_owned())
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    match (&arguments.command, &arguments.start) {
        (Some(Command::Unit(arguments)), _) => unit::run(arguments, printer),
        (Some(Command::Dashboard), _) => {
            printer.exact(DASHBOARD)?;
            Ok(Exit::Done)
        }
        (None, Some(start)) => watch(start, printer),
        (None, None) => Err(Failure::new("no store to write to").hint("--store FILE names it")),
    }
}

fn watch(start: &Start, printer: &mut Printer) -> Result {
    let config = start.config()?;
    let stop = Stop::on(&[SIGINT, SIGTERM])?;
    let file = std::path::absolute(&start.store).map_err(Failure::new)?;
    let store = Store::open(&file, start.kept()).map_err(|error| open_failure(&error, &file))?;
    let metrics = start.metrics.map(Server::bind).transpose()?;
    let dashboard = start.web.open(false)?;
    let manager = Manager::of_this_program();
    let given_up = sandbox::give_up_as_watcher(&file)?;
    if let Some(error) = config.nothing_to_watch() {
        let refused = Failure::from(error);
        printer.talk("no shaper runs, and no interface can be read: there is nothing else to watch");
        return Err(refused);
    }
    let names: Vec<&str> = config.pings.targets.iter().map(|target| target.name.as_str()).collect();
    printer.talk(&format!("store: {}", file.display()));
    printer.talk(&format!("pings: {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") }));
    let capabilities =
        if given_up.capabilities.is_empty() { "none".to_owned() } else { given_up.capabilities.join(" ") };
    printer.talk(&format!(
        "capabilities: {capabilities}; files: {}; system calls: {}",
        given_up.files, given_up.system_calls
    ));
    dashboard.iter().for_each(|dashboard| dashboard.tell(printer));
    manager.iter().for_each(|manager| manager.ready(&names.join(", ")));
    let seen = Arc::new(Mutex::new(Seen::default()));
    let ended = Stop::new()?;
    let ending = ended.handle()?;
    let watched = thread::scope(|scope| {
        if let Some(server) = metrics {
            let (ended, pages) = (&ended, Metrics(Arc::clone(&seen)));
            // The watcher works without metrics, too.
            scope.spawn(move || drop(server.serve(ended, &pages)));
        }
        if let Some(dashboard) = dashboard {
            let (hub, mut reporter) = (dashboard.hub("lastmile watch", Watcher), Reporter::new(Arc::clone(&seen)));
            let (reports, ended) = (Arc::clone(&hub), &ended);
            scope.spawn(move || publish(&reports, ended, |_| Some(reporter.sample())));
            scope.spawn(move || dashboard.serve(ended, &hub));
        }
        let mut audience = Talk { printer, manager: manager.as_ref() };
        let watched = config.run(store, &stop, &seen, &mut audience);
        ending.stop();
        watched
    });
    manager.iter().for_each(Manager::stopping);
    watched?;
    Ok(Exit::Done)
}

/// Messages go to standard error, signs of life to the service manager.
struct Talk<'a> {
    printer: &'a mut Printer,
    manager: Option<&'a Manager>,
}

impl Audience for Talk<'_> {
    fn say(&mut self, message: &str) {
        self.printer.talk(message);
    }

    fn beat(&mut self) {
        self.manager.iter().for_each(|manager| manager.alive());
    }
}

fn open_failure(error: &store::Error, file: &Path) -> Failure {
    let failure = Failure::new(error);
    match file.parent() {
        Some(folder) if !folder.is_dir() => failure.hint(format!("the folder {} does not exist", folder.display())),
        _ if error.is_locked() => failure.hint("another watcher may write to it: a store has one"),
        _ => failure,
    }
}

/// The host at this address; `None` if it is pinged already, as a default gateway, whose changes the pings follow.
fn at(address: IpAddr, pinged: &[IpAddr]) -> Option<Host> {
    (!pinged.contains(&address)).then(|| Host::At((address, 0).into()))
}

impl Start {
    fn config(&self) -> Result<Config> {
        let target = |name: &str, host| Target { name: name.to_owned(), host };
        let gateways = [target("gateway", Host::GatewayV4), target("gateway6", Host::GatewayV6)];
        // A machine without IPv6 has no gateway of it, which is no trouble.
        let has_v6 = gateway::v6().is_some();
        let mut targets: Vec<Target> = gateways
            .into_iter()
            .filter(|target| !self.no_gateway && (target.host == Host::GatewayV4 || has_v6))
            .collect();
        let is_name = |target: &&String| target.parse::<IpAddr>().is_err();
        let mut named = look_up(&self.targets.iter().filter(is_name).cloned().collect::<Vec<_>>()).into_iter();
        let gateways = [gateway::v4(), gateway::v6()].into_iter().flatten().filter(|_| !self.no_gateway);
        let pinged: Vec<IpAddr> = gateways.map(|gateway| gateway.address.ip()).collect();
        for name in &self.targets {
            if targets.iter().any(|other| other.name == *name) {
                return Err(Failure::new(format_args!("{name} is named twice")));
            }
            let host = match name.parse() {
                Ok(address) => at(address, &pinged),
                Err(_) => named.next().map(Host::Named),
            };
            targets.extend(host.map(|host| target(name, host)));
        }
        let mut code_points = self.code_points.clone();
        code_points.sort_unstable();
        code_points.dedup();
        let shapers: Vec<Shaper> = self.shaper.iter().map(|control| Shaper::at(control)).collect();
        if let Some(shaper) = shapers.iter().enumerate().find_map(|(index, shaper)| {
            shapers[..index].iter().any(|other| other.name == shaper.name).then_some(shaper)
        }) {
            return Err(Failure::new(format_args!("two shapers are called {}", shaper.name))
                .hint("a shaper is called after its control socket: give one another path"));
        }
        let interval = std::time::Duration::from_nanos(self.interval.as_ns());
        let devices =
            if self.device.is_empty() { Devices::OfDefaultRoutes } else { Devices::Named(self.device.clone()) };
        Ok(Config { pings: Pings { targets, code_points, interval }, shapers, devices })
    }

    fn kept(&self) -> Limits {
        Limits {
            raw_days: self.raw_days,
            minute_days: self.minute_days,
            hour_days: self.hour_days,
            limit_bytes: self.limit.as_u64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_that_is_a_target_too_is_pinged_once() {
        let [gateway, other] = [IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2])];
        assert_eq!(at(gateway, &[gateway]), None);
        assert_eq!(at(other, &[gateway]), Some(Host::At((other, 0).into())));
        assert_eq!(at(gateway, &[]), Some(Host::At((gateway, 0).into())), "with --no-gateway");
    }
}
