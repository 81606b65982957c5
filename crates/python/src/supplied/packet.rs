//! A packet, as a discipline of Python sees it: a copy of its metadata, which outlives the run without harm.

use std::sync::{Mutex, MutexGuard, PoisonError};

use lastmile_packet::{Meta, Packet as _, Protocol, TcpFlags};
use lastmile_queueing::DropReason;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::failure::contract;
use super::ledger::{Ledger, State};

/// The reasons that a queue may give.
const REASONS: [DropReason; 9] = [
    DropReason::Tail,
    DropReason::Head,
    DropReason::Aqm,
    DropReason::Policed,
    DropReason::AckFiltered,
    DropReason::AckCollapsed,
    DropReason::AckMerged,
    DropReason::AckDuplicate,
    DropReason::TooLarge,
];

/// A packet in a queueing discipline of Python. Only a run makes packets.
///
/// A discipline returns each packet once from ``dequeue``, or drops it once. Sizes are bytes, times seconds.
///
/// >>> import lastmile as lm
/// >>> class First:
/// ...     def __init__(self):
/// ...         self.packets = []
/// ...     def enqueue(self, packet, now):
/// ...         if len(self.packets) < 20:
/// ...             self.packets.append(packet)
/// ...         else:
/// ...             packet.drop("tail")
/// ...     def dequeue(self, now):
/// ...         return self.packets.pop(0) if self.packets else None
/// >>> run = lm.run(lm.line("adsl2plus-12-1", home="single"), duration="2 s", queues={"up": First})
/// >>> run.summary["inputs"]["set"]
/// ['duration=2 s', 'queues.up=python:First']
#[pyclass(frozen, module = "lastmile")]
pub(crate) struct Packet {
    /// Its number in the order of arrival, from 1 on.
    #[pyo3(get)]
    number: u64,
    ledger: Ledger,
    state: Mutex<(Meta, State)>,
}

impl Packet {
    pub(super) fn new(number: u64, meta: Meta, ledger: Ledger) -> Self {
        Self { number, ledger, state: Mutex::new((meta, State::Held)) }
    }

    fn state(&self) -> MutexGuard<'_, (Meta, State)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn meta(&self) -> Meta {
        self.state().0
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// The packet departs from the queue of `ledger`; or why it cannot, in words.
    pub(super) fn depart(&self, ledger: &Ledger) -> Result<Meta, &'static str> {
        if !self.ledger.is(ledger) {
            return Err("which is of another queue");
        }
        let (meta, state) = &mut *self.state();
        match state {
            State::Held => {
                *state = State::Departed;
                self.ledger.left(meta);
                Ok(*meta)
            }
            State::Departed => Err("which it has returned before"),
            State::Dropped => Err("which it has dropped"),
        }
    }
}

/// No object of Python refers to the packet any more.
impl Drop for Packet {
    fn drop(&mut self) {
        if self.state().1 == State::Held {
            self.ledger.lose(self.number);
        }
    }
}

#[pymethods]
impl Packet {
    /// Bytes of the IP packet.
    #[getter]
    fn size(&self) -> u16 {
        self.meta().ip_len
    }

    /// Bytes of payload.
    #[getter]
    fn payload(&self) -> u16 {
        self.meta().payload_len()
    }

    /// The flow: a number for each direction of a connection.
    #[getter]
    fn flow(&self) -> u32 {
        self.meta().flow.index()
    }

    /// ``tcp``, ``udp``, ``icmp`` or ``other``.
    #[getter]
    fn protocol(&self) -> &'static str {
        match self.meta().protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::EchoRequest | Protocol::EchoReply => "icmp",
            Protocol::Other | Protocol::AckSignal => "other",
        }
    }

    /// The sequence number of TCP.
    #[getter]
    fn seq(&self) -> u32 {
        self.meta().seq.raw()
    }

    /// The acknowledgement number of TCP; ``None`` without one.
    #[getter]
    fn ack(&self) -> Option<u32> {
        let meta = self.meta();
        (meta.protocol == Protocol::Tcp && meta.flags.contains(TcpFlags::ACK)).then(|| meta.ack.raw())
    }

    /// True for a segment of TCP that only acknowledges.
    #[getter]
    fn is_pure_ack(&self) -> bool {
        self.meta().is_pure_ack()
    }

    /// The differentiated services code point.
    #[getter]
    fn dscp(&self) -> u8 {
        self.meta().dscp()
    }

    /// The ECN field: 0 without ECN, 1 and 2 with it, 3 after a mark.
    #[getter]
    fn ecn(&self) -> u8 {
        self.meta().ecn()
    }

    /// The time of its arrival at the queue.
    #[getter]
    fn arrived(&self) -> f64 {
        self.meta().arrived.as_secs_f64()
    }

    /// Drops the packet, which results count by the reason. Possible in ``enqueue`` and ``dequeue``.
    ///
    /// Reasons are ``aqm``, ``tail``, ``head``, ``policed`` and ``too_large``; in a discipline whose attribute
    /// ``thins_acks`` is true also ``ack_filtered``, ``ack_collapsed``, ``ack_merged`` and ``ack_duplicate``.
    ///
    /// >>> import lastmile as lm
    /// >>> class Wall:
    /// ...     def enqueue(self, packet, now):
    /// ...         packet.drop("policed")
    /// ...     def dequeue(self, now):
    /// ...         return None
    /// >>> line = lm.line("adsl2plus-12-1", home="single")
    /// >>> run = lm.run(line, duration="2 s", queues={"up": Wall})
    /// >>> [link["packets"] for link in run.summary["links"] if link["name"] == "up"]
    /// [0]
    #[pyo3(signature = (reason = "aqm"))]
    fn drop(&self, py: Python<'_>, reason: &str) -> PyResult<()> {
        let reason = REASONS.into_iter().find(|known| known.name() == reason).ok_or_else(|| {
            let names = REASONS.map(DropReason::name).join(", ");
            PyValueError::new_err(format!("unknown reason {reason:?}: there are {names}"))
        })?;
        if reason.is_ack_regulation() && !self.ledger.thins_acks() {
            let name = reason.name();
            return Err(contract(py, &format!("reason {name:?} is for queues with thins_acks = True")));
        }
        let mut state = self.state();
        let (meta, held) = *state;
        match held {
            State::Held if self.ledger.drop(meta, reason) => {
                state.1 = State::Dropped;
                Ok(())
            }
            State::Held => Err(contract(py, "a packet is dropped only within enqueue and dequeue of its queue")),
            State::Departed => Err(contract(py, "a packet that has departed cannot be dropped")),
            State::Dropped => Err(contract(py, "a packet is dropped once")),
        }
    }

    /// Marks congestion in the ECN field. ``False``: the sender does not understand marks, and a drop must signal it.
    ///
    /// >>> import lastmile as lm
    /// >>> class Marker:
    /// ...     def enqueue(self, packet, now):
    /// ...         self.packet, marked = packet, packet.mark()
    /// ...     def dequeue(self, now):
    /// ...         packet, self.packet = self.packet, None
    /// ...         return packet
    /// >>> line = lm.loads('''
    /// ... duration = "1 s"
    /// ... [access]
    /// ... down = { rate = "8 Mbit/s" }
    /// ... up = { rate = "1 Mbit/s" }
    /// ... [[traffic]]
    /// ... kind = "ping"
    /// ... interval = "100 ms"
    /// ... ''')
    /// >>> lm.run(line, queues={"up": Marker}).summary["probes"][0]["received"] > 5
    /// True
    fn mark(&self) -> bool {
        let (meta, state) = &mut *self.state();
        *state == State::Held && meta.mark_ce()
    }

    fn __repr__(&self) -> String {
        format!("<lastmile.Packet {}, {} bytes of flow {}>", self.number, self.size(), self.flow())
    }
}
