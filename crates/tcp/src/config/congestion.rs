//! The congestion window: its start, its growth, and the segments that it admits.

use lastmile_units::ByteCount;

use super::control::Controls;

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

/// How slow start may end before a loss. Needs the round trips that [`Rto::Linux`](super::Rto::Linux) measures;
/// without them as [`SlowStart::Standard`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SlowStart {
    /// Only a loss ends it (RFC 5681, section 3.1).
    Standard,
    /// HyStart (Ha and Rhee 2011) as in Linux, where it is a part of CUBIC. Other variants use standard slow start.
    HyStart,
    /// HyStart++ (RFC 9406), with every variant.
    HyStartPlusPlus,
}

/// How the congestion window starts and grows, and which segments a sender may send within it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CongestionConfig {
    /// Window at the start. Default 10 segments (RFC 6928).
    pub initial_window: InitialWindow,
    /// Slow start threshold at the start; `None`: as high as possible (RFC 5681, section 3.1).
    pub initial_ssthresh: Option<ByteCount>,
    /// Growth by acknowledgements or by bytes. Default [`ByteCounting::Abc`] with a limit of 2.
    pub byte_counting: ByteCounting,
    /// How slow start may end early. Default [`SlowStart::HyStart`].
    pub slow_start: SlowStart,
    /// Limited transmit (RFC 3042): the first two duplicate acknowledgements release a new segment each. Default on.
    pub limited_transmit: bool,
    /// Restart after an idle time of more than the retransmission timeout: from the initial window (RFC 5681, section
    /// 4.1), or with [`LossDetection::Rack`](super::LossDetection::Rack) and SACK as Linux does, which halves the
    /// window for each timeout that has passed. Default on.
    pub idle_restart: bool,
    /// Send about a millisecond's worth at once, as Linux does with any offload settings: new data wait up
    /// to 1 ms for this part of the window. Default off.
    pub tso_deferral: bool,
    /// Pace segments at 200 % of window / round trip in the first half of slow start and at 120 % of it after that, as
    /// Linux does with `sch_fq`. Variants that measure delivery rates pace in any case. Default off.
    pub pacing: bool,
    /// The congestion control of the caller, in place of that of the variant, which must be one without a law of its
    /// own: the variant says how losses are repaired. [`with_control`](super::Config::with_control) sets both.
    /// Default none.
    pub control: Option<Controls>,
}

impl Default for CongestionConfig {
    fn default() -> Self {
        Self {
            initial_window: InitialWindow::Segments(10),
            initial_ssthresh: None,
            byte_counting: ByteCounting::Abc { limit: 2 },
            slow_start: SlowStart::HyStart,
            limited_transmit: true,
            idle_restart: true,
            tso_deferral: false,
            pacing: false,
            control: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3390, section 1: 4 segments up to 1095 bytes, 4380 bytes up to 2190, then 2 segments.
    #[test]
    fn the_initial_window_of_rfc_3390_depends_on_the_segment() {
        assert_eq!(InitialWindow::Rfc3390.bytes(536), 4 * 536);
        assert_eq!(InitialWindow::Rfc3390.bytes(1095), 4380);
        assert_eq!(InitialWindow::Rfc3390.bytes(1460), 4380);
        assert_eq!(InitialWindow::Rfc3390.bytes(4312), 2 * 4312);
    }
}
