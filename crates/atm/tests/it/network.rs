//! Times, shares and losses of small networks, computed by hand.

use lastmile_atm::contract::{Contract, Peak, Sbr, Sustainable};
use lastmile_atm::discard::{LastCell, Scheme};
use lastmile_atm::network::{ClassSpec, HopStats, Upc};
use lastmile_atm::{
    CellDrop, Clp, Departure, Discard, Fate, LinkId, LinkSpec, Network, NetworkError, NetworkSpec, QueueSpec, Queues,
    VcId, VcSpec,
};
use lastmile_units::{BitRate, ByteCount, CellCount, Duration, Instant};
use proptest::prelude::*;

/// A cell takes 10 us.
const RATE: BitRate = match BitRate::from_bps(42_400_000) {
    Some(rate) => rate,
    None => unreachable!(),
};
const CELL_US: u64 = 10;

const fn us(count: u64) -> Instant {
    Instant::from_ps(count * 1_000_000)
}

/// A packet whose frame has `cells` cells, with LLC/SNAP.
const fn packet(cells: u64) -> ByteCount {
    ByteCount::new(48 * cells - 16)
}

/// A host for each VC at a switch with one output link.
fn star(vcs: u16, queues: Queues) -> (NetworkSpec, LinkId) {
    let mut spec = NetworkSpec::new();
    let (switch, server) = (spec.node("switch"), spec.node("server"));
    let trunk = spec.link(LinkSpec::new(switch, server, RATE, Duration::ZERO).with_queues(queues));
    for index in 0..vcs {
        let name = format!("host {index}");
        let host = spec.node(name.clone());
        spec.link(LinkSpec::new(host, switch, RATE, Duration::ZERO));
        let route = spec.route(&[&name, "switch", "server"]).expect("links");
        spec.vc(VcSpec::new(format!("vc {index}"), 32 + index, route));
    }
    (spec, trunk)
}

fn build(spec: &NetworkSpec) -> (Network, Vec<VcId>) {
    let network = Network::new(spec).expect("a network");
    let mut ids = NetworkSpec::new();
    let vcs = spec.vcs.iter().map(|vc| ids.vc(vc.clone())).collect();
    (network, vcs)
}

fn run(network: &mut Network) -> Vec<Departure> {
    let mut left = Vec::new();
    while let Some(next) = network.next_event() {
        network.advance(next);
        network.departures(&mut left);
    }
    left
}

fn hop(network: &Network, vc: VcId, hop: usize) -> HopStats {
    assert!(network.stats().holds());
    network.hop_stats(vc, hop)
}

/// Ano et al. 2002: 172 cells of 8192 bytes. Two links of 10 us a cell: the last cell leaves the
/// first at 1720 us, the second 10 us later, and every link adds its delay.
#[test]
fn a_frame_crosses_links_cell_by_cell() {
    let mut spec = NetworkSpec::new();
    let nodes = ["a", "b", "c"].map(|name| spec.node(name));
    spec.link(LinkSpec::new(nodes[0], nodes[1], RATE, Duration::from_us(100)));
    spec.link(LinkSpec::new(nodes[1], nodes[2], RATE, Duration::from_us(200)));
    let route = spec.route(&["a", "b", "c"]).expect("links");
    let vc = spec.vc(VcSpec::new("vc", 32, route));
    let mut network = Network::new(&spec).expect("a network");
    network.offer(us(7), vc, ByteCount::new(8232), 42).expect("a packet");
    let left = run(&mut network);
    let expected = us(7 + 172 * CELL_US + 100 + CELL_US + 200);
    assert_eq!(left, [Departure { at: expected, vc, packet: 42, bytes: ByteCount::new(8232), fate: Fate::Whole }]);
    assert_eq!(network.vc_stats(vc).whole.cells, 172);
}

/// Shaped to a quarter of the link: the cells of a frame start every 40 us, and the next frame
/// follows in the same step.
#[test]
fn a_source_shapes_to_its_peak_cell_rate() {
    let (mut spec, _) = star(1, Queues::fifo(CellCount::new(1), Discard::default()));
    spec.vcs[0].pcr = BitRate::from_bps(10_600_000);
    let (mut network, vcs) = build(&spec);
    network.offer(us(0), vcs[0], packet(3), 0).expect("a packet");
    network.offer(us(0), vcs[0], packet(2), 1).expect("a packet");
    let times: Vec<Instant> = run(&mut network).iter().map(|left| left.at).collect();
    assert_eq!(times, [us(80 + 20), us(160 + 20)]);
}

/// Two frames of ten cells arrive at once over links as fast as the next: of each pair of cells one
/// waits, so nine or ten wait at the end.
#[test]
fn a_queue_is_sampled_while_it_fills_and_drains() {
    let (spec, trunk) = star(2, Queues::fifo(CellCount::new(100), Discard::default()));
    let (mut network, vcs) = build(&spec);
    for vc in &vcs {
        network.offer(us(0), *vc, packet(10), 0).expect("a packet");
    }
    let samples: Vec<u64> = (0..22)
        .map(|n| {
            network.advance(us(n * CELL_US + 5));
            network.waiting(trunk)
        })
        .collect();
    assert_eq!(samples[..12], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 9]);
    assert_eq!(samples[20..], [0, 0]);
    assert_eq!(network.link_stats(trunk).peak, 10);
    let stats = network.link_stats(trunk);
    assert_eq!((stats.cells.sent, stats.good_cells), (20, 20));
}

/// Ano et al. 2002, in small: a buffer of 20 cells, CLP = 1 dropped from 10 on. Two hosts send a frame
/// of 30 cells each at the rate of the link: one cell more waits after each pair, so that the
/// marked frame is cut and the other is not.
#[test]
fn a_marked_packet_goes_first_where_room_is_short() {
    let discard = Discard { low_priority_limit: Some(CellCount::new(10)), ..Discard::default() };
    let (spec, trunk) = star(2, Queues::fifo(CellCount::new(40), discard));
    for marked in [0, 1] {
        let (mut network, vcs) = build(&spec);
        for (index, vc) in vcs.iter().enumerate() {
            let clp = if index == marked { Clp::One } else { Clp::Zero };
            network.offer_marked(us(0), *vc, packet(30), clp, index as u64).expect("a packet");
        }
        let left = run(&mut network);
        let fate = |packet| left.iter().find(|left| left.packet == packet).expect("it left").fate;
        assert_eq!(fate(marked as u64), Fate::Dropped(CellDrop::Selective));
        assert_eq!(fate(1 - marked as u64), Fate::Whole);
        let stats = network.vc_stats(vcs[marked]);
        assert_eq!((stats.offered_low_priority.frames, stats.whole_low_priority.frames), (1, 0));
        let port = network.link_stats(trunk).cells;
        assert_eq!(port.arrived_low_priority, 30);
        assert_eq!(port.dropped_low_priority, port.dropped_cells());
        assert!(port.dropped_low_priority > 0);
    }
}

/// SBR3 of one cell in four of the link and MBS 5: the sustainable rate counts cells of CLP = 0,
/// the peak rate all cells.
#[test]
fn marked_packets_do_not_use_up_the_sustainable_rate() {
    let rate = |bps| BitRate::from_bps(bps).expect("a rate");
    let peak = Peak { rate: RATE, cdvt: Duration::ZERO };
    let sustainable = Sustainable { rate: rate(10_600_000), mbs: CellCount::new(5), cdvt: Duration::ZERO };
    let contract = Contract::Sbr { variant: Sbr::Three, peak, sustainable };
    let (mut spec, trunk) = star(1, Queues::fifo(CellCount::new(100), Discard::default()));
    spec.vcs[0].upc = Some(Upc { at: trunk, contract });
    let (mut network, vcs) = build(&spec);
    for (n, clp) in [Clp::One, Clp::Zero, Clp::Zero].into_iter().enumerate() {
        network.offer_marked(us(0), vcs[0], packet(5), clp, n as u64).expect("a packet");
    }
    run(&mut network);
    let found = network.conformance(vcs[0]).expect("a policer");
    // Five cells from 50 us on leave TAT at 250 us; tau is 4 * 30 us. So of those at 100 to 140 us
    // only the one at 130 us conforms.
    assert_eq!((found.passed_low_priority, found.passed - found.passed_low_priority, found.tagged), (5, 6, 4));
    let stats = network.vc_stats(vcs[0]);
    assert_eq!((stats.arrived_cells, stats.arrived_low_priority_cells), (15, 9));
}

/// A voice cell arrives while a data frame of 100 cells is being sent: it waits for the cell in
/// transmission, not for the frame.
#[test]
fn priority_goes_between_the_cells_of_a_frame() {
    let class = |priority| ClassSpec { queue: QueueSpec::default(), priority, weight: 1 };
    let (mut spec, _) = star(2, Queues::Classes(vec![class(0), class(1)]));
    spec.vcs[0].class = 1;
    let (mut network, vcs) = build(&spec);
    for _ in 0..2 {
        network.offer(us(0), vcs[0], packet(100), 0).expect("a packet");
    }
    network.offer(us(504), vcs[1], ByteCount::new(32), 1).expect("a packet");
    let left = run(&mut network);
    // It is at the switch at 514 us; a cell that started at 510 us ends at 520 us.
    assert_eq!((left[0].packet, left[0].at), (1, us(530)));
    assert_eq!(left[2].at, us(10 + 200 * CELL_US + CELL_US), "one cell later than without");
}

/// Weights 1, 2 and 5 of eight, all queues always full: cell shares within 0.5 % over 8000 cells.
#[test]
fn weighted_queues_get_their_shares_of_cells() {
    let weights = [1, 2, 5];
    let class = |weight| ClassSpec { queue: QueueSpec::default(), priority: 0, weight };
    let per_vc = Queues::PerVc(QueueSpec::default());
    for queues in [Queues::Classes(weights.map(class).to_vec()), per_vc] {
        let (mut spec, _) = star(3, queues);
        for (index, vc) in spec.vcs.iter_mut().enumerate() {
            (vc.class, vc.weight) = (index, weights[index]);
        }
        let (mut network, vcs) = build(&spec);
        for vc in &vcs {
            for n in 0..10 {
                network.offer(us(0), *vc, packet(1000), n).expect("a packet");
            }
        }
        // All queues hold something from 10 us on, until 80 ms at the least.
        network.advance(us(10));
        let before: Vec<u64> = vcs.iter().map(|vc| hop(&network, *vc, 1).sent).collect();
        network.advance(us(10 + 16_000 * CELL_US / 2));
        for ((vc, before), weight) in vcs.iter().zip(before).zip(weights) {
            let sent = (hop(&network, *vc, 1).sent - before) as f64;
            let expected = 8000.0 * f64::from(weight) / 8.0;
            assert!((sent / expected - 1.0).abs() < 0.005, "{sent} cells of weight {weight} instead of {expected}");
        }
    }
}

/// Five VCs send 40 frames of ten cells each into one link, at five times its rate. Their rates
/// differ, so arrivals do not coincide with departures.
fn overload(discard: Discard, limit: u64) -> (Network, Vec<VcId>, Vec<Departure>) {
    let (mut spec, _) = star(5, Queues::fifo(CellCount::new(limit), discard));
    for (vc, mbit) in spec.vcs.iter_mut().zip([42, 39, 37, 34, 31]) {
        vc.pcr = Some(BitRate::from_mbit_per_s(mbit));
    }
    let (mut network, vcs) = build(&spec);
    for n in 0..40 {
        for (start, vc) in [0, 13, 37, 59, 71].into_iter().zip(&vcs) {
            network.offer(us(start), *vc, packet(10), n).expect("a packet");
        }
    }
    let left = run(&mut network);
    (network, vcs, left)
}

fn sums(network: &Network, vcs: &[VcId]) -> (HopStats, u64) {
    let mut sum = HopStats::default();
    for vc in vcs {
        let hop = network.hop_stats(*vc, 1);
        sum.sent += hop.sent;
        for (sum, cells) in sum.dropped.iter_mut().zip(hop.dropped) {
            *sum += cells;
        }
    }
    let bad = vcs.iter().map(|vc| network.vc_stats(*vc).bad_cells).sum();
    (sum, bad)
}

/// Threshold 50 of a buffer of 150: five frames of ten cells may be in progress when it is reached,
/// so the buffer never overflows.
#[test]
fn epd_forwards_no_part_of_a_frame_unless_the_buffer_overflows() {
    let scheme = Scheme::Epd { threshold: CellCount::new(50) };
    let discard = Discard { scheme, last_cell: LastCell::Drop, ..Discard::default() };
    let (network, vcs, left) = overload(discard, 150);
    let (sum, bad) = sums(&network, &vcs);
    assert!(sum.dropped_for(CellDrop::Epd) > 500, "{sum:?}");
    assert_eq!((sum.dropped_for(CellDrop::QueueFull), sum.dropped_for(CellDrop::Ppd), bad), (0, 0, 0));
    assert_eq!(sum.sent % 10, 0);
    assert!(left.iter().all(|left| matches!(left.fate, Fate::Whole | Fate::Dropped(CellDrop::Epd))));
}

/// Romanow and Floyd 1995: tail drop forwards most parts of frames, PPD fewer, EPD none.
#[test]
fn discarding_frames_turns_badput_into_goodput() {
    let bad_share = |scheme| {
        let (network, vcs, _) = overload(Discard { scheme, last_cell: LastCell::Drop, ..Discard::default() }, 150);
        let (sum, bad) = sums(&network, &vcs);
        bad as f64 / sum.sent as f64
    };
    let (tail, ppd) = (bad_share(Scheme::Tail), bad_share(Scheme::Ppd));
    let epd = bad_share(Scheme::Epd { threshold: CellCount::new(50) });
    assert!(tail > ppd && ppd > epd, "tail {tail}, PPD {ppd}, EPD {epd}");
}

#[test]
fn a_packet_that_fits_no_frame_is_refused() {
    let (spec, _) = star(1, Queues::fifo(CellCount::new(1), Discard::default()));
    let (mut network, vcs) = build(&spec);
    let bytes = ByteCount::new(65_528);
    assert_eq!(network.offer(us(0), vcs[0], bytes, 0), Err(NetworkError::PacketTooLarge { bytes }));
}

#[test]
fn networks_that_make_no_sense_are_refused_by_name() {
    let refused = |change: fn(&mut NetworkSpec)| {
        let (mut spec, _) = star(2, Queues::fifo(CellCount::new(10), Discard::default()));
        change(&mut spec);
        Network::new(&spec).expect_err("no sense").to_string()
    };
    assert_eq!(refused(|spec| spec.vcs[0].route.clear()), "VC \"vc 0\" has no route: it needs at least one link");
    assert_eq!(
        refused(|spec| spec.vcs[0].route.reverse()),
        "VC \"vc 0\": the link to \"server\" is followed by one from \"host 0\"; a route is links that meet"
    );
    assert_eq!(
        refused(|spec| spec.vcs[1].vci = 32),
        "VCs \"vc 0\" and \"vc 1\" both have VPI 0, VCI 32 on the link from \"switch\" to \"server\""
    );
    assert_eq!(refused(|spec| spec.vcs[0].vci = 31), "VC \"vc 0\": VPI 0 must be at most 4095 and VCI 31 at least 32");
    assert_eq!(
        refused(|spec| {
            let scheme = Scheme::Epd { threshold: CellCount::new(11) };
            spec.links[0].queues = Queues::fifo(CellCount::new(10), Discard { scheme, ..Discard::default() });
        }),
        "link from \"switch\" to \"server\": the EPD threshold of 11 cells is above the buffer of 10 cells"
    );
    // No memory is shared here: the port has that of its queue.
    assert_eq!(
        refused(|spec| {
            let low = Discard { low_priority_limit: Some(CellCount::new(11)), ..Discard::default() };
            spec.links[0].queues = Queues::fifo(CellCount::new(10), low);
        }),
        "link from \"switch\" to \"server\": the limit of CLP = 1 of 11 cells is above the buffer of 10 cells"
    );
    assert_eq!(
        refused(|spec| {
            let back = LinkSpec::new(spec.links[0].to, spec.links[0].from, RATE, Duration::ZERO);
            let back = spec.link(back);
            spec.vcs[0].route.push(back);
        }),
        "VC \"vc 0\" comes to \"switch\" twice; a route has no loop"
    );
    assert_eq!(
        refused(|spec| spec.vcs[0].pcr = Some(BitRate::from_mbit_per_s(50))),
        "VC \"vc 0\" is paced at 50 Mbit/s, above 42.4 Mbit/s of its link"
    );
}

/// Frames of several lengths wait in queues of two priorities and four weights, without further
/// arrivals. From event to event there is one departure at each, at its picosecond.
#[test]
fn the_next_event_at_a_weighted_last_hop_is_the_next_departure() {
    let class = |priority, weight| ClassSpec { queue: QueueSpec::default(), priority, weight };
    let classes = vec![class(1, 1), class(0, 3), class(1, 5), class(1, 2)];
    let (mut spec, trunk) = star(4, Queues::Classes(classes));
    for (index, vc) in spec.vcs.iter_mut().enumerate() {
        vc.class = index;
    }
    // The trunk is so slow that all cells wait there before the first frame has left.
    spec.links[0].rate = BitRate::from_kbit_per_s(424);
    let (mut network, vcs) = build(&spec);
    for (index, vc) in vcs.iter().enumerate() {
        for n in 0..6 {
            network.offer(us(0), *vc, packet(7 + 5 * n + index as u64), n).expect("a packet");
        }
    }
    network.advance(us(2_000));
    assert_eq!(network.waiting(trunk), 504 - 2, "one cell has been sent, one is being sent");
    let (mut left, mut events) = (Vec::new(), 0);
    while let Some(next) = network.next_event() {
        network.advance(next);
        network.departures(&mut left);
        events += 1;
        assert_eq!((left.len(), left.last().map(|gone| gone.at)), (events, Some(next)));
    }
    assert_eq!(events, 24);
}

/// Ports of hosts with links as fast as the trunk never have a backlog. Their counters are equal in
/// runs and cell by cell at any time.
#[test]
fn a_port_at_which_nothing_waits_counts_what_goes_past() {
    let mut spec = NetworkSpec::new();
    let nodes = ["a", "b", "c", "d"].map(|name| spec.node(name));
    let rates = [42_400, 30_000, 30_000, 42_400].map(BitRate::from_kbit_per_s);
    for (pair, rate) in nodes.windows(2).zip(rates) {
        spec.link(LinkSpec::new(pair[0], pair[1], rate, Duration::from_us(70)));
    }
    let route = spec.route(&["a", "b", "c", "d"]).expect("links");
    for (vci, pcr) in [(32, None), (33, Some(BitRate::from_mbit_per_s(9)))] {
        spec.vc(VcSpec { pcr, ..VcSpec::new(format!("vc {vci}"), vci, route.clone()) });
    }
    let (mut trains, vcs) = build(&spec);
    let mut cells = Network::new(&NetworkSpec { trains: false, ..spec.clone() }).expect("a network");
    for (vc, at) in vcs.iter().zip([3, 400]) {
        for network in [&mut trains, &mut cells] {
            network.offer(us(at), *vc, packet(60), 0).expect("a packet");
        }
    }
    for n in 0..360 {
        for network in [&mut trains, &mut cells] {
            network.advance(us(10 * n + n % 7));
        }
        assert_eq!(trains.all_hop_stats(), cells.all_hop_stats());
        for link in spec.link_ids() {
            assert_eq!(trains.link_stats(link), cells.link_stats(link));
            assert_eq!(trains.sent(link), cells.link_stats(link).cells.sent);
        }
    }
    assert_eq!(trains.hop_stats(vcs[1], 2).sent, 60);
}

/// Two senders as fast as a port fill the memory of a switch; a third sends to a port as fast as its
/// link, which never has a backlog. Its cells are dropped while the memory is full.
#[test]
fn a_full_memory_drops_cells_for_a_port_at_which_none_waits() {
    let mut spec = NetworkSpec::new();
    let switch = spec.shared_memory_node("switch", CellCount::new(10));
    let mut vcs = Vec::new();
    for (index, receiver) in ["slow", "slow", "idle"].into_iter().enumerate() {
        let name = format!("host {index}");
        let host = spec.node(name.clone());
        spec.link(LinkSpec::new(host, switch, RATE, Duration::ZERO));
        if index != 1 {
            let to = spec.node(receiver);
            spec.link(LinkSpec::new(switch, to, RATE, Duration::ZERO));
        }
        let route = spec.route(&[&name, "switch", receiver]).expect("links");
        vcs.push(spec.vc(VcSpec::new(name, 32 + index as u16, route)));
    }
    for trains in [true, false] {
        let mut network = Network::new(&NetworkSpec { trains, ..spec.clone() }).expect("a network");
        for (vc, cells) in vcs.iter().zip([40, 40, 20]) {
            network.offer(us(0), *vc, packet(cells), 0).expect("a packet");
        }
        run(&mut network);
        // As many wait as pairs have come, until ten do: then the memory is full whenever a cell of
        // the third comes, the tenth to the twentieth.
        assert_eq!(hop(&network, vcs[2], 1).dropped_for(CellDrop::MemoryFull), 11, "trains: {trains}");
    }
}

proptest! {
    /// One frame alone over any chain of links: cut through at every port, stored at the far end alone.
    #[test]
    fn a_frame_alone_takes_the_time_in_closed_form(
        rates in prop::collection::vec((1_000_u64..155_000, 0_u64..4_000, prop::option::of(500_u64..1_000)), 1..5),
        pcr in prop::option::of(400_u64..1_000),
        bytes in 0_u64..9_000,
    ) {
        let mut spec = NetworkSpec::new();
        let mut from = spec.node("first");
        for (kbit, delay_us, pace) in &rates {
            let to = spec.node("next");
            let link = LinkSpec::new(from, to, BitRate::from_kbit_per_s(*kbit), Duration::from_us(*delay_us));
            spec.link(LinkSpec { pace: pace.map(BitRate::from_kbit_per_s), ..link });
            from = to;
        }
        let route = spec.link_ids().collect();
        let vc = spec.vc(VcSpec { pcr: pcr.map(BitRate::from_kbit_per_s), ..VcSpec::new("vc", 32, route) });
        for trains in [false, true] {
            let mut network = Network::new(&NetworkSpec { trains, ..spec.clone() }).expect("a network");
            network.offer(us(5), vc, ByteCount::new(bytes), 0).expect("a packet");
            let transit = run(&mut network)[0].at.since(us(5));
            prop_assert_eq!(Some(transit), spec.unloaded_transit(vc, ByteCount::new(bytes)));
        }
    }
}

/// A cell takes 1 s on the first link, without a backlog, and 2 s on the second. Its bits count as
/// they are transmitted, at a FIFO and at a scheduler.
#[test]
fn bits_count_as_they_go_out() {
    for queues in [Queues::Fifo(QueueSpec::default()), Queues::PerVc(QueueSpec::default())] {
        let mut spec = NetworkSpec::new();
        let nodes = ["a", "s", "b"].map(|name| spec.node(name));
        let link =
            |from, to, bps| LinkSpec::new(nodes[from], nodes[to], BitRate::from_bps(bps).unwrap(), Duration::ZERO);
        let first = spec.link(link(0, 1, 424));
        let second = spec.link(LinkSpec { queues: queues.clone(), ..link(1, 2, 212) });
        let vc = spec.vc(VcSpec::new("vc", 32, vec![first, second]));
        let mut network = Network::new(&spec).unwrap();
        // Three cells: 128 bytes and the trailer of 16 over LLC/SNAP, or 136 and 8.
        network.offer(Instant::ZERO, vc, ByteCount::new(128), 0).unwrap();
        let expected = [
            (250, 106, 0),
            (500, 212, 0),
            (1_500, 636, 106),
            (2_250, 954, 265),
            (3_000, 1_272, 424),
            (4_000, 1_272, 636),
            (6_500, 1_272, 1_166),
            (7_000, 1_272, 1_272),
            (9_000, 1_272, 1_272),
        ];
        for (ms, on_first, on_second) in expected {
            network.advance(Instant::ZERO + Duration::from_ms(ms));
            let bits = [first, second].map(|link| network.bits_sent(link));
            // Of a bit that is on its way out at the last moment of a picosecond nothing is left.
            let near = |bits: u64, expected: u64| (expected..=expected + 1).contains(&bits);
            assert!(near(bits[0], on_first) && near(bits[1], on_second), "{queues:?} after {ms} ms: {bits:?}");
        }
    }
}
