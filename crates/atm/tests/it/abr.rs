//! ABR: rates of sources, backlogs of ports and edges, and conservation of cells.

use lastmile_atm::abr::{Parameters, erica};
use lastmile_atm::network::{Abr, AbrPort, AbrStats, Upc};
use lastmile_atm::{
    CellDrop, Contract, Departure, Discard, Fate, LinkId, LinkSpec, Network, NetworkSpec, NodeId, Queues, VcId, VcSpec,
};
use lastmile_units::{BitRate, ByteCount, CellCount, Duration, Instant};

const fn mbit(count: u64) -> BitRate {
    BitRate::from_mbit_per_s(count)
}

fn ms(count: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(count)
}

/// A chain of switches `s0`, `s1`, ... with links of these rates (Mbit/s) between them, still
/// without hosts.
struct Chain {
    spec: NetworkSpec,
    switches: Vec<NodeId>,
    trunks: Vec<LinkId>,
    delay: Duration,
    abr: Option<AbrPort>,
}

impl Chain {
    fn new(rates: &[u64], delay: Duration, abr: Option<AbrPort>) -> Self {
        let mut spec = NetworkSpec::new();
        let switches: Vec<NodeId> = (0..=rates.len()).map(|n| spec.node(format!("s{n}"))).collect();
        let mut trunks = Vec::new();
        for (pair, rate) in switches.windows(2).zip(rates) {
            let queues = Queues::fifo(CellCount::new(20_000), Discard::default());
            let link =
                |from, to| LinkSpec { abr, ..LinkSpec::new(from, to, mbit(*rate), delay).with_queues(queues.clone()) };
            trunks.push(spec.link(link(pair[0], pair[1])));
            spec.link(link(pair[1], pair[0]));
        }
        Self { spec, switches, trunks, delay, abr }
    }

    /// A VC from a host of its own at one switch to a host of its own at another.
    fn vc(&mut self, name: &str, from: usize, to: usize, abr: impl Fn(&mut Abr)) -> VcId {
        let (source, sink) = (format!("{name} source"), format!("{name} sink"));
        for (host, at) in [(&source, from), (&sink, to)] {
            let node = self.spec.node(host.clone());
            let Self { spec, switches, delay, abr, .. } = self;
            spec.link(LinkSpec::new(node, switches[at], mbit(155), *delay));
            spec.link(LinkSpec { abr: *abr, ..LinkSpec::new(switches[at], node, mbit(155), *delay) });
        }
        let middle = (from..=to).map(|n| format!("s{n}"));
        let path: Vec<String> = [source].into_iter().chain(middle).chain([sink]).collect();
        let route = |path: &[&str]| self.spec.route(path).expect("links");
        let forward: Vec<&str> = path.iter().map(String::as_str).collect();
        let backward: Vec<&str> = forward.iter().rev().copied().collect();
        let vci = 32 + self.spec.vcs.len() as u16;
        let mut vc = VcSpec::new(name, vci, route(&forward));
        let mut own = Abr { parameters: Parameters::new(mbit(150)), back: route(&backward), edge_limit: None };
        own.parameters.icr = mbit(1);
        abr(&mut own);
        vc.abr = Some(own);
        self.spec.vc(vc)
    }
}

/// Each source has more than it can send.
fn flood(network: &mut Network, vcs: &[VcId], packets: u64) {
    for vc in vcs {
        for n in 0..packets {
            network.offer(Instant::ZERO, *vc, ByteCount::new(9180), n).expect("a packet");
        }
    }
}

/// Mbit/s of cells of packets that arrive between two times.
fn rates(network: &mut Network, vcs: &[VcId], [from, to]: [u64; 2]) -> Vec<f64> {
    let mut left = Vec::new();
    let mut cells = |at: u64| {
        network.advance(ms(at));
        network.departures(&mut left);
        vcs.iter().map(|vc| network.vc_stats(*vc).arrived_cells).collect::<Vec<u64>>()
    };
    let (before, after) = (cells(from), cells(to));
    let of = |(before, after): (u64, u64)| (after - before) as f64 * 424.0 / ((to - from) as f64 * 1e3);
    before.into_iter().zip(after).map(of).collect()
}

fn erica_of_1_ms() -> Option<AbrPort> {
    Some(AbrPort::Erica(erica::Config::new(Duration::from_ms(1))))
}

/// The share of data cells: one of 32 cells is an RM cell.
fn data(allowed: f64) -> f64 {
    allowed * 31.0 / 32.0
}

#[track_caller]
fn near(rates: &[f64], expected: &[f64], part: f64) {
    let close = rates.iter().zip(expected).all(|(rate, expected)| (rate / expected - 1.0).abs() < part);
    assert!(close && rates.len() == expected.len(), "{rates:?} instead of {expected:?}");
}

/// Two links of 50 Mbit/s; one VC over both, two over the first alone, one over the second: max-min
/// fair are a third of the first for each of three, and the rest of the second for the last.
/// ERICA aims at 95 %.
#[test]
fn erica_gives_max_min_fair_shares_in_a_parking_lot() {
    let mut chain = Chain::new(&[50, 50], Duration::from_us(100), erica_of_1_ms());
    let ends = [(0, 2), (0, 1), (0, 1), (1, 2)];
    let vcs: Vec<VcId> =
        ends.iter().enumerate().map(|(n, (from, to))| chain.vc(&format!("vc {n}"), *from, *to, |_| {})).collect();
    let mut network = Network::new(&chain.spec).expect("a network");
    flood(&mut network, &vcs, 1000);
    let got = rates(&mut network, &vcs, [200, 500]);
    let third = data(0.95 * 50.0 / 3.0);
    near(&got, &[third, third, third, data(0.95 * 50.0) - third], 0.05);
    for (trunk, limit) in chain.trunks.iter().zip([100, 100]) {
        assert!(network.waiting(*trunk) < limit, "{}", network.waiting(*trunk));
    }
    assert!(network.stats().holds());
}

/// Generic fairness, in the small (ATM Forum GFC-1 has the same mixture): links of 50, 100 and 50
/// Mbit/s. A: over all three; B, B: the first; C: the middle; D, D, D: the last. The last link
/// gives a quarter to A and each D: 12.5; the first gives the rest to each B: 18.75; the middle
/// gives 87.5 to C.
#[test]
fn erica_finds_the_bottleneck_of_each_vc() {
    let mut chain = Chain::new(&[50, 100, 50], Duration::from_us(50), erica_of_1_ms());
    let ends = [(0, 3), (0, 1), (0, 1), (1, 2), (2, 3), (2, 3), (2, 3)];
    let vcs: Vec<VcId> =
        ends.iter().enumerate().map(|(n, (from, to))| chain.vc(&format!("vc {n}"), *from, *to, |_| {})).collect();
    let mut network = Network::new(&chain.spec).expect("a network");
    flood(&mut network, &vcs, 1500);
    let got = rates(&mut network, &vcs, [200, 500]);
    let shares = [12.5, 18.75, 18.75, 87.5, 12.5, 12.5, 12.5].map(|share: f64| data(0.95 * share));
    near(&got, &shares, 0.06);
    assert!(network.stats().holds());
}

fn efci(threshold: u64) -> Option<AbrPort> {
    Some(AbrPort::Efci { threshold: CellCount::new(threshold) })
}

/// Two alike: marks make both swing below half of the link together, and the queue around the
/// threshold.
#[test]
fn efci_shares_a_link_by_marks_alone() {
    let mut chain = Chain::new(&[40], Duration::from_us(100), efci(100));
    let vcs: Vec<VcId> = (0..2).map(|n| chain.vc(&format!("vc {n}"), 0, 1, |abr| abr.parameters.rif = 512)).collect();
    let mut network = Network::new(&chain.spec).expect("a network");
    flood(&mut network, &vcs, 1000);
    let got = rates(&mut network, &vcs, [500, 1000]);
    near(&got[..1], &got[1..], 0.01);
    assert!(got.iter().all(|rate| (0.8..1.0).contains(&(rate / data(20.0)))), "{got:?}");
    let peak = network.link_stats(chain.trunks[0]).peak;
    assert!((100..3000).contains(&peak), "{peak}");
    let AbrStats { rm_sent, rm_returned, rm_congested, .. } = network.abr_stats(vcs[0]).expect("ABR");
    assert!(
        rm_congested > 10 && rm_congested < rm_returned && rm_returned <= rm_sent,
        "{rm_congested} {rm_returned} {rm_sent}"
    );
    assert!(network.abr_stats(vcs[0]).expect("ABR").acr_mean_bps > 10_000_000);
}

/// By hand: ACR 1 Mbit/s is a cell in 424 us, the first an RM cell. It is back after a cell time
/// each on six links of 155 Mbit/s and 6 times 100 us; ER is PCR, so ACR rises by 150/16 Mbit/s.
#[test]
fn the_first_rm_cell_goes_round_and_raises_the_rate() {
    let mut chain = Chain::new(&[155], Duration::from_us(100), None);
    let vc = chain.vc("vc", 0, 1, |_| {});
    let mut network = Network::new(&chain.spec).expect("a network");
    network.offer(Instant::ZERO, vc, ByteCount::new(480), 7).expect("a packet");
    let back_ps = 6 * (100_000_000 + 424 * 1_000_000 / 155);
    network.advance(Instant::from_ps(back_ps - 1));
    let before = network.abr_stats(vc).expect("ABR");
    assert_eq!((before.rm_sent, before.rm_returned, before.acr_bps), (1, 0, 1_000_000));
    network.advance(Instant::from_ps(back_ps + 10));
    let after = network.abr_stats(vc).expect("ABR");
    assert_eq!((after.rm_returned, after.acr_bps), (1, 10_375_000));
    let mut left = Vec::new();
    network.advance(ms(10));
    network.departures(&mut left);
    assert!(matches!(left[..], [Departure { packet: 7, fate: Fate::Whole, .. }]), "{left:?}");
    assert!(network.stats().holds() && network.stats().inside == 0);
}

/// 10 Mbit/s come in packets, the network allows about 4.75 of two VCs each: the edge of 50 kB
/// fills, and drops; switches drop nothing.
#[test]
fn the_queue_stands_at_the_edge_and_has_an_end() {
    let mut chain = Chain::new(&[10], Duration::from_us(100), erica_of_1_ms());
    let limit = |abr: &mut Abr| abr.edge_limit = Some(ByteCount::new(50_000));
    let vcs: Vec<VcId> = (0..2).map(|n| chain.vc(&format!("vc {n}"), 0, 1, limit)).collect();
    let mut network = Network::new(&chain.spec).expect("a network");
    let mut left = Vec::new();
    for n in 0..1000 {
        // To the very event, as a simulator does.
        while let Some(next) = network.next_event()
            && next < ms(n)
        {
            network.advance(next);
            let so_far = left.len();
            network.departures(&mut left);
            assert!(left[so_far..].iter().all(|gone| gone.at >= next || gone.fate != Fate::Whole));
        }
        for vc in &vcs {
            network.offer(ms(n), *vc, ByteCount::new(1250), n).expect("a packet");
        }
    }
    network.advance(ms(1000));
    let stats = network.abr_stats(vcs[0]).expect("ABR");
    assert!(stats.edge_dropped > 100, "{stats:?}");
    assert!((48_750..=50_000).contains(&stats.edge_peak_bytes), "{stats:?}");
    let dropped: u64 = network.link_stats(chain.trunks[0]).cells.dropped_cells();
    assert_eq!(dropped, 0);
    network.departures(&mut left);
    network.advance(ms(5000));
    network.departures(&mut left);
    let fates = |fate| left.iter().filter(|gone| gone.fate == fate).count();
    assert_eq!(fates(Fate::Whole) + fates(Fate::Dropped(CellDrop::EdgeFull)), 2000);
    assert_eq!((network.stats().inside, network.stats().frames_inside), (0, 0));
    assert!(network.stats().holds());
}

#[test]
fn abr_that_makes_no_sense_is_refused_by_name() {
    let refused = |change: fn(&mut NetworkSpec)| {
        let mut chain = Chain::new(&[10], Duration::ZERO, efci(10));
        chain.vc("vc", 0, 1, |_| {});
        change(&mut chain.spec);
        Network::new(&chain.spec).expect_err("no sense").to_string()
    };
    assert_eq!(
        refused(|spec| spec.vcs[0].abr.as_mut().unwrap().parameters.nrm = 3),
        "VC \"vc\": 3 is no power of two from 2 to 256"
    );
    assert_eq!(
        refused(|spec| {
            spec.vcs[0].abr.as_mut().unwrap().back.pop();
        }),
        "VC \"vc\": the RM cells of ABR must go back from \"vc sink\" to \"vc source\" by the nodes of its route"
    );
    assert_eq!(
        refused(|spec| spec.vcs[0].abr.as_mut().unwrap().parameters.pcr = mbit(156)),
        "VC \"vc\" is paced at 156 Mbit/s, above 155 Mbit/s of its link"
    );
    assert_eq!(
        refused(|spec| spec.links[0].abr = efci(0)),
        "link from \"s0\" to \"s1\": the EFCI threshold is 0 cells; it must be at least 1"
    );
    assert_eq!(
        refused(|spec| {
            let config = erica::Config { target_permille: 1001, ..erica::Config::new(Duration::from_ms(1)) };
            spec.links[0].abr = Some(AbrPort::Erica(config));
        }),
        "link from \"s0\" to \"s1\": a target utilisation of 1001 thousandths must be from 1 to 1000"
    );
}

/// In an empty network a frame follows the RM cell that its source sends first; at the peak rate
/// that is one spacing more than the least transit, which is a closed form.
#[test]
fn a_frame_alone_goes_behind_an_rm_cell() {
    let mut chain = Chain::new(&[50, 10], Duration::from_ms(3), erica_of_1_ms());
    let vc = chain.vc("vc", 0, 2, |abr| (abr.parameters.pcr, abr.parameters.icr) = (mbit(5), mbit(5)));
    let mut network = Network::new(&chain.spec).expect("a network");
    // 21 cells, fewer than follow an RM cell.
    let bytes = ByteCount::new(1_000);
    network.offer(ms(1), vc, bytes, 0).expect("a packet");
    network.advance(ms(100));
    let mut left: Vec<Departure> = Vec::new();
    network.departures(&mut left);
    let took = left[0].at.since(ms(1));
    let least = chain.spec.unloaded_transit(vc, bytes).expect("a frame");
    // 424 bits at 5 Mbit/s.
    assert_eq!(took, least + Duration::from_ns(84_800));
}

/// A path tags every cell at the trunk. The destination returns RM cells with CLP = 0.
#[test]
fn a_returned_rm_cell_is_not_tagged() {
    let mut chain = Chain::new(&[50], Duration::from_us(100), None);
    let vc = chain.vc("vc", 0, 1, |_| {});
    let upc = Upc { at: chain.trunks[0], contract: Contract::Ubr { peak: None, tagging: true } };
    chain.spec.vcs[vc.index()].vp = Some(chain.spec.vp("path", Some(upc)));
    let back = chain.spec.route(&["s1", "s0"]).expect("a link")[0];
    let mut network = Network::new(&chain.spec).expect("a network");
    flood(&mut network, &[vc], 10);
    network.advance(ms(100));
    let [forward, back] = [chain.trunks[0], back].map(|link| network.link_stats(link).cells);
    assert!(forward.tagged > 0 && forward.tagged == forward.arrived);
    assert!(back.arrived > 0);
    assert_eq!(back.arrived_low_priority, 0);
}
