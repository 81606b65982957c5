//! Packets of a capture, each at its time, and their count at the other end.
//!
//! A packet is sent through the device of its host unchanged, past routes, sockets and the checks of the kernel's IP,
//! and received at the far device likewise. The far kernel sees it too, and does not answer, since the address is not
//! its own and it forwards nothing.
//!
//! At the far end the flow identifies a packet's replay. If several replays share a flow, the packet counts for the
//! first replay that still misses one.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use lastmile_live::sys::packet::{BATCH, Batch, OFFLOAD_LEN, Receiver, Sender};
use lastmile_model::outcome::Deliveries;
use lastmile_packet::{FlowKey, parse_headers};
use lastmile_units::{Duration, Instant};
use rustix::io::Errno;

use crate::outcome::FlowOutcome;
use crate::spec::ReplayPlan;

/// Bytes that the kernel buffers for a late generator.
const BUFFER: u32 = 4 << 20;

/// The sending end of a replay.
pub(super) struct Replay {
    packets: std::iter::Peekable<Box<dyn Iterator<Item = (Duration, Vec<u8>)> + Send>>,
    flows: Vec<FlowKey>,
    out: Sender,
    start: Option<Instant>,
    outcome: FlowOutcome,
}

/// In the namespace of the calling thread. The line learns from a packet socket when a packet was given to the device.
pub(super) fn sender(device: &str) -> io::Result<Sender> {
    Sender::open_queued(device, BUFFER)
}

impl Replay {
    pub(super) fn new(plan: ReplayPlan, out: Sender) -> Self {
        let mut flows = plan.flows;
        flows.sort_unstable();
        Self { packets: plan.packets.peekable(), flows, out, start: None, outcome: FlowOutcome::default() }
    }

    pub(super) fn begin(&mut self, at: Instant) {
        self.start = Some(at);
    }

    pub(super) fn stop(&mut self) {
        self.start = None;
    }

    pub(super) fn next(&mut self) -> Option<Instant> {
        let start = self.start?;
        self.packets.peek().map(|(after, _)| start + *after)
    }

    /// Sends the packet that is due.
    pub(super) fn send(&mut self) -> io::Result<()> {
        let Some((_, packet)) = self.packets.next() else { return Ok(()) };
        match self.out.send(std::iter::once(packet.as_slice())) {
            // A full queue of the host loses the packet, as a queue of the line would; so does a device that cannot
            // take it.
            Err(error)
                if !matches!(
                    Errno::from_io_error(&error),
                    Some(Errno::NOBUFS | Errno::AGAIN | Errno::MSGSIZE | Errno::INVAL)
                ) =>
            {
                Err(error)
            }
            _ => {
                self.outcome.packets_sent += 1;
                Ok(())
            }
        }
    }

    /// True if this replay has sent more packets of that flow than it has got back; then this one counts for it.
    fn takes(&mut self, flow: &FlowKey, now: Instant, payload: u64) -> bool {
        let misses = self.outcome.packets_received < self.outcome.packets_sent;
        let takes = misses && self.flows.binary_search(flow).is_ok();
        if takes {
            self.outcome.packets_received += 1;
            self.outcome.bytes_delivered += payload;
            Deliveries::note(&mut self.outcome.deliveries, now);
        }
        takes
    }

    pub(super) fn bytes_delivered(&self) -> u64 {
        self.outcome.bytes_delivered
    }

    pub(super) fn outcome(self) -> FlowOutcome {
        self.outcome
    }
}

/// Receives the replayed packets of one host.
pub(super) struct Catcher {
    receiver: Receiver,
    batch: Batch,
}

impl Catcher {
    /// In the namespace of the calling thread.
    pub(super) fn open(device: &str) -> io::Result<Self> {
        Ok(Self { receiver: Receiver::open(device, BUFFER)?, batch: Batch::new() })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }

    /// Takes the packets that wait, each for the first of `replays` that takes it.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        mut replays: impl FnMut(&mut dyn FnMut(&mut Replay) -> bool),
    ) -> io::Result<()> {
        loop {
            let count = self.receiver.receive(&mut self.batch, BATCH)?;
            for index in 0..count {
                let (bytes, _) = self.batch.get(index);
                let Some(Ok(parsed)) = bytes.get(OFFLOAD_LEN..).map(parse_headers) else { continue };
                let payload = parsed.meta.ip_len.saturating_sub(parsed.meta.header_len.into());
                replays(&mut |replay| replay.takes(&parsed.key, now, payload.into()));
            }
            if count < BATCH {
                return Ok(());
            }
        }
    }
}
