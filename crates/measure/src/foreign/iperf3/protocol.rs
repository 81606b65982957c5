//! Messages of iperf3's control connection, without I/O.
//!
//! Source: iperf 3.12 to 3.21 (`iperf_api.c`); the protocol has no specification. Each message is one byte, the new
//! state of the test. JSON follows some of them: a length of four bytes, big-endian, and the text.

use serde::{Deserialize, Serialize};

use crate::load::Direction;
use crate::train::Way;

/// Length of the cookie that joins the connections of a test, with its final NUL.
pub(super) const COOKIE_LEN: usize = 37;
/// Largest JSON text that the client accepts. Results of 128 streams need less than 64 KiB.
pub(super) const MAX_JSON_LEN: usize = 1 << 20;
/// Most streams of a direction (`MAX_STREAMS` of iperf3).
pub(super) const MAX_STREAMS: u32 = 128;

/// A cookie of 36 random letters and digits.
pub(super) fn cookie(random: [u8; COOKIE_LEN - 1]) -> [u8; COOKIE_LEN] {
    const ALPHABET: [u8; 32] = *b"abcdefghijklmnopqrstuvwxyz234567";
    let mut cookie = [0; COOKIE_LEN];
    for (letter, byte) in cookie.iter_mut().zip(random) {
        *letter = ALPHABET[usize::from(byte % 32)];
    }
    cookie
}

/// A message: the state that the other end is to enter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    TestStart,
    TestRunning,
    TestEnd,
    ParamExchange,
    CreateStreams,
    ServerTerminate,
    ClientTerminate,
    ExchangeResults,
    DisplayResults,
    IperfDone,
    AccessDenied,
    ServerError,
}

impl State {
    const ALL: [(i8, Self); 12] = [
        (1, Self::TestStart),
        (2, Self::TestRunning),
        (4, Self::TestEnd),
        (9, Self::ParamExchange),
        (10, Self::CreateStreams),
        (11, Self::ServerTerminate),
        (12, Self::ClientTerminate),
        (13, Self::ExchangeResults),
        (14, Self::DisplayResults),
        (16, Self::IperfDone),
        (-1, Self::AccessDenied),
        (-2, Self::ServerError),
    ];

    pub(super) fn parse(byte: u8) -> Option<Self> {
        let found = Self::ALL.iter().find(|(number, _)| number.to_ne_bytes() == [byte]);
        found.map(|&(_, state)| state)
    }

    pub(super) fn byte(self) -> u8 {
        let [byte] = Self::ALL.iter().find(|(_, state)| *state == self).map_or(0, |&(number, _)| number).to_ne_bytes();
        byte
    }
}

/// Parameters of a test, as the client sends them. For iperf3 up to 3.17 a key that is present is true, whatever its
/// value; later ones ignore a value of another type than their own client writes.
#[derive(Serialize, Debug)]
pub(super) struct Parameters<'a> {
    #[serde(skip_serializing_if = "is_false")]
    tcp: bool,
    #[serde(skip_serializing_if = "is_false")]
    udp: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    bandwidth: Option<u64>,
    /// The number 1, not `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    udp_counters_64bit: Option<u8>,
    omit: u32,
    time: u32,
    num: u32,
    blockcount: u32,
    parallel: u32,
    #[serde(skip_serializing_if = "is_false")]
    reverse: bool,
    #[serde(skip_serializing_if = "is_false")]
    bidirectional: bool,
    len: usize,
    pacing_timer: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion: Option<&'a str>,
    client_version: &'static str,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl<'a> Parameters<'a> {
    /// A TCP test without limits of rate and bytes.
    pub(super) fn new(
        direction: Direction,
        streams: u32,
        longest_s: u32,
        block: usize,
        congestion: Option<&'a str>,
    ) -> Self {
        Self {
            tcp: true,
            udp: false,
            bandwidth: None,
            udp_counters_64bit: None,
            omit: 0,
            time: longest_s,
            num: 0,
            blockcount: 0,
            parallel: streams,
            reverse: direction == Direction::Download,
            bidirectional: direction == Direction::Both,
            len: block,
            pacing_timer: 1000,
            congestion,
            client_version: concat!("lastmile ", env!("CARGO_PKG_VERSION")),
        }
    }

    /// A UDP test: one stream of each direction, at this rate of payload.
    pub(super) fn datagrams(direction: Direction, longest_s: u32, rate_bps: u64, len: u16) -> Self {
        let bandwidth = Some(rate_bps);
        let tcp = Self::new(direction, 1, longest_s, usize::from(len), None);
        Self { tcp: false, udp: true, bandwidth, udp_counters_64bit: Some(1), ..tcp }
    }
}

/// The streams of a test in the order in which the server expects their connections, with iperf3's numbers: 1, 3, 4, 5
/// and so on.
pub(super) fn streams(direction: Direction, each: u32) -> Vec<(u32, Way)> {
    let ways: &[Way] = match direction {
        Direction::Upload => &[Way::Up],
        Direction::Download => &[Way::Down],
        Direction::Both => &[Way::Up, Way::Down],
    };
    let ways = ways.iter().flat_map(|&way| (0..each).map(move |_| way));
    ways.zip(0..).map(|(way, index)| (if index == 0 { 1 } else { index + 2 }, way)).collect()
}

/// One end's count of datagrams; zero of TCP.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(super) struct Counted {
    /// Datagrams that a sender sent; the highest number that a receiver saw.
    pub(super) packets: u64,
    pub(super) lost: u64,
    pub(super) jitter_s: f64,
}

/// One end's results of one stream.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct StreamResult {
    pub(super) id: u32,
    /// Bytes sent by a sender, received by a receiver.
    pub(super) bytes: u64,
    /// Retransmitted segments; `None` from a receiver, and where the system does not count them.
    pub(super) retransmissions: Option<u64>,
    /// Length of the test at that end; `None` from iperf3 before 3.2.
    pub(super) span_s: Option<f64>,
    pub(super) counted: Counted,
}

#[derive(Serialize, Deserialize)]
struct RawResults {
    cpu_util_total: f64,
    cpu_util_user: f64,
    cpu_util_system: f64,
    sender_has_retransmits: f64,
    streams: Vec<RawStream>,
}

/// A stream's results as written. Numbers are doubles: iperf3 writes -1 in 64 bits without sign, in scientific
/// notation.
#[derive(Serialize, Deserialize)]
struct RawStream {
    id: f64,
    bytes: f64,
    retransmits: f64,
    jitter: f64,
    errors: f64,
    packets: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_time: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_time: Option<f64>,
}

/// Writes the client's results. `sends` says whether the client has sent data.
pub(super) fn write_results(results: &[StreamResult], sends: bool) -> String {
    let streams = results.iter().map(|stream| RawStream {
        id: f64::from(stream.id),
        bytes: float(stream.bytes),
        retransmits: stream.retransmissions.map_or(-1.0, float),
        jitter: stream.counted.jitter_s,
        errors: float(stream.counted.lost),
        packets: float(stream.counted.packets),
        start_time: stream.span_s.map(|_| 0.0),
        end_time: stream.span_s,
    });
    let results = RawResults {
        cpu_util_total: 0.0,
        cpu_util_user: 0.0,
        cpu_util_system: 0.0,
        sender_has_retransmits: if sends { 1.0 } else { -1.0 },
        streams: streams.collect(),
    };
    serde_json::to_string(&results).expect("numbers and strings")
}

/// Exact up to 2^53 bytes, 9 petabytes.
#[expect(clippy::cast_precision_loss, reason = "the format's numbers are doubles")]
fn float(count: u64) -> f64 {
    count as f64
}

/// A whole number that a double holds exactly.
fn count(value: f64) -> Option<u64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    ((0.0..=9_007_199_254_740_992.0).contains(&value) && value.fract() == 0.0).then_some(value as u64)
}

/// Reads the server's results of the streams `ids`.
///
/// # Errors
/// In words: no JSON, a missing key, a stream that is missing, unknown or doubled, a negative number of bytes.
pub(super) fn parse_results(text: &[u8], ids: &[u32]) -> Result<Vec<StreamResult>, String> {
    let raw: RawResults =
        serde_json::from_slice(text).map_err(|error| format!("its results are not as iperf3 writes them: {error}"))?;
    if raw.streams.len() != ids.len() {
        return Err(format!("its results have {} streams; the test has {}", raw.streams.len(), ids.len()));
    }
    let mut found = Vec::with_capacity(ids.len());
    for &id in ids {
        let mut named = raw.streams.iter().filter(|stream| count(stream.id) == Some(u64::from(id)));
        let (Some(stream), None) = (named.next(), named.next()) else {
            return Err(format!("its results do not have the stream {id} exactly once"));
        };
        let bytes = count(stream.bytes)
            .ok_or_else(|| format!("its results have {} bytes for the stream {id}, not a count", stream.bytes))?;
        let datagrams = |value: f64, what: &str| {
            count(value).ok_or_else(|| format!("its results have {value} {what} for the stream {id}, not a count"))
        };
        // An early datagram can make iperf3 subtract a loss that it never counted.
        let lost = datagrams(stream.errors.max(0.0), "lost datagrams")?;
        let counted = Counted { packets: datagrams(stream.packets, "datagrams")?, lost, jitter_s: stream.jitter };
        let span_s = stream.start_time.zip(stream.end_time).map(|(start, end)| end - start);
        found.push(StreamResult { id, bytes, retransmissions: count(stream.retransmits), span_s, counted });
    }
    Ok(found)
}

/// The congestion control of the server's sockets, from its results; `None` from iperf3 before 3.1 and of UDP.
pub(super) fn congestion_used(text: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Used {
        congestion_used: Option<String>,
    }
    serde_json::from_slice::<Used>(text).ok()?.congestion_used
}

/// The server's reason, from the number that follows [`State::ServerError`] (`i_errno` of iperf3).
pub(super) fn reason(code: i32) -> String {
    let known = match code {
        5 => "the test is longer than iperf3 allows (86400 s)",
        6 => "more streams than iperf3 allows (128)",
        27 => "the test exceeds the server's limit of rate",
        37 => "the test is longer than the server allows; a shorter phase may be allowed",
        134 => "the server does not have the wanted congestion control",
        142 => "the server wants a user name and a password, which lastmile does not offer",
        160 => "the server's limit of time has passed",
        114 => "the server does not accept the parameters of the test",
        _ => return format!("the server has failed with error {code} of iperf3"),
    };
    known.to_owned()
}

#[cfg(test)]
mod tests;
