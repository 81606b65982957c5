//! Load and probes against a responsiveness server: HTTP/2 over TLS 1.3.
//!
//! Source: draft-ietf-ippm-responsiveness-09, with its defaults. Differences: intervals of 1 s, those of -08; the session,
//! not the stability of the responsiveness, ends a phase; own probes take the connections of the load in turn, not at
//! random; the direction is the session's choice.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::Uri;
use hyper::client::conn::http2::SendRequest;

use crate::error::Error;
use crate::foreign::wire;
use crate::probe::Prober;
use crate::train::Way;

pub(crate) mod config;
mod connection;
mod load;
mod probes;
pub mod stability;
mod tls;

use config::Config;
use connection::{Payload, Route};
pub use load::{Http2Load, MOST_CONNECTIONS};
pub use tls::Trust;

/// The port of HTTPS.
pub const PORT: u16 = 443;
/// The path of a server's configuration.
pub const PATH: &str = "/.well-known/nq";
/// Time for the configuration.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of the largest configuration.
const CONFIG: usize = 64 << 10;
/// Least time between two probes of a kind (`MPS`).
const LEAST_INTERVAL: Duration = Duration::from_millis(10);
/// Share of the goodput that probes may take (`PTC`).
const PROBE_SHARE: f64 = 0.05;
/// Bytes that a foreign and an own probe take together in each direction, mostly certificates: the draft's estimate
/// downstream, and upstream measured against a server with a chain of two.
const PROBE_DOWN_BYTES: f64 = 6000.0;
const PROBE_UP_BYTES: f64 = 2500.0;

/// A responsiveness server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Host name or address, which the server's certificate has.
    pub host: String,
    /// TCP port; [`PORT`] by default.
    pub port: u16,
    /// The certificates that the server may have.
    pub trust: Trust,
}

/// A server whose configuration is known.
#[derive(Debug)]
pub struct Responsiveness {
    shared: Arc<Shared>,
}

impl Responsiveness {
    /// Fetches the configuration.
    ///
    /// # Errors
    /// No server, no trust in it, no HTTP/2, or a configuration without the URLs.
    pub fn open(settings: &Settings) -> Result<Self, Error> {
        let Settings { host, port, trust } = settings;
        let authority = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let peer = format!("responsiveness {authority}");
        let uri: Uri = format!("https://{authority}{PATH}")
            .parse()
            .map_err(|error| Error::Unsupported(format!("`{authority}` is no host: {error}")))?;
        let address = |host: &str, port| wire::resolve(host, port).map(|addresses| addresses[0]);
        let mut route = Route { peer, address: address(host, *port)?, tls: tls::client(trust)? };
        let text = runtime()?.block_on(async {
            let fetch = async {
                let mut opened = route.open(&uri).await?;
                route.get(&mut opened.sender, &uri, CONFIG).await
            };
            let late = |_| std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer in 10 s");
            tokio::time::timeout(PATIENCE, fetch).await.map_err(late).map_err(Error::io(format!("fetching {uri}")))?
        })?;
        let config = config::parse(&text).map_err(|what| route.protocol(&what))?;
        // All URLs are of one host: own probes use the connections of the load.
        let target = config.endpoint.as_deref().or(config.large.host()).unwrap_or(host).trim_matches(['[', ']']);
        route.address = address(target, config.large.port_u16().unwrap_or(PORT))?;
        Ok(Self { shared: Arc::new(Shared::new(host.clone(), route, config)) })
    }

    /// The load.
    #[must_use]
    pub fn load(&self) -> Http2Load {
        Http2Load { shared: Arc::clone(&self.shared), connections: 1 }
    }

    /// The four probers of the draft: TCP, TLS and HTTP over new connections, and HTTP over those of the load. They
    /// belong to the session that runs [`Responsiveness::load`], and run at a time.
    #[must_use]
    pub fn probers(&self) -> Vec<Box<dyn Prober>> {
        probes::all(&self.shared)
    }
}

/// State that load and probes share.
struct Shared {
    name: String,
    route: Route,
    config: Config,
    /// Connections that carry load.
    loaded: Mutex<Vec<SendRequest<Payload>>>,
    next: AtomicUsize,
    /// Goodput of the last interval in bit/s; zero without load.
    down_bps: AtomicU64,
    up_bps: AtomicU64,
    /// No foreign probe waits.
    quiet: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Shared {{ {} }}", self.route.peer)
    }
}

impl Shared {
    fn new(name: String, route: Route, config: Config) -> Self {
        Self {
            name,
            route,
            config,
            loaded: Mutex::default(),
            next: AtomicUsize::new(0),
            down_bps: AtomicU64::new(0),
            up_bps: AtomicU64::new(0),
            quiet: AtomicBool::new(true),
        }
    }

    fn register(&self, sender: SendRequest<Payload>) {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
    }

    fn forget_load(&self) {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.down_bps.store(0, Ordering::Relaxed);
        self.up_bps.store(0, Ordering::Relaxed);
    }

    /// The connections with load in turn; `None` without load.
    fn next_loaded(&self) -> Option<SendRequest<Payload>> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.retain(|sender| !sender.is_closed());
        let index = self.next.fetch_add(1, Ordering::Relaxed).checked_rem(loaded.len())?;
        Some(loaded[index].clone())
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate")]
    fn set_rate(&self, way: Way, rate_bps: f64) {
        let rate = if way == Way::Down { &self.down_bps } else { &self.up_bps };
        rate.store(rate_bps as u64, Ordering::Relaxed);
    }

    /// Time between two probes: longer where they would take more than their share of a loaded direction.
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    fn interval(&self) -> Duration {
        let needed = |bps: &AtomicU64, bytes: f64| match bps.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            bps => Duration::from_secs_f64((bytes * 8.0 / (PROBE_SHARE * bps as f64)).min(5.0)),
        };
        LEAST_INTERVAL.max(needed(&self.down_bps, PROBE_DOWN_BYTES)).max(needed(&self.up_bps, PROBE_UP_BYTES))
    }

    fn set_quiet(&self, quiet: bool) {
        self.quiet.store(quiet, Ordering::Relaxed);
    }

    fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }
}

fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::io("starting a runtime"))
}

/// A configuration is refused in a few words, or has URLs with hosts.
pub(crate) fn hostile(input: &[u8]) {
    match config::parse(input) {
        Ok(config) => {
            let urls = [&config.small, &config.large, &config.upload];
            assert!(urls.iter().all(|url| url.host().is_some() && url.scheme_str() == Some("https")));
        }
        Err(error) => assert!(error.len() <= 300 + 8 * input.len(), "{} bytes for {}", error.len(), input.len()),
    }
}
