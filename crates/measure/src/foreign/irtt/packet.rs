//! irtt's packets, without I/O.
//!
//! Source: irtt 0.9, `packet.go` and `params.go` (protocol version 1); the protocol has no other specification. Numbers
//! are little-endian. A packet is magic and flags, an HMAC if there is a key, and a body: parameters in an open
//! request; a token and parameters in its reply; a token, a sequence number, statistics and time stamps in an echo
//! and its reply.

use hmac::{Hmac, Mac};
use md5::Md5;

const MAGIC: [u8; 3] = [0x14, 0xa7, 0x5b];
const HEAD_LEN: usize = 4;
const HMAC_LEN: usize = 16;
const PROTOCOL_VERSION: i64 = 1;

/// Flags of a packet.
pub(super) const OPEN: u8 = 1;
pub(super) const REPLY: u8 = 2;
pub(super) const CLOSE: u8 = 4;
const WITH_HMAC: u8 = 8;

/// Values of [`Parameters::stamp_at`].
const AT_SEND: i64 = 1;
const AT_RECEIVE: i64 = 2;
const AT_MIDPOINT: i64 = 4;
/// Values of [`Parameters::clock`].
const WALL: i64 = 1;
const MONOTONIC: i64 = 2;
/// Values of [`Parameters::received_stats`].
const COUNT: i64 = 1;
const WINDOW: i64 = 2;

/// A packet with its head, its HMAC and this body.
pub(super) fn seal(flags: u8, body: &[u8], key: Option<&[u8]>) -> Vec<u8> {
    let with = if key.is_some() { WITH_HMAC } else { 0 };
    let mut packet = [&MAGIC[..], &[flags | with]].concat();
    if key.is_some() {
        packet.extend([0; HMAC_LEN]);
    }
    packet.extend(body);
    if let Some(key) = key {
        let hash = keyed(key).chain_update(&packet).finalize().into_bytes();
        packet[HEAD_LEN..HEAD_LEN + HMAC_LEN].copy_from_slice(&hash);
    }
    packet
}

fn keyed(key: &[u8]) -> Hmac<Md5> {
    Hmac::new_from_slice(key).expect("an HMAC takes keys of any length")
}

/// Flags and body of a packet of the server; `None` for any other, and for one whose HMAC is missing, unexpected or
/// wrong.
pub(super) fn unseal<'a>(packet: &'a [u8], key: Option<&[u8]>) -> Option<(u8, &'a [u8])> {
    let (head, rest) = packet.split_at_checked(HEAD_LEN)?;
    let flags = head[3];
    if head[..3] != MAGIC || flags > OPEN | REPLY | CLOSE | WITH_HMAC || flags & REPLY == 0 {
        return None;
    }
    let Some(key) = key else { return (flags & WITH_HMAC == 0).then_some((flags, rest)) };
    let (hash, body) = rest.split_at_checked(HMAC_LEN)?;
    let computed = keyed(key).chain_update(head).chain_update([0; HMAC_LEN]).chain_update(body);
    (flags & WITH_HMAC != 0 && computed.verify_slice(hash).is_ok()).then_some((flags, body))
}

/// Parameters of a session. The server returns those that it allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Parameters {
    pub(super) version: i64,
    pub(super) duration_ns: i64,
    pub(super) interval_ns: i64,
    pub(super) received_stats: i64,
    pub(super) stamp_at: i64,
    pub(super) clock: i64,
    /// Traffic class, the code point in its upper six bits.
    pub(super) traffic_class: i64,
}

impl Parameters {
    /// Both time stamps of the monotonic clock, and what the server has received.
    pub(super) fn wanted(duration_ns: i64, interval_ns: i64, code_point: u8) -> Self {
        Self {
            version: PROTOCOL_VERSION,
            duration_ns,
            interval_ns,
            received_stats: COUNT | WINDOW,
            stamp_at: AT_SEND | AT_RECEIVE,
            clock: MONOTONIC,
            traffic_class: i64::from(code_point) << 2,
        }
    }

    fn numbered(self) -> [(u64, i64); 7] {
        [
            (1, self.version),
            (2, self.duration_ns),
            (3, self.interval_ns),
            (5, self.received_stats),
            (6, self.stamp_at),
            (7, self.clock),
            (8, self.traffic_class),
        ]
    }

    /// The body of an open request.
    pub(super) fn write(self) -> Vec<u8> {
        let mut body = Vec::new();
        for (number, value) in self.numbered().into_iter().filter(|(_, value)| *value != 0) {
            put_varint(&mut body, number);
            // Signed numbers alternate: 0, -1, 1, -2.
            put_varint(&mut body, (value << 1 ^ value >> 63).cast_unsigned());
        }
        body
    }

    /// Reads the parameters of an open reply.
    ///
    /// # Errors
    /// In words: cut short, or a combination that the client has not asked for.
    pub(super) fn read(mut body: &[u8]) -> Result<Self, String> {
        let mut read = Self::default();
        while !body.is_empty() {
            let short = || "its parameters are cut short".to_owned();
            let number = take_varint(&mut body).ok_or_else(short)?;
            let raw = take_varint(&mut body).ok_or_else(short)?;
            let value = (raw >> 1).cast_signed() ^ -(raw & 1).cast_signed();
            match number {
                1 => read.version = value,
                2 => read.duration_ns = value,
                3 => read.interval_ns = value,
                5 => read.received_stats = value,
                6 => read.stamp_at = value,
                7 => read.clock = value,
                8 => read.traffic_class = value,
                // The server's fill is the only text; the number before it is its length.
                9 => body = usize::try_from(raw).ok().and_then(|len| body.get(len..)).ok_or_else(short)?,
                _ => {}
            }
        }
        read.check()?;
        Ok(read)
    }

    fn check(self) -> Result<(), String> {
        let known = |value: i64, allowed: &[i64], what: &str| {
            let text = || format!("answers with {what} {value}; {allowed:?} are possible");
            if allowed.contains(&value) { Ok(()) } else { Err(text()) }
        };
        known(self.version, &[PROTOCOL_VERSION], "protocol version")?;
        known(self.received_stats, &[0, COUNT, WINDOW, COUNT | WINDOW], "statistics")?;
        known(self.stamp_at, &[0, AT_SEND, AT_RECEIVE, AT_SEND | AT_RECEIVE, AT_MIDPOINT], "time stamps")?;
        known(self.clock, &[0, WALL, MONOTONIC, WALL | MONOTONIC], "clock")
    }

    /// Lengths of the fields behind token and sequence number, in their order, with what each is.
    fn fields(self) -> Vec<(usize, Field)> {
        let mut fields = Vec::new();
        let mut add = |is_there: bool, len: usize, field: Field| {
            if is_there {
                fields.push((len, field));
            }
        };
        add(self.received_stats & COUNT != 0, 4, Field::Other);
        add(self.received_stats & WINDOW != 0, 8, Field::Window);
        for (at, field) in [(AT_RECEIVE, Field::Received), (AT_MIDPOINT, Field::Midpoint), (AT_SEND, Field::Sent)] {
            add(self.stamp_at & at != 0 && self.clock & WALL != 0, 8, Field::Other);
            add(self.stamp_at & at != 0 && self.clock & MONOTONIC != 0, 8, field);
        }
        fields
    }
}

#[derive(Clone, Copy)]
enum Field {
    Window,
    Received,
    Midpoint,
    Sent,
    Other,
}

fn put_varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    to.push(value.to_le_bytes()[0]);
}

/// A number of at most 64 bits, seven in each byte, and what is behind it.
fn take_varint(from: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            return None;
        }
        value |= part << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Token and parameters of an open reply.
///
/// # Errors
/// In words: see [`Parameters::read`].
pub(super) fn read_opened(body: &[u8]) -> Result<(u64, Parameters), String> {
    let (token, rest) = body.split_first_chunk().ok_or("its answer is cut short")?;
    Ok((u64::from_le_bytes(*token), Parameters::read(rest)?))
}

/// The body of an echo request: with the fields of its reply, all zero.
pub(super) fn echo(token: u64, number: u32, parameters: Parameters) -> Vec<u8> {
    let mut body = [&token.to_le_bytes()[..], &number.to_le_bytes()].concat();
    let len: usize = parameters.fields().iter().map(|(len, _)| len).sum();
    body.resize(body.len() + len, 0);
    body
}

/// The reply to an echo request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Reply {
    pub(super) token: u64,
    pub(super) number: u32,
    /// A bit for each request that the server has received: this one, the one in front, and so on. `None` where the
    /// server does not know.
    pub(super) window: Option<u64>,
    /// The server's clock when the request came.
    pub(super) received_ns: Option<i64>,
    /// The server's clock when the reply left.
    pub(super) sent_ns: Option<i64>,
}

/// Reads the body of a reply; `None` if it is cut short.
pub(super) fn read_reply(body: &[u8], parameters: Parameters) -> Option<Reply> {
    let (token, rest) = body.split_first_chunk()?;
    let (number, mut rest) = rest.split_first_chunk()?;
    let mut reply =
        Reply { token: u64::from_le_bytes(*token), number: u32::from_le_bytes(*number), ..Reply::default() };
    for (len, field) in parameters.fields() {
        let (bytes, behind) = rest.split_at_checked(len)?;
        rest = behind;
        let Ok(bytes) = bytes.try_into() else { continue };
        let stamp = Some(i64::from_le_bytes(bytes));
        match field {
            Field::Window => reply.window = Some(u64::from_le_bytes(bytes)).filter(|window| *window != 0),
            Field::Received => reply.received_ns = stamp,
            Field::Sent => reply.sent_ns = stamp,
            Field::Midpoint => (reply.received_ns, reply.sent_ns) = (stamp, stamp),
            Field::Other => {}
        }
    }
    Some(reply)
}

#[cfg(test)]
mod tests;
