//! Counters of interfaces and of the kernel's queues, as `ip -s link` and `tc -s qdisc` print them.
//!
//! They come by rtnetlink(7) and not from the programs: a watcher reads them every second, and a
//! sandbox then allows no program. tc(8) also prints no JSON for the classes of HTB up to iproute2
//! 6.1.

use std::collections::BTreeMap;

use crate::error::{Context, Error};
use crate::sys::statistics;

/// Counters of one direction of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// Bytes of their frames.
    pub bytes: u64,
    /// Packets dropped for lack of buffers, or by the driver.
    pub dropped: u64,
    /// Packets with errors.
    pub errors: u64,
}

/// The counters of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// Packets that came in.
    pub received: Traffic,
    /// Packets that went out.
    pub sent: Traffic,
}

/// The counters of a queueing discipline, or of a class of one.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Queue {
    /// The number of the interface.
    pub index: u32,
    /// The kind, such as `htb`.
    pub kind: String,
    /// Major and minor number; zero for a discipline of the kernel's own.
    pub handle: (u16, u16),
    /// The class or discipline above it; `None` at the root.
    pub parent: Option<(u16, u16)>,
    /// True for a class.
    pub is_class: bool,
    /// Packets that departed.
    pub packets: u64,
    /// Their bytes, as the discipline counts them.
    pub bytes: u64,
    /// Packets that were dropped.
    pub dropped: u64,
    /// Times that it was over a limit.
    pub overlimits: u64,
    /// Packets that wait.
    pub backlog_packets: u64,
    /// Their bytes.
    pub backlog_bytes: u64,
}

impl Queue {
    /// The name of tc(8): `htb 1:10`.
    #[must_use]
    pub fn name(&self) -> String {
        let (major, minor) = self.handle;
        let class = if self.is_class { format!("{minor:x}") } else { String::new() };
        format!("{} {major:x}:{class}", self.kind)
    }
}

/// Every interface of the network namespace of the calling thread, by its name.
///
/// # Errors
/// The kernel refuses the question.
pub fn interfaces() -> Result<BTreeMap<String, Interface>, Error> {
    let all = statistics::interfaces().context(|| "reading the counters of interfaces")?;
    Ok(all.into_iter().map(|interface| (interface.name.clone(), interface)).collect())
}

/// The queueing disciplines and classes of an interface.
///
/// # Errors
/// The kernel refuses the question.
pub fn queues(interface: &Interface) -> Result<Vec<Queue>, Error> {
    let what = || format!("reading the queues of {}", interface.name);
    let mut queues = statistics::disciplines().context(what)?;
    queues.retain(|queue| queue.index == interface.index);
    queues.extend(statistics::classes(interface.index).context(what)?);
    Ok(queues)
}
