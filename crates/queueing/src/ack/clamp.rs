//! Receive-window clamping: the window that a receiver advertises is lowered on its way, so that the sender never has more
//! in flight than the line and a small queue hold.
//!
//! Published: Karandikar, Kalyanaraman, Bagal, Packer 2000 (TCP rate control): window = rate x round-trip time, shared among
//! the active flows.
//!
//! Rules, for every segment with ACK but without RST, and for the SYN, pure ACK or not, as it leaves:
//!
//! - The window is lowered to the target, never raised; the target is at least one segment of `mss` bytes, so that a sender with
//!   Nagle's algorithm (RFC 9293, section 3.7.4) always has a whole one to send.
//! - *A share is of whole segments, and one more.* A sender that avoids silly windows (RFC 9293, section 3.8.6.2.1) does not use the rest
//!   of a segment, and of what it has in flight a segment may be held unacknowledged by the receiver (RFC 1122, section 4.2.3.2):
//!   eight flows that share ten segments would stop and wait for the receiver's timer.
//! - *Windows open slowly.* With [`Growth`] the round-trip time of a flow's target is at first what its handshake took from here to the server
//!   and from here to the client, and grows by a small share of the time that passes, up to the one configured. So slow start ends before the
//!   line has a queue at its far end, and what windows grow by afterwards fits into a shaper's margin. A handshake that was too quick, or a
//!   path that became longer, costs rate for seconds and not for good. On a path that alone takes longer than configured, as over a satellite, a
//!   flow comes to a quarter more than its handshake took. A SYN that was sent twice, or that came from the far end, measures nothing.
//! - *What was advertised is not taken back* (RFC 9293, section 3.8.6): while the right edge that the sender knows lies beyond the
//!   target, the window closes only as fast as acknowledgements come. A receiver that takes its window back is not corrected.
//! - *The unit is the flow's* (RFC 7323, section 2): the shift is that of its SYN; a window is rounded up to the unit. A SYN-ACK settles
//!   it for both ends, and so does a SYN without the option or with a shift of 0. A SYN that offers another shift may be refused in
//!   the other direction: what the SYN-ACK says there is asked of a [`super::Witness`]. Where none has seen it, the shift counts as agreed
//!   once an acknowledgement steps over the window before it, read without the shift, by more than a segment. With the usual
//!   shifts (6 and up) one of two segments does; a small shift may stay unproved until a loss is repaired. Until then, and for a
//!   flow whose SYN was not seen, windows stay as they are.
//! - *A duplicate stays a duplicate and an update an update* (RFC 5681, section 2: the same number and the same window): what the
//!   receiver advertised twice leaves twice as the same, whatever the target is by then; what it changed leaves changed, by one
//!   unit where the target alone would make both the same.
//! - What has unknown options is left alone: one of them may sign the header (RFC 5925, RFC 2385).
//! - A damaged segment is left alone and says nothing: its receiver drops it.
//!
//! A flow is active for [`ACTIVE_FOR`] after it has acknowledged something new.
//! Cost: one table look-up a TCP segment, and for one with payload of a flow that is known a sum over that. Memory: an entry for each flow whose
//! SYN was seen lately, of 131 072 at most; a flow that has not been seen for [`FORGOTTEN_AFTER`] counts as unknown.

use std::collections::VecDeque;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{FlowId, Packet, Protocol, Segment, SeqNumber, TcpFlags};
use lastmile_units::{BitRate, ByteCount, Duration, Instant, Ratio};

use super::recent::Recent;
use crate::catalogue::Above;
use crate::classify::{Condition, Match, Matcher as _};
use crate::discipline::{Counter, answers_of_below};
use crate::spec::{Problem, Spec};
use crate::{Backlog, Discipline, DropSink, Environment, Node};

/// How long a flow counts as active after it has acknowledged something new; it may count up to twice as long.
pub const ACTIVE_FOR: Duration = Duration::from_s(1);
/// How long the window scale of a silent flow is remembered.
pub const FORGOTTEN_AFTER: Duration = Duration::from_s(600);
/// On a path that is longer than the configured round-trip time, the part of its own that a flow may wait beside it.
const LONG_PATH_QUEUE: u64 = 4;
/// RFC 7323, section 2.3: a larger shift counts as this.
const LARGEST_SHIFT: u8 = 14;

/// What a flow may have in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// So many bytes, each flow.
    Window(ByteCount),
    /// What `rate` delivers in `rtt`, all active flows together, in equal shares of whole segments, and for each flow a segment
    /// more.
    Shared {
        /// Rate of payload.
        rate: BitRate,
        /// Round-trip time, with as much waiting as is wanted.
        rtt: Duration,
        /// How a flow comes to that round-trip time. `None`: it has it from its first acknowledgement on.
        growth: Option<Growth>,
    },
}

/// A flow's round-trip time, as its target has it, begins with what its handshake took and grows from there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Growth {
    /// Added to the time of the handshake, whose packets are short: what full packets take.
    pub slack: Duration,
    /// Growth per time. All flows together grow by this share of the rate.
    pub share: Ratio,
}

/// How windows are clamped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// What a flow may have in flight.
    pub target: Target,
    /// Payload of a full segment: no window is lowered below.
    pub mss: ByteCount,
    /// What is never touched.
    pub exempt: Match,
}

/// A clamp behind a queue: windows are lowered in what leaves it.
pub struct WindowClamp<D> {
    queue: D,
    environment: Environment,
    target: Target,
    mss: ByteCount,
    exempt: Condition,
    flows: Recent<Flow>,
    /// Every active flow once, in the order of the time since which it waits for a look.
    active: VecDeque<(Instant, FlowId)>,
    stats: Stats,
}

/// What is known of a flow.
#[derive(Debug)]
struct Flow {
    scale: Scale,
    last_advance: Instant,
    active: bool,
    /// Bytes that the SYN allowed from the first acknowledgement on; the SYN of a client has no number to count from.
    syn_window: u64,
    told: Option<Told>,
    opening: Opening,
}

/// What the handshake says of the round-trip time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Opening {
    /// The SYN left at this time, once.
    Asked(Instant),
    /// The first acknowledgement left at `at`, so long after the SYN.
    Took { rtt: Duration, at: Instant },
    /// Nothing.
    Unknown,
}

/// The unit of a flow's windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scale {
    Agreed(u8),
    /// Not known whether agreed.
    Offered(Offer),
}

/// What a SYN offers, and what speaks for its having been refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Offer {
    shift: u8,
    /// Of the SYN: its number, and how many bytes it carries.
    seq: SeqNumber,
    data: u16,
    /// The highest right edge if it was refused; `None` before anything followed the SYN.
    highest: Option<SeqNumber>,
}

/// What the sender was told last.
#[derive(Clone, Copy, Debug)]
struct Told {
    ack: SeqNumber,
    /// By a SYN, whose window is in bytes whatever the unit of the flow.
    by_syn: bool,
    /// The field as the receiver sent it.
    field: u16,
    /// The field as it left.
    left: u16,
    /// The highest right edge so far.
    edge: SeqNumber,
}

impl<D> WindowClamp<D> {
    /// A clamp behind `queue`. `None`: a segment of no bytes, or of more than an IP packet holds.
    #[must_use]
    pub fn new(config: &Config, environment: &Environment, queue: D) -> Option<Self> {
        if config.mss == ByteCount::ZERO || config.mss.as_u64() > u64::from(u16::MAX) {
            return None;
        }
        Some(Self {
            queue,
            environment: environment.clone(),
            target: config.target,
            mss: config.mss,
            exempt: Condition::new(&config.exempt, environment),
            flows: Recent::new(FORGOTTEN_AFTER),
            active: VecDeque::new(),
            stats: Stats::default(),
        })
    }

    /// What a flow with this handshake may have in flight now, in bytes.
    fn target(&mut self, now: Instant, opening: Opening) -> u64 {
        self.look_for_idle(now);
        let bytes = match self.target {
            Target::Window(window) => window.as_u64(),
            Target::Shared { rate, rtt, growth } => {
                let own = growth.and_then(|growth| opening.allows(growth, rtt, now));
                let rtt = own.unwrap_or(rtt);
                let in_flight = u128::from(rate.as_bps()) * u128::from(rtt.as_ps()) / (8 * 1_000_000_000_000);
                let flows = self.active.len().max(1) as u64;
                let share = u64::try_from(in_flight).unwrap_or(u64::MAX) / flows;
                let mss = self.mss.as_u64();
                share.div_ceil(mss).saturating_add(1).saturating_mul(mss)
            }
        };
        bytes.max(self.mss.as_u64())
    }

    /// Looks at the flows that have waited for it, and takes those off that are no longer active.
    fn look_for_idle(&mut self, now: Instant) {
        while let Some(&(since, id)) = self.active.front()
            && since.saturating_add(ACTIVE_FOR) <= now
        {
            self.active.pop_front();
            let Some(flow) = self.flows.get_mut(&id) else { continue };
            flow.active = flow.last_advance.saturating_add(ACTIVE_FOR) > now;
            if flow.active {
                self.active.push_back((now, id));
            }
        }
    }

    /// Lowers the window of a packet that leaves.
    fn clamp<P: Packet>(&mut self, now: Instant, packet: &mut P) {
        let meta = packet.meta();
        if meta.protocol != Protocol::Tcp {
            self.stats.passed_not_tcp += 1;
            return;
        }
        if meta.is_damaged() {
            self.stats.passed_damaged += 1;
            return;
        }
        let untouched = if meta.options().has_unknown() {
            self.stats.passed_unknown_options += 1;
            true
        } else if self.exempt.matches(now, packet) {
            self.stats.passed_exempt += 1;
            true
        } else {
            false
        };
        let (id, flags, came) = (meta.flow, meta.flags, meta.window);
        let opens = flags.contains(TcpFlags::SYN);
        if !opens && (!flags.contains(TcpFlags::ACK) || flags.contains(TcpFlags::RST)) {
            self.stats.passed_flags += 1;
            return;
        }
        if !opens && self.flows.get(now, &id).is_none() {
            self.stats.passed_unknown_scale += u64::from(!untouched);
            return;
        }
        let Some(segment) = packet.segment() else {
            self.stats.passed_damaged += 1;
            return;
        };
        let left =
            if opens { self.open(now, segment, untouched) } else { self.lowered(now, packet, segment, untouched) };
        if left != came {
            packet.set_window(left);
        }
    }

    /// The window with which a segment leaves whose flow is known.
    fn lowered<P: Packet>(&mut self, now: Instant, packet: &P, segment: Segment<'_>, untouched: bool) -> u16 {
        let flow = self.flows.hear(now, segment.flow, || unreachable!("it is known"));
        if let Opening::Asked(at) = flow.opening {
            flow.opening = Opening::Took { rtt: now.since(at), at: now };
        }
        if flow.told.is_none_or(|told| segment.ack.after(told.ack)) {
            flow.last_advance = now;
            if !flow.active {
                flow.active = true;
                self.active.push_back((now, segment.flow));
            }
        }
        let opening = flow.opening;
        let target = self.target(now, opening);
        let flow = self.flows.get_mut(&segment.flow).expect("just found");
        let answered = match flow.scale {
            // The SYN-ACK has passed before anything follows the SYN, or it is not seen at all.
            Scale::Offered(Offer { seq, data, highest: None, .. }) => packet
                .key(&*self.environment.flows)
                .and_then(|key| self.environment.handshakes.scales(now, &key, seq, data)),
            _ => None,
        };
        if let Some(scales) = answered {
            self.stats.answered += 1;
            flow.scale = Scale::Agreed(if scales { flow.shift() } else { 0 });
        }
        let agreed = flow.agreed(segment, self.mss);
        if !agreed && !untouched {
            self.stats.passed_unconfirmed_scale += 1;
        }
        let touched = !untouched && agreed;
        let left = if touched { flow.lowered(segment, target, &mut self.stats) } else { segment.window };
        flow.note(segment, left);
        left
    }

    /// Begins a flow with its SYN, whose own window is never scaled (RFC 7323, section 2.2); returns the window with which it leaves.
    fn open(&mut self, now: Instant, syn: Segment<'_>, untouched: bool) -> u16 {
        if untouched {
            // Its options are not known for sure: nor is the scale.
            self.flows.forget(&syn.flow);
            return syn.window;
        }
        let target = self.target(now, Opening::Unknown);
        let answers = syn.flags.contains(TcpFlags::ACK);
        let scale = match syn.options().syn_options().window_scale {
            // Refused or not, the unit is a byte.
            None | Some(0) => Scale::Agreed(0),
            Some(shift) if answers => Scale::Agreed(shift.min(LARGEST_SHIFT)),
            Some(shift) => {
                let (shift, data) = (shift.min(LARGEST_SHIFT), syn.payload_len());
                Scale::Offered(Offer { shift, seq: syn.seq, data, highest: None })
            }
        };
        self.stats.seen += 1;
        let left = u16::try_from(target).map_or(syn.window, |target| target.min(syn.window));
        self.stats.clamped += u64::from(left != syn.window);
        let syn_window = u64::from(left);
        let edge = edge(syn.ack, syn_window);
        let told = answers.then_some(Told { ack: syn.ack, by_syn: true, field: syn.window, left, edge });
        let before = self.flows.get_mut(&syn.flow);
        let repeated = before.as_ref().is_some_and(|flow| flow.told.is_none());
        let opening = if answers || repeated { Opening::Unknown } else { Opening::Asked(now) };
        // A flow that is opened anew keeps its place among the active.
        let active = before.is_some_and(|flow| flow.active);
        self.flows.put(now, syn.flow, Flow { scale, last_advance: now, active, syn_window, told, opening });
        left
    }
}

/// The right edge of a window. No window reaches half the number space.
fn edge(ack: SeqNumber, window: u64) -> SeqNumber {
    ack.add(u32::try_from(window).unwrap_or(u32::MAX))
}

impl Opening {
    /// The round-trip time that a flow may have by now, in the end `configured` or, on a longer path, its own and [`LONG_PATH_QUEUE`]; `None`
    /// where nothing is known of it.
    fn allows(self, growth: Growth, configured: Duration, now: Instant) -> Option<Duration> {
        let Self::Took { rtt, at } = self else { return None };
        let grown = Duration::from_ps(growth.share.of(now.since(at).as_ps()));
        let own = rtt + growth.slack;
        Some((own + grown).min(configured.max(own + own / LONG_PATH_QUEUE)))
    }
}

impl Flow {
    /// True when the unit of the flow's windows is known; settles it where this segment proves it.
    fn agreed(&mut self, meta: Segment<'_>, mss: ByteCount) -> bool {
        let Scale::Offered(offer @ Offer { shift, highest, .. }) = self.scale else { return true };
        // More than a segment beyond: a probe of a zero window may lie beyond it (RFC 9293, section 3.8.6.1).
        let slack = u32::try_from(mss.as_u64()).unwrap_or(u32::MAX);
        if highest.is_some_and(|edge| meta.ack.after(edge.add(slack))) {
            self.scale = Scale::Agreed(shift);
            return true;
        }
        let allowed = edge(meta.ack, u64::from(meta.window).max(if highest.is_none() { self.syn_window } else { 0 }));
        self.scale = Scale::Offered(Offer { highest: Some(later(highest, allowed)), ..offer });
        false
    }

    const fn shift(&self) -> u8 {
        match self.scale {
            Scale::Agreed(shift) | Scale::Offered(Offer { shift, .. }) => shift,
        }
    }

    /// The field with which the segment leaves: at most its own.
    fn lowered(&self, meta: Segment<'_>, target: u64, stats: &mut Stats) -> u16 {
        stats.seen += 1;
        let before = self.told.filter(|told| told.ack == meta.ack && (!told.by_syn || self.shift() == 0));
        if let Some(told) = before
            && told.field == meta.window
        {
            stats.clamped += u64::from(told.left != meta.window);
            return told.left;
        }
        let unit = 1 << self.shift();
        let advertised = u64::from(meta.window) * unit;
        let edge = self.told.map_or_else(|| edge(meta.ack, self.syn_window), |told| told.edge);
        let promised = if edge.after(meta.ack) { u64::from(edge.distance_from(meta.ack)) } else { 0 };
        stats.kept_open += u64::from(promised.min(advertised) > target);
        let window = advertised.min(target.max(promised));
        let mut field = u16::try_from(window.div_ceil(unit)).unwrap_or(meta.window).min(meta.window);
        if before.is_some_and(|told| told.left == field) && field < meta.window {
            stats.kept_apart += 1;
            field += 1;
        }
        stats.clamped += u64::from(field != meta.window);
        field
    }

    /// Takes note of what the sender is told.
    fn note(&mut self, meta: Segment<'_>, left: u16) {
        let allowed = edge(meta.ack, u64::from(left) << self.shift());
        let known = self.told.map_or_else(|| edge(meta.ack, self.syn_window), |told| told.edge);
        let edge = later(Some(known), allowed);
        self.told = Some(match self.told {
            Some(told) if meta.ack.before(told.ack) => Told { edge, ..told },
            _ => Told { ack: meta.ack, by_syn: false, field: meta.window, left, edge },
        });
    }
}

fn later(one: Option<SeqNumber>, other: SeqNumber) -> SeqNumber {
    one.filter(|one| one.after(other)).unwrap_or(other)
}

impl<P: Packet, D: Discipline<P>> Discipline<P> for WindowClamp<D> {
    fn enqueue(&mut self, now: Instant, packet: P, drops: &mut dyn DropSink<P>) {
        self.queue.enqueue(now, packet, drops);
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        let mut packet = self.queue.dequeue(now, drops)?;
        self.clamp(now, &mut packet);
        Some(packet)
    }

    fn dequeue_urgent(&mut self, now: Instant, drops: &mut dyn DropSink<P>) -> Option<P> {
        let mut packet = self.queue.dequeue_urgent(now, drops)?;
        self.clamp(now, &mut packet);
        Some(packet)
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        self.stats.show(visit);
        Counter::below("queue", &self.queue, visit);
    }

    answers_of_below!(self => self.queue);
}

/// What a clamp counts.
#[derive(Clone, Debug, Default)]
struct Stats {
    seen: u64,
    clamped: u64,
    kept_open: u64,
    kept_apart: u64,
    answered: u64,
    passed_not_tcp: u64,
    passed_flags: u64,
    passed_unknown_options: u64,
    passed_damaged: u64,
    passed_unknown_scale: u64,
    passed_unconfirmed_scale: u64,
    passed_exempt: u64,
}

impl Stats {
    fn show(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        let counts = [
            ("seen", self.seen),
            ("clamped", self.clamped),
            ("kept_open", self.kept_open),
            ("kept_apart", self.kept_apart),
            ("answered", self.answered),
            ("passed_not_tcp", self.passed_not_tcp),
            ("passed_flags", self.passed_flags),
            ("passed_unknown_options", self.passed_unknown_options),
            ("passed_damaged", self.passed_damaged),
            ("passed_unknown_scale", self.passed_unknown_scale),
            ("passed_unconfirmed_scale", self.passed_unconfirmed_scale),
            ("passed_exempt", self.passed_exempt),
        ];
        for (name, value) in counts {
            visit(Counter { path: "", kind: "window-clamp", name, value });
        }
    }
}

impl Above for Config {
    fn check(&self, _queue: &Spec, _link_layer: &LinkLayer) -> Result<(), Problem> {
        Ok(self.exempt.check()?)
    }

    fn over<P: Packet + Send + 'static>(
        &self,
        queue: impl Discipline<P> + Send + 'static,
        environment: &Environment,
    ) -> Result<Node<P>, Problem> {
        Ok(Box::new(WindowClamp::new(self, environment, queue).ok_or(Problem::SegmentSize(self.mss))?))
    }
}

#[cfg(test)]
mod tests;
