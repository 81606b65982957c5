//! The ACK filter of CAKE, for comparison: when a segment is queued, at most one older ACK of its
//! flow is removed.
//!
//! Published: `ack-filter` and `ack-filter-aggressive` of tc-cake(8); Høiland-Jørgensen, Täht,
//! Morton 2018, section III-D. The manual says little; the cases below are what
//! `net/sched/sch_cake.c` of Linux does (read in 2026).
//!
//! A segment *triggers* the search if it is TCP with ACK and without SYN, whatever else it carries.
//! The queue is searched from its head. A queued ACK of its flow is *redundant* if
//!
//! 1. its flags are ACK and at most ECE and CWR;
//! 2. it has no payload;
//! 3. its options are timestamps and SACK blocks and nothing else: MSS, window scale, SACK
//!    permitted (which belong on a SYN), AccECN and unknown options keep it, as does AE;
//! 4. its acknowledgement number is not above the trigger's;
//! 5. neither its timestamp nor its echo reply is above the trigger's (modulo 2^32);
//! 6. each of its SACK blocks lies within one of the trigger's, none lies below its own
//!    acknowledgement number (a D-SACK is sent once), and the trigger has SACK blocks if it has;
//! 7. the trigger acknowledges more, or has SACK blocks over more bytes. So a duplicate never
//!    removes the ACK that it repeats, nor does a window update; both are removed once the number
//!    advances.
//!
//! Of the redundant ACKs the *oldest of a run* may be removed. A segment of the flow with ECE and
//! CWR bits other than those of the run ends the run, since the last ACK before a change marks its
//! time. The next redundant ACK starts another run.
//!
//! - [`Mode::Normal`]: the oldest is removed if a second redundant ACK is behind it, so that two
//!   ACKs are left.
//! - [`Mode::Aggressive`]: it is also removed if it is the only one, is directly before the
//!   trigger, and has the trigger's ECE and CWR bits, so that one is left.
//!
//! Unlike the other regulators here, this filter does not check the sequence number (it may remove
//! a keep-alive probe), a congestion mark in the IP header, or a D-SACK inside the second block,
//! and it does not recognise a duplicate once the number has advanced.
//! Differs from Linux, always by removing less:
//!
//! - more options count as unknown (MD5 signatures);
//! - an ACK with timestamps never gives way to a segment without, where Linux compares with 0;
//! - a damaged segment triggers nothing and a damaged ACK stays, where Linux checks no checksum;
//! - 6in4 is not parsed.
//!
//! CAKE searches one of its flow queues. In a queue of its own ([`CakeAckFilter`]) the search
//! covers the queued packets of a flow. Cost: a scan of the flow's packets for each TCP segment.
//! Memory: an entry for each flow with queued packets.

use lastmile_packet::{Meta, Packet, Protocol, SeqNumber, SynOptions, TcpFlags};
use lastmile_units::Instant;

use super::flow_fifo::FlowFifo;
use super::{Filter, Filtered, Passed, contains};
use crate::classify::{Condition, Match, Matcher as _};
use crate::discipline::Counter;
use crate::fifo::Tally;
use crate::{Backlog, Discipline, DropReason, DropSink, Environment, Limit, Node, Overflow};

/// Aggressiveness of the filter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// `ack-filter`: leaves at least two ACKs of a flow.
    #[default]
    Normal,
    /// `ack-filter-aggressive`: may leave only the newest ACK of a flow.
    Aggressive,
}

/// The queued packet that `trigger` makes redundant by the rules of CAKE, if any.
///
/// `older` are the packets in the queue that `trigger` joins, the oldest first, without `trigger`,
/// each with an identifier of the caller, such as its index. They may include packets of other
/// flows, which only separate their neighbours.
pub fn redundant<'a, T>(
    mode: Mode,
    older: impl IntoIterator<Item = (T, &'a Meta)>,
    trigger: &impl Packet,
) -> Option<T> {
    // The checksum of payload is computed only for a trigger that would remove an ACK.
    redundant_if_sound(mode, older, trigger.meta()).filter(|_| trigger.segment().is_some())
}

/// As [`redundant`], for a trigger that may be damaged.
fn redundant_if_sound<'a, T>(mode: Mode, older: impl IntoIterator<Item = (T, &'a Meta)>, trigger: &Meta) -> Option<T> {
    struct Run<T> {
        oldest: T,
        ecn: TcpFlags,
        /// True while no packet is behind it.
        at_tail: bool,
    }
    let acknowledges = trigger.flags.contains(TcpFlags::ACK) && !trigger.flags.contains(TcpFlags::SYN);
    if trigger.protocol != Protocol::Tcp || !acknowledges {
        return None;
    }
    let mut run: Option<Run<T>> = None;
    for (name, meta) in older.into_iter().filter(|(_, meta)| !meta.is_damaged()) {
        if let Some(run) = &mut run {
            run.at_tail = false;
        }
        if meta.protocol != Protocol::Tcp || meta.flow != trigger.flow {
            continue;
        }
        let ecn = ecn_flags(meta);
        run = run.filter(|run| run.ecn == ecn);
        if !is_redundant(meta, trigger) {
            continue;
        }
        match run {
            Some(run) => return Some(run.oldest),
            None => run = Some(Run { oldest: name, ecn, at_tail: true }),
        }
    }
    run.filter(|run| mode == Mode::Aggressive && run.at_tail && run.ecn == ecn_flags(trigger)).map(|run| run.oldest)
}

const ECN: TcpFlags = TcpFlags::ECE.with(TcpFlags::CWR);

const fn ecn_flags(meta: &Meta) -> TcpFlags {
    TcpFlags::from_bits(meta.flags.bits() & ECN.bits())
}

/// Rules 1 to 3: an acknowledgement and nothing else.
fn is_ack(meta: &Meta) -> bool {
    let options = meta.options();
    meta.flags.without(ECN) == TcpFlags::ACK
        && meta.payload_len() == 0
        && !options.has_unknown()
        && options.accecn_layout().is_none()
        && options.syn_options() == SynOptions::default()
}

/// Rules 1 to 7.
fn is_redundant(older: &Meta, trigger: &Meta) -> bool {
    if !is_ack(older) || older.ack.after(trigger.ack) || !stamped_no_later(older, trigger) {
        return false;
    }
    match selective(older, trigger) {
        Selective::More => true,
        Selective::Same => older.ack != trigger.ack,
        Selective::Less => false,
    }
}

/// Rule 5.
fn stamped_no_later(older: &Meta, trigger: &Meta) -> bool {
    let at_or_before = |older: u32, newer: u32| SeqNumber::new(older).at_or_before(SeqNumber::new(newer));
    match (older.options().timestamps(), trigger.options().timestamps()) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some((value, echo)), Some((newer_value, newer_echo))) => {
            at_or_before(value, newer_value) && at_or_before(echo, newer_echo)
        }
    }
}

/// SACK information of the trigger compared with that of an older ACK.
enum Selective {
    More,
    Same,
    /// Some block of the older ACK would be lost.
    Less,
}

/// Rule 6.
fn selective(older: &Meta, trigger: &Meta) -> Selective {
    let (told, tells) = (older.options(), trigger.options());
    let covered = told
        .sack_blocks()
        .all(|block| block.left.at_or_after(older.ack) && tells.sack_blocks().any(|wider| contains(wider, block)));
    if !covered {
        return Selective::Less;
    }
    // A number of 32 bits, as Linux adds them up: blocks of one window do not overflow it.
    let bytes = |meta: &Meta| {
        let options = meta.options();
        options.sack_blocks().map(|block| block.right.distance_from(block.left)).fold(0, u32::wrapping_add)
    };
    if bytes(trigger) > bytes(older) { Selective::More } else { Selective::Same }
}

/// Parameters of the discipline.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rules {
    /// Aggressiveness.
    pub mode: Mode,
    /// Packets that are never removed and remove nothing.
    pub exempt: Match,
}

/// A FIFO with CAKE's ACK filter.
#[derive(Clone, Debug)]
pub struct CakeAckFilter<P> {
    /// With each packet: whether it is exempt.
    queue: FlowFifo<P, bool>,
    overflow: Overflow,
    mode: Mode,
    exempt: Condition,
    stats: Stats,
}

impl<P: Packet> CakeAckFilter<P> {
    /// An empty queue. `None` if the limit is in cells and the line has none.
    #[must_use]
    pub fn new(limit: Limit, overflow: Overflow, rules: &Rules, environment: &Environment) -> Option<Self> {
        Some(Self {
            queue: FlowFifo::new(limit, &environment.link_layer)?,
            overflow,
            mode: rules.mode,
            exempt: Condition::new(&rules.exempt, environment),
            stats: Stats::default(),
        })
    }
}

impl<P: Packet> Discipline<P> for CakeAckFilter<P> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        let size = self.queue.capacity.size_of(&packet);
        if self.queue.capacity.never_fits(size) {
            self.stats.tally.too_large += 1;
            drops.dropped(now, packet, DropReason::TooLarge);
            return;
        }
        let exempt = self.exempt.matches(now, &packet);
        self.stats.saw(packet.meta(), exempt);
        let redundant = if exempt {
            None
        } else {
            redundant(self.mode, self.queue.of_flow(packet.meta().flow), &packet)
                .filter(|&older| !self.queue.note(older))
        };
        // CAKE queues first and then drops from the longest queue. A tail-drop queue refuses
        // instead; then nothing is removed in favour of a packet that does not fit.
        if self.overflow == Overflow::Tail && !self.queue.capacity.fits(size) {
            let freed = redundant.map_or(0, |older| self.queue.capacity.size_of(self.queue.packet(older)));
            if !self.queue.capacity.would_fit(size, freed) {
                self.stats.tally.tail += 1;
                drops.dropped(now, packet, DropReason::Tail);
                return;
            }
        }
        if let Some(older) = redundant {
            self.stats.filtered += 1;
            drops.dropped(now, self.queue.remove(older), DropReason::AckFiltered);
        }
        self.queue.free_space(size, |oldest| {
            self.stats.tally.head += 1;
            drops.dropped(now, oldest, DropReason::Head);
        });
        self.queue.push_back(packet, size, exempt);
    }

    fn dequeue(&mut self, _now: Instant, _drops: &mut dyn DropSink<P>) -> Option<P> {
        let packet = self.queue.remove(self.queue.first()?);
        self.stats.tally.sent(&packet);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.stats.show(visit);
    }
}

/// Counters of a filter.
#[derive(Clone, Debug, Default)]
struct Stats {
    tally: Tally,
    seen: u64,
    filtered: u64,
    passed: Passed,
}

impl Stats {
    fn saw(&mut self, meta: &Meta, exempt: bool) {
        let count = if meta.protocol != Protocol::Tcp {
            &mut self.passed.not_tcp
        } else if exempt {
            &mut self.passed.exempt
        } else if meta.payload_len() > 0 {
            &mut self.passed.data
        } else if meta.is_damaged() {
            &mut self.passed.damaged
        } else if meta.options().has_unknown() {
            &mut self.passed.unknown_options
        } else if is_ack(meta) {
            &mut self.seen
        } else {
            &mut self.passed.flags
        };
        *count += 1;
    }

    fn show(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        const KIND: &str = "cake-ack-filter";
        self.tally.show(KIND, visit);
        Counter::all(KIND, [("seen", self.seen), ("dropped_ack_filtered", self.filtered)], visit);
        self.passed.show(KIND, visit);
    }
}

/// The parameters of a queue with CAKE's ACK filter.
pub type Config = Filtered<Rules>;

impl Filter for Rules {
    fn exempt(&self) -> &Match {
        &self.exempt
    }

    fn queue<P: Packet + Send + 'static>(&self, of: &Config, environment: &Environment) -> Option<Node<P>> {
        Some(Box::new(CakeAckFilter::new(of.limit, of.drop, self, environment)?))
    }
}

#[cfg(test)]
mod tests;
