//! UDP echo requests to a server of lastmile: round trips, one-way delays, and the direction of
//! each loss.

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use lastmile_live::sys::stamped;

use crate::clock;
use crate::error::Error;
use crate::load::Stop;
use crate::probe::window::{Answer, Window};
use crate::probe::{Clocks, Kind, PATIENCE, Prober, Sample, Subject, is_passing, next_due};
use crate::train::Way;

use super::wire::{Datagram, Hex, LEAST_ECHO};

/// Echo requests of one session.
#[derive(Debug)]
pub struct UdpEcho {
    name: String,
    socket: Arc<UdpSocket>,
    session: Hex<8>,
    clocks: Clocks,
    interval: Duration,
    /// Requests that the server has received, by its replies: the highest, and a bit for each of
    /// those before it.
    seen: Vec<u64>,
}

impl UdpEcho {
    pub(super) fn new(
        name: String,
        socket: Arc<UdpSocket>,
        session: Hex<8>,
        clocks: Clocks,
        interval: Duration,
    ) -> Self {
        Self { name, socket, session, clocks, interval, seen: Vec::new() }
    }

    /// Notes that the server has received `highest` and those of `window`.
    fn note(&mut self, highest: u64, window: u64) {
        for back in (0..64).filter(|back| window >> back & 1 == 1) {
            if let Some(number) = highest.checked_sub(back)
                && let Ok(word) = usize::try_from(number / 64)
                // Numbers of no request would take memory.
                && word < 1 << 16
            {
                if self.seen.len() <= word {
                    self.seen.resize(word + 1, 0);
                }
                self.seen[word] |= 1 << (number % 64);
            }
        }
    }

    fn has_seen(&self, number: u64) -> bool {
        let word = usize::try_from(number / 64).ok().and_then(|word| self.seen.get(word));
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// A request that is given up. Where it was lost follows from later replies; without a later one
    /// nothing does.
    fn lost(&self, number: u64, sent_s: f64, latest: Option<u64>) -> Sample {
        let known = latest.is_some_and(|latest| latest > number && latest - number < 64);
        let way = if self.has_seen(number) { Some(Way::Down) } else { known.then_some(Way::Up) };
        Sample { sent_s, lost: way, ..Sample::default() }
    }
}

/// A difference of two clocks in seconds.
#[expect(clippy::cast_precision_loss, reason = "below a nanosecond for differences below 50 days")]
fn apart_s(later_ns: u64, earlier_ns: u64) -> f64 {
    (i128::from(later_ns) - i128::from(earlier_ns)) as f64 * 1e-9
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
        let socket = Arc::clone(&self.socket);
        let what = || "UDP echo requests";
        let mut window = Window::default();
        let mut due_s = now_s();
        let mut ended_s = None;
        let mut latest = None;
        let mut buffer = [0; 2048];
        loop {
            if stop.is_requested() {
                let since_s = *ended_s.get_or_insert_with(now_s);
                if window.is_empty() || now_s() - since_s >= PATIENCE.as_secs_f64() {
                    break;
                }
            } else if now_s() >= due_s {
                let number = window.send(now_s());
                let request = Datagram::Request { number, sent_ns: clock::now_ns() };
                request.write(self.session, &mut buffer[..LEAST_ECHO]);
                match socket.send(&buffer[..LEAST_ECHO]) {
                    Err(error) if !is_passing(&error) => return Err(Error::io(what())(error)),
                    _ => {}
                }
                due_s = next_due(due_s, self.interval.as_secs_f64(), now_s());
            }
            let wait_s = if stop.is_requested() { 0.02 } else { (due_s - now_s()).clamp(1e-6, 0.05) };
            socket.set_read_timeout(Some(Duration::from_secs_f64(wait_s))).map_err(Error::io(what()))?;
            let received = match stamped::receive(socket.as_fd(), &mut buffer) {
                Err(error) if !is_passing(&error) => return Err(Error::io(what())(error)),
                other => other.ok().flatten(),
            };
            if let Some((len, stamp)) = received
                && let Some((
                    session,
                    Datagram::Reply { number, sent_ns, received_ns, replied_ns, highest, window: seen },
                )) = Datagram::read(&buffer[..len])
                && session == self.session
            {
                self.note(highest, seen);
                latest = latest.max(Some(highest));
                match window.answer(number) {
                    Answer::First { sent_s, reordered } => {
                        let (up_s, down_s) =
                            (apart_s(received_ns, sent_ns), apart_s(clock::received_ns(stamp), replied_ns));
                        // The sum has no clock's zero in it, and not the server's processing either.
                        tell(Sample {
                            sent_s,
                            rtt_s: Some((up_s + down_s).max(0.0)),
                            up_s: Some(up_s),
                            down_s: Some(down_s),
                            reordered,
                            ..Sample::default()
                        });
                    }
                    Answer::Duplicate => tell(Sample { sent_s: now_s(), duplicate: true, ..Sample::default() }),
                    Answer::Unknown => {}
                }
            }
            for (number, sent_s) in window.given_up(now_s() - PATIENCE.as_secs_f64()) {
                tell(self.lost(number, sent_s, latest));
            }
        }
        for (number, sent_s) in window.given_up(f64::INFINITY) {
            tell(self.lost(number, sent_s, latest));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_replies_show_where_a_request_was_lost() {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
        let mut echo = UdpEcho::new("x".to_owned(), socket, Hex([0; 8]), Clocks::Apart, Duration::from_millis(100));
        // Received: 70, 69, 67; 68 not.
        echo.note(70, 0b1011);
        assert_eq!(echo.lost(67, 0.0, Some(70)).lost, Some(Way::Down));
        assert_eq!(echo.lost(68, 0.0, Some(70)).lost, Some(Way::Up));
        assert_eq!(echo.lost(71, 0.0, Some(70)).lost, None, "no later reply");
        assert_eq!(echo.lost(1, 0.0, Some(70)).lost, None, "too old for the window");
        echo.note(u64::MAX, u64::MAX);
        assert!(echo.seen.len() < 10, "numbers of no request take no memory");
    }
}
