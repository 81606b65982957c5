//! Scenarios of ATM that the repository ships.

use super::*;

/// A ready scenario, so long.
fn ready(name: &str, duration: &str) -> lastmile_model::outcome::Outcome {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/atm").join(name);
    let scenario = Scenario::load(&path, &[format!("duration={duration}")]).unwrap_or_else(|report| panic!("{report}"));
    run(&scenario.network()).expect("it can be built")
}

/// Early packet discard at the bottleneck is all that drops, and nearly all that crosses it is of whole packets.
#[test]
fn the_ready_scenario_of_sun_drops_whole_frames_at_its_bottleneck_alone() {
    let outcome = ready("sun-epd.toml", "5 s");
    assert!(outcome.conservation.holds());
    let atm = outcome.atm.unwrap();
    assert!(atm.holds());
    let dropping: Vec<_> = atm.ports.iter().filter(|port| port.cells.dropped.iter().any(|cells| *cells > 0)).collect();
    let [bottleneck] = dropping[..] else { panic!("{dropping:?}") };
    for drop in lastmile_atm::CellDrop::ALL {
        let dropped = bottleneck.cells.dropped[drop.index()];
        assert_eq!(dropped > 0, drop == lastmile_atm::CellDrop::Epd, "{drop:?}: {dropped}");
    }
    assert!(bottleneck.good_cells * 100 >= bottleneck.cells.sent * 98, "{bottleneck:?}");
}

/// Contracts assure their rates: connections of the assured paths get more than those of the others.
#[test]
fn the_ready_scenario_of_assured_forwarding_assures() {
    let outcome = ready("af-over-sbr3.toml", "5 s");
    assert!(outcome.conservation.holds());
    let atm = outcome.atm.unwrap();
    assert!(atm.holds());
    let mean = |assured: bool| {
        let of = outcome.flows.iter().filter(|flow| flow.name.starts_with("af") == assured);
        let bytes: Vec<u64> = of.map(|flow| flow.bytes_delivered).collect();
        (bytes.len(), bytes.iter().sum::<u64>() as f64 / bytes.len() as f64)
    };
    let ((assured, of_assured), (others, of_others)) = (mean(true), mean(false));
    assert_eq!((assured, others), (12, 36));
    assert!(of_assured > 1.5 * of_others, "{of_assured} {of_others}");
}

/// The ready scenario of assured forwarding with edges: each customer gets its rate and more, the marks
/// are the meters', voice loses nothing.
#[test]
fn the_ready_scenario_of_edges_assures_what_its_meters_say() {
    let outcome = ready("af-edge.toml", "6 s");
    assert!(outcome.conservation.holds());
    let atm = outcome.atm.unwrap();
    assert!(atm.holds());
    let [one, two, voice] = atm.edges[..] else { panic!("{:?}", atm.edges) };
    for edge in [one, two] {
        let [green, yellow, red] = edge.counts.colors;
        assert!(green.packets > 0 && yellow.packets > 0 && red.packets > 0, "{edge:?}");
        assert_eq!(edge.counts.clp[1].packets, yellow.packets + red.packets);
    }
    assert!(one.counts.colors[0].bytes > two.counts.colors[0].bytes);
    assert_eq!((voice.counts.dropped.packets, voice.counts.colors[1].packets), (0, 0));
    let bytes = |name: &str| -> u64 {
        let own = outcome.flows.iter().filter(|flow| flow.name.starts_with(name));
        own.map(|flow| flow.bytes_delivered).sum()
    };
    // Of 8 and 4 Mbit/s in cells 86 % are payload: 1460 bytes in 32 cells. In 6 s 5.16 and 2.58 MB.
    assert!(bytes("one") > 4_900_000 && bytes("two") > 2_450_000, "{} {}", bytes("one"), bytes("two"));
    assert!(bytes("rest") > 1_000_000, "{}", bytes("rest"));
    let call = outcome.flows.iter().find(|flow| flow.name == "call").unwrap();
    assert!(call.data_packets - call.data_packets_received <= 3, "{call:?}");
}

/// The figures of one of the ways to carry eight connections: bytes, Jain's index, most cells at the
/// trunk, most bytes at an edge, ACKs held.
fn carried(overrides: &[&str]) -> (u64, f64, u64, u64, u64) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/atm/abr-edge.toml");
    let overrides: Vec<String> = overrides.iter().chain(&["duration=8 s"]).map(|text| (*text).to_owned()).collect();
    let scenario = Scenario::load(&path, &overrides).unwrap_or_else(|report| panic!("{report}"));
    let network = scenario.network();
    let outcome = run(&network).expect("it can be built");
    assert!(outcome.conservation.holds());
    let atm = outcome.atm.expect("it has cells");
    assert!(atm.holds());
    let bytes: Vec<f64> = outcome.flows.iter().map(|flow| flow.bytes_delivered as f64).collect();
    let (sum, squares) = (bytes.iter().sum::<f64>(), bytes.iter().map(|bytes| bytes * bytes).sum::<f64>());
    let trunk = network.links.iter().position(|link| link.hop.name == "trunk").expect("a link");
    let links = &network.atm.as_ref().expect("it has cells").links;
    let port = links.iter().position(|link| *link == trunk).expect("one of cells");
    let edge = atm.vcs.iter().filter_map(|vc| Some(vc.abr?.edge_peak_bytes)).max().unwrap_or(0);
    let held = atm.vcs.iter().map(|vc| vc.acks_held.packets).sum();
    (sum as u64, sum * sum / (8.0 * squares), atm.ports[port].peak, edge, held)
}

/// ABR moves the queue from the switch to the edge; holding ACKs back empties the edge, too.
#[test]
fn available_bit_rate_moves_the_queue_to_the_edge_and_held_acks_shorten_it() {
    let (ubr_bytes, _, ubr_queue, no_edge, _) = carried(&["traffic.transfer.contract=unspecified"]);
    let (bytes, fair, queue, edge, no_acks) = carried(&[]);
    let (held_bytes, held_fair, held_queue, held_edge, held) = carried(&["contract.available.ack_hold=dynamic"]);
    let told = format!(
        "{ubr_bytes} {ubr_queue}, {bytes} {fair} {queue} {edge}, {held_bytes} {held_fair} {held_queue} {held_edge} \
         {held}"
    );
    assert_eq!((no_edge, no_acks), (0, 0));
    assert!(ubr_queue > 1_000 && queue < ubr_queue / 2 && held_queue < ubr_queue / 2, "{told}");
    assert!(edge > 40_000 && held_edge <= edge && held > 100, "{told}");
    assert!(fair > 0.95 && held_fair > 0.95, "{told}");
    // 95 % of 10 Mbit/s, 31 of 32 cells, 1460 bytes in 32 cells, 8 s: 7.9 MB.
    assert!(bytes > 6_500_000 && held_bytes > 6_500_000 && bytes < 8_000_000, "{told}");
}
