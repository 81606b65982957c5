//! A congestion control that is an object of Python.
//!
//! The object has `on_ack(ack)` and `on_loss(loss)`, and may have `pacing_rate()`. Windows are bytes of payload.

use std::sync::Mutex;

use lastmile_tcp::{Control, ControlAck, ControlLoss, Controls, LossKind};
use lastmile_units::Duration;
use pyo3::prelude::*;

use super::failure::{Failure, contract};
use super::object;

/// The largest window of TCP.
const LARGEST: u32 = 1 << 30;

/// Controls that `make` makes, and whether their senders are paced. The first is made at once, so that errors come
/// before the run.
pub(super) fn controls(py: Python<'_>, make: &Py<PyAny>, failure: &Failure) -> PyResult<(Controls, bool)> {
    let first = Supplied::new(py, make, failure)?;
    let paces = first.pacing_rate.is_some();
    let first = Mutex::new(Some(first));
    let (make, failure) = (make.clone_ref(py), failure.clone());
    let controls = Controls::new(move || -> Box<dyn Control> {
        let first = first.lock().ok().and_then(|mut first| first.take());
        match first.map_or_else(|| Python::attach(|py| Supplied::new(py, &make, &failure)), Ok) {
            Ok(control) => Box::new(control),
            Err(exception) => {
                failure.set(exception);
                Box::new(Unchanged)
            }
        }
    });
    Ok((controls, paces))
}

/// A run that has failed, until its next slice.
struct Unchanged;

impl Control for Unchanged {
    fn on_ack(&mut self, ack: &ControlAck) -> (u32, u32) {
        (ack.cwnd, ack.ssthresh)
    }

    fn on_loss(&mut self, loss: &ControlLoss) -> u32 {
        loss.octets / 2
    }
}

struct Supplied {
    class: String,
    on_ack: Py<PyAny>,
    on_loss: Py<PyAny>,
    pacing_rate: Option<Py<PyAny>>,
    failure: Failure,
}

/// A window, or a window and a threshold.
#[derive(FromPyObject)]
enum Windows {
    #[pyo3(transparent)]
    Window(f64),
    Both(f64, f64),
}

impl Supplied {
    fn new(py: Python<'_>, make: &Py<PyAny>, failure: &Failure) -> PyResult<Self> {
        let (own, [on_ack, on_loss]) = object::made(make.bind(py), ["on_ack", "on_loss"])?;
        Ok(Self {
            class: object::class_of(&own),
            on_ack,
            on_loss,
            pacing_rate: object::optional(&own, "pacing_rate"),
            failure: failure.clone(),
        })
    }

    /// Calls a method. An exception ends the run.
    fn call<R>(&self, call: impl FnOnce(Python<'_>) -> PyResult<R>) -> Option<R> {
        if self.failure.is_set() {
            return None;
        }
        Python::attach(call).map_err(|exception| self.failure.set(exception)).ok()
    }

    /// A window of TCP.
    fn window(&self, py: Python<'_>, method: &str, bytes: f64, mss: u32) -> PyResult<u32> {
        if bytes.is_nan() || bytes < f64::from(mss) {
            return Err(contract(
                py,
                &format!("{}.{method} has returned {bytes} bytes: a window has at least a segment, {mss}", self.class),
            ));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
        Ok(bytes.min(f64::from(LARGEST)) as u32)
    }

    fn wrong(&self, py: Python<'_>, method: &str, expected: &str, returned: &Py<PyAny>) -> PyErr {
        let class = object::class_of(returned.bind(py));
        contract(py, &format!("{}.{method} has returned {class}: {expected}", self.class))
    }
}

impl Control for Supplied {
    fn on_ack(&mut self, ack: &ControlAck) -> (u32, u32) {
        let unchanged = (ack.cwnd, ack.ssthresh);
        self.call(|py| {
            let returned = self.on_ack.call1(py, (Ack::from(ack),))?;
            let expected = "the window in bytes, or (window, threshold)";
            let windows = returned.extract(py).map_err(|_| self.wrong(py, "on_ack", expected, &returned))?;
            let window = |bytes| self.window(py, "on_ack", bytes, ack.mss);
            Ok(match windows {
                Windows::Window(cwnd) => (window(cwnd)?, ack.ssthresh),
                Windows::Both(cwnd, ssthresh) => (window(cwnd)?, window(ssthresh)?),
            })
        })
        .unwrap_or(unchanged)
    }

    fn on_loss(&mut self, loss: &ControlLoss) -> u32 {
        self.call(|py| {
            let returned = self.on_loss.call1(py, (Loss::from(loss),))?;
            let expected = "the threshold in bytes";
            let bytes: f64 = returned.extract(py).map_err(|_| self.wrong(py, "on_loss", expected, &returned))?;
            self.window(py, "on_loss", bytes, loss.mss)
        })
        .unwrap_or(loss.octets / 2)
    }

    fn pacing_rate(&mut self) -> Option<u64> {
        let method = self.pacing_rate.as_ref()?;
        self.call(|py| {
            let returned = method.call0(py)?;
            let expected = "a rate in bit/s, or None";
            let rate: Option<f64> =
                returned.extract(py).map_err(|_| self.wrong(py, "pacing_rate", expected, &returned))?;
            match rate {
                Some(rate) if rate.is_nan() || rate <= 0.0 => {
                    let message = format!("{}.pacing_rate has returned {rate} bit/s: a rate above zero", self.class);
                    Err(contract(py, &message))
                }
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
                rate => Ok(rate.map(|rate| (rate / 8.0) as u64)),
            }
        })?
    }
}

/// An acknowledgement, in a congestion control of Python. Windows are bytes of payload, times seconds.
///
/// ``on_ack`` sees those that acknowledge new data outside of fast recovery while the window was used. It returns the
/// congestion window, or the window and the slow start threshold.
///
/// >>> import lastmile as lm
/// >>> class Fixed:
/// ...     def on_ack(self, ack):
/// ...         return 20 * ack.mss
/// ...     def on_loss(self, loss):
/// ...         return 20 * loss.mss
/// >>> line = lm.line("adsl2plus-12-1", home="single")
/// >>> run = lm.run(line, duration="3 s", congestion={"download": Fixed})
/// >>> run.summary["inputs"]["set"]
/// ['duration=3 s', 'congestion.download=python:Fixed']
#[pyclass(frozen, get_all, module = "lastmile")]
pub(crate) struct Ack {
    /// The time.
    now: f64,
    /// Bytes that it acknowledges.
    acked: u64,
    /// Bytes among them that arrived with a mark of congestion.
    marked: u64,
    /// Bytes of a full segment.
    mss: u32,
    /// The congestion window.
    cwnd: u32,
    /// The slow start threshold.
    ssthresh: u32,
    /// The round trip that it measured; ``None`` with the timeout of the RFC (``rto = "rfc6298"``).
    rtt: Option<f64>,
    /// The smoothed round trip.
    srtt: Option<f64>,
    /// The shortest round trip of the connection, where round trips are measured.
    min_rtt: Option<f64>,
    /// True while data are repaired after a timeout.
    after_timeout: bool,
}

impl From<&ControlAck> for Ack {
    fn from(ack: &ControlAck) -> Self {
        let [rtt, srtt, min_rtt] = [ack.rtt, ack.srtt, ack.least_rtt].map(|span| span.map(Duration::as_secs_f64));
        let (now, acked) = (ack.now.as_secs_f64(), ack.octets);
        let ControlAck { marked, mss, cwnd, ssthresh, after_timeout, .. } = *ack;
        Self { now, acked, marked, mss, cwnd, ssthresh, rtt, srtt, min_rtt, after_timeout }
    }
}

#[pymethods]
impl Ack {
    fn __repr__(&self) -> String {
        format!("<lastmile.Ack of {} bytes, window {}>", self.acked, self.cwnd)
    }
}

/// A reduction of the window, in a congestion control of Python. Windows are bytes of payload.
///
/// ``on_loss`` returns the slow start threshold, to which the window falls. After a timeout the window is one segment.
///
/// >>> import lastmile as lm
/// >>> kinds = set()
/// >>> class Reno:
/// ...     def on_ack(self, ack):
/// ...         if ack.cwnd < ack.ssthresh:
/// ...             return ack.cwnd + min(ack.acked, 2 * ack.mss)
/// ...         return ack.cwnd + ack.mss * ack.acked // ack.cwnd
/// ...     def on_loss(self, loss):
/// ...         kinds.add(loss.kind)
/// ...         return max(loss.in_flight // 2, 2 * loss.mss)
/// >>> line = lm.line("adsl2plus-12-1", home="single")
/// >>> run = lm.run(line, duration="10 s", congestion={"download": Reno})
/// >>> kinds <= {"loss", "timeout", "mark"}
/// True
#[pyclass(frozen, get_all, module = "lastmile")]
pub(crate) struct Loss {
    /// ``loss``, ``timeout``, or ``mark`` for ECN.
    kind: &'static str,
    /// Bytes in flight; the window itself where losses are found by RACK, as in Linux.
    in_flight: u32,
    /// Bytes of a full segment.
    mss: u32,
    /// The congestion window.
    cwnd: u32,
    /// The slow start threshold.
    ssthresh: u32,
}

impl From<&ControlLoss> for Loss {
    fn from(loss: &ControlLoss) -> Self {
        let kind = match loss.kind {
            LossKind::Loss => "loss",
            LossKind::Timeout => "timeout",
            LossKind::Mark => "mark",
        };
        Self { kind, in_flight: loss.octets, mss: loss.mss, cwnd: loss.cwnd, ssthresh: loss.ssthresh }
    }
}

#[pymethods]
impl Loss {
    fn __repr__(&self) -> String {
        format!("<lastmile.Loss by {}, window {}>", self.kind, self.cwnd)
    }
}
