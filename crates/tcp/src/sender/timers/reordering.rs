//! The reordering timer: missing segments have been in flight for long enough to count as lost.
//!
//! Published: RFC 8985, section 6.2, step 5.
//! Cost: nothing without SACKed octets.

use lastmile_units::Instant;

use crate::Config;
use crate::sender::Sender;
use crate::sender::acknowledgement::Delivery;

impl Sender {
    pub(super) fn on_reordering_timer(&mut self, now: Instant, config: &Config) {
        self.arm(now, config, false);
        // The losses found here count, though no octet may be SACKed or retransmitted.
        self.data.flight.begin_by_transmissions();
        let phase = self.data.repair.phase();
        let lost = self.find_losses(now, config, 0);
        if self.data.repair.phase() != phase {
            // As in Linux, PRR counts a segment as delivered.
            self.pace_recovery(Delivery { octets: u64::from(self.mss), lost, ..Delivery::default() });
        }
    }
}
