//! ICMP echo over IPv4 (RFC 792) and IPv6 (RFC 4443), with the kernel's receive times.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use lastmile_live::clock::{Clock, MonotonicClock, StampMap};
use lastmile_live::sys::icmp::{EchoSocket, usual_ip_len};
use lastmile_units::Instant;

use crate::error::Error;
use crate::load::Stop;

use super::prober::{Kind, PATIENCE, Prober, Sample, Subject};
use super::window::{Answer, Window};

/// Waits for at most `patience` for the next reply: its sequence number and its arrival on `clock`.
pub(crate) fn reply(
    socket: &EchoSocket,
    clock: &MonotonicClock,
    patience: Duration,
) -> io::Result<Option<(u16, Instant)>> {
    socket.wait(patience)?;
    match socket.reply() {
        Ok(Some((sequence, stamp))) => {
            let now = clock.now();
            let arrived = stamp.map_or(now, |stamp| StampMap::measure(clock).monotonic(stamp).min(now));
            Ok(Some((sequence, arrived)))
        }
        Ok(None) => Ok(None),
        // A signal, or an ICMP error that belongs to an earlier request: that one stays without an answer.
        Err(error) if is_passing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Errors of one packet, after which the socket works on.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable, TimedOut, WouldBlock};
    matches!(
        error.kind(),
        Interrupted | WouldBlock | TimedOut | ConnectionRefused | HostUnreachable | NetworkUnreachable
    )
}

/// Echo requests to one target with one code point.
#[derive(Debug)]
pub struct Icmp {
    name: String,
    target: IpAddr,
    code_point: u8,
    interval: Duration,
}

impl Icmp {
    /// Requests of 84 bytes over IPv4, as ping(8) sends them, at this interval. `name` is the target
    /// as the user wrote it.
    #[must_use]
    pub fn new(name: String, target: IpAddr, code_point: u8, interval: Duration) -> Self {
        Self { name, target, code_point, interval }
    }
}

impl Prober for Icmp {
    fn subject(&self) -> Subject {
        Subject { target: self.name.clone(), kind: Kind::Icmp, code_point: self.code_point }
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn run(
        &mut self,
        now_s: &(dyn Fn() -> f64 + Sync),
        stop: &Stop,
        tell: &mut dyn FnMut(Sample),
    ) -> Result<(), Error> {
        let what = || format!("echo requests to {}", self.target);
        let socket =
            EchoSocket::open(SocketAddr::new(self.target, 0), None, self.code_point).map_err(Error::io(what()))?;
        let clock = MonotonicClock::start();
        // Both clocks are monotonic; their distance is read once.
        let zero_s = now_s();
        let mut window = Window::default();
        let mut due_s = now_s();
        let mut ended_s = None;
        loop {
            if stop.is_requested() {
                let since_s = *ended_s.get_or_insert_with(now_s);
                if window.is_empty() || now_s() - since_s >= PATIENCE.as_secs_f64() {
                    break;
                }
            } else if now_s() >= due_s {
                let sent_s = zero_s + clock.now().as_secs_f64();
                let number = window.send(sent_s);
                #[expect(clippy::cast_possible_truncation, reason = "the lowest bits, from which the number follows")]
                socket.request(number as u16, usual_ip_len(self.target)).map_err(Error::io(what()))?;
                // A late request does not shift those after it.
                due_s = next_due(due_s, self.interval.as_secs_f64(), now_s());
            }
            let wait_s = if stop.is_requested() { 0.02 } else { (due_s - now_s()).clamp(0.0, 0.05) };
            let reply = reply(&socket, &clock, Duration::from_secs_f64(wait_s)).map_err(Error::io(what()))?;
            if let Some((sequence, arrived)) = reply
                && let Some(number) = window.number_of(sequence)
            {
                let arrived_s = zero_s + arrived.as_secs_f64();
                match window.answer(number) {
                    Answer::First { sent_s, reordered } => tell(Sample {
                        sent_s,
                        rtt_s: Some((arrived_s - sent_s).max(0.0)),
                        reordered,
                        ..Sample::default()
                    }),
                    Answer::Duplicate => tell(Sample { sent_s: arrived_s, duplicate: true, ..Sample::default() }),
                    Answer::Unknown => {}
                }
            }
            for (_, sent_s) in window.given_up(now_s() - PATIENCE.as_secs_f64()) {
                tell(Sample { sent_s, ..Sample::default() });
            }
        }
        for (_, sent_s) in window.given_up(f64::INFINITY) {
            tell(Sample { sent_s, ..Sample::default() });
        }
        Ok(())
    }
}

/// The next time of a grid of `interval_s` that is not over.
pub(crate) fn next_due(due_s: f64, interval_s: f64, now_s: f64) -> f64 {
    let next_s = due_s + interval_s;
    if next_s >= now_s { next_s } else { next_s + ((now_s - next_s) / interval_s).ceil() * interval_s }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    #[test]
    fn a_grid_goes_on_after_a_gap() {
        assert!((next_due(1.0, 0.1, 1.05) - 1.1).abs() < 1e-12);
        assert!((next_due(1.0, 0.1, 1.75) - 1.8).abs() < 1e-9);
    }

    /// The kernel's own echo over loopback.
    #[test]
    #[ignore = "needs root for a raw socket"]
    fn loopback_answers_over_both_protocols() {
        for target in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
            let mut prober = Icmp::new("loopback".to_owned(), target, 46, Duration::from_millis(5));
            let (begin, stop) = (std::time::Instant::now(), Stop::default());
            let now_s = move || begin.elapsed().as_secs_f64();
            let mut samples = Vec::new();
            let mut tell = |sample| {
                samples.push(sample);
                if samples.len() == 10 {
                    stop.request();
                }
            };
            prober.run(&now_s, &stop, &mut tell).unwrap();
            assert!(samples.iter().all(|sample| sample.rtt_s.is_some_and(|rtt_s| rtt_s < 0.01)), "{samples:?}");
        }
    }
}
