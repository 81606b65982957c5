//! Hand-made conversations, packet by packet: the client 10.0.0.1 sends to a server, and the
//! capture is at the client.

use lastmile_packet::{
    FlowAddresses, FlowId, FlowKey, Meta, Options, Parsed, SackBlock, SeqNumber, SynOptions, TcpFlags,
};
use lastmile_units::{Duration, Instant};

use crate::{Analysis, Basis, Connection, Direction, Limit};

mod capture;
mod limits;
mod opening;
mod probes;
mod recoveries;
mod spurious;
mod timeouts;

const MSS: u32 = 1000;

/// The initial sequence number, chosen so that the 5000th byte wraps.
const ISN: u32 = u32::MAX - 5_000;

struct Talk {
    analysis: Analysis,
    options: Options,
    /// The next identification; 0 for packets without, as over IPv6.
    id: u16,
}

impl Talk {
    /// The handshake: 0 to 100 ms.
    fn open() -> Self {
        Self::opened(100, 100)
    }

    /// The handshake next to the receiver: the client answers after 150 ms.
    fn open_at_receiver() -> Self {
        Self::opened(0, 150)
    }

    /// A handshake with the SYN-ACK and the client's ACK at these times, in ms.
    fn opened(answered: u64, acknowledged: u64) -> Self {
        Self::opened_with(answered, acknowledged, [usual(); 2])
    }

    /// The same with these options of the SYN and of the SYN-ACK.
    fn opened_with(answered: u64, acknowledged: u64, [offer, answer_options]: [Options; 2]) -> Self {
        let mut talk = Self::amid();
        talk.packet(0, true, Meta { seq: SeqNumber::new(ISN), flags: TcpFlags::SYN, ..Meta::default() }, offer, 0);
        let answer = Meta {
            seq: SeqNumber::new(7),
            ack: SeqNumber::new(ISN).add(1),
            flags: TcpFlags::SYN.with(TcpFlags::ACK),
            window: 1000,
            ..Meta::default()
        };
        talk.packet(answered, false, answer, answer_options, 0);
        talk.ack_of_client(acknowledged);
        talk
    }

    /// A capture that begins amid the connection.
    fn amid() -> Self {
        Self { analysis: Analysis::new(), options: Options::NONE, id: 1 }
    }

    /// A segment sent at `sent` that echoes `echo`.
    fn stamped_data(&mut self, ms: u64, number: u32, (sent, echo): (u32, u32)) {
        self.options = Options::NONE.with_timestamps(sent, echo);
        self.data(ms, number);
    }

    /// An ACK with the capture's time as its timestamp.
    fn stamped_ack(&mut self, ms: u64, number: u32, blocks: &[(u32, u32)]) {
        self.options = Options::NONE.with_timestamps(ms as u32, 1);
        self.ack(ms, number, blocks);
    }

    fn packet(&mut self, ms: u64, up: bool, meta: Meta, options: Options, payload: u16) {
        let forward = FlowAddresses::of_simulated(FlowId::new(0));
        let addresses = if up { forward } else { forward.reversed() };
        let header_len = 40 + options.header_bytes();
        let mut meta = Meta { header_len, ip_len: u16::from(header_len) + payload, ip_id: self.id, ..meta };
        meta.set_options(options);
        self.id += u16::from(self.id > 0);
        let key = FlowKey { addresses, protocol: 6 };
        let at = Instant::ZERO.saturating_add(Duration::from_ms(ms));
        self.analysis.packet(at, &Parsed { meta, key, transport_offset: 20 });
    }

    fn ack_of_client(&mut self, ms: u64) {
        let meta =
            Meta { seq: SeqNumber::new(ISN).add(1), ack: SeqNumber::new(8), flags: TcpFlags::ACK, ..Meta::default() };
        self.packet(ms, true, meta, Options::NONE, 0);
    }

    /// Sends the `number`th full segment, counted from 0.
    fn data(&mut self, ms: u64, number: u32) {
        self.flagged_data(ms, number, TcpFlags::ACK);
    }

    /// The same at the end of a write.
    fn pushed_data(&mut self, ms: u64, number: u32) {
        self.flagged_data(ms, number, TcpFlags::ACK.with(TcpFlags::PSH));
    }

    fn flagged_data(&mut self, ms: u64, number: u32, flags: TcpFlags) {
        let meta = Meta {
            seq: SeqNumber::new(ISN).add(1 + number * MSS),
            ack: SeqNumber::new(8),
            flags,
            window: 1000,
            ..Meta::default()
        };
        self.packet(ms, true, meta, self.options, MSS as u16);
    }

    /// Acknowledges all segments before the `number`th, with SACK blocks `left..right` of segments
    /// above.
    fn ack(&mut self, ms: u64, number: u32, blocks: &[(u32, u32)]) {
        self.ack_with_window(ms, number, 16_000, blocks);
    }

    /// The same with this window in units of 4.
    fn ack_with_window(&mut self, ms: u64, number: u32, window: u16, blocks: &[(u32, u32)]) {
        let at = |number: u32| SeqNumber::new(ISN).add(1 + number * MSS);
        let blocks: Vec<SackBlock> =
            blocks.iter().map(|&(left, right)| SackBlock { left: at(left), right: at(right) }).collect();
        let meta = Meta { seq: SeqNumber::new(8), ack: at(number), flags: TcpFlags::ACK, window, ..Meta::default() };
        let options = self.options.with_sack(&blocks);
        self.packet(ms, false, meta, options, 0);
    }

    fn end(self) -> Connection {
        let mut connections = self.analysis.finish();
        assert_eq!(connections.len(), 1);
        connections.remove(0)
    }

    fn up(self) -> Direction {
        self.end().up
    }
}

/// The usual options of a SYN.
fn usual() -> Options {
    Options::syn(SynOptions { mss: Some(1460), window_scale: Some(2), sack_permitted: true })
}

#[test]
fn numbers_wrap_and_every_byte_is_new_once() {
    let mut talk = Talk::open();
    for number in 0..10 {
        talk.data(200 + u64::from(number), number);
    }
    talk.ack(300, 10, &[]);
    let connection = talk.end();
    assert_eq!(connection.handshake.took, Some(Duration::from_ms(100)));
    assert_eq!(connection.handshake.syn.unwrap().0.mss, Some(1460));
    let up = connection.up;
    assert_eq!((up.volume.bytes_new, up.volume.bytes_repeated, up.volume.bytes_acknowledged), (10_000, 0, 10_000));
    assert_eq!((up.initial_window, up.max_in_flight, up.repeats.packets()), (Some(10_000), 10_000, 0));
    // The SYN took 100 ms, the last segment 91.
    assert_eq!((up.delays.round_trips.count, up.delays.round_trips.least), (2, Some(Duration::from_ms(91))));
    // 16 000 in units of 4.
    assert_eq!(up.window.max, Some(64_000));
    // 80 000 bits from 0 to 300 ms.
    assert!((up.goodput_bps - 80_000.0 / 0.3).abs() < 1e-6);
}

/// Zhang, Shenker and Clark 1991: ACKs that queued behind one another arrive at shorter distances
/// than their data were sent.
#[test]
fn acks_closer_than_their_data_are_compressed() {
    let mut talk = Talk::open();
    for number in 0..5 {
        talk.data(200 + 10 * u64::from(number), number);
    }
    for number in 1..6 {
        talk.ack(400 + u64::from(number), number, &[]);
    }
    let up = talk.up();
    assert_eq!((up.acks.spaced, up.acks.compressed), (4, 4));
}

/// Before segmentation by a device: packets of 22, of two and of one segment of 1460 bytes.
#[test]
fn segments_of_a_packet_before_segmentation_count_each() {
    let mut talk = Talk::open();
    let mut offset = 1;
    for segments in [22, 2, 1] {
        let meta = Meta { seq: SeqNumber::new(ISN).add(offset), flags: TcpFlags::ACK, ..Meta::default() };
        talk.packet(200, true, meta, Options::NONE, 1_460 * segments);
        offset += 1_460 * u32::from(segments);
    }
    let volume = talk.up().volume;
    assert_eq!((volume.data_packets, volume.segments, volume.packets_of_several), (3, 25, 2));
}

/// Segments 0 to 7, of which 1 and 5 are lost. Their repair passes over what was SACKed.
fn a_repair_by_sack(talk: &mut Talk) {
    for number in 0..8 {
        talk.data(200, number);
    }
    for right in 3..6 {
        talk.ack(300, 1, &[(2, right)]);
    }
    talk.ack(301, 1, &[(6, 8), (2, 5)]);
    talk.data(302, 1);
    talk.data(302, 5);
    talk.ack(402, 8, &[]);
}
