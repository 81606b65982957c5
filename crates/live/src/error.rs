//! Errors of live programs.

use std::io;

use lastmile_kernel::lacking;
use lastmile_kernel::stab::Device as Counted;
use lastmile_queueing::autorate;
use lastmile_queueing::spec::BuildError;

use crate::holder::{Holder, Program};
use crate::sys::device::CLONE_DEVICE;

/// Why a live program could not start, or had to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel wants more rights than this process has.
    #[error("{what} needs root, or the capabilities CAP_NET_ADMIN and CAP_SYS_ADMIN")]
    NotPermitted {
        /// The attempt.
        what: String,
    },
    /// A user namespace is not to be had.
    #[error("without root a line needs a user namespace, and the kernel gives none: {source}")]
    NoUserNamespace {
        /// The kernel's error.
        source: io::Error,
        /// The setting that would allow it, such as `user.max_user_namespaces=10000`, where one is known to forbid it.
        forbidden_by: Option<String>,
    },
    /// The device that TUN devices come from is not for this user.
    #[error("cannot open {CLONE_DEVICE}: {source}")]
    TunNotPermitted {
        /// The kernel's error.
        source: io::Error,
    },
    /// There are no TUN devices to be had.
    #[error("cannot open {CLONE_DEVICE}: {source}")]
    NoTun {
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel stops real-time threads too soon.
    #[error(
        "--realtime: this kernel lets real-time threads run for {runtime_us} of every {period_us} us, \
         too little to carry packets"
    )]
    NoRealtimeBudget {
        /// `kernel.sched_rt_runtime_us`.
        runtime_us: i64,
        /// `kernel.sched_rt_period_us`.
        period_us: i64,
    },
    /// A queue that its line cannot have.
    #[error(transparent)]
    Queue(#[from] BuildError),
    /// A namespace was named that does not exist.
    #[error("no network namespace is called {name:?}")]
    NoNamespace {
        /// Its name.
        name: String,
    },
    /// Both ends in one namespace, or behind one interface.
    #[error(
        "client and server share a network namespace or an interface: \
         the kernel would pass their packets round the line"
    )]
    SamePlace,
    /// A direction without a line.
    #[error("a direction without a single hop carries nothing")]
    NoHops,
    /// The kernel has no way to keep a bridge from forwarding that ends with the program.
    #[error(
        "nothing in this kernel keeps the bridge from forwarding what comes in through {device} \
         until lastmile ends: {}",
        lacking.join(", ")
    )]
    NoBypass {
        /// The device.
        device: String,
        /// Each attempt, and the kernel's error.
        lacking: Vec<String>,
    },
    /// Parameters that no controller of rates can have.
    #[error("autorate: {0}")]
    Autorate(#[from] autorate::ConfigError),
    /// A controller of rates without a host that its pings could go to.
    #[error("the policy has [autorate], and between two interfaces no host is known that its pings could go to")]
    NoReflector,
    /// Pings of a kind that no live program sends.
    #[error("autorate: pinger_method \"fping-ts\" needs ICMP timestamps, and real pings are echo requests")]
    NoTimestamps,
    /// Neither raw nor ping sockets are allowed.
    #[error("pinging {target}: this process may open no socket for it")]
    NoPing {
        /// The host.
        target: std::net::IpAddr,
    },
    /// There is no network device of this name.
    #[error("no interface is called {name:?}")]
    NoInterface {
        /// The name.
        name: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// A device that is down.
    #[error("the interface {name} is down")]
    InterfaceDown {
        /// Its name.
        name: String,
    },
    /// AF_XDP cannot carry what this device carries.
    #[error(
        "{name} carries packets of up to {mtu} bytes, \
         and AF_XDP carries at most {most} in an Ethernet frame with two tags"
    )]
    PacketsTooLong {
        /// Its name.
        name: String,
        /// Its MTU.
        mtu: u32,
        /// The largest MTU whose frames fit.
        most: u32,
    },
    /// AF_XDP before the network stack would get frames that were joined into pieces longer than it carries.
    #[error("{name} joins frames (gro, lro), and AF_XDP, which its driver does not have, would lose the pieces")]
    JoinsFrames {
        /// Its name.
        name: String,
    },
    /// Another process carries the frames of this device.
    #[error(
        "{}{} carries what comes in through {name} already",
        holder.program.map_or("another lastmile".to_owned(), |program| format!("`lastmile {}`", program.name())),
        holder.pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
    )]
    InterfaceTaken {
        /// Its name.
        name: String,
        /// The process.
        holder: Holder,
    },
    /// Another process has an end of a line in this namespace.
    #[error(
        "{} has an end of another emulated line{}",
        name.as_ref().map_or("this network namespace".to_owned(), |name| format!("the network namespace {name:?}")),
        pid.map_or(String::new(), |pid| format!(", that of process {pid}"))
    )]
    NamespaceTaken {
        /// Its name; `None` for that of the caller.
        name: Option<String>,
        /// The process, where it is known.
        pid: Option<u32>,
    },
    /// One interface for both sides.
    #[error("{name} cannot be both the interface of the LAN and that of the line")]
    OneInterface {
        /// Its name.
        name: String,
    },
    /// The two interfaces are ports of one switch.
    #[error("{lan} and {wan} are both ports of one switch, which forwards between them in hardware")]
    OneSwitch {
        /// The interface of the LAN.
        lan: String,
        /// The interface of the line.
        wan: String,
    },
    /// The two interfaces are not ports of one bridge.
    #[error("{lan} and {wan} are not ports of one bridge, so nothing would carry packets when this program does not")]
    NoBridge {
        /// The interface of the LAN.
        lan: String,
        /// The interface of the line.
        wan: String,
        /// The commands that make them ports of one bridge.
        remedy: String,
    },
    /// A device that no bridge takes as a port.
    #[error("{name} cannot be a port of a bridge: its frames are not those of Ethernet")]
    NotBridgeable {
        /// Its name.
        name: String,
    },
    /// A device that would become a port of a bridge has addresses, which a port does not answer at.
    #[error(
        "{name} has the address{} {}, which nobody would reach once {name} is a port of a bridge",
        if addresses.len() == 1 { "" } else { "es" },
        addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
    )]
    HasAddresses {
        /// Its name.
        name: String,
        /// The addresses.
        addresses: Vec<std::net::IpAddr>,
    },
    /// A bridge was named in place of one of its ports.
    #[error("{name} is a bridge, not a port of one: packets are carried between two of its ports")]
    BridgeItself {
        /// Its name.
        name: String,
        /// Its ports.
        ports: Vec<String>,
    },
    /// Someone answers at the control socket already.
    #[error("a program answers at {path} already")]
    InUse {
        /// The path of the socket.
        path: String,
    },
    /// Nobody answers at the control socket.
    #[error("nobody answers at {path}: {source}")]
    NoAnswer {
        /// The path of the socket.
        path: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// One end is a TUN device and the other an interface.
    #[error("one end gives IP packets and the other Ethernet frames: both ends must be interfaces, or none")]
    MixedEnds,
    /// A command could not be started.
    #[error("cannot run {command:?}: {source}")]
    Command {
        /// Its name.
        command: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// A tool of the system said no.
    #[error("{command}: {message}")]
    Tool {
        /// The command.
        command: String,
        /// Its error output.
        message: String,
    },
    /// A device has a queueing discipline that somebody else has set up.
    #[error("{device} has a queueing discipline of its own: {kind} {handle}")]
    Taken {
        /// The device.
        device: String,
        /// The kind of the discipline.
        kind: String,
        /// Its handle.
        handle: String,
    },
    /// The size table of a set-up counts other frames than those of the device.
    #[error("{device}: this set-up is for a device whose frames have {}", counted.frames())]
    OtherFrames {
        /// The device.
        device: String,
        /// The kind of device that is counted for.
        counted: Counted,
    },
    /// The name of an intermediate device is that of another device.
    #[error("{ifb} exists, and is none of lastmile for {device}")]
    IfbTaken {
        /// The device that would use it.
        device: String,
        /// Its name.
        ifb: String,
    },
    /// The time that a program's clock can count is nearly over.
    #[error("the clock of a live program counts 213 days, and 200 have passed")]
    ClockEnds,
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// The attempt.
        what: String,
        /// The kernel's error.
        source: io::Error,
    },
}

impl Error {
    /// A remedy, where one is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoUserNamespace { forbidden_by: Some(setting), .. } => {
                Some(format!("`sysctl -w {setting}`, as root, allows them; or run this as root"))
            }
            Self::NoUserNamespace { forbidden_by: None, .. } => {
                Some("a container or a security module may forbid them; run this as root".to_owned())
            }
            Self::TunNotPermitted { .. } => Some(format!(
                "`chmod 666 {CLONE_DEVICE}`, as root, lets everybody make devices in namespaces of their own"
            )),
            Self::NoTun { .. } => Some("the kernel's TUN driver is missing: CONFIG_TUN, or `modprobe tun`".to_owned()),
            Self::NoRealtimeBudget { period_us, .. } => Some(format!(
                "`sysctl -w kernel.sched_rt_runtime_us={}`, as root, lets them; or do without --realtime",
                period_us / 100 * 95
            )),
            Self::NoBypass { .. } => Some(
                "tcx (Linux 6.6) or nf_tables (5.12) can; or --path xdp, which bypasses the bridge by itself"
                    .to_owned(),
            ),
            Self::NoReflector => Some(
                "without --bridge the ends of the line have addresses; `lastmile shape --reflector ADDRESS` names hosts"
                    .to_owned(),
            ),
            Self::NoTimestamps => Some("pinger_method = \"fping\", the default".to_owned()),
            Self::NoInterface { known, .. } => Some(format!("interfaces are {}", known.join(", "))),
            Self::NoPing { .. } => Some(
                "run this as root or with CAP_NET_RAW; or, as root, `sysctl -w net.ipv4.ping_group_range='0 \
                 2147483647'`"
                    .to_owned(),
            ),
            Self::InterfaceDown { name } => Some(format!("ip link set {name} up")),
            Self::PacketsTooLong { name, most, .. } => {
                Some(format!("--path packet-sockets carries them; or `ip link set {name} mtu {most}`"))
            }
            Self::JoinsFrames { name } => {
                Some(format!("--path packet-sockets carries them; or `ethtool -K {name} gro off lro off`"))
            }
            Self::InterfaceTaken { holder, .. } => {
                Some(format!("{}; two at once would carry each frame twice", end(holder)))
            }
            Self::NamespaceTaken { .. } => {
                Some("Ctrl-C ends it; two at once would have one address, and one of them all packets".to_owned())
            }
            Self::BridgeItself { name, ports } if ports.is_empty() => {
                Some(format!("it has no ports; `ip link set INTERFACE master {name}` gives it one"))
            }
            Self::BridgeItself { ports, .. } => {
                Some(format!("--lan and --wan name its ports, which are {}", ports.join(", ")))
            }
            Self::NotBridgeable { name } => Some(format!(
                "`lastmile tc POLICY --device {name} --apply` shapes there, by the kernel's own queues; or name the \
                 Ethernet port below it"
            )),
            Self::OneSwitch { .. } => {
                Some("name an interface that is no port of that switch, such as a USB adapter, for one".to_owned())
            }
            Self::HasAddresses { name, .. } => Some(format!(
                "on the machine's console: `ip address flush dev {name}`, and give the address to the bridge once it \
                 is made; or name ports that nobody reaches this machine by"
            )),
            Self::NoBridge { remedy, .. } => Some(remedy.clone()),
            Self::InUse { .. } => Some("another --control path serves a second line".to_owned()),
            Self::NoAnswer { .. } => Some("is it running? --control names the socket of another".to_owned()),
            Self::NoNamespace { name } => {
                Some(format!("`ip netns list` shows those that there are, `ip netns add {name}` makes one"))
            }
            Self::Tool { command, message } => lacking(command, message),
            Self::OtherFrames { counted, .. } => Some(format!("--header {}", counted.instead())),
            Self::ClockEnds => Some("start it again; `lastmile shape --supervise` and systemd do".to_owned()),
            Self::IfbTaken { .. } => Some("--ifb NAME, at each call, names another".to_owned()),
            Self::Taken { device, .. } => Some(format!("`tc qdisc del dev {device} root` takes it away")),
            Self::Command { command, .. } if command == "tc" || command == "ip" => {
                Some("tc and ip are those of iproute2".to_owned())
            }
            _ => None,
        }
    }

    /// The error of the attempt `what`.
    pub fn system(what: impl Into<String>, source: io::Error) -> Self {
        let what = what.into();
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::NotPermitted { what },
            _ => Self::System { what, source },
        }
    }
}

/// What a kernel or a tc(8) lacks that does not know a queueing discipline, and what to use in its place.
fn lacking(command: &str, message: &str) -> Option<String> {
    let kind = lacking::discipline_of(command)?;
    if message.contains("qdisc kind is unknown") {
        Some(lacking::by_kernel(kind))
    } else {
        message.contains("Unknown qdisc").then(|| lacking::by_tc(kind))
    }
}

/// The way to end the process that has an interface.
fn end(holder: &Holder) -> String {
    match (holder.program, holder.pid) {
        (Some(Program::Shape), _) => "`lastmile shape stop` (with the --control of its start) ends it".to_owned(),
        (Some(Program::Emulate), Some(pid)) => format!("Ctrl-C at its terminal or `kill {pid}` ends it"),
        (None, Some(pid)) => format!("`kill {pid}` ends it"),
        (Some(Program::Emulate), None) => "Ctrl-C at its terminal ends it".to_owned(),
        (None, None) => "`lastmile shape stop`, or Ctrl-C at its terminal, ends it".to_owned(),
    }
}

/// Says what was tried when it did not work.
pub trait Context<T> {
    /// `what` reads as a part of a sentence: "creating the network namespace x".
    ///
    /// # Errors
    /// The attempt failed.
    fn context<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T, Error>;
}

impl<T> Context<T> for io::Result<T> {
    fn context<S: Into<String>>(self, what: impl FnOnce() -> S) -> Result<T, Error> {
        self.map_err(|source| Error::system(what(), source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of tc of iproute2 6.1, without the modules, and of one older than CAKE.
    #[test]
    fn a_missing_discipline_has_a_remedy() {
        let hint = |command: &str, message: &str| {
            Error::Tool { command: command.to_owned(), message: message.to_owned() }.hint()
        };
        let cake = "tc qdisc add dev eth0 root handle 1a57: cake bandwidth 486400bit diffserv3";
        let unknown = "Error: Specified qdisc kind is unknown.";
        assert_eq!(
            hint(cake, unknown).unwrap(),
            "this kernel has no cake: CONFIG_NET_SCH_CAKE, or `modprobe sch_cake`; or the policy fq-codel-sqm, which \
             needs HTB and FQ-CoDel, or `lastmile shape`, which needs neither"
        );
        let old = "Unknown qdisc \"cake\", hence option \"bandwidth\" is unparsable";
        assert!(hint(cake, old).unwrap().starts_with("this tc knows no cake: a later iproute2 does; or the policy"));
        let htb = "tc qdisc add dev eth0 root handle 1a57: stab linklayer atm overhead 26 htb default 10";
        assert!(hint(htb, unknown).unwrap().starts_with("this kernel has no htb: CONFIG_NET_SCH_HTB,"));
        assert_eq!(hint(cake, "Error: Exclusivity flag on, cannot modify."), None);
        assert_eq!(hint("tc class add dev eth0 parent 1a57:", unknown), None);
    }
}
