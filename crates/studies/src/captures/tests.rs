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
        glimpses.packet(at_ms * 1_000_000, Sighting::default(), &packet, &[]);
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

/// A pcapng file of raw IP with two interfaces: 100 datagrams of 200 IP bytes, 20 ms apart, and again 20 us later at
/// the second one.
fn of_two_interfaces() -> Vec<u8> {
    let mut file = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let length = 12 + body.len() as u32;
        file.extend([kind, length].map(u32::to_le_bytes).as_flattened());
        file.extend(body);
        file.extend(length.to_le_bytes());
    };
    // The byte order, version 1.0, and a length that is not told.
    block(0x0a0d_0d0a, &[[0x4d, 0x3c, 0x2b, 0x1a], [1, 0, 0, 0], [0xff; 4], [0xff; 4]].concat());
    // LINKTYPE_RAW, without a snap length.
    (0..2).for_each(|_| block(1, &[101, 0, 0, 0, 0, 0, 0, 0]));
    for number in 0..100_u16 {
        let mut ip = vec![0; 200];
        ip[..4].copy_from_slice(&[0x45, 0, 0, 200]);
        ip[4..6].copy_from_slice(&(number + 1).to_be_bytes());
        ip[8..28].copy_from_slice(&[64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2, 0x1f, 0x90, 0x1f, 0x91, 0, 180, 0, 0]);
        for interface in 0..2 {
            // Microseconds from 1970, and the captured and the original length.
            let us = 20_000 * u32::from(number) + 20 * interface;
            let head = [interface, 0, us, 200, 200].map(u32::to_le_bytes);
            block(6, &[head.as_flattened(), &ip].concat());
        }
    }
    file
}

#[test]
fn datagrams_of_several_interfaces_count_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("router.pcapng");
    std::fs::write(&path, of_two_interfaces()).unwrap();
    let read = read::all(&path, Wanted::default(), None).unwrap();
    let (counts, up) = (&read[0].counts, read[0].datagrams[0].up);
    assert_eq!((counts.packets, counts.seen_before, counts.mirrored), (200, 100, 0));
    assert_eq!((up.packets, up.rate_bps(), up.peak_bps, up.longest_burst), (100, Some(80_000.0), 80_000.0, 1));
}

/// Next to a sender whose device divides datagrams of ten packets of QUIC.
#[test]
fn datagrams_that_are_several_packets_have_a_warning() {
    let warnings = |payload: u16| {
        let mut datagrams = DatagramAnalysis::default();
        let (_, mut packet) = packets().remove(3);
        packet.meta.ip_len = 28 + payload;
        datagrams.packet(Instant::ZERO, &packet, &[&[0; 28][..], &[0xc3, 0, 0, 0, 1]].concat());
        tables::warnings(&Document::new(&Analysed { datagrams: datagrams.finish(), ..analysed() }, None))
    };
    assert!(!warnings(1_472).iter().any(|text| text.contains("QUIC")));
    assert!(warnings(12_520).iter().any(|text| text.starts_with("a direction of QUIC with datagrams")));
}
