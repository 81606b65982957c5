//! Load from and to any `iperf3 -s`.
//!
//! Source: iperf 3.12 to 3.21. Differences from iperf3's own client: the test ends when the session asks for it, so
//! `longest_s` is only the time in the request to the server; download data is counted without being copied; results of
//! streams are those of the receiver, and progress of an upload is the kernel's count of acknowledged bytes until the
//! server's results arrive. A UDP test has one stream of each direction, and its upload is counted by the server
//! alone, at the end.

use std::num::{NonZeroU32, NonZeroU64};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::foreign::wire::{self, Halt, Patience};
use crate::load::{Direction, Load, Stop, Transferred, Used};
use crate::train::Way;

mod control;
mod datagrams;
pub(crate) mod protocol;
mod streams;
mod udp;

use control::Control;
pub use datagrams::Datagrams;
use protocol::{MAX_STREAMS, Parameters, State, StreamResult};
pub use streams::StreamOutcome;

/// The port of iperf3.
pub const PORT: u16 = 5201;

/// A test against an iperf3 server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Host name or address.
    pub host: String,
    /// TCP port; [`PORT`] by default.
    pub port: u16,
    /// TCP connections of each loaded direction, at most 128.
    pub streams: NonZeroU32,
    /// Longest length of a test in seconds, as sent to the server. Servers end longer tests by themselves, and some
    /// refuse long ones. A test that is not stopped ends then.
    pub longest_s: NonZeroU32,
    /// Congestion control of both ends; `None` for the default of each.
    pub congestion: Option<String>,
    /// Datagrams at this rate of payload in each direction, in bit/s, in place of TCP; `streams` does not count.
    pub udp_bps: Option<NonZeroU64>,
}

/// Load from and to an iperf3 server.
#[derive(Debug)]
pub struct Iperf3 {
    settings: Settings,
    outcome: Option<Vec<StreamOutcome>>,
    datagrams: Vec<Datagrams>,
    used: Used,
}

/// Results of a test.
enum Done {
    Tcp(Vec<StreamOutcome>, Used),
    Udp(Vec<Datagrams>),
}

impl Iperf3 {
    /// A load that has not connected yet.
    ///
    /// # Errors
    /// More than 128 streams.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        if settings.streams.get() > MAX_STREAMS {
            let text = format!("iperf3 has at most {MAX_STREAMS} streams, not {}", settings.streams);
            return Err(Error::Unsupported(text));
        }
        Ok(Self { settings, outcome: None, datagrams: Vec::new(), used: Used::default() })
    }

    /// The test that was asked for.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Results of the last test with TCP that came to its end.
    pub fn outcome(&self) -> Option<&[StreamOutcome]> {
        self.outcome.as_deref()
    }

    fn test(&mut self, direction: Direction, transferred: &Transferred, stop: &Stop) -> Result<Done, Halt> {
        let settings = &self.settings;
        let patience = Patience::new(Duration::from_secs(10), Some(stop));
        let connection = wire::connect_any(&wire::resolve(&settings.host, settings.port)?, patience)?;
        let server = connection.peer_addr().map_err(Error::io("asking for the server's address"))?;
        let mut random = [0; protocol::COOKIE_LEN - 1];
        streams::fill_random(&mut random)?;
        let cookie = protocol::cookie(random);
        let mut control = Control::new(connection, format!("iperf3 {server}"), &cookie, stop)?;
        let done = exchange(settings, direction, server, &mut control, &cookie, transferred, stop);
        if matches!(done, Err(Halt::Stopped)) {
            let _ = control.send(State::ClientTerminate);
        }
        done
    }
}

/// A test on a control connection whose cookie was sent: message by message, in the only order that there is.
fn exchange(
    settings: &Settings,
    direction: Direction,
    server: std::net::SocketAddr,
    control: &mut Control<'_>,
    cookie: &[u8; protocol::COOKIE_LEN],
    transferred: &Transferred,
    stop: &Stop,
) -> Result<Done, Halt> {
    control.expect(State::ParamExchange)?;
    let parameters = parameters(settings, direction);
    control.send_json(&serde_json::to_string(&parameters).expect("numbers and strings"))?;
    control.expect(State::CreateStreams)?;
    let longest = Duration::from_secs(settings.longest_s.get().into());
    if let Some(rate_bps) = settings.udp_bps {
        let order = protocol::streams(direction, 1);
        let mut streams = udp::connect_all(&order, server, rate_bps.get(), stop)?;
        begin(control)?;
        let started = Instant::now();
        udp::carry(&mut streams, control, longest, transferred, stop)?;
        let span = started.elapsed();
        let ours = |stream: &udp::Stream| stream.result(span);
        let (theirs, _) = conclude(control, direction, &order, || streams.iter().map(ours).collect())?;
        return Ok(Done::Udp(udp::settle(&streams, &theirs, transferred)));
    }
    let order = protocol::streams(direction, settings.streams.get());
    let mut streams = streams::connect_all(&order, server, settings.congestion.as_deref(), cookie, stop)?;
    begin(control)?;
    let started = Instant::now();
    streams::carry(&mut streams, control, longest, transferred, stop)?;
    let span = started.elapsed();
    let ours = |stream: &streams::Stream| stream.result(span);
    let up = streams::congestion(&streams);
    let (theirs, down) = conclude(control, direction, &order, || streams.iter().map(ours).collect())?;
    let used = Used { down: down.filter(|_| direction != Direction::Upload), up };
    Ok(Done::Tcp(streams::settle(&streams, &theirs, span, transferred), used))
}

fn parameters(settings: &Settings, direction: Direction) -> Parameters<'_> {
    let longest_s = settings.longest_s.get();
    match settings.udp_bps {
        Some(rate_bps) => Parameters::datagrams(direction, longest_s, rate_bps.get(), datagrams::LEN),
        None => {
            let congestion = settings.congestion.as_deref();
            Parameters::new(direction, settings.streams.get(), longest_s, streams::BLOCK, congestion)
        }
    }
}

/// The server's start of a test whose streams are there.
fn begin(control: &Control<'_>) -> Result<(), Halt> {
    control.expect(State::TestStart)?;
    control.expect(State::TestRunning)
}

/// Ends a test and exchanges the results of both ends: those of the server, and its congestion control.
fn conclude(
    control: &mut Control<'_>,
    direction: Direction,
    order: &[(u32, Way)],
    ours: impl FnOnce() -> Vec<StreamResult>,
) -> Result<(Vec<StreamResult>, Option<String>), Halt> {
    control.finish();
    control.send(State::TestEnd)?;
    control.expect(State::ExchangeResults)?;
    control.send_json(&protocol::write_results(&ours(), direction != Direction::Download))?;
    let ids: Vec<u32> = order.iter().map(|&(id, _)| id).collect();
    let text = control.read_json()?;
    let theirs = protocol::parse_results(&text, &ids).map_err(|what| control.protocol(what))?;
    control.expect(State::DisplayResults)?;
    control.send(State::IperfDone)?;
    Ok((theirs, protocol::congestion_used(&text)))
}

impl Load for Iperf3 {
    fn peer(&self) -> String {
        let protocol = if self.settings.udp_bps.is_some() { " (UDP)" } else { "" };
        format!("iperf3 {}:{}{protocol}", self.settings.host, self.settings.port)
    }

    fn can(&self, _: Direction) -> bool {
        true
    }

    fn streams(&self) -> u32 {
        if self.settings.udp_bps.is_some() { 1 } else { self.settings.streams.get() }
    }

    fn datagrams(&self) -> Vec<Datagrams> {
        self.datagrams.clone()
    }

    /// A server that lacks the wanted congestion control goes on with its own (ENOENT of `TCP_CONGESTION`).
    fn warnings(&self) -> Vec<String> {
        let wanted = self.settings.congestion.iter();
        let used = wanted.zip(&self.used.down).filter(|(wanted, used)| wanted != used);
        used.map(|(wanted, used)| format!("the server sends by {used}, since it does not have {wanted}")).collect()
    }

    fn congestion(&self) -> Used {
        self.used.clone()
    }

    fn run(&mut self, direction: Direction, transferred: &Transferred, stop: &Stop) -> Result<(), Error> {
        (self.outcome, self.datagrams, self.used) = (None, Vec::new(), Used::default());
        match self.test(direction, transferred, stop) {
            Ok(Done::Tcp(outcome, used)) => {
                (self.outcome, self.used) = (Some(outcome), used);
                Ok(())
            }
            Ok(Done::Udp(datagrams)) => {
                self.datagrams = datagrams;
                Ok(())
            }
            Err(Halt::Stopped) => Ok(()),
            Err(Halt::Failed(error)) => Err(error),
        }
    }
}

/// The first byte chooses the reader.
pub(crate) fn hostile(input: &[u8]) {
    let Some((reader, rest)) = input.split_first() else { return };
    match reader % 3 {
        0 => {
            // Results have the streams of the test, each once, and are equal after writing and reading.
            let ids: Vec<u32> =
                protocol::streams(Direction::Both, 1 + u32::from(reader / 3) % 4).iter().map(|(id, _)| *id).collect();
            match protocol::parse_results(rest, &ids) {
                Ok(read) => {
                    assert!(read.iter().map(|stream| stream.id).eq(ids.iter().copied()));
                    let text = protocol::write_results(&read, true);
                    if read
                        .iter()
                        .all(|stream| stream.span_s.is_none_or(f64::is_finite) && stream.counted.jitter_s.is_finite())
                    {
                        let again = protocol::parse_results(text.as_bytes(), &ids).expect("written by the client");
                        assert!(again.iter().zip(&read).all(|(again, read)| again.bytes == read.bytes));
                    }
                }
                Err(error) => assert!(error.len() <= 300 + 8 * rest.len(), "{} bytes for {}", error.len(), rest.len()),
            }
        }
        1 => {
            let mut reception = datagrams::Reception::default();
            for head in rest.chunks(datagrams::HEAD).filter_map(datagrams::Head::read) {
                assert_eq!(datagrams::Head::read(&head.write()).map(|again| again.number), Some(head.number));
                reception.take(head, head.number);
                assert!(reception.lost < reception.highest && reception.jitter_s.is_finite());
            }
            let _ = datagrams::is_welcome(rest);
        }
        _ => {
            for state in rest.iter().filter_map(|byte| State::parse(*byte)) {
                assert_eq!(State::parse(state.byte()), Some(state));
            }
        }
    }
}

#[cfg(test)]
mod tests;
