//! The decisions of the simulator's sources, in the form in which the lab carries them out: equal seeds give equal
//! packets, pages and peers under both clocks.

use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use lastmile_model::{Http, Source};
use lastmile_packet::{FlowAddresses, FlowKey, IpAddresses, parse_headers, write_packet};
use lastmile_queueing::random::Stream;
use lastmile_sim::sources::{Departures, Request, Swarm, User, UserOutcome};
use lastmile_units::{ByteCount, Duration, Instant};

use crate::spec::{Application, Order, ReplayPlan, Turn};

/// When something happens, counted from a start.
pub(super) type Times = Box<dyn Iterator<Item = Duration> + Send>;

/// The size of the packets of a datagram source, and when each leaves, counted from its start; `None` for what is none.
pub(super) fn departures(source: &Source, random: Stream) -> Option<(ByteCount, Times)> {
    let mut departures = Departures::new(source, random)?;
    let size = departures.size();
    let first = departures.first(Instant::ZERO);
    let times = std::iter::successors(Some(first), move |last| Some(departures.after(*last)));
    Some((size, Box::new(times.map(|at| at.since(Instant::ZERO)))))
}

/// The user of an application that requests data.
pub(super) struct Client {
    user: User,
    /// Index of its traffic in the plan's network, and its name.
    identity: (usize, String),
    /// A connection stays open after a response.
    keep_open: bool,
    timer: Option<Instant>,
    closing: VecDeque<Order>,
}

impl Client {
    /// The user of `source`; `None` for sources without one.
    pub(super) fn new(source: &Source, identity: (usize, String), random: Stream) -> Option<Self> {
        let user = User::new(source, random)?;
        let keep_open = !matches!(source, Source::Web(web) if web.http == Http::One0);
        Some(Self { user, identity, keep_open, timer: None, closing: VecDeque::new() })
    }
}

impl Application for Client {
    fn wake(&mut self, now: Instant, _: &dyn Fn(u32) -> u64) {
        self.timer = None;
        self.user.decide().wake(now);
    }

    fn next_order(&mut self) -> Option<Order> {
        let decide = self.user.decide();
        if let Some(Request { request, bytes, on }) = decide.next_request() {
            let turn = Turn { request, bytes };
            return Some(match on {
                Some(connection) => {
                    decide.asked(connection);
                    Order::Ask { connection, turn }
                }
                None => Order::Open { turn: Some(turn), keep_open: self.keep_open },
            });
        }
        self.timer = decide.take_timer().or(self.timer);
        self.closing.extend(decide.take_unneeded().into_iter().map(Order::HangUp));
        self.closing.pop_front()
    }

    fn opened(&mut self, connection: u32) {
        self.user.decide().asked(connection);
    }

    fn completed(&mut self, now: Instant, connection: u32) {
        self.user.decide().completed(now, connection);
    }

    fn broke(&mut self, now: Instant, connection: u32) {
        self.user.decide().broke(now, connection);
    }

    fn delivered(&mut self, now: Instant, connection: u32) {
        self.user.delivered(now, connection);
    }

    fn stop(&mut self, now: Instant) {
        self.timer = None;
        self.closing.extend(self.user.decide().stop(now).into_iter().map(Order::Stop));
    }

    fn next_wake(&self) -> Option<Instant> {
        self.timer
    }

    fn outcome(self: Box<Self>, now: Instant) -> Option<UserOutcome> {
        let Self { user, identity: (traffic, name), .. } = *self;
        Some(user.outcome(now, traffic, name))
    }
}

/// One direction of a peer of a swarm.
pub(super) struct Peer {
    swarm: Swarm,
    rechoke: Duration,
    timer: Option<Instant>,
    /// Slots are to be filled, but not with this peer.
    filling: Option<Option<u32>>,
    /// The peer that the last order opens a connection to.
    opening: Option<u32>,
    closing: VecDeque<Order>,
}

impl Peer {
    pub(super) fn new(spec: &Arc<lastmile_model::Swarm>, random: Stream) -> Self {
        Self {
            swarm: Swarm::new(spec, random),
            rechoke: spec.rechoke,
            timer: None,
            filling: None,
            opening: None,
            closing: VecDeque::new(),
        }
    }
}

impl Application for Peer {
    fn wake(&mut self, now: Instant, delivered: &dyn Fn(u32) -> u64) {
        let choked = self.swarm.choke(delivered);
        self.closing.extend(choked.map(|(connection, _)| Order::Stop(connection)));
        self.filling = Some(choked.map(|(_, peer)| peer));
        // The next time keeps to the grid, however late this one is.
        self.timer = Some(self.timer.unwrap_or(now) + self.rechoke);
    }

    fn next_order(&mut self) -> Option<Order> {
        if let Some(order) = self.closing.pop_front() {
            return Some(order);
        }
        self.opening = self.filling.and_then(|except| self.swarm.unchoke(except));
        if self.opening.is_none() {
            self.filling = None;
        }
        self.opening.map(|_| Order::Open { turn: None, keep_open: false })
    }

    fn opened(&mut self, connection: u32) {
        if let Some(peer) = self.opening.take() {
            self.swarm.opened(peer, connection);
        }
    }

    fn completed(&mut self, _: Instant, _: u32) {}

    fn broke(&mut self, _: Instant, connection: u32) {
        self.swarm.broke(connection);
    }

    fn delivered(&mut self, _: Instant, _: u32) {}

    fn stop(&mut self, _: Instant) {
        self.timer = None;
        self.closing.extend(self.swarm.stop().into_iter().map(Order::Stop));
    }

    fn next_wake(&self) -> Option<Instant> {
        self.timer
    }

    fn outcome(self: Box<Self>, _: Instant) -> Option<UserOutcome> {
        None
    }
}

/// The packets of a capture as bytes, payloads zero. An address of one of the lab's hosts becomes another, 198.19 in
/// place of 198.18 and 2001:3 in place of 2001:2: a host would answer packets to its own address.
pub(super) fn replay(capture: &Arc<lastmile_model::Replay>, hosts: &BTreeSet<IpAddr>) -> ReplayPlan {
    let addresses: Vec<FlowAddresses> = capture
        .flows
        .iter()
        .map(|key| FlowAddresses { ip: elsewhere(key.addresses.ip, hosts), ..key.addresses })
        .collect();
    let bytes = move |packet: &lastmile_packet::Meta| {
        let mut bytes = Vec::new();
        write_packet(packet, &addresses[packet.flow.index() as usize], &mut bytes);
        bytes
    };
    // As the bytes say it: a protocol that is not known is written as another.
    let mut flows: Vec<Option<FlowKey>> = vec![None; capture.flows.len()];
    for (_, packet) in &capture.packets {
        let flow = &mut flows[packet.flow.index() as usize];
        if flow.is_none() {
            *flow = parse_headers(&bytes(packet)).ok().map(|parsed| parsed.key);
        }
    }
    let count = capture.packets.len();
    let capture = Arc::clone(capture);
    let packets = (0..count).map(move |number| {
        let (after, packet) = &capture.packets[number];
        (*after, bytes(packet))
    });
    ReplayPlan { packets: Box::new(packets), flows: flows.into_iter().flatten().collect() }
}

fn elsewhere(ip: IpAddresses, hosts: &BTreeSet<IpAddr>) -> IpAddresses {
    let moved = |address: IpAddr| match address {
        other if !hosts.contains(&other) => other,
        IpAddr::V4(address) => {
            let [first, second, third, fourth] = address.octets();
            IpAddr::V4(Ipv4Addr::new(first, second.wrapping_add(1), third, fourth))
        }
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits().wrapping_add(1 << 96)).into(),
    };
    IpAddresses::new(moved(ip.source()), moved(ip.destination())).unwrap_or(ip)
}

#[cfg(test)]
mod tests {
    use lastmile_packet::{FlowId, Meta, Protocol};

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    fn tcp() -> Arc<lastmile_tcp::Config> {
        Arc::new(lastmile_tcp::Config::default())
    }

    fn web(http: Http, tls: bool) -> Client {
        let model = lastmile_model::Web {
            transport: lastmile_model::Transport::Tcp(tcp()),
            reading: Duration::from_s(30),
            parsing: Duration::from_ms(130),
            request: 350,
            connections: 2,
            http,
            tls,
        };
        let random = Stream::new(1, "traffic web-0");
        Client::new(&Source::Web(Arc::new(model)), (0, "web".into()), random).unwrap()
    }

    /// Lets `client` read a page: each response comes 10 ms after another. Returns the turns, and the most connections
    /// at a time.
    fn read_a_page(client: &mut Client) -> (Vec<Turn>, usize) {
        let (mut turns, mut open, mut due, mut closed, mut most) = (Vec::new(), Vec::new(), VecDeque::new(), 0, 0);
        client.wake(at(0), &|_| 0);
        let mut now = 0;
        while closed == 0 || !open.is_empty() {
            while let Some(order) = client.next_order() {
                match order {
                    Order::Open { turn, keep_open } => {
                        assert!(keep_open);
                        let number = u32::try_from(turns.len()).unwrap();
                        turns.extend(turn);
                        open.push(number);
                        due.push_back(number);
                        client.opened(number);
                    }
                    Order::Ask { connection, turn } => {
                        assert!(open.contains(&connection));
                        turns.push(turn);
                        due.push_back(connection);
                    }
                    Order::HangUp(connection) => {
                        closed += 1;
                        open.retain(|known| *known != connection);
                    }
                    Order::Stop(_) => panic!("nobody stops it"),
                }
            }
            most = most.max(open.len());
            now += 10;
            if let Some(wake) = client.next_wake().filter(|wake| *wake <= at(now)) {
                client.wake(wake, &|_| 0);
            } else if let Some(connection) = due.pop_front() {
                client.completed(at(now), connection);
            }
            assert!(now < 100_000, "a page ends");
        }
        (turns, most)
    }

    fn browsing(client: Client) -> lastmile_model::outcome::BrowsingOutcome {
        match Box::new(client).outcome(at(100_000)) {
            Some(UserOutcome::Browsing(outcome)) => outcome,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_browser_asks_for_a_page_object_by_object_and_closes_what_it_needs_no_more() {
        let mut browser = web(Http::One1, false);
        let (turns, most) = read_a_page(&mut browser);
        assert!((1..=2).contains(&most));
        assert!(turns.iter().all(|turn| turn.request == 350));
        let outcome = browsing(browser);
        assert_eq!((outcome.pages, outcome.responses.len(), &*outcome.name), (1, 1, "web"));
        assert_eq!(outcome.objects, turns.len() as u64);
    }

    /// The handshake of TLS is the first turn; the first request carries its end. Requests of 350 bytes have two frame
    /// headers (18) and a record (22): 390, and 64 more for the first.
    #[test]
    fn a_browser_of_http_2_has_one_connection_with_tls() {
        let mut browser = web(Http::Two, true);
        let (turns, most) = read_a_page(&mut browser);
        assert_eq!(most, 1);
        let requests: Vec<u64> = turns.iter().map(|turn| turn.request).collect();
        assert_eq!(requests[..2], [305, 454]);
        assert!(requests[2..].iter().all(|request| *request == 390), "{requests:?}");
        assert_eq!(browsing(browser).objects, turns.len() as u64 - 1);
    }

    #[test]
    fn a_peer_fills_its_slots_and_gives_the_slowest_away_on_its_grid() {
        let spec = lastmile_model::Swarm { tcp: tcp(), peers: 9, slots: 3, rechoke: Duration::from_s(10) };
        let mut peer = Peer::new(&Arc::new(spec), Stream::new(1, "traffic swarm-0"));
        let mut number = 0;
        let mut orders = |peer: &mut Peer| {
            let mut all = Vec::new();
            while let Some(order) = peer.next_order() {
                if matches!(order, Order::Open { .. }) {
                    peer.opened(number);
                    number += 1;
                }
                all.push(order);
            }
            all
        };
        let open = Order::Open { turn: None, keep_open: false };
        peer.wake(at(0), &|_| 0);
        assert_eq!(orders(&mut peer), [open; 3]);
        assert_eq!(peer.next_wake(), Some(at(10_000)));
        // Woken 7 ms late; connection 1 has delivered least.
        peer.wake(at(10_007), &|connection| if connection == 1 { 5 } else { 50 });
        assert_eq!(orders(&mut peer), [Order::Stop(1), open]);
        assert_eq!(peer.next_wake(), Some(at(20_000)));
        peer.stop(at(12_000));
        assert_eq!(orders(&mut peer), [Order::Stop(0), Order::Stop(2), Order::Stop(3)]);
        assert_eq!(peer.next_wake(), None);
    }

    #[test]
    fn replayed_packets_keep_their_addresses_unless_a_host_would_answer() {
        let hosts = [Ipv4Addr::new(198, 18, 0, 2), Ipv4Addr::new(198, 18, 0, 1)];
        let v6 = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let all = hosts.into_iter().map(IpAddr::from).chain([v6("2001:2::2").into()]).collect();
        let key = |source, destination| FlowKey {
            addresses: FlowAddresses {
                ip: IpAddresses::V4 { source, destination },
                source_port: 1000,
                destination_port: 2000,
            },
            protocol: 17,
        };
        let (far, near) = (Ipv4Addr::new(192, 0, 2, 7), Ipv4Addr::new(10, 1, 1, 1));
        let packet = |flow| Meta {
            flow: FlowId::new(flow),
            protocol: Protocol::Udp,
            ip_len: 128,
            header_len: 28,
            ..Meta::default()
        };
        let capture = lastmile_model::Replay {
            packets: vec![(Duration::ZERO, packet(0)), (Duration::from_ms(5), packet(1))],
            flows: vec![key(near, far), key(hosts[0], hosts[1])],
        };
        let plan = replay(&Arc::new(capture), &all);
        let over_v6 = |source, destination| IpAddresses::V6 { source: v6(source), destination: v6(destination) };
        assert_eq!(elsewhere(over_v6("2001:2::2", "2001:db8::1"), &all), over_v6("2001:3::2", "2001:db8::1"));
        assert_eq!(plan.flows, [key(near, far), key(Ipv4Addr::new(198, 19, 0, 2), Ipv4Addr::new(198, 19, 0, 1))]);
        let packets: Vec<(Duration, usize)> = plan.packets.map(|(after, bytes)| (after, bytes.len())).collect();
        assert_eq!(packets, [(Duration::ZERO, 128), (Duration::from_ms(5), 128)]);
    }
}
