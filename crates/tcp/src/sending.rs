//! Whether there is a sender. Of very many endpoints half only receive: they keep what a sender would start from, in a
//! sixth of its space.
//!
//! While a connection is opened, and then as long as it has nothing to send, its sender follows from a few values. They
//! take its place until the first thing that they cannot tell: something to send, a SYN that is lost, the end of the
//! connection. Whether they can is not argued but tried: a sender is put away only if they give back the very same one.
//! Cost: a sender is a pointer away; its owner reads it ahead
//! ([`Endpoint::touch_further`](crate::Endpoint::touch_further)).

use lastmile_packet::{Meta, SeqNumber};
use lastmile_units::Instant;

use crate::congestion::{Congestion, Style};
use crate::ranges::Low;
use crate::recovery::AckVerdict;
use crate::rtt::{Place, Rtt};
use crate::sender::Sender;
use crate::stats::LimitClock;
use crate::timer::Timer;
use crate::trips::Trips;
use crate::{Config, Limit};

/// The sending half of an endpoint.
#[derive(Clone, Debug)]
pub(crate) enum Sending {
    /// Not opened yet: the initial sequence number.
    Unopened(SeqNumber),
    /// Being opened, with nothing to send and nothing lost so far.
    Opening(Opening),
    /// Established, and nothing to send since.
    Quiet(Quiet),
    /// Everything else.
    Active(Box<Sender>),
}

/// How far the handshake is.
#[derive(Clone, Debug)]
pub(crate) struct Opening {
    /// When the connection was opened, which is when its SYN went out.
    since: Instant,
    iss: SeqNumber,
    wl1: SeqNumber,
    /// The window of the peer's SYN.
    window: u16,
    mss: u16,
    shift: u8,
    limit: Option<Limit>,
    sent: bool,
    syn_due: bool,
    scaled: bool,
    /// The peer's SYN has come.
    agreed: bool,
}

/// What the handshake found, and the receiver's window since.
#[derive(Clone, Debug)]
pub(crate) struct Quiet {
    opened: Instant,
    established: Instant,
    iss: SeqNumber,
    wl1: SeqNumber,
    edge: Low,
    window_max: u32,
    mss: u16,
    acks_received: u16,
    shift: u8,
    style: Style,
    /// That nothing is offered, or still that the SYN was not answered.
    limit: Limit,
}

impl Sending {
    /// The sender, made now if there is none.
    #[inline]
    pub(crate) fn active(&mut self, config: &Config) -> &mut Sender {
        if !matches!(self, Self::Active(_)) {
            *self = Self::Active(Box::new(self.sender(config)));
        }
        let Self::Active(sender) = self else { unreachable!("it is one by now") };
        sender
    }

    /// Changes the sender, and puts it away if it is still what a few values tell.
    #[cold]
    pub(crate) fn change<T>(&mut self, config: &Config, change: impl FnOnce(&mut Sender) -> T) -> T {
        if let Self::Active(sender) = self {
            return change(sender);
        }
        let mut sender = self.sender(config);
        let result = change(&mut sender);
        *self = if let Some(opening) = Opening::of(&sender, config) {
            Self::Opening(opening)
        } else if let Some(quiet) = Quiet::of(&sender, config) {
            Self::Quiet(quiet)
        } else {
            Self::Active(Box::new(sender))
        };
        result
    }

    /// What `look` sees of the sender as it is or would be.
    pub(crate) fn see<T>(&self, config: &Config, look: impl FnOnce(&Sender) -> T) -> T {
        if let Self::Active(sender) = self { look(sender) } else { look(&self.sender(config)) }
    }

    /// A copy of the sender as it is or would be.
    #[cold]
    fn sender(&self, config: &Config) -> Sender {
        match self {
            Self::Unopened(iss) => Sender::new(config, *iss),
            Self::Opening(opening) => opening.sender(config),
            Self::Quiet(quiet) => quiet.sender(config),
            Self::Active(sender) => (**sender).clone(),
        }
    }

    #[inline]
    pub(crate) fn timer(&self, config: &Config) -> Timer {
        match self {
            Self::Active(sender) => sender.timer,
            Self::Opening(opening) => opening.timer(config),
            Self::Quiet(_) | Self::Unopened(_) => Timer::OFF,
        }
    }

    /// Counts a segment that came without payload.
    #[inline]
    pub(crate) fn count_ack(&mut self, config: &Config) {
        match self {
            Self::Quiet(quiet) if quiet.acks_received < u16::MAX => quiet.acks_received += 1,
            _ => {
                let sender = self.active(config);
                sender.stats.count_ack(&mut sender.aside);
            }
        }
    }
}

impl Opening {
    /// `None` if that would not give back the very same sender.
    fn of(sender: &Sender, config: &Config) -> Option<Self> {
        let opening = Self {
            since: sender.limited_since(),
            iss: sender.iss,
            wl1: sender.wl1,
            window: u16::try_from(sender.window_max).ok()?,
            mss: sender.mss,
            shift: sender.shift,
            limit: sender.limit,
            sent: sender.max == 1,
            syn_due: sender.syn_due,
            scaled: sender.scaled,
            agreed: sender.edge != Low::of(0),
        };
        (sender.una == 0 && opening.sender(config) == *sender).then_some(opening)
    }

    /// That of the SYN.
    fn timer(&self, config: &Config) -> Timer {
        if self.sent { Timer::at(config.deadline(self.since, Rtt::new(config).rto())) } else { Timer::OFF }
    }

    fn sender(&self, config: &Config) -> Sender {
        let mut sender = Sender::new(config, self.iss);
        if self.sent {
            (sender.nxt, sender.max) = (Low::of(1), 1);
            sender.trips.begin(self.since, 1);
        }
        if self.agreed {
            sender.edge = Low::of(1 + u64::from(self.window));
        }
        sender.window_max = u32::from(self.window);
        sender.timer = self.timer(config);
        sender.wl1 = self.wl1;
        sender.mss = self.mss;
        sender.shift = self.shift;
        sender.syn_due = self.syn_due;
        sender.scaled = self.scaled;
        sender.set_limits(LimitClock::since(self.since), self.limit);
        sender
    }
}

impl Quiet {
    /// `None` if that would not give back the very same sender.
    fn of(sender: &Sender, config: &Config) -> Option<Self> {
        let limit = sender.limit?;
        let since = sender.limited_since();
        let (opened, established) = match limit {
            Limit::AwaitingAck => (since, since.saturating_add(sender.rtt.srtt()?)),
            _ => {
                let awaited = sender.limited_by(since).awaiting_ack;
                (Instant::from_ps(since.as_ps().saturating_sub(awaited.as_ps())), since)
            }
        };
        let quiet = Self {
            opened,
            established,
            iss: sender.iss,
            wl1: sender.wl1,
            edge: sender.edge,
            window_max: sender.window_max,
            mss: sender.mss,
            acks_received: u16::try_from(sender.stats.acks_received(&sender.aside)).ok()?,
            shift: sender.shift,
            style: sender.style,
            limit,
        };
        (quiet.sender(config) == *sender).then_some(quiet)
    }

    fn sender(&self, config: &Config) -> Sender {
        let mut sender = Sender::new(config, self.iss);
        (sender.una, sender.nxt, sender.max) = (1, Low::of(1), 1);
        sender.edge = self.edge;
        sender.wl1 = self.wl1;
        sender.window_max = self.window_max;
        sender.mss = self.mss;
        sender.shift = self.shift;
        sender.style = self.style;
        sender.congestion = Congestion::new(config, self.mss);
        sender.trips = Trips::established(config, self.opened);
        sender.rtt.sample(config.measured(self.opened, self.established), Place::OPENED, config);
        sender.stats.set_acks_received(self.acks_received);
        let limits = match self.limit {
            Limit::AwaitingAck => LimitClock::since(self.opened),
            _ => LimitClock::since_awaited(self.opened, self.established),
        };
        sender.set_limits(limits, Some(self.limit));
        sender
    }

    /// Nothing is offered, and the account says so.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.limit == Limit::Application
    }

    /// The sequence number of all that it sends: its SYN is acknowledged.
    #[inline]
    pub(crate) fn wire_next(&self) -> SeqNumber {
        self.iss.add(1)
    }

    /// As [`Sender::on_ack`](crate::sender::Sender::on_ack) for a sender with nothing out: the window alone counts.
    #[inline]
    pub(crate) fn on_ack(&mut self, segment: &Meta) -> AckVerdict {
        let ahead = segment.ack.distance_from(self.wire_next()).cast_signed();
        if ahead > 0 {
            return AckVerdict::Unsent;
        }
        if ahead == 0 && !segment.seq.before(self.wl1) {
            self.wl1 = segment.seq;
            let window = u32::from(segment.window) << self.shift;
            self.edge = Low::of(1 + u64::from(window));
            self.window_max = self.window_max.max(window);
        }
        AckVerdict::Unmoved
    }
}
