//! Probes against `irtt server`.
//!
//! Source: irtt 0.9 (github.com/heistp/irtt), protocol version 1. Differences from its own client: a session that the
//! server ends for its length is opened again; a longer interval that the server demands is kept; the server's fill and
//! length of packets are not negotiated. Requests have the length of their replies, 60 bytes of UDP payload at most.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use lastmile_live::sys::{socket, stamped};

use crate::error::Error;
use crate::foreign::wire::{Halt, LOOK};
use crate::load::Stop;
use crate::probe::exchange::{self, Exchange, apart_s, passing, receive, receive_or_error};
use crate::probe::window::Window;
use crate::probe::{Clocks, Kind, Prober, Sample, Subject};

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
            unless_refused(udp.send(&request)).map_err(Error::io(what()))?;
            let until = Instant::now() + wait;
            while Instant::now() < until {
                if stop.is_requested() {
                    // A short measurement ends before the last wait, and its user wants to know why it has no answers.
                    let waited = asked.elapsed();
                    return Err(if waited < OPEN_WAITS[0] { Halt::Stopped } else { self.silent(waited).into() });
                }
                let received = unless_refused(receive_or_error(udp, &mut buffer, LOOK)).map_err(Error::io(what()))?;
                let Some((len, _)) = received.flatten() else { continue };
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
        Error::io(what)(io::Error::new(io::ErrorKind::TimedOut, text))
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
        let interval = self.settings.interval.max(Duration::from_nanos(allowed.interval_ns.max(0).cast_unsigned()));
        let session = Session::new(token, allowed);
        let mut requests = Requests { session, udp, key: self.key(), closed: false };
        let what = format!("irtt requests to {}", self.settings.server);
        exchange::run(&mut requests, interval, now_s, stop, tell).map_err(Error::io(what))?;
        if requests.closed {
            return Ok(End::Closed);
        }
        let _ = udp.send(&packet::seal(packet::CLOSE, &token.to_le_bytes(), self.key()));
        Ok(End::Stopped)
    }
}

/// The result, if its error is not one of a single packet: a port that refuses packets is closed.
fn unless_refused<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            Err(io::Error::new(error.kind(), "connection refused: no irtt server listens there"))
        }
        other => passing(other),
    }
}

/// A session and its socket.
struct Requests<'a> {
    session: Session,
    udp: &'a UdpSocket,
    key: Option<&'a [u8]>,
    /// The server has ended the session.
    closed: bool,
}

impl Exchange for Requests<'_> {
    fn send(&mut self, number: u64, _sent_ns: u64) -> io::Result<()> {
        self.udp.send(&packet::seal(0, &self.session.request(number), self.key)).map(drop)
    }

    fn receive(&mut self, window: &Window, patience: Duration) -> io::Result<Option<(u64, Sample)>> {
        let mut buffer = [0; 2048];
        let Some((len, received_ns)) = receive(self.udp, &mut buffer, patience)? else { return Ok(None) };
        let opened = packet::unseal(&buffer[..len], self.key).filter(|(flags, _)| flags & packet::OPEN == 0);
        let Some((flags, body)) = opened else { return Ok(None) };
        let Some(reply) = packet::read_reply(body, self.session.parameters) else { return Ok(None) };
        self.closed |= flags & packet::CLOSE != 0 && reply.token == self.session.token;
        Ok(self.session.reply(reply, received_ns, window))
    }

    fn give_up(&mut self, requests: Vec<(u64, f64)>, _before_s: f64, tell: &mut dyn FnMut(Sample)) {
        for (number, sent_s) in requests {
            tell(Sample { sent_s, lost: self.session.reception.lost(number), ..Sample::default() });
        }
    }

    fn is_closed(&self) -> bool {
        self.closed
    }
}

/// Requests and replies of one session, without I/O.
struct Session {
    token: u64,
    parameters: Parameters,
    reception: Reception,
}

impl Session {
    fn new(token: u64, parameters: Parameters) -> Self {
        Self { token, parameters, reception: Reception::default() }
    }

    /// The body of a request.
    fn request(&self, number: u64) -> Vec<u8> {
        packet::echo(self.token, u32::try_from(number & 0xffff_ffff).unwrap_or(0), self.parameters)
    }

    /// The number and the delays of a reply, if it is one of this session.
    fn reply(&mut self, reply: Reply, received_ns: u64, window: &Window) -> Option<(u64, Sample)> {
        if reply.token != self.token {
            return None;
        }
        let number = u64::from(reply.number);
        let sent_ns = window.sent_ns(number);
        if sent_ns.is_some() {
            self.reception.note(number, reply.window);
        }
        Some((number, sent_ns.map_or_else(Sample::default, |sent_ns| timed(reply, sent_ns, received_ns))))
    }
}

/// Delays of an answered request, less the time that the server took.
fn timed(reply: Reply, sent_ns: u64, received_ns: u64) -> Sample {
    let whole_s = apart_s(received_ns, sent_ns);
    let one_way = reply.received_ns.zip(reply.sent_ns);
    let up_s = one_way.map(|(arrived, _)| apart_s(arrived, sent_ns));
    let down_s = one_way.map(|(_, left)| apart_s(received_ns, left));
    let processing_s = one_way.map_or(0.0, |(arrived, left)| apart_s(left, arrived));
    // As irtt: a processing time that cannot be is not subtracted.
    let possible = (0.0..=whole_s).contains(&processing_s);
    let rtt_s = if possible { whole_s - processing_s } else { whole_s };
    Sample { rtt_s: Some(rtt_s.max(0.0)), up_s, down_s, ..Sample::default() }
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
    let mut window = Window::default();
    for second in 0..8 {
        let number = window.send(f64::from(second), 1);
        assert!(session.request(number).len() <= 200);
    }
    for body in rest.chunks(64) {
        if let Some(reply) = packet::read_reply(body, parameters)
            && let Some((number, sample)) = session.reply(reply, 1000, &window)
        {
            assert!(number >= 8 || sample.rtt_s.is_some_and(|rtt_s| (0.0..1.0).contains(&rtt_s)), "{sample:?}");
        }
    }
}

#[cfg(test)]
mod tests;
