//! The rates that a home needs, compared with those of the line.
//!
//! Calls, games and probes send what they send, whatever the line has, and conferences at least their lowest rate.
//! Their rates on the wire are added up, headers and cells included. TCP takes what is left, so it needs nothing.

use lastmile_linklayer::LinkLayer;
use lastmile_model::{Network, Source, Traffic};
use lastmile_scenario::Scenario;
use lastmile_units::{BitRate, ByteCount, Duration};

/// One sentence for each direction in which the home needs more than the line has.
pub(crate) fn notes(scenario: &Scenario) -> Vec<String> {
    let Some(access) = scenario.access() else { return Vec::new() };
    let network = scenario.network_ref();
    let directions = [("down", &access.down), ("up", &access.up)];
    let notes = directions.into_iter().filter_map(|(way, hop)| {
        let (names, bps) = needs(network, access.client, way, &hop.line.link_layer);
        let has = hop.line.rate?;
        let needs = BitRate::from_bps(bps.div_ceil(1000) * 1000).filter(|needs| *needs > has)?;
        let names = names.join(", ");
        Some(format!(
            "{names} need {needs} {way}, headers included, and the line has {has}: packets are lost under any policy."
        ))
    });
    notes.collect()
}

/// The sources that send at a rate of their own through the line of `client`, and their rate on the wire.
fn needs(network: &Network, client: usize, way: &str, layer: &LinkLayer) -> (Vec<String>, u64) {
    let mut names: Vec<String> = Vec::new();
    let mut sum = 0;
    for traffic in &network.traffic {
        let from_client = traffic.from == client;
        let there = if way == "up" { from_client } else { traffic.to == client };
        let echoes = matches!(traffic.source, Source::Ping { .. } | Source::Game(_));
        if !there && !(echoes && (from_client || traffic.to == client)) {
            continue;
        }
        let Some(bps) = rate(&traffic.source, layer, !there) else { continue };
        sum += bps * u64::from(traffic.count);
        names.push(name(traffic));
    }
    (names, sum)
}

/// The name in the file: a source in both directions is two traffics.
fn name(traffic: &Traffic) -> String {
    let own = traffic.name.strip_suffix("-up").or_else(|| traffic.name.strip_suffix("-down"));
    own.unwrap_or(&traffic.name).to_owned()
}

/// The mean of the extreme-value distribution, in scales above its location: Euler's constant, in ten-thousandths.
const EULER: u64 = 5_772;

/// The mean rate of one source on the wire, in bit/s; `None` for one that takes what is left. `back` asks for the rate
/// of what its receiver sends.
fn rate(source: &Source, layer: &LinkLayer, back: bool) -> Option<u64> {
    let wire = |size: ByteCount| u128::from(layer.on_wire(size).as_u64()) * 8;
    let every = |size, interval: Duration| wire(size) * 1_000_000_000_000 / u128::from(interval.as_ps()).max(1);
    let of_ip =
        |rate: BitRate, size: ByteCount| wire(size) * u128::from(rate.as_bps()) / u128::from(size.as_u64() * 8).max(1);
    let bps = match *source {
        Source::Constant { interval, size, .. } | Source::Ping { interval, size, .. } => every(size, interval),
        Source::Poisson { rate, size } => of_ip(rate, size),
        Source::OnOff { peak, on, off, size } => {
            of_ip(peak, size) * u128::from(on.as_ps()) / (u128::from(on.as_ps()) + u128::from(off.as_ps())).max(1)
        }
        // Its rate control goes no lower.
        Source::Conference(ref conference) => conference.rates.least.as_bps().into(),
        Source::Game(ref game) => {
            let datagrams = if back { game.commands } else { game.updates };
            let (interval, size) = (datagrams.interval, datagrams.size);
            let mean = size.location + ByteCount::new(size.scale.as_u64() * EULER / 10_000);
            every(mean, interval.location + interval.scale * EULER / 10_000)
        }
        Source::Bulk { .. }
        | Source::Quic { .. }
        | Source::Writes { .. }
        | Source::Web(_)
        | Source::Video(_)
        | Source::Backup(_)
        | Source::Swarm(_)
        | Source::Replay(_) => return None,
    };
    u64::try_from(bps).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over bare IP: 50 packets of 200 bytes a second are 80 kbit/s, ten of 84 bytes 6.72 kbit/s, and 500 kbit/s are
    /// 500 kbit/s. The sum, 586.72, is rounded up.
    #[test]
    fn constant_sources_are_added_up_and_told_where_they_exceed_the_line() {
        let scenario = |up: &str| {
            let text = format!(
                "duration = \"1 s\"\n[access]\ndown = {{ rate = \"80 kbit/s\" }}\nup = {{ rate = \"{up}\" }}\n\
                 [[traffic]]\nname = \"call\"\nkind = \"voice\"\ndirection = \"both\"\n\
                 [[traffic]]\nname = \"film\"\nkind = \"poisson\"\nrate = \"500 kbit/s\"\ndirection = \"up\"\n\
                 [[traffic]]\nkind = \"ping\"\ninterval = \"100 ms\"\n\
                 [[traffic]]\nkind = \"bulk\"\ndirection = \"up\"\n"
            );
            Scenario::parse("f", &text, &[]).unwrap_or_else(|report| panic!("{report}"))
        };
        let down = "call, ping need 87 kbit/s down, headers included, and the line has 80 kbit/s: packets are lost \
                    under any policy.";
        assert_eq!(notes(&scenario("1 Mbit/s")), [down]);
        let up = "call, film, ping need 587 kbit/s up, headers included, and the line has 500 kbit/s: packets are lost \
                  under any policy.";
        assert_eq!(notes(&scenario("500 kbit/s")), [down, up]);
    }
}
