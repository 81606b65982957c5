//! Closed forms and link layers over many values at once.
//!
//! Inputs and results are buffers of 64-bit floats, of equal lengths: `lastmile/_arrays.py` makes them of numbers,
//! sequences and arrays. A value without a meaning, such as a packet of no bytes, gives `nan`.

use std::num::NonZeroU16;

use lastmile_linklayer::{LinkLayer, PRESETS, Preset};
use lastmile_scenario::layer_meant;
use lastmile_theory::asymmetry::{self as form, Download};
use lastmile_theory::interval::Mean;
use lastmile_theory::voice::{self, Codec, Path};
use lastmile_theory::{Fraction, ack_rate as ack_form, amp as amp_form, delay, fairness, grants};
use lastmile_units::{BitRate, ByteCount, CellCount, Duration};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arguments::{CodecName, Link};
use crate::error;

type Floats = PyBuffer<f64>;

/// Fills `outs` with the results of `form` for each set of `inputs`.
fn each<const N: usize, const M: usize>(
    py: Python<'_>,
    inputs: [&Floats; N],
    outs: [&Floats; M],
    form: impl Fn([f64; N]) -> Option<[f64; M]>,
) -> PyResult<()> {
    let inputs = inputs.map(|input| input.to_vec(py));
    let mut columns = Vec::with_capacity(N);
    for input in inputs {
        columns.push(input?);
    }
    let count = columns.first().map_or(0, Vec::len);
    if columns.iter().any(|column| column.len() != count) || outs.iter().any(|out| out.item_count() != count) {
        return Err(PyValueError::new_err("arguments of different lengths"));
    }
    let mut results = vec![Vec::with_capacity(count); M];
    #[expect(clippy::needless_range_loop, reason = "a row of all columns")]
    for row in 0..count {
        let values = form(std::array::from_fn(|column| columns[column][row])).unwrap_or([f64::NAN; M]);
        for (result, value) in results.iter_mut().zip(values) {
            result.push(value);
        }
    }
    for (out, result) in outs.iter().zip(&results) {
        out.copy_from_slice(py, result)?;
    }
    Ok(())
}

/// A count of bytes or cells; `None` for a negative, broken or huge number.
fn count(value: f64) -> Option<u64> {
    const LARGEST: f64 = 4_294_967_295.0;
    let is_count = (0.0..=LARGEST).contains(&value) && value.fract().abs() < f64::EPSILON;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked in the line above")]
    is_count.then_some(value as u64)
}

/// A size of a packet in IP bytes.
fn size(value: f64) -> Option<ByteCount> {
    count(value).filter(|bytes| (1..=65_535).contains(bytes)).map(ByteCount::new)
}

/// A rate in whole bit/s.
fn bits(value: f64) -> Option<BitRate> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range, and whole after rounding")]
    (1.0..=1e18).contains(&value).then(|| value.round() as u64).and_then(BitRate::from_bps)
}

/// A number in thousandths.
fn thousandths(value: f64) -> Option<Fraction> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range, and whole after rounding")]
    (0.0..=1e5).contains(&value).then(|| (value * 1e3).round() as u128).and_then(|of| Fraction::new(of, 1000))
}

/// Segments for each ACK, in thousandths.
fn segments(value: f64) -> Option<Fraction> {
    thousandths(value).filter(|of| *of >= Fraction::ONE)
}

/// A time in whole nanoseconds, above 0 and up to a day.
fn duration(seconds: f64) -> Option<Duration> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range, and whole after rounding")]
    let ns = (0.0..=86_400.0).contains(&seconds).then(|| (seconds * 1e9).round() as u64)?;
    Some(Duration::from_ns(ns)).filter(|time| !time.is_zero())
}

#[expect(clippy::cast_precision_loss, reason = "floats are what arrays hold; exact up to 2^53")]
fn float(value: u64) -> f64 {
    value as f64
}

/// The link layer of this name.
fn link(py: Python<'_>, name: &Link) -> PyResult<LinkLayer> {
    let name = &*name.0;
    LinkLayer::from_name(name).ok_or_else(|| {
        let hint = layer_meant(name).unwrap_or_else(|| "lastmile.linklayer.presets() has all names".to_owned());
        error::wrong(py, &format!("error: unknown link layer {name:?}\nhint: {hint}"), Some(&hint))
    })
}

/// Bits per second of a text such as `50 Mbit/s`.
#[pyfunction]
pub(crate) fn rate(text: &str) -> PyResult<u64> {
    let rate: BitRate = text.parse().map_err(|wrong| PyValueError::new_err(format!("{wrong}")))?;
    Ok(rate.as_bps())
}

/// Name, overhead in bytes, framing, aliases and note of each encapsulation.
#[pyfunction]
pub(crate) fn presets() -> Vec<(&'static str, i32, String, Vec<&'static str>, &'static str)> {
    let row = |preset: &Preset| {
        let aliases = preset.names().filter(|name| *name != preset.name).collect();
        (preset.name, preset.link.overhead(), preset.link.framing().to_string(), aliases, preset.note)
    };
    PRESETS.iter().map(row).collect()
}

/// The largest IP packet in bytes; `None` if only the limit of IP itself applies.
#[pyfunction]
pub(crate) fn mtu(py: Python<'_>, name: Link) -> PyResult<Option<u16>> {
    Ok(link(py, &name)?.mtu().map(NonZeroU16::get))
}

/// Bytes on the wire of IP packets.
#[pyfunction]
pub(crate) fn on_wire(py: Python<'_>, name: Link, sizes: Floats, out: Floats) -> PyResult<()> {
    let link = link(py, &name)?;
    each(py, [&sizes], [&out], |[bytes]| Some([float(link.on_wire(size(bytes)?).as_u64())]))
}

/// IP bytes for each byte on the wire.
#[pyfunction]
pub(crate) fn efficiency(py: Python<'_>, name: Link, sizes: Floats, out: Floats) -> PyResult<()> {
    let link = link(py, &name)?;
    each(py, [&sizes], [&out], |[bytes]| Some([link.efficiency(size(bytes)?)]))
}

/// Cells of IP packets.
#[pyfunction]
pub(crate) fn cells(py: Python<'_>, name: Link, sizes: Floats, out: Floats) -> PyResult<()> {
    let link = link(py, &name)?;
    each(py, [&sizes], [&out], |[bytes]| Some([float(link.cells(size(bytes)?)?.as_u64())]))
}

/// The largest IP packet in a number of cells.
#[pyfunction]
pub(crate) fn largest_ip(py: Python<'_>, name: Link, numbers: Floats, out: Floats) -> PyResult<()> {
    let link = link(py, &name)?;
    each(py, [&numbers], [&out], |[cells]| {
        Some([float(link.largest_ip_in_cells(CellCount::new(count(cells)?))?.as_u64().min(65_535))])
    })
}

/// k, the share of the downstream, the goodput and the ACKs a second of a download.
#[pyfunction]
#[pyo3(signature = (name, inputs, outs))]
pub(crate) fn asymmetry(py: Python<'_>, name: Link, inputs: [Floats; 5], outs: [Floats; 4]) -> PyResult<()> {
    let link = link(py, &name)?;
    let [down, up, data, ack, per_ack] = &inputs;
    each(py, [down, up, data, ack, per_ack], outs.each_ref(), |[down, up, data, ack, per_ack]| {
        let (data, ack) = (size(data)?, size(ack)?);
        let payload = data.as_u64().checked_sub(ack.as_u64()).filter(|payload| *payload > 0)?;
        let download = Download {
            down: bits(down)?,
            up: bits(up)?,
            down_link: link,
            up_link: link,
            data,
            payload: ByteCount::new(payload),
            ack,
            segments_per_ack: segments(per_ack)?,
        };
        let of = form::asymmetry(&download).ok()?;
        Some([of.k, of.utilisation, of.goodput_bps, of.acks_needed.packets_per_s])
    })
}

/// ACKs a second, and their rate on the wire, of a download that fills the line.
#[pyfunction]
#[pyo3(signature = (name, inputs, outs))]
pub(crate) fn ack_rate(py: Python<'_>, name: Link, inputs: [Floats; 4], outs: [Floats; 2]) -> PyResult<()> {
    let link = link(py, &name)?;
    let [down, data, ack, per_ack] = &inputs;
    each(py, [down, data, ack, per_ack], outs.each_ref(), |[down, data, ack, per_ack]| {
        let of = ack_form::for_line(bits(down)?, link, size(data)?, link.on_wire(size(ack)?), segments(per_ack)?)?;
        Some([of.packets_per_s, of.bits_per_s])
    })
}

/// A, P, F and the bound of the AMP model.
#[pyfunction]
#[pyo3(signature = (name, inputs, outs))]
pub(crate) fn amp(py: Python<'_>, name: Link, inputs: [Floats; 5], outs: [Floats; 4]) -> PyResult<()> {
    let link = link(py, &name)?;
    let [down, up, data, ack, per_ack] = &inputs;
    each(py, [down, up, data, ack, per_ack], outs.each_ref(), |[down, up, data, ack, per_ack]| {
        let line = amp_form::Line {
            forward: bits(down)?,
            reverse: bits(up)?,
            forward_link: link,
            reverse_link: link,
            data: size(data)?,
            ack: size(ack)?,
            packets_per_ack: thousandths(per_ack).filter(|of| *of > Fraction::ZERO)?,
        };
        let of = line.one_way()?;
        Some([of.acks_per_s.as_f64(), float(of.packet_bits), of.forward_bps.as_f64(), of.bound.rate.as_f64()])
    })
}

/// The rate to which bursts of ACKs limit a download, if each burst waits for a grant.
#[pyfunction]
pub(crate) fn grant_bound(py: Python<'_>, inputs: [Floats; 4], out: Floats) -> PyResult<()> {
    let [request_grant_s, acks, per_ack, data] = &inputs;
    each(py, [request_grant_s, acks, per_ack, data], [&out], |[request_grant_s, acks, per_ack, data]| {
        let (time, acks) = (duration(request_grant_s)?, count(acks).filter(|acks| *acks > 0)?);
        Some([grants::download_bps(time, acks, segments(per_ack)?, size(data)?)?.as_f64()])
    })
}

/// Seconds that packets take on the wire.
#[pyfunction]
#[pyo3(signature = (name, inputs, out))]
pub(crate) fn wait_behind(py: Python<'_>, name: Link, inputs: [Floats; 3], out: Floats) -> PyResult<()> {
    let link = link(py, &name)?;
    let [rate, packets, sizes] = &inputs;
    each(py, [rate, packets, sizes], [&out], |[rate, packets, bytes]| {
        Some([delay::wait_behind(bits(rate)?, link, count(packets)?, size(bytes)?).as_secs_f64()])
    })
}

/// The transmission rating factor R of calls.
#[pyfunction]
pub(crate) fn r_factor(py: Python<'_>, codec: CodecName, inputs: [Floats; 3], out: Floats) -> PyResult<()> {
    let CodecName(codec) = codec;
    let codec = Codec::named(&codec).ok_or_else(|| {
        let names = Codec::ALL.map(|codec| codec.name).join(", ");
        PyValueError::new_err(format!("codec: unknown {codec:?}: there are {names}"))
    })?;
    let [delays, losses, bursts] = &inputs;
    each(py, [delays, losses, bursts], [&out], |[delay_s, loss, burst_ratio]| {
        let has_meaning = delay_s >= 0.0 && (0.0..=1.0).contains(&loss) && burst_ratio > 0.0;
        has_meaning.then(|| [voice::r_factor(&codec, &Path { delay_s, loss, burst_ratio })])
    })
}

/// The mean opinion score of R.
#[pyfunction]
pub(crate) fn mos(py: Python<'_>, r: Floats, out: Floats) -> PyResult<()> {
    each(py, [&r], [&out], |[r]| (!r.is_nan()).then(|| [voice::mos(r)]))
}

/// Jain's index of fairness; `None` if all shares are zero, `nan` for shares without a meaning.
#[pyfunction]
pub(crate) fn jain(shares: Vec<f64>) -> Option<f64> {
    let has_meaning = shares.iter().all(|share| *share >= 0.0 && share.is_finite());
    if has_meaning { fairness::jain(shares.into_iter()) } else { Some(f64::NAN) }
}

/// The mean of samples and half the width of its 95 % confidence interval; `None` for no samples.
#[pyfunction]
pub(crate) fn mean_ci95(samples: Vec<f64>) -> Option<(f64, f64)> {
    Mean::of(&samples).map(|Mean { mean, ci95 }| (mean, ci95.unwrap_or(f64::NAN)))
}
