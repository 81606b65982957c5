//! Normalised asymmetry k: the rate of the ACKs of a full downstream, divided by the upstream rate.
//!
//! Published: Lakshman, Madhow, Suter 1997 define k as the ratio of the raw bandwidths over the
//! ratio of the packet sizes. Phanse 2000 (section 3.4) bounds a download's share of its line by
//! 1/k. Brouer 2005 (section 2.3.2) adds the delayed-ACK factor d (segments for each ACK) and sizes
//! in whole cells:
//!
//! ```text
//! k = (down / up) / (data on the wire / ACK on the wire)        utilisation of the downstream <= min(1, d / k)
//! ```
//!
//! The bound holds for a single download of full-size segments, with no other upstream traffic and
//! no ACK dropped. Differs: OAM cells are subtracted from both rates first.

use core::fmt;

use lastmile_linklayer::LinkLayer;
use lastmile_units::{BitRate, ByteCount, CellCount, WireBytes};

use crate::Fraction;
use crate::ack_rate::AckRate;
use crate::user_rate::user_rate;

/// A download over an asymmetric line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Download {
    /// Rate of the downstream line, headers and cells included.
    pub down: BitRate,
    /// Rate of the upstream line.
    pub up: BitRate,
    /// Link layer of the downstream.
    pub down_link: LinkLayer,
    /// Link layer of the upstream.
    pub up_link: LinkLayer,
    /// A full-size data packet: TCP payload and headers.
    pub data: ByteCount,
    /// TCP payload of that packet (MSS without options).
    pub payload: ByteCount,
    /// A pure ACK: 40 bytes, 52 with timestamps.
    pub ack: ByteCount,
    /// Segments for each ACK, d: 1 if each is acknowledged, at most 2 by RFC 5681.
    pub segments_per_ack: Fraction,
}

/// The direction that limits a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bottleneck {
    /// The downstream line: the ACKs fit.
    Downstream,
    /// The upstream line, full of ACKs.
    Acks,
}

impl fmt::Display for Bottleneck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Downstream => "downstream rate",
            Self::Acks => "upstream rate (ACKs)",
        })
    }
}

/// A download that no line can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DownloadError {
    /// A data packet, payload or ACK of no bytes, or without bytes on the wire.
    Empty,
    /// A data packet of at most the size of its payload, or a data packet or ACK above 65 535 bytes.
    Size,
    /// Fewer than one segment for each ACK, more than 65 535, or a fraction finer than thousandths.
    SegmentsPerAck,
}

impl core::error::Error for DownloadError {}

impl fmt::Display for DownloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "data packet, payload and ACK must be of at least one byte each",
            Self::Size => "a data packet is longer than its payload, and neither it nor an ACK exceeds 65535 bytes",
            Self::SegmentsPerAck => "segments for each ACK are from 1 to 65535, in steps of thousandths at the finest",
        })
    }
}

/// The effect of asymmetry on a download.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asymmetry {
    /// Normalised asymmetry with bytes on the wire.
    pub k: f64,
    /// Normalised asymmetry with IP bytes, that is without encapsulation.
    pub k_ip: f64,
    /// d / k: the capacity of the upstream over the need of the ACKs. Below 1 the upstream is too
    /// slow.
    pub ack_headroom: f64,
    /// Largest share of the downstream's user rate that the download can fill, 0 to 1.
    pub utilisation: f64,
    /// The direction that determines this share.
    pub limit: Bottleneck,
    /// Data on the wire, bit/s, at that share.
    pub wire_bps: f64,
    /// IP bytes, bit/s, at that share.
    pub ip_bps: f64,
    /// TCP payload, bit/s, at that share.
    pub goodput_bps: f64,
    /// ACKs of a full downstream, on the wire of the upstream.
    pub acks_needed: AckRate,
    /// Bytes of a data packet on the wire.
    pub data_wire: WireBytes,
    /// Bytes of an ACK on the wire.
    pub ack_wire: WireBytes,
    /// Cells of a data packet, on a line that has them.
    pub data_cells: Option<CellCount>,
    /// Cells of an ACK, on a line that has them.
    pub ack_cells: Option<CellCount>,
}

/// `(down / up) / (data / ack)`: k for sizes counted on one common layer.
///
/// `None` for data of no bytes, or products above 128 bits.
#[must_use]
pub fn normalised(down: Fraction, up: Fraction, data: u64, ack: u64) -> Option<Fraction> {
    let sizes = Fraction::new(data.into(), ack.into())?;
    down.checked_div(up)?.checked_div(sizes)
}

/// `min(1, d / k)`: the largest share of the downstream that its ACKs allow; 1 for a k of zero.
#[must_use]
pub fn utilisation_bound(k: Fraction, segments_per_ack: Fraction) -> Fraction {
    segments_per_ack.checked_div(k).unwrap_or(Fraction::ONE).min(Fraction::ONE)
}

/// The effect of asymmetry on `download`.
///
/// # Errors
/// Sizes of zero or above an IP packet, a payload without headers, or fewer than one segment for
/// each ACK.
pub fn asymmetry(download: &Download) -> Result<Asymmetry, DownloadError> {
    let Sizes { data_wire, ack_wire } = check(download)?;
    let Download { down_link, up_link, data, payload, ack, segments_per_ack: d, .. } = *download;
    let (down, up) = (user_rate(download.down, down_link), user_rate(download.up, up_link));
    let fits = "40 bits of rate, 16 of OAM share, 17 of size and 26 of d, twice at most, fit 128";
    let k = normalised(down, up, data_wire.as_u64(), ack_wire.as_u64()).expect(fits);
    let k_ip = normalised(down, up, data.as_u64(), ack.as_u64()).expect(fits);
    let utilisation = utilisation_bound(k, d);
    let wire = down.checked_mul(utilisation).expect(fits);
    let part = |bytes: ByteCount| {
        let share = Fraction::new(bytes.as_u64().into(), data_wire.as_u64().into()).expect("checked above");
        wire.checked_mul(share).expect(fits).as_f64()
    };
    Ok(Asymmetry {
        k: k.as_f64(),
        k_ip: k_ip.as_f64(),
        ack_headroom: d.checked_div(k).expect(fits).as_f64(),
        utilisation: utilisation.as_f64(),
        limit: if utilisation < Fraction::ONE { Bottleneck::Acks } else { Bottleneck::Downstream },
        wire_bps: wire.as_f64(),
        ip_bps: part(data),
        goodput_bps: part(payload),
        acks_needed: AckRate::for_packets(down, data_wire.as_u64(), ack_wire, d).expect(fits),
        data_wire,
        ack_wire,
        data_cells: down_link.cells(data),
        ack_cells: up_link.cells(ack),
    })
}

struct Sizes {
    data_wire: WireBytes,
    ack_wire: WireBytes,
}

fn check(download: &Download) -> Result<Sizes, DownloadError> {
    let Download { down_link, up_link, data, payload, ack, segments_per_ack, .. } = *download;
    let largest = ByteCount::new(65_535);
    if data > largest || ack > largest || payload >= data {
        return Err(DownloadError::Size);
    }
    if segments_per_ack < Fraction::ONE || segments_per_ack > Fraction::whole(65_535) {
        return Err(DownloadError::SegmentsPerAck);
    }
    // This limit keeps all further products within 128 bits.
    if segments_per_ack.denominator() > 1_000 {
        return Err(DownloadError::SegmentsPerAck);
    }
    let sizes = Sizes { data_wire: down_link.on_wire(data), ack_wire: up_link.on_wire(ack) };
    let nothing = WireBytes::ZERO;
    if payload == ByteCount::ZERO || ack == ByteCount::ZERO || sizes.data_wire == nothing || sizes.ack_wire == nothing {
        return Err(DownloadError::Empty);
    }
    Ok(sizes)
}

/// IP bytes, in bit/s, of a full line of `rate` in packets of `ip` bytes, without OAM cells; 0 for
/// packets of zero bytes.
#[must_use]
pub fn ip_rate_bps(rate: BitRate, link: LinkLayer, ip: ByteCount) -> f64 {
    let share = Fraction::new(ip.as_u64().into(), link.on_wire(ip).as_u64().into());
    share.and_then(|share| user_rate(rate, link).checked_mul(share)).map_or(0.0, Fraction::as_f64)
}

#[cfg(test)]
mod tests;
