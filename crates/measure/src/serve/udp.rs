//! The UDP port: cookies, echoes, and arrivals of upstream trains.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lastmile_live::sys::stamped;

use crate::clock;
use crate::own::wire::Datagram;

use super::Counted;
use super::session::{Shared, locked};

/// Time after which the thread looks whether the server has ended.
const LOOKING: Duration = Duration::from_millis(50);

/// Space for datagrams that arrive while this thread waits for a processor.
const RECEIVE_BUFFER: usize = 4 << 20;

/// The socket of all sessions.
#[derive(Debug)]
pub(super) struct Socket {
    socket: UdpSocket,
    is_v6: bool,
}

impl Socket {
    pub(super) fn new(socket: socket2::Socket) -> io::Result<Self> {
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(LOOKING))?;
        // As far as the machine lets it grow.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        stamped::enable(socket.as_fd())?;
        let socket = UdpSocket::from(socket);
        let is_v6 = socket.local_addr()?.is_ipv6();
        Ok(Self { socket, is_v6 })
    }

    /// Sends a datagram. A full queue loses it, as one further on would.
    pub(super) fn send(&self, datagram: &[u8], to: SocketAddr) -> io::Result<()> {
        let to = match to.ip() {
            IpAddr::V4(ip) if self.is_v6 => SocketAddr::new(ip.to_ipv6_mapped().into(), to.port()),
            _ => to,
        };
        self.socket.send_to(datagram, to).map(drop)
    }
}

/// Answers datagrams until `ended`.
pub(super) fn answer(shared: &Shared, ended: &AtomicBool) {
    let mut buffer = vec![0; 65_536];
    while !ended.load(Ordering::Relaxed) {
        // Errors are of ICMP and belong to earlier replies.
        if let Ok(Some(stamped::From { len, sender: Some(from), stamp })) =
            stamped::receive_from(shared.socket.socket.as_fd(), &mut buffer)
            && one(shared, &mut buffer[..len], from, clock::received_ns(stamp)).is_none()
        {
            shared.counters.add(Counted::Strays, 1);
        }
    }
}

/// Handles a datagram; `None` for a stray one. The answer replaces it in its buffer, and so is never
/// longer.
fn one(shared: &Shared, buffer: &mut [u8], from: SocketAddr, received_ns: u64) -> Option<()> {
    let (id, datagram) = Datagram::read(buffer)?;
    let session = shared.session(id)?;
    match datagram {
        Datagram::Hello { .. } if session.is_hello(&datagram) => {
            locked(&session.datagrams).asked = Some(from);
            let cookie = Datagram::Cookie { cookie: shared.cookie(id, from) };
            cookie.write(id, buffer).then_some(())?;
            let _ = shared.socket.send(buffer, from);
        }
        Datagram::Request { number, sent_ns } => {
            let mut datagrams = locked(&session.datagrams);
            (datagrams.address == Some(from)).then_some(())?;
            let (highest, window) = datagrams.note(number);
            drop(datagrams);
            let replied_ns = clock::now_ns();
            Datagram::Reply { number, sent_ns, received_ns, replied_ns, highest, window }
                .write(id, buffer)
                .then_some(())?;
            shared.counters.add(Counted::Echoes, 1);
            let _ = shared.socket.send(buffer, from);
        }
        Datagram::Train { train, index, .. } => {
            let mut datagrams = locked(&session.datagrams);
            (datagrams.address == Some(from)).then_some(())?;
            datagrams.receiving.as_mut()?.arrived(train, index, received_ns)?;
        }
        _ => return None,
    }
    Some(())
}
