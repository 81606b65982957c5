//! The port of the dashboard: connections, and their limits.
//!
//! | limit | value |
//! | --- | --- |
//! | connections at a time | [`MOST`]; for one more, the oldest without a whole request is closed |
//! | connections with reports | [`crate::hub::MOST_LISTENERS`] of them |
//! | time of a connection | [`DEADLINE`]; [`LONG`] for a question; none with reports, as long as the browser reads |
//! | head of a request | [`LONGEST_HEAD`] bytes, [`MOST_HEADERS`] lines |
//! | body of a request | 64 kB |
//! | bytes that wait in the kernel for one browser | [`SEND_BUFFER`] |
//! | requests of a connection | 1 |
//! | threads | 1, and 1 while a question is answered |

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use lastmile_live::Error;
use lastmile_live::clients::{self, Attended, Awaited, Clients};
use lastmile_live::error::Context;
pub use lastmile_live::http::{LONGEST_HEAD, MOST_HEADERS};
use lastmile_live::http::{in_memory, protocol};
use lastmile_live::stop::Stop;
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Runtime;
use tokio::select;

use crate::connection::Connection;
pub use crate::connection::{DEADLINE, LONG};
use crate::guard::Guard;
use crate::hub::{Hub, count};
use crate::routes::Shared;

/// Connections at a time.
pub const MOST: usize = 48;

/// Bytes that the kernel keeps for a browser that does not read. (Linux doubles it for its own needs.)
pub const SEND_BUFFER: usize = 128 << 10;

/// A port that is open.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    runtime: Runtime,
}

impl Server {
    /// Opens the port.
    ///
    /// # Errors
    /// The address is not of this machine, or the port is taken.
    pub fn bind(address: SocketAddr) -> Result<Self, Error> {
        let what = || format!("listening at {address}");
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).context(what)?;
        socket.set_reuse_address(true).context(what)?;
        // Accepted connections inherit it.
        socket.set_send_buffer_size(SEND_BUFFER).context(what)?;
        socket.bind(&address.into()).context(what)?;
        socket.listen(128).context(what)?;
        socket.set_nonblocking(true).context(what)?;
        Ok(Self { listener: socket.into(), runtime: clients::runtime().context(what)? })
    }

    /// The address, with the port that the kernel chose.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn address(&self) -> Result<SocketAddr, Error> {
        self.listener.local_addr().context(|| "asking for the address of the dashboard")
    }

    /// Answers until `end`.
    ///
    /// # Errors
    /// The kernel has no memory to wait for the port.
    pub fn serve(self, end: &Stop, hub: &Arc<Hub>, guard: Guard) -> Result<(), Error> {
        let what = || "serving the dashboard";
        let shared = Arc::new(Shared::new(Arc::clone(hub), guard));
        let served = self.runtime.block_on(async {
            let end = Awaited::new(end).context(what)?;
            let listener = tokio::net::TcpListener::from_std(self.listener).context(what)?;
            let mut clients = Clients::at_most(MOST);
            let one = |(stream, _), attended| {
                let shared = Arc::clone(&shared);
                async move { converse(stream, &attended, &shared).await }
            };
            let ended = clients.attend(&end, async || listener.accept().await, one).await;
            shared.hub.close();
            clients.finish().await;
            ended.context(what)
        });
        hub.close();
        served
    }
}

/// One connection. Its errors concern its client alone.
async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin, attended: &Attended, shared: &Arc<Shared>) {
    let connection = Connection::default();
    let service = service_fn(|request| {
        attended.set();
        let connection = &connection;
        async move { Ok::<_, Infallible>(shared.answer(request, connection).await) }
    });
    let conversation = protocol().serve_connection(TokioIo::new(stream), service);
    select! {
        ended = conversation => {
            if ended.is_err_and(|error| error.is_parse() || error.is_incomplete_message()) {
                count(&shared.hub.counts().malformed);
            }
        }
        () = connection.end.notified() => {}
        () = connection.over() => count(&shared.hub.counts().malformed),
    }
}

/// The bytes that a client gets which sends `request`, in pieces of at most `piece` bytes, and then
/// says no more: for tests, in memory.
///
/// # Errors
/// No descriptors left for a runtime.
pub fn answer_to(request: &[u8], piece: usize, hub: &Arc<Hub>, guard: Guard) -> Result<Vec<u8>, Error> {
    let shared = Arc::new(Shared::new(Arc::clone(hub), guard));
    in_memory(request, piece, |server| async move { converse(server, &Attended::default(), &shared).await })
}

#[cfg(test)]
mod tests;
