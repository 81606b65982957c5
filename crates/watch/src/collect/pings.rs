//! Pings to several hosts with several code points, on one thread.
//!
//! Each path has a socket. A route may change and an address may go, and a connected socket keeps
//! the address that it had: so a socket is opened anew when nothing was heard for `RENEW` or a
//! request could not be sent, with the latest address of the gateway or the name. Where the new one cannot
//! be opened, the old one goes on: after an outage of a link it sends again with the next request. Requests go out on
//! a fixed grid, the paths one after another within an interval. A request without a reply after [`PATIENCE`] is lost.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use lastmile_live::echo::{self, Echo};
use lastmile_live::stop::Stop;
use lastmile_live::{Error, gateway};

use super::names::Named;
use crate::recorder::Outcome;
use crate::sample::{PATIENCE, Path};

/// A socket that has heard nothing for this long is opened anew.
const RENEW: Duration = Duration::from_secs(30);
/// A reply after so long without one ends an outage, where this many requests were sent meanwhile: a process that was
/// stopped sent none.
const OUTAGE: (Duration, u32) = (Duration::from_secs(5), 3);
/// A socket that could not be opened, or could not send, is opened again after this time.
const RETRY: Duration = Duration::from_secs(1);

/// A host to ping.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Its name in the store.
    pub name: String,
    /// Where it is.
    pub host: Host,
}

/// The address of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Host {
    /// This one.
    At(SocketAddr),
    /// The address of a name, whatever it is at the time.
    Named(Named),
    /// The default gateway of IPv4, whatever it is at the time.
    GatewayV4,
    /// The default gateway of IPv6.
    GatewayV6,
}

impl Host {
    fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::At(address) => Some(*address),
            Self::Named(host) => host.address(),
            Self::GatewayV4 => gateway::v4().map(|gateway| gateway.address),
            Self::GatewayV6 => gateway::v6().map(|gateway| gateway.address),
        }
    }

    /// The reason for which it has no address.
    fn missing(&self) -> String {
        match self {
            Self::Named(_) => "its name has no address".to_owned(),
            Self::At(_) | Self::GatewayV4 | Self::GatewayV6 => "there is no default gateway".to_owned(),
        }
    }
}

/// The pings of a watcher.
#[derive(Clone, Debug)]
pub struct Pings {
    /// The hosts.
    pub targets: Vec<Target>,
    /// The code points, each for every host.
    pub code_points: Vec<u8>,
    /// The time between two requests of a path.
    pub interval: Duration,
}

/// The news of a thread that pings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum News {
    /// A request whose outcome is known.
    Outcome(Outcome),
    /// Hosts whose socket is in order, or why it is not.
    Sources(BTreeMap<String, Option<String>>),
    /// A host that replies again after so long without a reply.
    Returned(String, Duration),
}

impl Pings {
    /// Pings until `stop`. Times are since `start`.
    ///
    /// # Errors
    /// The kernel has no descriptors left to wait with.
    pub fn run(&self, start: Instant, stop: &Stop, news: &Sender<News>) -> Result<(), Error> {
        let mut paths = self.paths();
        while !stop.within(Duration::ZERO)? {
            let now = Instant::now();
            for path in &mut paths {
                path.advance(now, self.interval, &mut |outcome| {
                    // The receiver ends first only when the program does.
                    let _ = news.send(News::Outcome(outcome.since(start)));
                });
                if let Some(silence) = path.returned.take() {
                    let _ = news.send(News::Returned(path.path.target.clone(), silence));
                }
            }
            if paths.iter().any(|path| path.changed) {
                let _ = news.send(News::Sources(troubles(&mut paths)));
            }
            let next = paths.iter().map(Watched::next).min().unwrap_or(now + self.interval);
            let open: Vec<&Echo> = paths.iter().filter_map(|path| path.echo.as_ref()).collect();
            echo::wait(&open, stop, next.saturating_duration_since(Instant::now()))?;
        }
        Ok(())
    }

    /// The error of this process that may ping none of the hosts; `None` if it may, or there are none.
    #[must_use]
    pub fn refused(&self) -> Option<Error> {
        // The permission is one of an address family: a gateway that is not there yet has that of any host.
        let any = |host: &Host| match host {
            Host::GatewayV6 => SocketAddr::from((Ipv6Addr::LOCALHOST, 0)),
            _ => SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        };
        let opened =
            self.targets.iter().map(|target| Echo::open(target.host.address().unwrap_or(any(&target.host)), 0));
        let mut refused = None;
        for one in opened {
            match one {
                Err(error @ Error::NoPing { .. }) => refused = refused.or(Some(error)),
                _ => return None,
            }
        }
        refused
    }

    fn paths(&self) -> Vec<Watched> {
        let pairs: Vec<(&Target, u8)> = self
            .targets
            .iter()
            .flat_map(|target| self.code_points.iter().map(move |code_point| (target, *code_point)))
            .collect();
        let now = Instant::now();
        let count = u32::try_from(pairs.len()).unwrap_or(u32::MAX).max(1);
        let gap = self.interval / count;
        let watched = |((target, code_point), number): ((&Target, u8), u32)| Watched {
            path: Path { target: target.name.clone(), code_point },
            host: target.host.clone(),
            address: None,
            echo: None,
            opened: None,
            heard: now,
            unanswered: 0,
            returned: None,
            sequence: 0,
            waiting: VecDeque::new(),
            due: now + gap * number,
            failed: false,
            answered: false,
            trouble: None,
            changed: false,
        };
        pairs.into_iter().zip(0..).map(watched).collect()
    }
}

/// The state of each host: the first trouble of one of its paths.
fn troubles(paths: &mut [Watched]) -> BTreeMap<String, Option<String>> {
    let mut sources: BTreeMap<String, Option<String>> = BTreeMap::new();
    for path in paths {
        path.changed = false;
        // Before the first reply or error nothing is known.
        if path.answered || path.trouble.is_some() {
            let state = sources.entry(path.path.target.clone()).or_default();
            *state = state.take().or_else(|| path.trouble.clone());
        }
    }
    sources
}

/// One path.
struct Watched {
    path: Path,
    host: Host,
    /// The last known address: a gateway that is gone is still the one that does not answer.
    address: Option<SocketAddr>,
    echo: Option<Echo>,
    /// The time of the last attempt to open it.
    opened: Option<Instant>,
    /// The time of the last reply, or of the opening.
    heard: Instant,
    /// Requests sent since then.
    unanswered: u32,
    /// The length of an outage that the latest reply has ended.
    returned: Option<Duration>,
    sequence: u16,
    /// Requests without a reply, the oldest first.
    waiting: VecDeque<(u16, Instant)>,
    due: Instant,
    /// The last request could not be sent.
    failed: bool,
    /// A reply has come.
    answered: bool,
    trouble: Option<String>,
    changed: bool,
}

/// An outcome on the clock of the thread.
struct Known {
    path: Path,
    sent: Instant,
    rtt_ns: Option<u64>,
}

impl Known {
    fn since(self, start: Instant) -> Outcome {
        Outcome { path: self.path, sent: self.sent.saturating_duration_since(start), rtt_ns: self.rtt_ns }
    }
}

impl Watched {
    /// The next time at which there is something to do.
    fn next(&self) -> Instant {
        self.waiting.front().map_or(self.due, |(_, sent)| self.due.min(*sent + PATIENCE))
    }

    fn advance(&mut self, now: Instant, interval: Duration, tell: &mut dyn FnMut(Known)) {
        self.receive(tell);
        while let Some((_, sent)) = self.waiting.front().filter(|(_, sent)| *sent + PATIENCE <= now) {
            tell(Known { path: self.path.clone(), sent: *sent, rtt_ns: None });
            self.waiting.pop_front();
        }
        if self.due <= now {
            self.renew(now);
            self.send(now, tell);
            self.due += interval;
            if self.due <= now {
                // A process that was stopped does not make up for requests.
                self.due = now + interval;
            }
        }
    }

    fn receive(&mut self, tell: &mut dyn FnMut(Known)) {
        let Some(echo) = &mut self.echo else { return };
        // An error that the network has reported stands for no reply, and the next call goes on.
        for _ in 0..64 {
            match echo.receive() {
                Ok(None) => break,
                Err(_) => {}
                Ok(Some(reply)) => {
                    let silence = reply.received.saturating_duration_since(self.heard);
                    // Of a longer one the trouble is an event of its own.
                    if self.trouble.is_none() && is_outage(silence, self.unanswered) {
                        self.returned = Some(silence);
                    }
                    (self.heard, self.unanswered) = (reply.received, 0);
                    self.changed |= !self.answered || self.trouble.is_some();
                    (self.answered, self.trouble) = (true, None);
                    // One that comes twice, or after its time, is not waited for.
                    if let Some(place) = self.waiting.iter().position(|(sequence, _)| *sequence == reply.sequence)
                        && let Some((_, sent)) = self.waiting.remove(place)
                    {
                        let rtt = reply.received.saturating_duration_since(sent);
                        let rtt_ns = u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX);
                        tell(Known { path: self.path.clone(), sent, rtt_ns: Some(rtt_ns) });
                    }
                }
            }
        }
    }

    /// Opens the socket, or opens it anew where nothing is heard.
    fn renew(&mut self, now: Instant) {
        let is_silent = now.saturating_duration_since(self.heard) >= RENEW;
        let patience = if self.echo.is_none() || self.failed { RETRY } else { RENEW };
        let is_tried = self.opened.is_some_and(|opened| now.saturating_duration_since(opened) < patience);
        let is_fine = self.echo.is_some() && !self.failed && !is_silent;
        if is_tried || is_fine {
            return;
        }
        if is_silent && self.opened.is_some() {
            self.set_trouble(format!("no reply for {} s", RENEW.as_secs()));
        }
        self.opened = Some(now);
        self.address = self.host.address().or(self.address);
        let opened = match self.address {
            Some(address) => Echo::open(address, self.path.code_point).map_err(|error| match error.hint() {
                Some(hint) => format!("{error}: {hint}"),
                None => error.to_string(),
            }),
            None => Err(self.host.missing()),
        };
        match opened {
            Ok(echo) => (self.echo, self.failed) = (Some(echo), false),
            Err(why) => self.set_trouble(why),
        }
    }

    fn set_trouble(&mut self, trouble: String) {
        let trouble = Some(trouble);
        self.changed |= self.trouble != trouble;
        self.trouble = trouble;
    }

    fn send(&mut self, now: Instant, tell: &mut dyn FnMut(Known)) {
        // A host whose address was never known was not pinged.
        if self.address.is_none() {
            return;
        }
        let sent = match &self.echo {
            None => Err(None),
            Some(echo) => echo.send(self.sequence).map_err(|error| Some(error.to_string())),
        };
        match sent {
            Ok(sent) => {
                self.failed = false;
                self.unanswered = self.unanswered.saturating_add(1);
                self.waiting.push_back((self.sequence, sent));
                self.sequence = self.sequence.wrapping_add(1);
            }
            Err(why) => {
                // No route, or no socket: the request is lost where it began.
                tell(Known { path: self.path.clone(), sent: now, rtt_ns: None });
                self.failed = true;
                if let Some(why) = why {
                    self.set_trouble(why);
                }
            }
        }
    }
}

/// Whether a time without a reply is an outage.
fn is_outage(silence: Duration, unanswered: u32) -> bool {
    let (least, requests) = OUTAGE;
    silence >= least && unanswered >= requests
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn an_outage_is_a_time_without_a_reply_to_several_requests() {
        let of = |ms, unanswered| is_outage(Duration::from_millis(ms), unanswered);
        // Requests each second, with 4 lost and with 14 lost.
        assert_eq!([of(4_999, 5), of(5_000, 5), of(14_000, 14)], [false, true, true]);
        // One of each 10 s that is lost, and a process that was stopped for a minute.
        assert_eq!([of(20_000, 2), of(60_000, 1), of(30_000, 3)], [false, false, true]);
    }

    #[test]
    #[ignore = "needs root for a raw socket"]
    fn watch_pings_every_path_on_a_grid() {
        let target =
            |name: &str, address: &str| Target { name: name.to_owned(), host: Host::At(address.parse().unwrap()) };
        let pings = Pings {
            targets: vec![target("four", "127.0.0.1:0"), target("six", "[::1]:0")],
            code_points: vec![0, 46],
            interval: Duration::from_millis(100),
        };
        let stop = Stop::new().unwrap();
        let handle = stop.handle().unwrap();
        let (sender, news) = mpsc::channel();
        let start = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| pings.run(start, &stop, &sender).unwrap());
            thread::sleep(Duration::from_millis(1050));
            handle.stop();
        });
        let most = start.elapsed().as_millis() / 100 + 1;
        drop(sender);
        let mut counts: BTreeMap<Path, u128> = BTreeMap::new();
        for one in news {
            if let News::Outcome(outcome) = one {
                assert!(outcome.rtt_ns.is_some_and(|ns| ns < 500_000_000), "{outcome:?}");
                *counts.entry(outcome.path).or_default() += 1;
            }
        }
        assert_eq!(counts.len(), 4, "{counts:?}");
        // A busy machine loses some.
        assert!(counts.values().all(|count| (most / 3..=most).contains(count)), "{counts:?} of {most}");
    }
}
