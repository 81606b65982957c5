//! The far end of a measurement: what loads the line, and what answers probes, by protocol.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::num::{NonZeroU32, NonZeroU64};
use std::time::Duration;

use clap::ValueEnum;
use lastmile_measure::congestion;
use lastmile_measure::foreign::iperf3::{self, Iperf3};
use lastmile_measure::foreign::irtt::{self, Irtt};
use lastmile_measure::foreign::responsiveness::{self, Responsiveness, Trust, Unsent};
use lastmile_measure::load::Load;
use lastmile_measure::own::wire::PORT;
use lastmile_measure::own::{Client, Granted, Offer};
use lastmile_measure::probe::{Icmp, Prober, TcpConnect};
use lastmile_results::format;

use crate::failure::{Failure, Result};

use super::key::Secret;
use super::options::{Ping, Place};

/// The protocol of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Protocol {
    /// lastmile or iperf3, by --port, or by the usual port that answers
    Auto,
    /// `lastmile measure --serve`
    Lastmile,
    /// `iperf3 -s`: load next to ICMP probes
    Iperf3,
    /// A responsiveness server: load and probes by HTTP/2 over TLS
    Responsiveness,
    /// `irtt server`: probes without load, the idle phase alone
    Irtt,
}

/// Time for a connection that shows which protocol a server has.
const PATIENCE: Duration = Duration::from_secs(3);

/// The options of the command line that a source needs.
pub(super) struct Wanted<'a> {
    pub(super) host: &'a str,
    pub(super) port: Option<u16>,
    pub(super) streams: u32,
    pub(super) congestion: Option<&'a str>,
    pub(super) duration: Duration,
    /// Whether a phase has a load.
    pub(super) loads: bool,
    pub(super) interval: Duration,
    pub(super) trust: Trust,
    pub(super) unsent: Unsent,
    pub(super) irtt_key: Option<Vec<u8>>,
    pub(super) udp_bps: Option<NonZeroU64>,
}

impl Wanted<'_> {
    /// Probes of an irtt server.
    fn irtt(&self, name: String, server: SocketAddr, code_point: u8) -> Irtt {
        let (interval, key) = (self.interval, self.irtt_key.clone());
        Irtt::new(irtt::Settings { name, server, code_point, interval, key })
    }
}

/// A server that has been reached.
pub(super) enum Source {
    Lastmile(Client),
    Iperf3(Iperf3, IpAddr),
    Responsiveness(Responsiveness, IpAddr),
    Irtt(SocketAddr),
}

impl Source {
    /// Reaches the server.
    pub(super) fn open(protocol: Protocol, wanted: &Wanted<'_>, key: &Secret) -> Result<Self> {
        match protocol {
            Protocol::Auto if wanted.unsent == Unsent::SocketBuffer => {
                Self::open(Protocol::Responsiveness, wanted, key)
            }
            Protocol::Lastmile | Protocol::Iperf3 | Protocol::Irtt if wanted.unsent == Unsent::SocketBuffer => {
                Err(Failure::new("--fill-buffers is of uploads to a responsiveness server alone")
                    .hint("--protocol responsiveness"))
            }
            Protocol::Auto if wanted.udp_bps.is_some() => Self::open(Protocol::Iperf3, wanted, key),
            Protocol::Lastmile | Protocol::Responsiveness | Protocol::Irtt if wanted.udp_bps.is_some() => {
                Err(Failure::new("--udp loads the line of an iperf3 server alone").hint("--protocol iperf3"))
            }
            Protocol::Auto => {
                let connect = |port| {
                    let address = first(wanted.host, port)?;
                    Ok::<_, Failure>(TcpStream::connect_timeout(&address, PATIENCE).err())
                };
                // A port that the user names is one of lastmile, unless it is iperf3's usual one.
                let found = match wanted.port {
                    Some(iperf3::PORT) => Protocol::Iperf3,
                    Some(_) => Protocol::Lastmile,
                    None => match connect(PORT)? {
                        None => Protocol::Lastmile,
                        Some(failed) if key.is_named() => {
                            key.read()?;
                            return Err(no_own_server(wanted.host, &failed));
                        }
                        Some(failed) => match connect(iperf3::PORT)? {
                            None => Protocol::Iperf3,
                            Some(other) => {
                                // A wrong key would be the next error.
                                if key.is_given() {
                                    key.read()?;
                                }
                                return Err(no_server(wanted.host, [&failed, &other]));
                            }
                        },
                    },
                };
                Self::open(found, wanted, key)
            }
            Protocol::Lastmile => {
                let mut client = Client::connect(wanted.host, wanted.port.unwrap_or(PORT), &key.read()?)?;
                check(wanted, client.granted())?;
                let offer = client.offer(wanted.congestion)?;
                if let (Some(name), Some(Offer { congestion, fault: Some(fault) })) = (wanted.congestion, offer) {
                    return Err(lacks_congestion(name, "the server", &fault, &congestion));
                }
                Ok(Self::Lastmile(client))
            }
            Protocol::Iperf3 => {
                let port = wanted.port.unwrap_or(iperf3::PORT);
                // The ramp of a test is part of it, and so is a margin for its end.
                let longest_s = u32::try_from(wanted.duration.as_secs() + 5).unwrap_or(u32::MAX);
                let iperf3 = Iperf3::new(iperf3::Settings {
                    host: wanted.host.to_owned(),
                    port,
                    streams: NonZeroU32::new(wanted.streams).unwrap_or(NonZeroU32::MIN),
                    longest_s: NonZeroU32::new(longest_s).unwrap_or(NonZeroU32::MIN),
                    congestion: wanted.congestion.map(str::to_owned),
                    udp_bps: wanted.udp_bps,
                })?;
                Ok(Self::Iperf3(iperf3, first(wanted.host, port)?.ip()))
            }
            Protocol::Responsiveness => {
                let port = wanted.port.unwrap_or(responsiveness::PORT);
                let address = first(wanted.host, port)?.ip();
                let (host, trust) = (wanted.host.to_owned(), wanted.trust.clone());
                let settings = responsiveness::Settings { host, port, trust, unsent: wanted.unsent };
                let server = Responsiveness::open(&settings)?;
                Ok(Self::Responsiveness(server, address))
            }
            Protocol::Irtt => Ok(Self::Irtt(first(wanted.host, wanted.port.unwrap_or(irtt::PORT))?)),
        }
    }

    /// The address that ICMP probes go to.
    fn address(&self) -> IpAddr {
        match self {
            Self::Lastmile(client) => client.address().ip(),
            Self::Iperf3(_, address) | Self::Responsiveness(_, address) => *address,
            Self::Irtt(server) => server.ip(),
        }
    }

    /// The port of iperf3's load, where every connection is a test of its own.
    fn iperf3(&self) -> Option<SocketAddr> {
        match self {
            Self::Iperf3(load, address) => Some(SocketAddr::new(*address, load.settings().port)),
            Self::Lastmile(_) | Self::Responsiveness(..) | Self::Irtt(_) => None,
        }
    }

    /// ICMP echo, and the probes of the protocol.
    pub(super) fn probers(&self, wanted: &Wanted<'_>) -> Vec<Box<dyn Prober>> {
        let icmp = Icmp::new(wanted.host.to_owned(), self.address(), 0, wanted.interval);
        let mut probers: Vec<Box<dyn Prober>> = vec![Box::new(icmp)];
        match self {
            Self::Lastmile(client) => {
                let echo = client.echo(wanted.host.to_owned(), wanted.interval);
                probers.extend(echo.map(|echo| Box::new(echo) as Box<dyn Prober>));
            }
            Self::Iperf3(..) => {}
            Self::Responsiveness(server, _) => probers.extend(server.probers()),
            Self::Irtt(server) => probers.push(Box::new(wanted.irtt(wanted.host.to_owned(), *server, 0))),
        }
        probers
    }

    /// The load of the protocol; `None` for one of probes alone.
    pub(super) fn load(&mut self, wanted: &Wanted<'_>) -> Option<Box<dyn Load + '_>> {
        match self {
            Self::Lastmile(client) => {
                Some(Box::new(client.filling(wanted.streams, wanted.congestion.map(str::to_owned))))
            }
            Self::Iperf3(iperf3, _) => Some(Box::new(iperf3)),
            Self::Responsiveness(server, _) => Some(Box::new(server.load())),
            Self::Irtt(_) => None,
        }
    }

    /// The quantities that this server cannot measure, with the reasons.
    pub(super) fn lacks(&self) -> Option<String> {
        match self {
            Self::Lastmile(client) => {
                let address = client.address();
                (!client.has_udp()).then(|| format!("no UDP datagram comes back from {address}: no one-way delays"))
            }
            Self::Iperf3(..) | Self::Responsiveness(..) | Self::Irtt(_) => None,
        }
    }
}

/// The port of lastmile does not answer, and the user has named a key for it.
fn no_own_server(host: &str, failed: &io::Error) -> Failure {
    Failure::new(format_args!(
        "--key-file: {host} does not answer at port {PORT}, that of lastmile, which the key is for: {}",
        reason(failed)
    ))
    .hint("`lastmile measure --serve` there serves; --port names another port; --protocol iperf3 needs no key")
}

/// No usual port answers.
fn no_server(host: &str, failed: [&io::Error; 2]) -> Failure {
    let [own, iperf3] = failed.map(reason);
    let reasons = if own == iperf3 { own } else { format!("{own}; {iperf3}") };
    Failure::new(format_args!(
        "{host} answers neither at port {PORT}, that of lastmile, nor at port {}, that of iperf3: {reasons}",
        iperf3::PORT
    ))
    .hint(
        "`lastmile measure --serve` or `iperf3 -s` there serves; --port names another port, --protocol another kind of \
         server",
    )
}

/// The reason for which a connection failed, in words.
fn reason(failed: &io::Error) -> String {
    match failed.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::TimedOut => format!("no answer within {} s", PATIENCE.as_secs()),
        _ => failed.to_string(),
    }
}

/// The connections of a load in words.
pub(super) fn streams(wanted: &Wanted<'_>, load: &dyn Load) -> String {
    match (wanted.udp_bps, load.peer().starts_with("responsiveness")) {
        (Some(bps), _) => {
            #[expect(clippy::cast_precision_loss, reason = "a rate in words")]
            let rate = format::rate(bps.get() as f64);
            format!("datagrams of {rate} in each direction")
        }
        (None, true) => format!("1 to {} connections in each direction", responsiveness::MOST_CONNECTIONS),
        (None, false) => format!("{} streams in each direction", wanted.streams),
    }
}

/// Refuses a congestion control that this machine cannot have, before anything is measured.
pub(super) fn check_congestion(name: &str) -> Result<()> {
    let check = congestion::check(name);
    check.map_err(|error| lacks_congestion(name, "this machine", &error.to_string(), &congestion::offered()))
}

fn lacks_congestion(name: &str, whose: &str, fault: &str, offered: &[String]) -> Failure {
    let failure = Failure::new(format_args!("--congestion {name}: {whose} cannot have it: {fault}"));
    match offered {
        [] => failure,
        offered => failure.hint(format!("its kernel offers {}", offered.join(", "))),
    }
}

/// Refuses what the server would refuse in each phase with a load.
fn check(wanted: &Wanted<'_>, granted: Granted) -> Result<()> {
    if !wanted.loads {
        return Ok(());
    }
    if wanted.streams > granted.streams {
        return Err(Failure::new(format_args!("{} streams: the server grants {}", wanted.streams, granted.streams)));
    }
    if wanted.duration >= granted.load {
        let longest = granted.load.as_secs();
        let failure = Failure::new(format_args!("the server ends each load after {longest} s"));
        return Err(failure.hint(format!("--duration below {longest} s")));
    }
    Ok(())
}

/// The probes of the user's choice.
pub(super) fn chosen(pings: &[Ping], wanted: &Wanted<'_>, source: &Source) -> Result<Vec<Box<dyn Prober>>> {
    let interval = wanted.interval;
    let one = |Ping { name, place, code_point }: &Ping| -> Result<Box<dyn Prober>> {
        let name = name.clone();
        Ok(match place {
            Place::Host(host) => Box::new(Icmp::new(name, first(host, 0)?.ip(), *code_point, interval)),
            Place::Port(host, port) => {
                let target = first(host, *port)?;
                if source.iperf3() == Some(target) {
                    let why = "an iperf3 server takes each handshake for a test, and ends that of the load";
                    return Err(Failure::new(format_args!("--ping {name}: {why}"))
                        .hint("the port of another service of that host, such as an SSH or web server"));
                }
                Box::new(TcpConnect::new(name, target, *code_point, interval))
            }
            Place::Irtt(host, port) => {
                let server = first(host, port.unwrap_or(irtt::PORT))?;
                Box::new(wanted.irtt(name, server, *code_point))
            }
        })
    };
    pings.iter().map(one).collect()
}

/// The first address of a name.
pub(super) fn first(host: &str, port: u16) -> Result<SocketAddr> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, port));
    }
    match (host, port).to_socket_addrs().map(|mut addresses| addresses.next()) {
        Ok(Some(address)) => Ok(address),
        Ok(None) => Err(Failure::new(format_args!("{host} has no address"))),
        Err(error) => Err(Failure::new(format_args!("looking up {host}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Wanted<'static> {
        Wanted {
            host: "192.0.2.1",
            port: None,
            streams: 1,
            congestion: None,
            duration: Duration::from_secs(5),
            loads: true,
            interval: Duration::from_millis(100),
            trust: Trust::Web,
            unsent: Unsent::default(),
            irtt_key: None,
            udp_bps: None,
        }
    }

    /// 60 s and 16 streams are the usual limits.
    #[test]
    fn limits_of_a_load_hold_for_no_idle_phase() {
        let granted = Granted { rate_bps: 1_000_000_000, load: Duration::from_secs(60), streams: 16 };
        let refused = |seconds, streams, loads| {
            let duration = Duration::from_secs(seconds);
            check(&Wanted { duration, streams, loads, ..wanted() }, granted).is_err()
        };
        assert_eq!([refused(59, 16, true), refused(60, 1, true), refused(59, 17, true)], [false, true, true]);
        assert!(!refused(90, 1, false) && !refused(59, 17, false));
    }

    /// iperf3 3.12: "unable to receive cookie at server".
    #[test]
    fn handshakes_do_not_go_to_the_port_of_an_iperf3_load() {
        let wanted = wanted();
        let load = Iperf3::new(iperf3::Settings {
            host: "192.0.2.1".to_owned(),
            port: 5201,
            streams: NonZeroU32::MIN,
            longest_s: NonZeroU32::MIN,
            congestion: None,
            udp_bps: None,
        });
        let address = "192.0.2.1".parse().unwrap();
        let source = Source::Iperf3(load.unwrap(), address);
        let of = |ping: &str, source: &Source| chosen(&[ping.parse().unwrap()], &wanted, source).map(|it| it.len());
        assert!(of("192.0.2.1:5201@46", &source).is_err());
        for other in ["192.0.2.1:22", "192.0.2.2:5201", "192.0.2.1", "irtt/192.0.2.1:5201"] {
            assert_eq!(of(other, &source).ok(), Some(1), "{other}");
        }
        assert_eq!(of("192.0.2.1:5201", &Source::Irtt(SocketAddr::new(address, 5201))).ok(), Some(1));
    }
}
