//! What is remembered of connections: bytes, rate, what their first payload bytes held, whether FTP announced them.
//!
//! Bounded: [`CONNECTIONS`] connections. Where there are more, one of a single packet or one that has been silent for long is forgotten for
//! each that is new; if it goes on, it is a new connection. Deterministic: see [`lastmile_packet::FlowTable`].
//!
//! Cost: a look-up by the number of its flow a packet, a keyed hash for one that is new; a search of the first payload packet of each direction.

use lastmile_packet::{FlowDirectory, FlowId, FlowKey, FlowTable, HashKey, Interned, Meta, Packet, TcpFlags};
use lastmile_units::{Duration, Instant};

use super::ftp::Announced;
use super::matching::Pattern;

/// Connections that are remembered at most.
pub(super) const CONNECTIONS: u32 = 131_072;
/// Flows whose connection is found without its key, by the lower bits of their number: of flows of a table those of its slots.
const REMEMBERED: usize = 2 * CONNECTIONS as usize;

const SECOND: Duration = Duration::from_s(1);

/// What is remembered of a connection, in one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct Connection {
    /// IP bytes so far, both directions as far as they pass here.
    pub(super) bytes: u64,
    /// Bytes of the last whole second.
    pub(super) bytes_in_last_second: u64,
    /// Which patterns its first payload bytes hold, as bits.
    pub(super) patterns: u64,
    /// FTP announced it.
    pub(super) ftp_data: bool,
    /// Where its ports stand among those that rules name, that of the lower address first; `None`: nobody has looked.
    ports: Option<[u16; 2]>,
    bytes_in_this_second: u64,
    second_began: Instant,
    /// The first payload was looked at: of the direction from the lower address, of the other.
    looked: [bool; 2],
}

/// A connection as a packet of one of its directions sees it.
#[derive(Debug)]
pub(super) struct Direction<'a> {
    pub(super) connection: &'a mut Connection,
    /// The packet does not come from the lower address.
    reversed: bool,
}

impl Direction<'_> {
    /// What `find` makes of source and destination port, remembered with the connection.
    #[inline]
    pub(super) fn ports(&mut self, find: impl FnOnce() -> [u16; 2]) -> [u16; 2] {
        let reversed = self.reversed;
        let turn = |[one, other]: [u16; 2]| if reversed { [other, one] } else { [one, other] };
        turn(*self.connection.ports.get_or_insert_with(|| turn(find())))
    }
}

/// The connections that pass a classifier.
#[derive(Clone, Debug)]
pub(super) struct Tracker {
    table: FlowTable,
    /// By slot of the table.
    connections: Vec<Connection>,
    /// By flow: the number that the table gave its connection last. It may be that of another by now, as its key says.
    by_flow: Vec<FlowId>,
    patterns: Vec<Pattern>,
    ftp: Option<Announced>,
}

impl Tracker {
    pub(super) fn new(hash_key: HashKey) -> Self {
        let table = FlowTable::new(CONNECTIONS, hash_key);
        Self { table, connections: Vec::new(), by_flow: Vec::new(), patterns: Vec::new(), ftp: None }
    }

    /// Looks for this pattern from now on; returns the bit that says that it was found. `None`: there are too many.
    pub(super) fn look_for(&mut self, pattern: &Pattern) -> Option<u64> {
        let known = self.patterns.iter().position(|known| known == pattern);
        let index = known.unwrap_or_else(|| {
            self.patterns.push(pattern.clone());
            self.patterns.len() - 1
        });
        1_u64.checked_shl(u32::try_from(index).ok()?)
    }

    /// Reads FTP control connections from now on.
    pub(super) fn watch_ftp(&mut self) {
        self.ftp.get_or_insert_default();
    }

    /// Takes note of a packet; returns what is known of its connection then.
    #[inline]
    pub(super) fn observe(
        &mut self,
        now: Instant,
        packet: &impl Packet,
        key: &FlowKey,
        flows: &dyn FlowDirectory,
    ) -> Direction<'_> {
        let (slot, reversed) = self.slot(now, packet.meta().flow, key);
        self.listen(now, packet, key, flows);
        let connection = &mut self.connections[slot];
        connection.count(now, packet.meta());
        connection.search(packet, reversed, &self.patterns, flows);
        Direction { connection, reversed }
    }

    /// The slot of a connection, of which `flow` is a direction with these addresses, and whether that is the one to the lower
    /// address.
    #[inline]
    fn slot(&mut self, now: Instant, flow: FlowId, key: &FlowKey) -> (usize, bool) {
        if let Some(id) = self.by_flow.get(remembered(flow))
            && let Some(reversed) = self.table.touch_either_way(*id, key)
        {
            return (self.table.slot(*id), reversed);
        }
        self.intern(now, flow, key)
    }

    /// The same for a flow of which nothing is remembered.
    #[cold]
    #[inline(never)]
    fn intern(&mut self, now: Instant, flow: FlowId, key: &FlowKey) -> (usize, bool) {
        let reverse = key.reversed();
        let (canonical, reversed) = if *key <= reverse { (*key, false) } else { (reverse, true) };
        let Interned { id, new } = self.table.intern(&canonical);
        let place = self.table.slot(id);
        if new {
            if self.connections.len() <= place {
                self.connections.resize(place + 1, Connection::default());
            }
            let ftp_data = self.ftp.as_mut().is_some_and(|ftp| ftp.take(now, &key.addresses));
            self.connections[place] = Connection { second_began: now, ftp_data, ..Connection::default() };
        }
        let flow = remembered(flow);
        if self.by_flow.len() <= flow {
            self.by_flow.resize(flow + 1, FlowId::NONE);
        }
        self.by_flow[flow] = id;
        (place, reversed)
    }

    /// Reads a packet of an FTP control connection, if this is one.
    #[inline]
    fn listen(&mut self, now: Instant, packet: &impl Packet, key: &FlowKey, flows: &dyn FlowDirectory) {
        if let Some(ftp) = &mut self.ftp
            && Announced::listens_to(&key.addresses)
        {
            ftp.hear(now, &key.addresses, packet.payload(flows));
            ftp.hear(now, &key.addresses.reversed(), answer(packet, flows));
        }
    }
}

/// Where the number of a flow's connection stands.
const fn remembered(flow: FlowId) -> usize {
    flow.index() as usize % REMEMBERED
}

/// What the other end began with: known of simulated flows only, and true once the connection stands.
fn answer<'a>(packet: &'a impl Packet, flows: &'a dyn FlowDirectory) -> &'a [u8] {
    if packet.meta().flags.contains(TcpFlags::SYN) { &[] } else { packet.answer(flows) }
}

impl Connection {
    /// Looks for the patterns in the first payload of either direction.
    #[inline]
    fn search(&mut self, packet: &impl Packet, reversed: bool, patterns: &[Pattern], flows: &dyn FlowDirectory) {
        let (from, to) = (usize::from(reversed), usize::from(!reversed));
        if !self.looked[from] {
            self.look_at(packet.payload(flows), from, patterns);
        }
        if !self.looked[to] {
            self.look_at(answer(packet, flows), to, patterns);
        }
    }

    /// Looks for the patterns in what a direction says first, unless this is nothing yet.
    #[inline]
    fn look_at(&mut self, text: &[u8], direction: usize, patterns: &[Pattern]) {
        if text.is_empty() {
            return;
        }
        self.looked[direction] = true;
        for (index, pattern) in patterns.iter().enumerate() {
            if pattern.is_in(text) {
                self.patterns |= 1 << index.min(63);
            }
        }
    }

    #[inline]
    fn count(&mut self, now: Instant, meta: &Meta) {
        let bytes = u64::from(meta.ip_len);
        let elapsed = now.since(self.second_began);
        if elapsed >= SECOND {
            let whole = elapsed / SECOND;
            self.bytes_in_last_second = if whole == 1 { self.bytes_in_this_second } else { 0 };
            self.bytes_in_this_second = 0;
            self.second_began += SECOND * whole;
        }
        self.bytes += bytes;
        self.bytes_in_this_second += bytes;
    }
}
