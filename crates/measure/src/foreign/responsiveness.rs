//! Load and probes against a responsiveness server: HTTP/2 over TLS 1.3.
//!
//! Source: draft-ietf-ippm-responsiveness-09, with its defaults. Differences: intervals of 1 s, those of -08; the
//! session, not the stability of the responsiveness, ends a phase, nor does a connection that fails while others live;
//! the direction is the session's choice.

use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;

use crate::error::Error;
use crate::foreign::wire;
use crate::probe::Prober;

pub(crate) mod config;
mod connection;
mod load;
mod probes;
mod shared;
pub mod stability;
mod tls;
mod upload;

pub use config::PORT;
use connection::Route;
pub use load::{Http2Load, MOST_CONNECTIONS};
use shared::{Shared, runtime};
pub use tls::Trust;

/// The path of a server's configuration.
pub const PATH: &str = "/.well-known/nq";
/// Time for the configuration.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of the largest configuration.
const CONFIG: usize = 64 << 10;
/// A responsiveness server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Host name or address, which the server's certificate has.
    pub host: String,
    /// TCP port; [`PORT`] by default.
    pub port: u16,
    /// The certificates that the server may have.
    pub trust: Trust,
    /// Bytes that uploads keep unsent.
    pub unsent: Unsent,
}

/// Bytes that an upload keeps unsent, behind which its own probes wait.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Unsent {
    /// 5 ms of a connection's rate, as the draft asks (section 6.1.1).
    #[default]
    FiveMilliseconds,
    /// As many as the kernel's socket buffer takes, in frames and records of 16 kB: uploads of most programs.
    SocketBuffer,
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
    /// No server, no trust in it, no HTTP/2, or a configuration of another version or without URLs of one host.
    pub fn open(settings: &Settings) -> Result<Self, Error> {
        let Settings { host, port, trust, unsent } = settings;
        let authority = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let peer = format!("responsiveness {authority}");
        let uri: Uri = format!("https://{authority}{PATH}")
            .parse()
            .map_err(|error| Error::Unsupported(format!("`{authority}` is no host: {error}")))?;
        let address = |host: &str, port| wire::resolve(host, port).map(|addresses| addresses[0]);
        let mut route = Route { peer, address: address(host, *port)?, tls: tls::client(trust)? };
        let text = runtime()?.block_on(async {
            let fetch = async {
                let mut opened = route.open(&uri, None).await?;
                route.get(&mut opened.sender, &uri, CONFIG).await
            };
            let late = |_| std::io::Error::new(std::io::ErrorKind::TimedOut, "no answer in 10 s");
            tokio::time::timeout(PATIENCE, fetch).await.map_err(late).map_err(Error::io(format!("fetching {uri}")))?
        })?;
        let config = config::parse(&text).map_err(|what| route.protocol(&what))?;
        // All URLs are of one host: own probes use the connections of the load.
        let target = config.endpoint.as_deref().or(config.large.host()).unwrap_or(host).trim_matches(['[', ']']);
        route.address = address(target, config.large.port_u16().unwrap_or(PORT))?;
        Ok(Self { shared: Arc::new(Shared::new(host.clone(), route, config, *unsent)) })
    }

    /// The load.
    #[must_use]
    pub fn load(&self) -> Http2Load {
        Http2Load { shared: Arc::clone(&self.shared), connections: 1, warnings: Vec::new() }
    }

    /// The four probers of the draft: TCP, TLS and HTTP over new connections, and HTTP over those of the load. They
    /// belong to the session that runs [`Responsiveness::load`], and run at a time.
    #[must_use]
    pub fn probers(&self) -> Vec<Box<dyn Prober>> {
        probes::all(&self.shared)
    }
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
