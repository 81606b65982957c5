//! Web users, swarms and replays, from file to network; and that what comes of them is sound.

use lastmile_model::{Http, Network, OpenedBy, Source};
use lastmile_scenario::Scenario;
use lastmile_units::Duration;

const LINE: &str = "duration = \"60 s\"\n[access]\ndown = { rate = \"8 Mbit/s\" }\nup = { rate = \"512 kbit/s\" }\n";
const CAPTURE: &str = "file = \"../../scenarios/captures/download-and-call.pcapng\"";

fn parse(traffic: &str) -> Result<Network, String> {
    let text = format!("{LINE}[[traffic]]\n{traffic}");
    Scenario::parse("f.toml", &text, &[]).map(|scenario| scenario.network()).map_err(|report| report.to_string())
}

fn names(network: &Network) -> Vec<(&str, &str)> {
    network.traffic.iter().map(|traffic| (traffic.name.as_str(), traffic.direction.as_str())).collect()
}

#[test]
fn web_pages_come_down_by_default_and_the_client_opens() {
    let network = parse("kind = \"web\"\ncount = 3\nserver_port = 80").unwrap();
    assert_eq!(names(&network), [("web", "down")]);
    let traffic = &network.traffic[0];
    assert_eq!((traffic.count, traffic.opened_by()), (3, OpenedBy::Receiver));
    assert_eq!(traffic.names.from.port, Some(80), "data come from the server");
    let Source::Web(web) = &traffic.source else { panic!("{traffic:?}") };
    assert_eq!((web.reading, web.request, web.connections), (Duration::from_s(30), 350, 6));
    assert_eq!((web.http, web.tls), (Http::One1, false));
}

#[test]
fn a_swarm_goes_both_ways_unless_told_otherwise() {
    let network = parse("kind = \"swarm\"\nname = \"p2p\"\npeers = 9").unwrap();
    assert_eq!(names(&network), [("p2p-down", "down"), ("p2p-up", "up")]);
    let ends: Vec<_> = network.traffic.iter().map(|traffic| (traffic.from, traffic.to)).collect();
    assert_eq!(ends[0], (ends[1].1, ends[1].0));
    assert_eq!(names(&parse("kind = \"swarm\"\ndirection = \"up\"").unwrap()), [("swarm", "up")]);
    assert_eq!(names(&parse("kind = \"swarm\"\nfrom = \"cpe\"\nto = \"gateway\"").unwrap()).len(), 2);
}

#[test]
fn a_replay_takes_the_packets_of_its_direction() {
    let both =
        parse(&format!("kind = \"replay\"\n{CAPTURE}\ndirection = \"both\"\nclient_prefix = \"10.0.0.1\"")).unwrap();
    assert_eq!(names(&both), [("replay-down", "down"), ("replay-up", "up")]);
    let counts: Vec<_> = both
        .traffic
        .iter()
        .map(|traffic| match &traffic.source {
            Source::Replay(replay) => (replay.packets.len(), replay.flows.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    let all = parse(&format!("kind = \"replay\"\n{CAPTURE}\ndirection = \"up\"")).unwrap();
    let Source::Replay(whole) = &all.traffic[0].source else { panic!("a replay") };
    assert_eq!(counts[0].0 + counts[1].0, whole.packets.len());
    assert_eq!((counts[0].1, counts[1].1), (1, 2), "data of the download; its ACKs and the call");
    // 50 packets of voice beside the ACKs, with their code point and times 20 ms apart.
    let Source::Replay(up) = &both.traffic[1].source else { panic!("a replay") };
    let voice: Vec<_> = up.packets.iter().filter(|(_, packet)| packet.traffic_class == 46 << 2).collect();
    assert_eq!(voice.len(), 50);
    assert!(voice.windows(2).all(|pair| pair[1].0 - pair[0].0 == Duration::from_ms(20)));
}

#[test]
fn what_cannot_be_replayed_is_told() {
    let refused = |traffic: &str, wanted: &str| {
        let report = parse(traffic).unwrap_err();
        assert!(report.contains(wanted), "{traffic}: {report}");
    };
    refused("kind = \"replay\"\ndirection = \"up\"\nfile = \"nowhere.pcap\"", "no such file");
    refused("kind = \"replay\"\ndirection = \"up\"\nfile = \"Cargo.toml\"", "neither pcap nor pcapng");
    refused(&format!("kind = \"replay\"\ndirection = \"both\"\n{CAPTURE}"), "both directions of a capture without");
    let elsewhere = format!("kind = \"replay\"\ndirection = \"up\"\n{CAPTURE}\nclient_prefix = \"198.51.100.0/24\"");
    refused(&elsewhere, "no packet of");
    refused(&format!("kind = \"replay\"\ndirection = \"up\"\n{CAPTURE}\nspeed = 0"), "no number from 0.001 to 1000");
    refused(&format!("kind = \"replay\"\ndirection = \"up\"\n{CAPTURE}\nclient_prefix = \"10.0.0/8\""), "no prefix");
}

#[test]
fn every_packet_of_them_is_somewhere_and_equal_seeds_agree() {
    let all = [
        "kind = \"web\"\ncount = 4\nreading = \"2 s\"\n[[traffic]]\nkind = \"swarm\"\nstop = \"40 s\"",
        &format!("kind = \"replay\"\n{CAPTURE}\ndirection = \"both\"\nclient_prefix = \"10.0.0.1\"\nspeed = 0.5"),
    ];
    for traffic in all {
        let network = parse(traffic).unwrap();
        let (one, other) = (lastmile_sim::run(&network).unwrap(), lastmile_sim::run(&network).unwrap());
        assert!(one.conservation.holds(), "{:?}", one.conservation);
        assert_eq!((one.events, one.conservation), (other.events, other.conservation));
        assert!(one.conservation.delivered.packets > 100);
    }
}
