//! The command line that starts a shaper, and the settings that follow from it.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use lastmile_live::shape::sandbox::Needs;
use lastmile_live::shape::{Config, Direction, Tuning};
use lastmile_live::{autorate, io};
use lastmile_scenario::file::Reading;
use lastmile_scenario::policy::{Policy, ready};
use lastmile_units::Duration;

use crate::commands::device;
use crate::commands::emulate::packet_path;
use crate::commands::live_view::Display;
use crate::commands::policy::{OnLine, ShapedTo};
use crate::commands::web::Web;
use crate::failure::{Failure, Result};

/// The default control socket.
pub(super) const CONTROL: &str = "/run/lastmile/shape.sock";

// The group is present if the policy is: clap leaves out the members of a group that has another group within.
#[derive(Args)]
#[group(args = ["policy"])]
pub(super) struct Start {
    // Copied from `OnLine`: clap treats an optional group within another group as absent.
    /// Name of a built-in policy, or a file
    pub(super) policy: String,

    #[command(flatten)]
    pub(super) line: Line,

    /// Interface to the LAN
    #[arg(long, value_name = "IF")]
    pub(super) lan: String,

    /// Interface to the modem
    #[arg(long, value_name = "IF")]
    pub(super) wan: String,

    /// Make interfaces that are ports of no bridge ports of the bridge of this name, which is created unless it
    /// exists, and bring them up; it stays
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "lastmile0",
        value_parser = device::name)]
    pub(super) make_bridge: Option<String>,

    /// Socket for `lastmile shape status`, `reload` and `stop`, for its owner only
    #[arg(long, value_name = "PATH", default_value = CONTROL)]
    pub(super) control: PathBuf,

    /// Packet path: auto, packet-sockets, packet-sockets-nft, or xdp
    #[arg(long, value_name = "PATH", default_value = "auto", value_parser = packet_path)]
    pub(super) path: io::Path,

    /// Serve metrics for Prometheus at http://ADDRESS/metrics, such as 127.0.0.1:9100
    #[arg(long, value_name = "ADDRESS")]
    pub(super) metrics: Option<SocketAddr>,

    #[command(flatten)]
    pub(super) dashboard: Dashboard,

    /// Start it again after a crash or hang; SIGHUP and SIGTERM are passed on
    #[arg(long)]
    pub(super) supervise: bool,

    /// Standard input is the socket of the process that supervises this one
    #[arg(long, hide = true, conflicts_with = "supervise")]
    pub(super) heartbeat: bool,

    /// Busy-wait for this long before each departure: less lateness, more processor time [default:
    /// 150 us with more than one processor, for at most 5 % of the time]
    #[arg(long, value_name = "TIME")]
    pub(super) spin: Option<Duration>,

    /// Take precedence over all ordinary processes (SCHED_FIFO), and sleep for at least a tenth of
    /// each millisecond
    #[arg(long)]
    pub(super) realtime: bool,

    // Copied from `Display`: clap treats an optional group within another group as absent.
    /// Show a line of counters on a terminal, and no live view
    #[arg(long)]
    pub(super) plain: bool,

    /// Print the status at the end as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The dashboard of a shaper.
#[derive(Args)]
pub(super) struct Dashboard {
    #[command(flatten)]
    pub(super) web: Web,

    /// The dashboard may put a policy in force and make the shaper read its own again; takes a token
    #[arg(long, requires = "web")]
    pub(super) web_control: bool,
}

/// The line in place of the line of the policy's file, and hosts beyond it.
#[derive(Args)]
pub(super) struct Line {
    /// Upstream rate in place of the file's line; 0, or --down alone: the upstream is not shaped
    #[arg(long, value_name = "RATE")]
    up: Option<ShapedTo>,

    /// Downstream rate in place of the file's line; 0, or --up alone: the downstream is not shaped
    #[arg(long, value_name = "RATE")]
    down: Option<ShapedTo>,

    /// Encapsulation in place of the file's line: a preset, or words of tc-cake(8), such as "ptm overhead 34"
    #[arg(long, value_name = "PRESET")]
    link: Option<String>,

    /// Host that answers the pings of a policy with [autorate]; repeat for several, of which those beyond
    /// `no_pingers` are spare
    #[arg(long, value_name = "ADDRESS")]
    pub(super) reflector: Vec<IpAddr>,
}

impl Start {
    /// The policy as in its file now.
    pub(super) fn load(&self, reading: Reading) -> Result<Policy> {
        let (policy, up, down, link) = (self.policy.clone(), self.line.up, self.line.down, self.line.link.clone());
        self.with_reflectors(OnLine { policy, up, down, link }.load_for_a_line(reading)?)
    }

    /// The policy, unless it needs reflectors and none is named.
    pub(super) fn with_reflectors(&self, policy: Policy) -> Result<Policy> {
        with_reflectors(policy, &self.line.reflector)
    }

    pub(super) fn display(&self) -> Display {
        Display { plain: self.plain }
    }

    /// The position of the shaper for this policy.
    pub(super) fn world(&self, policy: &Policy) -> Config {
        let (up, down) = directions(policy);
        Config {
            namespace: None,
            lan: self.lan.clone(),
            wan: self.wan.clone(),
            make_bridge: self.make_bridge.clone(),
            up,
            down,
            path: self.path,
            tuning: Tuning { realtime: self.realtime, ..Tuning::default() }.with_spin(self.spin),
            records: self.dashboard.web.web.is_some(),
        }
    }

    /// The rights that it needs after all files are open.
    pub(super) fn needs(&self) -> Needs {
        let policy = ready::text(&self.policy).is_none().then(|| PathBuf::from(&self.policy));
        Needs { policy, control: self.control.clone(), realtime: self.realtime }
    }
}

/// Refuses a policy that moves its rates by pings that cannot be sent, or without a host to ping.
pub(super) fn with_reflectors(policy: Policy, reflectors: &[IpAddr]) -> Result<Policy> {
    let Some(controller) = policy.autorate() else { return Ok(policy) };
    autorate::check(controller)?;
    if let Some(twice) = reflectors.iter().enumerate().find(|(index, host)| reflectors[..*index].contains(host)) {
        return Err(Failure::new(format_args!("--reflector {} is named twice", twice.1)).hint("name each host once"));
    }
    if !reflectors.is_empty() {
        return Ok(policy);
    }
    let hint = "start it with --reflector ADDRESS, a host beyond the line that answers echo requests; cake has the \
                same queues at constant rates";
    let name = &policy.name;
    Err(Failure::new(format_args!("the policy \"{name}\" has [autorate], and no reflector is named for its pings"))
        .hint(hint))
}

/// The processing in each direction.
pub(super) fn directions(policy: &Policy) -> (Direction, Direction) {
    let (line, (up, down)) = (&policy.line, policy.of_middlebox());
    (Direction { queue: up, link_layer: line.up_layer }, Direction { queue: down, link_layer: line.down_layer })
}
