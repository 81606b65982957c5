//! The state of connections: bytes, rate, patterns in their first payload bytes, announcement by
//! FTP, and the rules that they leave open.
//!
//! Bounded: [`CONNECTIONS`] connections. Above that, each new connection replaces one of a single
//! packet, or one that has been silent for long; a replaced connection that continues is a new one.
//! Deterministic: see [`lastmile_packet::FlowTable`].
//!
//! Cost: a look-up by the number of its flow a packet, a keyed hash for a new flow, and a search of
//! the first payload packet of each direction.

use lastmile_packet::{FlowDirectory, FlowId, FlowKey, FlowTable, HashKey, Interned, Meta, Packet, TcpFlags};
use lastmile_units::{Duration, Instant};

use super::ftp::Announced;
use super::matching::Pattern;
use super::verdict::Kept;

/// The most connections that a tracker holds.
pub(super) const CONNECTIONS: u32 = 131_072;
/// Entries of the index that finds connections by the lower bits of their flow's number, without a hash of the key.
const REMEMBERED: usize = 2 * CONNECTIONS as usize;

const SECOND: Duration = Duration::from_s(1);

/// The state of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Connection {
    /// IP bytes so far, of both directions as far as they pass here.
    pub(super) bytes: u64,
    /// IP bytes of the last whole second.
    pub(super) bytes_in_last_second: u64,
    /// Patterns that its first payload bytes hold, a bit each.
    pub(super) patterns: u64,
    /// FTP announced the connection.
    pub(super) ftp_data: bool,
    /// Verdicts of the rules, by direction: from the lower address, to the lower address.
    kept: [Kept; 2],
    bytes_in_this_second: u64,
    second_began: Instant,
    /// The first payload has been searched, by direction as in `kept`.
    searched: [bool; 2],
}

/// A connection as seen by a packet of one of its directions.
#[derive(Debug)]
pub(super) struct Direction<'a> {
    pub(super) connection: &'a mut Connection,
    /// The packet goes to the lower address.
    reversed: bool,
}

impl Direction<'_> {
    /// State of the rules for this direction.
    pub(super) const fn kept(&mut self) -> &mut Kept {
        &mut self.connection.kept[self.reversed as usize]
    }
}

/// The connections that pass a classifier.
#[derive(Clone, Debug)]
pub(super) struct Tracker {
    table: FlowTable,
    /// By slot of the table.
    connections: Vec<Connection>,
    /// By flow: the last number that the table gave its connection. The number may belong to
    /// another connection since; its key shows that.
    by_flow: Vec<Option<FlowId>>,
    patterns: Vec<Pattern>,
    ftp: Option<Announced>,
}

impl Tracker {
    pub(super) fn new(hash_key: HashKey) -> Self {
        let table = FlowTable::new(CONNECTIONS, hash_key);
        Self { table, connections: Vec::new(), by_flow: Vec::new(), patterns: Vec::new(), ftp: None }
    }

    /// Adds a pattern to search for. Returns its bit in [`Connection::patterns`], or `None` if
    /// there are too many patterns.
    pub(super) fn look_for(&mut self, pattern: &Pattern) -> Option<u64> {
        let known = self.patterns.iter().position(|known| known == pattern);
        let index = known.unwrap_or_else(|| {
            self.patterns.push(pattern.clone());
            self.patterns.len() - 1
        });
        1_u64.checked_shl(u32::try_from(index).ok()?)
    }

    /// Makes the tracker read FTP control connections.
    pub(super) fn watch_ftp(&mut self) {
        self.ftp.get_or_insert_default();
    }

    /// Counts a packet, and returns the state of its connection.
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

    /// The slot of the connection of which `flow` is a direction, and whether `key` goes to the lower address.
    #[inline]
    fn slot(&mut self, now: Instant, flow: FlowId, key: &FlowKey) -> (usize, bool) {
        if let Some(id) = self.by_flow.get(index_of(flow)).copied().flatten()
            && let Some(reversed) = self.table.touch_either_way(id, key)
        {
            return (self.table.slot(id), reversed);
        }
        self.intern(now, flow, key)
    }

    /// [`Tracker::slot`] for a flow that the index does not hold.
    #[cold]
    #[inline(never)]
    fn intern(&mut self, now: Instant, flow: FlowId, key: &FlowKey) -> (usize, bool) {
        let reverse = key.reversed();
        let (canonical, reversed) = if *key <= reverse { (*key, false) } else { (reverse, true) };
        let Interned { id, new } = self.table.intern(&canonical);
        let slot = self.table.slot(id);
        if new {
            if self.connections.len() <= slot {
                self.connections.resize(slot + 1, Connection::default());
            }
            let ftp_data = self.ftp.as_mut().is_some_and(|ftp| ftp.take(now, &key.addresses));
            self.connections[slot] = Connection { second_began: now, ftp_data, ..Connection::default() };
        }
        let flow = index_of(flow);
        if self.by_flow.len() <= flow {
            self.by_flow.resize(flow + 1, None);
        }
        self.by_flow[flow] = Some(id);
        (slot, reversed)
    }

    /// Reads the packet if it belongs to an FTP control connection.
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

/// The index of a flow in [`Tracker::by_flow`].
const fn index_of(flow: FlowId) -> usize {
    flow.index() as usize % REMEMBERED
}

/// The first payload of the other end. Only simulated flows know it; it counts once the connection is established.
fn answer<'a>(packet: &'a impl Packet, flows: &'a dyn FlowDirectory) -> &'a [u8] {
    if packet.meta().flags.contains(TcpFlags::SYN) { &[] } else { packet.answer(flows) }
}

impl Connection {
    /// Searches the first payload of both directions for the patterns.
    #[inline]
    fn search(&mut self, packet: &impl Packet, reversed: bool, patterns: &[Pattern], flows: &dyn FlowDirectory) {
        let (from, to) = (usize::from(reversed), usize::from(!reversed));
        if !self.searched[from] {
            self.look_at(packet.payload(flows), from, patterns);
        }
        if !self.searched[to] {
            self.look_at(answer(packet, flows), to, patterns);
        }
    }

    /// Searches the first payload of a direction, unless it is still empty.
    #[inline]
    fn look_at(&mut self, text: &[u8], direction: usize, patterns: &[Pattern]) {
        if text.is_empty() {
            return;
        }
        self.searched[direction] = true;
        self.kept.iter_mut().for_each(Kept::forget_look);
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
