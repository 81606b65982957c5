use std::collections::BTreeSet;

use lastmile_analysis::datagrams::DatagramAnalysis;
use lastmile_analysis::joined::Fingerprints;
use lastmile_analysis::{Analysis, Sighting};
use lastmile_packet::{FlowAddresses, FlowId, FlowKey, Meta, Parsed, Protocol, SeqNumber, TcpFlags};
use lastmile_scenario::capture::Extent;
use lastmile_units::{Duration, Instant};
use serde_json::Value;

use super::run::{Counter, RunCounters};
use super::*;

/// Two segments of a connection and their ACK, and two datagrams.
fn packets() -> Vec<(u64, Parsed)> {
    let packet = |at_ms: u64, up: bool, protocol: Protocol, seq: u32, payload: u16| {
        let forward = FlowAddresses::of_simulated(FlowId::new(0));
        let (number, header_len) = if protocol == Protocol::Tcp { (6, 40) } else { (17, 28) };
        let key = FlowKey { addresses: if up { forward } else { forward.reversed() }, protocol: number };
        let seq = SeqNumber::new(seq);
        let meta = Meta {
            protocol,
            seq,
            flags: TcpFlags::ACK,
            header_len,
            ip_len: u16::from(header_len) + payload,
            ..Meta::default()
        };
        (at_ms, Parsed { meta, key, transport_offset: 20 })
    };
    vec![
        packet(0, true, Protocol::Tcp, 0, 1_000),
        packet(10, true, Protocol::Tcp, 1_000, 1_000),
        packet(20, false, Protocol::Tcp, 7, 0),
        packet(30, true, Protocol::Udp, 0, 100),
        packet(40, true, Protocol::Udp, 0, 90),
    ]
}

fn analysed() -> Analysed {
    let (mut analysis, mut datagrams, mut glimpses) =
        (Analysis::new(), DatagramAnalysis::default(), Fingerprints::default());
    for (at_ms, packet) in packets() {
        let at = Instant::ZERO + Duration::from_ms(at_ms);
        analysis.packet(at, &packet);
        datagrams.packet(at, &packet, &[]);
        glimpses.packet(at_ms * 1_000_000, Sighting::default(), &packet);
    }
    // A connection without data.
    let (_, lone) = packets().remove(2);
    let key = FlowKey { addresses: FlowAddresses::of_simulated(FlowId::new(2)), protocol: 6 };
    analysis.packet(Instant::ZERO + Duration::from_ms(50), &Parsed { key, ..lone });
    Analysed {
        path: "a.pcap".into(),
        run: None,
        connections: analysis.finish(),
        datagrams: datagrams.finish(),
        counts: read::Counts {
            extent: Extent { links: vec!["RAW".to_owned()], ..Extent::default() },
            ..read::Counts::default()
        },
        pictures: None,
        glimpses: Some(glimpses),
        segments: None,
    }
}

fn keys(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Array(all) => {
            assert!(!all.is_empty(), "an array without an element has no keys");
            all.iter().for_each(|one| keys(one, into));
        }
        Value::Object(map) => {
            for (key, value) in map {
                into.insert(key.clone());
                keys(value, into);
            }
        }
        _ => {}
    }
}

#[test]
fn the_reference_has_every_field_of_json_and_csv() {
    let mut read = analysed();
    let joined = joined::join(read.glimpses.take().unwrap(), analysed().glimpses.unwrap()).unwrap();
    let mut document = Document::new(&read, None);
    let second = analysed();
    let of_second = Document::new(&second, None);
    let mut both = BothEnds::new(&joined, &side(&document, &read), side(&of_second, &second));
    both.clock_steps = vec![both_ends::Step { at_s: 1.0, by_s: 0.3 }];
    document.joined = Some(both);
    let counter = Counter { direction: "up".to_owned(), name: "timeouts", run: None, capture: None };
    document.run = Some(RunCounters { scenario: String::new(), counters: vec![counter] });
    let mut all = BTreeSet::new();
    keys(&serde_json::to_value(Files { files: vec![&document] }).unwrap(), &mut all);
    assert!(all.len() > 100 && all.contains("ect0_packets") && all.contains("delay_p99_s"), "{all:?}");
    let mut rows = Vec::new();
    csv::write([&document].into_iter(), &mut rows).unwrap();
    let head = String::from_utf8(rows).unwrap();
    let columns = head.lines().next().unwrap().split(',').map(|name| name.strip_prefix("limited_by_").unwrap_or(name));
    all.extend(columns.map(str::to_owned));
    let page = include_str!("../../../../docs/reference/captures.md");
    let missing: Vec<&String> = all.iter().filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/reference/captures.md lacks {missing:?}");
}
