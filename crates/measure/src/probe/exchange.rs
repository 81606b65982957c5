//! Requests at a steady pace and their answers: the loop of every prober whose requests overlap.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::Duration;

use lastmile_live::sys::stamped;
use rustix::io::Errno;

use crate::clock;
use crate::load::Stop;

use super::prober::{PATIENCE, Sample};
use super::window::{Answer, Window};

/// A protocol of requests and answers.
pub(crate) trait Exchange {
    /// Whether a request can be sent at this time of the monotonic clock. Where none can, the series has no probe at
    /// that time.
    ///
    /// # Errors
    /// As [`Exchange::send`].
    fn prepare(&mut self, now_ns: u64) -> io::Result<bool> {
        let _ = now_ns;
        Ok(true)
    }

    /// Sends a request. `sent_ns` is its departure by the monotonic clock.
    ///
    /// # Errors
    /// One that ends the exchange, and any of [`is_passing`].
    fn send(&mut self, number: u64, sent_ns: u64) -> io::Result<()>;

    /// The next answer, if one comes in time: the number of its request, and its delays. `window` knows the requests
    /// that wait.
    ///
    /// # Errors
    /// As [`Exchange::send`].
    fn receive(&mut self, window: &Window, patience: Duration) -> io::Result<Option<(u64, Sample)>>;

    /// Tells of requests that are given up, by number and time. Those sent before `before_s` are not kept for an answer
    /// that tells more of them.
    fn give_up(&mut self, requests: Vec<(u64, f64)>, before_s: f64, tell: &mut dyn FnMut(Sample)) {
        let _ = before_s;
        requests.into_iter().for_each(|(_, sent_s)| tell(Sample { sent_s, ..Sample::default() }));
    }

    /// Whether the other end takes no more requests.
    fn is_closed(&self) -> bool {
        false
    }
}

/// Sends a request each `interval` until `stop`, and tells a sample of each.
///
/// # Errors
/// The first of the exchange that does not pass. The requests that wait count as lost.
pub(crate) fn run(
    exchange: &mut impl Exchange,
    interval: Duration,
    now_s: &(dyn Fn() -> f64 + Sync),
    stop: &Stop,
    tell: &mut dyn FnMut(Sample),
) -> io::Result<()> {
    let mut window = Window::default();
    let ended = until_end(exchange, &mut window, interval, now_s, stop, tell);
    exchange.give_up(window.given_up(f64::INFINITY), f64::INFINITY, tell);
    ended
}

fn until_end(
    exchange: &mut impl Exchange,
    window: &mut Window,
    interval: Duration,
    now_s: &(dyn Fn() -> f64 + Sync),
    stop: &Stop,
    tell: &mut dyn FnMut(Sample),
) -> io::Result<()> {
    let mut due_s = now_s();
    let mut ended_s = None;
    loop {
        if stop.is_requested() || exchange.is_closed() {
            let since_s = *ended_s.get_or_insert_with(now_s);
            if window.is_empty() || now_s() - since_s >= PATIENCE.as_secs_f64() {
                return Ok(());
            }
        } else if now_s() >= due_s {
            let sent_ns = clock::now_ns();
            if passing(exchange.prepare(sent_ns))?.unwrap_or(true) {
                let number = window.send(now_s(), sent_ns);
                passing(exchange.send(number, sent_ns))?;
            }
            // A late request does not shift those after it.
            due_s = next_due(due_s, interval.as_secs_f64(), now_s());
        }
        let wait_s = if ended_s.is_some() { 0.02 } else { (due_s - now_s()).clamp(1e-6, 0.05) };
        let received = passing(exchange.receive(window, Duration::from_secs_f64(wait_s)))?.flatten();
        if let Some((number, delays)) = received {
            match window.answer(number) {
                Answer::First { sent_s, reordered } => tell(Sample { sent_s, reordered, ..delays }),
                Answer::Duplicate => tell(Sample { sent_s: now_s(), duplicate: true, ..Sample::default() }),
                Answer::Unknown => {}
            }
        }
        let before_s = now_s() - PATIENCE.as_secs_f64();
        exchange.give_up(window.given_up(before_s), before_s, tell);
    }
}

/// The next packet of a socket and its arrival by the monotonic clock; `None` if none comes in time.
pub(crate) fn receive(udp: &UdpSocket, buffer: &mut [u8], limit: Duration) -> io::Result<Option<(usize, u64)>> {
    passing(receive_or_error(udp, buffer, limit)).map(Option::flatten)
}

/// As [`receive`], with the errors of one packet.
pub(crate) fn receive_or_error(
    udp: &UdpSocket,
    buffer: &mut [u8],
    limit: Duration,
) -> io::Result<Option<(usize, u64)>> {
    udp.set_read_timeout(Some(limit))?;
    let received = stamped::receive(udp.as_fd(), buffer)?;
    Ok(received.map(|(len, stamp)| (len, clock::received_ns(stamp))))
}

/// The result, if its error is not one of a single packet.
pub(crate) fn passing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if is_passing(&error) => Ok(None),
        other => other.map(Some),
    }
}

/// Errors of one packet, after which the socket works on: a signal, an ICMP error of an earlier request, or a machine
/// that does not send now: its device is down or its queue full, it has no route, or a filter drops the packet.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{
        ConnectionRefused, HostUnreachable, Interrupted, NetworkDown, NetworkUnreachable, PermissionDenied, TimedOut,
        WouldBlock,
    };
    matches!(
        error.kind(),
        Interrupted
            | WouldBlock
            | TimedOut
            | ConnectionRefused
            | HostUnreachable
            | NetworkDown
            | NetworkUnreachable
            | PermissionDenied
    ) || matches!(Errno::from_io_error(error), Some(Errno::NOBUFS | Errno::HOSTDOWN | Errno::NONET))
}

/// The next time of a grid of `interval_s` that is not over.
pub(crate) fn next_due(due_s: f64, interval_s: f64, now_s: f64) -> f64 {
    let next_s = due_s + interval_s;
    if next_s >= now_s { next_s } else { next_s + ((now_s - next_s) / interval_s).ceil() * interval_s }
}

/// A difference of two clocks in seconds.
#[expect(clippy::cast_precision_loss, reason = "below a nanosecond for differences below 50 days")]
pub(crate) fn apart_s(later_ns: impl Into<i128>, earlier_ns: impl Into<i128>) -> f64 {
    (later_ns.into() - earlier_ns.into()) as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn a_grid_goes_on_after_a_gap() {
        assert!((next_due(1.0, 0.1, 1.05) - 1.1).abs() < 1e-12);
        assert!((next_due(1.0, 0.1, 1.75) - 1.8).abs() < 1e-9);
    }

    /// A machine that cannot send the requests from 5 to 9, in a time of its own. Answers come at the next look.
    struct Failing<'a> {
        clock_ns: &'a AtomicU64,
        error: Errno,
        answers: VecDeque<u64>,
        stop: &'a Stop,
    }

    impl Exchange for Failing<'_> {
        fn send(&mut self, number: u64, _sent_ns: u64) -> io::Result<()> {
            if number == 20 {
                self.stop.request();
            }
            match number {
                5..=9 => Err(self.error.into()),
                // Sent, and lost further on.
                4 => Ok(()),
                _ => {
                    self.answers.push_back(number);
                    Ok(())
                }
            }
        }

        fn receive(&mut self, _window: &Window, patience: Duration) -> io::Result<Option<(u64, Sample)>> {
            let answer = self.answers.pop_front();
            let waited = if answer.is_some() { Duration::from_millis(1) } else { patience };
            self.clock_ns.fetch_add(u64::try_from(waited.as_nanos()).unwrap(), Ordering::Relaxed);
            Ok(answer.map(|number| (number, Sample { rtt_s: Some(0.001), ..Sample::default() })))
        }
    }

    /// The result, and the numbers of the requests that were answered and lost: request `n` is due at `n` times 100 ms.
    fn failing(error: Errno) -> (io::Result<()>, Vec<u64>, Vec<u64>) {
        let (clock_ns, stop) = (AtomicU64::new(0), Stop::default());
        let now_s = || apart_s(clock_ns.load(Ordering::Relaxed), 0_u64);
        let mut exchange = Failing { clock_ns: &clock_ns, error, answers: VecDeque::new(), stop: &stop };
        let (mut answered, mut lost) = (Vec::new(), Vec::new());
        let mut tell = |sample: Sample| {
            let told = if sample.rtt_s.is_some() { &mut answered } else { &mut lost };
            told.push((sample.sent_s * 10.0).round() as u64);
        };
        let ended = run(&mut exchange, Duration::from_millis(100), &now_s, &stop, &mut tell);
        (ended, answered, lost)
    }

    #[test]
    fn requests_that_cannot_be_sent_are_lost_and_the_series_goes_on() {
        use Errno as E;
        for error in [E::NETUNREACH, E::NETDOWN, E::NOBUFS, E::PERM, E::ACCESS, E::HOSTUNREACH, E::HOSTDOWN, E::AGAIN] {
            let (ended, answered, lost) = failing(error);
            assert!(ended.is_ok(), "{error}");
            assert_eq!(answered, [vec![0, 1, 2, 3], (10..=20).collect()].concat(), "{error}");
            assert_eq!(lost, [4, 5, 6, 7, 8, 9], "{error}");
        }
    }

    /// An exchange that can send nothing when the requests from 5 to 9 are due.
    struct Pausing<'a>(Failing<'a>, u32);

    impl Exchange for Pausing<'_> {
        fn prepare(&mut self, _now_ns: u64) -> io::Result<bool> {
            self.1 += 1;
            Ok(!(6..=10).contains(&self.1))
        }

        fn send(&mut self, number: u64, _sent_ns: u64) -> io::Result<()> {
            if number == 10 {
                self.0.stop.request();
            }
            self.0.answers.push_back(number);
            Ok(())
        }

        fn receive(&mut self, window: &Window, patience: Duration) -> io::Result<Option<(u64, Sample)>> {
            self.0.receive(window, patience)
        }
    }

    #[test]
    fn a_time_without_a_way_to_send_has_no_probes() {
        let (clock_ns, stop) = (AtomicU64::new(0), Stop::default());
        let now_s = || apart_s(clock_ns.load(Ordering::Relaxed), 0_u64);
        let failing = Failing { clock_ns: &clock_ns, error: Errno::BADF, answers: VecDeque::new(), stop: &stop };
        let mut told = Vec::new();
        let mut tell = |sample: Sample| told.push((sample.rtt_s.is_some(), (sample.sent_s * 10.0).round() as u64));
        run(&mut Pausing(failing, 0), Duration::from_millis(100), &now_s, &stop, &mut tell).unwrap();
        let answered = [0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 15].map(|at| (true, at));
        assert_eq!(told, answered);
    }

    #[test]
    fn a_series_that_ends_early_tells_the_requests_that_wait() {
        let (ended, answered, lost) = failing(Errno::BADF);
        assert_eq!(Errno::from_io_error(&ended.unwrap_err()), Some(Errno::BADF));
        assert_eq!((answered, lost), (vec![0, 1, 2, 3], vec![4, 5]));
    }
}
