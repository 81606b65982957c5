use std::cell::Cell;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{FlowAddresses, IpAddresses, Meta, write_packet};
use lastmile_queueing::Overflow;
use lastmile_queueing::compress::Compression;
use lastmile_queueing::fifo::Limit;
use lastmile_queueing::line::Config;
use lastmile_queueing::spec::Spec;
use lastmile_units::{BitRate, ByteCount, CellCount};
use proptest::prelude::*;

use super::*;

struct FakeClock(Cell<Instant>);

impl Clock for FakeClock {
    fn now(&self) -> Instant {
        self.0.get()
    }
}

/// Packets that arrive at given times, and what was sent, when.
#[derive(Default)]
struct FakePort {
    arriving: VecDeque<(Instant, Vec<u8>)>,
    sent: Vec<(Instant, Vec<u8>)>,
    refuse: Option<Refusal>,
    now: Instant,
}

impl Port for FakePort {
    /// A device with time stamps: complete up to now, or up to the last packet that the limit allowed.
    fn receive(
        &mut self,
        clock: &impl Clock,
        limit: usize,
        take: &mut dyn FnMut(Instant, &[u8]),
    ) -> io::Result<Instant> {
        self.now = clock.now();
        let mut horizon = self.now;
        for count in 0.. {
            match self.arriving.front() {
                Some((arrived, _)) if *arrived <= self.now && count == limit => return Ok(horizon),
                Some((arrived, bytes)) if *arrived <= self.now => {
                    take(*arrived, bytes);
                    horizon = *arrived;
                    self.arriving.pop_front();
                }
                _ => break,
            }
        }
        Ok(self.now)
    }

    fn send(&mut self, packet: &[u8]) -> Result<(), Refusal> {
        match self.refuse {
            Some(refusal) => Err(refusal),
            None => {
                self.sent.push((self.now, packet.to_vec()));
                Ok(())
            }
        }
    }
}

/// A UDP packet of `ip_len` bytes whose number says which it is.
fn packet(number: u16, ip_len: u16) -> Vec<u8> {
    let meta = Meta { ip_len, ip_id: number, protocol: Protocol::Udp, header_len: 28, ..Meta::default() };
    let ip = IpAddresses::V4 { source: Ipv4Addr::new(198, 18, 0, 2), destination: Ipv4Addr::new(198, 18, 0, 1) };
    let mut bytes = Vec::new();
    write_packet(&meta, &FlowAddresses { ip, source_port: 7, destination_port: 9 }, &mut bytes);
    assert_eq!(bytes.len(), usize::from(ip_len));
    bytes
}

/// 512 kbit/s over ATM, bridged with FCS, 3 ms, a queue of `limit` bytes.
fn direction(limit: u64) -> DirectionConfig {
    DirectionConfig {
        line: Config {
            rate: Some(BitRate::from_kbit_per_s(512)),
            link_layer: LinkLayer::from_name("bridged-vcmux-fcs").unwrap(),
            delay: Duration::from_ms(3),
            loss_ppb: 0,
            compression: Compression::None,
        },
        queue: Spec::Fifo { limit: Limit::Bytes(ByteCount::new(limit)), drop: Overflow::Tail },
    }
}

fn emulator(up: DirectionConfig) -> Emulator {
    let down = direction(100_000);
    Emulator::new(&EmulatorConfig { up, down, mtu: 1500, seed: 1, hash_key: HashKey::default() }).unwrap()
}

/// What happens to `arrivals` when time is exact: the packets that arrive and when, and the line that did it.
fn exactly(config: &DirectionConfig, arrivals: &[(Instant, Vec<u8>)]) -> (Vec<(Instant, Vec<u8>)>, Direction) {
    let mut direction = Direction::new(config, Stream::new(1, "up")).unwrap();
    let mut departures = Vec::new();
    let mut arrivals = arrivals.iter().peekable();
    loop {
        let own = direction.next_wake();
        let next = arrivals.peek().map(|(at, _)| *at);
        let Some(now) = [own, next].into_iter().flatten().min() else { break };
        if next == Some(now) {
            let (_, bytes) = arrivals.next().unwrap();
            direction.received.packets += 1;
            direction.line.enqueue(now, Frame::new(bytes.clone()).0, &mut direction.watch);
        }
        direction.line.transmit(now, &mut direction.watch);
        while let Some(frame) = direction.line.take_arrival(now, &mut direction.watch) {
            departures.push((now, frame.into_bytes()));
        }
    }
    (departures, direction)
}

/// Drives `emulator` at the `wakes` and then, punctually, until nothing is left; gives what came out up at the server.
fn drive(emulator: &mut Emulator, arrivals: &[(Instant, Vec<u8>)], wakes: &[Instant]) -> Vec<(Instant, Vec<u8>)> {
    let clock = FakeClock(Cell::new(Instant::ZERO));
    let mut client = FakePort { arriving: arrivals.iter().cloned().collect(), ..FakePort::default() };
    let mut server = FakePort::default();
    for wake in wakes {
        clock.0.set((*wake).max(clock.now()));
        emulator.turn(&clock, &mut client, &mut server).unwrap();
        assert!(emulator.reports().0.is_balanced());
    }
    loop {
        let next = client.arriving.front().map(|(at, _)| *at);
        let Some(wake) = [emulator.next_wake(), next].into_iter().flatten().min() else { break };
        clock.0.set(wake.max(clock.now()));
        emulator.turn(&clock, &mut client, &mut server).unwrap();
    }
    assert!(client.sent.is_empty());
    server.sent
}

/// Gaps in picoseconds and sizes: from bursts that overflow the queue to pauses that empty it.
fn arrivals() -> impl Strategy<Value = Vec<(Instant, Vec<u8>)>> {
    let gap = prop_oneof![3 => 0_u64..50_000, 2 => 0..30_000_000_000_u64, 1 => 0..200_000_000_000_u64];
    prop::collection::vec((gap, 28_u16..=1500), 1..300).prop_map(|gaps| {
        let mut at = Instant::ZERO;
        let arrival = |(number, (gap, size)): (u16, (u64, u16))| {
            at += Duration::from_ps(gap);
            (at, packet(number, size))
        };
        (0..).zip(gaps).map(arrival).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Two clocks, one line: driven punctually, every packet leaves at the picosecond at which the line has it leave.
    #[test]
    fn a_punctual_emulator_is_the_line_itself(arrivals in arrivals()) {
        let config = direction(20_000);
        let (exact, reference) = exactly(&config, &arrivals);
        let mut emulator = emulator(config);
        let sent = drive(&mut emulator, &arrivals, &[]);
        prop_assert_eq!(sent, exact);
        prop_assert_eq!(emulator.up.line.stats(), reference.line.stats());
        prop_assert_eq!(emulator.up.lateness.max(), 0);
    }

    /// Woken late and rarely, it sends late, and that is all: the same packets dropped, the same waits, the same order, none
    /// early, and punctual again once it is woken on time.
    #[test]
    fn late_wake_ups_change_no_departure(
        arrivals in arrivals(),
        gaps in prop::collection::vec(0..300_000_000_000_u64, 0..60),
    ) {
        let config = direction(20_000);
        let (exact, reference) = exactly(&config, &arrivals);
        let mut now = Instant::ZERO;
        let wakes: Vec<Instant> = gaps.into_iter().map(|gap| { now += Duration::from_ps(gap); now }).collect();
        let mut emulator = emulator(config);
        let sent = drive(&mut emulator, &arrivals, &wakes);

        prop_assert_eq!(emulator.up.line.stats(), reference.line.stats());
        prop_assert_eq!(&emulator.up.watch.waited, &reference.watch.waited);
        prop_assert_eq!(sent.len(), exact.len());
        for ((at, bytes), (due, expected)) in sent.iter().zip(&exact) {
            prop_assert_eq!(bytes, expected);
            prop_assert!(at >= due);
            if *due > now {
                prop_assert_eq!(at, due);
            }
        }
        prop_assert!(emulator.reports().0.is_balanced());
    }

    /// What cannot be read crosses the line byte for byte.
    #[test]
    fn unreadable_packets_pass_untouched(bytes in prop::collection::vec(any::<u8>(), 1..1500)) {
        let mut emulator = emulator(direction(20_000));
        let sent = drive(&mut emulator, &[(Instant::ZERO, bytes.clone())], &[]);
        let readable = Frame::new(bytes.clone()).1.is_ok();
        prop_assert_eq!(emulator.up.unreadable, u64::from(!readable));
        if !readable {
            prop_assert_eq!(&sent[0].1, &bytes);
        }
    }
}

/// More packets at one moment than a turn takes: the rest come with the next turns, in order, none lost.
#[test]
fn a_burst_longer_than_a_batch_is_taken_in_several_turns() {
    let burst: Vec<_> = (0..BATCH as u16 * 2 + 1).map(|number| (Instant::ZERO, packet(number, 100))).collect();
    let config = direction(1_000_000);
    let (exact, _) = exactly(&config, &burst);
    let mut emulator = emulator(config);
    assert_eq!(drive(&mut emulator, &burst, &[]), exact);
    assert_eq!(exact.len(), burst.len());
}

#[test]
fn a_packet_longer_than_the_mtu_is_counted_and_never_enters_the_line() {
    let mut emulator = emulator(direction(20_000));
    let sent = drive(&mut emulator, &[(Instant::ZERO, packet(0, 1501)), (Instant::ZERO, packet(1, 1500))], &[]);
    assert_eq!(sent.len(), 1);
    let (up, _) = emulator.reports();
    assert_eq!((up.oversize, up.received.packets, up.line.enqueued.packets), (Count { packets: 1, bytes: 1501 }, 2, 1));
    assert!(up.is_balanced());
}

#[test]
fn a_packet_that_the_receiver_refuses_is_counted_with_the_reason() {
    let mut emulator = emulator(direction(20_000));
    let clock = FakeClock(Cell::new(Instant::ZERO));
    let mut client = FakePort { arriving: [(Instant::ZERO, packet(0, 100))].into(), ..FakePort::default() };
    let mut server = FakePort { refuse: Some(Refusal::Full), ..FakePort::default() };
    emulator.turn(&clock, &mut client, &mut server).unwrap();
    clock.0.set(Instant::ZERO + Duration::from_s(1));
    emulator.turn(&clock, &mut client, &mut server).unwrap();
    let (up, _) = emulator.reports();
    assert_eq!(up.refused[Refusal::Full.index()], Count { packets: 1, bytes: 100 });
    assert_eq!(up.sent, Count::default());
    assert!(up.is_balanced());
    // 100 + 28 bytes are 3 cells: 159 * 8 / 512e3 s = 2.484375 ms, and 3 ms delay; sent at 1 s. Three digits are kept.
    let expected = 1_000_000_000 - 5_484_375;
    assert!(up.lateness.max().abs_diff(expected) < expected / 1000, "{}", up.lateness.max());
}

#[test]
fn each_direction_has_its_own_line() {
    let mut emulator = emulator(direction(20_000));
    let clock = FakeClock(Cell::new(Instant::ZERO));
    let mut client = FakePort { arriving: [(Instant::ZERO, packet(1, 100))].into(), ..FakePort::default() };
    let mut server = FakePort { arriving: [(Instant::ZERO, packet(2, 1500))].into(), ..FakePort::default() };
    emulator.turn(&clock, &mut client, &mut server).unwrap();
    while let Some(wake) = emulator.next_wake() {
        clock.0.set(wake);
        emulator.turn(&clock, &mut client, &mut server).unwrap();
    }
    assert_eq!(server.sent, [(Instant::ZERO + Duration::from_ps(5_484_375_000), packet(1, 100))]);
    // 1528 bytes are 32 cells: 1696 * 8 / 512e3 s = 26.5 ms, and 3 ms.
    assert_eq!(client.sent, [(Instant::ZERO + Duration::from_us(29_500), packet(2, 1500))]);
}

#[test]
fn a_limit_in_cells_needs_a_line_with_cells() {
    let in_cells = |link_layer| {
        let mut config = direction(0);
        config.line.link_layer = link_layer;
        config.queue = Spec::Fifo { limit: Limit::Cells(CellCount::new(100)), drop: Overflow::Tail };
        let up = direction(1000);
        Emulator::new(&EmulatorConfig { up, down: config, mtu: 1500, seed: 1, hash_key: HashKey::default() })
    };
    assert!(in_cells(LinkLayer::from_name("ethernet").unwrap()).is_err());
    assert!(in_cells(LinkLayer::from_name("aal5").unwrap()).is_ok());
}
