//! The state that load and probes of one server share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hyper::client::conn::http2::SendRequest;
use rustix::rand::{GetRandomFlags, getrandom};

use super::Unsent;
use super::config::Config;
use super::connection::Route;
use super::upload::Payload;
use crate::error::Error;
use crate::train::Way;

/// Least time between two probes of a kind (`MPS`).
const LEAST_INTERVAL: Duration = Duration::from_millis(10);
/// Share of the goodput that probes may take (`PTC`).
const PROBE_SHARE: f64 = 0.05;
/// Bytes that a foreign and an own probe take together in each direction, mostly certificates: the draft's estimate
/// downstream, and upstream measured against a server with a chain of two.
const PROBE_DOWN_BYTES: f64 = 6000.0;
const PROBE_UP_BYTES: f64 = 2500.0;

/// The state that load and probes share.
pub(super) struct Shared {
    pub(super) name: String,
    pub(super) route: Route,
    pub(super) config: Config,
    pub(super) unsent: Unsent,
    /// Connections that carry load.
    loaded: Mutex<Vec<SendRequest<Payload>>>,
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
    pub(super) fn new(name: String, route: Route, config: Config, unsent: Unsent) -> Self {
        Self {
            name,
            route,
            config,
            unsent,
            loaded: Mutex::default(),
            down_bps: AtomicU64::new(0),
            up_bps: AtomicU64::new(0),
            quiet: AtomicBool::new(true),
        }
    }

    pub(super) fn register(&self, sender: SendRequest<Payload>) {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
    }

    pub(super) fn forget_load(&self) {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.down_bps.store(0, Ordering::Relaxed);
        self.up_bps.store(0, Ordering::Relaxed);
    }

    /// One of the connections with load, each as likely as the others; `None` without load or random numbers.
    pub(super) fn any_loaded(&self) -> Option<SendRequest<Payload>> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.retain(|sender| !sender.is_closed());
        let mut random = [0; 8];
        getrandom(&mut random, GetRandomFlags::empty()).ok()?;
        // The remainder of 2^64 by a few connections is of no account.
        let index = u64::from_ne_bytes(random).checked_rem(loaded.len() as u64)?;
        loaded.get(usize::try_from(index).ok()?).cloned()
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate")]
    pub(super) fn set_rate(&self, way: Way, rate_bps: f64) {
        let rate = if way == Way::Down { &self.down_bps } else { &self.up_bps };
        rate.store(rate_bps as u64, Ordering::Relaxed);
    }

    /// Time between two probes: longer where they would take more than their share of a loaded direction.
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    pub(super) fn interval(&self) -> Duration {
        let needed = |bps: &AtomicU64, bytes: f64| match bps.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            bps => Duration::from_secs_f64((bytes * 8.0 / (PROBE_SHARE * bps as f64)).min(5.0)),
        };
        LEAST_INTERVAL.max(needed(&self.down_bps, PROBE_DOWN_BYTES)).max(needed(&self.up_bps, PROBE_UP_BYTES))
    }

    pub(super) fn set_quiet(&self, quiet: bool) {
        self.quiet.store(quiet, Ordering::Relaxed);
    }

    pub(super) fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }
}

/// A runtime of one thread.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::io("starting a runtime"))
}
