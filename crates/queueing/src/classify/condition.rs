//! Conditions, evaluated.

use core::fmt;
use std::sync::Arc;

use lastmile_packet::{
    FlowDirectory, FlowId, FlowKey, FlowTable, HashKey, Interned, IpAddresses, Meta, Packet, Protocol, TcpFlags,
};
use lastmile_units::{Duration, Instant};

use super::Matcher;
use super::matching::{Bound, Match};
use super::tracker::{Connection, Direction, Tracker};
use crate::Environment;

/// A [`Match`], ready to be evaluated.
#[derive(Clone, Debug)]
pub struct Condition {
    check: Check,
    observer: Observer,
}

impl Condition {
    /// The condition, for packets of this environment.
    #[must_use]
    pub fn new(condition: &Match, environment: &Environment) -> Self {
        let mut observer = Observer::new(environment);
        Self { check: Check::new(condition, &mut observer), observer }
    }
}

/// A condition for flows that are known by their number alone.
impl From<Match> for Condition {
    fn from(condition: Match) -> Self {
        Self::new(&condition, &Environment::default())
    }
}

impl<P: Packet> Matcher<P> for Condition {
    #[inline]
    fn matches(&mut self, now: Instant, packet: &P) -> bool {
        if matches!(self.check, Check::Plain(Match::Never)) {
            return false;
        }
        let mut found = None;
        let facts = self.observer.observe(now, packet, &mut found);
        self.check.holds(&facts)
    }
}

/// Finds the facts of a packet, once for all checks of one classifier.
#[derive(Clone)]
pub(super) struct Observer {
    flows: Arc<dyn FlowDirectory>,
    hash_key: HashKey,
    /// Some check asks for addresses, ports or a protocol number.
    asks_for_key: bool,
    tracker: Option<Box<Tracker>>,
}

/// The facts of a packet that checks ask for.
pub(super) struct Facts<'a> {
    now: Instant,
    pub(super) meta: &'a Meta,
    pub(super) key: Option<&'a FlowKey>,
    pub(super) connection: Option<Direction<'a>>,
}

impl Facts<'_> {
    pub(super) fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref().map(|direction| &*direction.connection)
    }

    fn has_pattern(&self, bit: u64) -> bool {
        self.connection().is_some_and(|connection| connection.patterns & bit != 0)
    }

    /// True for a SYN without ACK.
    fn opens_connection(&self) -> bool {
        let flags = self.meta.flags;
        self.meta.protocol == Protocol::Tcp && flags.contains(TcpFlags::SYN) && !flags.contains(TcpFlags::ACK)
    }
}

impl Observer {
    pub(super) fn new(environment: &Environment) -> Self {
        let flows = Arc::clone(&environment.flows);
        Self { flows, hash_key: environment.hash_key, asks_for_key: false, tracker: None }
    }

    /// The facts of a packet. `found` holds the key of a packet that does not carry it.
    #[inline]
    pub(super) fn observe<'a>(
        &'a mut self,
        now: Instant,
        packet: &'a impl Packet,
        found: &'a mut Option<FlowKey>,
    ) -> Facts<'a> {
        let meta = packet.meta();
        let key = match (self.asks_for_key, packet.own_key()) {
            (false, _) => None,
            (true, Some(own)) => Some(own),
            (true, None) => {
                *found = packet.key(&*self.flows);
                found.as_ref()
            }
        };
        let connection = match (&mut self.tracker, key) {
            (Some(tracker), Some(key)) if matches!(meta.protocol, Protocol::Tcp | Protocol::Udp) => {
                Some(tracker.observe(now, packet, key, &*self.flows))
            }
            _ => None,
        };
        Facts { now, meta, key, connection }
    }

    /// Tracks connections if some check asks for addresses or ports, so that each connection keeps the answers.
    pub(super) fn track_if_keys_are_asked_for(&mut self) {
        if self.asks_for_key {
            self.tracker();
        }
    }

    fn tracker(&mut self) -> &mut Tracker {
        self.asks_for_key = true;
        let hash_key = self.hash_key;
        self.tracker.get_or_insert_with(|| Box::new(Tracker::new(hash_key)))
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("tracker", &self.tracker).finish_non_exhaustive()
    }
}

/// One condition, its parts in the order of their evaluation.
#[derive(Clone, Debug)]
pub(super) enum Check {
    /// A condition that packet and connection decide alone.
    Plain(Match),
    /// The connection's first payload bytes hold the pattern of this bit.
    FirstPayload(u64),
    NewConnections(NewConnections),
    Not(Box<Check>),
    All(Vec<Check>),
    OneOf(Vec<Check>),
}

impl Check {
    pub(super) fn new(condition: &Match, observer: &mut Observer) -> Self {
        let mut of = |inner: &Match| Self::new(inner, observer);
        match condition {
            Match::Not(inner) => Self::Not(Box::new(of(inner))),
            Match::OneOf(inner) => Self::OneOf(inner.iter().map(of).collect()),
            Match::All(inner) => {
                let mut inner: Vec<Self> = inner.iter().map(of).collect();
                // Buckets count packets that the other conditions match.
                inner.sort_by_key(|check| matches!(check, Self::NewConnections(_)));
                Self::All(inner)
            }
            Match::FirstPayload(pattern) => match observer.tracker().look_for(pattern) {
                Some(bit) => Self::FirstPayload(bit),
                // `Spec::build` refuses more patterns than there are bits.
                None => Self::Plain(Match::Never),
            },
            Match::NewConnections { bound, count, per } => {
                observer.asks_for_key = true;
                Self::NewConnections(NewConnections::new(*bound, *count, *per, observer.hash_key))
            }
            plain => {
                match plain {
                    Match::FtpData => observer.tracker().watch_ftp(),
                    Match::ConnectionBytes(..) | Match::ConnectionRate(..) => {
                        observer.tracker();
                    }
                    Match::Port(..) | Match::Address(..) | Match::ProtocolNumber(_) => observer.asks_for_key = true,
                    _ => {}
                }
                Self::Plain(plain.clone())
            }
        }
    }

    pub(super) fn holds(&mut self, facts: &Facts<'_>) -> bool {
        match self {
            Self::Plain(condition) => plain(condition, facts),
            Self::FirstPayload(bit) => facts.has_pattern(*bit),
            Self::NewConnections(limit) => limit.holds(facts),
            Self::Not(inner) => !inner.holds(facts),
            Self::All(inner) => inner.iter_mut().all(|check| check.holds(facts)),
            Self::OneOf(inner) => inner.iter_mut().any(|check| check.holds(facts)),
        }
    }

    /// The answer that follows from what is `known`; `None` if it needs more, or if an answer
    /// without evaluation would leave out the count of a new connection.
    pub(super) fn known(&self, known: Known, facts: &Facts<'_>) -> Option<bool> {
        match self {
            Self::Plain(condition) => known.answers(condition).then(|| plain(condition, facts)),
            Self::FirstPayload(bit) if known == Known::Look => Some(facts.has_pattern(*bit)),
            Self::NewConnections(_) if known == Known::Look && !facts.opens_connection() => Some(false),
            Self::FirstPayload(_) | Self::NewConnections(_) => None,
            Self::Not(inner) => Some(!inner.known(known, facts)?),
            Self::All(inner) => decided_by(inner, false, known, facts),
            Self::OneOf(inner) => decided_by(inner, true, known, facts),
        }
    }

    fn counts_connections(&self) -> bool {
        match self {
            Self::Plain(_) | Self::FirstPayload(_) => false,
            Self::NewConnections(_) => true,
            Self::Not(inner) => inner.counts_connections(),
            Self::All(inner) | Self::OneOf(inner) => inner.iter().any(Self::counts_connections),
        }
    }
}

/// The answer of several checks: `decisive` if one of them gives it, the opposite if all give that.
/// A decisive answer counts only if no check before it counts connections: that one is evaluated
/// first.
fn decided_by(checks: &[Check], decisive: bool, known: Known, facts: &Facts<'_>) -> Option<bool> {
    let mut answer = Some(!decisive);
    for check in checks {
        match check.known(known, facts) {
            Some(one) if one == decisive => return Some(decisive),
            Some(_) => {}
            None if check.counts_connections() => return None,
            None => answer = None,
        }
    }
    answer
}

/// The knowledge from which a condition is answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Known {
    /// The direction of the packet's connection.
    Connection,
    /// The direction of the packet's connection, the packet's [`Look`](super::verdict::Look), and the patterns that the
    /// connection has shown.
    Look,
}

impl Known {
    const fn answers(self, condition: &Match) -> bool {
        match condition {
            Match::Any
            | Match::Never
            | Match::Protocol(_)
            | Match::ProtocolNumber(_)
            | Match::Port(..)
            | Match::Address(..)
            | Match::FtpData => true,
            Match::PureAck
            | Match::SackAck
            | Match::Dscp(_)
            | Match::TrafficClass { .. }
            | Match::TcpFlags(_)
            | Match::TcpFlagsOf { .. } => matches!(self, Self::Look),
            _ => false,
        }
    }
}

/// Evaluates a condition without parts and without state of its own.
fn plain(condition: &Match, facts: &Facts<'_>) -> bool {
    let Facts { meta, key, .. } = facts;
    let connection = facts.connection();
    let is_tcp = meta.protocol == Protocol::Tcp;
    match condition {
        Match::Any => true,
        Match::PureAck => meta.is_pure_ack() || meta.protocol == Protocol::AckSignal,
        Match::SackAck => meta.is_pure_ack() && meta.options().sack_count() > 0,
        Match::Protocol(protocol) => meta.protocol == *protocol,
        Match::ProtocolNumber(number) => key.is_some_and(|key| key.protocol == *number),
        Match::Dscp(dscp) => meta.dscp() == *dscp,
        Match::TrafficClass { value, mask } => meta.traffic_class & mask == value & mask,
        Match::TcpFlags(flags) => is_tcp && meta.flags.contains(*flags),
        Match::TcpFlagsOf { set, of } => is_tcp && meta.flags.bits() & of.bits() == set.bits() & of.bits(),
        Match::Flow(flow) => meta.flow == *flow,
        Match::Class(class) => meta.class == Some(*class),
        Match::AtMostBytes(bytes) => meta.ip_len <= *bytes,
        Match::AtLeastBytes(bytes) => meta.ip_len >= *bytes,
        Match::Port(end, ports) => {
            matches!(meta.protocol, Protocol::Tcp | Protocol::Udp | Protocol::AckSignal)
                && key.is_some_and(|FlowKey { addresses, .. }| {
                    end.is_some(addresses.source_port, addresses.destination_port, |port| ports.contains(&port))
                })
        }
        Match::Address(end, prefix) => key.is_some_and(|FlowKey { addresses, .. }| {
            end.is_some(addresses.ip.source(), addresses.ip.destination(), |address| prefix.contains(address))
        }),
        Match::ConnectionBytes(bound, limit) => {
            connection.is_some_and(|connection| bound.holds(connection.bytes, limit.as_u64()))
        }
        Match::ConnectionRate(bound, limit) => {
            connection.is_some_and(|connection| bound.holds(connection.bytes_in_last_second * 8, limit.as_bps()))
        }
        Match::FtpData => connection.is_some_and(|connection| connection.ftp_data),
        // `Never`, and conditions that have a check of their own.
        _ => false,
    }
}

/// The most hosts with a bucket at once. A further host gets a full one, and replaces a host that
/// has been silent for long or was used once.
const HOSTS: u32 = 4096;

/// A bucket of new connections for each host.
#[derive(Clone, Debug)]
pub(super) struct NewConnections {
    bound: Bound,
    /// Time in which the bucket gains a connection.
    each: Duration,
    per: Duration,
    hosts: FlowTable,
    /// By the number of the host: the time at which its bucket will be full again.
    full_at: Vec<Instant>,
}

impl NewConnections {
    fn new(bound: Bound, count: u32, per: Duration, hash_key: HashKey) -> Self {
        let each = per / u64::from(count.max(1));
        let hosts = FlowTable::new(HOSTS, hash_key);
        Self { bound, each, per, hosts, full_at: Vec::new() }
    }

    fn holds(&mut self, facts: &Facts<'_>) -> bool {
        match (facts.opens_connection(), facts.key) {
            (true, Some(key)) => self.takes(facts.now, key) == (self.bound == Bound::Below),
            _ => false,
        }
    }

    /// Takes a connection from the bucket of its host, if it holds one.
    fn takes(&mut self, now: Instant, key: &FlowKey) -> bool {
        let host = key.addresses.ip.source();
        let ip = IpAddresses::new(host, host).expect("one family");
        let addresses = lastmile_packet::FlowAddresses { ip, source_port: 0, destination_port: 0 };
        let host = FlowKey { addresses, protocol: 0 };
        let Interned { id, new } = self.hosts.intern(&host);
        let (each, per) = (self.each, self.per);
        let full_at = self.full_at(id);
        if new {
            *full_at = Instant::ZERO;
        }
        let full_after = (*full_at).max(now) + each;
        if full_after > now + per {
            return false;
        }
        *full_at = full_after;
        true
    }

    fn full_at(&mut self, host: FlowId) -> &mut Instant {
        let place = self.hosts.slot(host);
        if self.full_at.len() <= place {
            self.full_at.resize(place + 1, Instant::ZERO);
        }
        &mut self.full_at[place]
    }
}
