//! The messages of lastmile's own protocol, read and written without input and output.
//!
//! A TCP connection carries lines of JSON. The server begins with a [`Greeting`]; the client
//! answers with an [`Opening`], whose codes prove that it has the shared key. The connection is
//! then either the control connection of a session, with a [`Request`] in each line of the client
//! and an [`Answer`] in each line of the server, or a stream of load. Datagrams are [`Datagram`]s of
//! fixed form, all numbers in network byte order.
//!
//! | datagram | bytes after `LM`, version, kind and session (12 bytes) |
//! | --- | --- |
//! | hello | nonce (8), code of session and nonce by the session's key (16), zeros |
//! | cookie | cookie (16) |
//! | request | number (8), client's time in ns (8), zeros |
//! | reply | number (8), client's time (8), receive time (8), send time (8), highest number (8), window (8), zeros |
//! | train | train (4), index (4), send time in ns (8), zeros |
//!
//! No datagram of the server is longer than the one it answers, and a train goes only to an address
//! whose cookie came back over the control connection.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::load::Direction;
use crate::train::Way;

/// Version of the protocol.
pub const VERSION: u8 = 1;

/// The usual port, of TCP and UDP: none that IANA has assigned.
pub const PORT: u16 = 5209;

/// Longest line before the client has proved that it has the key, line feed included.
pub const LONGEST_OPENING: usize = 512;

/// Longest line of a session, line feed included.
pub const LONGEST_LINE: usize = 4 << 20;

/// Most packets of all trains of one request.
pub const MOST_PACKETS: usize = 1 << 16;

/// Most trains of one request.
pub const MOST_TRAINS: usize = 16;

/// Longest wait of a load for its streams, from its start: the usual ramp. Data would hold up their first lines.
pub const GATHERING: Duration = Duration::from_secs(3);

/// Bytes in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hex<const N: usize>(pub [u8; N]);

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl<const N: usize> fmt::Debug for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<const N: usize> Hex<N> {
    fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 2 * N {
            return None;
        }
        let mut bytes = [0; N];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let [high, low] = [pair[0], pair[1]].map(|digit| char::from(digit).to_digit(16));
            *byte = u8::try_from(high? << 4 | low?).ok()?;
        }
        Some(Self(bytes))
    }
}

impl<const N: usize> Serialize for Hex<N> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Hex<N> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("{} hexadecimal digits are needed", 2 * N)))
    }
}

/// The first line of the server on each connection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Greeting {
    /// [`VERSION`] of the protocol "lastmile measure".
    pub lastmile_measure: u8,
    /// The challenge on which codes of this connection depend.
    pub challenge: Hex<16>,
}

/// The first line of the client on each connection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Opening {
    /// Opens a session.
    Session {
        /// The nonce on which, with the challenge, the server's code and the session's key depend.
        nonce: Hex<16>,
        /// Code of challenge and nonce by the shared key, purpose `client`.
        code: Hex<32>,
    },
    /// A stream of the running load.
    Stream {
        /// The session.
        session: Hex<8>,
        /// Direction of the data.
        way: Way,
        /// Code of challenge and session by the session's key, purpose `stream`.
        code: Hex<32>,
    },
    /// Asks what the server's machine offers, on a connection of its own: an older server closes it, and the session
    /// goes on. A server that answers also knows [`Request::Sending`].
    Offer {
        /// The session.
        session: Hex<8>,
        /// Congestion control that the client wants; `None` for the machine's own.
        congestion: Option<String>,
        /// Code of challenge and session by the session's key, purpose `offer`.
        code: Hex<32>,
    },
}

/// A line of the client on the control connection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Begin a load.
    Load {
        /// Its direction.
        direction: Direction,
        /// TCP connections in each direction.
        streams: u32,
        /// Congestion control of the server's side; `None` for the machine's own.
        congestion: Option<String>,
    },
    /// End the load.
    Stop,
    /// Tell the congestion control of the running load. Only servers that answered an [`Opening::Offer`] know this.
    Sending,
    /// The client has received this cookie at its UDP address.
    Address {
        /// The cookie.
        cookie: Hex<16>,
    },
    /// Begin trains.
    Trains {
        /// Number of this request, which its datagrams carry.
        number: u32,
        /// The trains.
        trains: Vec<Train>,
    },
    /// End the session.
    Bye,
}

/// A train: equal gaps and lengths in runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Train {
    /// Its direction.
    pub way: Way,
    /// Runs of packets: number, gap before each in ns, UDP payload in bytes.
    pub runs: Vec<(u32, u64, u16)>,
}

impl Train {
    /// The number of packets.
    #[must_use]
    pub fn count(&self) -> usize {
        self.runs.iter().fold(0_usize, |sum, (count, _, _)| sum.saturating_add(*count as usize))
    }

    /// Departure in ns after the start and payload of each packet.
    pub fn packets(&self) -> impl Iterator<Item = (u64, u16)> {
        let each = self.runs.iter().flat_map(|(count, gap, len)| std::iter::repeat_n((*gap, *len), *count as usize));
        each.scan(0_u64, |at, (gap, len)| {
            *at = at.saturating_add(gap);
            Some((*at, len))
        })
    }

    /// A train of packets, each with its departure in ns after the start, in order, and its payload.
    #[must_use]
    pub fn of(way: Way, packets: impl IntoIterator<Item = (u64, u16)>) -> Self {
        let mut runs: Vec<(u32, u64, u16)> = Vec::new();
        let mut before = 0;
        for (at, len) in packets {
            let gap = at.saturating_sub(before);
            before = at;
            match runs.last_mut() {
                Some((count, of_gap, of_len)) if (*of_gap, *of_len) == (gap, len) => *count += 1,
                _ => runs.push((1, gap, len)),
            }
        }
        Self { way, runs }
    }
}

/// A line of the server on the control connection, and the first on a stream.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// The session is open.
    Welcome {
        /// Code of nonce and challenge by the shared key, purpose `server`: the server has it, too.
        code: Hex<32>,
        /// The session.
        session: Hex<8>,
        /// Code of the name of the server's clock by the session's key, purpose `clock`.
        clock: Hex<32>,
        /// Largest rate in bit/s that the server sends or takes.
        rate_bps: u64,
        /// Longest load in seconds.
        load_s: u32,
        /// Most streams in each direction.
        streams: u32,
    },
    /// The request is granted.
    Ready,
    /// The request is refused.
    Refused {
        /// Why, and what would be granted.
        reason: String,
    },
    /// Bytes of an upload.
    Received {
        /// Payload since the load began.
        bytes: u64,
        /// Time since the load began, in microseconds of the server's clock.
        at_us: u64,
    },
    /// The load has ended.
    Stopped,
    /// What the server's machine offers.
    Offered {
        /// Congestion controls, the machine's own first where it is known.
        congestion: Vec<String>,
        /// Why the wanted one cannot be had.
        fault: Option<String>,
    },
    /// The congestion controls of the sockets that have sent data of the load, each once, as these sockets tell.
    Sending {
        /// Their names.
        congestion: Vec<String>,
    },
    /// The trains have ended: one record each, in the order of the request.
    Trained {
        /// The records.
        trains: Vec<Trained>,
    },
}

/// The state of a train at the server.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Trained {
    /// Departures of a downstream train, in ns after the first intended one.
    Sent(Vec<u64>),
    /// Arrivals of an upstream train by the server's clock, in ns; `None` for lost packets.
    Arrived(Vec<Option<u64>>),
}

/// Reads a line, with or without its line feed.
///
/// # Errors
/// The fault of the line, for the log of the other end.
pub fn read<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(line).map_err(|error| error.to_string())
}

/// A line with its line feed.
#[must_use]
pub fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("messages have no maps and no values that JSON lacks");
    line.push(b'\n');
    line
}

/// A datagram, without the zeros that fill it up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Datagram {
    /// The client asks for a cookie.
    Hello {
        /// The nonce on which the code depends.
        nonce: Hex<8>,
        /// First half of the code of session and nonce by the session's key, purpose `hello`.
        code: Hex<16>,
    },
    /// The server's proof of the address.
    Cookie {
        /// To be returned over the control connection.
        cookie: Hex<16>,
    },
    /// The client's request of an echo.
    Request {
        /// Number of the request.
        number: u64,
        /// The client's time in ns.
        sent_ns: u64,
    },
    /// The server's echo.
    Reply {
        /// Number of the request.
        number: u64,
        /// The client's time in ns.
        sent_ns: u64,
        /// When the server received the request, by its own clock in ns.
        received_ns: u64,
        /// When the server sent this.
        replied_ns: u64,
        /// The highest number that the server has received.
        highest: u64,
        /// Bit n: the server has received the request `highest - n`.
        window: u64,
    },
    /// A packet of a train.
    Train {
        /// Number of the request of trains, times [`MOST_TRAINS`], plus the index of the train.
        train: u32,
        /// Index of the packet.
        index: u32,
        /// When it was sent, by the sender's clock in ns.
        sent_ns: u64,
    },
}

/// Bytes before the part that depends on the kind: `LM`, version, kind, session.
const HEAD: usize = 12;

/// Least UDP payload of a reply, and so of a request.
pub const LEAST_ECHO: usize = HEAD + 48;

/// Least UDP payload of a packet of a train.
pub const LEAST_TRAIN: usize = HEAD + 16;

/// Largest UDP payload of a packet of a train: it fits an Ethernet frame over IPv4.
pub const LARGEST_TRAIN: u16 = 1472;

/// UDP payload of a hello.
pub const HELLO: usize = HEAD + 24;

impl Datagram {
    fn kind(&self) -> u8 {
        match self {
            Self::Hello { .. } => 1,
            Self::Cookie { .. } => 2,
            Self::Request { .. } => 3,
            Self::Reply { .. } => 4,
            Self::Train { .. } => 5,
        }
    }

    /// Reads a datagram and its session; `None` for one of another protocol, version or form.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<(Hex<8>, Self)> {
        let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
        let [b'L', b'M', VERSION, kind, session @ ..] = *head else { return None };
        let mut rest = Reader(rest);
        let datagram = match kind {
            1 => Self::Hello { nonce: Hex(rest.take()?), code: Hex(rest.take()?) },
            2 => Self::Cookie { cookie: Hex(rest.take()?) },
            3 if bytes.len() >= LEAST_ECHO => Self::Request { number: rest.u64()?, sent_ns: rest.u64()? },
            4 => Self::Reply {
                number: rest.u64()?,
                sent_ns: rest.u64()?,
                received_ns: rest.u64()?,
                replied_ns: rest.u64()?,
                highest: rest.u64()?,
                window: rest.u64()?,
            },
            5 => Self::Train { train: rest.u32()?, index: rest.u32()?, sent_ns: rest.u64()? },
            _ => return None,
        };
        Some((Hex(session), datagram))
    }

    /// Writes the datagram at the start of `buffer`, followed by zeros. False if it does not fit.
    pub fn write(&self, session: Hex<8>, buffer: &mut [u8]) -> bool {
        let mut bytes = Vec::with_capacity(LEAST_ECHO);
        bytes.extend_from_slice(&[b'L', b'M', VERSION, self.kind()]);
        bytes.extend_from_slice(&session.0);
        let mut numbers = |numbers: &[u64]| numbers.iter().for_each(|n| bytes.extend_from_slice(&n.to_be_bytes()));
        match *self {
            Self::Hello { nonce, code } => {
                bytes.extend_from_slice(&nonce.0);
                bytes.extend_from_slice(&code.0);
            }
            Self::Cookie { cookie } => bytes.extend_from_slice(&cookie.0),
            Self::Request { number, sent_ns } => numbers(&[number, sent_ns]),
            Self::Reply { number, sent_ns, received_ns, replied_ns, highest, window } => {
                numbers(&[number, sent_ns, received_ns, replied_ns, highest, window]);
            }
            Self::Train { train, index, sent_ns } => {
                bytes.extend_from_slice(&train.to_be_bytes());
                bytes.extend_from_slice(&index.to_be_bytes());
                bytes.extend_from_slice(&sent_ns.to_be_bytes());
            }
        }
        let Some((start, zeros)) = buffer.split_at_mut_checked(bytes.len()) else { return false };
        start.copy_from_slice(&bytes);
        zeros.fill(0);
        true
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }
}

#[cfg(test)]
mod tests;
