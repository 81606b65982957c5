//! The settings of an endpoint. Equal endpoints share one configuration.

use core::fmt;

use lastmile_units::{ByteCount, Duration, Instant};

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
}

/// The window that a connection starts with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InitialWindow {
    /// This many segments: 10 by RFC 6928, 1 or 2 before RFC 3390. At least 1.
    Segments(u16),
    /// min(4 SMSS, max(2 SMSS, 4380 bytes)) (RFC 3390, section 1).
    Rfc3390,
}

impl InitialWindow {
    /// The window in bytes for segments of `mss` bytes.
    #[must_use]
    pub fn bytes(self, mss: u16) -> u32 {
        let mss = u32::from(mss);
        match self {
            Self::Segments(count) => mss * u32::from(count.max(1)),
            Self::Rfc3390 => (4 * mss).min((2 * mss).max(4380)),
        }
    }
}

/// The measure by which the window grows: acknowledgements, or the bytes that they cover.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ByteCounting {
    /// Each acknowledgement of new data counts as one segment (RFC 5681, section 3.1, equations 2 and 3).
    PerAck,
    /// Appropriate byte counting (RFC 3465): the bytes count, in slow start at most `limit` segments for each
    /// acknowledgement (the RFC's L, 1 to 255; it recommends 2, and after a timeout always 1).
    Abc {
        /// Segments that one acknowledgement may add to the window in slow start.
        limit: u8,
    },
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

/// How the retransmission timeout follows the round trips.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rto {
    /// RFC 6298: SRTT and four mean deviations, together at least [`Config::min_rto`]; one measurement a round trip.
    Rfc6298,
    /// As Linux: SRTT and a variance of at least [`Config::min_rto`] that rises with the largest deviation of a round
    /// trip and falls slowly. Every acknowledgement measures, and each that covers new data restarts the timer
    /// (Sarolahti and Kuznetsov, "Congestion Control in Linux TCP", USENIX 2002).
    Linux,
}

/// How a sender with SACK finds losses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LossDetection {
    /// RFC 6675: by counting the SACKed octets above. Only the timer finds the loss of a retransmission.
    Rfc6675,
    /// RACK (RFC 8985), Linux's default: by the times of transmission. Needs [`Rto::Linux`], which records them; with
    /// [`Rto::Rfc6298`] as [`LossDetection::Rfc6675`].
    Rack,
}

/// The congestion window while a sender with SACK repairs a loss.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Recovery {
    /// RFC 6675, section 5, step 4.2: the slow start threshold, from the beginning.
    Rfc6675,
    /// Proportional rate reduction (RFC 9937), Linux's only method: as much as was delivered, and less at first.
    Prr,
}

/// How slow start may end before a loss. Needs the round trips that [`Rto::Linux`] measures; without them as
/// [`SlowStart::Standard`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SlowStart {
    /// Only a loss ends it (RFC 5681, section 3.1).
    Standard,
    /// HyStart (Ha and Rhee 2011) as in Linux, where it is a part of CUBIC. Other variants use standard slow start.
    HyStart,
    /// HyStart++ (RFC 9406), with every variant.
    HyStartPlusPlus,
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
    /// The window begins at 64 KiB and grows to `receive_window` as data arrive (dynamic right-sizing), as in Linux.
    /// Default off: the window is `receive_window` from the beginning.
    pub autotune: bool,
    /// Window at the start. Default 10 segments (RFC 6928).
    pub initial_window: InitialWindow,
    /// Slow start threshold at the start; `None`: as high as possible (RFC 5681, section 3.1).
    pub initial_ssthresh: Option<ByteCount>,
    /// Longest delay of an acknowledgement, at most 500 ms by RFC 9293 (3.8.6.3); zero: every segment is
    /// acknowledged at once. Default 40 ms, Linux's shortest.
    pub delayed_ack: Duration,
    /// Data segments after which an acknowledgement is due at once. Default 2 (RFC 5681, section 4.2). At least 1.
    pub ack_every: u8,
    /// Acknowledge as Linux does: one by one at the beginning and after a pause, and at once at the end of
    /// a burst; else after `ack_every` full segments, or after 40 ms up to `delayed_ack`. Senders mark the
    /// end of a burst (PSH) as Linux does. Default off: every `ack_every`-th segment.
    pub quick_acks: bool,
    /// Offer SACK (RFC 2018), and send blocks when the peer permits too. Default on.
    pub sack: bool,
    /// Report duplicate segments in a first SACK block (RFC 2883). Default on.
    pub dsack: bool,
    /// Offer timestamps (RFC 7323), which add 12 bytes to every header. Default off.
    pub timestamps: bool,
    /// Offer window scaling. Default [`WindowScale::Auto`].
    pub window_scale: WindowScale,
    /// How the retransmission timeout is computed. Default [`Rto::Linux`].
    pub rto: Rto,
    /// Least retransmission timeout, with [`Rto::Linux`] of its variance alone. Default 200 ms as Linux;
    /// RFC 6298 (2.4) says 1 s.
    pub min_rto: Duration,
    /// Largest timeout after doublings, at least 60 s by RFC 6298 (2.5). Default 120 s as Linux.
    pub max_rto: Duration,
    /// Timeout before the first measurement. Default 1 s (RFC 6298, 2.1).
    pub initial_rto: Duration,
    /// Undo the reduction of the window by a repair if timestamps (RFC 3522), DSACK (RFC 3708) or F-RTO
    /// show that no segment was lost. Not in Tahoe and Reno. Default on.
    pub undo: bool,
    /// Find needless timeouts by F-RTO (RFC 5682); needs SACK, and `undo`. Default on.
    pub frto: bool,
    /// How losses are found; needs SACK. Default [`LossDetection::Rack`].
    pub loss_detection: LossDetection,
    /// Ask for an acknowledgement after two round trips without one (tail loss probe, RFC 8985, section 7); needs
    /// [`LossDetection::Rack`]. Default on.
    pub tail_loss_probe: bool,
    /// How slow start may end early. Default [`SlowStart::HyStart`].
    pub slow_start: SlowStart,
    /// The congestion window while a loss is repaired; needs SACK. Default [`Recovery::Prr`].
    pub recovery: Recovery,
    /// Tick of the host's clock; zero: exact. With a tick G, round trips are measured in whole ticks (at
    /// least one) and timers fire at multiples of G as in BSD: a timer of n ticks fires at the n-th tick
    /// from now, up to G early. The retransmission timeout is then at least 2 ticks. The 1990s had 500 ms.
    /// Default zero.
    pub clock_granularity: Duration,
    /// Growth by acknowledgements or by bytes. Default [`ByteCounting::Abc`] with a limit of 2.
    pub byte_counting: ByteCounting,
    /// Offer ECN (RFC 3168). Default off.
    pub ecn: bool,
    /// Send about a millisecond's worth at once, as Linux does with any offload settings: new data wait up
    /// to 1 ms for this part of the window. Default off.
    pub tso_deferral: bool,
    /// Mean time from the arrival of data until the application has read them, evenly distributed from zero
    /// to twice the mean. Only read data are acknowledged, except where [`quick_acks`](Self::quick_acks)
    /// acknowledges one by one; without `quick_acks` it has no effect. Default zero.
    pub read_delay: Duration,
    /// Limited transmit (RFC 3042): the first two duplicate acknowledgements release a new segment each. Default on.
    pub limited_transmit: bool,
    /// Restart from the initial window after an idle time of more than the retransmission timeout (RFC 5681, section
    /// 4.1). Default on.
    pub idle_restart: bool,
    /// Retransmissions of a SYN before the connection fails. Default 6 as Linux.
    pub max_syn_retries: u8,
    /// Retransmissions of a segment or window probe in a row before the connection fails (R2 of RFC 9293,
    /// 3.8.3). Default 15 as Linux.
    pub max_retries: u8,
    /// Duration of TIME-WAIT on the side that closed first. Default 60 s as Linux (RFC 9293: 2 MSL, 4 min).
    pub time_wait: Duration,
    /// DSCP of every packet, 0 to 63. Default 0.
    pub dscp: u8,
    /// Packets are IPv6: headers of 60 bytes instead of 40. Default off.
    pub ipv6: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            variant: Variant::default(),
            mss: 1460,
            receive_window: ByteCount::new(65_535),
            autotune: false,
            initial_window: InitialWindow::Segments(10),
            initial_ssthresh: None,
            delayed_ack: Duration::from_ms(40),
            ack_every: 2,
            quick_acks: false,
            sack: true,
            dsack: true,
            timestamps: false,
            window_scale: WindowScale::Auto,
            rto: Rto::Linux,
            min_rto: Duration::from_ms(200),
            max_rto: Duration::from_s(120),
            initial_rto: Duration::from_s(1),
            undo: true,
            frto: true,
            loss_detection: LossDetection::Rack,
            tail_loss_probe: true,
            slow_start: SlowStart::HyStart,
            recovery: Recovery::Prr,
            clock_granularity: Duration::ZERO,
            byte_counting: ByteCounting::Abc { limit: 2 },
            ecn: false,
            tso_deferral: false,
            read_delay: Duration::ZERO,
            limited_transmit: true,
            idle_restart: true,
            max_syn_retries: 6,
            max_retries: 15,
            time_wait: Duration::from_s(60),
            dscp: 0,
            ipv6: false,
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

/// The largest payload with which the longest headers (IPv6 40, TCP 20, options 40) fit into 65 535 bytes.
pub(crate) const MAX_MSS: u16 = 65_435;
/// Just above the largest window that the header can express: 65 535 shifted by 14 (RFC 7323, section 2.3).
pub(crate) const MAX_WINDOW: u32 = 1 << 30;
/// RFC 7323, section 2.3: the shift count is at most 14.
pub(crate) const MAX_WINDOW_SHIFT: u8 = 14;

impl Config {
    /// The first field that is out of its range.
    ///
    /// An [`Endpoint`](crate::Endpoint) never panics over such a field: it uses the nearest allowed value.
    ///
    /// # Errors
    /// Names the field and its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let window = self.receive_window.as_u64();
        let checks = [
            ((1..=MAX_MSS).contains(&self.mss), "mss", "1 to 65435 bytes"),
            ((1..=u64::from(MAX_WINDOW)).contains(&window), "receive_window", "1 byte to 1 GiB"),
            (self.initial_window != InitialWindow::Segments(0), "initial_window", "at least 1 segment"),
            (self.ack_every >= 1, "ack_every", "at least 1"),
            (self.byte_counting != ByteCounting::Abc { limit: 0 }, "byte_counting", "a limit of at least 1"),
            (
                !matches!(self.window_scale, WindowScale::Shift(shift) if shift > MAX_WINDOW_SHIFT),
                "window_scale",
                "a shift of 0 to 14",
            ),
            (!self.min_rto.is_zero() && self.min_rto <= self.max_rto, "min_rto", "above zero and up to max_rto"),
            (!self.initial_rto.is_zero(), "initial_rto", "above zero"),
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

    /// The deadline of a timer of `span` that starts now, on this host's clock.
    #[inline]
    pub(crate) fn deadline(&self, now: Instant, span: Duration) -> Instant {
        if self.clock_granularity.is_zero() { now.saturating_add(span) } else { self.tick_deadline(now, span) }
    }

    #[cold]
    fn tick_deadline(&self, now: Instant, span: Duration) -> Instant {
        let tick = self.clock_granularity.as_ps();
        let ticks = span.as_ps().div_ceil(tick).max(1);
        let current = now.as_ps() / tick;
        Instant::from_ps(current.saturating_add(ticks).saturating_mul(tick))
    }

    /// The span from `earlier` to `now` on this host's clock.
    pub(crate) fn measured(&self, earlier: Instant, now: Instant) -> Duration {
        let tick = self.clock_granularity.as_ps();
        if tick == 0 {
            return now.since(earlier);
        }
        let ticks = (now.as_ps() / tick).saturating_sub(earlier.as_ps() / tick);
        Duration::from_ps(ticks.max(1).saturating_mul(tick))
    }

    /// A span that ends `now`, on this host's clock.
    #[inline]
    pub(crate) fn ticked(&self, now: Instant, span: Duration) -> Duration {
        if self.clock_granularity.is_zero() {
            return span;
        }
        self.measured(Instant::from_ps(now.as_ps().saturating_sub(span.as_ps())), now)
    }

    /// The reading of the timestamp clock (RFC 7323, section 5.4: a tick of 1 ms to 1 s): milliseconds, or
    /// the ticks of a coarser clock. Starts at 1, since some receivers read an echo of 0 as none.
    pub(crate) fn timestamp(&self, now: Instant) -> u32 {
        ((now.as_ps() / self.timestamp_tick().as_ps()) as u32).wrapping_add(1)
    }

    /// The tick of the timestamp clock.
    pub(crate) fn timestamp_tick(&self) -> Duration {
        self.clock_granularity.clamp(Duration::from_ms(1), Duration::from_s(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_allowed_and_zeroes_are_not() {
        assert_eq!(Config::default().check(), Ok(()));
        let wrong = |config: Config| config.check().map_err(|error| error.field);
        assert_eq!(wrong(Config { mss: 0, ..Config::default() }), Err("mss"));
        assert_eq!(wrong(Config { receive_window: ByteCount::ZERO, ..Config::default() }), Err("receive_window"));
        assert_eq!(wrong(Config { ack_every: 0, ..Config::default() }), Err("ack_every"));
        assert_eq!(wrong(Config { window_scale: WindowScale::Shift(15), ..Config::default() }), Err("window_scale"));
        assert_eq!(wrong(Config { dscp: 64, ..Config::default() }), Err("dscp"));
        assert_eq!(wrong(Config { max_rto: Duration::from_ms(1), ..Config::default() }), Err("min_rto"));
    }

    /// RFC 3390, section 1: 4 segments up to 1095 bytes, 4380 bytes up to 2190, then 2 segments.
    #[test]
    fn the_initial_window_of_rfc_3390_depends_on_the_segment() {
        assert_eq!(InitialWindow::Rfc3390.bytes(536), 4 * 536);
        assert_eq!(InitialWindow::Rfc3390.bytes(1095), 4380);
        assert_eq!(InitialWindow::Rfc3390.bytes(1460), 4380);
        assert_eq!(InitialWindow::Rfc3390.bytes(4312), 2 * 4312);
    }

    #[test]
    fn the_automatic_shift_is_the_least_that_expresses_the_window() {
        let shift = |bytes| Config { receive_window: ByteCount::new(bytes), ..Config::default() }.offered_shift();
        assert_eq!(shift(65_535), Some(0));
        assert_eq!(shift(65_536), Some(1));
        assert_eq!(shift(6 << 20), Some(7));
        assert_eq!(shift(1 << 30), Some(14));
    }

    /// BSD's timers: three ticks of 500 ms, set 700 ms in, end at the tick of 2 s.
    #[test]
    fn a_coarse_clock_fires_at_its_ticks_and_measures_in_them() {
        let config = Config { clock_granularity: Duration::from_ms(500), ..Config::default() };
        let at = |ms| Instant::ZERO + Duration::from_ms(ms);
        assert_eq!(config.deadline(at(700), Duration::from_ms(1500)), at(2000));
        assert_eq!(config.deadline(at(700), Duration::from_ms(1)), at(1000));
        assert_eq!(config.measured(at(700), at(1100)), Duration::from_ms(500));
        assert_eq!(config.measured(at(700), at(800)), Duration::from_ms(500), "a round trip takes a tick at least");
    }
}
