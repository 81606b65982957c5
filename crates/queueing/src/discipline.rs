//! The contract of a queueing discipline, in the words of tc(8): what is enqueued is dequeued in the order that the
//! discipline decides, or handed to the drop sink with a reason. Nothing is lost in silence.

use lastmile_packet::Packet;
use lastmile_units::{ByteCount, Instant, PacketCount};

/// A queue, scheduler, shaper or regulator; all compose into a tree.
///
/// What every discipline keeps (the generic property test in `tests/` holds each of them to it):
///
/// - *Conservation*: every packet that was enqueued is dequeued once, handed to a sink once, or still counted by
///   [`Discipline::backlog`]. A call may drop packets other than the one that it was given. A packet that the discipline
///   makes (an ACK regenerator restores what was suppressed) is shown to [`DropSink::created`] when it is made, and from
///   then on is as one that was enqueued. Bytes by which pure ACKs grow or shrink are the counters `grown_bytes` and
///   `shrunk_bytes`, counted when the packet leaves or its place in the backlog changes size.
/// - *Order*: packets of one flow leave in the order in which they came. Where a scheduler tells classes apart, this holds
///   for the packets of a flow within a class.
/// - *Time*: `now` never goes back between calls; equal is allowed.
/// - *Readiness*: where `next_ready` promises a time, `dequeue` at that time returns a packet, unless it drops all that
///   waits (an AQM or regulator may). Where it promises none of its own (a shaper above a shaper knows the size of a packet
///   only when it has it), `dequeue` at that time makes progress: `next_ready` then names a later time.
/// - *Untouched*: a packet leaves as it came, except for a pure ACK that an ACK regulator rewrites and a window that a clamp
///   lowers.
/// - *Handed on*: a discipline that puts a sink of its own between one below it and the caller's passes on all that the
///   sink is told, what is created as well as what is dropped.
pub trait Discipline<P: Packet> {
    /// Takes a packet in. It, or another in its favour, may go to `drops` at once.
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>);

    /// Hands out the next packet, if one may leave now.
    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P>;

    /// What `dequeue` would return if that is of a class that goes before others; else `None`, and nothing leaves. A discipline whose classes
    /// are all equal has none.
    fn dequeue_urgent(&mut self, _now: Instant, _drops: &mut dyn DropSink<P>) -> Option<P> {
        None
    }

    /// When `dequeue` may next return a packet: `now` or earlier for at once, `None` for not before the next `enqueue`.
    ///
    /// May change after every `enqueue` and `dequeue`. Asking early is harmless.
    #[must_use]
    fn next_ready(&self, now: Instant) -> Option<Instant>;

    /// How urgent what [`Discipline::dequeue`] would return now is: a lower number may interrupt the transmission of a higher one, where the
    /// line lets it. `None`: nothing is ready. A discipline that does not tell levels has one.
    #[must_use]
    fn level_ready(&self, now: Instant) -> Option<usize> {
        self.next_ready(now).filter(|ready| *ready <= now).map(|_| 0)
    }

    /// How urgent the packet was that `dequeue` returned last, in the same numbers.
    #[must_use]
    fn level_sent(&self) -> usize {
        0
    }

    /// What waits.
    #[must_use]
    fn backlog(&self) -> Backlog;

    /// [`Discipline::backlog`] and [`Discipline::next_ready`], for schedulers that ask for both after every packet: one call through a
    /// pointer, not two.
    #[must_use]
    fn standing(&self, now: Instant) -> (Backlog, Option<Instant>) {
        (self.backlog(), self.next_ready(now))
    }

    /// Shows every counter of this discipline and of those below it, in an order that never changes: what `tc -s` prints.
    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>));
}

/// The answers of a discipline that holds nothing back and changes no turns: those of the queue below it.
macro_rules! answers_of_below {
    ($self:ident => $below:expr) => {
        fn next_ready(&$self, now: Instant) -> Option<Instant> {
            $below.next_ready(now)
        }

        fn level_ready(&$self, now: Instant) -> Option<usize> {
            $below.level_ready(now)
        }

        fn level_sent(&$self) -> usize {
            $below.level_sent()
        }

        fn backlog(&$self) -> Backlog {
            $below.backlog()
        }

        fn standing(&$self, now: Instant) -> (Backlog, Option<Instant>) {
            $below.standing(now)
        }
    };
}
pub(crate) use answers_of_below;

impl<P: Packet, D: Discipline<P> + ?Sized> Discipline<P> for Box<D> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        (**self).enqueue(now, packet, drops);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        (**self).dequeue(now, drops)
    }

    fn dequeue_urgent(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        (**self).dequeue_urgent(now, drops)
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        (**self).counters(visit);
    }

    answers_of_below!(self => (**self));
}

/// A discipline of any kind, as the nodes of a tree hold it.
pub type Node<P> = Box<dyn Discipline<P> + Send>;

/// One counter of one discipline in a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counter<'a> {
    /// Where the discipline stands below the root, by the keys of a configuration: empty for the root,
    /// `classes.0.queue` for the queue of its first class.
    pub path: &'a str,
    /// The kind of the discipline, as a configuration calls it.
    pub kind: &'static str,
    /// What is counted. A name that ends in `_bytes` counts bytes, in `_ms` milliseconds, in `_packets` or anything else packets.
    pub name: &'static str,
    /// The count.
    pub value: u64,
}

impl Counter<'_> {
    /// Shows the counters of `child`, with `key` put before their paths.
    pub fn below<P: Packet>(key: &str, child: &(impl Discipline<P> + ?Sized), visit: &mut dyn FnMut(Counter<'_>)) {
        child.counters(&mut |counter| {
            if counter.path.is_empty() {
                visit(Counter { path: key, ..counter });
            } else {
                visit(Counter { path: &format!("{key}.{}", counter.path), ..counter });
            }
        });
    }
}

/// Packets that wait, and their IP bytes. An ACK that a regulator will rewrite counts as it came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Packets.
    pub packets: PacketCount,
    /// Their IP bytes.
    pub bytes: ByteCount,
}

/// Takes dropped packets, each with its reason, and hears of new ones. A closure takes drops alone.
pub trait DropSink<P> {
    /// `packet` is dropped at `now` because of `reason`.
    fn dropped(&mut self, now: Instant, packet: P, reason: DropReason);

    /// `packet` is made at `now`; nobody had enqueued it.
    fn created(&mut self, _now: Instant, _packet: &P) {}
}

impl<P, F: FnMut(Instant, P, DropReason)> DropSink<P> for F {
    fn dropped(&mut self, now: Instant, packet: P, reason: DropReason) {
        self(now, packet, reason);
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum DropReason {
    /// The queue was full: the packet that arrived went, or the newest of the longest queue.
    Tail,
    /// The queue was full: the oldest packet went.
    Head,
    /// An AQM dropped it early.
    Aqm,
    /// A policer found it out of profile.
    Policed,
    /// ACK filter: a newer ACK of its flow came.
    AckFiltered,
    /// ACK collapsing: a newer ACK of its flow left.
    AckCollapsed,
    /// Smart ACK Dropper: its number lives on in the ACK of its flow that waits.
    AckMerged,
    /// Smart ACK Dropper, `duplicates = "count"`: a duplicate ACK, counted for the regenerator.
    AckDuplicate,
    /// ACK regenerator: a signal of a Smart ACK Dropper, taken in where it was meant to go.
    AckSignal,
    /// Lost on the wire.
    WireLoss,
    /// Its header was rebuilt wrongly after a loss before it, so its checksum failed (RFC 1144, section 4).
    HeaderCompression,
    /// It was larger than the whole queue, the burst of a shaper, or what the line takes: waiting would not have helped.
    TooLarge,
    /// No route, or nobody listened.
    Unreachable,
}

impl DropReason {
    /// All reasons, in the order of [`DropReason::index`].
    pub const ALL: [Self; 13] = [
        Self::Tail,
        Self::Head,
        Self::Aqm,
        Self::Policed,
        Self::AckFiltered,
        Self::AckCollapsed,
        Self::AckMerged,
        Self::AckDuplicate,
        Self::AckSignal,
        Self::WireLoss,
        Self::HeaderCompression,
        Self::TooLarge,
        Self::Unreachable,
    ];

    /// The place of this reason in [`DropReason::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The name of the reason in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tail => "tail",
            Self::Head => "head",
            Self::Aqm => "aqm",
            Self::Policed => "policed",
            Self::AckFiltered => "ack_filtered",
            Self::AckCollapsed => "ack_collapsed",
            Self::AckMerged => "ack_merged",
            Self::AckDuplicate => "ack_duplicate",
            Self::AckSignal => "ack_signal",
            Self::WireLoss => "wire_loss",
            Self::HeaderCompression => "header_compression",
            Self::TooLarge => "too_large",
            Self::Unreachable => "unreachable",
        }
    }
}
