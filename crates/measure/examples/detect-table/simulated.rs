//! A path in virtual time over the lines of `queueing`: the instrument's test bench.
//!
//! Each way is a [`Line`] with its queue, optionally behind a token bucket shaper or policer that
//! counts bytes by an encapsulation of its own. Behind the line, delay varies at random. Arrival
//! times are those of a clock that counts microseconds, and is up to 100 ppm fast or slow.

use lastmile_linklayer::LinkLayer;
use lastmile_packet::{FlowId, Meta, Protocol, SeqNumber};
use lastmile_queueing::aqm::{CoDel, Pie, codel, pie};
use lastmile_queueing::fair::{FlowKeys, FqCodel, Per, Sfq, fq_codel, sfq};
use lastmile_queueing::line::{Config, TransmissionSink};
use lastmile_queueing::meter::{self, tbf};
use lastmile_queueing::random::Stream;
use lastmile_queueing::{
    DropReason, DropSink, Environment, Fifo, Limit, Match, Node, Overflow, Policer, Tbf, line::Line,
};
use lastmile_units::{BitRate, ByteCount, Duration, Instant, PacketCount, Ratio, WireBytes};

use lastmile_measure::Error;
use lastmile_measure::train::{Beside, Departure, Echo, Passage, Path, Way};

/// Most packets of all trains of a request, as the server's limit is.
const MOST_PACKETS: usize = 1 << 16;
/// Numbers of packets from here on belong to cross traffic.
const CROSS: u32 = 1 << 31;

/// A device in front of a line that limits it below its rate.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Before {
    /// Nothing.
    Nothing,
    /// A shaper: rate, bucket and the encapsulation by which it counts.
    Shaper(BitRate, WireBytes, LinkLayer),
    /// A policer: rate, bucket and the encapsulation by which it counts.
    Policer(BitRate, WireBytes, LinkLayer),
}

/// The behaviour of the queue of a line below its limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Queue {
    /// Nothing.
    Fifo,
    /// CoDel with its defaults.
    Codel,
    /// PIE with its defaults.
    Pie,
    /// FQ-CoDel with its defaults.
    FqCodel,
    /// SFQ with its defaults: fair, without a target.
    Sfq,
}

/// How delay varies behind the line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Jitter {
    /// Each packet waits a time of its own, from nothing to this.
    EachPacket(Duration),
    /// All packets of a span wait the same, from nothing to this: `(most, span)`.
    Spans(Duration, Duration),
}

/// One way of a simulated path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    /// Rate of the wire.
    pub rate: BitRate,
    /// Encapsulation.
    pub link: LinkLayer,
    /// Propagation delay.
    pub delay: Duration,
    /// Capacity of the queue; FQ-CoDel and SFQ have their defaults.
    pub buffer: Limit,
    /// The behaviour of the queue below its limit.
    pub queue: Queue,
    /// Shaper or policer.
    pub before: Before,
    /// Random delay.
    pub jitter: Jitter,
    /// Share of packets lost on the wire.
    pub loss: Ratio,
    /// Mean rate of the IP packets of others through the same queue.
    pub cross: Option<BitRate>,
    /// In each span of this length, the device in front of the queue looks away for a time of up to half of it;
    /// packets of that time enter the queue together.
    pub stalls: Option<Duration>,
}

/// A simulated path.
pub(crate) struct Simulated {
    down: Half,
    up: Half,
    now: Instant,
    mtu: ByteCount,
    /// Whether a server of our own is at the other end.
    trains: bool,
    /// Seconds of the receivers' clocks in a second.
    clock: f64,
}

struct Half {
    line: Line<Meta>,
    side: Side,
    random: Stream,
    next_cross: Option<Instant>,
    crossed: u32,
    span: (u64, Duration),
    /// The number of a span, and the start and end of its stall.
    stall: (u64, Instant, Instant),
}

/// Drops need no record: a packet that does not arrive was dropped.
struct Ignore;

impl DropSink<Meta> for Ignore {
    fn dropped(&mut self, _now: Instant, _packet: Meta, _reason: DropReason) {}
    fn created(&mut self, _now: Instant, _packet: &Meta) {}
}

impl TransmissionSink<Meta> for Ignore {
    fn transmitted(&mut self, _start: Instant, _end: Instant, _waited: Duration, _packet: &Meta) {}
}

impl Half {
    fn new(side: Side, mtu: ByteCount, seed: u64, name: &str) -> Result<Self, Error> {
        let refuse = |what: String| Error::Unsupported(format!("the simulated way {name}: {what}"));
        let cells = || refuse("a buffer in cells needs a line with cells".into());
        let fifo = Fifo::new(side.buffer, Overflow::Tail, &side.link).ok_or_else(cells)?;
        let environment = Environment::new(side.link);
        let alone: Node<Meta> = match side.queue {
            Queue::Fifo => Box::new(fifo.clone()),
            Queue::Codel => {
                let config = codel::Config { limit: side.buffer, ..codel::Config::default() };
                Box::new(CoDel::new(&config, &side.link).ok_or_else(cells)?)
            }
            Queue::Pie => {
                let config = pie::Config { limit: side.buffer, ..pie::Config::default() };
                Box::new(Pie::new(&config, &side.link).ok_or_else(cells)?)
            }
            Queue::FqCodel => Box::new(FqCodel::new(&fq_codel::Config::default(), &environment)),
            Queue::Sfq => {
                let config = sfq::Config {
                    flows: FlowKeys::Exact,
                    per: Per::Flow,
                    quantum: side.link.on_wire(mtu),
                    perturb: Duration::ZERO,
                    limit: PacketCount::new(127),
                    depth: PacketCount::new(127),
                    drop: Overflow::Tail,
                };
                Box::new(Sfq::new(&config, &environment))
            }
        };
        let queue: Node<Meta> = match side.before {
            Before::Nothing => alone,
            Before::Shaper(rate, burst, link) => {
                let config = tbf::Config { rate, burst, peak: None, largest: mtu, catch_up: Duration::ZERO };
                Box::new(Tbf::new(&config, &link, fifo).map_err(|error| refuse(error.to_string()))?)
            }
            Before::Policer(rate, burst, link) => {
                let rule = meter::policer::Rule {
                    matches: Match::Any,
                    meter: meter::Config::TokenBucket { rate, burst },
                    coming: meter::policer::Coming::Blind,
                    largest: mtu,
                    conform: meter::policer::Action::TRANSMIT,
                    exceed: meter::policer::Action::DROP,
                    violate: meter::policer::Action::DROP,
                };
                Box::new(Policer::new(&[rule], &Environment::new(link), fifo))
            }
        };
        let config = Config { loss: side.loss, ..Config::new(Some(side.rate), side.link, side.delay) };
        Ok(Self {
            line: Line::new(&config, queue, Stream::new(seed, &format!("{name} loss"))),
            side,
            random: Stream::new(seed, name),
            next_cross: side.cross.map(|_| Instant::ZERO),
            crossed: 0,
            span: (u64::MAX, Duration::ZERO),
            stall: (u64::MAX, Instant::ZERO, Instant::ZERO),
        })
    }

    fn enqueue(&mut self, at: Instant, number: u32, flow: u32, ip_len: ByteCount) {
        let ip_len = u16::try_from(ip_len.as_u64()).unwrap_or(u16::MAX);
        let packet = Meta {
            flow: FlowId::new(flow),
            seq: SeqNumber::new(number),
            ip_len,
            header_len: 28,
            protocol: Protocol::Udp,
            ..Meta::default()
        };
        self.line.enqueue(at, packet, &mut Ignore);
    }

    /// Packets of others that come by `until`.
    fn cross(&mut self, until: Instant) {
        let Some(rate) = self.side.cross else { return };
        while let Some(at) = self.next_cross.filter(|at| *at <= until) {
            self.crossed = self.crossed.wrapping_add(1);
            self.enqueue(at, CROSS | self.crossed, 2, ByteCount::new(1_000));
            let mean = Duration::from_ps(8_000 * 1_000_000_000_000 / rate.as_bps());
            self.next_cross = Some(at + self.random.exponential(mean));
        }
    }

    /// Offers packets of flows at their times; returns when each arrived, the last arrival included.
    fn carry(&mut self, packets: &[(Instant, ByteCount, u32)]) -> Vec<Option<Instant>> {
        let mut arrived = vec![None; packets.len()];
        let mut order: Vec<usize> = (0..packets.len()).collect();
        order.sort_by_key(|&number| packets[number].0);
        for number in order {
            let (at, ip_len, flow) = packets[number];
            let at = self.entry(at);
            self.cross(at);
            self.line.transmit(at, &mut Ignore);
            self.collect(at, &mut arrived);
            self.enqueue(at, number as u32, flow, ip_len);
        }
        let latest = packets.iter().map(|packet| packet.0).max().unwrap_or(Instant::ZERO);
        let mut last = self.entry(latest);
        while self.line.next_transmission().is_some() && self.line.backlog().packets.as_u64() > 0 {
            let next = self.line.next_transmission().unwrap_or(last).max(last);
            last = next;
            self.cross(last);
            self.line.transmit(last, &mut Ignore);
            // Others keep the queue busy for ever: ours have left once all their numbers are known.
            self.collect(last, &mut arrived);
            if self.side.cross.is_some() && last.since(latest) > Duration::from_s(20) {
                break;
            }
        }
        self.collect(Instant::MAX, &mut arrived);
        arrived
    }

    /// When a packet that was sent `at` enters the queue.
    fn entry(&mut self, at: Instant) -> Instant {
        let Some(span) = self.side.stalls else { return at };
        let number = at.as_ps() / span.as_ps();
        if self.stall.0 != number {
            let length = self.random.below(span.as_ps() / 2);
            let start = number * span.as_ps() + self.random.below(span.as_ps() / 2);
            self.stall = (number, Instant::from_ps(start), Instant::from_ps(start + length));
        }
        let (_, from, to) = self.stall;
        if at >= from && at < to { to } else { at }
    }

    fn collect(&mut self, now: Instant, arrived: &mut [Option<Instant>]) {
        while let Some(packet) = self.line.take_arrival(now, &mut Ignore) {
            let number = packet.seq.raw();
            if number & CROSS == 0
                && let Some(slot) = arrived.get_mut(number as usize)
            {
                let late = self.jitter(packet.arrived);
                *slot = Some(Instant::from_ps((packet.arrived + late).as_ps() / 1_000_000 * 1_000_000));
            }
        }
    }

    fn jitter(&mut self, at: Instant) -> Duration {
        let draw = |random: &mut Stream, most: Duration| {
            if most.is_zero() { Duration::ZERO } else { Duration::from_ps(random.below(most.as_ps())) }
        };
        match self.side.jitter {
            Jitter::EachPacket(most) => draw(&mut self.random, most),
            Jitter::Spans(most, span) => {
                let number = at.as_ps() / span.as_ps().max(1);
                if self.span.0 != number {
                    self.span = (number, draw(&mut self.random, most));
                }
                self.span.1
            }
        }
    }
}

impl Simulated {
    /// A path; without `trains` it has no server of our own at its end. Equal seeds give equal paths.
    ///
    /// # Errors
    /// A queue that cannot be built.
    pub(crate) fn new(down: Side, up: Side, mtu: ByteCount, trains: bool, seed: u64) -> Result<Self, Error> {
        // Two crystals of 50 ppm.
        let apart = Stream::new(seed, "clocks").below(200_000);
        Ok(Self {
            clock: 1.0 + (apart as f64 - 100_000.0) * 1e-9,
            down: Half::new(down, mtu, seed, "down")?,
            up: Half::new(up, mtu, seed, "up")?,
            now: Instant::from_ps(1_000_000_000_000),
            mtu,
            trains,
        })
    }

    fn has_server(&self) -> Result<(), Error> {
        let none = || Error::Unsupported("no server of lastmile at the other end".into());
        self.trains.then_some(()).ok_or_else(none)
    }

    /// Packets of a flow at their times.
    fn at(&self, departures: &[Departure], flow: u32) -> Vec<(Instant, ByteCount, u32)> {
        departures.iter().map(|packet| (self.now + packet.at, packet.ip_len, flow)).collect()
    }

    /// When the answers to requests that were `there` arrive.
    fn answered(&mut self, there: &[Option<Instant>], requests: &[Departure]) -> Vec<Option<Instant>> {
        let back: Vec<_> = there.iter().zip(requests).filter_map(|(at, r)| Some(((*at)?, r.ip_len, 1))).collect();
        let mut here = self.down.carry(&back).into_iter();
        there.iter().map(|at| at.and_then(|_| here.next().flatten())).collect()
    }

    fn passages(&self, departures: &[Departure], arrived: &[Option<Instant>]) -> Vec<Passage> {
        let (start, clock) = (self.now, self.clock);
        let passage = |(packet, arrived): (&Departure, &Option<Instant>)| Passage {
            sent: packet.at,
            arrived: arrived.map(|at| Duration::from_ns((at.since(start).as_ns() as f64 * clock) as u64)),
        };
        departures.iter().zip(arrived).map(passage).collect()
    }

    /// A round trip to hear of the end.
    fn heard(&mut self, end: Instant) {
        self.now = end.max(self.now) + Duration::from_ms(100);
    }

    fn half(&mut self, way: Way) -> &mut Half {
        match way {
            Way::Down => &mut self.down,
            Way::Up => &mut self.up,
        }
    }
}

impl Path for Simulated {
    fn trains(&mut self, trains: &[(Way, &[Departure])]) -> Result<Vec<Vec<Passage>>, Error> {
        self.has_server()?;
        let count: usize = trains.iter().map(|train| train.1.len()).sum();
        if count > MOST_PACKETS {
            return Err(Error::Unsupported(format!("{count} packets: at most {MOST_PACKETS} are possible")));
        }
        let start = self.now;
        let mut end = start;
        let mut all = Vec::new();
        for &(way, departures) in trains {
            let packets = self.at(departures, 0);
            let arrived = self.half(way).carry(&packets);
            end = last(&packets, &arrived).max(end);
            all.push(self.passages(departures, &arrived));
        }
        self.heard(end);
        Ok(all)
    }

    fn beside(&mut self, way: Way, train: &[Departure], requests: &[Departure]) -> Result<Option<Beside>, Error> {
        self.has_server()?;
        let start = self.now;
        let mut there = self.at(train, 0);
        let echoes = self.at(requests, 1);
        let (passed, echoes) = match way {
            Way::Up => {
                there.extend(&echoes);
                let mut arrived = self.up.carry(&there);
                let mid = arrived.split_off(train.len());
                let answered = self.answered(&mid, requests);
                (arrived, answered)
            }
            Way::Down => {
                let mid = self.up.carry(&echoes);
                there.extend(mid.iter().zip(requests).filter_map(|(at, request)| Some(((*at)?, request.ip_len, 1))));
                let mut arrived = self.down.carry(&there);
                let mut here = arrived.split_off(train.len()).into_iter();
                let answered = mid.iter().map(|at| at.and_then(|_| here.next().flatten())).collect();
                (arrived, answered)
            }
        };
        let passages = self.passages(train, &passed);
        self.heard(last(&there, &passed).max(last(&[], &echoes)));
        Ok(Some((passages, round_trips(start, requests, &echoes))))
    }

    fn echoes(&mut self, requests: &[Departure]) -> Result<Vec<Echo>, Error> {
        let start = self.now;
        let up = self.at(requests, 1);
        let there = self.up.carry(&up);
        let here = self.answered(&there, requests);
        self.heard(last(&up, &here));
        Ok(round_trips(start, requests, &here))
    }

    fn elapsed(&self) -> Duration {
        self.now.since(Instant::from_ps(1_000_000_000_000))
    }

    fn mtu(&mut self) -> Result<Option<ByteCount>, Error> {
        Ok(Some(self.mtu))
    }
}

/// The last departure or arrival.
fn last(packets: &[(Instant, ByteCount, u32)], arrived: &[Option<Instant>]) -> Instant {
    packets.iter().map(|packet| packet.0).chain(arrived.iter().flatten().copied()).max().unwrap_or(Instant::ZERO)
}

fn round_trips(start: Instant, requests: &[Departure], here: &[Option<Instant>]) -> Vec<Echo> {
    let echo = |(request, at): (&Departure, &Option<Instant>)| Echo {
        ip_len: request.ip_len,
        sent: request.at,
        round_trip: at.map(|at| at.since(start + request.at)),
    };
    requests.iter().zip(here).map(echo).collect()
}
