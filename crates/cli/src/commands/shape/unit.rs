//! A unit for systemd that keeps a shaper running.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use clap::Args;
use lastmile_scenario::file::Reading;
use lastmile_scenario::policy::ready;
use lastmile_text::systemd;

use crate::commands::device;
use crate::commands::policy::{OnLine, ShapedTo, meant, unknown};
use crate::commands::shape::start::with_reflectors;
use crate::commands::unit::{CONFINED, Program};
use crate::failure::{Exit, Failure, Result};
use crate::printer::Printer;

/// The shaper of the unit.
#[derive(Args)]
pub(super) struct Arguments {
    // Copied from `OnLine`, because a unit may have none of them.
    /// Name of a built-in policy, or a file, which need not exist yet [default: a template for any]
    #[arg(requires_all = ["lan", "wan"])]
    policy: Option<String>,

    /// Upstream rate in place of the file's line; 0, or --down alone: the upstream is not shaped
    #[arg(long, value_name = "RATE", requires = "policy")]
    up: Option<ShapedTo>,

    /// Downstream rate in place of the file's line; 0, or --up alone: the downstream is not shaped
    #[arg(long, value_name = "RATE", requires = "policy")]
    down: Option<ShapedTo>,

    /// Encapsulation in place of the file's line: a preset, or words of tc-cake(8), such as "ptm overhead 34"
    #[arg(long, value_name = "PRESET", requires = "policy")]
    link: Option<String>,

    /// Interface to the LAN
    #[arg(long, value_name = "IF", requires = "policy", value_parser = device::name)]
    lan: Option<String>,

    /// Interface to the modem
    #[arg(long, value_name = "IF", requires = "policy", value_parser = device::name)]
    wan: Option<String>,

    /// Host that answers the pings of a policy with [autorate]; repeat for several, of which those beyond
    /// `no_pingers` are spare
    #[arg(long, value_name = "ADDRESS", requires = "policy")]
    reflector: Vec<IpAddr>,

    /// Serve metrics for Prometheus at http://ADDRESS/metrics, such as 127.0.0.1:9100
    #[arg(long, value_name = "ADDRESS", requires = "policy")]
    metrics: Option<SocketAddr>,

    /// Take precedence over all ordinary processes (SCHED_FIFO)
    #[arg(long, requires = "policy")]
    realtime: bool,

    #[command(flatten)]
    program: Program,
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let program = arguments.program.word()?;
    let unit = match (&arguments.policy, &arguments.lan, &arguments.wan) {
        (Some(policy), Some(lan), Some(wan)) => {
            let (up, down, link) = (arguments.up, arguments.down, arguments.link.clone());
            let on_line = OnLine { policy: policy.clone(), up, down, link };
            if ready::text(policy).is_none() && !Path::new(policy).exists() {
                if let Some(hint) = meant(policy) {
                    return Err(unknown(policy).hint(hint));
                }
                printer.talk(&format!(
                    "{policy} does not exist yet: until it does, systemd restarts the service repeatedly"
                ));
            } else {
                // A unit that cannot start is of no use.
                with_reflectors(on_line.load_for_a_line(Reading::Once)?, &arguments.reflector)?;
            }
            Unit::of(&program, &on_line, (lan, wan), arguments)?
        }
        _ => Unit::template(&program),
    };
    printer.data(&unit.text())?;
    Ok(Exit::Done)
}

impl Arguments {
    /// Options of the shaper other than policy, line and interfaces.
    fn further(&self) -> String {
        let reflectors = self.reflector.iter().map(|address| format!(" --reflector {address}"));
        let metrics = self.metrics.map(|address| format!(" --metrics {}", systemd::word(&address.to_string())));
        let realtime = self.realtime.then(|| " --realtime".to_owned());
        reflectors.chain(metrics).chain(realtime).collect()
    }
}

/// The reason for `MemoryMax`: the largest resident set of the built-in policies at 1 Gbit/s with
/// AF_XDP, a reload included.
const MEMORY: &str = "With full flow tables (262 144 flows each way) and AF_XDP on one queue of each interface it \
    takes 133 MB; each further queue takes 32 MiB.";

/// The differences between units: values and words for systemd, already escaped.
struct Unit {
    file: &'static str,
    about: String,
    /// Required units and files.
    needs: &'static str,
    settings: &'static str,
    shape: String,
    reload: String,
    /// The policy may be a file, also in the folder of another user.
    reads_file: bool,
    realtime: bool,
    scraped_from: From,
    reflectors: Vec<IpAddr>,
}

/// The possible location of clients of `--metrics`.
#[derive(Clone, Copy)]
enum From {
    /// There is no such port.
    Nowhere,
    /// The port is local to this machine.
    Here,
    /// The port is open to others, at this address.
    Elsewhere(SocketAddr),
}

impl From {
    fn of(metrics: Option<SocketAddr>) -> Self {
        match metrics {
            None => Self::Nowhere,
            Some(address) if address.ip().is_loopback() => Self::Here,
            Some(address) => Self::Elsewhere(address),
        }
    }

    /// systemd.resource-control(5), "IPAddressAllow".
    fn lines(self) -> String {
        match self {
            Self::Nowhere => "IPAddressDeny=any\n".to_owned(),
            Self::Here => "IPAddressDeny=any\nIPAddressAllow=localhost\n".to_owned(),
            Self::Elsewhere(address) => format!(
                "IPAddressDeny=any\nIPAddressAllow=localhost\n\
                 # Metrics are at {address}: what scrapes them must be allowed, such as\n\
                 # IPAddressAllow=192.0.2.7\n"
            ),
        }
    }
}

impl Unit {
    /// The unit of a single line. `program` is already escaped.
    fn of(program: &str, on_line: &OnLine, (lan, wan): (&str, &str), arguments: &Arguments) -> Result<Self> {
        let policy = match ready::text(&on_line.policy) {
            Some(_) => on_line.policy.clone(),
            None => {
                let file = std::path::absolute(&on_line.policy).map_err(Failure::new)?;
                file.into_os_string().into_string().map_err(|path| {
                    Failure::new(format_args!("the path {} is no UTF-8, which a unit is", path.display()))
                })?
            }
        };
        let about = systemd::value(&format!("{policy} between {lan} and {wan}"));
        let [lan, wan] = [lan, wan].map(systemd::word);
        let mut shape = format!("{program} shape {} --lan {lan} --wan {wan} --make-bridge", systemd::word(&policy));
        for (name, value) in on_line.given() {
            write!(shape, " --{name} {}", systemd::word(&value)).expect("a string takes all");
        }
        shape.push_str(&arguments.further());
        Ok(Self {
            file: "/etc/systemd/system/lastmile-shape.service",
            about,
            needs: "",
            settings: "",
            shape,
            reload: format!("{program} shape reload"),
            reads_file: ready::text(&on_line.policy).is_none(),
            realtime: arguments.realtime,
            scraped_from: From::of(arguments.metrics),
            reflectors: arguments.reflector.clone(),
        })
    }

    /// A unit for any number of lines: `%i` is the name of one, and its settings are variables in a
    /// file of that name.
    fn template(program: &str) -> Self {
        let control = "--control /run/lastmile/%i.sock";
        Self {
            file: "/usr/lib/systemd/system/lastmile-shape@.service",
            about: "%i".to_owned(),
            needs: "AssertPathExists=/etc/lastmile/%i.env\n",
            settings: "# LAN=eth1, WAN=eth2, POLICY=/etc/lastmile/home.toml or the name of a built-in one, \
             and further options in OPTIONS\n\
                       EnvironmentFile=/etc/lastmile/%i.env\n",
            // A variable without braces is split into words.
            shape: format!(
                "{program} shape ${{POLICY}} --lan ${{LAN}} --wan ${{WAN}} --make-bridge=lm-%i {control} $OPTIONS"
            ),
            reload: format!("{program} shape reload {control}"),
            // POLICY may be one, and OPTIONS may have both.
            reads_file: true,
            realtime: true,
            scraped_from: From::Here,
            reflectors: Vec::new(),
        }
    }

    /// The text of the unit, in the form of systemd.unit(5), systemd.service(5) and
    /// systemd.exec(5).
    fn text(&self) -> String {
        let Self { file, about, needs, settings, shape, reload, realtime, scraped_from, reflectors, .. } = self;
        let read = if self.reads_file { " CAP_DAC_READ_SEARCH" } else { "" };
        let (nice, restrict) = if *realtime { (" CAP_SYS_NICE", "no") } else { ("", "yes") };
        let mut addresses = scraped_from.lines();
        for reflector in reflectors {
            writeln!(addresses, "IPAddressAllow={reflector}").expect("a string takes all");
        }
        format!(
            "# Printed by `lastmile shape unit`; for {file}
[Unit]
Description=lastmile: {about}
Documentation=man:systemd.service(5)
# An interface that is not there yet is waited for by starting again: without udev nothing else tells of it.
After=network-pre.target
{needs}StartLimitIntervalSec=0

[Service]
Type=notify
{settings}ExecStart={shape}
ExecReload={reload}
WatchdogSec=10
Restart=on-failure
RestartSec=1
RuntimeDirectory=lastmile
RuntimeDirectoryPreserve=yes
# What it may do at the start: bridges, packet sockets, programs for the kernel, memory shared with it (AF_XDP), \
a policy in a file, --realtime.
# It gives them up itself once it runs.
CapabilityBoundingSet=CAP_NET_ADMIN CAP_NET_RAW CAP_BPF CAP_IPC_LOCK{read}{nice}
RestrictRealtime={restrict}
# {MEMORY}
MemoryMax=1G
TasksMax=32
# Its own connections: frames of the line are none of them.
{addresses}RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK AF_PACKET AF_XDP
UMask=0077
ProtectHome=read-only
ProcSubset=pid
SystemCallFilter=@system-service bpf seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self
{CONFINED}"
        )
    }
}
