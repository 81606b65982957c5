//! `lastmile shape`: is the middlebox of a policy on a real line, and asks one that runs.

mod operator;
mod status;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use lastmile_live::io;
use lastmile_live::shape::control::{self, Listener};
use lastmile_live::shape::{Config, Direction, Snapshot, Tuning, World};
use lastmile_live::stop::Stop;
use lastmile_queueing::Match;
use lastmile_queueing::meter::drain;
use lastmile_queueing::spec::Spec;
use lastmile_scenario::policy::{Policy, Position};
use lastmile_units::{Duration, Ratio};
use signal_hook::consts::SIGHUP;

use crate::exit::{Exit, Failure, Result};
use crate::printer::Printer;

use super::emulate::packet_path;
use super::policy::OnLine;

use self::operator::{Answer, Operator, Request};
use self::status::Place;

/// Where programs ask one that runs, if nothing else is said.
const CONTROL: &str = "/run/lastmile/shape.sock";

/// Packets that wait before a direction that nothing shapes: they never do.
const UNSHAPED: u64 = 1000;

/// Shape a real line by a policy, as a bridge between the LAN and the modem
///
/// Carries what comes in through one interface out through the other, by the queues of the policy and as fast as the line
/// takes it, encapsulation included: by the code that simulates them. Both interfaces are ports of a bridge, which carries on when
/// lastmile ends, however it ends. SIGHUP or `lastmile shape reload` reads the policy again, and no packet is lost. Ends with
/// Ctrl-C, SIGTERM or `lastmile shape stop`. Linux, as root.
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
    /// Show what a running shaper has done: classes, drops, waits, lateness, bytes on the wire
    Status(Asked),
    /// Have a running shaper read its policy again
    ///
    /// If anything is wrong with it, the policy in force stays, and this says what is wrong.
    Reload(Asked),
    /// End a running shaper; the bridge under it carries on
    Stop(Asked),
}

#[derive(Args)]
struct Asked {
    /// Its control socket
    #[arg(long, value_name = "PATH", default_value = CONTROL)]
    control: PathBuf,

    /// Print the answer as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Start {
    #[command(flatten)]
    on_line: OnLine,

    /// Interface to the LAN
    #[arg(long, value_name = "IF")]
    lan: String,

    /// Interface to the modem
    #[arg(long, value_name = "IF")]
    wan: String,

    /// Make a bridge of this name of both interfaces, if they are ports of nothing; it stays
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "lastmile0")]
    make_bridge: Option<String>,

    /// Socket for `lastmile shape status`, `reload` and `stop`, for its owner alone
    #[arg(long, value_name = "PATH", default_value = CONTROL)]
    control: PathBuf,

    /// By what frames come and go: auto, packet-sockets, or xdp
    #[arg(long, value_name = "PATH", default_value = "auto", value_parser = packet_path)]
    path: io::Path,

    /// Stay awake for this long before each departure: more punctual, costs processor time [default: 150 us where there is
    /// more than one processor]
    #[arg(long, value_name = "TIME")]
    spin: Option<Duration>,

    /// Run before every ordinary process (SCHED_FIFO)
    #[arg(long)]
    realtime: bool,

    /// Print the status at the end as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    match (&arguments.command, &arguments.start) {
        (Some(Command::Status(asked)), _) => ask(asked, Request::Status, printer),
        (Some(Command::Reload(asked)), _) => ask(asked, Request::Reload, printer),
        (Some(Command::Stop(asked)), _) => ask(asked, Request::Stop, printer),
        (None, Some(start)) => shape(start, printer),
        (None, None) => Err(Failure::new("no policy to shape by")),
    }
}

/// Asks a shaper that runs.
fn ask(asked: &Asked, request: Request, printer: &mut Printer) -> Result {
    let request = serde_json::to_string(&request).map_err(std::io::Error::from)?;
    let answer = control::ask(&asked.control, &request).map_err(failure)?;
    let answer: Answer = serde_json::from_str(&answer)
        .map_err(|error| Failure::new(format_args!("an answer that cannot be read: {error}")))?;
    if asked.json {
        printer.json(&answer)?;
    }
    match answer {
        Answer::Status(status) if !asked.json => printer.data(&status.table())?,
        Answer::Done { message } if !asked.json => printer.talk(&message),
        Answer::Failed { error } => {
            // The report of a policy says itself where it is wrong.
            printer.talk(&error);
            return Ok(Exit::No);
        }
        _ => {}
    }
    Ok(Exit::Done)
}

fn shape(start: &Start, printer: &mut Printer) -> Result {
    let policy = start.on_line.load_for_a_line()?;
    printer.warnings(&policy.warnings);
    let (up, down) = directions(&policy);
    // Before anything is held back: from here on a signal ends the run, and the line goes back to the bridge.
    let stop = Stop::on_signals().map_err(failure)?;
    let hang_up = Stop::on(&[SIGHUP]).map_err(failure)?;
    let mut world = World::build(&Config {
        namespace: None,
        lan: start.lan.clone(),
        wan: start.wan.clone(),
        make_bridge: start.make_bridge.clone(),
        up,
        down,
        path: start.path,
        tuning: Tuning { spin: start.spin.unwrap_or(Tuning::default().spin), realtime: start.realtime },
    })
    .map_err(failure)?;
    let listener = Listener::bind(&start.control).map_err(failure)?;
    let place = Place::of(start, &world);
    printer.talk(&format!("{}: {}\ncontrol: {}", policy.name, place.words(), start.control.display()));
    let mut operator = Operator::new(start, policy, place, world.handle());
    let end = Stop::new().map_err(failure)?;
    let ending = end.handle().map_err(failure)?;
    let (outcome, operator) = std::thread::scope(|scope| {
        let control = scope.spawn(|| {
            let served = listener.serve(&end, &hang_up, &mut operator);
            served.map(|()| operator)
        });
        let outcome = world.run(&stop);
        ending.stop();
        (outcome, control.join())
    });
    drop(world);
    let snapshot: Snapshot = outcome.map_err(failure)?;
    let operator = operator.map_err(|_| Failure::new("the thread of the control socket failed"))?.map_err(failure)?;
    let status = operator.status(&snapshot);
    if start.json {
        printer.json(&status)?;
    } else {
        printer.data(&status.table())?;
    }
    Ok(Exit::Done)
}

/// What is done in each direction.
fn directions(policy: &Policy) -> (Direction, Direction) {
    let line = &policy.line;
    let up = match policy.place {
        Position::Middlebox => policy.up.clone(),
        // What is meant for the modem knows that the line takes one packet at a time.
        Position::Modem => Spec::Drain {
            config: drain::Config {
                line: policy.rate,
                share: Ratio::ONE,
                drain: None,
                urgent: Match::Never,
                largest: policy.largest,
                catch_up: Duration::ZERO,
            },
            queue: Box::new(policy.up.clone()),
        },
    };
    let down = policy.down.as_ref().map_or_else(|| Spec::fifo(UNSHAPED), |down| down.queue.clone());
    (Direction { queue: up, link_layer: line.up_layer }, Direction { queue: down, link_layer: line.down_layer })
}

fn failure(error: lastmile_live::Error) -> Failure {
    let hint = error.hint();
    let failure = Failure::new(error);
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
