//! ACK regulation: fewer acknowledgements for a direction that cannot carry them all.
//!
//! What the regulators here agree on:
//!
//! - Only a *pure ACK* is ever dropped or rewritten ([`lastmile_packet::PureAck`]: no payload, no flag but ACK, no
//!   option unknown). All else passes, and so does a pure ACK on the exception list or one with a congestion mark in its IP
//!   header (CE, RFC 3168), which would be lost with it.
//! - A *damaged* segment ([`lastmile_packet::Packet::segment`] is none) passes unchanged and says nothing: its receiver drops it. No ACK
//!   gives way to it, takes values from it or is kept apart by it. Of a segment with payload the checksum is computed only by a regulator that
//!   would learn something from it.
//! - What the sender sees is what it could have seen from TCP with some ACKs lost and none reordered.
//! - A *duplicate* ACK is one with the number of the newest ACK of its flow and its window (RFC 5681, section 2), or with its
//!   number and SACK blocks (RFC 6675, section 2: with SACK, the window does not matter). The same number with another window
//!   and without SACK blocks is a *window update*, as good as a newer ACK.
//! - No change of ECE or CWR is lost (RFC 3168, section 6.1): with either an ACK is no pure one, and the ACK before it stays.
//! - No SACK information is lost: an ACK gives way to a newer one only if that covers each of its blocks, and never if its
//!   first block is a D-SACK (RFC 2883), which is said only once. This is CAKE's care (`ack-filter` of tc-cake(8)). Nor does
//!   an ACK with timestamps give way to one without, or with an older one.
//!
//! - An ACK that carries a list for a regenerator ([`lastmile_packet::AckList`]) passes: with it the list would be lost.
//!
//! [`cake`] alone has rules of its own, those of Linux, to compare with.
//!
//! An ACK that is the first of its flow to wait is never told from a duplicate, since nothing is remembered of a flow of
//! which nothing waits.

pub mod cake;
pub mod clamp;
pub mod collapsing;
pub mod filter;
mod flow_fifo;
pub(crate) mod flow_map;
pub mod handshakes;
pub(crate) mod linked_fifo;
pub mod pacing;
mod recent;
pub mod regenerator;
pub mod sad;

use lastmile_packet::{AckFields, Meta, Packet, Protocol, PureAck, SackBlock, Segment, SeqNumber};
use lastmile_units::Instant;

use crate::classify::{Condition, Matcher as _};
use crate::discipline::Counter;
use crate::fifo::Tally;

pub use cake::CakeAckFilter;
pub use clamp::WindowClamp;
pub use collapsing::AckCollapsing;
pub use filter::{AckFilter, Fraction};
pub use handshakes::{Handshakes, Witness};
pub use pacing::AckPacing;
pub use regenerator::AckRegenerator;
pub use sad::SmartAckDropper;

/// How a new ACK stands to the newest one of its flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    /// It acknowledges more.
    Advance,
    /// It acknowledges the same, and changes the window.
    WindowUpdate,
    /// It acknowledges the same again.
    Duplicate,
    /// It acknowledges less: it was overtaken on its way here.
    Old,
}

/// The newest acknowledgement of a flow of which something waits.
#[derive(Clone, Copy, Debug)]
struct Newest {
    ack: SeqNumber,
    window: u16,
}

impl Newest {
    fn of(segment: Segment<'_>) -> Self {
        Self { ack: segment.ack, window: segment.window }
    }

    fn standing_of(self, meta: Segment<'_>) -> Standing {
        if meta.ack.after(self.ack) {
            Standing::Advance
        } else if meta.ack.before(self.ack) {
            Standing::Old
        } else if meta.window != self.window && meta.options().sack_count() == 0 {
            Standing::WindowUpdate
        } else {
            Standing::Duplicate
        }
    }

    /// Takes note of a segment of the flow that acknowledges something, pure or not.
    fn note(&mut self, segment: Segment<'_>) {
        self.advance_to(Self::of(segment));
    }

    /// Becomes `other` unless that acknowledges less.
    fn advance_to(&mut self, other: Self) {
        if other.ack.at_or_after(self.ack) {
            *self = other;
        }
    }
}

/// True when the sender loses nothing if it gets `newer` and never `older`.
fn gives_way(older: PureAck<'_>, newer: PureAck<'_>) -> bool {
    debug_assert!(older.ack.at_or_before(newer.ack), "an ACK that was overtaken removes none");
    // A keep-alive probe has the sequence number before the next one (RFC 9293, section 3.8.4): it asks for an answer.
    let probe = older.seq.add(1) == newer.seq;
    older.seq.at_or_before(newer.seq) && !probe && stands_for(&older.fields(), &newer.fields())
}

/// True when a sender that gets `new` alone misses nothing that `old` says.
fn stands_for(old: &AckFields, new: &AckFields) -> bool {
    // RFC 7323: where timestamps are agreed on, a segment without them is dropped (section 3.2), and so is one whose value is older than
    // that of a segment before it (section 5.3). With either goes all that it says.
    let heard = match (old.options.timestamps(), new.options.timestamps()) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some((old, _)), Some((new, _))) => SeqNumber::new(old).at_or_before(SeqNumber::new(new)),
    };
    heard && covers_sack(old, new)
}

/// True when a sender that gets `new` alone learns every SACK block that `old` holds and that still matters.
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

/// The cumulative number and `wider`, which begins there, tell of all bytes up to the end of `block`.
fn continues(ack: SeqNumber, wider: SackBlock, block: SackBlock) -> bool {
    wider.left.at_or_before(ack) && wider.right.at_or_after(block.right)
}

/// RFC 2883, section 4: the first block tells of a segment that came twice, when it lies below the cumulative
/// acknowledgement or inside the second block.
fn is_dsack(fields: &AckFields) -> bool {
    let mut blocks = fields.options.sack_blocks();
    match (blocks.next(), blocks.next()) {
        (Some(first), _) if first.left.before(fields.ack) => true,
        (Some(first), Some(second)) => contains(second, first),
        _ => false,
    }
}

/// What passed untouched, and why.
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
    /// The pure ACK that this packet is, if it may be regulated; counts why not otherwise.
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

    /// The same, with or without a list.
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
        for (name, value) in counts {
            visit(Counter { path: "", kind, name, value });
        }
    }
}

/// What a queue counts in which ACKs give way to newer ones.
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
    /// Under the names of `kind`, which calls its dropped ACKs `dropped`.
    fn show(&self, kind: &'static str, dropped: &'static str, visit: &mut dyn FnMut(Counter<'_>)) {
        self.tally.show(kind, visit);
        let counts = [
            ("seen", self.seen),
            (dropped, self.dropped),
            ("duplicates_kept", self.duplicates_kept),
            ("protected", self.protected),
        ];
        for (name, value) in counts {
            visit(Counter { path: "", kind, name, value });
        }
        self.passed.show(kind, visit);
    }
}

#[cfg(test)]
mod tests;
