//! UDP echo requests to a server of lastmile: round trips, one-way delays, and the direction of
//! each loss.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::load::Stop;
use crate::probe::exchange::{self, Exchange, apart_s};
use crate::probe::window::Window;
use crate::probe::{Clocks, Kind, Prober, Sample, Subject};
use crate::train::Way;

use super::wire::{Datagram, Hex, LEAST_ECHO};

/// Intervals that a request which is given up waits for a reply that tells where it was lost: that to the next one
/// comes an interval and a round trip later, and may be lost itself.
const HELD: f64 = 4.0;

/// Echo requests of one session.
#[derive(Debug)]
pub struct UdpEcho {
    name: String,
    socket: Arc<UdpSocket>,
    session: Hex<8>,
    clocks: Clocks,
    interval: Duration,
    /// A bit for each request that the server has received, by its replies.
    seen: Bits,
    /// A bit for each request of which a reply says whether the server has received it.
    told: Bits,
    /// Requests that are given up: number and time.
    undecided: Vec<(u64, f64)>,
}

impl UdpEcho {
    pub(super) fn new(
        name: String,
        socket: Arc<UdpSocket>,
        session: Hex<8>,
        clocks: Clocks,
        interval: Duration,
    ) -> Self {
        Self {
            name,
            socket,
            session,
            clocks,
            interval,
            seen: Bits::default(),
            told: Bits::default(),
            undecided: Vec::new(),
        }
    }

    /// Notes that of the 64 requests up to `highest` the server has received those of `window`. A request is given up
    /// long after the reply that tells of it where requests follow fast, so replies are noted as they come.
    fn note(&mut self, highest: u64, window: u64) {
        for back in 0..64 {
            if let Some(number) = highest.checked_sub(back) {
                self.told.set(number);
                if window >> back & 1 == 1 {
                    self.seen.set(number);
                }
            }
        }
    }

    /// Where a request was lost, by the replies to those after it; `None` without one to the 63 after it.
    fn way(&self, number: u64) -> Option<Way> {
        if self.seen.has(number) { Some(Way::Down) } else { self.told.has(number).then_some(Way::Up) }
    }

    /// Tells of the requests that are given up: of those sent before `before_s` also where nothing tells the way.
    fn tell_lost(&mut self, before_s: f64, tell: &mut dyn FnMut(Sample)) {
        for (number, sent_s) in std::mem::take(&mut self.undecided) {
            let lost = self.way(number);
            if lost.is_some() || sent_s < before_s {
                tell(Sample { sent_s, lost, ..Sample::default() });
            } else {
                self.undecided.push((number, sent_s));
            }
        }
    }
}

/// A set of numbers of requests.
#[derive(Default, Debug)]
struct Bits(Vec<u64>);

impl Bits {
    fn set(&mut self, number: u64) {
        if let Ok(word) = usize::try_from(number / 64)
            // Numbers of no request would take memory.
            && word < 1 << 16
        {
            if self.0.len() <= word {
                self.0.resize(word + 1, 0);
            }
            self.0[word] |= 1 << (number % 64);
        }
    }

    fn has(&self, number: u64) -> bool {
        let word = usize::try_from(number / 64).ok().and_then(|word| self.0.get(word));
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }
}

impl Prober for UdpEcho {
    fn subject(&self) -> Subject {
        Subject { target: self.name.clone(), kind: Kind::Udp, code_point: 0 }
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn clocks(&self) -> Clocks {
        self.clocks
    }

    fn run(
        &mut self,
        now_s: &(dyn Fn() -> f64 + Sync),
        stop: &Stop,
        tell: &mut dyn FnMut(Sample),
    ) -> Result<(), Error> {
        exchange::run(self, self.interval, now_s, stop, tell).map_err(Error::io("UDP echo requests"))
    }
}

impl Exchange for UdpEcho {
    fn send(&mut self, number: u64, sent_ns: u64) -> io::Result<()> {
        let mut request = [0; LEAST_ECHO];
        Datagram::Request { number, sent_ns }.write(self.session, &mut request);
        self.socket.send(&request).map(drop)
    }

    fn receive(&mut self, _window: &Window, patience: Duration) -> io::Result<Option<(u64, Sample)>> {
        let mut buffer = [0; 2048];
        let Some((len, arrived_ns)) = exchange::receive(&self.socket, &mut buffer, patience)? else { return Ok(None) };
        let Some((_, Datagram::Reply { number, sent_ns, received_ns, replied_ns, highest, window })) =
            Datagram::read(&buffer[..len]).filter(|(session, _)| *session == self.session)
        else {
            return Ok(None);
        };
        self.note(highest, window);
        let (up_s, down_s) = (apart_s(received_ns, sent_ns), apart_s(arrived_ns, replied_ns));
        // The sum has no clock's zero in it, and not the server's processing either.
        let rtt_s = Some((up_s + down_s).max(0.0));
        Ok(Some((number, Sample { rtt_s, up_s: Some(up_s), down_s: Some(down_s), ..Sample::default() })))
    }

    fn give_up(&mut self, requests: Vec<(u64, f64)>, before_s: f64, tell: &mut dyn FnMut(Sample)) {
        self.undecided.extend(requests);
        self.tell_lost(before_s - HELD * self.interval.as_secs_f64(), tell);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn later_replies_show_where_a_request_was_lost() {
        let mut echo = echo();
        // Received: 70, 69, 67; 68 not.
        echo.note(70, 0b1011);
        assert_eq!(echo.way(67), Some(Way::Down));
        assert_eq!(echo.way(68), Some(Way::Up));
        assert_eq!(echo.way(71), None, "no later reply");
        assert_eq!(echo.way(1), None, "too old for the window");
        echo.note(u64::MAX, u64::MAX);
        assert!(echo.seen.0.len() < 10 && echo.told.0.len() < 10, "numbers of no request take no memory");
    }

    fn echo() -> UdpEcho {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
        UdpEcho::new("x".to_owned(), socket, Hex([0; 8]), Clocks::Apart, Duration::from_millis(100))
    }

    /// What happens to the requests of a prober, as [`UdpEcho::run`] does it.
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    enum Step {
        Reply,
        GivenUp,
    }

    /// Every interval that may be asked for, and round trips up to those after which a request is given up: 10 % of the
    /// requests are lost, and 4 % of the replies.
    #[test]
    fn each_loss_has_its_direction_at_any_interval_and_round_trip() {
        let mut random = 1_u64;
        let mut percent = move || {
            // Knuth, MMIX.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % 100
        };
        let (count, patience_ms) = (1500_u64, 5000);
        for (interval_ms, rtt_ms) in
            [5, 20, 50, 100, 1000, 10_000].into_iter().flat_map(|i| [25, 600, 4999].map(|r| (i, r)))
        {
            let ways: Vec<Option<Way>> = (0..count)
                .map(|_| match (percent() < 10, percent() < 4) {
                    (true, _) => Some(Way::Up),
                    (false, true) => Some(Way::Down),
                    (false, false) => None,
                })
                .collect();
            let mut steps: Vec<(u64, Step, u64)> = (0..count)
                .map(|number| match ways[number as usize] {
                    None => (number * interval_ms + rtt_ms, Step::Reply, number),
                    Some(_) => (number * interval_ms + patience_ms, Step::GivenUp, number),
                })
                .collect();
            steps.sort();
            let (mut echo, mut told) = (echo(), Vec::new());
            echo.interval = Duration::from_millis(interval_ms);
            for (at_ms, step, number) in steps {
                if step == Step::Reply {
                    let received = |back: &u64| {
                        number.checked_sub(*back).is_some_and(|number| ways[number as usize] != Some(Way::Up))
                    };
                    echo.note(number, (0..64).filter(received).fold(0, |window, back| window | 1 << back));
                } else {
                    echo.undecided.push((number, (number * interval_ms) as f64));
                }
                let before_ms = at_ms as f64 - patience_ms as f64 - HELD * interval_ms as f64;
                echo.tell_lost(before_ms, &mut |sample| told.push(sample));
            }
            echo.tell_lost(f64::INFINITY, &mut |sample| told.push(sample));
            let told: BTreeMap<u64, Option<Way>> =
                told.iter().map(|sample| (sample.sent_s as u64 / interval_ms, sample.lost)).collect();
            let lost = |way| ways.iter().filter(|lost| **lost == Some(way)).count();
            assert_eq!(told.len(), lost(Way::Up) + lost(Way::Down), "{interval_ms} ms, {rtt_ms} ms");
            let newest = ways.iter().rposition(Option::is_none).unwrap() as u64;
            for (number, way) in told.range(..newest) {
                // Nothing is heard in time where the next four are lost, too.
                let hidden = ways[*number as usize..].iter().take(5).all(Option::is_some);
                assert!(
                    *way == ways[*number as usize] || hidden && way.is_none(),
                    "{number}, {interval_ms} ms, {rtt_ms} ms"
                );
            }
        }
    }
}
