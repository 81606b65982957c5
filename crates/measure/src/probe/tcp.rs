//! The time to set up a TCP connection: SYN to SYN-ACK, as the kernel measured it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use lastmile_live::sys::socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{Domain, Socket, Type};

use crate::clock;
use crate::error::Error;
use crate::load::Stop;

use super::exchange::{self, Exchange, apart_s, passing};
use super::prober::{Kind, Prober, Sample, Subject};
use super::window::Window;

/// Connections to one address with one code point.
#[derive(Debug)]
pub struct TcpConnect {
    name: String,
    target: SocketAddr,
    code_point: u8,
    interval: Duration,
}

impl TcpConnect {
    /// Connections at this interval, however long one takes. `name` is the target as the user wrote it.
    #[must_use]
    pub fn new(name: String, target: SocketAddr, code_point: u8, interval: Duration) -> Self {
        Self { name, target, code_point, interval }
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
        let mut handshakes = Handshakes { target: self.target, code_point: self.code_point, begun: Vec::new() };
        // A SYN that is retransmitted is answered after later ones, without any reordering of packets.
        let mut tell = |sample| tell(Sample { reordered: false, ..sample });
        exchange::run(&mut handshakes, self.interval, now_s, stop, &mut tell)
            .map_err(Error::io(format!("connecting to {}", self.target)))
    }
}

/// Handshakes that have begun and are not over.
struct Handshakes {
    target: SocketAddr,
    code_point: u8,
    begun: Vec<Handshake>,
}

struct Handshake {
    number: u64,
    socket: Socket,
    /// The target refused it while it was begun: a RST of this machine.
    refused: bool,
}

impl Exchange for Handshakes {
    fn send(&mut self, number: u64, _sent_ns: u64) -> io::Result<()> {
        let socket = Socket::new(Domain::for_address(self.target), Type::STREAM.nonblocking(), None)?;
        socket::set_dscp(socket.as_fd(), self.code_point)?;
        // Closed by RST: a connection of no use leaves nothing behind at either end.
        socket.set_linger(Some(Duration::ZERO))?;
        let refused = match socket.connect(&self.target.into()) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => true,
            Err(error) if Errno::from_io_error(&error) != Some(Errno::INPROGRESS) => return Err(error),
            _ => false,
        };
        self.begun.push(Handshake { number, socket, refused });
        Ok(())
    }

    /// A refusal (RST) is an answer.
    fn receive(&mut self, window: &Window, patience: Duration) -> io::Result<Option<(u64, Sample)>> {
        let Some(over) = self.over(patience)? else { return Ok(None) };
        let now_ns = clock::now_ns();
        let Handshake { number, socket, refused } = self.begun.swap_remove(over);
        let failed = socket.take_error()?.filter(|error| error.kind() != io::ErrorKind::ConnectionRefused);
        if let Some(error) = failed {
            // It has no answer.
            return passing(Err(error)).map(Option::flatten);
        }
        let whole_s = window.sent_ns(number).map(|sent_ns| apart_s(now_ns, sent_ns).max(0.0));
        // The kernel's measure has no wake-up of this program in it. A retransmitted SYN has none.
        let of_kernel_s = if refused { 0.0 } else { f64::from(socket::info(socket.as_fd())?.srtt_us) / 1e6 };
        let rtt_s = whole_s.map(|whole_s| if of_kernel_s > 0.0 { whole_s.min(of_kernel_s) } else { whole_s });
        Ok(Some((number, Sample { rtt_s, ..Sample::default() })))
    }

    fn give_up(&mut self, requests: Vec<(u64, f64)>, _before_s: f64, tell: &mut dyn FnMut(Sample)) {
        for (number, sent_s) in requests {
            self.begun.retain(|handshake| handshake.number != number);
            tell(Sample { sent_s, ..Sample::default() });
        }
    }
}

impl Handshakes {
    /// The first handshake that is over, if one is in time.
    fn over(&self, patience: Duration) -> io::Result<Option<usize>> {
        if let Some(refused) = self.begun.iter().position(|handshake| handshake.refused) {
            return Ok(Some(refused));
        }
        if self.begun.is_empty() {
            thread::sleep(patience);
            return Ok(None);
        }
        let mut waited: Vec<PollFd<'_>> =
            self.begun.iter().map(|handshake| PollFd::new(&handshake.socket, PollFlags::OUT)).collect();
        let limit = Timespec::try_from(patience).map_err(io::Error::other)?;
        poll(&mut waited, Some(&limit))?;
        Ok(waited.iter().position(|one| !one.revents().is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Instant;

    use super::*;

    /// The samples of as many connections each 10 ms.
    fn samples(target: SocketAddr, count: usize) -> Vec<Sample> {
        let mut prober = TcpConnect::new("x".to_owned(), target, 8, Duration::from_millis(10));
        let (begin, stop) = (Instant::now(), Stop::default());
        let mut samples = Vec::new();
        let mut tell = |sample| {
            samples.push(sample);
            if samples.len() == count {
                stop.request();
            }
        };
        prober.run(&move || begin.elapsed().as_secs_f64(), &stop, &mut tell).unwrap();
        samples
    }

    #[test]
    fn a_listener_and_a_closed_port_both_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap();
        // A busy machine delays some, but not all.
        let shortest_s = || samples(open, 3).iter().map(|sample| sample.rtt_s.unwrap()).fold(1.0, f64::min);
        assert!(shortest_s() < 0.1);
        drop(listener);
        assert!(shortest_s() < 0.1);
    }

    /// A listener with one connection in its queue answers no further SYN. Each has a sample of its own at its time,
    /// though none is over before the next one begins.
    #[test]
    fn connections_that_wait_for_long_do_not_hold_back_the_next_ones() {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let full = listener.local_addr().unwrap().as_socket().unwrap();
        let _held = std::net::TcpStream::connect(full).unwrap();
        let mut handshakes = Handshakes { target: full, code_point: 0, begun: Vec::new() };
        let mut window = Window::default();
        for number in 0..5 {
            assert_eq!(window.send(0.0, clock::now_ns()), number);
            handshakes.send(number, 0).unwrap();
            assert_eq!(handshakes.receive(&window, Duration::from_millis(1)).unwrap(), None);
        }
        assert_eq!(handshakes.begun.len(), 5);
        let mut lost = Vec::new();
        handshakes.give_up(vec![(1, 0.1), (3, 0.3)], 0.0, &mut |sample| lost.push((sample.sent_s, sample.rtt_s)));
        assert_eq!((handshakes.begun.len(), lost), (3, vec![(0.1, None), (0.3, None)]));
    }
}
