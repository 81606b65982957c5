//! Counters of interfaces and of the kernel's queues, as `ip -s link` and `tc -s qdisc` print them.
//!
//! They come by rtnetlink(7) and not from the programs: a watcher reads them every second, and a
//! sandbox then allows no program. tc(8) also prints no JSON for the classes of HTB up to iproute2
//! 6.1.

use std::collections::BTreeMap;

use crate::error::{Context, Error};
use crate::sys::statistics;
pub use crate::sys::statistics::{Interface, Queue, Traffic};

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
