//! A congestion control that the caller supplies: teaching, and first experiments.
//!
//! As in Linux, the repair of losses is apart from the control: SACK, RACK and PRR stay those of the sender, and the
//! control says how the window grows and how far a loss reduces it. Its calls correspond to `cong_avoid` and `ssthresh`
//! of Linux's `tcp_congestion_ops`.
//! Cost: a virtual call and a lock for each acknowledgement; nothing for other senders.

use core::fmt;
use std::sync::Arc;

use lastmile_units::{Duration, Instant};

/// The congestion control of one connection, from its first acknowledgement on.
pub trait Control: Send {
    /// New data are acknowledged outside of fast recovery, and the window was used. Returns the congestion window and
    /// the slow start threshold.
    fn on_ack(&mut self, ack: &ControlAck) -> (u32, u32);

    /// A loss, a timeout or a mark reduces the window. Returns the slow start threshold, which is also the window in
    /// and after the repair. After a timeout the window is one segment.
    fn on_loss(&mut self, loss: &ControlLoss) -> u32;

    /// The rate of pacing in octets a second, asked after each acknowledgement of a sender that paces
    /// ([`super::CongestionConfig::pacing`]). `None`: the rule of Linux, window / round trip.
    fn pacing_rate(&mut self) -> Option<u64> {
        None
    }
}

/// An acknowledgement of new data, as a [`Control`] sees it. Windows are octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlAck {
    /// The time.
    pub now: Instant,
    /// Octets that it acknowledges.
    pub octets: u64,
    /// Octets among them that arrived with CE.
    pub marked: u64,
    /// Octets of a full segment.
    pub mss: u32,
    /// The congestion window.
    pub cwnd: u32,
    /// The slow start threshold.
    pub ssthresh: u32,
    /// The round trip that it measured. `None` unless the timeout is that of Linux ([`super::Rto::Linux`]).
    pub rtt: Option<Duration>,
    /// The smoothed round trip.
    pub srtt: Option<Duration>,
    /// The shortest round trip of the connection; with [`rtt`](Self::rtt) only.
    pub least_rtt: Option<Duration>,
    /// The data were retransmitted after a timeout.
    pub after_timeout: bool,
}

/// The cause of a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossKind {
    /// A segment is lost, and others arrived.
    Loss,
    /// The retransmission timer expired.
    Timeout,
    /// The receiver reports a mark (ECN).
    Mark,
}

/// An event that reduces the window. Windows are octets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ControlLoss {
    /// The kind.
    pub kind: LossKind,
    /// The octets that Reno halves: those in flight (RFC 5681, equation 4), or the window itself where the sender
    /// repairs losses as Linux does.
    pub octets: u32,
    /// Octets of a full segment.
    pub mss: u32,
    /// The congestion window.
    pub cwnd: u32,
    /// The slow start threshold.
    pub ssthresh: u32,
}

/// Makes a [`Control`] for each connection. Equal only to its clones.
#[derive(Clone)]
pub struct Controls(Arc<dyn Fn() -> Box<dyn Control> + Send + Sync>);

impl Controls {
    /// Controls that `make` makes. Connections call it before their first acknowledgement or loss.
    #[must_use]
    pub fn new(make: impl Fn() -> Box<dyn Control> + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    pub(crate) fn make(&self) -> Box<dyn Control> {
        (self.0)()
    }
}

impl PartialEq for Controls {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Controls {}

impl fmt::Debug for Controls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Controls")
    }
}
