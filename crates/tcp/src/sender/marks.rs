//! The response to ECN marks: how many an acknowledgement reports, and the reduction for them.
//!
//! Published: RFC 3168, section 6.1.2; RFC 8257, section 3.3 (DCTCP); RFC 9768, section 3.2.5 (responses).
//! Cost: nothing without ECN.

use lastmile_packet::TcpFlags;
use lastmile_units::Instant;

use super::Sender;
use super::acknowledgement::AckInfo;
use super::window::{MarkedAck, Marks};
use crate::{Config, Ecn};

impl Sender {
    /// The marks that an acknowledgement reports, which newly delivers `delivered` octets.
    #[cold]
    pub(super) fn read_marks(&mut self, now: Instant, info: &AckInfo<'_>, delivered: u64) -> Marks {
        let mss = u64::from(self.mss);
        let segment = info.segment;
        let marks = match info.ecn {
            Ecn::Off => Marks::default(),
            Ecn::Classic if segment.flags.contains(TcpFlags::ECE) => Marks { packets: 1, octets: delivered },
            Ecn::Classic => Marks::default(),
            Ecn::Accurate => {
                let accecn = self.data.ecn.accecn.as_deref_mut();
                accecn.map_or_else(Marks::default, |accecn| accecn.read(segment, delivered, mss))
            }
        };
        if self.data.congestion.counts_marks() {
            let (una, max) = (self.data.flight.una(), self.data.flight.max());
            let srtt = self.rtt.srtt();
            let octets = marks.octets.min(delivered);
            self.data.congestion.on_marked_ack(&MarkedAck { now, acked: delivered, marked: octets, una, max, srtt });
        }
        marks
    }

    /// The loss of the octet `lost` may reduce the window. RFC 3168, section 6.1.2: a reduction for a mark answers the
    /// losses of its window of data. RFC 8257, section 3.5: not where marks are counted, since the reduction for them
    /// is less (Linux: `dctcp_react_to_loss`).
    pub(super) fn may_reduce(&self, lost: u64) -> bool {
        self.data.congestion.counts_marks() || self.data.ecn.allows_reduction(lost)
    }

    /// An acknowledgement reports congestion: one reduction for each window of data.
    #[cold]
    pub(super) fn on_ecn_echo(&mut self, config: &Config) {
        if self.data.repair.is_open()
            && self.data.ecn.on_echo(self.data.flight.una(), self.data.flight.max())
            && !self.data.congestion.is_model()
        {
            self.data.stats.ecn_reductions += 1;
            // A mark is proof of congestion (Linux: `tcp_enter_cwr`).
            self.data.repair.undo = None;
            self.data.congestion.on_ecn_echo(config, self.data.repair.style(), u32::from(self.mss));
        }
    }
}
