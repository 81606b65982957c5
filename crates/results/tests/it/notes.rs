//! Notes name other limits than the access line.

use lastmile_results::{Origin, summarise};
use lastmile_scenario::Scenario;

use crate::summary;

fn notes(text: &str) -> Vec<String> {
    let scenario = Scenario::parse("f", text, &[]).unwrap_or_else(|report| panic!("{report}"));
    let network = scenario.network();
    let outcome = lastmile_sim::run(&network).expect("it can be run");
    summarise(&Origin::default(), &network, &outcome).notes
}

fn line(rest: &str, traffic: &str) -> String {
    format!(
        "duration = \"2 s\"\naccess = {{ down = {{ rate = \"100 Mbit/s\" }}, up = {{ rate = \"40 Mbit/s\" }}{rest} }}\n\
         [[traffic]]\nname = \"a\"\nkind = \"bulk\"\ndirection = \"down\"\n{traffic}"
    )
}

#[test]
fn the_defaults_leave_the_access_line_the_bottleneck() {
    assert_eq!(notes(&line("", "")), [""; 0]);
    assert_eq!(notes(&line("", "count = 4\n")), [""; 0], "a share of the line is the line's");
}

/// 10 Mbit/s of Ethernet carry 1448 of 1538 bytes; 65 535 bytes over 20 ms are 26 Mbit/s.
#[test]
fn a_slow_lan_a_window_and_a_shared_aggregation_are_named() {
    let lan = notes(&line(", lan = { rate = \"10 Mbit/s\" }", ""));
    assert!(
        lan[0].starts_with(
            "a: the limit is not the access line (96.5 Mbit/s) but 9.42 Mbit/s by rate of link cpe-client"
        ),
        "{lan:?}"
    );
    let window = notes(&line("", "tcp = { era = \"1999\" }\n"));
    assert!(window[0].contains("by receive window 65535 bytes / empty round trip 20."), "{window:?}");
    let shared = notes(&line(", lines = 4, aggregation = { rate = \"100 Mbit/s\" }", ""));
    assert!(shared[0].starts_with("a-line-1, a-line-2, a-line-3 and 1 more: "), "{shared:?}");
    assert!(shared[0].ends_with("by rate of link gateway-dslam, shared by 4"), "{shared:?}");
}

fn simulated(text: &str) -> lastmile_results::Summary {
    let scenario = Scenario::parse("f", text, &[]).unwrap_or_else(|report| panic!("{report}"));
    let network = scenario.network();
    let outcome = lastmile_sim::run(&network).expect("it can be run");
    summarise(&Origin::default(), &network, &outcome)
}

/// ACKs that waited behind the upload arrive together and release 1500 segments from the server at
/// once: its port can queue them.
#[test]
fn by_default_packets_are_dropped_at_the_line_alone() {
    for seed in 1..=3 {
        let summary = simulated(&format!(
            "seed = {seed}\nduration = \"8 s\"\n\
             access = {{ down = {{ rate = \"250 Mbit/s\" }}, up = {{ rate = \"25 Mbit/s\" }} }}\n\
             [[traffic]]\nkind = \"bulk\"\ndirection = \"both\"\n"
        ));
        for link in summary.links.iter().filter(|link| !["up", "down"].contains(&&*link.name)) {
            assert_eq!(link.queue.drops.values().sum::<u64>(), 0, "{}, seed {seed}", link.name);
        }
    }
}

/// Requests are sent every 100 ms from a random start on, and replies take 20 ms: with some seeds
/// the last is in flight at the end.
#[test]
fn a_request_under_way_at_the_end_is_not_lost() {
    let probes = (1..=20).flat_map(|seed| ["icmp", "udp"].map(|protocol| (seed, protocol))).map(|(seed, protocol)| {
        let summary = simulated(&format!(
            "seed = {seed}\nduration = \"2 s\"\n\
             access = {{ down = {{ rate = \"100 Mbit/s\" }}, up = {{ rate = \"40 Mbit/s\" }} }}\n\
             [[traffic]]\nkind = \"ping\"\ninterval = \"100 ms\"\nprotocol = \"{protocol}\"\n"
        ));
        let probe = &summary.probes[0];
        (probe.sent - probe.received, probe.lost)
    });
    let probes: Vec<(u64, u64)> = probes.collect();
    assert!(probes.iter().any(|(unanswered, _)| *unanswered == 1), "{probes:?}");
    assert!(probes.iter().all(|(_, lost)| *lost == 0), "{probes:?}");
}

/// More flows than are recorded one by one leave no phases, and a note says so.
#[test]
fn missing_phases_are_told() {
    let with = |flows: u32| {
        let text = format!(
            "duration = \"2 s\"\n[record]\nflows = 3\n[access]\n\
             down = {{ rate = \"20 Mbit/s\" }}\nup = {{ rate = \"5 Mbit/s\" }}\n\
             [[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\ncount = {flows}\n"
        );
        let scenario = Scenario::parse("f", &text, &[]).unwrap_or_else(|report| panic!("{report}"));
        summary(&scenario.network())
    };
    let (few, many) = (with(3), with(4));
    assert_eq!((few.phases.len(), few.notes.len(), many.phases.len()), (1, 0, 0));
    assert_eq!(many.notes, ["no phases and no series of flows: 4 flows, and record.flows is 3"]);
}
