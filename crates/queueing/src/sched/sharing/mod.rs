//! Link sharing by a tree of classes with exact token accounting: what HTB and CBQ have in common.
//!
//! Published: Floyd and Van Jacobson 1995, formal link-sharing guidelines; Devera, "Hierarchical token bucket theory", whose
//! modes, levels and order this has.
//!
//! A class *can send* while it owes no tokens, *may borrow* from the class above while it is held to its ceiling alone, or
//! *cannot send*. Leaves that can send come first, then those that borrow from the lowest classes that can lend; on
//! each level the most urgent priority; within it turns of a quantum. A packet is charged to all that it passes: its ceiling in
//! every class up to the root, its rate from the lender on.
//!
//! Cost a packet: O(depth + priorities), beside the logarithm of the classes that wait for tokens, in a heap. Members of a
//! level or a class are kept in sets of bits, which cost a step for each factor of 64.

mod bucket;
mod events;
mod set;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::Packet;
use lastmile_units::{BitRate, ByteCount, Duration, Instant, PacketCount, WireBytes};

use self::bucket::Bucket;
use self::events::Events;
use self::set::Turns;
use crate::discipline::Counter;
use crate::{Backlog, Discipline, DropSink, Node};

/// Priorities of leaves, 0 the most urgent (`TC_HTB_NUMPRIO` of Linux).
pub(crate) const PRIORITIES: usize = 8;

/// A rate and its burst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tokens {
    pub(crate) rate: BitRate,
    pub(crate) burst: WireBytes,
}

/// What a class may send of its own, and lend.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Own {
    /// As much as there is.
    Everything,
    /// This.
    Rate(Tokens),
    /// Nothing: all of it is set apart for isolated classes below.
    Nothing,
}

/// How far the modes of classes lag behind their tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Slack {
    /// A class that sends goes on until it owes a burst.
    pub(crate) hysteresis: bool,
    /// Tick of the clock by which those that wait are looked at again; zero: at the very time.
    pub(crate) timer: Duration,
}

/// A class, before it is built. Those below one come after it.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The number of the class in a configuration. `None`: it has none, and shows no counters.
    pub(crate) index: Option<u32>,
    /// The class above, by its place among the plans.
    pub(crate) parent: Option<usize>,
    pub(crate) own: Own,
    pub(crate) ceil: Option<Tokens>,
    /// Whether it may borrow from the class above.
    pub(crate) borrows: bool,
    /// What it sends of its own is not charged to the classes above.
    pub(crate) isolated: bool,
    /// Below [`PRIORITIES`].
    pub(crate) priority: u8,
    /// Bytes on the wire in a turn. Not zero.
    pub(crate) quantum: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    CanSend,
    MayBorrow,
    CannotSend,
}

#[derive(Clone, Debug)]
enum Bound {
    None,
    Bucket(Bucket),
    Closed,
}

#[derive(Clone, Debug)]
struct Class {
    mode: Mode,
    /// Priorities at which something below waits and may be sent as far as this class: a bit each.
    active: u8,
    priority: u8,
    borrows: bool,
    isolated: bool,
    /// 0 for a leaf; an inner class is above those below it.
    level: u8,
    parent: Option<u32>,
    /// Its place among those of its level, and among its siblings.
    place: u32,
    sibling: u32,
    /// The first class below; they follow one another.
    first_child: u32,
    /// Which queue, or which set of turns.
    content: u32,
    own: Bound,
    /// `None`: there is none, or it is like its own and is charged whenever that is, at the root.
    ceil: Option<Bucket>,
    ceil_is_own: bool,
    tally: Tally,
}

impl Class {
    const fn is_leaf(&self) -> bool {
        self.level == 0
    }

    /// It may send whatever it did before, of its own.
    #[inline]
    fn owes_nothing(&self, now: Instant) -> bool {
        let pays = |bucket: &Bucket| bucket.ready_at() <= now;
        self.ceil.as_ref().is_none_or(pays)
            && match &self.own {
                Bound::None => true,
                Bound::Bucket(own) => pays(own),
                Bound::Closed => false,
            }
    }
}

#[derive(Clone, Debug, Default)]
struct Tally {
    packets: u64,
    bytes: u64,
    wire_bytes: u64,
    lent: u64,
    borrowed: u64,
    overlimits: u64,
    /// When it was charged last.
    at: Instant,
}

/// A queue at the end of a branch.
struct Leaf<P> {
    queue: Node<P>,
    /// What it held when it was asked last; it changes through this tree alone.
    held: Backlog,
    quantum: i64,
    /// What it may still send in its turn: at level 0, then of each class above from the root down.
    deficits: Vec<i64>,
}

/// Those that wait for a turn, by priority.
#[derive(Clone, Debug)]
struct Waiting {
    /// Priorities with a member, a bit each.
    priorities: u8,
    turns: [Turns; PRIORITIES],
}

impl Waiting {
    fn new(capacity: usize) -> Self {
        Self { priorities: 0, turns: std::array::from_fn(|_| Turns::new(capacity)) }
    }

    /// The priorities of `mask` that had nobody before.
    #[inline]
    fn insert(&mut self, member: usize, mask: u8) -> u8 {
        let new = mask & !self.priorities;
        for priority in bits(mask) {
            self.turns[priority].members.insert(member);
        }
        self.priorities |= mask;
        new
    }

    /// The priorities of `mask` that have nobody left.
    #[inline]
    fn remove(&mut self, member: usize, mask: u8) -> u8 {
        let mut gone = 0;
        for priority in bits(mask) {
            self.turns[priority].members.remove(member);
            gone |= u8::from(self.turns[priority].members.is_empty()) << priority;
        }
        self.priorities &= !gone;
        gone
    }
}

/// The bits that are set, from the lowest.
fn bits(mut mask: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(bit)
    })
}

/// A tree of classes at work.
pub(crate) struct Sharing<P> {
    kind: &'static str,
    link_layer: LinkLayer,
    slack: Slack,
    classes: Vec<Class>,
    /// The configuration's numbers of the classes.
    indices: Vec<Option<u32>>,
    leaves: Vec<Leaf<P>>,
    /// The children of each inner class that may borrow from it.
    borrowers: Vec<Waiting>,
    /// By level: the classes that can send or lend.
    lenders: Vec<Waiting>,
    /// By level: its classes.
    levels: Vec<Vec<u32>>,
    events: Events,
    backlog: Backlog,
}

impl<P: Packet> Sharing<P> {
    /// The tree of these classes; `queues` belong to the leaves, in the order of the plans. Siblings follow one another.
    pub(crate) fn new(
        kind: &'static str,
        plans: &[Plan],
        queues: Vec<Node<P>>,
        link_layer: &LinkLayer,
        slack: Slack,
    ) -> Self {
        let mut depths: Vec<usize> = Vec::with_capacity(plans.len());
        let mut children = vec![(0_u32, 0_u32); plans.len()];
        for (id, plan) in plans.iter().enumerate() {
            depths.push(plan.parent.map_or(0, |parent| depths[parent] + 1));
            if let Some(parent) = plan.parent {
                let (first, count) = &mut children[parent];
                *first = if *count == 0 { id as u32 } else { *first };
                *count += 1;
            }
        }
        // The lowest inner class is of level 1.
        let top = (0..plans.len()).filter(|id| children[*id].1 > 0).map(|id| depths[id] + 1).max().unwrap_or(0);
        let mut levels = vec![Vec::new(); top + 1];
        let (mut classes, mut borrowers, mut leaves) = (Vec::new(), Vec::new(), Vec::new());
        let mut queues = queues.into_iter();
        for (id, plan) in plans.iter().enumerate() {
            let (first_child, count) = children[id];
            let level = if count == 0 { 0 } else { top - depths[id] };
            let content = if count == 0 {
                let queue = queues.next().expect("a queue for each leaf");
                let quantum = i64::try_from(plan.quantum).unwrap_or(i64::MAX);
                leaves.push(Leaf { held: queue.backlog(), queue, quantum, deficits: vec![0; depths[id] + 1] });
                leaves.len() - 1
            } else {
                borrowers.push(Waiting::new(count as usize));
                borrowers.len() - 1
            };
            let parent = plan.parent.map(|parent| parent as u32);
            // Nobody above could lend it what its own is short of.
            let ceil_is_own = parent.is_none() && plan.ceil.is_some_and(|ceil| plan.own == Own::Rate(ceil));
            classes.push(Class {
                mode: Mode::CanSend,
                active: 0,
                priority: plan.priority,
                borrows: plan.borrows && parent.is_some(),
                isolated: plan.isolated,
                level: level as u8,
                parent,
                place: levels[level].len() as u32,
                sibling: plan.parent.map_or(0, |parent| id as u32 - children[parent].0),
                first_child,
                content: content as u32,
                own: match plan.own {
                    Own::Everything => Bound::None,
                    Own::Rate(tokens) => Bound::Bucket(Bucket::new(tokens.rate, tokens.burst)),
                    Own::Nothing => Bound::Closed,
                },
                ceil: plan.ceil.filter(|_| !ceil_is_own).map(|tokens| Bucket::new(tokens.rate, tokens.burst)),
                ceil_is_own,
                tally: Tally::default(),
            });
            levels[level].push(id as u32);
        }
        Self {
            kind,
            link_layer: *link_layer,
            slack,
            events: Events::new(classes.len()),
            lenders: levels.iter().map(|level| Waiting::new(level.len())).collect(),
            indices: plans.iter().map(|plan| plan.index).collect(),
            classes,
            leaves,
            borrowers,
            levels,
            backlog: Backlog::default(),
        }
    }

    /// Hands a packet to the queue of leaf `id`.
    pub(crate) fn enqueue(&mut self, id: usize, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        let content = self.classes[id].content as usize;
        self.leaves[content].queue.enqueue(now, packet, drops);
        let ready = self.account(content, now);
        self.join_or_leave(id, ready, now);
    }

    pub(crate) fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        while let Some(id) = self.events.due(now) {
            if self.classes[id].active == 0 {
                self.look_at(id, now);
            } else {
                self.judge(id, now);
            }
        }
        loop {
            let level = self.lenders.iter().position(|waiting| waiting.priorities != 0)?;
            let priority = self.lenders[level].priorities.trailing_zeros() as usize;
            let id = self.pick(level, priority);
            let content = self.classes[id].content as usize;
            let packet = self.leaves[content].queue.dequeue(now, drops);
            let ready = self.account(content, now);
            if let Some(packet) = packet {
                let bytes = packet.meta().ip_bytes();
                let wire = self.link_layer.on_wire(bytes);
                self.spend_turn(id, level, priority, wire);
                self.charge(id, level, now, bytes, wire);
                self.join_or_leave(id, ready, now);
                return Some(packet);
            }
            self.join_or_leave(id, ready, now);
        }
    }

    /// `now` while a class can send, or else when the first class changes, which may make nothing ready yet.
    pub(crate) fn next_ready(&self, now: Instant) -> Option<Instant> {
        if self.lenders.iter().any(|waiting| waiting.priorities != 0) { Some(now) } else { self.events.first() }
    }

    pub(crate) const fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// The queue of a leaf may hold more or less than before; returns when it has something to send.
    #[inline]
    fn account(&mut self, content: usize, now: Instant) -> Option<Instant> {
        let leaf = &mut self.leaves[content];
        let (after, ready) = leaf.queue.standing(now);
        let before = core::mem::replace(&mut leaf.held, after);
        let sum = |all: u64, before: u64, after: u64| all + after - before;
        self.backlog = Backlog {
            packets: PacketCount::new(sum(
                self.backlog.packets.as_u64(),
                before.packets.as_u64(),
                after.packets.as_u64(),
            )),
            bytes: ByteCount::new(sum(self.backlog.bytes.as_u64(), before.bytes.as_u64(), after.bytes.as_u64())),
        };
        ready
    }

    /// Asks the queue of leaf `id` whether it has something to send.
    fn look_at(&mut self, id: usize, now: Instant) {
        let ready = self.leaves[self.classes[id].content as usize].queue.next_ready(now);
        self.join_or_leave(id, ready, now);
    }

    /// Leaf `id`, which has something to send at `ready`, joins or leaves those that wait for a turn.
    #[inline]
    fn join_or_leave(&mut self, id: usize, ready: Option<Instant>, now: Instant) {
        let awake = ready.is_some_and(|ready| ready <= now);
        let class = &self.classes[id];
        if awake != (class.active == 0) && (awake || ready.is_none() && !self.events.has(id)) {
            // As before.
            return;
        }
        self.wake_or_rest(id, ready, now);
    }

    fn wake_or_rest(&mut self, id: usize, ready: Option<Instant>, now: Instant) {
        let awake = ready.is_some_and(|ready| ready <= now);
        let class = &mut self.classes[id];
        if awake && class.active == 0 {
            class.active = 1 << class.priority;
            self.settle(id, now);
            self.attach(id, self.classes[id].active, now);
        } else if !awake {
            if class.active != 0 {
                self.detach(id, self.classes[id].active);
                self.classes[id].active = 0;
            }
            match ready {
                Some(ready) => self.events.set(id, ready),
                None => self.events.cancel(id),
            }
        }
    }

    /// What the class may do at `now`, and when it may do more.
    #[inline]
    fn mode_at(&self, id: usize, now: Instant) -> (Mode, Option<Instant>) {
        let class = &self.classes[id];
        if class.owes_nothing(now) {
            return (Mode::CanSend, None);
        }
        if let Some(ceil) = &class.ceil
            && !ceil.conforms(now, self.slack.hysteresis && class.mode != Mode::CannotSend)
        {
            return (Mode::CannotSend, Some(ceil.ready_at()));
        }
        let refused = if class.borrows { Mode::MayBorrow } else { Mode::CannotSend };
        match &class.own {
            Bound::None => (Mode::CanSend, None),
            Bound::Bucket(own) if own.conforms(now, self.slack.hysteresis && class.mode == Mode::CanSend) => {
                (Mode::CanSend, None)
            }
            Bound::Bucket(own) => (refused, Some(own.ready_at())),
            Bound::Closed => (refused, None),
        }
    }

    /// Gives a class that is in no set the mode that it has by now.
    fn settle(&mut self, id: usize, now: Instant) {
        self.settle_as(id, self.mode_at(id, now));
    }

    fn settle_as(&mut self, id: usize, (mode, until): (Mode, Option<Instant>)) {
        let class = &mut self.classes[id];
        class.tally.overlimits += u64::from(mode == Mode::CannotSend && class.mode != Mode::CannotSend);
        class.mode = mode;
        match until {
            Some(until) if class.active != 0 => {
                let since_start = until.since(Instant::ZERO).round_up_to(self.slack.timer);
                self.events.set(id, Instant::ZERO.saturating_add(since_start));
            }
            _ if class.is_leaf() && class.active == 0 => {}
            _ => self.events.cancel(id),
        }
    }

    /// Looks at the tokens of a class, which may change its mode and so what it offers to whom.
    #[inline]
    fn judge(&mut self, id: usize, now: Instant) {
        let class = &self.classes[id];
        if class.mode == Mode::CanSend && class.owes_nothing(now) && !self.events.has(id) {
            return;
        }
        self.judge_in_full(id, now);
    }

    fn judge_in_full(&mut self, id: usize, now: Instant) {
        let class = &self.classes[id];
        let (before, active) = (class.mode, class.active);
        let judged = self.mode_at(id, now);
        if judged == (before, None) && !self.events.has(id) {
            return;
        }
        if judged.0 == before || active == 0 {
            self.settle_as(id, judged);
        } else {
            self.detach(id, active);
            self.settle_as(id, judged);
            self.attach(id, active, now);
        }
    }

    /// Offers what waits at the priorities of `mask` below a class: to the line, or to the class above.
    fn attach(&mut self, mut id: usize, mut mask: u8, now: Instant) {
        loop {
            let class = &self.classes[id];
            match (class.mode, class.parent) {
                (Mode::CanSend, _) => {
                    self.lenders[usize::from(class.level)].insert(class.place as usize, mask);
                    return;
                }
                (Mode::MayBorrow, Some(parent)) => {
                    let sibling = class.sibling as usize;
                    id = parent as usize;
                    let content = self.classes[id].content as usize;
                    mask = self.borrowers[content].insert(sibling, mask);
                    if mask == 0 {
                        return;
                    }
                    let idle = self.classes[id].active == 0;
                    self.classes[id].active |= mask;
                    if idle {
                        self.settle(id, now);
                    }
                }
                _ => return,
            }
        }
    }

    /// Takes back what [`Sharing::attach`] offers.
    fn detach(&mut self, mut id: usize, mut mask: u8) {
        loop {
            let class = &self.classes[id];
            match (class.mode, class.parent) {
                (Mode::CanSend, _) => {
                    self.lenders[usize::from(class.level)].remove(class.place as usize, mask);
                    return;
                }
                (Mode::MayBorrow, Some(parent)) => {
                    let sibling = class.sibling as usize;
                    id = parent as usize;
                    let content = self.classes[id].content as usize;
                    mask = self.borrowers[content].remove(sibling, mask);
                    if mask == 0 {
                        return;
                    }
                    self.classes[id].active &= !mask;
                    if self.classes[id].active == 0 {
                        self.events.cancel(id);
                    }
                }
                _ => return,
            }
        }
    }

    /// The leaf whose turn it is among those that send at this level and priority.
    ///
    /// When each child of a class has had its turn, the class beside it is next: excess is shared by the quanta of leaves.
    fn pick(&mut self, level: usize, priority: usize) -> usize {
        'round: loop {
            let turns = &mut self.lenders[level].turns[priority];
            let Some(place) = turns.current() else { continue };
            let mut id = self.levels[level][place] as usize;
            while !self.classes[id].is_leaf() {
                let class = &self.classes[id];
                match self.borrowers[class.content as usize].turns[priority].current() {
                    Some(sibling) => id = class.first_child as usize + sibling,
                    None => {
                        self.pass(id, level, priority);
                        continue 'round;
                    }
                }
            }
            let slot = self.deficit_slot(level);
            let leaf = &mut self.leaves[self.classes[id].content as usize];
            if leaf.deficits[slot] >= 0 {
                return id;
            }
            // Its packets are larger than its quantum: it sits out rounds until they are paid for.
            leaf.deficits[slot] += leaf.quantum;
            self.pass(id, level, priority);
        }
    }

    /// A class that sends at `level` has had its turn.
    fn pass(&mut self, id: usize, level: usize, priority: usize) {
        let class = &self.classes[id];
        if usize::from(class.level) == level {
            self.lenders[level].turns[priority].pass(class.place as usize);
        } else {
            let parent = class.parent.expect("who sends at a level above its own has borrowed");
            let content = self.classes[parent as usize].content as usize;
            self.borrowers[content].turns[priority].pass(class.sibling as usize);
        }
    }

    /// Where a leaf keeps what it may send in a turn at `level`.
    fn deficit_slot(&self, level: usize) -> usize {
        if level == 0 { 0 } else { self.levels.len() - level }
    }

    fn spend_turn(&mut self, id: usize, level: usize, priority: usize, wire: WireBytes) {
        let slot = self.deficit_slot(level);
        let leaf = &mut self.leaves[self.classes[id].content as usize];
        let deficit = &mut leaf.deficits[slot];
        *deficit = deficit.saturating_sub_unsigned(wire.as_u64());
        if *deficit < 0 {
            *deficit += leaf.quantum;
            self.pass(id, level, priority);
        }
    }

    /// Charges a packet of leaf `id`, which the class at `level` above it has lent, or the leaf itself had.
    fn charge(&mut self, id: usize, level: usize, now: Instant, bytes: ByteCount, wire: WireBytes) {
        let mut next = Some(id as u32);
        let (mut lent, mut apart) = (false, false);
        while let Some(id) = next {
            let class = &mut self.classes[id as usize];
            class.tally.packets += 1;
            class.tally.bytes += bytes.as_u64();
            class.tally.wire_bytes += wire.as_u64();
            if !apart {
                class.tally.at = now;
                if usize::from(class.level) == level {
                    class.tally.lent += 1;
                    lent = true;
                }
                if let (true, Bound::Bucket(own)) = (lent, &mut class.own) {
                    own.charge(now, wire);
                }
                class.tally.borrowed += u64::from(!lent);
                if let Some(ceil) = &mut class.ceil {
                    ceil.charge(now, wire);
                }
                apart = lent && class.isolated;
            }
            next = class.parent;
            self.judge(id as usize, now);
        }
    }

    /// Shows what `tc -s class` shows of each class, and the counters of its queue.
    pub(crate) fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        let mut shown: Vec<(u32, usize)> =
            self.indices.iter().enumerate().filter_map(|(id, index)| Some(((*index)?, id))).collect();
        shown.sort_unstable();
        for (index, id) in shown {
            let class = &self.classes[id];
            let path = format!("classes.{index}");
            let tally = &class.tally;
            let own = if let Bound::Bucket(own) = &class.own { Some(own) } else { None };
            let tokens = |bucket: Option<&Bucket>| bucket.map_or((0, 0), |bucket| bucket.tokens(tally.at));
            let ceil = if class.ceil_is_own { own } else { class.ceil.as_ref() };
            let ((tokens_bytes, debt_bytes), (ceil_bytes, ceil_debt_bytes)) = (tokens(own), tokens(ceil));
            for (name, value) in [
                ("sent_packets", tally.packets),
                ("sent_bytes", tally.bytes),
                ("sent_wire_bytes", tally.wire_bytes),
                ("lent", tally.lent),
                ("borrowed", tally.borrowed),
                ("overlimits", tally.overlimits),
                ("tokens_bytes", tokens_bytes),
                ("debt_bytes", debt_bytes),
                ("ceil_tokens_bytes", ceil_bytes),
                ("ceil_debt_bytes", ceil_debt_bytes),
            ] {
                visit(Counter { path: &path, kind: self.kind, name, value });
            }
            if class.is_leaf() {
                Counter::below(&format!("{path}.queue"), &*self.leaves[class.content as usize].queue, visit);
            }
        }
    }
}
