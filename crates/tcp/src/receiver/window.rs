//! The advertised window of a receiver.
//!
//! Published: RFC 9293, section 3.8.6.2.2 (silly windows); RFC 7323, section 2.
//! Differs: a shift rounds the window down, so its right edge may step back by less than one unit (RFC
//! 7323, section 2.4). Segments within the farthest edge are accepted.
//! Cost: a few additions and comparisons for each segment sent.

use lastmile_units::{Duration, Instant};

use super::autotune::{self, Autotune, Held, Read};
use crate::Config;

#[derive(Clone, Debug)]
pub(crate) struct ReceiveWindow {
    /// One past the last octet that was ever admitted.
    edge: u64,
    /// Receive buffer, at most the largest window that the header can express.
    buffer: u32,
    /// Octets received in order while the application does not read.
    unread: u32,
    shift: u8,
    /// The application does not read.
    paused: bool,
    autotune: Option<Box<Autotune>>,
}

impl ReceiveWindow {
    pub(super) fn new(config: &Config) -> Self {
        let buffer = config.buffer().min(0xffff);
        Self { edge: 0, buffer, unread: 0, shift: 0, paused: false, autotune: None }
    }

    /// One past the last octet that was ever admitted.
    #[inline]
    pub(super) fn edge(&self) -> u64 {
        self.edge
    }

    #[cfg(test)]
    pub(super) fn buffer(&self) -> u32 {
        self.buffer
    }

    /// Octets received in order while the application does not read.
    pub(super) fn unread(&self) -> u32 {
        self.unread
    }

    /// The window of a SYN, never scaled (RFC 7323, section 2.2).
    pub(crate) fn for_syn(&mut self, config: &Config) -> u16 {
        let most = if config.autotune { autotune::first_window(config) } else { 0xffff };
        let window = config.buffer().min(most);
        self.edge = self.edge.max(1 + u64::from(window));
        window as u16
    }

    /// Window scaling is agreed: the shift limits the window.
    pub(crate) fn set_shift(&mut self, config: &Config, shift: u8) {
        self.shift = shift;
        self.buffer = self.most(config);
        if config.autotune {
            self.buffer = self.buffer.min(autotune::first_window(config));
        }
    }

    /// The largest window that the shift can express.
    fn most(&self, config: &Config) -> u32 {
        // Linux rounds up to a unit, so that a window below one is not scaled to zero.
        config.buffer().clamp(1 << self.shift, 0xffff << self.shift)
    }

    /// `len` octets were received in order.
    #[inline]
    pub(super) fn on_received(&mut self, len: u64) {
        if self.paused {
            // The buffer bounds the sum, and one unit of the shift.
            self.unread = self.unread.saturating_add(len as u32);
        }
    }

    /// The application reads the data up to `next`. True: the window opens further.
    pub(super) fn tune(
        &mut self,
        now: Instant,
        config: &Config,
        (next, held): (u64, Held),
        echoed: Option<Duration>,
    ) -> bool {
        if self.paused {
            return false;
        }
        let (window, most) = (self.buffer, self.most(config));
        self.buffer = self.autotune(now, config).on_data(now, config, Read { next, window, most, echoed, held });
        self.buffer > window
    }

    /// Data arrived out of order, and SACK reports them.
    pub(super) fn tune_early(&mut self, now: Instant, config: &Config, held: Held) {
        if !self.paused {
            let window = (self.buffer, self.most(config));
            self.buffer = self.autotune(now, config).on_early(config, held, window);
        }
    }

    fn autotune(&mut self, now: Instant, config: &Config) -> &mut Autotune {
        self.autotune.get_or_insert_with(|| Box::new(Autotune::new(now, config)))
    }

    /// The end of the free part of the buffer.
    #[inline]
    fn offered_edge(&self, next: u64) -> u64 {
        next + u64::from(self.buffer.saturating_sub(self.unread))
    }

    /// RFC 9293, section 3.8.6.2.2: the right edge moves by a segment or half of the buffer, not by less.
    #[inline]
    fn step(&self, config: &Config) -> u64 {
        u64::from(config.own_mss()).min(u64::from(self.buffer / 2).max(1))
    }

    /// The window field of a segment that acknowledges all octets below `next`.
    #[inline]
    pub(super) fn advertise(&mut self, config: &Config, next: u64) -> u16 {
        let offered = self.offered_edge(next);
        // Data that are sent mostly repeat an edge that has not moved.
        let moves = offered > self.edge && offered - self.edge >= self.step(config);
        let right = if moves { offered } else { self.edge };
        let left = right.saturating_sub(next);
        let units = (left >> self.shift).clamp(u64::from(left > 0 && self.unread == 0), 0xffff);
        self.edge = self.edge.max(next + (units << self.shift));
        units as u16
    }

    /// The application stops or resumes reading. True: the window opens, and an acknowledgement should report it.
    pub(super) fn set_reading(&mut self, config: &Config, next: u64, reading: bool) -> bool {
        if !core::mem::replace(&mut self.paused, !reading) || !reading {
            return false;
        }
        self.unread = 0;
        self.offered_edge(next).saturating_sub(self.edge) >= self.step(config)
    }
}
