//! The settings of an endpoint. Equal endpoints share one configuration.
//!
//! [`Config`] holds the variant and the values that headers and the handshake carry. A group of settings of one part
//! has its own type and file.

mod acks;
mod congestion;
mod control;
mod ecn;
mod repair;
mod timers;

use core::fmt;

use lastmile_units::ByteCount;

pub use acks::AckConfig;
pub use congestion::{ByteCounting, CongestionConfig, InitialWindow, SlowStart};
pub use control::{Control, ControlAck, ControlLoss, Controls, LossKind};
pub use ecn::Ecn;
pub use repair::{LossDetection, Recovery, RepairConfig};
pub use timers::{Rto, TimerConfig};

/// How the sender reacts to loss, and how its window grows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Variant {
    /// Slow start, congestion avoidance and fast retransmit (Jacobson 1988): every loss leads to slow start from one
    /// segment.
    Tahoe,
    /// Fast recovery that the first new acknowledgement ends (RFC 5681, section 3.2).
    Reno,
    /// Fast recovery over partial acknowledgements (RFC 6582).
    NewReno,
    /// Recovery by selective acknowledgements (RFC 6675); without SACK from the peer as [`Variant::NewReno`].
    #[default]
    Sack,
    /// The window of RFC 9438; recovery as [`Variant::Sack`].
    Cubic,
    /// BBR, version 1, as in Linux: window and pacing rate follow from the delivery rate and the shortest round trip.
    /// Repairs as [`Variant::Sack`].
    Bbr,
    /// BBR, version 3 (draft-ietf-ccwg-bbr): as [`Variant::Bbr`], with bounds that losses set.
    Bbr3,
    /// Data Center TCP (RFC 8257): a reduction by the fraction of marks. Needs [`Ecn`]. Repairs as [`Variant::Sack`].
    Dctcp,
    /// Prague, the control of L4S: as [`Variant::Dctcp`], paced, with ECT(1) and a growth that depends little on the
    /// round trip. Needs [`Ecn::Accurate`].
    Prague,
    /// LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus): a background transfer that yields to others by the delay in
    /// queues. Needs [`Rto::Linux`]. Repairs as [`Variant::Sack`].
    Ledbat,
}

impl Variant {
    /// True if packets of the variant carry ECT(1), for which a bottleneck with L4S has a queue of its own (RFC 9331).
    #[must_use]
    pub const fn is_l4s(self) -> bool {
        matches!(self, Self::Prague)
    }

    /// A control of the caller may take the place of the variant's.
    pub(crate) const fn takes_control(self) -> bool {
        matches!(self, Self::Tahoe | Self::Reno | Self::NewReno | Self::Sack)
    }

    /// Segments are paced whatever [`CongestionConfig::pacing`] says.
    #[must_use]
    pub const fn paces(self) -> bool {
        self.measures_rates() || self.is_l4s()
    }

    /// The sender measures delivery rates, and paces its segments. Needs SACK, [`Rto::Linux`] and
    /// [`LossDetection::Rack`], which record each transmission.
    #[must_use]
    pub const fn measures_rates(self) -> bool {
        matches!(self, Self::Bbr | Self::Bbr3)
    }
}

/// The window scale option (RFC 7323, section 2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WindowScale {
    /// Not offered: the window ends at 65 535 bytes, here and at the peer.
    Off,
    /// The least shift that can express the whole receive window.
    Auto,
    /// This shift, 0 to 14.
    Shift(u8),
}

/// The settings of an endpoint. Equal endpoints share one configuration.
///
/// Every field of [`Config::default`] may be changed; [`Config::check`] validates the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Sender variant. Default [`Variant::Sack`].
    pub variant: Variant,
    /// Payload bytes of a full data segment, 1 to 65 435. TCP options are added to it, unlike in RFC 6691, where they
    /// shorten the payload: `mss` is the payload that a user sees. The peer may ask for less. Default 1460.
    pub mss: u16,
    /// The receive buffer, from which the advertised window follows: 1 byte to 1 GiB. Default 64 KiB - 1.
    pub receive_window: ByteCount,
    /// The send buffer: octets that are not acknowledged and octets that are not sent take at most this, 1 byte to
    /// 1 GiB. The application fills it at once. Default none: no limit.
    pub send_buffer: Option<ByteCount>,
    /// The window begins at 64 KiB and grows to `receive_window` as data arrive (dynamic right-sizing), as in Linux.
    /// Default off: the window is `receive_window` from the beginning.
    pub autotune: bool,
    /// Offer window scaling. Default [`WindowScale::Auto`].
    pub window_scale: WindowScale,
    /// Offer SACK (RFC 2018), and send blocks when the peer permits too. Default on.
    pub sack: bool,
    /// Offer timestamps (RFC 7323), which add 12 bytes to every header. Default off.
    pub timestamps: bool,
    /// Explicit congestion notification. Default [`Ecn::Off`].
    pub ecn: Ecn,
    /// Packets are IPv6: headers of 60 bytes instead of 40. Default off.
    pub ipv6: bool,
    /// DSCP of every packet, 0 to 63. Default 0.
    pub dscp: u8,
    /// The timing of acknowledgements.
    pub acks: AckConfig,
    /// The congestion window.
    pub congestion: CongestionConfig,
    /// The detection and repair of losses.
    pub repair: RepairConfig,
    /// The timers.
    pub timers: TimerConfig,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            variant: Variant::default(),
            mss: 1460,
            receive_window: ByteCount::new(65_535),
            send_buffer: None,
            autotune: false,
            window_scale: WindowScale::Auto,
            sack: true,
            timestamps: false,
            ecn: Ecn::Off,
            ipv6: false,
            dscp: 0,
            acks: AckConfig::default(),
            congestion: CongestionConfig::default(),
            repair: RepairConfig::default(),
            timers: TimerConfig::default(),
        }
    }
}

/// An invalid field of a [`Config`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// Name of the field.
    pub field: &'static str,
    /// The values that it may have.
    pub allowed: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must be {}", self.field, self.allowed)
    }
}

impl core::error::Error for ConfigError {}

/// The bytes that timestamps take from the payload of each segment (RFC 7323, appendix A).
pub(crate) const TIMESTAMPS_BYTES: u16 = 12;
/// The largest payload with which the longest headers (IPv6 40, TCP 20, options 40) fit into 65 535 bytes.
pub(crate) const MAX_MSS: u16 = 65_435;
/// Just above the largest window that the header can express: 65 535 shifted by 14 (RFC 7323, section 2.3).
pub(crate) const MAX_WINDOW: u32 = 1 << 30;
/// RFC 7323, section 2.3: the shift count is at most 14.
pub(crate) const MAX_WINDOW_SHIFT: u8 = 14;

/// A variant that measures delivery rates needs the times of transmission.
const RECORDED: &str = "\"linux\" with a variant that measures delivery rates";
const RECORDED_RACK: &str = "\"rack\" with a variant that measures delivery rates";
const RECORDED_SACK: &str = "true with a variant that measures delivery rates";

impl Config {
    /// A copy of the settings with the caller's congestion control, which starts slowly by itself. A variant with a law
    /// of its own becomes [`Variant::Sack`], which repairs losses as the others do. `paces`: segments are paced.
    #[must_use]
    pub fn with_control(mut self, controls: Controls, paces: bool) -> Self {
        if !self.variant.takes_control() {
            self.variant = Variant::Sack;
        }
        self.congestion.slow_start = SlowStart::Standard;
        self.congestion.pacing |= paces;
        self.congestion.control = Some(controls);
        self
    }

    /// The first field that is out of its range.
    ///
    /// An [`Endpoint`](crate::Endpoint) never panics over such a field: it uses the nearest allowed value.
    ///
    /// # Errors
    /// Names the field and its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let sizes = 1..=u64::from(MAX_WINDOW);
        let timers = &self.timers;
        let any = !self.variant.measures_rates();
        let checks = [
            ((1..=MAX_MSS).contains(&self.mss), "mss", "1 to 65435 bytes"),
            (sizes.contains(&self.receive_window.as_u64()), "receive_window", "1 byte to 1 GiB"),
            (self.send_buffer.is_none_or(|buffer| sizes.contains(&buffer.as_u64())), "send_buffer", "1 byte to 1 GiB"),
            (self.congestion.initial_window != InitialWindow::Segments(0), "initial_window", "at least 1 segment"),
            (self.acks.ack_every >= 1, "ack_every", "at least 1"),
            (self.congestion.byte_counting != ByteCounting::Abc { limit: 0 }, "byte_counting", "a limit of at least 1"),
            (
                !matches!(self.window_scale, WindowScale::Shift(shift) if shift > MAX_WINDOW_SHIFT),
                "window_scale",
                "a shift of 0 to 14",
            ),
            (!timers.min_rto.is_zero() && timers.min_rto <= timers.max_rto, "min_rto", "above zero and up to max_rto"),
            (!timers.initial_rto.is_zero(), "initial_rto", "above zero"),
            (any || timers.rto == Rto::Linux, "rto", RECORDED),
            (self.variant != Variant::Ledbat || timers.rto == Rto::Linux, "rto", "\"linux\" with variant \"ledbat++\""),
            (any || self.repair.loss_detection == LossDetection::Rack, "loss_detection", RECORDED_RACK),
            (any || self.sack, "sack", RECORDED_SACK),
            (
                self.variant != Variant::Dctcp || self.ecn != Ecn::Off,
                "ecn",
                "\"classic\" or \"accecn\" with variant \"dctcp\"",
            ),
            (!self.variant.is_l4s() || self.ecn == Ecn::Accurate, "ecn", "\"accecn\" with variant \"prague\""),
            (
                self.congestion.control.is_none() || self.variant.takes_control(),
                "variant",
                "tahoe, reno, newreno or sack with a control of the caller",
            ),
            (self.dscp <= 63, "dscp", "0 to 63"),
        ];
        match checks.into_iter().find(|&(good, ..)| !good) {
            Some((_, field, allowed)) => Err(ConfigError { field, allowed }),
            None => Ok(()),
        }
    }

    /// The receive buffer, at most the largest window.
    pub(crate) fn buffer(&self) -> u32 {
        u32::try_from(self.receive_window.as_u64()).unwrap_or(MAX_WINDOW).clamp(1, MAX_WINDOW)
    }

    /// Payload of a full segment, limited to its range.
    pub(crate) fn own_mss(&self) -> u16 {
        self.mss.clamp(1, MAX_MSS)
    }

    /// The value of the MSS option, which leaves out options of TCP (RFC 6691; RFC 9293, section 3.7.1).
    pub(crate) fn offered_mss(&self) -> u16 {
        self.own_mss() + if self.timestamps { TIMESTAMPS_BYTES } else { 0 }
    }

    /// The largest window that this end can advertise, with window scaling or without: whole units of the shift, at
    /// least one.
    #[must_use]
    pub fn largest_window(&self, scaled: bool) -> u64 {
        let shift = self.offered_shift().filter(|_| scaled).unwrap_or(0);
        u64::from((self.buffer() >> shift).clamp(1, 0xffff)) << shift
    }

    /// The shift to offer; `None`: no option.
    pub(crate) fn offered_shift(&self) -> Option<u8> {
        match self.window_scale {
            WindowScale::Off => None,
            WindowScale::Shift(shift) => Some(shift.min(MAX_WINDOW_SHIFT)),
            WindowScale::Auto => {
                let shift = (0..MAX_WINDOW_SHIFT).find(|&shift| self.buffer() >> shift <= 0xffff);
                Some(shift.unwrap_or(MAX_WINDOW_SHIFT))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use lastmile_units::Duration;

    use super::*;

    #[test]
    fn the_default_is_allowed_and_zeroes_are_not() {
        assert_eq!(Config::default().check(), Ok(()));
        let wrong = |config: Config| config.check().map_err(|error| error.field);
        assert_eq!(wrong(Config { mss: 0, ..Config::default() }), Err("mss"));
        assert_eq!(wrong(Config { receive_window: ByteCount::ZERO, ..Config::default() }), Err("receive_window"));
        assert_eq!(wrong(Config { send_buffer: Some(ByteCount::ZERO), ..Config::default() }), Err("send_buffer"));
        assert_eq!(
            wrong(Config { acks: AckConfig { ack_every: 0, ..AckConfig::default() }, ..Config::default() }),
            Err("ack_every")
        );
        assert_eq!(wrong(Config { window_scale: WindowScale::Shift(15), ..Config::default() }), Err("window_scale"));
        assert_eq!(wrong(Config { dscp: 64, ..Config::default() }), Err("dscp"));
        assert_eq!(
            wrong(Config {
                timers: TimerConfig { max_rto: Duration::from_ms(1), ..TimerConfig::default() },
                ..Config::default()
            }),
            Err("min_rto")
        );
    }

    #[test]
    fn the_automatic_shift_is_the_least_that_expresses_the_window() {
        let shift = |bytes| Config { receive_window: ByteCount::new(bytes), ..Config::default() }.offered_shift();
        assert_eq!(shift(65_535), Some(0));
        assert_eq!(shift(65_536), Some(1));
        assert_eq!(shift(6 << 20), Some(7));
        assert_eq!(shift(1 << 30), Some(14));
    }
}
