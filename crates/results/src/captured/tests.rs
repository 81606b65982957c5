use lastmile_analysis::{Acknowledgement, Analysis, Cause, Connection, Data, Kind, Phase, Sender, Sighting};
use lastmile_packet::{FlowAddresses, FlowId, FlowKey, Meta, Parsed, SeqNumber, TcpFlags};
use lastmile_units::{Duration, Instant};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;

use super::*;

const MSS: u32 = 1000;

/// A sender with a window of 10 segments, an ACK for each after 50 ms; every 97th segment is lost, and
/// retransmitted by a timer.
fn packets(count: u32) -> Vec<(Instant, Parsed)> {
    let mut all = Vec::new();
    let mut packet = |us: u64, back: bool, seq: u32, ack: u32, payload: u16| {
        let flow = FlowId::new(u32::from(back));
        let meta = Meta {
            seq: SeqNumber::new(seq),
            ack: SeqNumber::new(ack),
            flags: TcpFlags::ACK,
            window: 60_000,
            header_len: 40,
            ip_len: 40 + payload,
            ..Meta::default()
        };
        let key = FlowKey { addresses: FlowAddresses::of_simulated(flow), protocol: 6 };
        all.push((Instant::ZERO + Duration::from_us(us), Parsed { meta, key, transport_offset: 20 }));
    };
    for number in 0..count {
        let at = 50_000 * u64::from(number / 10) + 100 * u64::from(number % 10);
        packet(at, false, number * MSS, 0, 1000);
        if number % 97 == 96 {
            packet(at + 49_900, false, number * MSS, 0, 1000);
        }
        packet(at + 49_950, true, 0, (number + 1) * MSS, 0);
    }
    all.sort_by_key(|(at, _)| *at);
    all
}

fn analyse(packets: &[(Instant, Parsed)]) -> (Pictures, Vec<Connection>, Vec<Traced>) {
    let (mut analysis, mut pictures, mut all) = (Analysis::new(), Pictures::default(), Vec::new());
    for (at, packet) in packets {
        let traced = analysis.traced(*at, Sighting::default(), packet).unwrap();
        pictures.add(&traced);
        all.push(traced);
    }
    (pictures, analysis.finish(), all)
}

fn page_of(name: &str, packets: &[(Instant, Parsed)]) -> String {
    let (pictures, connections, _) = analyse(packets);
    let (lines, tables) = (vec!["one & two".to_owned()], Vec::new());
    let warnings = Vec::new();
    let capture =
        Capture { name, lines: &lines, warnings: &warnings, connections: &connections, tables: &tables, version: "0" };
    page(&capture, &pictures)
}

#[test]
fn a_page_is_whole_in_itself_and_the_same_for_the_same_packets() {
    let packets = packets(2_000);
    let text = page_of("a<b>.pcap", &packets);
    assert_eq!(text, page_of("a<b>.pcap", &packets));
    assert!(text.contains("a&lt;b&gt;.pcap") && !text.contains("a<b>") && text.contains("one &amp; two"));
    // The name space of SVG is the only address.
    let addresses = text.matches("http:").count() + text.matches("https:").count();
    assert_eq!(addresses, text.matches("http://www.w3.org/2000/svg").count(), "no request to any host");
    for title in ["Sequence", "Windows", "Round-trip time", "Throughput"] {
        assert!(text.contains(title), "{title}");
    }
    assert_eq!(text.matches("<svg").count(), text.matches("</svg>").count());
    assert!(text.contains("timeout") && text.contains("slow start"));
}

/// Connections of 1, 3 and 2 segments: the table has the order of the plots, and the numbers of the text report.
#[test]
fn the_table_has_the_largest_direction_first() {
    let mut packets = Vec::new();
    for (flow, count) in [(0, 1), (2, 3), (4, 2)] {
        for number in 0..count {
            let (_, one) = self::packets(3).remove(0);
            let seq = SeqNumber::new(number * MSS);
            let key = FlowKey { addresses: FlowAddresses::of_simulated(FlowId::new(flow)), protocol: 6 };
            let at = Instant::ZERO + Duration::from_us(packets.len() as u64);
            packets.push((at, Parsed { meta: Meta { seq, ..one.meta }, key, ..one }));
        }
    }
    let text = page_of("f", &packets);
    let positions = |before: &str, after: &str| {
        ["2", "3", "1"].map(|number| text.find(&format!("{before}{number}{after}")).expect("a row and a section"))
    };
    assert!(positions("href=\"#connection-", "-up\"").is_sorted(), "rows");
    assert!(positions("id=\"connection-", "-up\"").is_sorted(), "sections");
}

/// 100 times the packets: the page has the size that its pixels and bins allow.
#[test]
fn a_long_capture_gives_a_page_no_larger_than_its_bins() {
    let (short, long) = (page_of("f", &packets(3_000)), page_of("f", &packets(100_000)));
    assert!(long.len() < 3 * short.len() && long.len() < 1_000_000, "{} {}", short.len(), long.len());
}

/// Between packets the data in flight stay what the last packet has left.
#[test]
fn data_in_flight_stay_until_the_next_packet() {
    let mut pictures = Pictures::default();
    // Two segments arrive at a receiver in one microsecond, then the ACK of both; one more follows.
    for (ps, outstanding) in
        [(0, 1_000), (1, 2_000), (2, 0), (9_000_000, 1_000), (20_000_000, 3_000), (20_000_001, 2_000)]
    {
        let sender = Sender { outstanding, ..Sender::default() };
        let data = Data { start: 0, end: 1, kind: Kind::New, sender };
        let (at, flags) = (Instant::from_ps(ps), TcpFlags::ACK);
        let packet =
            Traced { at, connection: 0, from_opener: true, flags, ecn: 0, payload: 1, data: Some(data), ack: None };
        pictures.add(&packet);
    }
    let (drawn, _) = pictures.drawn();
    let steps: Vec<Vec<u64>> = drawn[0].2.all().iter().map(|bin| bin.outstanding.steps().collect()).collect();
    assert_eq!(steps, [vec![2_000, 0], vec![1_000], vec![3_000, 2_000]]);
}

#[test]
fn every_peak_and_the_retransmissions_survive() {
    let mut pictures = Pictures::default();
    let at = |number: u64| Instant::ZERO + Duration::from_us(700 * number);
    for number in 0..200_000_u64 {
        let sender = Sender { outstanding: if number == 123_456 { 99_000 } else { 5_000 }, ..Sender::default() };
        let kind = if number % 100 == 0 { Kind::Retransmission(Cause::Fast) } else { Kind::New };
        let kind = if number == 77_777 { Kind::Retransmission(Cause::Timeout) } else { kind };
        let data = Data { start: number.cast_signed(), end: number.cast_signed() + 1, kind, sender };
        let ack = Acknowledgement { offset: number.cast_signed(), sender, ..Acknowledgement::default() };
        let flags = TcpFlags::ACK;
        let packet = Traced {
            at: at(number),
            connection: 0,
            from_opener: true,
            flags,
            ecn: 0,
            payload: 1,
            data: Some(data),
            ack: None,
        };
        pictures.add(&packet);
        pictures.add(&Traced { from_opener: false, payload: 0, data: None, ack: Some(ack), ..packet });
    }
    let (drawn, others) = pictures.drawn();
    let [(0, true, picture)] = &drawn[..] else { panic!("{drawn:?}") };
    assert_eq!((others, picture.bytes()), (0, 200_000));
    assert!(picture.bins() <= picture::MOST_BINS && picture.bins() > picture::MOST_BINS / 4);
    let peak = picture
        .all()
        .iter()
        .find(|bin| bin.outstanding.extremes.seen().is_some_and(|extent| extent.high == 99_000))
        .unwrap();
    assert!(peak.outstanding.extremes.seen().unwrap().low == 5_000 && at(123_456).as_ps() / 1_000_000 >= peak.at_us);
    assert!(picture.marks().len() <= picture::MOST_MARKS && picture.marks().len() > 1_000);
    let timeouts: Vec<_> =
        picture.marks().iter().filter(|mark| mark.kind == Kind::Retransmission(Cause::Timeout)).collect();
    assert_eq!((timeouts.len(), timeouts[0].start), (1, 77_777));
    let progress: u64 = picture.all().iter().map(|bin| bin.progress).sum();
    assert_eq!(progress, 0);
}

/// 3000 connections of 100 packets, and a large one: memory stays bounded, and the large one is drawn.
#[test]
fn of_many_connections_the_largest_are_drawn() {
    let mut pictures = Pictures::default();
    for number in 0..300_000_usize {
        let data = Data { start: 0, end: 1, ..Data::default() };
        let (connection, payload) = if number % 10 == 0 { (7, 1000) } else { (number / 100, 100) };
        let at = Instant::ZERO + Duration::from_us(10 * number as u64);
        let flags = TcpFlags::ACK;
        pictures.add(&Traced {
            at,
            connection,
            from_opener: true,
            flags,
            ecn: 0,
            payload,
            data: Some(data),
            ack: None,
        });
        assert!(pictures.bins <= MOST_BINS);
    }
    let (drawn, others) = pictures.drawn();
    assert_eq!((drawn.len(), others), (MOST_DRAWN, 3_000 - MOST_DRAWN));
    // The others have equal bytes, and the earlier ones were dropped.
    assert_eq!(drawn[0].0, 7, "the largest first");
}

#[test]
fn every_segment_is_a_row() {
    let (_, _, traced) = analyse(&packets(1_000));
    let write = || {
        let mut segments = Segments::new(Vec::new()).unwrap();
        traced.iter().for_each(|one| segments.add(one).unwrap());
        segments.finish().unwrap()
    };
    let bytes = write();
    assert_eq!(bytes, write(), "equal packets, equal bytes");
    let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
    let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), traced.len());
    for (row, one) in rows.iter().zip(&traced) {
        assert_eq!(row.get_long(0).unwrap().unsigned_abs() * 1_000, one.at.as_ps());
        assert_eq!(row.get_bool(2).unwrap(), one.from_opener);
        assert_eq!(row.get_int(4).unwrap(), i32::from(one.payload));
        assert_eq!(row.get_long(5).ok(), one.data.map(|data| data.start));
        assert_eq!(row.get_long(7).ok(), one.ack.map(|ack| ack.offset));
        let kind = one.data.and_then(|data| data.kind.name());
        assert_eq!(row.get_string(6).ok().map(String::as_str), kind);
    }
    let timeouts = rows.iter().filter(|row| row.get_string(6).is_ok_and(|name| name == "timeout")).count();
    assert!(timeouts > 5, "{timeouts}");
}

/// Two row groups, of which the second ends in the middle of a block.
#[test]
fn rows_keep_their_order_across_blocks_and_row_groups() {
    const ROWS: usize = segments::ROWS_A_GROUP + segments::BLOCK + 7;
    let (_, _, traced) = analyse(&packets(1_000));
    let mut segments = Segments::new(Vec::new()).unwrap();
    traced.iter().cycle().take(ROWS).for_each(|one| segments.add(one).unwrap());
    let file = SerializedFileReader::new(bytes::Bytes::from(segments.finish().unwrap())).unwrap();
    let groups: Vec<i64> =
        file.metadata().row_groups().iter().map(parquet::file::metadata::RowGroupMetaData::num_rows).collect();
    assert_eq!(groups, [segments::ROWS_A_GROUP as i64, segments::BLOCK as i64 + 7]);
    let mut rows = 0;
    for (row, one) in file.get_row_iter(None).unwrap().zip(traced.iter().cycle()) {
        let row = row.unwrap();
        assert_eq!(row.get_long(0).unwrap().unsigned_abs() * 1_000, one.at.as_ps());
        let outstanding = one.data.map(|data| data.sender).or(one.ack.map(|ack| ack.sender)).unwrap().outstanding;
        assert_eq!(row.get_long(11).unwrap().unsigned_abs(), outstanding);
        assert_eq!(row.get_long(7).ok(), one.ack.map(|ack| ack.offset));
        rows += 1;
    }
    assert_eq!(rows, ROWS);
}

#[test]
fn a_capture_without_segments_gives_a_file_without_rows() {
    let bytes = Segments::new(Vec::new()).unwrap().finish().unwrap();
    let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
    assert_eq!((file.num_row_groups(), file.metadata().file_metadata().num_rows()), (0, 0));
}

/// The strip of a drawing has colours alone, and the names are below it: those of the phases that occur, once each.
#[test]
fn a_figure_names_the_phases_of_its_strip() {
    let (pictures, connections, _) = analyse(&packets(300));
    let capture =
        Capture { name: "x", lines: &[], warnings: &[], connections: &connections, tables: &[], version: "0" };
    let drawing = figure(&capture, &pictures, &["Windows"]);
    let (_, names) = drawing.rsplit_once("</g><g").unwrap();
    let (_, _, picture) = pictures.drawn().0[0];
    let occurs = |phase: Phase| picture.all().iter().any(|bin| bin.phase == phase);
    assert!(occurs(Phase::Timeout), "every 97th segment is lost");
    for phase in Phase::ALL {
        let name = format!(">{}</text>", phase.name().replace('_', " "));
        assert_eq!(names.matches(&name).count(), usize::from(occurs(phase)), "{phase:?} {names}");
    }
    assert!(!figure(&capture, &pictures, &["Throughput"]).contains(">timeout</text>"));
}

#[test]
fn the_reference_has_every_column_of_segments() {
    let page = include_str!("../../../../docs/reference/captures.md");
    let fields =
        segments::SCHEMA.lines().filter_map(|line| line.trim().split([' ', ';']).nth(2).filter(|_| line.contains(';')));
    let missing: Vec<&str> = fields.filter(|name| !page.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/reference/captures.md lacks {missing:?}");
}
