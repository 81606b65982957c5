//! Connections: TCP, TLS 1.3 and HTTP/2, each step timed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::upload::{KEPT, Payload, Secured, Upload};
use crate::error::Error;

/// Receive windows of HTTP/2: no limit beside TCP's.
const STREAM_WINDOW: u32 = 16 << 20;
const CONNECTION_WINDOW: u32 = 1 << 30;

/// A way to a server.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) peer: String,
    pub(super) address: SocketAddr,
    pub(super) tls: Arc<ClientConfig>,
}

/// A connection of TCP and the time of its handshake.
pub(super) struct Connected {
    socket: std::net::TcpStream,
    pub(super) tcp: Duration,
}

/// A connection that takes requests, and the time that TLS took.
pub(super) struct Opened {
    pub(super) sender: SendRequest<Payload>,
    /// A further descriptor of the socket, for the kernel's counters.
    pub(super) socket: std::net::TcpStream,
    pub(super) tls: Duration,
}

impl Route {
    /// Opens a connection for requests to `uri`, one of them this upload. Its driver is a task of the current runtime.
    pub(super) async fn open(&self, uri: &Uri, upload: Option<Arc<Upload>>) -> Result<Opened, Error> {
        let connected = self.connect().await?;
        self.secure(connected, uri, upload).await
    }

    /// The first step of [`Route::open`]: TCP.
    pub(super) async fn connect(&self) -> Result<Connected, Error> {
        let what = || format!("{}: connecting to {}", self.peer, self.address);
        let start = Instant::now();
        let tcp = TcpStream::connect(self.address).await.map_err(Error::io(what()))?;
        let took = start.elapsed();
        tcp.set_nodelay(true).map_err(Error::io(what()))?;
        Ok(Connected { socket: tcp.into_std().map_err(Error::io(what()))?, tcp: took })
    }

    /// The second step of [`Route::open`]: TLS, and the client's part of HTTP/2.
    pub(super) async fn secure(
        &self,
        Connected { socket, .. }: Connected,
        uri: &Uri,
        upload: Option<Arc<Upload>>,
    ) -> Result<Opened, Error> {
        let start = Instant::now();
        let what = || format!("{}: connecting to {}", self.peer, self.address);
        let further = socket.try_clone().map_err(Error::io(what()))?;
        let tcp = TcpStream::from_std(socket).map_err(Error::io(what()))?;
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(|error| self.protocol(&error))?;
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        let tls = connector.connect(name, tcp).await.map_err(Error::io(format!("{}: TLS", self.peer)))?;
        if tls.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err(self.protocol(&"offers no HTTP/2"));
        }
        let took = start.elapsed();
        let (sender, driver) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(KEPT)
            .handshake(TokioIo::new(Secured { tls, upload }))
            .await
            .map_err(|error| self.protocol(&error))?;
        tokio::spawn(driver);
        Ok(Opened { sender, socket: further, tls: took })
    }

    /// Sends a request and waits for the head of its answer, which must be a success.
    pub(super) async fn request(
        &self,
        sender: &mut SendRequest<Payload>,
        uri: &Uri,
        payload: Payload,
    ) -> Result<Response<Incoming>, Error> {
        let request = Request::builder()
            .uri(uri.clone())
            .header("user-agent", concat!("lastmile/", env!("CARGO_PKG_VERSION")))
            .header("accept-encoding", "identity");
        let request = match payload.0 {
            None => request.method(Method::GET),
            Some(_) => request.method(Method::POST).header("content-type", "application/octet-stream"),
        };
        let request = request.body(payload).map_err(|error| self.protocol(&error))?;
        sender.ready().await.map_err(|error| self.protocol(&error))?;
        let answer = sender.send_request(request).await.map_err(|error| self.protocol(&error))?;
        match answer.status() {
            status if status.is_success() => Ok(answer),
            status if status.as_u16() == 429 || status.is_server_error() => {
                let after = answer.headers().get("retry-after").and_then(|value| value.to_str().ok());
                let after = after.map(|after| format!("; it asks to retry after {after}")).unwrap_or_default();
                Err(Error::Refused { peer: self.peer.clone(), reason: format!("{uri} answers {status}{after}") })
            }
            status => Err(self.protocol(&format!("{uri} answers {status}; 200 is right"))),
        }
    }

    /// A small object, whole, at most `limit` bytes of it.
    pub(super) async fn get(
        &self,
        sender: &mut SendRequest<Payload>,
        uri: &Uri,
        limit: usize,
    ) -> Result<Vec<u8>, Error> {
        let mut body = self.request(sender, uri, Payload(None)).await?.into_body();
        let mut whole = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.protocol(&error))?;
            whole.extend(frame.data_ref().into_iter().flatten());
            if whole.len() > limit {
                return Err(self.protocol(&format!("{uri} has more than {limit} bytes")));
            }
        }
        Ok(whole)
    }

    pub(super) fn protocol(&self, what: &dyn std::fmt::Display) -> Error {
        Error::Protocol { peer: self.peer.clone(), what: what.to_string() }
    }
}
