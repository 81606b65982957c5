use std::cell::Cell;
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::Mutex;

use lastmile_linklayer::{Interleave, LinkLayer};
use lastmile_model::outcome::Buckets;
use lastmile_packet::{FlowAddresses, Frame, IpAddresses, Meta, Protocol, write_packet};
use lastmile_queueing::classify::rules;
use lastmile_queueing::fifo::Limit;
use lastmile_queueing::line::{Config, Count};
use lastmile_queueing::sched::priority;
use lastmile_queueing::spec::{ClassSpec, Spec};
use lastmile_queueing::{Match, Overflow, fifo};
use lastmile_units::{BitRate, ByteCount, CellCount};
use proptest::prelude::*;

use super::direction::RunningHop;
use super::tap::AtHop;
use super::*;
use crate::io::{Counters, Framing, Refusal};

mod queues;
mod regulated;
mod replayed;

struct FakeClock(Cell<Instant>);

impl Clock for FakeClock {
    fn now(&self) -> Instant {
        self.0.get()
    }
}

/// Packets that arrive at given times, and what was sent, when.
struct FakePort {
    framing: Framing,
    arriving: VecDeque<(Instant, Vec<u8>)>,
    sent: Vec<(Instant, Vec<u8>)>,
    refuse: Option<Refusal>,
    now: Instant,
}

impl Default for FakePort {
    fn default() -> Self {
        Self { framing: Framing::Packet, arriving: VecDeque::new(), sent: Vec::new(), refuse: None, now: Instant::ZERO }
    }
}

impl Port for FakePort {
    fn name(&self) -> &str {
        "a fake"
    }

    fn framing(&self) -> Framing {
        self.framing
    }

    /// A device with time stamps: complete up to now, or up to the last packet that the limit allowed.
    fn receive(
        &mut self,
        clock: &dyn Clock,
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

    fn send(&mut self, frames: &mut Vec<Frame>, done: &mut dyn FnMut(Frame, Result<(), Refusal>)) {
        assert!(frames.len() <= BATCH);
        for frame in frames.drain(..) {
            let result = match self.refuse {
                Some(refusal) => Err(refusal),
                None => {
                    self.sent.push((self.now, frame.bytes().to_vec()));
                    Ok(())
                }
            };
            done(frame, result);
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

fn hop(name: &str, rate: Option<BitRate>, link_layer: &str, delay: Duration, limit: u64) -> Hop {
    let link_layer = LinkLayer::from_name(link_layer).unwrap();
    Hop {
        name: name.into(),
        line: Config::new(rate, link_layer, delay),
        queue: Spec::Fifo(fifo::Config { limit: Limit::Bytes(ByteCount::new(limit)), drop: Overflow::Tail }),
    }
}

/// 512 kbit/s over ATM, bridged with FCS, 3 ms, a queue of `limit` bytes.
fn adsl(limit: u64) -> Hop {
    hop("adsl", Some(BitRate::from_kbit_per_s(512)), "bridged-vcmux-fcs", Duration::from_ms(3), limit)
}

/// That bump, with packets of up to 200 bytes going between the cells of larger ones.
fn interleaved() -> Hop {
    let class = |matches| ClassSpec { matches, queue: Spec::fifo(30) };
    let classes = vec![class(Match::AtMostBytes(200)), class(Match::Any)];
    let mut hop = Hop { queue: Spec::Priority(priority::Config { classes }), ..adsl(0) };
    hop.line.link_layer = hop.line.link_layer.with_interleave(Interleave::Cells).unwrap();
    hop
}

/// Both between a LAN and a slow backbone with a short queue and a wire without rate.
fn path() -> Vec<Hop> {
    vec![
        hop("lan", Some(BitRate::from_mbit_per_s(100)), "ethernet", Duration::ZERO, 1_000_000),
        adsl(20_000),
        interleaved(),
        hop("backbone", Some(BitRate::from_kbit_per_s(450)), "ip", Duration::from_ms(7), 5_000),
        hop("wire", None, "ip", Duration::from_us(1), 5_000),
    ]
}

fn bump(up: Vec<Hop>) -> Bump {
    let down = vec![adsl(100_000)];
    Bump::new(&BumpConfig { up, down, mtu: 1500, seed: 1, hash_key: HashKey::default() }).unwrap()
}

/// The fate of `arrivals` when time is exact, each event at its own time: the packets that come out and when, and the
/// lines that did it.
fn exactly(configs: &[Hop], arrivals: &[(Instant, Vec<u8>)]) -> (Vec<(Instant, Vec<u8>)>, Vec<RunningHop>) {
    let directions = Direction::new(configs, 1, HashKey::default(), &Arc::default());
    let Direction { mut hops, mut kept, .. } = directions.unwrap();
    let mut departures = Vec::new();
    let mut arrivals = arrivals.iter().peekable();
    loop {
        let own = hops.iter().flat_map(|hop| [hop.line.next_transmission(), hop.line.next_arrival()]).flatten();
        let next = arrivals.peek().map(|(at, _)| *at);
        let Some(now) = own.chain(next).min() else { break };
        if next == Some(now) {
            let (_, bytes) = arrivals.next().unwrap();
            hops[0].enqueue(now, Frame::new(bytes.clone()).0, &mut kept, AtHop::NONE);
        }
        for index in 0..hops.len() {
            hops[index].transmit(now, &mut kept, AtHop::NONE);
            let Some(frame) = hops[index].take_arrival(now, &mut kept, AtHop::NONE) else { continue };
            match hops.get_mut(index + 1) {
                Some(next) => next.enqueue(now, frame, &mut kept, AtHop::NONE),
                None => departures.push((now, frame.into_bytes())),
            }
        }
    }
    (departures, hops)
}

/// True when both did the same with the same packets, at the same times.
fn same(emulated: &Direction, exact: &[RunningHop]) -> bool {
    emulated.hops.len() == exact.len()
        && emulated.hops.iter().zip(exact).all(|(a, b)| {
            a.line.stats() == b.line.stats() && a.waits.all == b.waits.all && a.most_queued == b.most_queued
        })
}

/// The delays of the packets that came out, by the times at which they went in. No two have the same bytes.
fn delays(arrivals: &[(Instant, Vec<u8>)], departures: &[(Instant, Vec<u8>)]) -> Crossed {
    let mut crossed = Crossed::default();
    for (arrived, bytes) in departures {
        let (sent, _) = arrivals.iter().find(|(_, sent)| sent == bytes).unwrap();
        crossed.record(&Meta { sent: *sent, arrived: *arrived, ..Meta::default() });
    }
    crossed
}

/// Drives `bump` at the `wakes` and then, punctually, until nothing is left; gives what came out up at the server.
fn drive(bump: &mut Bump, arrivals: &[(Instant, Vec<u8>)], wakes: &[Instant]) -> Vec<(Instant, Vec<u8>)> {
    let clock = FakeClock(Cell::new(Instant::ZERO));
    let mut client = FakePort { arriving: arrivals.iter().cloned().collect(), ..FakePort::default() };
    let mut server = FakePort::default();
    for wake in wakes {
        clock.0.set((*wake).max(clock.now()));
        bump.turn(&clock, &mut client, &mut server).unwrap();
        assert!(bump.reports().0.is_balanced());
    }
    loop {
        let next = client.arriving.front().map(|(at, _)| *at);
        let Some(wake) = [bump.next_wake(), next].into_iter().flatten().min() else { break };
        clock.0.set(wake.max(clock.now()));
        bump.turn(&clock, &mut client, &mut server).unwrap();
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

    /// Two clocks, one path: driven punctually, every packet leaves at the picosecond at which the lines have it leave.
    #[test]
    fn a_punctual_bump_is_the_path_itself(arrivals in arrivals()) {
        let (exact, reference) = exactly(&path(), &arrivals);
        let mut bump = bump(path());
        bump.record();
        let sent = drive(&mut bump, &arrivals, &[]);
        prop_assert_eq!(&bump.up.crossed, &delays(&arrivals, &exact));
        prop_assert_eq!(sent, exact);
        prop_assert!(same(&bump.up, &reference));
        prop_assert_eq!(bump.up.lateness.max(), 0);
    }

    /// Woken late and rarely, it sends late, and that is all: the same packets dropped, the same
    /// waits, the same order, none early, and punctual again once it is woken on time.
    #[test]
    fn late_wake_ups_change_no_departure(
        arrivals in arrivals(),
        gaps in prop::collection::vec(0..300_000_000_000_u64, 0..60),
    ) {
        let (exact, reference) = exactly(&path(), &arrivals);
        let mut now = Instant::ZERO;
        let wakes: Vec<Instant> = gaps.into_iter().map(|gap| { now += Duration::from_ps(gap); now }).collect();
        let mut bump = bump(path());
        bump.record();
        let sent = drive(&mut bump, &arrivals, &wakes);

        prop_assert!(same(&bump.up, &reference));
        prop_assert_eq!(&bump.up.crossed, &delays(&arrivals, &exact));
        prop_assert_eq!(sent.len(), exact.len());
        for ((at, bytes), (due, expected)) in sent.iter().zip(&exact) {
            prop_assert_eq!(bytes, expected);
            prop_assert!(at >= due);
            if *due > now {
                prop_assert_eq!(at, due);
            }
        }
        prop_assert!(bump.reports().0.is_balanced());
    }

    /// An unparsable packet crosses the line byte for byte.
    #[test]
    fn unreadable_packets_pass_untouched(bytes in prop::collection::vec(any::<u8>(), 1..1500)) {
        let mut bump = bump(vec![adsl(20_000)]);
        let sent = drive(&mut bump, &[(Instant::ZERO, bytes.clone())], &[]);
        let readable = Frame::new(bytes.clone()).1.is_ok();
        prop_assert_eq!(bump.up.unreadable, u64::from(!readable));
        if !readable {
            prop_assert_eq!(&sent[0].1, &bytes);
        }
    }
}

/// More packets at one moment than a turn takes: the rest come with the next turns, in order, none lost.
#[test]
fn a_burst_longer_than_a_batch_is_taken_in_several_turns() {
    let burst: Vec<_> = (0..BATCH as u16 * 2 + 1).map(|number| (Instant::ZERO, packet(number, 100))).collect();
    let config = [adsl(1_000_000)];
    let (exact, _) = exactly(&config, &burst);
    let mut bump = bump(config.to_vec());
    assert_eq!(drive(&mut bump, &burst, &[]), exact);
    assert_eq!(exact.len(), burst.len());
}

#[test]
fn a_packet_longer_than_the_mtu_is_counted_and_never_enters_the_line() {
    let mut bump = bump(vec![adsl(20_000)]);
    let sent = drive(&mut bump, &[(Instant::ZERO, packet(0, 1501)), (Instant::ZERO, packet(1, 1500))], &[]);
    assert_eq!(sent.len(), 1);
    let (up, _) = bump.reports();
    assert_eq!(
        (up.oversize, up.received.packets, up.hops[0].line.enqueued.packets),
        (Count { packets: 1, bytes: 1501 }, 2, 1)
    );
    assert!(up.is_balanced());
}

#[test]
fn a_packet_that_the_receiver_refuses_is_counted_with_the_reason() {
    let mut bump = bump(vec![adsl(20_000)]);
    let clock = FakeClock(Cell::new(Instant::ZERO));
    let mut client = FakePort { arriving: [(Instant::ZERO, packet(0, 100))].into(), ..FakePort::default() };
    let mut server = FakePort { refuse: Some(Refusal::Full), ..FakePort::default() };
    bump.turn(&clock, &mut client, &mut server).unwrap();
    clock.0.set(Instant::ZERO + Duration::from_s(1));
    bump.turn(&clock, &mut client, &mut server).unwrap();
    let (up, _) = bump.reports();
    assert_eq!(up.refused[Refusal::Full.index()], Count { packets: 1, bytes: 100 });
    assert_eq!(up.sent, Count::default());
    assert!(up.is_balanced());
    // A display has it among the drops of the hop, and those of the port in front of it.
    let port = Counters { dropped_unread: 3, ..Counters::default() };
    let hop = &bump.states(clock.0.get(), [port, Counters::default()]).hops[0];
    let counts = hop.port_drops.iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>();
    assert_eq!((counts, hop.dropped_packets()), (vec![&("dropped_unread", 3), &("receiver_full", 1)], 4));
    // 100 + 28 bytes are 3 cells: 159 * 8 / 512e3 s = 2.484375 ms, and 3 ms delay; sent at 1 s. Three digits are kept.
    let expected = 1_000_000_000 - 5_484_375;
    assert!(up.lateness.max().abs_diff(expected) < expected / 1000, "{}", up.lateness.max());
}

/// A tagged frame of IP, ARP padded to the shortest frame, a runt: each takes as long as the bytes
/// behind its Ethernet header, and leaves unchanged.
#[test]
fn ethernet_frames_cross_whole_and_cost_what_is_behind_their_header() {
    let ethernet = |ether_type: &[u8], behind: &[u8]| [&[2; 12], ether_type, behind].concat();
    let frames =
        [ethernet(&[0x81, 0, 0, 7, 8, 0], &packet(1, 100)), ethernet(&[0x08, 0x06], &[1; 46]), ethernet(&[], &[])];
    let arriving = frames.iter().map(|frame| (Instant::ZERO, frame.clone())).collect();
    let mut a = FakePort { framing: Framing::Ethernet, arriving, ..FakePort::default() };
    let mut b = FakePort { framing: Framing::Ethernet, ..FakePort::default() };
    let slow = hop("slow", Some(BitRate::from_kbit_per_s(8)), "ip", Duration::ZERO, 10_000);
    let mut bump = bump(vec![slow]);
    let clock = FakeClock(Cell::new(Instant::ZERO));
    bump.turn(&clock, &mut a, &mut b).unwrap();
    while let Some(wake) = bump.next_wake() {
        clock.0.set(wake);
        bump.turn(&clock, &mut a, &mut b).unwrap();
    }
    // A byte a millisecond: 100, and 46, and nothing.
    let [tagged, arp, runt] = frames;
    let after = |ms| Instant::ZERO + Duration::from_ms(ms);
    assert_eq!(b.sent, [(after(100), tagged), (after(146), arp), (after(146), runt)]);
    let (up, _) = bump.reports();
    assert_eq!((up.received, up.not_ip, up.unreadable), (Count { packets: 3, bytes: 146 }, 1, 1));
    assert!(up.is_balanced());
}

#[test]
fn each_direction_has_its_own_line() {
    let mut bump = bump(vec![adsl(20_000)]);
    let clock = FakeClock(Cell::new(Instant::ZERO));
    let mut client = FakePort { arriving: [(Instant::ZERO, packet(1, 100))].into(), ..FakePort::default() };
    let mut server = FakePort { arriving: [(Instant::ZERO, packet(2, 1500))].into(), ..FakePort::default() };
    bump.turn(&clock, &mut client, &mut server).unwrap();
    while let Some(wake) = bump.next_wake() {
        clock.0.set(wake);
        bump.turn(&clock, &mut client, &mut server).unwrap();
    }
    assert_eq!(server.sent, [(Instant::ZERO + Duration::from_ps(5_484_375_000), packet(1, 100))]);
    // 1528 bytes are 32 cells: 1696 * 8 / 512e3 s = 26.5 ms, and 3 ms.
    assert_eq!(client.sent, [(Instant::ZERO + Duration::from_us(29_500), packet(2, 1500))]);
}

#[test]
fn a_limit_in_cells_needs_a_line_with_cells() {
    let in_cells = |link_layer| {
        let mut down = hop("down", None, link_layer, Duration::ZERO, 0);
        down.queue = Spec::Fifo(fifo::Config { limit: Limit::Cells(CellCount::new(100)), drop: Overflow::Tail });
        let (up, down) = (vec![adsl(1000)], vec![down]);
        Bump::new(&BumpConfig { up, down, mtu: 1500, seed: 1, hash_key: HashKey::default() })
    };
    assert!(in_cells("ethernet").is_err());
    assert!(in_cells("aal5").is_ok());
}
