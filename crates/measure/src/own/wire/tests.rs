use proptest::prelude::*;

use super::*;

fn datagrams() -> impl Strategy<Value = Datagram> {
    prop_oneof![
        any::<([u8; 8], [u8; 16])>().prop_map(|(nonce, code)| Datagram::Hello { nonce: Hex(nonce), code: Hex(code) }),
        any::<[u8; 16]>().prop_map(|cookie| Datagram::Cookie { cookie: Hex(cookie) }),
        any::<[u64; 2]>().prop_map(|[number, sent_ns]| Datagram::Request { number, sent_ns }),
        any::<[u64; 6]>().prop_map(|[number, sent_ns, received_ns, replied_ns, highest, window]| Datagram::Reply {
            number,
            sent_ns,
            received_ns,
            replied_ns,
            highest,
            window
        }),
        any::<(u32, u32, u64)>().prop_map(|(train, index, sent_ns)| Datagram::Train { train, index, sent_ns }),
    ]
}

proptest! {
    #[test]
    fn a_datagram_reads_as_it_was_written(datagram in datagrams(), session: [u8; 8], len in 60_usize..1500) {
        let mut buffer = vec![0xff; len];
        prop_assert!(datagram.write(Hex(session), &mut buffer));
        prop_assert_eq!(Datagram::read(&buffer), Some((Hex(session), datagram)));
    }

    #[test]
    fn any_bytes_are_a_datagram_that_writes_back_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Some((session, datagram)) = Datagram::read(&bytes) {
            let mut again = vec![0; bytes.len()];
            prop_assert!(datagram.write(session, &mut again));
            prop_assert_eq!(Datagram::read(&again), Some((session, datagram)));
        }
    }

    #[test]
    fn a_train_is_its_packets(mut packets in prop::collection::vec((0_u64..1 << 40, 28_u16..1472), 0..50)) {
        packets.sort_unstable();
        let train = Train::of(Way::Up, packets.clone());
        prop_assert_eq!(train.count(), packets.len());
        prop_assert_eq!(train.packets().collect::<Vec<_>>(), packets);
    }
}

#[test]
fn equal_packets_take_one_run() {
    let train = Train::of(Way::Down, (0..1000).map(|n| (n * 1_000_000, 100)));
    // The first departs at 0, the others a millisecond after each other.
    assert_eq!(train.runs, [(1, 0, 100), (999, 1_000_000, 100)]);
}

#[test]
fn lines_are_read_as_written_and_unknown_fields_are_not() {
    let greeting = Greeting { lastmile_measure: VERSION, challenge: Hex([0xab; 16]) };
    let text = line(&greeting);
    assert_eq!(text, b"{\"lastmile_measure\":1,\"challenge\":\"abababababababababababababababab\"}\n");
    assert_eq!(read::<Greeting>(&text).unwrap(), greeting);
    assert!(read::<Greeting>(b"{\"lastmile_measure\":1,\"challenge\":\"ab\"}").is_err());
    let load = Request::Load { direction: Direction::Both, streams: 4, congestion: Some("cubic".to_owned()) };
    assert_eq!(read::<Request>(&line(&load)).unwrap(), load);
    assert_eq!(read::<Request>(b"\"stop\"").unwrap(), Request::Stop);
    assert!(read::<Request>(b"{\"load\":{\"direction\":\"both\",\"streams\":4,\"congestion\":null,\"x\":1}}").is_err());
    assert!(read::<Request>(b"{\"load\":{\"direction\":\"both\",\"streams\":-4,\"congestion\":null}}").is_err());
}

#[test]
fn openings_fit_into_the_line_of_strangers() {
    let session = Opening::Session { nonce: Hex([0xff; 16]), code: Hex([0xff; 32]) };
    let stream = Opening::Stream { session: Hex([0xff; 8]), way: Way::Down, code: Hex([0xff; 32]) };
    assert!(line(&session).len() <= LONGEST_OPENING && line(&stream).len() <= LONGEST_OPENING);
}

#[test]
fn a_request_of_an_echo_is_as_long_as_its_reply() {
    let request = Datagram::Request { number: 1, sent_ns: 2 };
    let mut short = vec![0; LEAST_ECHO - 1];
    assert!(request.write(Hex([0; 8]), &mut short));
    assert_eq!(Datagram::read(&short), None, "the reply would be longer");
    const { assert!(HELLO >= HEAD + 16, "a cookie is not longer than a hello") };
}
