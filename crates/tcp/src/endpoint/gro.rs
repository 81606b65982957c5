//! Receive offload: data segments that arrive in a burst are one segment for TCP, which acknowledges them together.
//!
//! Published: the behaviour of Linux's generic receive offload (`net/core/gro.c`, `tcp_offload.c`: `tcp_gro_receive`)
//! with a flush timeout (`gro_flush_timeout`), or of a device that gathers interrupts.
//!
//! A segment with data waits for the next one, at most [`AckConfig::gro`](crate::AckConfig::gro) after the first. It is
//! joined if it follows without a gap and has the same acknowledgement, flags, options and ECN field; so a mark or a new
//! timestamp ends the burst. A segment with PSH or less payload than the first ends it, too, and so do 65 535 bytes.
//!
//! Differs: the time is that of one connection, where a device gathers packets of all. Other segments do not wait, but
//! what waits is handled before them.
//! Cost: a boxed segment of 72 bytes while the option is set; a timer for each burst.

use lastmile_packet::{Meta, TcpFlags};
use lastmile_units::{Duration, Instant};

use super::Endpoint;

/// Segments that wait.
#[derive(Clone, Debug)]
pub(super) struct Burst {
    joined: Meta,
    /// The payload of the first segment.
    first_len: u16,
    segments: u16,
    until: Instant,
}

impl Burst {
    /// `segment` continues the burst.
    fn takes(&self, segment: &Meta) -> bool {
        let joined = &self.joined;
        let next = joined.seq.add(u32::from(joined.payload_len()));
        segment.seq == next
            && segment.payload_len() <= self.first_len
            && segment.ack == joined.ack
            && segment.flags.without(TcpFlags::PSH) == joined.flags
            && segment.options() == joined.options()
            && segment.traffic_class == joined.traffic_class
            && joined.ip_len.checked_add(segment.payload_len()).is_some()
    }
}

/// A segment that may wait: data with an acknowledgement, and no flag but PSH and those of ECN.
fn may_wait(segment: &Meta) -> bool {
    let others = TcpFlags::ACE.with(TcpFlags::PSH).with(TcpFlags::ACK);
    segment.payload_len() > 0
        && segment.flags.contains(TcpFlags::ACK)
        && segment.flags.without(others) == TcpFlags::NONE
        && segment.options().sack_count() == 0
}

impl Endpoint {
    /// A segment arrived on a connection with receive offload.
    #[cold]
    pub(super) fn gather(&mut self, now: Instant, segment: &Meta, wait: Duration) {
        let joins = may_wait(segment) && self.burst.as_deref().is_some_and(|burst| burst.takes(segment));
        if !joins {
            self.flush_burst(now);
        }
        if !may_wait(segment) {
            self.on_synchronized(now, segment, 1);
            return;
        }
        let ends = match &mut self.burst {
            Some(burst) => {
                burst.joined.ip_len += segment.payload_len();
                burst.segments += 1;
                segment.payload_len() < burst.first_len
            }
            none => {
                let flags = segment.flags.without(TcpFlags::PSH);
                let until = now.saturating_add(wait);
                let joined = Meta { flags, ..*segment };
                *none = Some(Box::new(Burst { joined, first_len: segment.payload_len(), segments: 1, until }));
                false
            }
        };
        if segment.flags.contains(TcpFlags::PSH)
            && let Some(burst) = &mut self.burst
        {
            burst.joined.flags = burst.joined.flags.with(TcpFlags::PSH);
            self.flush_burst(now);
        } else if ends {
            self.flush_burst(now);
        }
    }

    /// Handles the segments that wait.
    pub(super) fn flush_burst(&mut self, now: Instant) {
        if let Some(burst) = self.burst.take() {
            self.on_synchronized(now, &burst.joined, burst.segments);
        }
    }

    /// The time of a burst may be over.
    pub(super) fn on_burst_timer(&mut self, now: Instant) {
        if self.burst.as_deref().is_some_and(|burst| burst.until <= now) {
            self.flush_burst(now);
        }
    }

    #[inline]
    pub(super) fn burst_until(&self) -> Option<Instant> {
        self.burst.as_deref().map(|burst| burst.until)
    }
}
