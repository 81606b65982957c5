//! Probes against `irtt server`.
//!
//! Source: irtt 0.9 (github.com/heistp/irtt), protocol version 1. Differences from its own client: a session that the
//! server ends for its length is opened again; a longer interval that the server demands is kept; the server's fill and
//! length of packets are not negotiated. Requests have the length of their replies, 60 bytes of UDP payload at most.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use lastmile_live::sys::{socket, stamped};

use crate::clock;
use crate::error::Error;
use crate::foreign::wire::{Halt, LOOK};
use crate::load::Stop;
use crate::probe::window::{Answer, Window};
use crate::probe::{Clocks, Kind, PATIENCE, Prober, Sample, Subject, is_passing, next_due};

pub(crate) mod packet;
mod reception;

use packet::{Parameters, Reply};
use reception::Reception;

/// The port of irtt.
pub const PORT: u16 = 2112;
/// Waits for the answer to an open request, those of irtt's client.
const OPEN_WAITS: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];

/// A series of probes against an irtt server.
#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    /// The server as the user named it.
    pub name: String,
    /// Address and port of the server.
    pub server: SocketAddr,
    /// Differentiated services code point of requests and replies, 0 to 63.
    pub code_point: u8,
    /// Time between two requests. Servers allow 10 ms and more by default.
    pub interval: Duration,
    /// The server's key (`--hmac`), if it has one.
    pub key: Option<Vec<u8>>,
}

/// A key as `irtt server --hmac` takes it: text, or bytes in hexadecimal after `0x`. White space around it does not
/// count.
///
/// # Errors
/// In words: it is empty, or not hexadecimal after `0x`.
pub fn key(text: &str) -> Result<Vec<u8>, String> {
    let text = text.trim();
    let Some(digits) = text.strip_prefix("0x") else {
        return (!text.is_empty()).then(|| text.as_bytes().to_vec()).ok_or_else(|| "the key is empty".to_owned());
    };
    let byte = |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let is_whole = !digits.is_empty() && digits.len() % 2 == 0 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
    bytes.filter(|_| is_whole).ok_or_else(|| "the key after 0x needs pairs of hexadecimal digits".to_owned())
}

impl std::fmt::Debug for Settings {
    /// Without the key.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, server, code_point, interval, key } = self;
        let key = key.as_ref().map(|_| "a key");
        write!(formatter, "Settings {{ {name}, {server}, {code_point}, {interval:?}, {key:?} }}")
    }
}

/// Probes against an irtt server.
#[derive(Debug)]
pub struct Irtt {
    settings: Settings,
}

/// How a session ended.
#[derive(PartialEq, Eq)]
enum End {
    Stopped,
    /// The server's limit of length.
    Closed,
}

impl Irtt {
    /// A prober that has not asked the server yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }

    fn key(&self) -> Option<&[u8]> {
        self.settings.key.as_deref()
    }

    fn protocol(&self, what: String) -> Error {
        Error::Protocol { peer: format!("irtt {}", self.settings.server), what }
    }

    fn connect(&self) -> Result<UdpSocket, Error> {
        let what = || format!("irtt requests to {}", self.settings.server);
        let any: SocketAddr = match self.settings.server {
            SocketAddr::V4(_) => (std::net::Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let connected = UdpSocket::bind(any).and_then(|udp| {
            udp.connect(self.settings.server)?;
            socket::set_dscp(udp.as_fd(), self.settings.code_point)?;
            stamped::enable(udp.as_fd())?;
            Ok(udp)
        });
        connected.map_err(Error::io(what()))
    }

    /// Opens a session: its token, and the parameters that the server allows.
    fn open(&self, udp: &UdpSocket, stop: &Stop) -> Result<(u64, Parameters), Halt> {
        let what = || format!("opening an irtt session with {}", self.settings.server);
        let interval_ns = i64::try_from(self.settings.interval.as_nanos()).unwrap_or(i64::MAX);
        // A day: the server answers with its own limit.
        let wanted = Parameters::wanted(86_400_000_000_000, interval_ns, self.settings.code_point);
        let request = packet::seal(packet::OPEN, &wanted.write(), self.key());
        let mut buffer = [0; 2048];
        let asked = Instant::now();
        for wait in OPEN_WAITS {
            match udp.send(&request) {
                Err(error) if !is_passing(&error) => return Err(Error::io(what())(error).into()),
                _ => {}
            }
            let until = Instant::now() + wait;
            while Instant::now() < until {
                if stop.is_requested() {
                    // A short measurement ends before the last wait, and its user wants to know why it has no answers.
                    let waited = asked.elapsed();
                    return Err(if waited < OPEN_WAITS[0] { Halt::Stopped } else { self.silent(waited).into() });
                }
                let received = receive(udp, &mut buffer, LOOK).map_err(Error::io(what()))?;
                let Some((len, _)) = received else { continue };
                let Some((flags, body)) = packet::unseal(&buffer[..len], self.key()) else { continue };
                if flags & packet::OPEN == 0 {
                    continue;
                }
                let (token, allowed) = packet::read_opened(body).map_err(|what| self.protocol(what))?;
                if token == 0 || flags & packet::CLOSE != 0 {
                    return Err(self.protocol("closes the session at once".to_owned()).into());
                }
                return Ok((token, allowed));
            }
        }
        Err(self.silent(asked.elapsed()).into())
    }

    /// No answer to an open request.
    fn silent(&self, waited: Duration) -> Error {
        let key = if self.settings.key.is_some() { "that has this key" } else { "without a key" };
        let text = format!("no answer in {:.0} s; is there an irtt server {key}?", waited.as_secs_f64());
        let what = format!("opening an irtt session with {}", self.settings.server);
        Error::io(what)(std::io::Error::new(std::io::ErrorKind::TimedOut, text))
    }

    /// One session, until `stop` or until the server ends it.
    fn session(
        &self,
        udp: &UdpSocket,
        now_s: &(dyn Fn() -> f64 + Sync),
        stop: &Stop,
        tell: &mut dyn FnMut(Sample),
    ) -> Result<End, Halt> {
        let (token, allowed) = self.open(udp, stop)?;
        let mut session = Session::new(token, allowed);
        let interval = self.settings.interval.max(Duration::from_nanos(allowed.interval_ns.max(0).cast_unsigned()));
        let what = || format!("irtt requests to {}", self.settings.server);
        let mut due_s = now_s();
        let mut ended_s = None;
        let mut buffer = [0; 2048];
        let mut closed = false;
        loop {
            if stop.is_requested() || closed {
                let since_s = *ended_s.get_or_insert_with(now_s);
                if session.window.is_empty() || now_s() - since_s >= PATIENCE.as_secs_f64() {
                    break;
                }
            } else if now_s() >= due_s {
                let request = packet::seal(0, &session.request(now_s(), clock::now_ns()), self.key());
                match udp.send(&request) {
                    Err(error) if !is_passing(&error) => return Err(Error::io(what())(error).into()),
                    _ => {}
                }
                due_s = next_due(due_s, interval.as_secs_f64(), now_s());
            }
            let wait_s = if ended_s.is_some() { 0.02 } else { (due_s - now_s()).clamp(1e-6, 0.05) };
            let received = receive(udp, &mut buffer, Duration::from_secs_f64(wait_s)).map_err(Error::io(what()))?;
            if let Some((len, received_ns)) = received
                && let Some((flags, body)) = packet::unseal(&buffer[..len], self.key())
                && flags & packet::OPEN == 0
                && let Some(reply) = packet::read_reply(body, allowed)
            {
                closed |= flags & packet::CLOSE != 0 && reply.token == token;
                session.reply(reply, received_ns, now_s()).into_iter().for_each(&mut *tell);
            }
            session.give_up(now_s() - PATIENCE.as_secs_f64()).into_iter().for_each(&mut *tell);
        }
        session.give_up(f64::INFINITY).into_iter().for_each(&mut *tell);
        if closed {
            return Ok(End::Closed);
        }
        let _ = udp.send(&packet::seal(packet::CLOSE, &token.to_le_bytes(), self.key()));
        Ok(End::Stopped)
    }
}

/// The next packet and its arrival by the monotonic clock; `None` if none comes in time.
fn receive(udp: &UdpSocket, buffer: &mut [u8], limit: Duration) -> std::io::Result<Option<(usize, u64)>> {
    udp.set_read_timeout(Some(limit))?;
    match stamped::receive(udp.as_fd(), buffer) {
        Err(error) if is_passing(&error) => Ok(None),
        Err(error) => Err(error),
        Ok(received) => Ok(received.map(|(len, stamp)| (len, clock::received_ns(stamp)))),
    }
}

/// Requests and replies of one session, without I/O.
struct Session {
    token: u64,
    parameters: Parameters,
    window: Window,
    reception: Reception,
    /// Departure of the requests that wait, by the monotonic clock.
    sent_ns: BTreeMap<u64, u64>,
}

impl Session {
    fn new(token: u64, parameters: Parameters) -> Self {
        let (window, reception, sent_ns) = (Window::default(), Reception::default(), BTreeMap::new());
        Self { token, parameters, window, reception, sent_ns }
    }

    /// The body of the next request.
    fn request(&mut self, now_s: f64, now_ns: u64) -> Vec<u8> {
        let number = self.window.send(now_s);
        self.sent_ns.insert(number, now_ns);
        packet::echo(self.token, u32::try_from(number & 0xffff_ffff).unwrap_or(0), self.parameters)
    }

    /// The sample of a reply, if it is one to a request.
    fn reply(&mut self, reply: Reply, received_ns: u64, now_s: f64) -> Option<Sample> {
        if reply.token != self.token {
            return None;
        }
        let number = u64::from(reply.number);
        match self.window.answer(number) {
            Answer::First { sent_s, reordered } => {
                self.reception.note(number, reply.window);
                let sent_ns = self.sent_ns.remove(&number)?;
                Some(Sample { sent_s, reordered, ..timed(reply, sent_ns, received_ns) })
            }
            Answer::Duplicate => Some(Sample { sent_s: now_s, duplicate: true, ..Sample::default() }),
            Answer::Unknown => None,
        }
    }

    fn give_up(&mut self, before_s: f64) -> Vec<Sample> {
        let given_up = self.window.given_up(before_s);
        for (number, _) in &given_up {
            self.sent_ns.remove(number);
        }
        let lost = |(number, sent_s)| Sample { sent_s, lost: self.reception.lost(number), ..Sample::default() };
        given_up.into_iter().map(lost).collect()
    }
}

/// Delays of an answered request, less the time that the server took.
fn timed(reply: Reply, sent_ns: u64, received_ns: u64) -> Sample {
    let whole_s = apart_s(received_ns.into(), sent_ns.into());
    let one_way = reply.received_ns.zip(reply.sent_ns);
    let up_s = one_way.map(|(arrived, _)| apart_s(arrived.into(), sent_ns.into()));
    let down_s = one_way.map(|(_, left)| apart_s(received_ns.into(), left.into()));
    let processing_s = one_way.map_or(0.0, |(arrived, left)| apart_s(left.into(), arrived.into()));
    // As irtt: a processing time that cannot be is not subtracted.
    let possible = (0.0..=whole_s).contains(&processing_s);
    let rtt_s = if possible { whole_s - processing_s } else { whole_s };
    Sample { rtt_s: Some(rtt_s.max(0.0)), up_s, down_s, ..Sample::default() }
}

/// A difference of two clocks in seconds.
#[expect(clippy::cast_precision_loss, reason = "below a nanosecond for differences below 50 days")]
fn apart_s(later_ns: i128, earlier_ns: i128) -> f64 {
    (later_ns - earlier_ns) as f64 * 1e-9
}

impl Prober for Irtt {
    fn subject(&self) -> Subject {
        Subject { target: self.settings.name.clone(), kind: Kind::Irtt, code_point: self.settings.code_point }
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.settings.interval)
    }

    /// The server's monotonic clock has a zero of its own.
    fn clocks(&self) -> Clocks {
        Clocks::Apart
    }

    fn run(
        &mut self,
        now_s: &(dyn Fn() -> f64 + Sync),
        stop: &Stop,
        tell: &mut dyn FnMut(Sample),
    ) -> Result<(), Error> {
        let udp = self.connect()?;
        loop {
            match self.session(&udp, now_s, stop, tell) {
                Ok(End::Closed) if !stop.is_requested() => {}
                Ok(_) | Err(Halt::Stopped) => return Ok(()),
                Err(Halt::Failed(error)) => return Err(error),
            }
        }
    }
}

/// Packets of a session whose parameters the first of them has; the first byte chooses the key.
pub(crate) fn hostile(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    let key = (first % 2 == 1).then_some(&b"key"[..]);
    if let Some((flags, body)) = packet::unseal(rest, key) {
        assert_eq!(
            packet::unseal(&packet::seal(flags, body, key), key),
            Some((flags, body)),
            "sealed and opened again"
        );
    }
    // Bodies behind a right HMAC: a server with the key may be hostile, too.
    let (head, rest) = rest.split_at(usize::from(first >> 1).min(rest.len()));
    let Ok((token, parameters)) = packet::read_opened(head) else { return };
    let mut session = Session::new(token, parameters);
    for number in 0..8 {
        assert!(session.request(f64::from(number), 1).len() <= 200);
    }
    for body in rest.chunks(64) {
        if let Some(reply) = packet::read_reply(body, parameters)
            && let Some(sample) = session.reply(reply, 1000, 9.0)
        {
            assert!(sample.duplicate || sample.rtt_s.is_some_and(|rtt_s| (0.0..1.0).contains(&rtt_s)), "{sample:?}");
        }
    }
    assert!(session.give_up(f64::INFINITY).len() <= 8);
}

#[cfg(test)]
mod tests;
