//! The congestion control of the library, and the flight that the library reports to it alone.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// Bytes of UDP payload that a sender has in flight.
#[derive(Clone, Copy, Default)]
pub(super) struct Bytes {
    /// In flight.
    pub(super) bytes: u64,
    /// The most that were.
    pub(super) most: u64,
    /// Acknowledged so far.
    pub(super) acknowledged: u64,
}

/// The flight of a connection, for others than its controller.
#[derive(Clone, Default)]
pub(super) struct Flight(Arc<[AtomicU64; 3]>);

impl Flight {
    pub(super) fn now(&self) -> Bytes {
        let [bytes, most, acknowledged] = [0, 1, 2].map(|field: usize| self.0[field].load(Ordering::Relaxed));
        Bytes { bytes, most, acknowledged }
    }

    fn is(&self, bytes: u64) {
        self.0[0].store(bytes, Ordering::Relaxed);
        self.0[1].fetch_max(bytes, Ordering::Relaxed);
    }
}

/// Makes controllers whose flight is known.
pub(super) struct Factory<F> {
    pub(super) inner: Arc<F>,
    pub(super) flight: Flight,
}

impl<F: ControllerFactory + Send + Sync + 'static> ControllerFactory for Factory<F> {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::clone(&self.inner).build(now, current_mtu);
        Box::new(Observed { inner, flight: self.flight.clone() })
    }
}

struct Observed {
    inner: Box<dyn Controller>,
    flight: Flight,
}

impl Controller for Observed {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.flight.is(self.flight.now().bytes + bytes);
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.flight.0[2].fetch_add(bytes, Ordering::Relaxed);
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.flight.is(in_flight);
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        self.flight.is(self.flight.now().bytes.saturating_sub(lost_bytes));
        self.inner.on_congestion_event(now, sent, is_persistent, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { inner: self.inner.clone_box(), flight: self.flight.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
