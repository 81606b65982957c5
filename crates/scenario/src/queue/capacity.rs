//! The capacity of a queue: packets, bytes, cells, or a time at the rate that empties the queue.

use core::fmt::Display;

use lastmile_linklayer::LinkLayer;
use lastmile_units::{BitRate, ByteCount, Duration, Limit, PacketCount, WireBytes};

use crate::document::Value;
use crate::reader::Table;
use crate::value::FromNode;

pub(crate) const ABOUT: &str = "Capacity: packets, IP bytes, cells (on a line that has cells), or a time such as \
                                \"100 ms\": what departs in \
     that time at the rate of the line, shaper or class ceiling that empties the queue, and at least one packet of \
                                1500 bytes.";

/// The largest packet of most lines, which every capacity in time holds.
const PACKET: ByteCount = ByteCount::new(1500);

/// What a queue holds whose limit is left out: a number of packets, or where that is more what departs in a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer {
    pub(crate) packets: u32,
    pub(crate) time: Duration,
}

impl Buffer {
    /// That of a queue within another one.
    const WITHIN: Self = Self { packets: 100, time: Duration::ZERO };
}

/// Where a queue stands: the cost of a packet on the wire, and the rate that empties the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    pub(crate) layer: LinkLayer,
    /// `None`: transmission takes no time.
    pub(crate) rate: Option<BitRate>,
    pub(super) buffer: Buffer,
}

impl Wire {
    /// A place for the queues of a policy.
    pub(crate) fn new(layer: LinkLayer, rate: Option<BitRate>) -> Self {
        Self { layer, rate, buffer: Buffer::WITHIN }
    }

    /// This wire with the buffer of a line.
    pub(crate) fn with_buffer(self, packets: u32, time: Duration) -> Self {
        Self { buffer: Buffer { packets, time }, ..self }
    }

    /// This wire for a queue within another one.
    pub(crate) fn within(self) -> Self {
        Self { buffer: Buffer::WITHIN, ..self }
    }

    /// The limit of a FIFO that leaves it out.
    pub(crate) fn unsaid_limit(&self) -> Limit {
        let Buffer { packets, time } = self.buffer;
        let full = u64::from(packets).saturating_mul(self.layer.on_wire(PACKET).as_u64());
        match self.bytes_in(time) {
            Some(bytes) if bytes.as_u64() > full => Limit::Wire(bytes),
            _ => Limit::Packets(PacketCount::new(packets.into())),
        }
    }

    /// This wire behind a shaper of `rate`; the slower of both empties the queue.
    pub(crate) fn shaped_to(self, rate: Option<BitRate>) -> Self {
        Self { rate: rate.into_iter().chain(self.rate).min(), ..self }
    }

    /// Bytes that depart in `span`, and at least one packet. `None` without a rate.
    pub(crate) fn bytes_in(&self, span: Duration) -> Option<WireBytes> {
        let bits = u128::from(self.rate?.as_bps()) * u128::from(span.as_ps()) / 1_000_000_000_000;
        let bytes = u64::try_from(bits / 8).unwrap_or(u64::MAX);
        Some(WireBytes::new(bytes).max(self.layer.on_wire(PACKET)))
    }
}

/// A capacity as a file gives it.
#[derive(Clone, Copy, Debug)]
enum Capacity {
    Counted(Limit),
    Time(Duration),
}

impl FromNode for Capacity {
    fn from_value(value: &Value) -> Result<Self, String> {
        if let Value::String(text) = value
            && let Ok(span) = text.parse::<Duration>()
        {
            return if span.is_zero() { Err(format!("a limit of {span} holds nothing")) } else { Ok(Self::Time(span)) };
        }
        Limit::from_value(value).map(Self::Counted)
    }

    fn from_default(text: &'static str) -> Self {
        Self::from_value(&Value::String(text.into())).expect("the schema's defaults parse")
    }
}

/// A number of packets, or the time in which they depart.
#[derive(Clone, Copy, Debug)]
enum Packets {
    Counted(PacketCount),
    Time(Duration),
}

impl FromNode for Packets {
    fn from_value(value: &Value) -> Result<Self, String> {
        match Capacity::from_value(value) {
            Ok(Capacity::Time(span)) => Ok(Self::Time(span)),
            _ => PacketCount::from_value(value).map(Self::Counted),
        }
    }

    fn from_default(text: &'static str) -> Self {
        Self::from_value(&Value::String(text.into())).expect("the schema's defaults parse")
    }
}

/// The capacity at `key`, or its default. `None` if it is wrong, which is then in the report.
pub(crate) fn limit(table: &Table<'_>, key: &'static str, wire: &Wire) -> Option<Limit> {
    match table.get(key)? {
        Capacity::Counted(limit) => {
            let packet = wire.layer.mtu().map_or(PACKET, |mtu| PACKET.min(ByteCount::new(mtu.get().into())));
            let is_full = match limit {
                Limit::Packets(_) => false,
                Limit::Bytes(bytes) => bytes < packet,
                Limit::Wire(bytes) => bytes < wire.layer.on_wire(packet),
                Limit::Cells(cells) => wire.layer.cells(packet).is_some_and(|needed| cells < needed),
            };
            if is_full {
                warn_of_full_packets(table, key, limit, packet);
            }
            Some(limit)
        }
        Capacity::Time(span) => bytes_in(table, key, wire, span).map(Limit::Wire),
    }
}

/// The IP bytes that may wait at `key`, or the default, where packets have up to `largest`.
pub(crate) fn memory(table: &Table<'_>, key: &'static str, largest: ByteCount) -> Option<ByteCount> {
    let memory = table.get(key)?;
    if memory < largest {
        warn_of_full_packets(table, key, memory, largest);
    }
    Some(memory)
}

fn warn_of_full_packets(table: &Table<'_>, key: &'static str, capacity: impl Display, packet: ByteCount) {
    let message = format!("{}: with {capacity} no packet of {packet} passes", table.path(key));
    table.warning(key, message, None);
}

/// The number of packets at `key`, or its default; a time is as many packets of `largest` as depart in it, at
/// least one. `None` if it is wrong, which is then in the report.
pub(crate) fn packets(table: &Table<'_>, key: &'static str, wire: &Wire, largest: ByteCount) -> Option<PacketCount> {
    match table.get(key)? {
        Packets::Counted(packets) => Some(packets),
        Packets::Time(span) => {
            let bytes = bytes_in(table, key, wire, span)?;
            let packets = bytes.as_u64() / wire.layer.on_wire(largest).as_u64().max(1);
            Some(PacketCount::new(packets.max(1)))
        }
    }
}

/// The bytes that depart in `span`, the value at `key`.
fn bytes_in(table: &Table<'_>, key: &'static str, wire: &Wire, span: Duration) -> Option<WireBytes> {
    let bytes = wire.bytes_in(span);
    if bytes.is_none() {
        let message = format!("{}: {span} of a link without a rate has no size", table.path(key));
        table.error(key, message, Some("give the link a rate, or the limit in packets or bytes".into()));
    }
    bytes
}
