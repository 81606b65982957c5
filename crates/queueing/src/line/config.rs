//! Parameters of a line.

use lastmile_linklayer::LinkLayer;
use lastmile_units::{BitRate, Duration, Instant, Ratio, WireBytes};

use super::grants;
use super::impairments::Impairments;
use super::trace::Trace;
use crate::compress::Compression;

/// Parameters of a line, without its queue.
#[derive(Clone, Debug)]
pub struct Config {
    /// Rate of the wire, in bits on the wire (headers and cells included); on a line with a trace
    /// its mean. `None`: transmission takes no time.
    pub rate: Option<BitRate>,
    /// The capacity over time, in place of a constant rate. Steps also replace delay and loss.
    pub trace: Option<Trace>,
    /// The line sends only what a head end grants. The rate of a transmission is that of the grants;
    /// `rate` is the mean that they allow, and the trace has the means of its steps
    /// ([`grants::Config::usable_trace`]).
    pub grants: Option<Box<grants::Config>>,
    /// Encapsulation: the bytes on the wire of an IP packet.
    pub link_layer: LinkLayer,
    /// Propagation delay.
    pub delay: Duration,
    /// A constant delay at the far end, behind everything that the wire does.
    pub far_end: Duration,
    /// Share of packets lost on the wire, each independent of the others.
    pub loss: Ratio,
    /// Losses in bursts, bit errors, jitter, reordering and duplicates.
    pub impairments: Impairments,
    /// Header compression.
    pub compression: Compression,
}

impl Config {
    /// A line of constant rate and delay that loses and compresses nothing.
    #[must_use]
    pub fn new(rate: Option<BitRate>, link_layer: LinkLayer, delay: Duration) -> Self {
        Self {
            rate,
            trace: None,
            grants: None,
            link_layer,
            delay,
            far_end: Duration::ZERO,
            loss: Ratio::ZERO,
            impairments: Impairments::default(),
            compression: Compression::None,
        }
    }

    /// The least time from the end of a transmission to the arrival.
    #[must_use]
    pub fn least_delay(&self) -> Duration {
        let delay = self.trace.as_ref().and_then(Trace::least_delay).unwrap_or(self.delay);
        self.impairments.least(delay) + self.far_end
    }

    /// The least time of these bytes from the start of their transmission to their arrival.
    #[must_use]
    pub fn least_time(&self, wire: WireBytes) -> Duration {
        let of_line = || self.trace.as_ref().map_or(self.rate, Trace::peak_rate);
        let rate = self.grants.as_ref().map_or_else(of_line, |grants| Some(grants.rate));
        rate.map_or(Duration::ZERO, |rate| rate.time_for(wire)) + self.least_delay()
    }

    /// Mean rate between two times, in bit/s; `None` where transmission takes no time, and over no time. With grants
    /// and a trace exactly that of the usable spans.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "statistics only")]
    pub fn rate_between(&self, from: Instant, to: Instant) -> Option<f64> {
        let span = to.since(from).as_ps();
        match (&self.trace, self.granted_work(from, to)) {
            (None, _) => self.rate.map(|rate| rate.as_bps() as f64),
            (Some(_), Some(work)) => (span > 0).then(|| work as f64 / span as f64),
            (Some(trace), None) => trace.rate_between(from, to),
        }
    }

    /// Mean rate of the first `span`.
    #[must_use]
    pub fn mean_rate(&self, span: Duration) -> Option<BitRate> {
        match (&self.trace, self.granted_work(Instant::ZERO, Instant::ZERO + span)) {
            (None, _) => self.rate,
            (Some(_), Some(work)) => BitRate::from_bps(u64::try_from(work / u128::from(span.as_ps().max(1))).ok()?),
            (Some(trace), None) => trace.mean_rate(span),
        }
    }

    /// Bits that grants with a trace let pass between two times, times 10^12.
    fn granted_work(&self, from: Instant, to: Instant) -> Option<u128> {
        self.grants.as_ref()?.work_between(from, to)
    }
}
