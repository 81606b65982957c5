//! One page for scrapers, by HTTP: `GET /metrics`.
//!
//! Strangers may reach this server, and it runs beside the thread that carries packets. So it has
//! limits, and none of them depends on what a client says:
//!
//! | limit | value |
//! | --- | --- |
//! | connections at a time | [`MOST`]; for one more, the oldest without a whole request is closed |
//! | time of a connection, from its start to the end of the answer | [`DEADLINE`] |
//! | head of a request | [`LONGEST_HEAD`] bytes, [`MOST_HEADERS`] lines |
//! | body of a request | is not read, and no memory is taken for it |
//! | requests of a connection | 1 |
//! | pages in the making | 1: others wait for it, within their own time |
//! | threads | 1 |
//!
//! Memory is the one resource whose end would take the process along, since Rust aborts when an
//! allocation fails. The most that clients can have this server allocate is [`MOST`] times a head
//! and a page: some megabytes. A panic ends one connection, or the thread of this server; packets
//! are carried without it.

use std::convert::Infallible;
use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::runtime::Runtime;
use tokio::time;

use crate::clients::{self, Attended, Awaited, Clients};
use crate::error::{Context, Error};
use crate::stop::Stop;

/// Connections at a time.
pub const MOST: usize = 32;

/// From the start of a connection to the end of its answer.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// The longest head of a request, in bytes.
pub const LONGEST_HEAD: usize = 16 << 10;

/// The most header lines of a request.
pub const MOST_HEADERS: usize = 64;

/// Where the page is.
pub const PATH: &str = "/metrics";

/// Makes the pages.
pub trait Pages: Clone + Send + Sync + 'static {
    /// The value of the header `Content-Type`.
    const CONTENT_TYPE: &'static str;

    /// The page as it is now, or why there is none.
    fn page(&self) -> impl Future<Output = Result<String, String>> + Send;
}

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
        let listener = TcpListener::bind(address).context(what)?;
        listener.set_nonblocking(true).context(what)?;
        Ok(Self { listener, runtime: clients::runtime().context(what)? })
    }

    /// Answers until `end`.
    ///
    /// # Errors
    /// The kernel has no memory to wait for the port.
    pub fn serve(self, end: &Stop, pages: &impl Pages) -> Result<(), Error> {
        let what = || "serving metrics";
        self.runtime.block_on(async {
            let end = Awaited::new(end).context(what)?;
            let listener = tokio::net::TcpListener::from_std(self.listener).context(what)?;
            let one = |(stream, _), attended| {
                let pages = pages.clone();
                async move {
                    let _ = time::timeout(DEADLINE, converse(stream, attended, pages)).await;
                }
            };
            Clients::at_most(MOST).attend(&end, async || listener.accept().await, one).await.context(what)
        })
    }
}

/// One connection. Its errors concern its client alone.
async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin, attended: Attended, pages: impl Pages) {
    let service = service_fn(|request| {
        attended.set();
        let pages = pages.clone();
        async move { Ok::<_, Infallible>(answer(&request, &pages).await) }
    });
    let _ = protocol().serve_connection(TokioIo::new(stream), service).await;
}

/// HTTP with the limits of a request, for connections with a deadline of their own.
#[must_use]
pub fn protocol() -> http1::Builder {
    let mut protocol = http1::Builder::new();
    protocol
        .keep_alive(false)
        // A client may have said all that it has to say.
        .half_close(true)
        .max_buf_size(LONGEST_HEAD)
        .max_headers(MOST_HEADERS)
        .timer(TokioTimer::new())
        // The connection as a whole has a deadline.
        .header_read_timeout(None);
    protocol
}

/// The body of a request is not read.
async fn answer<P: Pages>(request: &Request<Incoming>, pages: &P) -> Response<Full<Bytes>> {
    let (code, text) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, PATH) => match pages.page().await {
            Ok(text) => (StatusCode::OK, text),
            Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")),
        },
        (_, PATH) => (StatusCode::METHOD_NOT_ALLOWED, "GET and HEAD are what it knows\n".to_owned()),
        _ => (StatusCode::NOT_FOUND, format!("{PATH} is here\n")),
    };
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = code;
    let kind = if code == StatusCode::OK { P::CONTENT_TYPE } else { "text/plain; charset=utf-8" };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if code == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

/// The bytes that a client gets which sends `request`, in pieces of at most `piece` bytes, and then
/// says no more: for tests, in memory.
///
/// # Errors
/// No descriptors left for a runtime.
pub fn answer_to(request: &[u8], piece: usize, pages: &impl Pages) -> Result<Vec<u8>, Error> {
    in_memory(request, piece, |server| async move {
        let _ = time::timeout(DEADLINE, converse(server, Attended::default(), pages.clone())).await;
    })
}

/// The bytes that a client gets from a connection that `serve` carries, for tests: it sends `request` in pieces of at
/// most `piece` bytes, and then says no more.
///
/// # Errors
/// No descriptors left for a runtime.
pub fn in_memory<F: Future<Output = ()>>(
    request: &[u8],
    piece: usize,
    serve: impl FnOnce(DuplexStream) -> F,
) -> Result<Vec<u8>, Error> {
    let runtime = clients::runtime().context(|| "making a runtime")?;
    Ok(runtime.block_on(async {
        let (client, server) = tokio::io::duplex(piece.max(1));
        let (mut from, mut to) = tokio::io::split(client);
        let speaking = async {
            // A server that closes early is no failure.
            let _ = to.write_all(request).await;
            let _ = to.shutdown().await;
        };
        let mut heard = Vec::new();
        let hearing = from.read_to_end(&mut heard);
        let _ = tokio::join!(speaking, hearing, serve(server));
        heard
    }))
}

#[cfg(test)]
mod tests;
