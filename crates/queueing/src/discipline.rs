//! The contract of a queueing discipline. Its words are those of tc(8): an enqueued packet is
//! dequeued in an order that the discipline decides, or handed to the drop sink with a reason. No
//! packet disappears unreported.

use std::collections::VecDeque;

use lastmile_packet::Packet;
use lastmile_units::{BitRate, ByteCount, Instant, PacketCount};

/// A queue, scheduler, shaper or regulator; all compose into a tree.
///
/// Rules for every discipline, checked by the generic property test in `tests/`:
///
/// - *Conservation*: every enqueued packet is dequeued once, handed to a sink once, or counted by
///   [`Discipline::backlog`]. A call may drop packets other than the one that it was given. A
///   packet that the discipline makes (an ACK regenerator restores suppressed ACKs) is shown to
///   [`DropSink::created`] when it is made, and then counts as an enqueued packet. The counters
///   `grown_bytes` and `shrunk_bytes` count the bytes by which rewritten pure ACKs grow or shrink,
///   when the packet departs or its size in the backlog changes.
/// - *Order*: packets of one flow depart in the order of their arrival. In a scheduler with classes
///   this holds for the packets of a flow within a class.
/// - *Time*: `now` never goes back between calls; equal is allowed.
/// - *Readiness*: `dequeue` at the time returned by `next_ready` returns a packet, unless it drops
///   the whole backlog (an AQM or regulator may). A shaper above a shaper learns the size of a
///   packet only when it has dequeued it; there `dequeue` makes progress instead: `next_ready` then
///   returns a later time.
/// - *Untouched*: packets depart unchanged. Exceptions are a pure ACK that an ACK regulator
///   rewrites, a window that a clamp lowers, a congestion mark by an AQM, a code point that a policer
///   sets, and the class that rules decide.
/// - *Handed on*: a discipline that passes a sink of its own to a child forwards all calls of that
///   sink to the caller's, `created` as well as `dropped`.
pub trait Discipline<P: Packet> {
    /// Enqueues a packet. This packet, or others in its favour, may go to `drops` at once.
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>);

    /// A FIFO may leave its packets to a line. True: the discipline has space for `packet` and counts it, and the
    /// caller holds it. False: nothing has changed, and [`Discipline::enqueue`] takes or drops it.
    fn admits(&mut self, _packet: &P) -> bool {
        false
    }

    /// The oldest of the packets that it has admitted departs.
    fn departs(&mut self, _packet: &P) {}

    /// The caller returns all admitted packets that have not departed: `dequeue` gives them out.
    fn take_back(&mut self, _admitted: VecDeque<P>) {}

    /// Dequeues the next packet, if one may depart now.
    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P>;

    /// Dequeues the packet that `dequeue` would return, if its class has priority over others; else
    /// returns `None` and dequeues nothing. A discipline whose classes are all equal returns
    /// `None`.
    fn dequeue_urgent(&mut self, _now: Instant, _drops: &mut dyn DropSink<P>) -> Option<P> {
        None
    }

    /// The time at which `dequeue` may next return a packet: `now` or earlier means at once, `None`
    /// not before the next `enqueue`.
    ///
    /// May change after every `enqueue` and `dequeue`. An early `dequeue` is harmless. A discipline that holds no
    /// packet back is ready at once.
    #[must_use]
    fn next_ready(&self, now: Instant) -> Option<Instant> {
        (self.backlog().packets != PacketCount::ZERO).then_some(now)
    }

    /// Level of urgency of the packet that [`Discipline::dequeue`] would return now; `None` if none
    /// is ready. A lower number may interrupt the transmission of a higher one, on lines that allow
    /// it. A discipline without levels returns 0.
    #[must_use]
    fn level_ready(&self, now: Instant) -> Option<usize> {
        self.next_ready(now).filter(|ready| *ready <= now).map(|_| 0)
    }

    /// Level of urgency of the packet that `dequeue` returned last, comparable with
    /// [`Discipline::level_ready`].
    #[must_use]
    fn level_sent(&self) -> usize {
        0
    }

    /// Changes the rate of the shaper at `now`: of a token bucket filter, a drain without a law, a CAKE with a
    /// bandwidth, an HTB or HFSC with one class on the link, or of one below a discipline that only forwards. Bytes
    /// that have departed are charged at the rates of their time, and unpaid ones are paid at the new rate.
    ///
    /// False: this discipline has no such shaper, and nothing has changed. `next_ready` may change.
    fn set_rate(&mut self, _now: Instant, _rate: BitRate) -> bool {
        false
    }

    /// Packets and bytes in the queue.
    #[must_use]
    fn backlog(&self) -> Backlog;

    /// Shows the backlog of each class of the outermost scheduler with classes, by the number in the
    /// paths of its counters; nothing without classes. Packets in front of the scheduler are in no
    /// class.
    fn class_backlogs(&self, visit: &mut dyn FnMut(usize, Backlog)) {
        let _ = visit;
    }

    /// [`Discipline::backlog`] and [`Discipline::next_ready`] in one virtual call, for schedulers
    /// that need both after every packet.
    #[must_use]
    fn standing(&self, now: Instant) -> (Backlog, Option<Instant>) {
        (self.backlog(), self.next_ready(now))
    }

    /// Shows every counter of this discipline and of those below it, in a fixed order. `tc -s`
    /// prints the like.
    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>));
}

/// Answers of a discipline that forwards packets without delay or reordering: those of the queue
/// below it.
macro_rules! answers_of_below {
    ($self:ident => $below:expr) => {
        fn next_ready(&$self, now: Instant) -> Option<Instant> {
            $below.next_ready(now)
        }

        fn set_rate(&mut $self, now: Instant, rate: lastmile_units::BitRate) -> bool {
            $below.set_rate(now, rate)
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

        fn class_backlogs(&$self, visit: &mut dyn FnMut(usize, $crate::Backlog)) {
            $below.class_backlogs(visit);
        }

        fn standing(&$self, now: Instant) -> (Backlog, Option<Instant>) {
            $below.standing(now)
        }
    };
}
pub(crate) use answers_of_below;

/// Answers of a scheduler whose classes have a `queue` each, by the number of its `classifier`. A packet whose class
/// has no queue goes to the last one.
macro_rules! answers_of_classes {
    ($self:ident => $classes:expr) => {
        fn enqueue(&mut $self, now: Instant, mut packet: P, drops: &mut dyn DropSink<P>) {
            let last = $classes.len() - 1;
            let class = $self.classifier.classify(now, &packet).index().min(last);
            packet.meta_mut().join_class(class);
            $classes[class].queue.enqueue(now, packet, drops);
        }

        fn next_ready(&$self, now: Instant) -> Option<Instant> {
            $classes.iter().filter_map(|class| class.queue.next_ready(now)).min()
        }

        fn backlog(&$self) -> Backlog {
            $classes.iter().map(|class| class.queue.backlog()).sum()
        }

        fn class_backlogs(&$self, visit: &mut dyn FnMut(usize, Backlog)) {
            $classes.iter().enumerate().for_each(|(index, class)| visit(index, class.queue.backlog()));
        }
    };
}
pub(crate) use answers_of_classes;

impl<P: Packet, D: Discipline<P> + ?Sized> Discipline<P> for Box<D> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        (**self).enqueue(now, packet, drops);
    }

    fn admits(&mut self, packet: &P) -> bool {
        (**self).admits(packet)
    }

    fn departs(&mut self, packet: &P) {
        (**self).departs(packet);
    }

    fn take_back(&mut self, admitted: VecDeque<P>) {
        (**self).take_back(admitted);
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

/// A boxed discipline of any kind: a node of a tree.
pub type Node<P> = Box<dyn Discipline<P> + Send>;

/// One counter of one discipline in a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counter<'a> {
    /// Path of the discipline below the root, in keys of a configuration: empty for the root,
    /// `classes.0.queue` for the queue of its first class.
    pub path: &'a str,
    /// Kind of the discipline, by its name in a configuration.
    pub kind: &'static str,
    /// Name of the count. Its unit is bytes if the name ends in `_bytes`, milliseconds if in `_ms`,
    /// else packets.
    pub name: &'static str,
    /// The count.
    pub value: u64,
}

impl Counter<'_> {
    /// Shows counts of the root.
    pub(crate) fn all(
        kind: &'static str,
        counts: impl IntoIterator<Item = (&'static str, u64)>,
        visit: &mut dyn FnMut(Counter<'_>),
    ) {
        counts.into_iter().for_each(|(name, value)| visit(Counter { path: "", kind, name, value }));
    }

    /// Shows the counters of `child`, with `key` prefixed to their paths.
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

/// Packets in a queue and their IP bytes. An ACK that a regulator will rewrite counts with the size
/// that it had on arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Packets.
    pub packets: PacketCount,
    /// IP bytes of the packets.
    pub bytes: ByteCount,
}

impl core::ops::Add for Backlog {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl core::iter::Sum for Backlog {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| sum + one)
    }
}

/// Receives dropped packets, each with its reason, and created ones. A closure receives drops only.
pub trait DropSink<P> {
    /// `packet` is dropped at `now` because of `reason`.
    fn dropped(&mut self, now: Instant, packet: P, reason: DropReason);

    /// The discipline itself made `packet` at `now`.
    fn created(&mut self, _now: Instant, _packet: &P) {}
}

impl<P, F: FnMut(Instant, P, DropReason)> DropSink<P> for F {
    fn dropped(&mut self, now: Instant, packet: P, reason: DropReason) {
        self(now, packet, reason);
    }
}

/// Packets and their IP bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// IP bytes.
    pub bytes: u64,
}

impl Count {
    /// Counts one packet.
    #[inline]
    pub fn add(&mut self, packet: &impl Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.meta().ip_len);
    }
}

impl core::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

impl From<Backlog> for Count {
    fn from(backlog: Backlog) -> Self {
        Self { packets: backlog.packets.as_u64(), bytes: backlog.bytes.as_u64() }
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum DropReason {
    /// The queue was full. Dropped: the packet that arrived, or the newest of the longest queue.
    Tail,
    /// The queue was full. Dropped: the oldest packet.
    Head,
    /// An AQM dropped it early.
    Aqm,
    /// A policer found it out of profile.
    Policed,
    /// ACK filter: a newer ACK of its flow arrived.
    AckFiltered,
    /// ACK collapsing: a newer ACK of its flow departed.
    AckCollapsed,
    /// Smart ACK Dropper: a queued ACK of its flow carries its acknowledgement number.
    AckMerged,
    /// Smart ACK Dropper, `duplicates = "count"`: a duplicate ACK, counted for the regenerator.
    AckDuplicate,
    /// ACK regenerator: a signal of a Smart ACK Dropper, consumed at its destination.
    AckSignal,
    /// Lost on the wire.
    WireLoss,
    /// The far end rebuilt its header wrongly after an earlier loss, so its checksum failed (RFC
    /// 1144, section 4).
    HeaderCompression,
    /// The packet was larger than the whole queue, the burst of a shaper, or the maximum of the line; waiting would not
    /// have helped.
    TooLarge,
    /// No route, or no listener.
    Unreachable,
    /// A bit arrived wrong, so its checksum failed.
    BitError,
}

impl DropReason {
    /// All reasons, in the order of [`DropReason::index`].
    pub const ALL: [Self; 14] = [
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
        Self::BitError,
    ];

    /// The position of this reason in [`DropReason::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// True for a pure ACK that an ACK regulator removed on purpose: no data are lost.
    #[must_use]
    pub const fn is_ack_regulation(self) -> bool {
        match self {
            Self::AckFiltered | Self::AckCollapsed | Self::AckMerged | Self::AckDuplicate | Self::AckSignal => true,
            Self::Tail
            | Self::Head
            | Self::Aqm
            | Self::Policed
            | Self::WireLoss
            | Self::HeaderCompression
            | Self::TooLarge
            | Self::Unreachable
            | Self::BitError => false,
        }
    }

    /// True where a queue dropped the packet, so that it never took the wire.
    #[must_use]
    pub const fn is_of_queue(self) -> bool {
        matches!(self, Self::Tail | Self::Head | Self::Aqm | Self::Policed)
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
            Self::BitError => "bit_error",
        }
    }
}
