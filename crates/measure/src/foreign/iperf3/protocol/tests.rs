use proptest::prelude::*;

use super::*;

/// Sent by iperf 3.12 at the end of a test in both directions with two streams each (`-d` prints it).
const SERVER: &str = r#"{"cpu_util_total":1.7557725738624,"cpu_util_user":1.755572986210489,"cpu_util_system":0,
    "sender_has_retransmits":1,"congestion_used":"bbr","streams":[
    {"id":1,"bytes":1310720,"retransmits":1.8446744073709552e+19,"jitter":0,"errors":0,"packets":0,"start_time":0,
     "end_time":1.002028},
    {"id":3,"bytes":1310720,"retransmits":-1,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":1.002032},
    {"id":4,"bytes":1310721,"retransmits":7,"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":1.002033},
    {"id":5,"bytes":1310720,"retransmits":0,"jitter":0,"errors":0,"packets":0}]}"#;

#[test]
fn results_of_iperf3_are_read() {
    let read = parse_results(SERVER.as_bytes(), &[1, 3, 4, 5]).unwrap();
    let counts: Vec<_> = read.iter().map(|stream| (stream.id, stream.bytes, stream.retransmissions)).collect();
    assert_eq!(counts, [(1, 1_310_720, None), (3, 1_310_720, None), (4, 1_310_721, Some(7)), (5, 1_310_720, Some(0))]);
    assert_eq!(read[2].span_s, Some(1.002_033));
    assert_eq!(read[3].span_s, None, "iperf3 before 3.2");
    assert_eq!(congestion_used(SERVER.as_bytes()).as_deref(), Some("bbr"));
    assert_eq!(congestion_used(write_results(&read, true).as_bytes()), None);
}

#[test]
fn results_are_read_as_written() {
    let results = [
        StreamResult {
            id: 1,
            bytes: 5_000_000_001,
            retransmissions: Some(3),
            span_s: Some(1.5),
            counted: Counted::default(),
        },
        StreamResult {
            id: 3,
            bytes: 0,
            retransmissions: None,
            span_s: None,
            counted: Counted { packets: 700, lost: 3, jitter_s: 0.0125 },
        },
    ];
    assert_eq!(parse_results(write_results(&results, true).as_bytes(), &[1, 3]).unwrap(), results);
}

#[test]
fn results_that_do_not_fit_the_test_are_refused() {
    for (text, ids, reason) in [
        (SERVER.to_owned(), &[1, 3, 4][..], "4 streams; the test has 3"),
        (SERVER.to_owned(), &[1, 3, 4, 6], "stream 6"),
        (SERVER.replace("\"id\":3", "\"id\":1"), &[1, 3, 4, 5], "stream 1 exactly once"),
        (SERVER.replace("1310721", "-5"), &[1, 3, 4, 5], "-5 bytes for the stream 4"),
        (SERVER.replace("1310721", "1e300"), &[1, 3, 4, 5], "stream 4"),
        (SERVER.replace("\"bytes\"", "\"octets\""), &[1, 3, 4, 5], "missing field `bytes`"),
        ("[]".to_owned(), &[1], "not as iperf3 writes them"),
        (SERVER.replace("\"packets\":0}]", "\"packets\":0.5}]"), &[1, 3, 4, 5], "0.5 datagrams for the stream 5"),
        (String::new(), &[1], "not as iperf3 writes them"),
    ] {
        let error = parse_results(text.as_bytes(), ids).unwrap_err();
        assert!(error.contains(reason), "{error}: expected {reason}");
    }
}

#[test]
fn streams_have_the_numbers_of_iperf3() {
    let numbers = |direction, each| streams(direction, each).into_iter().map(|(id, _)| id).collect::<Vec<_>>();
    assert_eq!(numbers(Direction::Upload, 1), [1]);
    assert_eq!(numbers(Direction::Download, 4), [1, 3, 4, 5]);
    assert_eq!(streams(Direction::Both, 2), [(1, Way::Up), (3, Way::Up), (4, Way::Down), (5, Way::Down)]);
}

#[test]
fn parameters_have_only_the_directions_that_are_meant() {
    let written = |direction| serde_json::to_value(Parameters::new(direction, 2, 9, 7, None)).unwrap();
    let upload = written(Direction::Upload);
    assert_eq!(
        (&upload["tcp"], &upload["parallel"], &upload["time"], &upload["len"]),
        (&true.into(), &2.into(), &9.into(), &7.into())
    );
    assert_eq!((upload.get("reverse"), upload.get("bidirectional"), upload.get("congestion")), (None, None, None));
    assert_eq!(written(Direction::Download)["reverse"], true);
    assert_eq!(written(Direction::Both)["bidirectional"], true);
}

#[test]
fn parameters_of_datagrams_have_their_rate_and_length() {
    let written = serde_json::to_value(Parameters::datagrams(Direction::Both, 9, 5_000_000, 1448)).unwrap();
    assert_eq!(written.get("tcp"), None);
    // iperf3 from 3.18 on takes `udp_counters_64bit` as a number alone (`iperf_cJSON_GetObjectItemType`).
    for (key, value) in [("bandwidth", 5_000_000), ("len", 1448), ("parallel", 1), ("udp_counters_64bit", 1)] {
        assert_eq!(written[key], value, "{key}");
    }
    for key in ["udp", "bidirectional"] {
        assert_eq!(written[key], true, "{key}");
    }
    let tcp = serde_json::to_value(Parameters::new(Direction::Upload, 1, 9, 7, None)).unwrap();
    assert!(["udp", "bandwidth", "udp_counters_64bit"].iter().all(|key| tcp.get(key).is_none()), "{tcp}");
}

#[test]
fn states_are_bytes_and_back() {
    for (number, state) in State::ALL {
        assert_eq!(State::parse(state.byte()), Some(state));
        assert_eq!(i8::from_ne_bytes([state.byte()]), number);
    }
    assert_eq!(State::parse(255), Some(State::AccessDenied));
    assert_eq!(State::parse(99), None);
}

#[test]
fn a_cookie_is_36_letters_and_a_nul() {
    let cookie = cookie(std::array::from_fn(|index| u8::try_from(index * 7).unwrap()));
    assert!(cookie[..36].iter().all(u8::is_ascii_alphanumeric) && cookie[36] == 0, "{cookie:?}");
}

proptest! {
    #[test]
    fn no_results_panic(
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
        ids in proptest::collection::vec(0..7_u32, 0..6),
    ) {
        let mut bytes = SERVER.as_bytes().to_vec();
        for (at, byte) in &changes {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        if let Ok(read) = parse_results(&bytes, &ids) {
            prop_assert_eq!(read.iter().map(|stream| stream.id).collect::<Vec<_>>(), ids);
        }
    }
}
