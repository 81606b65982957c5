//! Switches, links of cells, contracts: what is built of them, and what is refused.

use lastmile_atm::contract::Contract;
use lastmile_scenario::Scenario;
use lastmile_sim::{Simulation, run};
use lastmile_units::{BitRate, Duration};

mod shipped;

/// Host - switch - switch - host, five transfers.
const CELLS: &str = r#"duration = "2 s"
[[switch]]
name = "a"
[[switch]]
name = "b"
queue = { kind = "epd", limit = "500 cells", threshold = "400 cells" }
[[link]]
from = "left"
to = "a"
interface = "oc-3c"
[[link]]
from = "a"
to = "b"
rate = "10 Mbit/s"
delay = "1 ms"
[[link]]
from = "b"
to = "right"
interface = "oc-3c"
"#;
const TRAFFIC: &str = "[[traffic]]\nkind = \"persistent\"\nfrom = \"left\"\nto = \"right\"\n";

#[track_caller]
fn refused(text: &str, headline: &str) {
    let report = crate::parse(text).expect_err(text);
    let headlines: Vec<String> = report.findings().iter().map(lastmile_scenario::Diagnostic::headline).collect();
    assert_eq!(headlines, [headline], "{text}");
}

fn parsed(text: &str) -> Scenario {
    crate::parse(text).unwrap_or_else(|report| panic!("{report}"))
}

#[test]
fn every_flow_has_a_virtual_channel_each_way() {
    let network = parsed(&format!("{CELLS}{TRAFFIC}count = 5\n")).network();
    let atm = network.atm.as_ref().unwrap();
    let names: Vec<&str> = atm.network.vcs.iter().map(|vc| vc.name.as_str()).collect();
    assert_eq!(names.len(), 10);
    assert_eq!((names[0], names[5]), ("persistent-1", "persistent-1 back"));
    let vcis: Vec<u16> = atm.network.vcs.iter().map(|vc| vc.vci).collect();
    assert_eq!(vcis, (32..42).collect::<Vec<u16>>());
    assert_eq!(atm.network.links[0].rate.as_bps(), 149_760_000);
    let outcome = run(&network).unwrap();
    assert!(outcome.conservation.holds() && outcome.atm.unwrap().holds());
    assert!(outcome.flows.iter().all(|flow| flow.bytes_delivered > 0));
}

/// One cell in five hundred is lost on the trunk, none on its way back: packets of 32 cells and ACKs of
/// two lose what independent losses let them lose.
#[test]
fn a_link_loses_cells_and_they_their_packets() {
    let lossy = CELLS.replace("delay = \"1 ms\"\n", "delay = \"1 ms\"\nloss = \"0.2 %\"\nback = { loss = \"0 %\" }\n");
    let mut network = parsed(&format!("{lossy}{TRAFFIC}count = 5\n")).network();
    let losses: Vec<u32> = network.atm.as_ref().unwrap().network.links.iter().map(|link| link.loss_ppb).collect();
    assert_eq!(losses, [0, 0, 2_000_000, 0, 0, 0]);
    network.duration = Duration::from_s(20);
    let outcome = run(&network).unwrap();
    let atm = outcome.atm.as_ref().unwrap();
    assert!(outcome.conservation.holds() && atm.holds(), "{atm:?}");
    let trunk = &atm.ports[2].cells;
    assert_eq!((trunk.lost, atm.cells.lost), (trunk.lost, trunk.lost), "nowhere else");
    let within = |found: u64, of: u64, expected: f64| {
        let deviation = (expected * (1.0 - expected) / of as f64).sqrt();
        let share = found as f64 / of as f64;
        assert!((share - expected).abs() < 4.0 * deviation, "{share} of {of}, not {expected}");
    };
    within(trunk.lost, trunk.sent, 0.002);
    let (there, back) = atm.vcs.split_at(5);
    let lost = there.iter().map(|vc| vc.on_wire).sum();
    let came = there.iter().map(|vc| vc.stats.offered.frames - vc.lost.iter().sum::<u64>()).sum();
    // All but a few are of 32 cells.
    within(lost, came, 1.0 - 0.998_f64.powi(32));
    assert!(back.iter().all(|vc| vc.on_wire == 0));
    network.atm.as_mut().unwrap().network.trains = false;
    assert_eq!(format!("{:?}", run(&network).unwrap().atm), format!("{:?}", outcome.atm), "trains change nothing");
    network.seed += 1;
    let other = run(&network).unwrap().atm.unwrap();
    assert_ne!(format!("{:?}", other.vcs), format!("{:?}", atm.vcs), "another run loses other cells");
}

/// The way back of a link is as the way there, unless it says otherwise.
#[test]
fn the_way_back_loses_as_many_cells() {
    let losses = |keys: &str| {
        let text = CELLS.replace("delay = \"1 ms\"\n", &format!("delay = \"1 ms\"\n{keys}"));
        let network = parsed(&format!("{text}{TRAFFIC}")).network();
        network.atm.unwrap().network.links[2..4].iter().map(|link| link.loss_ppb).collect::<Vec<_>>()
    };
    assert_eq!(losses(""), [0, 0]);
    assert_eq!(losses("loss = \"1 %\"\n"), [10_000_000; 2]);
    assert_eq!(losses("loss = \"1 %\"\nback = { rate = \"2 Mbit/s\" }\n"), [10_000_000; 2]);
    assert_eq!(losses("back = { loss = \"0.00001 %\" }\n"), [0, 100]);
}

#[test]
fn several_flows_may_share_one() {
    let network = parsed(&format!("{CELLS}{TRAFFIC}count = 5\nvc = \"shared\"\n")).network();
    let circuits = &network.atm.as_ref().unwrap().circuits;
    assert_eq!(circuits.iter().map(|circuit| circuit.vcs.len()).collect::<Vec<_>>(), [1, 1]);
    let outcome = run(&network).unwrap();
    assert!(outcome.flows.iter().all(|flow| flow.bytes_delivered > 0));
}

/// A host between two switches ends the virtual channels of one and begins those of the other.
#[test]
fn a_router_between_cells_makes_two_virtual_channels_of_a_way() {
    let text = format!(
        "{CELLS}[[switch]]\nname = \"c\"\n[[link]]\nfrom = \"right\"\nto = \"c\"\nrate = \"5 \
         Mbit/s\"\n[[link]]\nfrom = \"c\"\nto = \"end\"\n\
         rate = \"5 Mbit/s\"\n{}",
        TRAFFIC.replace("right", "end")
    );
    let network = parsed(&text).network();
    let names: Vec<&str> = network.atm.as_ref().unwrap().network.vcs.iter().map(|vc| vc.name.as_str()).collect();
    assert_eq!(names, ["persistent", "persistent 2", "persistent back", "persistent back 2"]);
    let outcome = run(&network).unwrap();
    assert!(outcome.flows[0].bytes_delivered > 100_000);
    assert!(outcome.conservation.holds());
}

#[test]
fn a_code_point_finds_its_contract_and_a_path_is_policed_where_it_enters() {
    let contracts = "[[contract]]\nname = \"af\"\nkind = \"sbr3\"\npcr = \"10 Mbit/s\"\n\
    scr = \"1 Mbit/s\"\nmbs = \"100 cells\"\ndscp = [10, \
                     12]\nshape = \"8 Mbit/s\"\n[[vp]]\nname = \"p\"\ncontract = \"af\"\n";
    let network = parsed(&format!("{CELLS}{contracts}{TRAFFIC}dscp = 12\nvp = \"p\"\n")).network();
    let spec = &network.atm.as_ref().unwrap().network;
    let upc = spec.vcs[0].upc.unwrap();
    assert!(matches!(upc.contract, Contract::Sbr { .. }));
    assert_eq!(upc.at.index(), 2, "the first link behind a switch");
    assert_eq!(spec.vps[0].upc.unwrap().at.index(), 2);
    assert!(spec.vcs[1].upc.is_none(), "what comes back is not policed");
    assert_eq!((spec.vcs[0].vpi, spec.vcs[1].vpi), (1, 0));
    assert_eq!(spec.vcs[1].pcr, Some(BitRate::from_mbit_per_s(8)));
    let outcome = Simulation::new(&network, None).unwrap().finish();
    let atm = outcome.atm.unwrap();
    assert!(atm.vcs[0].conformance.unwrap().tagged > 0, "{:?}", atm.vcs[0]);
    assert!(atm.paths[0].is_some());
}

/// Each is refused once, where the path names it.
#[test]
fn contracts_of_channels_do_not_police_paths() {
    let of = |contract: &str| {
        let text = format!(
            "{CELLS}[[contract]]\nname = \"c\"\n{contract}\n\
             [[vp]]\nname = \"p\"\ncontract = \"c\"\n{TRAFFIC}vp = \"p\"\n"
        );
        let report = crate::parse(&text).expect_err(&text);
        report.findings().iter().map(lastmile_scenario::Diagnostic::headline).collect::<Vec<_>>()
    };
    let gfr = "kind = \"gfr\"\npcr = \"2 Mbit/s\"\nmcr = \"1 Mbit/s\"\nmbs = \"100 cells\"\nmfs = \"32 cells\"";
    for (contract, why) in [
        (gfr, "a GFR contract judges frames"),
        ("kind = \"abr\"\npcr = \"2 Mbit/s\"", "an ABR contract polices nothing"),
    ] {
        let found = of(contract);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(&format!("{why}, and holds for a virtual channel, not for a path")), "{found:?}");
    }
}

/// A trickle of 1 Mbit/s as AF1 over a contract of an edge: of each packet of 1000 bytes 22 cells, 1166
/// bytes on the wire. A bucket of 400 kbit/s makes a third of it green; what is yellow is another third
/// at most, since it is what the committed bucket cannot hold.
const EDGE: &str = r#"[[contract]]
name = "sbr"
kind = "sbr3"
pcr = "10 Mbit/s"
scr = "1 Mbit/s"
mbs = "100 cells"
[[vp]]
name = "p"
contract = "sbr"
[[edge]]
name = "assured"
dscp = ["af11", "af12", "af13"]
vp = "p"
low_priority = ["yellow", "red"]
meter.kind = "trtcm"
meter.rate = "400 kbit/s"
meter.burst = "3000 wire bytes"
meter.peak = "800 kbit/s"
meter.peak_burst = "3000 wire bytes"
[[traffic]]
kind = "blast"
rate = "1 Mbit/s"
size = "1000 B"
from = "left"
to = "right"
dscp = 10
"#;

#[test]
fn an_edge_colors_by_bucket_depth_and_cells_have_its_image() {
    let mut network = parsed(&format!("{CELLS}{EDGE}")).network();
    network.start_jitter = Duration::ZERO;
    let spec = network.atm.as_ref().unwrap();
    assert!(spec.network.vps[0].upc.is_some() && spec.network.vcs[0].vp.is_some());
    let outcome = run(&network).unwrap().atm.unwrap();
    let counts = outcome.edges[0].counts;
    // In 2 s 251 packets, 292 666 bytes on the wire; 100 000 and a bucket are green, 200 000 and a bucket are not red.
    let packets = counts.colors.map(|count| count.packets);
    assert_eq!(packets.iter().sum::<u64>(), 251, "the last leaves with the end");
    let green = (100_000 + 3_000) / 1166;
    assert!(packets[0].abs_diff(green) <= 1, "{packets:?}");
    assert!((packets[0] + packets[1]).abs_diff((200_000 + 3_000) / 1166) <= 1, "{packets:?}");
    assert_eq!(counts.clp.map(|count| count.packets), [packets[0], packets[1] + packets[2]]);
    let vc = outcome.vcs[0].stats;
    assert_eq!(vc.offered_low_priority.frames, packets[1] + packets[2]);
    assert_eq!((vc.offered.frames, outcome.edges[0].counts.dropped.packets), (251, 0));
}

#[test]
fn an_edge_may_drop_a_color_and_meter_each_virtual_channel() {
    let two = EDGE.replace("low_priority", "drop").replace("dscp = 10", "dscp = 10\ncount = 2");
    let of = |per: &str| {
        let text = format!("{CELLS}{}", two.replace("[[traffic]]", &format!("per = \"{per}\"\n[[traffic]]")));
        let outcome = run(&parsed(&text).network()).unwrap();
        assert!(outcome.conservation.holds());
        outcome.atm.unwrap()
    };
    let green = |atm: &lastmile_model::outcome::AtmOutcome| {
        assert_eq!(atm.edges.len(), 1);
        let counts = atm.edges[0].counts;
        assert_eq!(counts.dropped.packets, counts.colors[1].packets + counts.colors[2].packets);
        assert_eq!(atm.vcs.iter().map(|vc| vc.policed).sum::<u64>(), counts.dropped.packets);
        counts.colors[0].packets
    };
    let (together, each) = (green(&of("node")), green(&of("vc")));
    assert!(each.abs_diff(2 * together) <= 2, "{each} of two buckets, {together} of one");
}

#[test]
fn what_an_edge_cannot_be() {
    let edge = |keys: &str| format!("{CELLS}[[edge]]\nname = \"e\"\n{keys}{TRAFFIC}");
    refused(
        &edge("dscp = \"ef\"\nlow_priority = \"yellow\"\n"),
        "error: x.toml:23:16: edge.e.low_priority: nothing colors these packets: no meter, and no code point of \
         assured forwarding (AFxy)",
    );
    let bucket = "meter = { kind = \"token-bucket\", rate = \"1 Mbit/s\", burst = \"10000 wire bytes\" }\n";
    refused(
        &edge(&format!("dscp = \"af11\"\ndrop = [\"red\"]\n{bucket}")),
        "error: x.toml:23:8: edge.e.drop: this meter has two answers, green and yellow",
    );
    refused(&edge("dscp = \"af11\"\ncolors = \"clp\"\n"), "error: x.toml:23:10: edge.e.colors: no meter asks for it");
    refused(
        &edge("dscp = \"af15\"\n"),
        "error: x.toml:22:8: edge.e.dscp: unknown code point \"af15\"; did you mean \"AF11\"?",
    );
    refused(&edge("dscp = \"af11\"\ncontract = \"gold\"\n"), "error: x.toml:23:12: no contract is called \"gold\"");
    refused(
        &edge("dscp = \"af11\"\nat = \"a\"\n"),
        "error: x.toml:23:6: \"a\" is a switch, and what comes to it is cells already",
    );
    refused(
        &edge("dscp = 10\n[[edge]]\nname = \"f\"\ndscp = [12, 10]\n"),
        "error: x.toml:25:8: edge.f.dscp: code point 10 is of edge \"e\" already",
    );
    refused(
        "[[edge]]\nname = \"e\"\ndscp = 10\n[[link]]\nfrom = \"a\"\nto = \"b\"\n",
        "error: x.toml:1:1: edge: no links of cells",
    );
}

#[test]
fn contracts_that_contradict_themselves() {
    let contract = |rest: &str| {
        format!("{CELLS}[[contract]]\nname = \"af\"\nkind = \"sbr3\"\npcr = \"5 Mbit/s\"\n{rest}{TRAFFIC}")
    };
    refused(
        &contract("scr = \"6 Mbit/s\"\nmbs = \"10 cells\"\n"),
        "error: x.toml:24:7: contract.af.scr: the sustainable cell rate 6 Mbit/s is above the peak cell rate 5 Mbit/s",
    );
    refused(
        &contract("scr = \"1 Mbit/s\"\nmbs = \"0 cells\"\n"),
        "error: x.toml:25:7: contract.af.mbs: the maximum burst size is 0 cells; it must be at least 1",
    );
    refused(
        &contract("scr = \"1 Mbit/s\"\nmbs = \"1 cells\"\nmcr = \"1 kbit/s\"\n"),
        "error: x.toml:26:1: unknown key \"mcr\" in [[contract]] \"af\"",
    );
}

#[test]
fn thresholds_above_the_buffer() {
    refused(
        &CELLS.replace("400 cells", "501 cells"),
        "error: x.toml:6:58: switch.b.queue.threshold: the EPD threshold of 501 cells is above the buffer of 500 cells",
    );
    // Cells of CLP = 1 are counted with all in the memory, which is that of the switch, or else as
    // large as the port's queues.
    let queue = |text: &str| CELLS.replace("kind = \"epd\", limit = \"500 cells\", threshold = \"400 cells\"", text);
    let classes = |limit: u32| {
        queue(&format!(
            "kind = \"classes\", classes = [\
             {{ name = \"af\", queue = {{ limit = \"100 cells\", low_priority_limit = \"{limit} cells\" }} }}, \
             {{ name = \"df\", queue = {{ limit = \"50 cells\" }} }}]"
        ))
    };
    refused(
        &queue("kind = \"tail-drop\", limit = \"500 cells\", low_priority_limit = \"501 cells\""),
        "error: x.toml:6:73: switch.b.queue.low_priority_limit: the limit of CLP = 1 of 501 cells is above the \
         buffer of 500 cells",
    );
    refused(
        &classes(151),
        "error: x.toml:6:39: switch.b.queue.classes: the limit of CLP = 1 of 151 cells is above the buffer of 150 \
         cells",
    );
    parsed(&format!("{}{TRAFFIC}", classes(150)));
    let memory = format!("{}{TRAFFIC}", classes(151)).replace("name = \"b\"", "name = \"b\"\nmemory = \"151 cells\"");
    parsed(&memory);
}

#[test]
fn names_that_are_not_there() {
    let asking = |key: &str| format!("{CELLS}[[contract]]\nname = \"assured\"\n{TRAFFIC}{key} = \"asured\"\n");
    refused(&asking("contract"), "error: x.toml:26:12: no contract is called \"asured\"");
    refused(&asking("vp"), "error: x.toml:26:6: no virtual path is called \"asured\"");
    let said = crate::parse(&asking("contract")).expect_err("unknown").to_string();
    assert!(said.contains("hint: did you mean \"assured\"?"), "{said}");
    refused(
        &format!("{CELLS}[[contract]]\nname = \"x\"\nclass = \"gold\"\n{TRAFFIC}"),
        "error: x.toml:22:9: no port has a class \"gold\"",
    );
}

#[test]
fn what_a_link_of_cells_cannot_be() {
    refused(&CELLS.replace("rate = \"10 Mbit/s\"\n", ""), "error: x.toml:11:1: link.1: a link of cells without a rate");
    refused(
        &CELLS.replace("delay = \"1 ms\"\n", "loss = \"101 %\"\n"),
        "error: x.toml:15:8: link.1.loss: \"101 %\" is too large; a share of a whole is at most 100 %",
    );
    refused(
        &format!("{CELLS}{}", TRAFFIC.replace("right", "b")),
        "error: x.toml:23:6: \"b\" is a switch, and no traffic begins or ends at one",
    );
    refused(
        &format!("{CELLS}[[link]]\nfrom = \"right\"\nto = \"island\"\nqueue = {{ kind = \"epd\" }}\n"),
        "error: x.toml:23:18: unknown kind \"epd\"",
    );
    let island = format!("{CELLS}[[node]]\nname = \"island\"\n{}", TRAFFIC.replace("right", "island"));
    refused(&island, "error: x.toml:24:8: no links lead from \"left\" to \"island\"");
}

/// A ping alone, over switches, a router between them, a link of packets and processing delays: it
/// takes the round trip that bounds are worked out with, to the picosecond.
#[test]
fn a_ping_alone_over_cells_takes_the_base_round_trip() {
    for size in [28_u32, 84, 1500] {
        let text = CELLS.replace("to = \"right\"\ninterface", "to = \"router\"\ninterface")
            + "[[node]]\nname = \"router\"\nprocessing = \"700 us\"\n[[switch]]\nname = \"c\"\nprocessing = \"30 us\"\n\
               [[link]]\nfrom = \"router\"\nto = \"c\"\nrate = \"34 Mbit/s\"\n\
               [[link]]\nfrom = \"c\"\nto = \"right\"\nrate = \"2 Mbit/s\"\npace = \"1 Mbit/s\"\ndelay = \"4 ms\"\n"
            + &TRAFFIC.replace("persistent", "ping")
            + &format!("size = \"{size} B\"\ninterval = \"500 ms\"\n");
        let scenario = parsed(&text);
        let size = lastmile_units::ByteCount::new(size.into());
        let expected = scenario.base_rtt(0, size, size).expect("a way back");
        let outcome = run(&scenario.network()).expect("a network");
        assert!(outcome.probes[0].replies.len() >= 3);
        for (_, rtt) in &outcome.probes[0].replies {
            assert_eq!(*rtt, expected, "{size}");
        }
    }
}

#[test]
fn what_available_bit_rate_cannot_be() {
    let abr = |keys: &str| {
        format!(
            "{CELLS}[[contract]]\nname = \"a\"\nkind = \"abr\"\npcr = \"5 Mbit/s\"\n{keys}{TRAFFIC}contract = \"a\"\n"
        )
    };
    refused(
        &abr("mcr = \"6 Mbit/s\"\n"),
        "error: x.toml:24:7: contract.a.mcr: the minimum cell rate 6 Mbit/s is above the peak cell rate 5 Mbit/s",
    );
    refused(
        &abr("icr = \"6 Mbit/s\"\n"),
        "error: x.toml:24:7: contract.a.icr: the initial cell rate 6 Mbit/s must be from the minimum of 4.24 kbit/s \
         to the peak of 5 Mbit/s",
    );
    refused(&abr("nrm = 31\n"), "error: x.toml:24:7: contract.a.nrm: 31 is no power of two from 2 to 256");
    refused(&abr("hold = \"5 ms\"\n"), "error: x.toml:24:8: contract.a.hold: no ACK is held by it");
    refused(&abr("shape = \"5 Mbit/s\"\n"), "error: x.toml:24:9: contract.a.shape: together with pcr");
    refused(
        &abr("").replace("pcr = \"5 Mbit/s\"", "pcr = \"150 Mbit/s\""),
        "error: x.toml:28:12: its contract has a peak cell rate of 150 Mbit/s, above 149.76 Mbit/s of link \"left-a\"",
    );
    refused(
        &CELLS.replace("name = \"a\"\n", "name = \"a\"\nabr = { kind = \"erica\", target = \"0 %\" }\n"),
        "error: x.toml:4:34: switch.a.abr.target: a target utilisation of 0 thousandths must be from 1 to 1000",
    );
}
