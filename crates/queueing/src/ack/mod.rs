//! ACK regulation: fewer acknowledgements for a direction that cannot carry them all.
//!
//! Rules common to all regulators here:
//!
//! - Only a *pure ACK* is ever dropped or rewritten ([`lastmile_packet::PureAck`]: no payload, no
//!   flag but ACK and ECN feedback, no unknown option). All other packets pass. So does a pure ACK on the exception
//!   list, and one with a congestion mark in its IP header (CE, RFC 3168), which would be lost with
//!   it.
//! - A *damaged* segment (without [`lastmile_packet::Packet::segment`]) passes unchanged and is not
//!   read, since its receiver drops it. No ACK gives way to it, takes values from it or is kept
//!   apart by it. The checksum of a segment with payload is computed only by a regulator that would
//!   learn something from it.
//! - The sender sees ACKs that it could have seen from TCP with some ACKs lost and none reordered.
//! - A *duplicate* ACK has the number and the window of the newest ACK of its flow (RFC 5681,
//!   section 2), or its number and SACK blocks (RFC 6675, section 2: with SACK, the window does not
//!   matter). An ACK with its number, another window and no SACK blocks is a *window update*, and
//!   counts as a newer ACK. Duplicates are kept, since fast retransmit counts three of them (RFC 5681, section 3.2).
//!   Behind three queued ones a duplicate with SACK blocks counts as a newer ACK, too: a sender needs the blocks
//!   (RFC 6675), and the last one has them all.
//! - No change of ECE, CWR or AE is lost (RFC 3168, section 6.1; RFC 9768, section 3.3.3): an ACK gives way only to
//!   one with equal bits. Where any of them is set, the bits may be the counter of Accurate ECN, which wraps after
//!   eight marked packets: an ACK then stands for at most three, since most receivers acknowledge
//!   every second segment. One with byte counters of Accurate ECN gives way only to one that has them, too.
//! - No SACK information is lost: an ACK gives way to a newer one only if that covers each of its
//!   blocks, and never if its first block is a D-SACK (RFC 2883), which is sent only once. CAKE has
//!   this rule too (`ack-filter` of tc-cake(8)). Nor does an ACK with timestamps give way to one
//!   without, or with an older one.
//! - An ACK that carries a list for a regenerator ([`lastmile_packet::AckList`]) passes: dropping
//!   it would lose the list.
//!
//! [`cake`] alone has rules of its own, those of Linux, for comparison.
//!
//! The first queued ACK of a flow is never recognised as a duplicate, since flows without queued
//! packets have no state.
//!
//! | file | regulator |
//! | --- | --- |
//! | `sad` | Smart ACK Dropper (Phanse 2000): a newer ACK takes the place of the queued one |
//! | `regenerator` | ACK Regenerator: restores behind the line the ACKs that were dropped before it |
//! | `filter` | drops the queued ACKs of a flow when a newer one arrives |
//! | `collapsing` | drops the queued ACKs of a flow when a newer one departs |
//! | `cake` | the ACK filter of CAKE, by its own rules |
//! | `pacing` | delays ACKs to a rate |
//! | `clamp` | lowers the window that ACKs advertise |
//! | `handshakes` | records what SYNs and SYN-ACKs agree, for `clamp` |
//! | `flow_map`, `recent_flows`, `flow_fifo`, `linked_fifo` | containers of the state of flows |

pub mod cake;
pub mod clamp;
pub mod collapsing;
pub mod filter;
mod flow_fifo;
pub(crate) mod flow_map;
pub mod handshakes;
pub(crate) mod linked_fifo;
pub mod pacing;
mod recent_flows;
pub mod regenerator;
pub mod sad;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{AckFields, Meta, Packet, Protocol, PureAck, SackBlock, Segment, SeqNumber};
use lastmile_units::Instant;

use crate::catalogue::{Built, Mechanism};
use crate::classify::{Condition, Match, Matcher as _};
use crate::discipline::Counter;
use crate::fifo::{Tally, check_limit};
use crate::spec::{Problem, Site};
use crate::{Environment, Limit, Node, Overflow};

pub use cake::CakeAckFilter;
pub use clamp::WindowClamp;
pub use collapsing::AckCollapsing;
pub use filter::{AckFilter, Fraction};
pub use handshakes::{Handshakes, Witness};
pub use pacing::AckPacing;
pub use regenerator::AckRegenerator;
pub use sad::SmartAckDropper;

/// The parameters of a queue with an ACK filter of these rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filtered<R> {
    /// The capacity of the queue.
    pub limit: Limit,
    /// The packet that is dropped when the queue is full.
    pub drop: Overflow,
    /// The rules of the filter.
    pub rules: R,
}

/// The rules of an ACK filter.
trait Filter: Sized {
    /// Packets that are never removed and remove nothing.
    fn exempt(&self) -> &Match;

    /// An empty queue with these rules. `None` if the limit is in cells and the line has none.
    fn queue<P: Packet + Send + 'static>(&self, of: &Filtered<Self>, environment: &Environment) -> Option<Node<P>>;
}

impl<R: Filter> Mechanism for Filtered<R> {
    fn check(&self, link_layer: &LinkLayer) -> Result<(), Problem> {
        check_limit(self.limit, link_layer)?;
        Ok(self.rules.exempt().check()?)
    }

    fn thins_acks(&self) -> bool {
        true
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn build<P: Packet + Send + 'static>(&self, site: &mut Site<'_>) -> Built<P> {
        self.rules.queue(self, site.environment).ok_or_else(|| site.refuse(Problem::NoCells))
    }
}

/// Relation of an ACK to the newest acknowledgement of its flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AckKind {
    /// It has a higher number.
    Advance,
    /// It has an equal number and another window.
    WindowUpdate,
    /// It repeats the newest acknowledgement.
    Duplicate,
    /// It has a lower number: it was reordered.
    Old,
}

/// The newest acknowledgement of a flow with queued packets.
#[derive(Clone, Copy, Debug)]
struct Newest {
    ack: SeqNumber,
    window: u16,
    /// How often the number was repeated.
    duplicates: u32,
}

impl Newest {
    fn of(segment: Segment<'_>) -> Self {
        Self { ack: segment.ack, window: segment.window, duplicates: 0 }
    }

    fn kind_of(self, meta: Segment<'_>) -> AckKind {
        if meta.ack.after(self.ack) {
            AckKind::Advance
        } else if meta.ack.before(self.ack) {
            AckKind::Old
        } else if meta.window != self.window && meta.options().sack_count() == 0 {
            AckKind::WindowUpdate
        } else {
            AckKind::Duplicate
        }
    }

    /// Updates with a segment of the flow that has ACK, pure or not.
    fn note(&mut self, segment: Segment<'_>) {
        *self = self.noted(segment);
    }

    fn noted(self, segment: Segment<'_>) -> Self {
        let same = |duplicates| Self { duplicates, ..Self::of(segment) };
        match self.kind_of(segment) {
            AckKind::Advance => Self::of(segment),
            // RFC 5681, section 2: data is no duplicate ACK.
            AckKind::Duplicate if segment.payload_len() == 0 => same(self.duplicates.saturating_add(1)),
            AckKind::Duplicate | AckKind::WindowUpdate => same(self.duplicates),
            AckKind::Old => self,
        }
    }

    /// True if a duplicate that follows is needed only for its SACK blocks (RFC 6675): those before it were enough for
    /// fast retransmit, also of a sender that counts them.
    fn is_spare(self, duplicate: PureAck<'_>) -> bool {
        self.duplicates >= DUPLICATE_THRESHOLD && duplicate.options().sack_count() > 0
    }
}

/// The duplicates that begin fast retransmit (RFC 5681, section 3.2).
const DUPLICATE_THRESHOLD: u32 = 3;

/// The most acknowledgements for which one may stand that reports marks by a counter of three bits: six segments, where
/// every second one is acknowledged.
const MOST_COUNTED: u32 = 3;

/// True when `ack` may stand for `count` acknowledgements, itself included: the sender can tell how often the counter
/// of marks has wrapped.
fn may_stand_for(ack: &Meta, count: u32) -> bool {
    ack.flags.ace() == 0 || count <= MOST_COUNTED
}

/// True when the sender loses no information if it receives `newer` and never `older`.
fn gives_way(older: PureAck<'_>, newer: PureAck<'_>) -> bool {
    debug_assert!(older.ack.at_or_before(newer.ack), "an ACK that was overtaken removes none");
    // A keep-alive probe has the sequence number before the next one (RFC 9293, section 3.8.4): it
    // requires an answer.
    let probe = older.seq.add(1) == newer.seq;
    let same_marks = older.flags == newer.flags;
    older.seq.at_or_before(newer.seq) && !probe && same_marks && may_replace(&older.fields(), &newer.fields())
}

/// True when `new` alone gives a sender all information of `old`.
fn may_replace(old: &AckFields, new: &AckFields) -> bool {
    // RFC 7323: with timestamps agreed on, a segment without them is dropped (section 3.2), and so
    // is one whose value is older than that of an earlier segment (section 5.3).
    let is_accepted = match (old.options.timestamps(), new.options.timestamps()) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some((old, _)), Some((new, _))) => SeqNumber::new(old).at_or_before(SeqNumber::new(new)),
    };
    // RFC 9768, section 3.2.3: the last report of each counter must arrive.
    let keeps_counters = match (old.options.accecn_layout(), new.options.accecn_layout()) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(old), Some(new)) => new.covers(old),
    };
    is_accepted && keeps_counters && covers_sack(old, new)
}

/// True when `new` alone gives a sender every SACK block of `old` that still matters.
fn covers_sack(old: &AckFields, new: &AckFields) -> bool {
    if old.options.sack_count() == 0 {
        return true;
    }
    if is_dsack(old) {
        return false;
    }
    old.options.sack_blocks().all(|block| {
        block.right.at_or_before(new.ack)
            || new.options.sack_blocks().any(|wider| contains(wider, block) || continues(new.ack, wider, block))
    })
}

fn contains(wider: SackBlock, block: SackBlock) -> bool {
    wider.left.at_or_before(block.left) && wider.right.at_or_after(block.right)
}

/// True when the cumulative number and `wider`, which begins at or before it, cover all bytes up to
/// the end of `block`.
fn continues(ack: SeqNumber, wider: SackBlock, block: SackBlock) -> bool {
    wider.left.at_or_before(ack) && wider.right.at_or_after(block.right)
}

/// RFC 2883, section 4: the first block reports a duplicate segment if it lies below the cumulative
/// acknowledgement or inside the second block.
fn is_dsack(fields: &AckFields) -> bool {
    let mut blocks = fields.options.sack_blocks();
    match (blocks.next(), blocks.next()) {
        (Some(first), _) if first.left.before(fields.ack) => true,
        (Some(first), Some(second)) => contains(second, first),
        _ => false,
    }
}

/// Packets that passed unregulated, by reason.
#[derive(Clone, Debug, Default)]
struct Passed {
    not_tcp: u64,
    data: u64,
    flags: u64,
    unknown_options: u64,
    damaged: u64,
    exempt: u64,
    congestion_marked: u64,
    listed: u64,
    old: u64,
}

impl Passed {
    /// The pure ACK of this packet, if it may be regulated; else counts the reason.
    fn may_regulate<'a>(
        &mut self,
        now: Instant,
        packet: &'a impl Packet,
        exempt: &mut Condition,
    ) -> Option<PureAck<'a>> {
        let ack = self.may_read(now, packet, exempt)?;
        let listed = ack.options().has_list();
        self.listed += u64::from(listed);
        if listed { None } else { Some(ack) }
    }

    /// The pure ACK of this packet, if it may be regulated or carries a list; else counts the
    /// reason.
    fn may_read<'a>(&mut self, now: Instant, packet: &'a impl Packet, exempt: &mut Condition) -> Option<PureAck<'a>> {
        let meta = packet.meta();
        let count = if meta.is_damaged() {
            &mut self.damaged
        } else if let Some(ack) = meta.pure_ack() {
            if meta.ecn() == Meta::CE {
                &mut self.congestion_marked
            } else if exempt.matches(now, packet) {
                &mut self.exempt
            } else {
                return Some(ack);
            }
        } else if meta.protocol != Protocol::Tcp {
            &mut self.not_tcp
        } else if meta.payload_len() > 0 {
            &mut self.data
        } else if meta.options().has_unknown() {
            &mut self.unknown_options
        } else {
            &mut self.flags
        };
        *count += 1;
        None
    }

    fn show(&self, kind: &'static str, visit: &mut dyn FnMut(Counter<'_>)) {
        let counts = [
            ("passed_not_tcp", self.not_tcp),
            ("passed_data", self.data),
            ("passed_flags", self.flags),
            ("passed_unknown_options", self.unknown_options),
            ("passed_damaged", self.damaged),
            ("passed_exempt", self.exempt),
            ("passed_congestion_marked", self.congestion_marked),
            ("passed_listed", self.listed),
            ("passed_old", self.old),
        ];
        Counter::all(kind, counts, visit);
    }
}

/// Counters of a queue whose ACKs give way to newer ones.
#[derive(Clone, Debug, Default)]
struct Regulated {
    tally: Tally,
    seen: u64,
    dropped: u64,
    duplicates_kept: u64,
    protected: u64,
    passed: Passed,
}

impl Regulated {
    /// Shows the counters of a discipline of this kind; `dropped` is the name of the count of
    /// dropped ACKs.
    fn show(&self, kind: &'static str, dropped: &'static str, visit: &mut dyn FnMut(Counter<'_>)) {
        self.tally.show(kind, visit);
        let counts = [
            ("seen", self.seen),
            (dropped, self.dropped),
            ("duplicates_kept", self.duplicates_kept),
            ("protected", self.protected),
        ];
        Counter::all(kind, counts, visit);
        self.passed.show(kind, visit);
    }
}

#[cfg(test)]
mod tests;
