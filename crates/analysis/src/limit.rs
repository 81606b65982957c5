//! The limits of a sender, inferred from packets.
//!
//! Zhang, Breslau, Paxson and Shenker 2002 ("On the Characteristics and Origins of Internet Flow
//! Rates", T-RAT) introduced the split of a flow's time by its limit. Each span between two packets
//! of a direction has the limit that applied after the first of them. The span before a timeout or a
//! tail loss probe has the limit [`Limit::Timer`], and so has the wait for the answer to a probe.

use lastmile_units::Duration;

/// A limit of a sender: the reason why it waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// The application had nothing to send: no data were outstanding, or what was is less than any window.
    Application,
    /// Data in flight plus another segment exceeded the receiver's window.
    ReceiveWindow,
    /// Data were outstanding and the receiver's window had free space: the congestion window, and
    /// indirectly the line.
    CongestionWindow,
    /// One of the two windows; the capture cannot show which.
    Window,
    /// One of the windows during loss recovery.
    Recovery,
    /// A retransmission timer or that of a tail loss probe had to expire, or the probe to be answered.
    Timer,
    /// The handshake was not complete.
    Handshake,
}

impl Limit {
    /// All limits.
    pub const ALL: [Self; 7] = [
        Self::Application,
        Self::ReceiveWindow,
        Self::CongestionWindow,
        Self::Window,
        Self::Recovery,
        Self::Timer,
        Self::Handshake,
    ];

    /// The name in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::ReceiveWindow => "receive_window",
            Self::CongestionWindow => "congestion_window",
            Self::Window => "either_window",
            Self::Recovery => "loss_recovery",
            Self::Timer => "retransmission_timer",
            Self::Handshake => "handshake",
        }
    }
}

/// Time by limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Shares([Duration; Limit::ALL.len()]);

impl Shares {
    pub(crate) fn add(&mut self, limit: Limit, span: Duration) {
        self.0[limit as usize] += span;
    }

    /// Time of one limit turns out to be another's.
    pub(crate) fn revise(&mut self, from: Limit, to: Limit, span: Duration) {
        let span = span.min(self.of(from));
        self.0[from as usize] = self.0[from as usize].saturating_sub(span);
        self.add(to, span);
    }

    /// The limit with the most time.
    pub(crate) fn most(&self) -> Option<Limit> {
        Limit::ALL.into_iter().max_by_key(|limit| self.of(*limit)).filter(|limit| !self.of(*limit).is_zero())
    }

    /// The time with this limit.
    #[must_use]
    pub fn of(&self, limit: Limit) -> Duration {
        self.0[limit as usize]
    }

    /// The total time.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.0.iter().fold(Duration::ZERO, |sum, span| sum + *span)
    }

    /// The share of this limit in the total time; 0 if the total is zero.
    #[must_use]
    pub fn share(&self, limit: Limit) -> f64 {
        let total = self.total();
        if total.is_zero() { 0.0 } else { self.of(limit).as_secs_f64() / total.as_secs_f64() }
    }
}
