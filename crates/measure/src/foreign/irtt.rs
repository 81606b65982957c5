//! Probes against `irtt server`.
//!
//! Source: irtt 0.9 (github.com/heistp/irtt), protocol version 1. Differences from its own client: before the server
//! ends a session for its length, another one is opened; a longer interval that the server demands is kept; the
//! server's fill and length of packets are not negotiated. Requests have the length of their replies, 60 bytes of UDP
//! payload at most.

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
use crate::probe::{Clocks, Kind, PATIENCE, Prober, Sample, Subject};

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

    fn open_request(&self) -> Vec<u8> {
        let interval_ns = i64::try_from(self.settings.interval.as_nanos()).unwrap_or(i64::MAX);
        // A day: the server answers with its own limit.
        let wanted = Parameters::wanted(86_400_000_000_000, interval_ns, self.settings.code_point);
        packet::seal(packet::OPEN, &wanted.write(), self.key())
    }

    /// The token and the parameters of an answer to an open request.
    fn opened(&self, flags: u8, body: &[u8]) -> Result<(u64, Parameters), Error> {
        let (token, allowed) = packet::read_opened(body).map_err(|what| self.protocol(what))?;
        if token == 0 || flags & packet::CLOSE != 0 {
            return Err(self.protocol("closes the session at once".to_owned()));
        }
        Ok((token, allowed))
    }

    /// Opens a session: its token, and the parameters that the server allows.
    fn open(&self, udp: &UdpSocket, stop: &Stop) -> Result<(u64, Parameters), Halt> {
        let what = || format!("opening an irtt session with {}", self.settings.server);
        let request = self.open_request();
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
                if flags & packet::OPEN != 0 {
                    return Ok(self.opened(flags, body)?);
                }
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

    /// Sessions one after the other, until `stop`.
    fn sessions(
        &self,
        udp: &UdpSocket,
        now_s: &(dyn Fn() -> f64 + Sync),
        stop: &Stop,
        tell: &mut dyn FnMut(Sample),
    ) -> Result<(), Halt> {
        let (token, allowed) = self.open(udp, stop)?;
        let interval = self.settings.interval.max(Duration::from_nanos(allowed.interval_ns.max(0).cast_unsigned()));
        let mut requests = Requests::new(self, udp, Session::new(token, allowed, 0));
        let what = format!("irtt requests to {}", self.settings.server);
        exchange::run(&mut requests, interval, now_s, stop, tell).map_err(Error::io(what))?;
        for session in &requests.sessions {
            requests.close(session);
        }
        requests.failed.map_or(Ok(()), |error| Err(error.into()))
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

/// The requests of all sessions, over one socket.
struct Requests<'a> {
    irtt: &'a Irtt,
    udp: &'a UdpSocket,
    /// Requests belong to the last one; answers to those of the others may still come.
    sessions: Vec<Session>,
    /// Number of open requests for the next session, with the times of the first and the last of them.
    asked: Option<(usize, u64, u64)>,
    /// Number of the next request.
    next: u64,
    /// There is no next session.
    failed: Option<Error>,
}

impl<'a> Requests<'a> {
    fn new(irtt: &'a Irtt, udp: &'a UdpSocket, first: Session) -> Self {
        Self { irtt, udp, sessions: vec![first], asked: None, next: 0, failed: None }
    }

    /// Asks for the next session, and asks again after the usual waits.
    fn ask(&mut self, now_ns: u64) -> io::Result<()> {
        let (count, first_ns, last_ns) = self.asked.unwrap_or((0, now_ns, now_ns));
        let waited = Duration::from_nanos(now_ns.saturating_sub(last_ns));
        if count > 0 && waited < OPEN_WAITS[count - 1] {
            return Ok(());
        }
        if count == OPEN_WAITS.len() {
            self.failed = Some(self.irtt.silent(Duration::from_nanos(now_ns.saturating_sub(first_ns))));
            return Ok(());
        }
        self.asked = Some((count + 1, first_ns, now_ns));
        passing(self.udp.send(&self.irtt.open_request())).map(drop)
    }

    /// An answer to an open request. The next request is of its session.
    fn take(&mut self, flags: u8, body: &[u8], received_ns: u64) {
        if self.asked.take().is_none() {
            return;
        }
        match self.irtt.opened(flags, body) {
            Ok((token, allowed)) => {
                self.sessions.iter_mut().for_each(|session| {
                    session.left_ns.get_or_insert(received_ns);
                });
                self.sessions.push(Session::new(token, allowed, self.next));
            }
            Err(error) => self.failed = Some(error),
        }
    }

    fn close(&self, session: &Session) {
        if session.closed_by.is_none() {
            let _ = self.udp.send(&packet::seal(packet::CLOSE, &session.token.to_le_bytes(), self.irtt.key()));
        }
    }
}

impl Exchange for Requests<'_> {
    fn prepare(&mut self, now_ns: u64) -> io::Result<bool> {
        // Every request of these was answered or given up.
        let over: Vec<Session> = self.sessions.extract_if(.., |session| session.is_over(now_ns)).collect();
        over.iter().for_each(|session| self.close(session));
        let Some(session) = self.sessions.last() else { return Ok(false) };
        let is_closed = session.closed_by.is_some();
        if is_closed || session.is_near_its_limit(now_ns) {
            self.ask(now_ns)?;
        }
        Ok(!is_closed)
    }

    fn send(&mut self, number: u64, sent_ns: u64) -> io::Result<()> {
        self.next = number + 1;
        let Some(session) = self.sessions.last_mut() else { return Ok(()) };
        session.began_ns.get_or_insert(sent_ns);
        self.udp.send(&packet::seal(0, &session.request(number), self.irtt.key())).map(drop)
    }

    fn receive(&mut self, window: &Window, patience: Duration) -> io::Result<Option<(u64, Sample)>> {
        let mut buffer = [0; 2048];
        let Some((len, received_ns)) = receive(self.udp, &mut buffer, patience)? else { return Ok(None) };
        let Some((flags, body)) = packet::unseal(&buffer[..len], self.irtt.key()) else { return Ok(None) };
        if flags & packet::OPEN != 0 {
            self.take(flags, body, received_ns);
            return Ok(None);
        }
        for session in &mut self.sessions {
            let Some(reply) = packet::read_reply(body, session.parameters) else { continue };
            if let Some(answer) = session.reply(reply, received_ns, window) {
                if flags & packet::CLOSE != 0 {
                    session.closed_by.get_or_insert(reply.number);
                }
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    fn give_up(&mut self, requests: Vec<(u64, f64)>, _before_s: f64, tell: &mut dyn FnMut(Sample)) {
        for (number, sent_s) in requests {
            let session = self.sessions.iter().rfind(|session| session.first <= number);
            if session.is_none_or(|session| !session.is_dropped(number)) {
                let lost = session.and_then(|session| session.reception.lost(number - session.first));
                tell(Sample { sent_s, lost, ..Sample::default() });
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.failed.is_some()
    }
}

/// Requests and replies of one session, without I/O.
struct Session {
    token: u64,
    parameters: Parameters,
    reception: Reception,
    /// The first request of the series that is this session's: its number here is zero.
    first: u64,
    /// Departure of that request.
    began_ns: Option<u64>,
    /// The next session began.
    left_ns: Option<u64>,
    /// The request with whose reply the server ended the session. It has dropped those that came later.
    closed_by: Option<u32>,
}

impl Session {
    fn new(token: u64, parameters: Parameters, first: u64) -> Self {
        let reception = Reception::default();
        Self { token, parameters, reception, first, began_ns: None, left_ns: None, closed_by: None }
    }

    /// The body of a request.
    fn request(&self, number: u64) -> Vec<u8> {
        let number = number.saturating_sub(self.first);
        packet::echo(self.token, u32::try_from(number & 0xffff_ffff).unwrap_or(0), self.parameters)
    }

    /// The number and the delays of a reply, if it is one of this session.
    fn reply(&mut self, reply: Reply, received_ns: u64, window: &Window) -> Option<(u64, Sample)> {
        if reply.token != self.token {
            return None;
        }
        let number = self.first + u64::from(reply.number);
        let sent_ns = window.sent_ns(number);
        if sent_ns.is_some() {
            self.reception.note(u64::from(reply.number), reply.window);
        }
        Some((number, sent_ns.map_or_else(Sample::default, |sent_ns| timed(reply, sent_ns, received_ns))))
    }

    /// Whether it is time to open the next session. The server counts from the arrival of the first request, and allows
    /// two seconds more: requests that wait in a queue arrive later than they left.
    fn is_near_its_limit(&self, now_ns: u64) -> bool {
        let limit = Duration::from_nanos(self.parameters.duration_ns.max(0).cast_unsigned());
        let lead = PATIENCE.min(limit / 2);
        let age = Duration::from_nanos(now_ns.saturating_sub(self.began_ns.unwrap_or(now_ns)));
        !limit.is_zero() && age >= limit - lead
    }

    /// Whether no answer can come any more.
    fn is_over(&self, now_ns: u64) -> bool {
        self.left_ns.is_some_and(|left_ns| Duration::from_nanos(now_ns.saturating_sub(left_ns)) > 2 * PATIENCE)
    }

    /// Whether the server, and not the line, dropped this request.
    fn is_dropped(&self, number: u64) -> bool {
        self.closed_by.is_some_and(|by| number - self.first > u64::from(by))
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
        match self.sessions(&udp, now_s, stop, tell) {
            Ok(()) | Err(Halt::Stopped) => Ok(()),
            Err(Halt::Failed(error)) => Err(error),
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
    let mut session = Session::new(token, parameters, 0);
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
