//! What a sender waited for, as far as packets tell.
//!
//! The idea of splitting a flow's time by its limit is that of Zhang, Breslau, Paxson and Shenker 2002 ("On the Characteristics and Origins
//! of Internet Flow Rates", T-RAT). Each span between two packets of a direction has the limit that held after the first of them; the span
//! before a timeout is told by the timeout itself.

use lastmile_units::Duration;

/// What a sender waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Nothing was outstanding: its application had nothing to send.
    Application,
    /// What was in flight, and another segment, did not fit the receiver's window.
    ReceiveWindow,
    /// Data were outstanding and the receiver's window had room: the congestion window, and behind it the line.
    CongestionWindow,
    /// One of the two windows, and the capture cannot tell which.
    Window,
    /// The same while losses were being repaired.
    Recovery,
    /// A retransmission timer had to expire.
    Timer,
    /// The handshake was not complete.
    Handshake,
}

impl Limit {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Application,
        Self::ReceiveWindow,
        Self::CongestionWindow,
        Self::Window,
        Self::Recovery,
        Self::Timer,
        Self::Handshake,
    ];

    /// Its name in outputs.
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

    /// The time that this limit held.
    #[must_use]
    pub fn of(&self, limit: Limit) -> Duration {
        self.0[limit as usize]
    }

    /// All time together.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.0.iter().fold(Duration::ZERO, |sum, span| sum + *span)
    }

    /// The share of all time that this limit held; 0 where there is none.
    #[must_use]
    pub fn share(&self, limit: Limit) -> f64 {
        let total = self.total();
        if total.is_zero() { 0.0 } else { self.of(limit).as_secs_f64() / total.as_secs_f64() }
    }
}
