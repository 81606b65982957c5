//! Packet trains over a session, and echo requests of any size: the instrument of detection.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lastmile_live::clock::{Clock, MonotonicClock};
use lastmile_live::probe::Requests;
use lastmile_live::sys::icmp::EchoSocket;
use lastmile_live::sys::stamped;
use lastmile_units as units;
use lastmile_units::ByteCount;

use crate::clock;
use crate::error::Error;
use crate::load::Stop;
use crate::probe::exchange::passing;
use crate::train::{Beside, Departure, Echo, Passage, Path, Way};

use super::control::PATIENCE;
use super::sized::SizedEchoes;
use super::wire::{Answer, Datagram, LEAST_TRAIN, MOST_TRAINS, Request, Train, Trained};
use super::{Client, data, pace};

/// The end of downstream trains: so long without an arrival, after the server has sent them.
const SILENCE: Duration = Duration::from_secs(1);

/// The longest wait for the records of trains beyond their length.
const RECORDS: Duration = Duration::from_secs(15);

/// The longest wait for echoes after the last request.
const ECHOES: Duration = Duration::from_secs(3);

/// Trains of one session, one request after the other.
#[derive(Debug)]
pub struct OwnPath<'a> {
    client: &'a mut Client,
    socket: Arc<UdpSocket>,
    begin: Instant,
    /// Number of the next request.
    pub(crate) next: u32,
    echoes: SizedEchoes<'a>,
    /// The UDP of another session, which is another flow, and the session.
    other: Option<(SizedEchoes<'a>, Client)>,
    stop: &'a Stop,
}

/// Arrivals of downstream trains.
struct Arrivals {
    /// For each train the tag of its datagrams, its index, and the arrivals.
    trains: Vec<(u32, usize, Vec<Option<u64>>)>,
    latest: Instant,
}

impl Client {
    /// Packet trains of this session. Echoes beside a train are of the `other` session: queues that share a line among
    /// flows tell them from the train by their port. Trains and echoes end with [`Error::Stopped`] at a `stop`.
    ///
    /// # Errors
    /// UDP is blocked.
    pub fn path<'a>(&'a mut self, other: Option<Client>, stop: &'a Stop) -> Result<OwnPath<'a>, Error> {
        OwnPath::new(self, other, stop)
    }
}

impl<'a> OwnPath<'a> {
    fn new(client: &'a mut Client, other: Option<Client>, stop: &'a Stop) -> Result<Self, Error> {
        let address = client.address;
        let blocked = || Error::Unsupported(format!("trains need UDP, which does not reach {address}"));
        let socket = Arc::clone(client.socket.as_ref().ok_or_else(blocked)?);
        let echoes = SizedEchoes::of(client, stop).ok_or_else(blocked)?;
        let other = other.and_then(|other| Some((SizedEchoes::of(&other, stop)?, other)));
        Ok(Self { client, socket, begin: Instant::now(), next: 0, echoes, other, stop })
    }

    fn train(&self, way: Way, packets: &[Departure]) -> Result<Train, Error> {
        let headers = self.echoes.headers();
        let one = |packet: &Departure| {
            let len = packet.ip_len.as_u64().checked_sub(headers).and_then(|len| u16::try_from(len).ok());
            let least = headers + LEAST_TRAIN as u64;
            let wrong =
                || Error::Unsupported(format!("packets of a train have at least {least} bytes, not {}", packet.ip_len));
            Ok((packet.at.as_ns(), len.filter(|len| usize::from(*len) >= LEAST_TRAIN).ok_or_else(wrong)?))
        };
        Ok(Train::of(way, packets.iter().map(one).collect::<Result<Vec<_>, Error>>()?))
    }

    /// Receives downstream packets until `over`.
    fn receive(&self, arrivals: &Mutex<Arrivals>, over: &AtomicBool) -> Result<(), Error> {
        let mut buffer = vec![0; 2048];
        self.socket.set_read_timeout(Some(Duration::from_millis(20))).map_err(Error::io("receiving trains"))?;
        while !over.load(Ordering::Relaxed) {
            let Ok(Some((len, stamp))) = stamped::receive(self.socket.as_fd(), &mut buffer) else { continue };
            let at_ns = clock::received_ns(stamp);
            let Some((session, Datagram::Train { train, index, .. })) = Datagram::read(&buffer[..len]) else {
                continue;
            };
            let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
            if session == self.client.session
                && let Some((_, _, packets)) = arrivals.trains.iter_mut().find(|(number, _, _)| *number == train)
                && let Some(arrival) = packets.get_mut(index as usize)
            {
                arrival.get_or_insert(at_ns);
                arrivals.latest = Instant::now();
            }
        }
        Ok(())
    }

    /// Sends an upstream train, and returns the departures in ns after its start.
    fn send(&self, number: u32, train: &Train) -> Vec<u64> {
        let mut buffer = data::block(65_536);
        pace::send(
            train.packets(),
            || self.stop.is_requested(),
            |index, len, sent_ns| {
                let datagram = &mut buffer[..usize::from(len)];
                Datagram::Train { train: number, index, sent_ns }
                    .write(self.client.session, &mut datagram[..LEAST_TRAIN])
                    .then_some(())?;
                // A full queue on the way out loses it, as one further on would.
                let _ = self.socket.send(datagram);
                Some(())
            },
        )
    }

    /// The records of the server.
    fn records(&mut self, length: Duration) -> Result<Vec<Trained>, Error> {
        match self.client.control.answer(length + RECORDS)? {
            Answer::Trained { trains } => Ok(trains),
            other => Err(self.client.control.unexpected(&other, "the records of the trains")),
        }
    }
}

impl Path for OwnPath<'_> {
    fn trains(&mut self, trains: &[(Way, &[Departure])]) -> Result<Vec<Vec<Passage>>, Error> {
        self.stop.check()?;
        let requested: Vec<Train> =
            trains.iter().map(|(way, packets)| self.train(*way, packets)).collect::<Result<_, _>>()?;
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.client.control.send(&Request::Trains { number, trains: requested.clone() })?;
        match self.client.control.answer(PATIENCE)? {
            Answer::Ready => {}
            other => return Err(self.client.control.unexpected(&other, "ready")),
        }
        let first = number.wrapping_mul(MOST_TRAINS as u32);
        let numbered: Vec<(u32, &Train)> = (0..).map(|index| first.wrapping_add(index)).zip(&requested).collect();
        let down = numbered.iter().enumerate().filter(|(_, (_, train))| train.way == Way::Down);
        let arrivals = Mutex::new(Arrivals {
            trains: down.map(|(index, (number, train))| (*number, index, vec![None; train.count()])).collect(),
            latest: Instant::now(),
        });
        let last_ns = requested.iter().filter_map(|train| train.packets().last()).map(|(at_ns, _)| at_ns).max();
        let length = Duration::from_nanos(last_ns.unwrap_or(0));
        let over = AtomicBool::new(false);
        // The path is shared while packets pass, and the control connection is used after.
        let (sent, receiving) = thread::scope(|scope| {
            let this = &*self;
            let receiving = scope.spawn(|| this.receive(&arrivals, &over));
            let up = numbered.iter().filter(|(_, train)| train.way == Way::Up);
            let sending: Vec<_> = up.map(|(number, train)| scope.spawn(move || this.send(*number, train))).collect();
            let sent: Vec<Vec<u64>> = sending.into_iter().map(|thread| thread.join().unwrap_or_default()).collect();
            wait_for_arrivals(&arrivals, length, this.stop);
            over.store(true, Ordering::Relaxed);
            (sent, receiving.join().unwrap_or(Ok(())))
        });
        receiving?;
        // The session ends, and with it the trains of the server.
        self.stop.check()?;
        let records = self.records(length)?;
        let arrivals = arrivals.into_inner().unwrap_or_else(PoisonError::into_inner);
        let (mut sent, mut arrived) = (sent.into_iter(), arrivals.trains.into_iter());
        let ends = requested.iter().zip(records.into_iter().map(Some).chain(std::iter::repeat_with(|| None)));
        ends.map(|(train, record)| match (train.way, record) {
            (Way::Up, Some(Trained::Arrived(arrived))) => {
                Ok(passages(train, &sent.next().unwrap_or_default(), &arrived))
            }
            (Way::Down, Some(Trained::Sent(sent))) => {
                Ok(passages(train, &sent, &arrived.next().map(|(_, _, arrived)| arrived).unwrap_or_default()))
            }
            _ => Err(self.client.control.protocol("the records of its trains are of other trains")),
        })
        .collect()
    }

    fn beside(&mut self, way: Way, train: &[Departure], requests: &[Departure]) -> Result<Option<Beside>, Error> {
        let Some((mut echoes, other)) = self.other.take() else { return Ok(None) };
        let (passages, echoed) = thread::scope(|scope| {
            let echoing = scope.spawn(|| echoes.echoes(requests));
            let passages = self.trains(&[(way, train)]);
            (passages, echoing.join().unwrap_or_else(|_| Ok(Vec::new())))
        });
        self.other = Some((echoes, other));
        // Without one answer, the train is a train alone.
        Ok(Some((passages?.pop().unwrap_or_default(), echoed.unwrap_or_default())))
    }

    fn echoes(&mut self, requests: &[Departure]) -> Result<Vec<Echo>, Error> {
        self.echoes.echoes(requests)
    }

    fn elapsed(&self) -> units::Duration {
        units::Duration::from_ns(u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX / 1000))
    }

    fn mtu(&mut self) -> Result<Option<ByteCount>, Error> {
        self.echoes.mtu()
    }
}

/// Echo requests to any host: a path without a server of ours.
#[derive(Debug)]
pub struct EchoPath {
    target: IpAddr,
    begin: Instant,
}

impl EchoPath {
    /// The path to `target`.
    #[must_use]
    pub fn new(target: IpAddr) -> Self {
        Self { target, begin: Instant::now() }
    }
}

impl Path for EchoPath {
    fn trains(&mut self, _trains: &[(Way, &[Departure])]) -> Result<Vec<Vec<Passage>>, Error> {
        Err(Error::Unsupported(format!("trains need `lastmile measure --serve` at {}", self.target)))
    }

    fn echoes(&mut self, requests: &[Departure]) -> Result<Vec<Echo>, Error> {
        echoes(self.target, requests)
    }

    fn elapsed(&self) -> units::Duration {
        units::Duration::from_ns(u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX / 1000))
    }

    fn mtu(&mut self) -> Result<Option<ByteCount>, Error> {
        Ok(None)
    }
}

/// Waits until all downstream packets have arrived, or none comes any more.
fn wait_for_arrivals(arrivals: &Mutex<Arrivals>, length: Duration, stop: &Stop) {
    let end = Instant::now() + length;
    loop {
        let (whole, latest) = {
            let arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
            (arrivals.trains.iter().all(|(_, _, packets)| packets.iter().all(Option::is_some)), arrivals.latest)
        };
        if whole || stop.is_requested() || (Instant::now() > end && latest.max(end).elapsed() > SILENCE) {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// One passage for each packet of a train. A packet that was never sent counts as sent when it was
/// due, and did not arrive.
fn passages(train: &Train, sent: &[u64], arrived: &[Option<u64>]) -> Vec<Passage> {
    let first = arrived.iter().flatten().min().copied().unwrap_or(0);
    let each = train.packets().enumerate().map(|(index, (due_ns, _))| Passage {
        sent: span(sent.get(index).copied().unwrap_or(due_ns)),
        arrived: arrived.get(index).copied().flatten().map(|at_ns| span(at_ns - first)),
    });
    each.collect()
}

/// A span of nanoseconds; the longest that fits for longer ones.
fn span(ns: u64) -> units::Duration {
    units::Duration::from_ns(ns.min(u64::MAX / 1000))
}

/// Echo requests of stated lengths at stated times, and their round trips.
fn echoes(target: IpAddr, requests: &[Departure]) -> Result<Vec<Echo>, Error> {
    let what = || format!("echo requests to {target}");
    let socket = EchoSocket::open(SocketAddr::new(target, 0), None, 0).map_err(Error::io(what()))?;
    let (mut sent, clock) = (Requests::new(socket), MonotonicClock::start());
    let zero = clock.now();
    let take = |sent: &mut Requests, patience: Duration| {
        let received = sent.wait(patience).and_then(|()| sent.receive(&clock, |_| {}));
        passing(received).map_err(Error::io(what()))
    };
    for request in requests {
        loop {
            let left = request.at.saturating_sub(clock.now().since(zero));
            if left.is_zero() {
                break;
            }
            take(&mut sent, Duration::from_nanos(left.as_ns().max(1000)))?;
        }
        let ip_len = usize::try_from(request.ip_len.as_u64()).unwrap_or(usize::MAX);
        sent.send(&clock, ip_len).map_err(Error::io(what()))?;
    }
    let end = Instant::now() + ECHOES;
    while Instant::now() < end && !sent.are_answered() {
        take(&mut sent, Duration::from_millis(20))?;
    }
    if !requests.is_empty() && sent.round_trips().all(|(_, round_trip)| round_trip.is_none()) {
        return Err(Error::Unsupported(format!("none of {} echo requests to {target} was answered", requests.len())));
    }
    let echoes = requests.iter().zip(sent.round_trips());
    let echo =
        echoes.map(|(request, (at, round_trip))| Echo { ip_len: request.ip_len, sent: at.since(zero), round_trip });
    Ok(echo.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::Limits;
    use crate::serve::tests::{client, with_server};

    /// Over loopback, whose MTU is above the longest train: UDP echoes of 1500 bytes pass whole, without ICMP. Those
    /// beside a train are of another port, or are none.
    #[test]
    fn echoes_of_udp_show_the_mtu_and_pass_beside_a_train() {
        with_server(Limits::default(), |address, _| {
            let packets = |count: u64, len: u64| -> Vec<Departure> {
                let at = |n: u64| units::Duration::from_ms(n);
                (0..count).map(|n| Departure { at: at(n), ip_len: ByteCount::new(len) }).collect()
            };
            let (mut first, second) = (client(address), client(address));
            assert_ne!(first.session(), second.session());
            let stop = Stop::default();
            let mut path = first.path(Some(second), &stop).unwrap();
            assert_eq!(path.mtu().unwrap(), Some(ByteCount::new(1500)));
            let echoes = path.echoes(&packets(20, 108)).unwrap();
            assert!(echoes.iter().filter(|echo| echo.round_trip.is_some()).count() > 15, "{echoes:?}");
            assert_eq!(echoes[0].ip_len, ByteCount::new(108));
            let (passages, echoes) = path.beside(Way::Up, &packets(50, 1500), &packets(20, 64)).unwrap().unwrap();
            assert_eq!((passages.len(), echoes.len()), (50, 20));
            assert_eq!(echoes[0].ip_len, ByteCount::new(88), "no shorter echo");
            let arrived = passages.iter().filter(|passage| passage.arrived.is_some()).count();
            assert!(arrived > 45 && echoes.iter().filter(|echo| echo.round_trip.is_some()).count() > 15);
            drop(path);
            let mut alone = first.path(None, &stop).unwrap();
            assert!(alone.beside(Way::Up, &packets(5, 100), &packets(5, 108)).unwrap().is_none());
            stop.request();
            let train = packets(5, 100);
            assert!(matches!(alone.trains(&[(Way::Up, &train[..])]), Err(Error::Stopped)));
            assert!(matches!(alone.echoes(&packets(5, 108)), Err(Error::Stopped)));
            assert!(matches!(alone.mtu(), Err(Error::Stopped)));
        });
    }
}
