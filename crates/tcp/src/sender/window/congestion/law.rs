//! The variants that keep a state from the first acknowledgement on, and their common operations.

use lastmile_units::{Duration, Instant};

use super::Acked;
use super::bbr1::Bbr1;
use super::bbr3::Bbr3;
use super::dctcp::Dctcp;
use super::ledbat::Ledbat;
use super::marked_ack::MarkedAck;
use super::model::{ModelAck, ModelRestart};
use super::prague::Prague;
use super::supplied::Supplied;
use crate::config::ControlLoss;
use crate::sender::delivery_rate::Totals;
use crate::sender::pacing::Pacer;
use crate::{Config, Variant};

/// The state of a variant that measures the path, or the marks on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Law {
    Bbr1(Bbr1),
    Bbr3(Bbr3),
    Dctcp(Dctcp),
    Prague(Prague),
    Ledbat(Ledbat),
    Supplied(Supplied),
}

impl Law {
    /// The law of the settings, if they have one.
    pub(super) fn new(config: &Config, cwnd: u32, seed: u32) -> Option<Self> {
        if let Some(controls) = &config.congestion.control {
            return Some(Self::Supplied(Supplied::new(controls)));
        }
        match config.variant {
            Variant::Bbr => Some(Self::Bbr1(Bbr1::new(cwnd.into(), seed.into()))),
            Variant::Bbr3 => Some(Self::Bbr3(Bbr3::new(cwnd.into(), seed.into()))),
            Variant::Ledbat => Some(Self::Ledbat(Ledbat::new())),
            Variant::Dctcp => Some(Self::Dctcp(Dctcp::new())),
            Variant::Prague => Some(Self::Prague(Prague::new())),
            Variant::Tahoe | Variant::Reno | Variant::NewReno | Variant::Sack | Variant::Cubic => None,
        }
    }

    /// A model of the path sets the window, at every acknowledgement.
    pub(super) fn is_model(&self) -> bool {
        matches!(self, Self::Bbr1(_) | Self::Bbr3(_))
    }

    pub(super) fn is_prague(&self) -> bool {
        matches!(self, Self::Prague(_))
    }

    pub(super) fn counts_marks(&self) -> bool {
        matches!(self, Self::Dctcp(_) | Self::Prague(_))
    }

    pub(super) fn phase_name(&self) -> Option<&'static str> {
        match self {
            Self::Bbr1(bbr) => Some(bbr.phase_name()),
            Self::Bbr3(bbr) => Some(bbr.phase_name()),
            Self::Dctcp(_) | Self::Prague(_) | Self::Ledbat(_) | Self::Supplied(_) => None,
        }
    }

    /// An acknowledgement and its marks.
    pub(super) fn on_marked_ack(&mut self, ack: &MarkedAck) {
        match self {
            Self::Dctcp(dctcp) => dctcp.on_ack(ack),
            Self::Prague(prague) => prague.on_ack(ack),
            Self::Bbr1(_) | Self::Bbr3(_) | Self::Ledbat(_) | Self::Supplied(_) => {}
        }
    }

    /// The window after a mark; `None`: as after a loss.
    pub(super) fn reduced_by_marks(&self, cwnd: u32, mss: u32) -> Option<u32> {
        match self {
            Self::Dctcp(dctcp) => Some(dctcp.reduced(cwnd, mss)),
            Self::Prague(prague) => Some(prague.reduced(cwnd, mss)),
            Self::Bbr1(_) | Self::Bbr3(_) | Self::Ledbat(_) | Self::Supplied(_) => None,
        }
    }

    /// The octets of growth in congestion avoidance; `None`: as Reno.
    pub(super) fn growth(&mut self, cwnd: u32, acked: &Acked) -> Option<u32> {
        match self {
            Self::Prague(prague) => Some(prague.growth(cwnd, acked)),
            Self::Bbr1(_) | Self::Bbr3(_) | Self::Dctcp(_) | Self::Ledbat(_) | Self::Supplied(_) => None,
        }
    }

    /// Window and slow start threshold after an acknowledgement; `None`: as Reno, or [`growth`](Self::growth).
    pub(super) fn window(&mut self, cwnd: u32, ssthresh: u32, acked: &Acked) -> Option<(u32, u32)> {
        match self {
            Self::Ledbat(ledbat) => Some(ledbat.window(cwnd, ssthresh, acked, true)),
            Self::Supplied(control) => Some(control.window(cwnd, ssthresh, acked)),
            Self::Bbr1(_) | Self::Bbr3(_) | Self::Dctcp(_) | Self::Prague(_) => None,
        }
    }

    /// The same after one that finds the window unused; `None`: the window stays.
    pub(super) fn unused_window(&mut self, cwnd: u32, ssthresh: u32, acked: &Acked) -> Option<(u32, u32)> {
        match self {
            Self::Ledbat(ledbat) => Some(ledbat.window(cwnd, ssthresh, acked, false)),
            _ => None,
        }
    }

    /// The slow start threshold that a supplied control chooses after a loss.
    pub(super) fn threshold(&self, loss: &ControlLoss) -> Option<u32> {
        match self {
            Self::Supplied(control) => Some(control.reduced(loss)),
            _ => None,
        }
    }

    /// The rate of pacing that a supplied control chooses, in octets a second.
    pub(crate) fn pacing_rate(&self) -> Option<u64> {
        match self {
            Self::Supplied(control) => control.pacing_rate(),
            _ => None,
        }
    }

    /// The connection is established.
    pub(crate) fn begin(&mut self, now: Instant, cwnd: u64, srtt: Option<Duration>, pacing: &mut Pacer) {
        match self {
            Self::Bbr1(bbr) => bbr.begin(now, cwnd, srtt, pacing),
            Self::Bbr3(bbr) => bbr.begin(now, cwnd, srtt, pacing),
            Self::Dctcp(_) | Self::Prague(_) | Self::Ledbat(_) | Self::Supplied(_) => {}
        }
    }

    /// An acknowledgement. True: the flow counts as limited by the application.
    pub(crate) fn on_ack(&mut self, ack: &mut ModelAck<'_>) -> bool {
        match self {
            Self::Bbr1(bbr) => bbr.on_ack(ack),
            Self::Bbr3(bbr) => bbr.on_ack(ack),
            Self::Dctcp(_) | Self::Prague(_) | Self::Ledbat(_) | Self::Supplied(_) => false,
        }
    }

    /// A loss is found. True: the window stays.
    pub(super) fn on_loss(&mut self, cwnd: u64) -> bool {
        match self {
            Self::Bbr1(bbr) => bbr.on_loss(cwnd),
            Self::Bbr3(bbr) => bbr.on_loss(cwnd),
            Self::Ledbat(ledbat) => ledbat.on_loss(),
            Self::Dctcp(_) | Self::Prague(_) | Self::Supplied(_) => {}
        }
        self.is_model()
    }

    /// The retransmission timer expired.
    pub(crate) fn on_timeout(&mut self, totals: Totals) {
        match self {
            Self::Bbr1(bbr) => bbr.on_timeout(totals),
            Self::Bbr3(bbr) => bbr.on_timeout(),
            Self::Dctcp(_) | Self::Prague(_) | Self::Ledbat(_) | Self::Supplied(_) => {}
        }
    }

    /// A repair was needless. True: the window stays.
    pub(super) fn on_undo(&mut self) -> bool {
        match self {
            Self::Bbr1(bbr) => bbr.on_undo(),
            Self::Bbr3(bbr) => bbr.on_undo(),
            Self::Dctcp(_) | Self::Prague(_) | Self::Ledbat(_) | Self::Supplied(_) => {}
        }
        self.is_model()
    }

    /// Data are sent after a time with nothing in flight.
    pub(crate) fn on_restart(&mut self, restart: &mut ModelRestart<'_>) {
        match self {
            Self::Bbr1(bbr) => bbr.on_restart(restart),
            Self::Bbr3(bbr) => bbr.on_restart(restart),
            Self::Dctcp(_) | Self::Prague(_) | Self::Ledbat(_) | Self::Supplied(_) => {}
        }
    }
}
