//! Properties that hold for any packets.

use lastmile_analysis::{Analysis, Connection, Direction};
use lastmile_packet::{
    FlowAddresses, FlowId, FlowKey, Meta, Options, Parsed, SackBlock, SeqNumber, SynOptions, TcpFlags, parse_headers,
};
use lastmile_units::{Duration, Instant};
use proptest::prelude::*;

/// A packet of a few connections with close numbers, so that ranges overlap.
fn packet() -> impl Strategy<Value = (u64, u32, Meta)> {
    let numbers = (0_u32..40, 0_u32..40, 0_u16..3, any::<u8>(), 0_u16..4);
    let blocks = prop::collection::vec((0_u32..40, 0_u32..40), 0..3);
    (0_u64..400, 0_u32..6, numbers, blocks, any::<u8>()).prop_map(|(ms, flow, numbers, blocks, kinds)| {
        let (seq, ack, segments, flags, window) = numbers;
        // Mostly data and ACKs, sometimes SYN, FIN or RST.
        let flags = if flags < 200 { TcpFlags::ACK } else { TcpFlags::from_bits(flags & 0x17) };
        let at = |number: u32| SeqNumber::new((u32::MAX - 9_000).wrapping_add(500 * number));
        let mut options = match kinds % 4 {
            0 => Options::syn(SynOptions { mss: Some(1000), window_scale: Some(kinds % 15), sack_permitted: true }),
            1 => Options::NONE,
            _ => {
                let blocks: Vec<SackBlock> =
                    blocks.iter().map(|(left, right)| SackBlock { left: at(*left), right: at(*right) }).collect();
                Options::NONE.with_sack(&blocks)
            }
        };
        if kinds & 0x10 != 0 {
            options = options.with_timestamps(ack, seq);
        }
        let header_len = 40 + options.header_bytes();
        let ip_len = u16::from(header_len) + 500 * segments;
        let (seq, ack, window) = (at(seq), at(ack), window * 500);
        let mut meta = Meta { seq, ack, flags, window, header_len, ip_len, ip_id: ip_len ^ window, ..Meta::default() };
        meta.set_options(options);
        (ms, flow, meta)
    })
}

fn feed(analysis: &mut Analysis, at: Instant, flow: u32, meta: &Meta) {
    let key = FlowKey { addresses: FlowAddresses::of_simulated(FlowId::new(flow)), protocol: 6 };
    analysis.packet(at, &Parsed { meta: *meta, key, transport_offset: 20 });
}

/// Packets with increasing times.
fn timed(packets: &[(u64, u32, Meta)]) -> Vec<(Instant, u32, Meta)> {
    let mut now = Instant::ZERO;
    let at = |(ms, flow, meta): &(u64, u32, Meta)| {
        now = now.saturating_add(Duration::from_ms(*ms));
        (now, *flow, *meta)
    };
    packets.iter().map(at).collect()
}

fn analyse(packets: &[(Instant, u32, Meta)]) -> Vec<Connection> {
    let mut analysis = Analysis::new();
    for (at, flow, meta) in packets {
        feed(&mut analysis, *at, *flow, meta);
    }
    analysis.finish()
}

fn payload(packets: &[(Instant, u32, Meta)], counts: impl Fn(u32) -> bool) -> u64 {
    let counted = packets.iter().filter(|(_, flow, meta)| counts(*flow) && !meta.flags.contains(TcpFlags::RST));
    counted.map(|(_, _, meta)| u64::from(meta.payload_len())).sum()
}

fn check(direction: &Direction) {
    let limits = direction.limits.shares.total();
    assert!(direction.repeats.spurious_timeouts <= direction.repeats.timeouts);
    assert!(direction.repeats.packets() + direction.repeats.probes <= direction.volume.packets);
    assert!(direction.acks.compressed <= direction.acks.spaced);
    assert!(limits.as_secs_f64() < 1e9);
    if let (Some(least), Some(p95)) = (direction.delays.round_trips.least, direction.delays.round_trips.p95) {
        assert!(least.as_secs_f64() <= p95.as_secs_f64() * 1.02 + 1e-6);
    }
}

proptest! {
    /// Each byte of payload counts once: as new, retransmitted, or a probe.
    #[test]
    fn every_byte_is_counted_once(packets in prop::collection::vec(packet(), 0..300)) {
        let packets = timed(&packets);
        let connections = analyse(&packets);
        let both = || connections.iter().flat_map(|connection| [&connection.up, &connection.down]);
        both().for_each(check);
        let counted: u64 = both().map(|way| way.volume.bytes_new + way.volume.bytes_repeated +
            way.volume.bytes_probed).sum();
        prop_assert_eq!(counted, payload(&packets, |_| true));
    }

    /// Connections are independent: the result of each is the same without the others.
    #[test]
    fn other_connections_change_nothing(packets in prop::collection::vec(packet(), 0..300)) {
        let packets = timed(&packets);
        let mut together: Vec<String> = analyse(&packets).iter().map(|one| format!("{one:?}")).collect();
        let mut alone = Vec::new();
        for connection in 0..3 {
            let own: Vec<_> = packets.iter().filter(|(_, flow, _)| flow / 2 == connection).copied().collect();
            alone.extend(analyse(&own).iter().map(|one| format!("{one:?}")));
        }
        together.sort();
        alone.sort();
        prop_assert_eq!(together, alone);
    }

    /// No bytes cause a panic.
    #[test]
    fn any_bytes_will_do(packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..60)) {
        let mut analysis = Analysis::new();
        for (number, bytes) in packets.iter().enumerate() {
            let mut bytes = bytes.clone();
            for (at, value) in [(0, 0x45), (6, 0), (7, 0), (9, 6)] {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = value;
                }
            }
            if let Ok(parsed) = lastmile_analysis::parse_captured(&bytes, 60_000) {
                prop_assert!(u16::from(parsed.meta.header_len) <= parsed.meta.ip_len);
                analysis.packet(Instant::from_ps(u64::try_from(number).unwrap() << 58), &parsed);
            }
            prop_assert!(parse_headers(&bytes).is_err() || lastmile_analysis::parse_captured(&bytes, 60_000).is_ok());
        }
        analysis.finish().iter().flat_map(|connection| [&connection.up, &connection.down]).for_each(check);
    }
}

/// Without a SYN of the other side, its packets name the ports alone.
#[test]
fn packets_of_reused_ports_belong_to_the_new_connection_in_both_directions() {
    let packet = |flow, seq, flags, payload: u16| {
        let (seq, ack) = (SeqNumber::new(seq), SeqNumber::new(1));
        (flow, Meta { seq, ack, flags, header_len: 40, ip_len: 40 + payload, ..Meta::default() })
    };
    let packets = [
        packet(0, 100, TcpFlags::SYN, 0),
        packet(1, 1_001, TcpFlags::ACK, 100),
        packet(0, 101, TcpFlags::ACK, 200),
        packet(0, 90_000, TcpFlags::SYN, 0),
        packet(1, 1_101, TcpFlags::ACK, 300),
        packet(0, 90_001, TcpFlags::ACK, 400),
    ];
    let timed: Vec<_> =
        (0..).zip(&packets).map(|(ms, (flow, meta))| (Instant::ZERO + Duration::from_ms(ms), *flow, *meta)).collect();
    let bytes = |connection: &Connection| (connection.up.volume.bytes_new, connection.down.volume.bytes_new);
    assert_eq!(analyse(&timed).iter().map(bytes).collect::<Vec<_>>(), [(200, 100), (400, 300)]);
}
