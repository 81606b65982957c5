//! The UDP port: cookies, echoes, and arrivals of upstream trains.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use lastmile_live::sys::stamped;

use crate::clock;
use crate::own::wire::Datagram;

use super::counters::Counted;
use super::locked::locked;
use super::session::Shared;

/// Answers datagrams until `ended`.
pub(super) fn answer(shared: &Shared, ended: &AtomicBool) {
    let mut buffer = vec![0; 65_536];
    while !ended.load(Ordering::Relaxed) {
        // Errors are of ICMP and belong to earlier replies.
        if let Ok(Some(stamped::From { len, sender: Some(from), stamp })) =
            stamped::receive_from(shared.socket.as_fd(), &mut buffer)
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
