//! Receive-window clamping: lowers the window that a receiver advertises, so that the sender never
//! has more in flight than the line and a small queue hold.
//!
//! Published: Karandikar, Kalyanaraman, Bagal, Packer 2000 (TCP rate control): window = rate x
//! round-trip time, shared among the active flows.
//!
//! Rules, for every departing segment with ACK but without RST, and for the SYN, pure ACK or not:
//!
//! - The window is lowered to the target, never raised. The target is at least one segment of `mss`
//!   bytes, so that a sender with Nagle's algorithm (RFC 9293, section 3.7.4) always has a whole
//!   one to send.
//! - *A share is of whole segments, plus one.* A sender that avoids silly windows (RFC 9293,
//!   section 3.8.6.2.1) does not use a partial segment, and the receiver may hold one segment
//!   unacknowledged (RFC 1122, section 4.2.3.2): eight flows that share ten segments would stop and
//!   wait for the receiver's timer.
//! - *Windows open slowly.* With [`Growth`] the round-trip time of a flow's target starts at the
//!   time of its handshake, from here to the server plus from here to the client, and grows by a
//!   small share of elapsed time, up to the configured value. Slow start therefore ends before the
//!   far end of the line has a queue, and later growth of windows fits into a shaper's margin. A
//!   handshake that was too quick, or a path that became longer, costs rate for seconds and not
//!   permanently. On a path longer than configured, such as a satellite's, a flow reaches a quarter
//!   more than its handshake time. A retransmitted SYN, or one from the far end, measures nothing.
//! - *An advertised window is not taken back* (RFC 9293, section 3.8.6): while the right edge that
//!   the sender knows exceeds the target, the window closes only as fast as acknowledgements
//!   arrive. A receiver that takes its window back is not corrected.
//! - *The unit is the flow's* (RFC 7323, section 2): the shift is that of its SYN; a window is
//!   rounded up to the unit. A SYN-ACK decides for both ends, and so does a SYN without the option
//!   or with a shift of 0. A SYN that offers another shift may be refused in the other direction: a
//!   [`super::Witness`] reports that SYN-ACK. Without a witness, the shift counts as agreed once an
//!   acknowledgement exceeds the previous window, read without the shift, by more than a segment.
//!   With the usual shifts (6 and up) one of two segments does; a small shift may stay unproved
//!   until a loss is repaired. Until then, and for a flow whose SYN was not seen, windows stay
//!   unchanged.
//! - *A duplicate stays a duplicate and an update an update* (RFC 5681, section 2: equal number and
//!   equal window). Two equal windows of the receiver depart as equal windows, even if the target
//!   has changed; two different ones depart as different windows, by one unit where the target
//!   alone would make them equal.
//! - Segments with unknown options are not changed: one of the options may sign the header (RFC
//!   5925, RFC 2385).
//! - A damaged segment is not changed and not read: its receiver drops it.
//!
//! A flow is active for [`ACTIVE_FOR`] after it has acknowledged new data.
//! Cost: one table look-up a TCP segment, and a checksum over the payload of a known flow's
//! segment. Memory: an entry for each flow with a recent SYN, at most 131 072; a flow that has not
//! been seen for [`FORGOTTEN_AFTER`] counts as unknown.

mod stats;

use std::collections::VecDeque;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{FlowId, Packet, Protocol, Segment, SeqNumber, TcpFlags};
use lastmile_units::{BitRate, ByteCount, Duration, Instant, Ratio};

use super::recent_flows::RecentFlows;
use crate::catalogue::Above;
use crate::classify::{Condition, Match, Matcher as _};
use crate::discipline::{Counter, answers_of_below};
use crate::spec::{Problem, Spec};
use crate::{Backlog, Discipline, DropSink, Environment, Node};
use stats::Stats;

/// Time for which a flow counts as active after it has acknowledged new data; it may count up to
/// twice as long.
pub const ACTIVE_FOR: Duration = Duration::from_s(1);
/// Time for which the window scale of a silent flow is remembered.
pub const FORGOTTEN_AFTER: Duration = Duration::from_s(600);
/// On a path longer than the configured round-trip time: the divisor of the flow's own round-trip
/// time that gives its queueing delay.
const LONG_PATH_QUEUE: u64 = 4;
/// RFC 7323, section 2.3: a larger shift counts as this.
const LARGEST_SHIFT: u8 = 14;

/// Bytes that a flow may have in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// This many bytes for each flow.
    Window(ByteCount),
    /// The bytes that `rate` delivers in `rtt`, shared equally by all active flows in whole
    /// segments, plus one segment for each flow.
    Shared {
        /// Payload rate.
        rate: BitRate,
        /// Round-trip time, including the intended queueing delay.
        rtt: Duration,
        /// Growth of a flow's round-trip time towards `rtt`. `None`: `rtt` from its first
        /// acknowledgement on.
        growth: Option<Growth>,
    },
}

/// Growth of the round-trip time in a flow's target, which begins with the time of its handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Growth {
    /// Added to the time of the handshake, whose packets are short: the transmission time of full
    /// packets.
    pub slack: Duration,
    /// Growth per elapsed time. All flows together grow by this share of the rate.
    pub share: Ratio,
}

/// Parameters of a window clamp.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Bytes that a flow may have in flight.
    pub target: Target,
    /// Payload of a full segment: no window is lowered below it.
    pub mss: ByteCount,
    /// Packets that are never changed.
    pub exempt: Match,
}

/// A clamp behind a queue: it lowers windows in departing packets.
pub struct WindowClamp<D> {
    queue: D,
    environment: Environment,
    target: Target,
    mss: ByteCount,
    exempt: Condition,
    flows: RecentFlows<Flow>,
    /// Every active flow once, in the order of the time of its last activity check.
    active: VecDeque<(Instant, FlowId)>,
    stats: Stats,
}

/// State of a flow.
#[derive(Debug)]
struct Flow {
    scale: Scale,
    last_advance: Instant,
    active: bool,
    /// Bytes that the SYN allowed from the first acknowledgement on; the SYN of a client has no
    /// acknowledgement number as their base.
    syn_window: u64,
    last_window: Option<LastWindow>,
    handshake: HandshakeTime,
}

/// Round-trip time known from the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HandshakeTime {
    /// The SYN departed at this time, and was not retransmitted.
    SynSent(Instant),
    /// The first acknowledgement departed at `at`, `rtt` after the SYN.
    Measured { rtt: Duration, at: Instant },
    /// Not known.
    Unknown,
}

/// The unit of a flow's windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Scale {
    Agreed(u8),
    /// Offered; agreement is unknown.
    Offered(Offer),
}

/// The offer of a SYN, and evidence about its refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Offer {
    shift: u8,
    /// The SYN's sequence number, and its bytes of data.
    seq: SeqNumber,
    data: u16,
    /// The highest right edge that the sender could have seen after a refusal; `None` before any
    /// segment after the SYN.
    highest: Option<SeqNumber>,
}

/// The last window sent to the sender.
#[derive(Clone, Copy, Debug)]
struct LastWindow {
    ack: SeqNumber,
    /// True if the window was in a SYN, whose window is in bytes whatever the unit of the flow.
    by_syn: bool,
    /// The window field as the receiver sent it.
    field: u16,
    /// The window field as it departed.
    departing: u16,
    /// The highest right edge so far.
    edge: SeqNumber,
}

impl<D> WindowClamp<D> {
    /// A clamp behind `queue`. `None`: an `mss` of zero bytes, or of more than an IP packet holds.
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
            flows: RecentFlows::new(FORGOTTEN_AFTER),
            active: VecDeque::new(),
            stats: Stats::default(),
        })
    }

    /// Bytes that a flow with this handshake may have in flight now.
    fn target(&mut self, now: Instant, handshake: HandshakeTime) -> u64 {
        self.remove_inactive(now);
        let bytes = match self.target {
            Target::Window(window) => window.as_u64(),
            Target::Shared { rate, rtt, growth } => {
                let own = growth.and_then(|growth| handshake.round_trip(growth, rtt, now));
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

    /// Checks the flows whose check is due, and removes those that are inactive.
    fn remove_inactive(&mut self, now: Instant) {
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

    /// Lowers the window of a departing packet.
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
        let is_exempt = if meta.options().has_unknown() {
            self.stats.passed_unknown_options += 1;
            true
        } else if self.exempt.matches(now, packet) {
            self.stats.passed_exempt += 1;
            true
        } else {
            false
        };
        let (id, flags, arrived) = (meta.flow, meta.flags, meta.window);
        let is_syn = flags.contains(TcpFlags::SYN);
        if !is_syn && (!flags.contains(TcpFlags::ACK) || flags.contains(TcpFlags::RST)) {
            self.stats.passed_flags += 1;
            return;
        }
        if !is_syn && self.flows.get(now, &id).is_none() {
            self.stats.passed_unknown_scale += u64::from(!is_exempt);
            return;
        }
        let Some(segment) = packet.segment() else {
            self.stats.passed_damaged += 1;
            return;
        };
        let departing = if is_syn {
            self.open_flow(now, segment, is_exempt)
        } else {
            self.lowered_window(now, packet, segment, is_exempt)
        };
        if departing != arrived {
            packet.set_window(departing);
        }
    }

    /// The departing window of a segment of a known flow.
    fn lowered_window<P: Packet>(&mut self, now: Instant, packet: &P, segment: Segment<'_>, is_exempt: bool) -> u16 {
        let flow = self.flows.get_or_create(now, segment.flow, || unreachable!("it is known"));
        if let HandshakeTime::SynSent(at) = flow.handshake {
            flow.handshake = HandshakeTime::Measured { rtt: now.since(at), at: now };
        }
        if flow.last_window.is_none_or(|last_window| segment.ack.after(last_window.ack)) {
            flow.last_advance = now;
            if !flow.active {
                flow.active = true;
                self.active.push_back((now, segment.flow));
            }
        }
        let handshake = flow.handshake;
        let target = self.target(now, handshake);
        let flow = self.flows.get_mut(&segment.flow).expect("just found");
        let answered = match flow.scale {
            // The SYN-ACK passes before any segment that follows the SYN, or is not seen at all.
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
        if !agreed && !is_exempt {
            self.stats.passed_unconfirmed_scale += 1;
        }
        let may_change = !is_exempt && agreed;
        let departing = if may_change { flow.lowered_window(segment, target, &mut self.stats) } else { segment.window };
        flow.record(segment, departing);
        departing
    }

    /// Creates a flow at its SYN, whose own window is never scaled (RFC 7323, section 2.2); returns
    /// the departing window.
    fn open_flow(&mut self, now: Instant, syn: Segment<'_>, is_exempt: bool) -> u16 {
        if is_exempt {
            // Its options cannot be trusted, so the scale is unknown.
            self.flows.forget(&syn.flow);
            return syn.window;
        }
        let target = self.target(now, HandshakeTime::Unknown);
        let answers = syn.flags.contains(TcpFlags::ACK);
        let scale = match syn.options().syn_options().window_scale {
            // The unit is a byte even if the offer was refused.
            None | Some(0) => Scale::Agreed(0),
            Some(shift) if answers => Scale::Agreed(shift.min(LARGEST_SHIFT)),
            Some(shift) => {
                let (shift, data) = (shift.min(LARGEST_SHIFT), syn.payload_len());
                Scale::Offered(Offer { shift, seq: syn.seq, data, highest: None })
            }
        };
        self.stats.seen += 1;
        let departing = u16::try_from(target).map_or(syn.window, |target| target.min(syn.window));
        self.stats.clamped += u64::from(departing != syn.window);
        let syn_window = u64::from(departing);
        let edge = edge(syn.ack, syn_window);
        let last_window =
            answers.then_some(LastWindow { ack: syn.ack, by_syn: true, field: syn.window, departing, edge });
        let before = self.flows.get_mut(&syn.flow);
        let repeated = before.as_ref().is_some_and(|flow| flow.last_window.is_none());
        let handshake = if answers || repeated { HandshakeTime::Unknown } else { HandshakeTime::SynSent(now) };
        // A flow that is opened again keeps its position among the active flows.
        let active = before.is_some_and(|flow| flow.active);
        self.flows.insert(now, syn.flow, Flow { scale, last_advance: now, active, syn_window, last_window, handshake });
        departing
    }
}

/// The right edge of a window. No window exceeds half the number space.
fn edge(ack: SeqNumber, window: u64) -> SeqNumber {
    ack.add(u32::try_from(window).unwrap_or(u32::MAX))
}

impl HandshakeTime {
    /// The round-trip time allowed to a flow at `now`. Its maximum is `configured`, or on a longer
    /// path the flow's own time and a [`LONG_PATH_QUEUE`]th of it. `None` if the handshake time is
    /// unknown.
    fn round_trip(self, growth: Growth, configured: Duration, now: Instant) -> Option<Duration> {
        let Self::Measured { rtt, at } = self else { return None };
        let grown = Duration::from_ps(growth.share.of(now.since(at).as_ps()));
        let own = rtt + growth.slack;
        Some((own + grown).min(configured.max(own + own / LONG_PATH_QUEUE)))
    }
}

impl Flow {
    /// True when the unit of the flow's windows is known. Sets it if this segment proves it.
    fn agreed(&mut self, meta: Segment<'_>, mss: ByteCount) -> bool {
        let Scale::Offered(offer @ Offer { shift, highest, .. }) = self.scale else { return true };
        // The margin of a segment covers a probe of a zero window, which may lie beyond it (RFC
        // 9293, section 3.8.6.1).
        let slack = u32::try_from(mss.as_u64()).unwrap_or(u32::MAX);
        if highest.is_some_and(|edge| meta.ack.after(edge.add(slack))) {
            self.scale = Scale::Agreed(shift);
            return true;
        }
        let allowed = edge(meta.ack, u64::from(meta.window).max(if highest.is_none() { self.syn_window } else { 0 }));
        self.scale = Scale::Offered(Offer { highest: Some(later_of(highest, allowed)), ..offer });
        false
    }

    const fn shift(&self) -> u8 {
        match self.scale {
            Scale::Agreed(shift) | Scale::Offered(Offer { shift, .. }) => shift,
        }
    }

    /// The departing window field of the segment: at most its own.
    fn lowered_window(&self, meta: Segment<'_>, target: u64, stats: &mut Stats) -> u16 {
        stats.seen += 1;
        let before = self
            .last_window
            .filter(|last_window| last_window.ack == meta.ack && (!last_window.by_syn || self.shift() == 0));
        if let Some(last_window) = before
            && last_window.field == meta.window
        {
            stats.clamped += u64::from(last_window.departing != meta.window);
            return last_window.departing;
        }
        let unit = 1 << self.shift();
        let advertised = u64::from(meta.window) * unit;
        let edge = self.last_window.map_or_else(|| edge(meta.ack, self.syn_window), |last_window| last_window.edge);
        let promised = if edge.after(meta.ack) { u64::from(edge.distance_from(meta.ack)) } else { 0 };
        stats.kept_open += u64::from(promised.min(advertised) > target);
        let window = advertised.min(target.max(promised));
        let mut field = u16::try_from(window.div_ceil(unit)).unwrap_or(meta.window).min(meta.window);
        if before.is_some_and(|last_window| last_window.departing == field) && field < meta.window {
            stats.kept_apart += 1;
            field += 1;
        }
        stats.clamped += u64::from(field != meta.window);
        field
    }

    /// Records the window sent to the sender.
    fn record(&mut self, meta: Segment<'_>, departing: u16) {
        let allowed = edge(meta.ack, u64::from(departing) << self.shift());
        let known = self.last_window.map_or_else(|| edge(meta.ack, self.syn_window), |last_window| last_window.edge);
        let edge = later_of(Some(known), allowed);
        self.last_window = Some(match self.last_window {
            Some(last_window) if meta.ack.before(last_window.ack) => LastWindow { edge, ..last_window },
            _ => LastWindow { ack: meta.ack, by_syn: false, field: meta.window, departing, edge },
        });
    }
}

fn later_of(one: Option<SeqNumber>, other: SeqNumber) -> SeqNumber {
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
