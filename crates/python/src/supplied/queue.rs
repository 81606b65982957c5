//! A queueing discipline that is an object of Python.
//!
//! The object has `enqueue(packet, now)` and `dequeue(now)`, and may have `next_ready(now)`; times are seconds. Without
//! `next_ready` the discipline has a packet whenever it holds one.

use lastmile_packet::Meta;
use lastmile_queueing::supplied::Config;
use lastmile_queueing::{Backlog, Counter, Discipline, DropReason, DropSink, Node};
use lastmile_units::Instant;
use pyo3::prelude::*;

use super::failure::{Failure, contract};
use super::ledger::Ledger;
use super::object;
use super::packet::Packet;

/// Names of counts of drops, in the order of [`DropReason::ALL`].
const DROPPED: [&str; DropReason::ALL.len()] = [
    "dropped_tail",
    "dropped_head",
    "dropped_aqm",
    "dropped_policed",
    "dropped_ack_filtered",
    "dropped_ack_collapsed",
    "dropped_ack_merged",
    "dropped_ack_duplicate",
    "dropped_ack_signal",
    "dropped_wire_loss",
    "dropped_header_compression",
    "dropped_too_large",
    "dropped_unreachable",
    "dropped_bit_error",
];
/// The reasons whose counts are shown even if they are zero, as those of a FIFO.
const SHOWN: [DropReason; 3] = [DropReason::Tail, DropReason::Head, DropReason::TooLarge];

/// The queue of a link that `make` makes. Its methods are looked up at once, so that errors come before the run.
pub(super) fn spec(py: Python<'_>, make: &Py<PyAny>, failure: &Failure) -> PyResult<Config> {
    let first = Queue::new(py, make, failure)?;
    let thins_acks = first.ledger.thins_acks();
    let first = std::sync::Mutex::new(Some(first));
    let (make, failure) = (make.clone_ref(py), failure.clone());
    Ok(Config::new::<Meta>(thins_acks, move || -> Node<Meta> {
        let first = first.lock().ok().and_then(|mut first| first.take());
        match first.map_or_else(|| Python::attach(|py| Queue::new(py, &make, &failure)), Ok) {
            Ok(queue) => Box::new(queue),
            Err(exception) => {
                failure.set(exception);
                Box::new(lastmile_queueing::Fifo::in_packets(
                    lastmile_units::PacketCount::new(1),
                    lastmile_queueing::Overflow::Tail,
                ))
            }
        }
    }))
}

struct Queue {
    class: String,
    enqueue: Py<PyAny>,
    dequeue: Py<PyAny>,
    next_ready: Option<Py<PyAny>>,
    failure: Failure,
    ledger: Ledger,
    /// Packets that arrived.
    arrived: u64,
    sent_packets: u64,
    sent_bytes: u64,
    dropped: [u64; DropReason::ALL.len()],
}

impl Queue {
    fn new(py: Python<'_>, make: &Py<PyAny>, failure: &Failure) -> PyResult<Self> {
        let (own, [enqueue, dequeue]) = object::made(make.bind(py), ["enqueue", "dequeue"])?;
        let thins_acks = own.getattr("thins_acks").and_then(|thins| thins.is_truthy()).unwrap_or(false);
        Ok(Self {
            class: object::class_of(&own),
            enqueue,
            dequeue,
            next_ready: object::optional(&own, "next_ready"),
            failure: failure.clone(),
            ledger: Ledger::new(thins_acks),
            arrived: 0,
            sent_packets: 0,
            sent_bytes: 0,
            dropped: [0; DropReason::ALL.len()],
        })
    }

    /// Calls a method, and takes what it dropped out of the queue. An exception ends the run.
    fn call<R>(
        &mut self,
        now: Instant,
        drops: &mut dyn DropSink<Meta>,
        method: &str,
        call: impl FnOnce(&Self, Python<'_>) -> PyResult<R>,
    ) -> Option<R> {
        if self.failure.is_set() {
            return None;
        }
        let (result, dropped) = Python::attach(|py| {
            self.ledger.open();
            let result = call(self, py);
            let (dropped, lost) = self.ledger.close();
            let result = match (result, lost) {
                (Ok(_), Some(number)) => Err(contract(
                    py,
                    &format!(
                        "{}.{method} has lost packet {number}: each packet is kept, returned by dequeue, or dropped \
                         by packet.drop(reason)",
                        self.class
                    ),
                )),
                (result, _) => result,
            };
            (result, dropped)
        });
        for (meta, reason) in dropped {
            self.dropped[reason.index()] += 1;
            drops.dropped(now, meta, reason);
        }
        result.map_err(|exception| self.failure.set(exception)).ok()
    }

    /// The packet that `dequeue` returned.
    fn taken(&self, py: Python<'_>, now: Instant, returned: Bound<'_, PyAny>) -> PyResult<Option<Meta>> {
        let wrong = |what: &str| Err(contract(py, &format!("{}.dequeue has returned {what}", self.class)));
        if returned.is_none() {
            // Without `next_ready`, a queue that holds packets has promised one.
            let held = self.ledger.backlog().packets.as_u64();
            let none = format!("None at {} s while it holds {held} packets", now.as_secs_f64());
            return match &self.next_ready {
                _ if held == 0 => Ok(None),
                None => wrong(&format!("{none}: return one, or say in next_ready(now) when")),
                Some(method) if self.asked(py, method, now)?.is_some_and(|ready| ready <= now) => {
                    wrong(&format!("{none}, and next_ready has promised one by now"))
                }
                Some(_) => Ok(None),
            };
        }
        let Ok(packet) = returned.cast::<Packet>() else {
            return wrong(&format!("{}: a packet that was enqueued, or None", object::class_of(&returned)));
        };
        let packet = packet.get();
        match packet.depart(&self.ledger) {
            Ok(meta) => Ok(Some(meta)),
            Err(why) => wrong(&format!("packet {}, {why}", packet.number())),
        }
    }

    /// The time that `next_ready` names.
    fn asked(&self, py: Python<'_>, method: &Py<PyAny>, now: Instant) -> PyResult<Option<Instant>> {
        let named = method.call1(py, (now.as_secs_f64(),))?;
        let seconds: Option<f64> = named.extract(py)?;
        match seconds {
            Some(seconds) => instant(seconds).map(Some).ok_or_else(|| {
                contract(py, &format!("{}.next_ready has returned {seconds}: a time of the run in seconds", self.class))
            }),
            None => {
                let held = self.ledger.backlog().packets.as_u64();
                Err(contract(
                    py,
                    &format!(
                        "{}.next_ready has returned None while it holds {held} packets: a time in seconds",
                        self.class
                    ),
                ))
            }
        }
    }
}

/// The time of `seconds`, not earlier.
fn instant(seconds: f64) -> Option<Instant> {
    let ps = (seconds * 1e12).round();
    if !(0.0..1.8e19).contains(&ps) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    let time = Instant::from_ps(ps as u64);
    let earlier = time.as_secs_f64() < seconds;
    Some(if earlier { Instant::from_ps(time.as_ps() + 1) } else { time })
}

impl Discipline<Meta> for Queue {
    fn enqueue(&mut self, now: Instant, packet: Meta, drops: &mut dyn DropSink<Meta>) {
        if self.failure.is_set() {
            return drops.dropped(now, packet, DropReason::Tail);
        }
        self.arrived += 1;
        self.ledger.arrived(&packet);
        self.call(now, drops, "enqueue", |queue, py| {
            let packet = Packet::new(queue.arrived, packet, queue.ledger.clone());
            queue.enqueue.call1(py, (packet, now.as_secs_f64())).map(drop)
        });
    }

    fn dequeue(&mut self, now: Instant, drops: &mut dyn DropSink<Meta>) -> Option<Meta> {
        let meta = self.call(now, drops, "dequeue", |queue, py| {
            let returned = queue.dequeue.bind(py).call1((now.as_secs_f64(),))?;
            queue.taken(py, now, returned)
        })??;
        self.sent_packets += 1;
        self.sent_bytes += u64::from(meta.ip_len);
        Some(meta)
    }

    fn next_ready(&self, now: Instant) -> Option<Instant> {
        if self.failure.is_set() {
            return None;
        }
        if self.ledger.backlog() == Backlog::default() {
            return None;
        }
        let Some(method) = &self.next_ready else { return Some(now) };
        let asked = Python::attach(|py| self.asked(py, method, now));
        asked.map_err(|exception| self.failure.set(exception)).ok().flatten()
    }

    fn backlog(&self) -> Backlog {
        self.ledger.backlog()
    }

    fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        let mut show = |name, value| visit(Counter { path: "", kind: "python", name, value });
        show("sent_packets", self.sent_packets);
        show("sent_bytes", self.sent_bytes);
        for reason in DropReason::ALL {
            let count = self.dropped[reason.index()];
            if count > 0 || SHOWN.contains(&reason) {
                show(DROPPED[reason.index()], count);
            }
        }
    }
}

/// The run is over: its packets belong to nobody.
impl Drop for Queue {
    fn drop(&mut self) {
        self.ledger.end();
    }
}
