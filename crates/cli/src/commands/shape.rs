//! `lastmile shape`: runs the middlebox of a policy on a real line, and controls a running one.

mod metrics;
mod operator;
mod pause;
mod replacement;
mod shared;
mod start;
mod status;
mod unit;
mod watch;
mod web;
mod what_if;

use std::ops::Deref as _;
use std::path::PathBuf;
use std::process;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::{Args, Subcommand};
use lastmile_live::autorate::{Reflectors, Steering};
use lastmile_live::control::{Listener, Request, Verb};
use lastmile_live::http::Server;
use lastmile_live::shape::notify::Manager;
use lastmile_live::shape::sandbox::{self};
use lastmile_live::shape::supervise::{BEAT, Event, Heart, supervise};
use lastmile_live::shape::{Handle, Snapshot, World};
use lastmile_live::stop::Stop;
use lastmile_scenario::file::Reading;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::{Exit, Failure, Result};
use crate::invocation;
use crate::printer::Printer;

use super::control::{self, Seen};
use super::links;
use super::web::publish;

use self::metrics::Metrics;
use self::operator::{Answer, Operator};
use self::shared::Shared;
use self::start::{CONTROL, Start};
use self::status::{Place, Rights, Status};
use self::watch::{InForce, Watch};
use self::web::{Reporter, Shaper};

/// The time that `stop` waits for the end of the shaper.
const LONGEST_END: Duration = Duration::from_secs(10);

/// Shape a real line by a policy, as a bridge between the LAN and the modem
///
/// Carries packets between the two interfaces, through the queues of the policy and at the rate of
/// the line, encapsulation included. The code is that of the simulation. Both interfaces are ports
/// of a bridge, which carries packets again when lastmile ends, for whatever reason. SIGHUP or
/// `lastmile shape reload` reads the policy again without losing a packet. A terminal shows a live
/// view; `q` leaves it. Ends with Ctrl-C, SIGTERM or `lastmile shape stop`. Linux, as root.
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
    /// Show the counters of a running shaper: classes, drops, waits, lateness, bytes on the wire
    Status(Asked),
    /// Make a running shaper read its policy again, or put another policy in force
    ///
    /// After an error in the file, the policy in force stays, and the error is shown.
    Reload(Reloaded),
    /// End a running shaper; the bridge under it carries packets again
    Stop(Ordered),
    /// Print a unit for systemd that keeps a shaper running
    ///
    /// Without a policy: a template for any number of lines, lastmile-shape@NAME, each with its
    /// settings in /etc/lastmile/NAME.env.
    Unit(unit::Arguments),
}

#[derive(Args)]
struct Asked {
    /// Its control socket
    #[arg(long, value_name = "PATH", default_value = CONTROL)]
    control: PathBuf,

    #[command(flatten)]
    look: control::Look,
}

#[derive(Args)]
struct Ordered {
    /// Its control socket
    #[arg(long, value_name = "PATH", default_value = CONTROL)]
    control: PathBuf,

    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Reloaded {
    /// Name of a built-in policy, or a file, to put in force on the shaper's line until the next
    /// reload or restart [default: read the policy of the start again]
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,

    #[command(flatten)]
    ordered: Ordered,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    match (&arguments.command, &arguments.start) {
        (Some(Command::Status(Asked { control, look })), _) => {
            control::look::<Status>(control, look, printer, &|seen, _| Status::table(seen))
        }
        (Some(Command::Reload(Reloaded { policy, ordered })), _) => {
            let policy = policy.as_deref().map(replacement::read).transpose()?;
            order(ordered, Request { policy, ..Verb::Reload.into() }, printer)
        }
        (Some(Command::Stop(ordered)), _) => end(ordered, printer),
        (Some(Command::Unit(arguments)), _) => unit::run(arguments, printer),
        (None, Some(start)) if start.supervise => supervised(start, printer),
        (None, Some(start)) => shape(start, printer),
        (None, None) => Err(Failure::new("no policy to shape by")),
    }
}

/// Sends a command to a running shaper.
fn order(ordered: &Ordered, request: Request, printer: &mut Printer) -> Result {
    let answer: Answer = control::ask(&ordered.control, request)?;
    control::tell(&answer, ordered.json, printer)
}

/// Ends a running shaper. Afterwards another one may be started at once.
fn end(ordered: &Ordered, printer: &mut Printer) -> Result {
    let mut answer: Answer = control::ask(&ordered.control, Verb::Stop)?;
    if let Answer::Done { message } = &mut answer
        && lastmile_live::control::wait_for_end(&ordered.control, LONGEST_END)
    {
        *message = "it has ended".to_owned();
    }
    control::tell(&answer, ordered.json, printer)
}

/// Keeps a shaper running as a child of this process.
fn supervised(start: &Start, printer: &mut Printer) -> Result {
    // An initial error is reported at once. The child reads the policy again.
    start.load(Reading::Again)?;
    let program = invocation::program().map_err(|error| Failure::new(format_args!("where is lastmile? {error}")))?;
    let mut command = process::Command::new(program);
    command.args(invocation::arguments().into_iter().map(|argument| match argument.to_str() {
        Some("--supervise") => "--heartbeat".into(),
        _ => argument,
    }));
    let stop = Stop::on(&[SIGINT, SIGTERM])?;
    let hang_up = Stop::on(&[SIGHUP])?;
    sandbox::give_up_as_supervisor()?;
    let mut tell = |event| match event {
        Event::Hung => printer.talk("nothing is heard of the shaper, and it is killed"),
        Event::Ended(status, pause) => {
            printer.talk(&format!("the shaper ended ({status}); another starts in {} ms", pause.as_millis()));
        }
    };
    let mut wait = |time| pause::answer(&start.control, &stop, time);
    let status = supervise(&mut command, &stop, &hang_up, &mut tell, &mut wait)?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(Exit::CouldNotRun, Exit::Command))
}

fn shape(start: &Start, printer: &mut Printer) -> Result {
    let policy = start.load(if start.heartbeat { Reading::Again } else { Reading::Once })?;
    printer.warnings(&policy.warnings);
    // Before packets are held back: from here on a signal ends the run, and the bridge carries
    // packets again.
    let stop = Stop::on(&[SIGINT, SIGTERM])?;
    let hang_up = Stop::on(&[SIGHUP])?;
    let mut reflectors = Reflectors::open(None, &start.line.reflector)?;
    let mut listener = Listener::bind(&start.control)?;
    // What may fail is open before a bridge is made.
    let metrics = start.metrics.map(Server::bind).transpose()?;
    let dashboard = start.dashboard.web.open(start.dashboard.web_control)?;
    let world = World::build(&start.world(&policy))?;
    // Hops: up is the first.
    let steering = Steering::new(world.handle().deref().clone(), [1, 0], reflectors.len());
    steering.begin(policy.autorate(), || Ok(()))?;
    let pulse = Pulse {
        handle: world.handle(),
        manager: Manager::of_this_program(),
        heart: start.heartbeat.then(Heart::of_this_program).transpose()?,
    };
    let end = Stop::new()?;
    let ending = end.handle()?;
    // All files are open, and there is one thread.
    let rights = Rights::from(&start.needs().give_up_the_rest()?);
    let place = Place::of(start, &world);
    let unshaped = policy.unshaped_down().map_or_else(String::new, |words| format!("{words}\n"));
    let (name, control) = (&policy.name, start.control.display());
    let words = format!("{name}: {}\n{unshaped}{}\ncontrol: {control}", place.words(), rights.words());
    printer.talk_lines(&words);
    let words = match &dashboard {
        Some(dashboard) => {
            dashboard.tell(printer);
            format!("{words}\n{}", dashboard.words())
        }
        None => words,
    };
    let manager = pulse.manager.as_ref();
    manager.inspect(|manager| manager.ready(&place.words()));
    let (asker, glances) = (listener.asker(), world.handle());
    let in_force = Arc::new(Mutex::new(InForce::new(&policy, 1)));
    let links = world.links();
    let told = (place, rights, Arc::clone(&links));
    let steered = (world.handle(), &steering);
    let mut operator = Operator::new(start, policy, told, steered, manager, Arc::clone(&in_force));
    let (outcome, operator) = std::thread::scope(|scope| {
        let control = scope.spawn(|| {
            let served = listener.serve(&end, &hang_up, &mut operator);
            served.map(|()| operator)
        });
        scope.spawn(|| pulse.run(&end));
        scope.spawn(|| links::watch(&links, &end));
        if !reflectors.is_empty() {
            scope.spawn(|| steering.run(&mut reflectors, &end, &mut links::tell));
        }
        if let Some(dashboard) = dashboard {
            let (shared, end) = (Shared::new(world.handle(), Arc::clone(&in_force)), &end);
            let hub = dashboard.hub("lastmile shape", Shaper { shared: Arc::clone(&shared), asker: asker.clone() });
            let mut reporter = Reporter::new(shared, Arc::clone(&links));
            let reports = Arc::clone(&hub);
            scope.spawn(move || publish(&reports, end, |hub| reporter.sample(hub)));
            scope.spawn(move || dashboard.serve(end, &hub));
        }
        if let Some(server) = metrics {
            let (end, pages) = (&end, Metrics(asker));
            // The shaper works without metrics, too.
            scope.spawn(move || drop(server.serve(end, &pages)));
        }
        if !start.heartbeat {
            let watch = Watch { display: start.display(), handle: glances, in_force, printed: words };
            let end = &end;
            scope.spawn(move || watch.run(end));
        }
        let outcome = world.run(&stop);
        manager.iter().for_each(|manager| manager.stopping());
        ending.stop();
        (outcome, control.join())
    });
    let snapshot: Snapshot = outcome?;
    let operator = operator.map_err(|_| Failure::new("the thread of the control socket failed"))??;
    let status = operator.status_of(&snapshot).brief();
    let table = |now: &Status, printer: &mut Printer| Ok(printer.data(&Status::table(&Seen { now, before: None }))?);
    printer.either(start.json, &status, table)
}

/// Reports to the process's parents that packets are carried.
struct Pulse {
    handle: Handle,
    manager: Option<Manager>,
    heart: Option<Heart>,
}

impl Pulse {
    /// Reports at the shorter of their intervals, as long as the loop answers, until `end`.
    fn run(&self, end: &Stop) {
        let of_manager = self.manager.as_ref().and_then(Manager::interval);
        let Some(interval) = of_manager.into_iter().chain(self.heart.as_ref().map(|_| BEAT)).min() else { return };
        while self.handle.is_alive() {
            self.manager.iter().for_each(Manager::alive);
            self.heart.iter().for_each(Heart::beat);
            // At the end no report is needed.
            if end.within(interval).unwrap_or(true) {
                return;
            }
        }
    }
}
