//! The time to set up a TCP connection: SYN to SYN-ACK, as the kernel measured it.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

use lastmile_live::sys::socket;
use socket2::{Domain, Socket, Type};

use crate::error::Error;
use crate::load::Stop;

use super::exchange::{is_passing, next_due};
use super::prober::{Kind, PATIENCE, Prober, Sample, Subject};

/// Connections to one address with one code point, one after the other.
#[derive(Debug)]
pub struct TcpConnect {
    name: String,
    target: SocketAddr,
    code_point: u8,
    interval: Duration,
}

impl TcpConnect {
    /// Connections at this interval, or slower where one takes longer. `name` is the target as the
    /// user wrote it.
    #[must_use]
    pub fn new(name: String, target: SocketAddr, code_point: u8, interval: Duration) -> Self {
        Self { name, target, code_point, interval }
    }

    /// The round-trip time of one handshake; `None` if it does not end within [`PATIENCE`]. A
    /// refusal (RST) is an answer.
    fn connect(&self) -> std::io::Result<Option<Duration>> {
        let domain = Domain::for_address(self.target);
        let connection = Socket::new(domain, Type::STREAM, None)?;
        socket::set_dscp(connection.as_fd(), self.code_point)?;
        // Closed by RST: a connection of no use leaves nothing behind at either end.
        connection.set_linger(Some(Duration::ZERO))?;
        let begin = Instant::now();
        match connection.connect_timeout(&self.target.into(), PATIENCE) {
            Ok(()) => {
                let whole = begin.elapsed();
                // The kernel's measure has no wake-up of this program in it. A retransmitted SYN
                // has none.
                let of_kernel = Duration::from_micros(socket::info(connection.as_fd())?.srtt_us.into());
                Ok(Some(if of_kernel.is_zero() || of_kernel > whole { whole } else { of_kernel }))
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => Ok(Some(begin.elapsed())),
            Err(error) if is_passing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Prober for TcpConnect {
    fn subject(&self) -> Subject {
        Subject { target: self.name.clone(), kind: Kind::TcpConnect, code_point: self.code_point }
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
        let mut due_s = now_s();
        while !stop.is_requested() {
            let sent_s = now_s();
            let rtt = self.connect().map_err(Error::io(format!("connecting to {}", self.target)))?;
            tell(Sample { sent_s, rtt_s: rtt.map(|rtt| rtt.as_secs_f64()), ..Sample::default() });
            due_s = next_due(due_s, self.interval.as_secs_f64(), now_s());
            while now_s() < due_s && !stop.is_requested() {
                thread::sleep(Duration::from_secs_f64((due_s - now_s()).clamp(0.0, 0.05)));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_listener_and_a_closed_port_both_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap();
        let prober = |target| TcpConnect::new("x".to_owned(), target, 8, Duration::from_millis(10));
        let rtt = prober(open).connect().unwrap().unwrap();
        assert!(rtt < Duration::from_millis(100), "{rtt:?}");
        drop(listener);
        assert!(prober(open).connect().unwrap().is_some());
    }
}
