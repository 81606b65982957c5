//! Constraints on the packets of a link: the rate of its wire, shapers, ceilings of classes and policers before it, the
//! grants of a head end, and limits of virtual channels.

use lastmile_linklayer::LinkLayer;
use lastmile_model::{Link, Network};
use lastmile_queueing::classify::Packets;
use lastmile_queueing::line::grants::{Cycle, LARGEST_PACKET, PerRequest};
use lastmile_queueing::spec::{Limiter, Shaper};
use lastmile_theory::asymmetry;
use lastmile_units::{BitRate, ByteCount, Instant, WireBytes};

use super::cells::CellLimit;
use crate::format::{self, to_f64};
use crate::interval::Interval;

/// The rate for which limits are computed on a line whose rate changes.
const NOMINAL: BitRate = BitRate::from_mbit_per_s(1_000);

/// The time from one point to another.
pub(crate) type Span = (Instant, Instant);

/// One constraint on the packets of a link.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Constraint {
    /// The rate of the wire; the mean of one that sends what is granted.
    Wire(Shaper),
    /// The rate of a wire that changes, as if it were [`NOMINAL`], and the bytes beyond it: those of a wire that sends
    /// what is granted.
    Changing { beyond: WireBytes },
    /// A shaper, the ceiling of a class, or a policer.
    Shaper(Shaper),
    /// A station with one request on the way.
    Grants(Cycle),
    /// A limit of the virtual channels that enter the link, or of a policer at its queues.
    Cells(CellLimit),
}

impl Constraint {
    /// The wire of `link`; `None` if transmission takes no time.
    pub(crate) fn wire(link: &Link) -> Option<Self> {
        let line = &link.hop.line;
        let granted = line.grants.as_ref().map(|grants| grants.at_most());
        if line.trace.is_some() {
            return Some(Self::Changing { beyond: granted.map_or(Some(WireBytes::ZERO), |most| Some(most?.1))? });
        }
        let (rate, beyond) = match granted {
            Some(most) => most?,
            None => (line.rate?, WireBytes::ZERO),
        };
        Some(Self::Wire(Shaper { rate, layer: None, burst: Some(beyond), saves: false, by: Limiter::Shaper }))
    }

    /// All constraints that each of `packets` of `link` passes. A shaper at or above the rate of the wire holds back
    /// nothing, unless it counts more bytes. What has passed one before grants may wait in the buffer, and pass later.
    pub(crate) fn of(link: &Link, packets: &Packets) -> Vec<Self> {
        let line = &link.hop.line;
        let released = line.grants.as_ref().and_then(|grants| grants.buffer).map(|buffer| buffer + LARGEST_PACKET);
        let before = |shaper: Shaper| {
            Self::Shaper(Shaper {
                layer: shaper.layer.filter(|layer| *layer != line.link_layer),
                burst: shaper.burst.map(|burst| burst + released.unwrap_or(WireBytes::ZERO)),
                ..shaper
            })
        };
        let slower = |shaper: &Shaper| {
            let is_of_other = shaper.layer.is_some_and(|layer| layer != line.link_layer);
            is_of_other || line.trace.is_some() || line.rate.is_none_or(|rate| shaper.rate < rate)
        };
        let shapers = link.hop.queue.shapers_of(packets).into_iter().filter(slower).map(before);
        let grants = line.grants.as_ref().and_then(|grants| grants.cycle()).map(Self::Grants);
        Self::wire(link).into_iter().chain(shapers).chain(grants).collect()
    }

    /// All constraints that each of `packets` passes on the links of `path`, by number of the link.
    pub(crate) fn along(network: &Network, path: &[usize], packets: &Packets) -> Vec<(usize, Self)> {
        let of = |index: usize| Self::of(&network.links[index], packets).into_iter().map(move |of| (index, of));
        path.iter().copied().flat_map(of).collect()
    }

    /// True for one that only some packets of its link may pass: a class, a policer, or a virtual channel.
    pub(super) const fn is_of_some(&self) -> bool {
        matches!(self, Self::Cells(_) | Self::Shaper(Shaper { by: Limiter::Class(_) | Limiter::Policer, .. }))
    }

    /// True for a policer, behind which packets wait in the queue of the link.
    pub(super) const fn is_policer(&self) -> bool {
        matches!(self, Self::Shaper(Shaper { by: Limiter::Policer, .. }))
    }

    /// True for a wire that carries no more than its rate in any span: without grants, and cells that others replace.
    pub(super) fn is_exact(&self, link: &Link) -> bool {
        let line = &link.hop.line;
        matches!(self, Self::Wire(_)) && line.grants.is_none() && line.link_layer.oam().is_none()
    }

    /// True for a limit that makes up later for what it did not let pass.
    pub(super) const fn saves(&self) -> bool {
        matches!(self, Self::Shaper(Shaper { saves: true, .. }))
    }

    /// This constraint on packets of at least `ip` bytes. A station that asks for single packets sends one before it
    /// asks for the next.
    pub(super) fn of_packets(self, link: &Link, ip: ByteCount) -> Self {
        match (self, &link.hop.line.grants) {
            (Self::Grants(cycle), Some(grants)) => {
                Self::Grants(grants.cycle_of(link.hop.line.link_layer.on_wire(ip)).unwrap_or(cycle))
            }
            (other, _) => other,
        }
    }

    /// This constraint on packets that may have several sizes, which fill a grant better than those of one size.
    pub(super) fn of_any_sizes(&self, link: &Link) -> Self {
        match self {
            Self::Grants(Cycle { brings: PerRequest::Packet, .. }) => self.clone().of_packets(link, ByteCount::ZERO),
            Self::Grants(Cycle { time, brings: PerRequest::Burst(bytes) }) => {
                Self::Grants(Cycle { time: *time, brings: PerRequest::Bytes(*bytes) })
            }
            other => other.clone(),
        }
    }

    /// The most packets of `ip` bytes a second, without OAM cells; on a wire that changes for the nominal rate.
    pub(crate) fn packets_per_s(&self, link: &Link, ip: ByteCount) -> f64 {
        let layer: LinkLayer = link.hop.line.link_layer;
        let at = |rate, layer| asymmetry::ip_rate_bps(rate, layer, ip) / (to_f64(ip.as_u64()) * 8.0);
        match self {
            Self::Wire(limit) => at(limit.rate, layer),
            Self::Changing { .. } => at(NOMINAL, layer),
            // A shaper does not see cells of OAM.
            Self::Shaper(limit) => at(limit.rate, limit.layer.unwrap_or(layer).without_oam()),
            Self::Grants(cycle) => {
                packets_in(cycle.brings, to_f64(layer.on_wire(ip).as_u64())) / cycle.time.as_secs_f64()
            }
            Self::Cells(limit) => limit.packets_per_s(ip),
        }
    }

    /// The packets of `ip` bytes a second that all constraints on each packet of `link` let pass within `span` in the
    /// mean, and the constraint that decides.
    pub(crate) fn least(link: &Link, ip: ByteCount, span: Span) -> Option<(f64, Self)> {
        let rates = Self::of(link, &Packets::default()).into_iter().map(|constraint| constraint.of_packets(link, ip));
        let rates = rates.map(|constraint| (constraint.packets_per_s_in_the_mean(link, ip, span), constraint));
        rates.min_by(|a, b| a.0.total_cmp(&b.0))
    }

    /// The packets of `ip` bytes a second that pass within `span` in the mean.
    pub(super) fn packets_per_s_in_the_mean(&self, link: &Link, ip: ByteCount, span: Span) -> f64 {
        self.packets_per_s(link, ip) * self.part_in_the_mean(link, ip, span)
    }

    /// The part of that rate that passes within `span` at most: less or more than 1 on a wire that changes.
    pub(crate) fn part(&self, link: &Link, (from, to): Span) -> f64 {
        let line = Some(&link.hop.line).filter(|_| matches!(self, Self::Changing { .. }));
        let mean = line.and_then(|line| line.rate_between(from, to));
        mean.map_or(1.0, |bps| bps / to_f64(NOMINAL.as_bps()))
    }

    /// The part that passes in the mean: less than 1 for a shaper before a wire that is slower at times. After each
    /// such time its burst passes, so that this is no bound.
    fn part_in_the_mean(&self, link: &Link, ip: ByteCount, (from, to): Span) -> f64 {
        let line = &link.hop.line;
        let mean = match (self, &line.trace) {
            (Self::Shaper(shaper), Some(trace)) => {
                // The rate in bits of the wire.
                let rate = shaper.layer.map_or(shaper.rate, |layer| {
                    let [wire, own] = [line.link_layer, layer].map(|layer| u128::from(layer.on_wire(ip).as_u64()));
                    let bps = u128::from(shaper.rate.as_bps()) * wire / own.max(1);
                    u64::try_from(bps).ok().and_then(BitRate::from_bps).unwrap_or(shaper.rate)
                });
                trace.rate_up_to(rate, from, to).map(|bps| bps / to_f64(rate.as_bps()))
            }
            _ => None,
        };
        mean.unwrap_or_else(|| self.part(link, (from, to)))
    }

    /// The most bytes that pass in a span beyond the rate, in packets of `payload`; `None` where that has no limit.
    pub(crate) fn beyond(&self, payload: u64) -> Option<f64> {
        match self {
            Self::Wire(limit) => limit.burst.map(|beyond| to_f64(beyond.as_u64())),
            Self::Changing { beyond } => Some(to_f64(beyond.as_u64())),
            // And the packet that the wire is sending.
            Self::Shaper(shaper) => shaper.burst.map(|burst| to_f64(burst.as_u64() + payload)),
            Self::Grants(cycle) => Some(match cycle.brings {
                PerRequest::Packet => 2.0 * to_f64(payload),
                PerRequest::Bytes(bytes) | PerRequest::Burst(bytes) => 2.0 * to_f64(bytes.as_u64()),
            }),
            Self::Cells(limit) => Some(limit.beyond()),
        }
    }

    /// The share of what it lets pass that link number `index` used in `part`; `data_bits` are
    /// those of the data in a class or behind a policer.
    pub(super) fn used(&self, (index, link): (usize, &Link), part: &Interval, data_bits: impl FnOnce() -> f64) -> f64 {
        let a_second = |count: f64| count / part.length_s();
        let bits = if self.is_of_some() { data_bits() } else { to_f64(part.wire_bits[index]) };
        match self {
            Self::Wire(_) | Self::Changing { .. } => part.utilisation(index, link).unwrap_or(0.0),
            Self::Shaper(shaper) => {
                let packets = part.waits[index].packets.max(1);
                // By the mean size of packets.
                let counted = shaper.layer.and_then(|layer| {
                    let ip = link.hop.line.link_layer.largest_ip_in(WireBytes::new((bits / 8.0) as u64 / packets))?;
                    Some(to_f64(layer.without_oam().on_wire(ip).as_u64() * packets) * 8.0)
                });
                a_second(counted.unwrap_or(bits)) / to_f64(shaper.rate.as_bps())
            }
            Self::Grants(cycle) => {
                let packets = to_f64(part.waits[index].packets);
                let mean = bits / 8.0 / packets.max(1.0);
                let (requests, cycle) = match (cycle.brings, &link.hop.line.grants) {
                    (PerRequest::Bytes(bytes), _) => (bits / 8.0 / to_f64(bytes.as_u64()), *cycle),
                    (PerRequest::Packet, Some(grants)) => {
                        (packets, grants.cycle_of(WireBytes::new(mean as u64)).unwrap_or(*cycle))
                    }
                    (brings, _) => (packets / packets_in(brings, mean), *cycle),
                };
                a_second(requests) * cycle.time.as_secs_f64()
            }
            // Data of all flows of a traffic, each on a channel of its own or several on one.
            Self::Cells(limit) => a_second(bits) / (limit.cell_bps * limit.channels()),
        }
    }

    /// In words, for data.
    pub(crate) fn words(&self, link: &Link) -> String {
        let name = &link.hop.name;
        match self {
            Self::Wire(_) | Self::Changing { .. } => format!("rate of link {name}"),
            Self::Shaper(shaper) => match &shaper.by {
                Limiter::Shaper => format!("rate of the shaper of link {name}"),
                Limiter::Class(class) => format!("ceiling of class {class} of link {name}"),
                Limiter::Policer => format!("policer of link {name}"),
            },
            Self::Grants(cycle) => {
                let time = format::seconds(cycle.time.as_secs_f64());
                match cycle.brings {
                    PerRequest::Packet => format!("grants of link {name}, one packet in {time}"),
                    PerRequest::Bytes(bytes) => {
                        format!("grants of link {name}, {} in {time}", format::bytes(bytes.as_u64()))
                    }
                    PerRequest::Burst(bytes) => {
                        let bytes = format::bytes(bytes.as_u64());
                        format!("grants of link {name}, {bytes} of whole packets in {time}")
                    }
                }
            }
            Self::Cells(limit) => limit.words(),
        }
    }

    /// In words, as what is filled.
    pub(super) fn filled(&self, link: &Link) -> String {
        match self {
            Self::Wire(_) | Self::Changing { .. } => format!("link {}", link.hop.name),
            Self::Shaper(Shaper { by: Limiter::Shaper, .. }) => format!("the shaper of link {}", link.hop.name),
            Self::Shaper(_) | Self::Grants(_) | Self::Cells(_) => format!("the {}", self.words(link)),
        }
    }

    /// In words, for ACKs.
    pub(crate) fn words_for_acks(&self, link: &Link) -> String {
        match self {
            Self::Wire(_) | Self::Changing { .. } => format!("ACKs on link {}", link.hop.name),
            Self::Shaper(_) | Self::Grants(_) | Self::Cells(_) => format!("ACKs by the {}", self.words(link)),
        }
    }
}

/// The packets of `wire` bytes that a request brings.
fn packets_in(brings: PerRequest, wire: f64) -> f64 {
    match brings {
        PerRequest::Packet => 1.0,
        PerRequest::Bytes(bytes) => to_f64(bytes.as_u64()) / wire,
        PerRequest::Burst(bytes) => {
            let packets = to_f64(bytes.as_u64()) / wire;
            if packets < 1.0 { packets } else { packets.floor() }
        }
    }
}
