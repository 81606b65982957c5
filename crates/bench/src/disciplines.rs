//! Every discipline, configured for the measurement: large enough to drop nothing for lack of
//! space.

use std::num::NonZeroU32;

use lastmile_packet::FlowId;
use lastmile_queueing::ack::cake::{self, Mode};
use lastmile_queueing::ack::filter::{self, Fraction};
use lastmile_queueing::ack::regenerator::{self, Know};
use lastmile_queueing::ack::sad::{Duplicates, Report};
use lastmile_queueing::ack::{clamp, collapsing, pacing, sad};
use lastmile_queueing::aqm::{codel, docsis_pie, dualpi2, pie, red};
use lastmile_queueing::cake::{Config as CakeConfig, Isolation};
use lastmile_queueing::classify::{Bound, rules};
use lastmile_queueing::fair::{Among, FlowKeys, Per, fq_codel, fq_pie, sfq, wf2q_plus, wfq};
use lastmile_queueing::meter::policer::{Action, Coming, Rule};
use lastmile_queueing::meter::{self, car, gcra, police, policer, srtcm, tbf, trtcm};
use lastmile_queueing::sched::custom::{self, Count, Excess};
use lastmile_queueing::sched::tree::{self, Tree};
use lastmile_queueing::sched::{cbq, hfsc, htb, priority};
use lastmile_queueing::spec::{ClassSpec, Over, Spec};
use lastmile_queueing::{Limit, Match, Overflow, fifo};
use lastmile_units::{BitRate, ByteCount, CellCount, Duration, PacketCount, WireBytes};

/// Sizes drawn with equal probability. The first is a pure ACK.
pub(crate) const SIZES: [u16; 3] = [40, 576, 1500];

/// The arriving packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Load {
    /// Packets of [`SIZES`].
    Mixed,
    /// Pure ACKs, each acknowledging one more segment of its flow.
    Acks,
}

impl Load {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Acks => "acks",
        }
    }
}

/// A discipline as it is measured.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) loads: &'static [Load],
    /// The configuration for a number of flows.
    pub(crate) spec: Box<dyn Fn(u32) -> Spec>,
}

const MIXED: &[Load] = &[Load::Mixed];
const BOTH: &[Load] = &[Load::Mixed, Load::Acks];
const LIMIT: Limit = Limit::Packets(PacketCount::new(100_000));
/// Below the rate of arrivals, so that shapers and meters are active.
const RATE: BitRate = BitRate::from_mbit_per_s(1_000);
const BURST: WireBytes = WireBytes::new(15_000);
const LARGEST: ByteCount = ByteCount::new(1_500);

/// All disciplines, in the order of the table; the plain FIFO first, as the baseline.
pub(crate) fn all() -> Vec<Row> {
    let mut rows = plain();
    rows.extend(acks());
    rows.extend(meters());
    rows.extend(schedulers());
    rows.extend(managed());
    rows
}

fn row(name: &'static str, loads: &'static [Load], spec: impl Fn(u32) -> Spec + 'static) -> Row {
    Row { name, loads, spec: Box::new(spec) }
}

fn fifo() -> Spec {
    Spec::Fifo(fifo::Config { limit: LIMIT, drop: Overflow::Tail })
}

fn below() -> Box<Spec> {
    Box::new(fifo())
}

fn plain() -> Vec<Row> {
    vec![
        row("fifo", BOTH, |_| fifo()),
        row("fifo in bytes", MIXED, |_| {
            let limit = Limit::Bytes(ByteCount::new(1_000_000_000));
            Spec::Fifo(fifo::Config { limit, drop: Overflow::Tail })
        }),
        row("fifo in cells", MIXED, |_| {
            Spec::Fifo(fifo::Config { limit: Limit::Cells(CellCount::new(10_000_000)), drop: Overflow::Tail })
        }),
    ]
}

fn acks() -> Vec<Row> {
    let sad = |duplicates, report| {
        Spec::Sad(Over { config: sad::Config { duplicates, report, exempt: Match::Never }, queue: below() })
    };
    let ack_filter = |fraction| {
        let rules = filter::Rules { fraction, ..filter::Rules::default() };
        Spec::AckFilter(filter::Config { limit: LIMIT, drop: Overflow::Tail, rules })
    };
    let cake_filter = |mode| {
        let rules = cake::Rules { mode, exempt: Match::Never };
        Spec::CakeAckFilter(cake::Config { limit: LIMIT, drop: Overflow::Tail, rules })
    };
    let clamp = |target| {
        let config = clamp::Config { target, mss: ByteCount::new(1_460), exempt: Match::Never };
        Spec::WindowClamp(Over { config, queue: below() })
    };
    vec![
        row("sad keep", BOTH, move |_| sad(Duplicates::Keep, Report::None)),
        row("sad count", BOTH, move |_| sad(Duplicates::Count, Report::None)),
        row("sad list", BOTH, move |_| sad(Duplicates::Keep, Report::List)),
        row("sad signal", BOTH, move |_| sad(Duplicates::Keep, Report::Signal)),
        row("ack-regenerator", BOTH, |_| {
            let config =
                regenerator::Config { know: Know::Interpolate { stride: 730 }, ..regenerator::Config::default() };
            Spec::AckRegenerator(Over { config, queue: below() })
        }),
        row("ack-filter", BOTH, move |_| ack_filter(Fraction::ALL)),
        row("ack-filter of a half", BOTH, move |_| ack_filter(Fraction::new(1, 2).expect("a half"))),
        row("ack-collapsing", BOTH, |_| {
            Spec::AckCollapsing(collapsing::Config { limit: LIMIT, drop: Overflow::Tail, exempt: Match::Never })
        }),
        row("cake-ack-filter normal", BOTH, move |_| cake_filter(Mode::Normal)),
        row("cake-ack-filter aggressive", BOTH, move |_| cake_filter(Mode::Aggressive)),
        row("ack-pacing", BOTH, |_| {
            // Below the rate that the load's ACKs acknowledge, so that they are held.
            let (rate, max_hold) = (BitRate::from_mbit_per_s(2_000), Duration::from_ms(50));
            Spec::AckPacing(Over { config: pacing::Config { rate, max_hold, exempt: Match::Never }, queue: below() })
        }),
        row("window-clamp", BOTH, move |_| clamp(clamp::Target::Window(ByteCount::new(4_000)))),
        row("window-clamp shared", BOTH, move |_| {
            clamp(clamp::Target::Shared { rate: RATE, rtt: Duration::from_ms(40), growth: None })
        }),
    ]
}

fn meters() -> Vec<Row> {
    let policer = |meter: meter::Config| {
        let (matches, coming, conform) = (Match::Any, Coming::Blind, Action::TRANSMIT);
        let (exceed, violate) = (Action::DROP, Action::DROP);
        let rules = vec![Rule { matches, meter, coming, largest: LARGEST, conform, exceed, violate }];
        Spec::Policer(Over { config: policer::Config { rules }, queue: below() })
    };
    vec![
        row("tbf", MIXED, |_| {
            let catch_up = Duration::ZERO;
            Spec::Tbf(Over {
                config: tbf::Config { rate: RATE, burst: BURST, peak: None, largest: LARGEST, catch_up },
                queue: below(),
            })
        }),
        row("policer token-bucket", MIXED, move |_| policer(meter::Config::TokenBucket { rate: RATE, burst: BURST })),
        row("policer car", MIXED, move |_| {
            let extended = WireBytes::new(2 * BURST.as_u64());
            policer(meter::Config::Car(car::Config { rate: RATE, burst: BURST, extended }))
        }),
        row("policer srtcm", MIXED, move |_| {
            policer(meter::Config::SrTcm(srtcm::Config { cir: RATE, cbs: BURST, ebs: BURST }))
        }),
        row("policer trtcm", MIXED, move |_| {
            let pir = BitRate::from_mbit_per_s(1_200);
            policer(meter::Config::TrTcm(trtcm::Config { pir, pbs: BURST, cir: RATE, cbs: BURST }))
        }),
        row("policer gcra", MIXED, move |_| {
            policer(meter::Config::Gcra(gcra::Config { rate: RATE, tolerance: Duration::from_ms(1) }))
        }),
        row("policer police", MIXED, move |_| {
            let (peak, mtu) = (Some(BitRate::from_mbit_per_s(2_000)), WireBytes::new(2_000));
            policer(meter::Config::Police(police::Config { rate: RATE, burst: BURST, peak, mtu }))
        }),
    ]
}

fn acks_first() -> Vec<ClassSpec> {
    [Match::PureAck, Match::Any].map(|matches| ClassSpec { matches, queue: fifo() }).into()
}

fn schedulers() -> Vec<Row> {
    let mut rows = vec![
        row("priority of 2", MIXED, |_| Spec::Priority(priority::Config { classes: acks_first() })),
        row("custom of 2", MIXED, |_| {
            let count = Count::Bytes(WireBytes::new(4_500));
            let classes = acks_first().into_iter().map(|class| custom::Class { class, count }).collect();
            Spec::Custom(custom::Config { classes, excess: Excess::Forgotten })
        }),
        row("3 rules over priority", MIXED, |_| {
            let rule = |matches, class| rules::Rule { matches, class, last: false };
            let long = Match::ConnectionBytes(Bound::Above, ByteCount::new(1_000_000));
            let rules = vec![rule(Match::Any, 1), rule(Match::PureAck, 0), rule(long, 1)];
            let class = |number| ClassSpec { matches: Match::Class(number), queue: fifo() };
            let queue = Box::new(Spec::Priority(priority::Config { classes: vec![class(0), class(1)] }));
            Spec::Rules(rules::Config { rules, otherwise: 1, names: Vec::new(), queue })
        }),
    ];
    rows.extend(CLASSES.map(|(classes, [name, ..])| row(name, MIXED, move |flows| htb(classes, flows))));
    rows.extend(CLASSES.map(|(classes, [_, name, _])| row(name, MIXED, move |flows| cbq(classes, flows))));
    rows.extend(CLASSES.map(|(classes, [.., name])| row(name, MIXED, move |flows| hfsc(classes, flows))));
    rows
}

const CLASSES: [(u32, [&str; 3]); 3] = [
    (1, ["htb of 1", "cbq of 1", "hfsc of 1"]),
    (100, ["htb of 100", "cbq of 100", "hfsc of 100"]),
    (10_000, ["htb of 10000", "cbq of 10000", "hfsc of 10000"]),
];

/// A tree with `classes` leaves below one class, one rule for each, and the flows divided among
/// them.
fn tree<S: Copy>(root: S, leaf: S, classes: u32, flows: u32) -> Tree<S> {
    let name = |class: u32| format!("leaf {class}");
    let leaves = (0..classes).map(|class| tree::Class {
        name: name(class),
        parent: Some("line".into()),
        share: leaf,
        queue: Some(fifo()),
    });
    let line = tree::Class { name: "line".into(), parent: None, share: root, queue: None };
    let rule = |flow: u32| tree::Rule { matches: Match::Flow(FlowId::new(flow)), class: name(flow % classes) };
    Tree {
        classes: std::iter::once(line).chain(leaves).collect(),
        rules: (0..flows).map(rule).collect(),
        default: None,
    }
}

/// Half of a leaf's rate is guaranteed, half is borrowed.
fn guaranteed(classes: u32) -> BitRate {
    BitRate::from_bps(RATE.as_bps() / u64::from(2 * classes)).expect("a share above zero")
}

fn htb(classes: u32, flows: u32) -> Spec {
    let leaf = htb::Share { ceil: Some(RATE), ..htb::Share::of(guaranteed(classes)) };
    Spec::Htb(htb::Config::new(tree(htb::Share::of(RATE), leaf, classes, flows)))
}

fn cbq(classes: u32, flows: u32) -> Spec {
    let share = |rate| cbq::Share::of(cbq::Portion::Rate(rate));
    Spec::Cbq(cbq::Config::new(tree(share(RATE), share(guaranteed(classes)), classes, flows), RATE))
}

/// Half of a leaf's rate is guaranteed, and the link is shared equally.
fn hfsc(classes: u32, flows: u32) -> Spec {
    let line = |rate| Some(hfsc::ServiceCurve::linear(rate));
    let root = hfsc::Share { link_share: line(RATE), ..hfsc::Share::default() };
    let leaf = hfsc::Share { real_time: line(guaranteed(classes)), ..root };
    Spec::Hfsc(hfsc::Config { tree: tree(root, leaf, classes, flows) })
}

fn managed() -> Vec<Row> {
    let cake = |bandwidth, ack_filter| {
        let memory = Some(ByteCount::new(1_000_000_000));
        Spec::Cake(CakeConfig { bandwidth, memory, ack_filter, ..CakeConfig::default() })
    };
    vec![
        row("codel", MIXED, |_| Spec::Codel(codel::Config { limit: LIMIT, ..codel::Config::default() })),
        row("pie", MIXED, |_| Spec::Pie(pie::Config { limit: LIMIT, ..pie::Config::default() })),
        row("docsis-pie", MIXED, |_| Spec::DocsisPie(docsis_pie::Config::of(RATE, LIMIT))),
        row("dualpi2", MIXED, |_| Spec::DualPi2(dualpi2::Config { limit: LIMIT, ..dualpi2::Config::default() })),
        row("fq-codel of 1024", MIXED, |_| fq_codel(buckets())),
        row("fq-codel exact", MIXED, |_| fq_codel(FlowKeys::Exact)),
        row("fq-codel of hosts", MIXED, |_| {
            let Spec::FqCodel(config) = fq_codel(buckets()) else { unreachable!("it is FQ-CoDel") };
            Spec::FqCodel(fq_codel::Config { per: Per::Hosts, ..config })
        }),
        row("fq-pie of 1024", MIXED, |_| {
            Spec::FqPie(fq_pie::Config {
                flows: buckets(),
                quantum: WireBytes::new(1_696),
                limit: PacketCount::new(100_000),
                memory: ByteCount::new(1_000_000_000),
                ..fq_pie::Config::default()
            })
        }),
        // Thresholds above the backlog: the measurement is of averaging, not of drops.
        row("red", MIXED, |_| {
            let packets = |count| Limit::Packets(PacketCount::new(count));
            Spec::Red(red::Config {
                min: packets(50_000),
                max: packets(90_000),
                limit: LIMIT,
                ..red::Config::default()
            })
        }),
        row("sfq of 1024", MIXED, |_| {
            Spec::Sfq(sfq::Config {
                flows: buckets(),
                per: Per::Flow,
                quantum: WireBytes::new(1_500),
                perturb: Duration::ZERO,
                limit: PacketCount::new(100_000),
                depth: PacketCount::new(100_000),
                drop: Overflow::Tail,
            })
        }),
        row("drr of flows", MIXED, |_| Spec::Drr(among_flows(WireBytes::new(1_500)))),
        row("wfq of flows", MIXED, |_| Spec::Wfq(wfq::Config(among_flows(NonZeroU32::MIN)))),
        row("wf2q-plus of flows", MIXED, |_| Spec::Wf2qPlus(wf2q_plus::Config(among_flows(NonZeroU32::MIN)))),
        row("cake", MIXED, move |_| cake(None, None)),
        row("cake of flows", MIXED, |_| {
            let (memory, isolation) = (Some(ByteCount::new(1_000_000_000)), Isolation::Flows);
            Spec::Cake(CakeConfig { memory, isolation, ..CakeConfig::default() })
        }),
        row("cake shaped", MIXED, move |_| cake(Some(RATE), None)),
        row("cake with ack-filter", BOTH, move |_| cake(None, Some(Mode::Normal))),
    ]
}

fn buckets() -> FlowKeys {
    FlowKeys::Buckets { count: NonZeroU32::new(1_024).expect("some buckets"), seed: 0 }
}

fn among_flows<S>(share: S) -> Among<S> {
    Among::Flows { share, limit: PacketCount::new(100_000), per: Per::Flow }
}

fn fq_codel(flows: FlowKeys) -> Spec {
    Spec::FqCodel(fq_codel::Config {
        flows,
        quantum: WireBytes::new(1_696),
        limit: PacketCount::new(100_000),
        memory: ByteCount::new(1_000_000_000),
        ..fq_codel::Config::default()
    })
}
