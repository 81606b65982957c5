use proptest::prelude::*;

use super::*;

#[test]
fn parameters_are_as_irtt_writes_them() {
    // Go's binary.PutVarint(100e6) is 80 84 af 5f: 200000000 in groups of seven bits, the lowest first.
    let body = Parameters::wanted(0, 100_000_000, 46).write();
    assert_eq!(body, [1, 2, 3, 0x80, 0x84, 0xaf, 0x5f, 5, 6, 6, 6, 7, 4, 8, 0xf0, 2]);
    let read = Parameters::read(&body).unwrap();
    assert_eq!((read.interval_ns, read.traffic_class, read.stamp_at), (100_000_000, 184, 3));
}

#[test]
fn unknown_parameters_and_texts_are_passed_over() {
    let body = [&Parameters::wanted(1, 2, 0).write()[..], &[4, 2, 9, 4, b'r', b'a', b'n', b'd', 77, 3]].concat();
    assert_eq!(Parameters::read(&body).unwrap(), Parameters::wanted(1, 2, 0));
}

#[test]
fn impossible_parameters_are_refused() {
    for (body, reason) in [
        (&[1, 4][..], "protocol version 2"),
        (&[1], "cut short"),
        (&[1, 2, 9, 4, b'r'], "cut short"),
        (&[1, 2, 6, 14], "time stamps 7"),
        (&[1, 2, 7, 8], "clock 4"),
        (&[1, 2, 5, 8], "statistics 4"),
        (&[1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], "cut short"),
    ] {
        let error = Parameters::read(body).unwrap_err();
        assert!(error.contains(reason), "{error}: expected {reason}");
    }
}

/// RFC 2202, 2, first case: the HMAC-MD5 of "Hi There". The packet's HMAC covers itself as zeros.
#[test]
fn the_hmac_is_md5s() {
    let hash = keyed(&[0x0b; 16]).chain_update("Hi There").finalize().into_bytes();
    assert_eq!(hash[..4], [0x92, 0x94, 0x72, 0x7a]);
    let packet = seal(OPEN, b"body", Some(b"key"));
    let zeroed = [&packet[..4], &[0; 16], &packet[20..]].concat();
    assert_eq!(packet[4..20], *keyed(b"key").chain_update(zeroed).finalize().into_bytes());
}

#[test]
fn only_the_servers_packets_with_the_right_key_are_taken() {
    let packet = seal(REPLY | OPEN, b"body", Some(b"key"));
    assert_eq!(unseal(&packet, Some(b"key")), Some((REPLY | OPEN | WITH_HMAC, &b"body"[..])));
    assert_eq!(unseal(&packet, Some(b"other")), None);
    assert_eq!(unseal(&packet, None), None, "an HMAC without a key");
    assert_eq!(unseal(&seal(REPLY, b"body", None), Some(b"key")), None, "a key without an HMAC");
    assert_eq!(unseal(&seal(0, b"body", None), None), None, "a request");
    let plain = seal(REPLY, b"body", None);
    assert_eq!(unseal(&plain, None), Some((REPLY, &b"body"[..])));
    assert_eq!(unseal(&[&[0x15], &plain[1..]].concat(), None), None, "other magic");
    assert_eq!(unseal(&plain[..3], None), None);
}

#[test]
fn a_reply_has_the_fields_of_the_parameters() {
    let wanted = Parameters::wanted(1, 1, 0);
    let mut body = echo(7, 9, wanted);
    assert_eq!(body.len(), 8 + 4 + 4 + 8 + 8 + 8);
    body[16..24].copy_from_slice(&5_u64.to_le_bytes());
    body[24..32].copy_from_slice(&1000_i64.to_le_bytes());
    body[32..40].copy_from_slice(&1200_i64.to_le_bytes());
    let reply = read_reply(&body, wanted).unwrap();
    let all = Reply { token: 7, number: 9, window: Some(5), received_ns: Some(1000), sent_ns: Some(1200) };
    assert_eq!(reply, all);
    assert_eq!(read_reply(&body[..39], wanted), None);
    // A server that allows one time stamp: it is in the middle of its processing.
    let single = Parameters { stamp_at: AT_MIDPOINT, received_stats: 0, ..wanted };
    let body = [&body[..12], &77_i64.to_le_bytes()].concat();
    let reply = read_reply(&body, single).unwrap();
    assert_eq!((reply.received_ns, reply.sent_ns, reply.window), (Some(77), Some(77), None));
    assert_eq!(read_reply(&body, Parameters { stamp_at: 0, ..single }).unwrap().received_ns, None);
}

proptest! {
    #[test]
    fn numbers_are_read_as_written(value in any::<u64>(), behind in any::<Vec<u8>>()) {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, value);
        bytes.extend(&behind);
        let mut rest = &bytes[..];
        prop_assert_eq!(take_varint(&mut rest), Some(value));
        prop_assert_eq!(rest, &behind[..]);
    }

    #[test]
    fn no_packet_panics(packet in any::<Vec<u8>>(), stats in 0..4_i64, stamps in 0..5_i64, clock in 0..4_i64) {
        let sealed = seal(REPLY, &packet, Some(b"key"));
        prop_assert_eq!(unseal(&sealed, Some(b"key")).map(|(_, body)| body), Some(&packet[..]));
        let _ = (unseal(&packet, None), unseal(&packet, Some(b"key")), read_opened(&packet));
        let parameters = Parameters { received_stats: stats, stamp_at: stamps, clock, ..Parameters::default() };
        let whole = echo(0, 0, parameters).len();
        prop_assert_eq!(read_reply(&packet, parameters).is_some(), packet.len() >= whole);
    }
}
