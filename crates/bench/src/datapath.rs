//! The cost of a packet between two ports, apart from the ports: a bare forwarder, one FIFO, a middlebox
//! with six classes and the Smart ACK Dropper.
//!
//! The ports are memory, the clock stands where the last packet came, so a run is the same every time
//! and its instructions can be counted. All three copy a packet once on the way in, as live ports make
//! them; the bare forwarder does no more.

use std::hint::black_box;
use std::io;
use std::time::Instant as Clock;

use lastmile_linklayer::LinkLayer;
use lastmile_live::bump::{BATCH, Bump, BumpConfig};
use lastmile_live::io::{Framing, Port, Refusal};
use lastmile_model::Hop;
use lastmile_packet::{Frame, HashKey, Protocol};
use lastmile_queueing::classify::Prefix;
use lastmile_queueing::classify::rules::{self, Rule};
use lastmile_queueing::sched::priority;
use lastmile_queueing::spec::{ClassSpec, Spec};
use lastmile_queueing::{End, Match, line};
use lastmile_scenario::policy::{Line, Policy};
use lastmile_units::{BitRate, Duration, Instant};

use crate::costs::{self, Cost};
use crate::measurement::Measurement;
use crate::traffic::Traffic;

const FLOWS: [u32; 4] = [1, 1_000, 100_000, EVER_NEW];
/// More than there are packets: each is of a flow that was never seen.
const EVER_NEW: u32 = 1 << 24;
const SIZES: [u16; 2] = [64, 1_500];
/// Time between two packets, in the mean.
const STEP: Duration = Duration::from_us(1);
/// More than comes, so that a queue forms for moments at the most.
const LINE: BitRate = BitRate::from_mbit_per_s(100_000);
/// Each flow has sent some packets when the clock starts.
const WARM_UP: u64 = 400_000;
const MEASURED: u64 = 64_000;
const ROUNDS: u32 = 10;
/// Rules of a long list; a list has at most 256.
const LONG_LIST: u16 = 200;

/// The datapath between the ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Between {
    /// Nothing: what is received is sent.
    Bare,
    /// One FIFO.
    Fifo,
    /// The policy adsl-optimizer with the Smart ACK Dropper in its ACK class.
    SixClasses,
    /// [`LONG_LIST`] rules over two FIFOs.
    LongList,
    /// A built-in policy, at a rate that it never meets.
    Policy(&'static str),
}

impl Between {
    pub(crate) const ALL: [Self; 4] = [Self::Bare, Self::Fifo, Self::SixClasses, Self::LongList];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare forwarder",
            Self::Fifo => "one fifo",
            Self::SixClasses => "six classes and sad",
            Self::LongList => "200 rules over priority",
            Self::Policy(name) => name,
        }
    }
}

/// When packets come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pace {
    /// Each at a time of its own, as packet sockets have it: it finds the middlebox empty.
    Apart,
    /// A batch at one time, as AF_XDP has it: all but the first wait for those before them.
    AtOnce,
}

/// A measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Case {
    between: Between,
    pace: Pace,
    ip_len: u16,
    flows: u32,
}

impl Case {
    fn all() -> impl Iterator<Item = Self> {
        let apart = Between::ALL.map(|between| (between, Pace::Apart));
        let ways = apart.into_iter().chain([(Between::SixClasses, Pace::AtOnce)]);
        let sizes = |(between, pace)| {
            SIZES.into_iter().flat_map(move |ip_len| FLOWS.map(|flows| Self { between, pace, ip_len, flows }))
        };
        // One flow is of one class, whose room of 50 packets a batch would overflow.
        ways.flat_map(sizes).filter(|case| case.pace == Pace::Apart || case.flows > 1)
    }

    fn way(self) -> String {
        let pace = match self.pace {
            Pace::Apart => "",
            Pace::AtOnce => ", at once",
        };
        format!("{}{pace}", self.between.name())
    }

    fn name(self) -> String {
        let flows = match self.flows {
            1 => "1 flow".to_owned(),
            EVER_NEW => "ever new flows".to_owned(),
            flows => format!("{flows} flows"),
        };
        format!("datapath: {}, {} bytes, at {flows}", self.way(), self.ip_len)
    }
}

/// The queues of a middlebox with six classes and the Smart ACK Dropper: from the LAN to the line, and back.
pub(crate) fn six_classes(rate: BitRate) -> [(Spec, LinkLayer); 2] {
    let text = lastmile_scenario::policy::ready::text("adsl-optimizer").expect("a ready policy");
    let text = text.replacen("regulate = { kind = \"sfq\", perturb = \"10 s\"", "regulate = { kind = \"sad\"", 1);
    assert!(text.contains("kind = \"sad\""), "the ACK class has a queue of its own");
    // The measurement covers classes, rules and the dropper over FIFOs.
    let text = text.replace("kind = \"sfq\", perturb = \"10 s\"", "kind = \"fifo\"");
    let layer = LinkLayer::from_name("pppoa-vcmux").expect("a preset");
    middlebox("adsl-optimizer with sad", &text, rate, layer)
}

/// A priority of two FIFOs below [`LONG_LIST`] rules: of three, one asks for a port, one for a host,
/// and one for marked small packets.
pub(crate) fn long_list() -> [(Spec, LinkLayer); 2] {
    let rule = |number: u16| {
        let end = if number.is_multiple_of(2) { End::Destination } else { End::Either };
        let host = Prefix::new([198, 51, 100, number.to_be_bytes()[1]].into(), 32).expect("at most 32 bits");
        let matches = match number % 3 {
            0 => vec![Match::Protocol(Protocol::Tcp), Match::Port(end, 1_000 + number..=1_001 + number)],
            1 => vec![Match::Address(end, host), Match::Not(Box::new(Match::PureAck))],
            _ => vec![Match::Dscp(1 + number.to_be_bytes()[1] % 62), Match::AtMostBytes(200)],
        };
        Rule { matches: Match::All(matches), class: 1, last: false }
    };
    let rules =
        std::iter::once(Rule { matches: Match::PureAck, class: 0, last: false }).chain((1..LONG_LIST).map(rule));
    let class = |number| ClassSpec { matches: Match::Class(number), queue: Spec::fifo(1_000) };
    let queue = Box::new(Spec::Priority(priority::Config { classes: vec![class(0), class(1)] }));
    let up = Spec::Rules(rules::Config { rules: rules.collect(), otherwise: 1, names: Vec::new(), queue });
    [up, Spec::fifo(1_000)].map(|queue| (queue, LinkLayer::from_name("ip").expect("a preset")))
}

/// The queues of a middlebox with a built-in policy, on Ethernet frames.
pub(crate) fn ready_policy(name: &str, rate: BitRate) -> [(Spec, LinkLayer); 2] {
    let text = lastmile_scenario::policy::ready::text(name).expect("a ready policy");
    middlebox(name, text, rate, LinkLayer::from_name("pppoe-ptm").expect("a preset"))
}

fn middlebox(name: &str, text: &str, rate: BitRate, layer: LinkLayer) -> [(Spec, LinkLayer); 2] {
    let line = Line::steady(rate, rate, layer, layer);
    let policy = Policy::parse(name, text, Some(line)).expect("a sound policy");
    let (up, down) = policy.of_middlebox();
    [(up, policy.line.up_layer), (down, policy.line.down_layer)]
}

pub(crate) fn hop(queue: Spec, link_layer: LinkLayer) -> Hop {
    Hop { name: "hop".into(), line: line::Config::new(None, link_layer, Duration::ZERO), queue }
}

pub(crate) fn names() -> Vec<String> {
    Case::all().map(Case::name).collect()
}

/// `brief`: one round, for a run whose instructions are counted.
pub(crate) fn run(wanted: &str, brief: bool) -> Option<Measurement> {
    let case = Case::all().find(|case| case.name() == wanted)?;
    let mut way = Way::new(case);
    let (warm_up, rounds) = match (case.flows, brief) {
        // No more than the table of flows has numbers for.
        (EVER_NEW, _) => (MEASURED, 1),
        (_, true) => (WARM_UP, 1),
        (_, false) => (WARM_UP, ROUNDS),
    };
    way.carry(warm_up);
    let mut wall_s = f64::INFINITY;
    for _ in 0..rounds {
        let clock = Clock::now();
        carry_measured(&mut way);
        wall_s = wall_s.min(clock.elapsed().as_secs_f64());
    }
    assert_eq!(way.to.sent, way.from.given, "whatever comes leaves");
    let cost = Cost {
        what: case.way(),
        load: format!("{} bytes", case.ip_len),
        flows: case.flows,
        ns_per_packet: wall_s * 1e9 / MEASURED as f64,
        instructions_per_packet: None,
    };
    Some(Measurement { datapath: Some(cost), ..Measurement::of_events(wanted, wall_s, MEASURED) })
}

/// The function whose instructions count.
pub(crate) const COUNTED: &str = "lastmile_bench::datapath::carry_measured";

/// Instructions a packet, of those of one round.
pub(crate) fn per_packet(instructions: u64) -> f64 {
    instructions as f64 / MEASURED as f64
}

// A symbol of its own, so that its instructions can be told from those before.
#[inline(never)]
fn carry_measured(way: &mut Way) {
    way.carry(MEASURED);
}

/// Two ports, and what is between them.
struct Way {
    bump: Option<Bump>,
    from: Source,
    to: Sink,
    spare: Vec<Frame>,
    frames: Vec<Frame>,
}

impl Way {
    fn new(Case { between, pace, ip_len, flows }: Case) -> Self {
        let layer = LinkLayer::from_name("ip").expect("a preset");
        let queues = match between {
            Between::Bare => None,
            Between::Fifo => Some([(Spec::fifo(1_000), layer), (Spec::fifo(1_000), layer)]),
            Between::SixClasses => Some(six_classes(LINE)),
            Between::LongList => Some(long_list()),
            Between::Policy(name) => Some(ready_policy(name, LINE)),
        };
        let bump = queues.map(|queues| {
            let [up, down] = queues.map(|(queue, layer)| vec![hop(queue, layer)]);
            let config = BumpConfig { up, down, mtu: u16::MAX, seed: 1, hash_key: HashKey::default() };
            Bump::new(&config).expect("queues that can be built")
        });
        let from = Source { traffic: Traffic::new(ip_len, flows), pace, now: Instant::ZERO, given: 0 };
        Self { bump, from, to: Sink::default(), spare: Vec::new(), frames: Vec::with_capacity(BATCH) }
    }

    fn carry(&mut self, packets: u64) {
        let end = self.from.given + packets;
        while self.from.given < end {
            match &mut self.bump {
                Some(bump) => {
                    let now = Stopped(self.from.now);
                    bump.turn(&now, &mut self.from, &mut self.to).expect("memory is always there");
                }
                None => self.forward(),
            }
        }
    }

    fn forward(&mut self) {
        let Self { from, to, spare, frames, .. } = self;
        let now = Stopped(from.now);
        let received = from.receive(&now, BATCH, &mut |_, bytes| frames.push(unread(bytes, spare)));
        received.expect("memory is always there");
        to.send(frames, &mut |frame, _| spare.push(frame));
    }
}

/// A frame of which nothing is read: as an IP packet, which by its first byte it is not.
pub(crate) fn unread(bytes: &[u8], spare: &mut Vec<Frame>) -> Frame {
    let mut frame = spare.pop().unwrap_or_else(|| Frame::new(Vec::new()).0);
    let _ = frame.refill(bytes);
    frame
}

struct Stopped(Instant);

impl lastmile_live::clock::Clock for Stopped {
    fn now(&self) -> Instant {
        self.0
    }
}

/// Gives a packet for each step of time.
struct Source {
    traffic: Traffic,
    pace: Pace,
    now: Instant,
    given: u64,
}

impl Port for Source {
    fn name(&self) -> &str {
        "source"
    }

    fn framing(&self) -> Framing {
        Framing::Ethernet
    }

    fn receive(
        &mut self,
        _clock: &dyn lastmile_live::clock::Clock,
        limit: usize,
        take: &mut dyn FnMut(Instant, &[u8]),
    ) -> io::Result<Instant> {
        if self.pace == Pace::AtOnce {
            self.now += STEP * limit as u64;
        }
        for _ in 0..limit {
            if self.pace == Pace::Apart {
                self.now += STEP;
            }
            self.given += 1;
            take(self.now, self.traffic.next());
        }
        // The rest of the last packet departs with the others.
        self.now += Duration::from_us(10);
        Ok(self.now)
    }

    fn send(&mut self, frames: &mut Vec<Frame>, done: &mut dyn FnMut(Frame, Result<(), Refusal>)) {
        frames.drain(..).for_each(|frame| done(frame, Ok(())));
    }
}

/// Takes all, gives nothing.
#[derive(Default)]
struct Sink {
    sent: u64,
}

impl Port for Sink {
    fn name(&self) -> &str {
        "sink"
    }

    fn framing(&self) -> Framing {
        Framing::Ethernet
    }

    fn receive(
        &mut self,
        clock: &dyn lastmile_live::clock::Clock,
        _limit: usize,
        _take: &mut dyn FnMut(Instant, &[u8]),
    ) -> io::Result<Instant> {
        Ok(clock.now())
    }

    fn send(&mut self, frames: &mut Vec<Frame>, done: &mut dyn FnMut(Frame, Result<(), Refusal>)) {
        for frame in frames.drain(..) {
            self.sent += 1;
            black_box(frame.bytes());
            done(frame, Ok(()));
        }
    }
}

/// A row for each way and size, the numbers of flows next to one another.
pub(crate) fn print_table(rows: &[Measurement]) {
    let costs: Vec<&Cost> = rows.iter().filter_map(|row| row.datapath.as_ref()).collect();
    let legend = "a packet from one port to the other, both in memory, at so many flows; half TCP data, a quarter \
                  pure ACKs of \
                  52 bytes, a quarter UDP; each at a time of its own, or 64 at once; at 16777216 flows each is the \
                  first of its own";
    costs::print_table(&costs, ["datapath", "packets"], FLOWS, legend);
}
