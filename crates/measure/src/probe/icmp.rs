//! ICMP echo over IPv4 (RFC 792) and IPv6 (RFC 4443), with the kernel's receive times.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use lastmile_live::sys::icmp::{EchoSocket, usual_ip_len};

use crate::clock;
use crate::error::Error;
use crate::load::Stop;

use super::exchange::{self, Exchange, apart_s};
use super::prober::{Kind, Prober, Sample, Subject};
use super::window::Window;

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
        let mut requests = Requests { socket, ip_len: usual_ip_len(self.target) };
        exchange::run(&mut requests, self.interval, now_s, stop, tell).map_err(Error::io(what()))
    }
}

struct Requests {
    socket: EchoSocket,
    ip_len: usize,
}

impl Exchange for Requests {
    #[expect(clippy::cast_possible_truncation, reason = "the lowest bits, from which the number follows")]
    fn send(&mut self, number: u64, _sent_ns: u64) -> io::Result<()> {
        self.socket.request(number as u16, self.ip_len)
    }

    fn receive(&mut self, window: &Window, patience: Duration) -> io::Result<Option<(u64, Sample)>> {
        self.socket.wait(patience)?;
        let Some((sequence, stamp)) = self.socket.reply()? else { return Ok(None) };
        let Some(number) = window.number_of(sequence) else { return Ok(None) };
        let rtt_s = window.sent_ns(number).map(|sent_ns| apart_s(clock::received_ns(stamp), sent_ns).max(0.0));
        Ok(Some((number, Sample { rtt_s, ..Sample::default() })))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

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
            // A busy machine delays some, but not all.
            let shortest_s = samples.iter().map(|sample| sample.rtt_s.unwrap()).fold(1.0, f64::min);
            assert!(shortest_s < 0.01, "{samples:?}");
        }
    }
}
