//! A policy on its line, as plain data.

use lastmile_linklayer::LinkLayer;
use lastmile_queueing::Match;
use lastmile_queueing::ack::{clamp, pacing};
use lastmile_queueing::autorate;
use lastmile_queueing::meter::drain;
use lastmile_queueing::sched::in_proportion;
use lastmile_queueing::spec::{Over, Spec};
use lastmile_units::{BitRate, ByteCount, Duration, WireBytes};

use crate::diagnostics::Report;

/// The line that a policy is for.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Upstream rate of the wire. `None`: unknown, and the upstream is not shaped.
    pub up: Option<BitRate>,
    /// Downstream rate of the wire. `None`: unknown, and the downstream is not shaped.
    pub down: Option<BitRate>,
    /// The cost of an IP packet upstream.
    pub up_layer: LinkLayer,
    /// The cost of an IP packet downstream.
    pub down_layer: LinkLayer,
    /// The best upstream rate: that of `up`, or on a line that changes the best of its trace.
    pub up_best: Option<BitRate>,
    /// The best downstream rate.
    pub down_best: Option<BitRate>,
}

impl Line {
    /// A line whose rates are always the same; a direction without one is not shaped.
    #[must_use]
    pub fn steady(
        up: impl Into<Option<BitRate>>,
        down: impl Into<Option<BitRate>>,
        up_layer: LinkLayer,
        down_layer: LinkLayer,
    ) -> Self {
        let (up, down) = (up.into(), down.into());
        Self { up, down, up_layer, down_layer, up_best: up, down_best: down }
    }
}

/// The line for which a policy is read.
#[derive(Clone, Copy, Debug)]
pub enum LineOf {
    /// The policy's own. A policy without one is refused.
    Policy,
    /// This one, in place of the policy's own.
    Caller(Line),
    /// The policy's own, or this one for a policy that has none.
    PolicyOr(Line),
}

/// A line in place of the policy's own; `None` is the policy's own.
impl From<Option<Line>> for LineOf {
    fn from(line: Option<Line>) -> Self {
        line.map_or(Self::Policy, Self::Caller)
    }
}

/// A policy on its line.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The name of the policy.
    pub name: String,
    /// The effect of the policy, in a line.
    pub about: String,
    /// The line.
    pub line: Line,
    /// The line is the policy's own.
    pub line_is_own: bool,
    /// The kind of its scheduler, as the file has it; without classes that of its queue.
    pub scheduler: String,
    /// Where the queue of the upstream stands.
    pub place: Position,
    /// The rate of the upstream that is used, on the wire; `None` if it is not shaped.
    pub rate: Option<BitRate>,
    /// The largest IP packet to expect upstream.
    pub largest: ByteCount,
    /// The rate of the ACK class, if there is one.
    pub ack: Option<AckRate>,
    /// The classes, that of the ACKs first.
    pub classes: Vec<Class>,
    /// The rules, in their order.
    pub rules: Vec<Rule>,
    /// The queue of the upstream, its regulators included.
    pub up: Spec,
    /// The discipline after the downstream line, if any.
    pub down: Option<Down>,
    /// The regulation of ACKs by `up` for the sake of the downstream.
    pub regulated: Regulated,
    /// Warnings about it.
    pub warnings: Report,
}

impl Policy {
    /// The controller that moves the rates of both directions' shapers.
    #[must_use]
    pub fn autorate(&self) -> Option<&autorate::Config> {
        self.down.as_ref()?.autorate.as_ref()
    }

    /// The rates of the shapers, up and down; `None` for a direction that the policy does not shape.
    #[must_use]
    pub fn shapers(&self) -> [Option<BitRate>; 2] {
        [self.rate, self.down.as_ref().and_then(|down| down.rate)]
    }

    /// The rates of the line, up and down; `None` for a direction that the policy does not shape.
    #[must_use]
    pub fn shaped_line(&self) -> [Option<BitRate>; 2] {
        let [up, down] = self.shapers();
        [up.and(self.line.up), down.and(self.line.down)]
    }

    /// Why the downstream is not shaped though its rate is known; `None` if it is shaped, or has no rate.
    #[must_use]
    pub fn unshaped_down(&self) -> Option<String> {
        let [_, shaped] = self.shapers();
        let lacks = if self.down.is_some() { "no share in [down]" } else { "no [down]" };
        let is_odd = self.line.down.is_some() && shaped.is_none();
        is_odd.then(|| format!("{} has {lacks}: the downstream is not shaped", self.name))
    }
}

/// Where the queue of the upstream stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// In the modem, in place of its queue.
    Modem,
    /// In a middlebox before the modem, whose queue stays.
    Middlebox,
}

/// The discipline after the downstream line, at its near end: the queue at its far end is unchanged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Down {
    /// The kind of its scheduler, as the file has it; `none` without classes.
    pub scheduler: &'static str,
    /// The kind of its scheduler, without classes that of its queue.
    pub kind: String,
    /// The largest rate that it lets through; `None` if it does not shape.
    pub rate: Option<BitRate>,
    /// The largest IP packet to expect downstream.
    pub largest: ByteCount,
    /// How it drains the queue at the far end.
    pub drain: Option<drain::Law>,
    /// The policer that packets pass on arrival.
    pub police: Option<Police>,
    /// The classes.
    pub classes: Vec<Class>,
    /// The rules, in their order.
    pub rules: Vec<Rule>,
    /// All of that as one queue.
    pub queue: Spec,
    /// The controller that moves the rate of this shaper, and that of the upstream.
    pub autorate: Option<autorate::Config>,
}

/// An ingress policer: what exceeds it is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Police {
    /// Rate on the wire.
    pub rate: BitRate,
    /// The burst that conforms after a pause.
    pub burst: WireBytes,
}

/// How the rate of the ACK class came about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckRate {
    /// The reserved rate.
    pub rate: BitRate,
    /// The rate that the ACKs of a full download need, from which it was computed; `None` if the file gives it.
    pub needed: Option<BitRate>,
    /// Bytes on the downstream wire of a data packet.
    pub packet: WireBytes,
    /// Bytes on the upstream wire of an ACK.
    pub ack: WireBytes,
    /// Data packets for each ACK, in millionths.
    pub factor_ppm: u64,
}

/// A class on its line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Class {
    /// The name of the class.
    pub name: String,
    /// The class above it.
    pub parent: Option<String>,
    /// The rate that it has whatever others do; `None` where its scheduler knows no rates.
    pub rate: Option<BitRate>,
    /// The largest rate of the class: that of the scheduler where it knows no ceilings.
    pub ceil: BitRate,
    /// A promise to a packet after a pause, which only HFSC gives.
    pub delay: Option<Promise>,
    /// Priority: 0, the most urgent, to 7.
    pub priority: u8,
    /// The burst at its rate.
    pub burst: WireBytes,
    /// The burst at its ceiling.
    pub cburst: WireBytes,
    /// Where its packets wait; `None` if it has classes below.
    pub queue: Option<Spec>,
}

impl Class {
    /// Its rate and its ceiling where a controller has given `steered`, if it has, to the shaper of `built`.
    #[must_use]
    pub fn rates(&self, built: Option<BitRate>, steered: Option<BitRate>) -> (Option<BitRate>, BitRate) {
        let of = |rate| built.zip(steered).map_or(rate, |(built, steered)| in_proportion(rate, built, steered));
        (self.rate.map(of), of(self.ceil))
    }
}

/// A packet of at most `packet` bytes departs within `time`, in addition to the time of the packet ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promise {
    /// The time.
    pub time: Duration,
    /// The size on the wire.
    pub packet: WireBytes,
}

/// A rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The name of the class.
    pub class: String,
    /// The condition for packets of the rule.
    pub matches: Match,
    /// No further rule is asked.
    pub last: bool,
}

/// The regulation of upstream ACKs, so that their senders do not flood the downstream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Regulated {
    /// How fast data may be acknowledged.
    pub pace: Option<pacing::Config>,
    /// The largest amount of data in flight.
    pub clamp: Option<clamp::Config>,
}

impl Regulated {
    /// `queue` with the regulators around it.
    pub(super) fn over(&self, queue: Spec) -> Spec {
        let queue = match &self.pace {
            Some(config) => Spec::AckPacing(Over { config: config.clone(), queue: Box::new(queue) }),
            None => queue,
        };
        match &self.clamp {
            Some(config) => Spec::WindowClamp(Over { config: config.clone(), queue: Box::new(queue) }),
            None => queue,
        }
    }
}
