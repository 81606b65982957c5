//! SYNs, and packets of earlier connections on the same ports.

use super::*;

const SYN_ACK: TcpFlags = TcpFlags::SYN.with(TcpFlags::ACK);
const FIN: TcpFlags = TcpFlags::FIN.with(TcpFlags::ACK);

/// A packet with this number and acknowledgement, counted from the initial sequence numbers.
fn packet(talk: &mut Talk, ms: u64, up: bool, (seq, ack): (u32, u32), flags: TcpFlags, payload: u16) {
    let (own, other) = if up { (ISN, 7) } else { (7, ISN) };
    let (seq, ack) = (SeqNumber::new(own).add(seq), SeqNumber::new(other).add(ack));
    let meta = Meta { seq, ack, flags, window: 1_000, ..Meta::default() };
    let options = if flags.contains(TcpFlags::SYN) { usual() } else { Options::NONE };
    talk.packet(ms, up, meta, options, payload);
}

/// RFC 5961, section 4.2: the server still has a connection on these ports, and answers the SYN with an ACK of it. The
/// client resets that one (RFC 9293, section 3.10.7.3), and repeats its SYN after a second.
#[test]
fn an_ack_of_an_earlier_connection_acknowledges_no_data() {
    for old in [500_000_000, 3_500_000_000, 0, 2] {
        for closes in [false, true] {
            let mut talk = Talk::amid();
            packet(&mut talk, 0, true, (0, 0), TcpFlags::SYN, 0);
            packet(&mut talk, 100, false, (77_777, old), TcpFlags::ACK, 0);
            packet(&mut talk, 100, true, (old, 0), TcpFlags::RST, 0);
            packet(&mut talk, 1_000, true, (0, 0), TcpFlags::SYN, 0);
            packet(&mut talk, 1_100, false, (0, 1), SYN_ACK, 0);
            packet(&mut talk, 1_100, true, (1, 1), TcpFlags::ACK, 0);
            for number in 0..10 {
                talk.data(1_200, number);
            }
            talk.ack(1_300, 10, &[]);
            if closes {
                packet(&mut talk, 1_400, true, (10_001, 1), FIN, 0);
                packet(&mut talk, 1_500, false, (1, 10_002), FIN, 0);
            }
            let connection = talk.end();
            let (volume, repeats) = (connection.up.volume, connection.up.repeats);
            assert_eq!((volume.bytes_acknowledged, volume.bytes_unseen), (10_000, 0), "{old}");
            assert_eq!((repeats.packets(), repeats.timeouts), (1, 1), "the SYN: {old}");
            assert_eq!(connection.up.initial_window, Some(10_000));
            assert_eq!(connection.handshake.took, Some(Duration::from_ms(1_100)));
            assert_eq!((connection.reset, connection.closed), (false, closes), "{old}");
        }
    }
}

/// Next to the server: an answer with SYN cookies to each SYN, of which the client has the second.
#[test]
fn a_repeated_syn_ack_may_have_another_number() {
    let mut talk = Talk::amid();
    let other = 1_000_000_000;
    for (ms, seq) in [(0, 0), (1_000, other)] {
        packet(&mut talk, ms, true, (0, 0), TcpFlags::SYN, 0);
        packet(&mut talk, ms, false, (seq, 1), SYN_ACK, 0);
    }
    packet(&mut talk, 1_040, true, (1, other + 1), TcpFlags::ACK, 0);
    packet(&mut talk, 1_041, true, (1, other + 1), TcpFlags::ACK, 100);
    for number in 0..10 {
        packet(&mut talk, 1_050, false, (other + 1 + 1_000 * number, 101), TcpFlags::ACK, 1_000);
    }
    packet(&mut talk, 1_100, true, (101, other + 10_001), TcpFlags::ACK, 0);
    let down = talk.end().down;
    assert_eq!((down.volume.bytes_acknowledged, down.volume.bytes_unseen), (10_000, 0));
    assert_eq!((down.repeats.packets(), down.initial_window, down.max_in_flight), (0, Some(10_000), 10_000));
}

/// The server's packets alone, of two connections with other numbers. A SYN-ACK that is late or repeated begins none.
#[test]
fn a_syn_ack_begins_a_connection_where_the_syn_is_missing() {
    for (isn, closes) in [(312_000_000, true), (312_000_000, false), (3_000_000_000, true)] {
        let mut talk = Talk::amid();
        for (ms, isn) in [(0, 0), (20_000, isn)] {
            packet(&mut talk, ms, false, (isn, 1), SYN_ACK, 0);
            packet(&mut talk, ms + 10, false, (isn, 1), SYN_ACK, 0);
            packet(&mut talk, ms + 100, false, (isn + 1, 101), TcpFlags::ACK, 100);
            packet(&mut talk, ms + 110, false, (isn, 1), SYN_ACK, 0);
            if closes {
                packet(&mut talk, ms + 200, false, (isn + 101, 102), FIN, 0);
            }
        }
        let connections = talk.analysis.finish();
        let seen: Vec<_> = connections.iter().map(|one| (one.down.volume.bytes_new, one.down.active)).collect();
        let active = Duration::from_ms(if closes { 200 } else { 110 });
        assert_eq!(seen, [(100, active); 2], "{isn} {closes}");
    }
    let mut late = Talk::amid();
    packet(&mut late, 0, false, (1, 1), TcpFlags::ACK, 100);
    packet(&mut late, 0, false, (0, 1), SYN_ACK, 0);
    assert_eq!(late.end().down.volume.bytes_new, 100);
}

/// RFC 9293, section 3.5, figure 8. The answers repeat the SYNs, and are no retransmissions. The scales of windows are
/// those of each side's own SYN.
#[test]
fn two_syns_that_cross_open_one_connection() {
    let mut talk = Talk::amid();
    packet(&mut talk, 0, true, (0, 0), TcpFlags::SYN, 0);
    packet(&mut talk, 20, false, (0, 0), TcpFlags::SYN, 0);
    packet(&mut talk, 20, true, (0, 1), SYN_ACK, 0);
    packet(&mut talk, 40, false, (0, 1), SYN_ACK, 0);
    packet(&mut talk, 40, true, (1, 1), TcpFlags::ACK, 0);
    for number in 0..10 {
        talk.data(50, number);
    }
    talk.ack(90, 10, &[]);
    let connection = talk.end();
    assert_eq!((connection.opener, connection.handshake.took), (crate::Opener::Seen, Some(Duration::from_ms(40))));
    let up = connection.up;
    assert_eq!((up.volume.bytes_acknowledged, up.window.max, up.volume.packets), (10_000, Some(64_000), 13));
    let repeats = [up.repeats, connection.down.repeats].map(|repeats| (repeats.packets(), repeats.probes));
    assert_eq!(repeats, [(0, 0); 2]);
}

/// A SYN of the other side after the end of a connection opens another.
#[test]
fn a_syn_of_the_other_side_opens_another_connection_later() {
    let mut talk = Talk::open();
    talk.data(200, 0);
    talk.ack(300, 1, &[]);
    packet(&mut talk, 90_000, false, (5_000, 0), TcpFlags::SYN, 0);
    assert_eq!(talk.analysis.finish().len(), 2);
}

/// RFC 7413, section 4.2.2: the server takes the SYN without its data, which the client sends again. Nothing was lost.
#[test]
fn data_of_a_syn_that_are_sent_again_are_no_fast_retransmit() {
    let mut talk = Talk::amid();
    packet(&mut talk, 0, true, (0, 0), TcpFlags::SYN, 500);
    packet(&mut talk, 40, false, (0, 1), SYN_ACK, 0);
    packet(&mut talk, 40, true, (1, 1), TcpFlags::ACK, 500);
    packet(&mut talk, 80, false, (1, 501), TcpFlags::ACK, 0);
    let up = talk.up();
    let repeats = up.repeats;
    assert_eq!((repeats.packets(), repeats.unknown, repeats.fast, repeats.timeouts), (1, 1, 0, 0));
    assert_eq!((up.volume.bytes_acknowledged, up.limits.shares.of(Limit::Recovery)), (500, Duration::ZERO));
}
