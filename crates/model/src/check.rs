//! Conditions that a network must meet to run.

use lastmile_units::{ByteCount, Duration, WireBytes};

use crate::BuildError;
use crate::{Autorate, Backup, Conference, FileSizes, Network, Source, Traffic, Video};

const LARGEST_DATAGRAM: u64 = 65_535;
/// The shortest mean time between writes.
const SHORTEST_GAP: Duration = Duration::from_us(1);

impl Network {
    /// The most flows of a network, including connections opened during the run.
    pub const FLOW_LIMIT: u64 = 1 << 28;

    /// Checks that the network can run.
    ///
    /// # Errors
    /// The first violated condition.
    pub fn check(&self) -> Result<(), BuildError> {
        let count = self.nodes.len();
        let node = |what, name: &str, index: usize| {
            if index < count {
                Ok(())
            } else {
                Err(BuildError::NoSuchNode { what, name: name.to_owned(), index, count })
            }
        };
        for link in &self.links {
            node("link", &link.hop.name, link.from)?;
            node("link", &link.hop.name, link.to)?;
            if link.from == link.to {
                let node = self.nodes[link.from].name.clone();
                return Err(BuildError::SelfLink { link: link.hop.name.clone(), node });
            }
        }
        if let Some(atm) = &self.atm {
            let known = |link: &usize| *link < self.links.len();
            let named = atm.circuits.iter().all(|circuit| {
                let edge = circuit.edge.is_none_or(|edge| edge < atm.edges.len());
                circuit.traffic < self.traffic.len() && !circuit.vcs.is_empty() && edge
            });
            if atm.links.len() != atm.network.links.len() || !atm.links.iter().all(known) || !named {
                return Err(BuildError::Circuits);
            }
        }
        for traffic in &self.traffic {
            node("traffic", &traffic.name, traffic.from)?;
            node("traffic", &traffic.name, traffic.to)?;
            if traffic.from == traffic.to {
                let node = self.nodes[traffic.from].name.clone();
                return Err(BuildError::SameEnds { traffic: traffic.name.clone(), node });
            }
            source(traffic)?;
            names(traffic)?;
        }
        for Autorate { controller, shapers, from, reflector } in &self.autorates {
            controller.check().map_err(BuildError::Autorate)?;
            node("traffic", Autorate::PINGS, *from)?;
            node("traffic", Autorate::PINGS, *reflector)?;
            if from == reflector {
                let node = self.nodes[*from].name.clone();
                return Err(BuildError::SameEnds { traffic: Autorate::PINGS.to_owned(), node });
            }
            if let Some(link) = shapers.iter().find(|link| **link >= self.links.len()) {
                return Err(BuildError::NoShaper { link: format!("number {link}") });
            }
        }
        let pings: u64 = self.autorates.iter().map(|autorate| u64::from(autorate.flows())).sum();
        let flows: u64 = self.traffic.iter().map(|traffic| u64::from(traffic.count) * flows_of(&traffic.source)).sum();
        let flows = flows + pings;
        if flows > Self::FLOW_LIMIT {
            return Err(BuildError::TooManyFlows { count: flows, limit: Self::FLOW_LIMIT });
        }
        if self.record.interval.is_some_and(Duration::is_zero) {
            return Err(BuildError::NoSampleInterval);
        }
        Ok(())
    }
}

fn names(traffic: &Traffic) -> Result<(), BuildError> {
    let ipv6 = traffic.ip.ipv6;
    if traffic.tcp().any(|tcp| tcp.ipv6 != ipv6) {
        return Err(BuildError::Version { traffic: traffic.name.clone() });
    }
    for address in [&traffic.names.from, &traffic.names.to].iter().filter_map(|end| end.address) {
        if address.is_ipv6() != ipv6 {
            return Err(BuildError::Family { traffic: traffic.name.clone(), address, ipv6 });
        }
    }
    match traffic.opener().port {
        Some(first) if u32::from(u16::MAX - first) < traffic.count.saturating_sub(1) => {
            Err(BuildError::Ports { traffic: traffic.name.clone(), first, count: traffic.count })
        }
        _ => Ok(()),
    }
}

/// The number of flows of a source; a replay has those of its capture and one of its own.
fn flows_of(source: &Source) -> u64 {
    match source {
        Source::Replay(replay) => 1 + replay.flows.len() as u64,
        _ => 1,
    }
}

/// A player with these settings requests a segment whenever playback waits for media.
fn plays(video: &Video) -> bool {
    let ascending = !video.ladder.is_empty() && video.ladder.is_sorted();
    ascending && !video.segment.is_zero() && video.buffer >= video.startup + video.segment
}

/// Each file and each message has bytes: a response without bytes would never arrive.
fn copies(backup: &Backup) -> bool {
    let whole = backup.sizes != FileSizes::Fixed(ByteCount::ZERO);
    whole && backup.files != Some(0) && backup.request > 0 && backup.reply > 0
}

/// A sender with these settings has frames, audio and a rate.
fn talks(conference: &Conference) -> bool {
    let Conference { rates, frame_rate, packet, audio, feedback } = conference;
    let ascending = rates.least <= rates.start && rates.start <= rates.most;
    let sizes = [*packet, audio.payload].into_iter().all(|size| size.as_u64() > 0);
    let fits =
        [*packet, audio.payload].into_iter().all(|size| size.as_u64() + Conference::MOST_HEADERS <= LARGEST_DATAGRAM);
    ascending && (1..=1000).contains(frame_rate) && sizes && fits && !audio.interval.is_zero() && !feedback.is_zero()
}

fn source(traffic: &Traffic) -> Result<(), BuildError> {
    let size = |size: ByteCount| {
        if (u64::from(traffic.ip.datagram_headers())..=LARGEST_DATAGRAM).contains(&size.as_u64()) {
            Ok(())
        } else {
            Err(BuildError::PacketSize { traffic: traffic.name.clone(), size: size.as_u64() })
        }
    };
    if let Some(quic) = traffic.source.quic() {
        size(ByteCount::new(u64::from(quic.datagram) + u64::from(traffic.ip.datagram_headers())))?;
    }
    match traffic.source {
        Source::Bulk { .. } | Source::Quic { .. } | Source::Replay(_) => Ok(()),
        Source::Writes { rate, size, .. } if rate.time_for(WireBytes::new(size.as_u64())) < SHORTEST_GAP => {
            Err(BuildError::TooManyWrites { traffic: traffic.name.clone() })
        }
        Source::Writes { .. } => Ok(()),
        Source::Web(ref web) if web.connections == 0 => {
            Err(BuildError::NoConnections { traffic: traffic.name.clone() })
        }
        Source::Backup(ref backup) if backup.parallel == 0 => {
            Err(BuildError::NoConnections { traffic: traffic.name.clone() })
        }
        Source::Backup(ref backup) if !copies(backup) => Err(BuildError::Backup { traffic: traffic.name.clone() }),
        Source::Swarm(ref swarm) if swarm.slots == 0 => {
            Err(BuildError::NoConnections { traffic: traffic.name.clone() })
        }
        Source::Swarm(ref swarm) if swarm.rechoke.is_zero() => {
            Err(BuildError::NoInterval { traffic: traffic.name.clone() })
        }
        Source::Video(ref video) if !plays(video) => Err(BuildError::Video { traffic: traffic.name.clone() }),
        Source::Conference(ref conference) if !talks(conference) => {
            Err(BuildError::Conference { traffic: traffic.name.clone() })
        }
        Source::Game(ref game) => [game.commands, game.updates].into_iter().try_for_each(|datagrams| {
            size(datagrams.most)?;
            if datagrams.interval.location.is_zero() {
                return Err(BuildError::NoInterval { traffic: traffic.name.clone() });
            }
            Ok(())
        }),
        Source::Web(_) | Source::Video(_) | Source::Backup(_) | Source::Conference(_) | Source::Swarm(_) => Ok(()),
        Source::Poisson { size: bytes, .. } | Source::OnOff { size: bytes, .. } => size(bytes),
        Source::Constant { interval, size: bytes, .. } | Source::Ping { interval, size: bytes, .. } => {
            if interval.is_zero() {
                return Err(BuildError::NoInterval { traffic: traffic.name.clone() });
            }
            size(bytes)
        }
    }
}
