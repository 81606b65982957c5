//! The rights that a shaper gives up once it runs: an attacker who takes over the process gets a
//! line, and little of the machine.
//!
//! A running shaper has everything open: interfaces, the bypass, the control socket, the port of
//! metrics. It still needs packets, answers, the policy once more, and the end. So
//! [`Needs::give_up_the_rest`] gives up, for the calling thread and all that it starts:
//!
//! | what | keeps | by |
//! | --- | --- | --- |
//! | capabilities | `CAP_DAC_READ_SEARCH` for a policy, `CAP_SYS_NICE` for `--realtime`, if any | capabilities(7) |
//! | files | read: the policy's folder; remove: folders of control socket and claims | landlock(7), Linux 5.13 |
//! | TCP | the connections to the port that is open | landlock(7), Linux 6.7 |
//! | signals, abstract sockets | its own, those that are connected | landlock(7), Linux 6.12 |
//! | system calls | those of the loop, of threads and memory, of reading files | seccomp(2) |
//!
//! No program is executed, no socket opened, no memory made executable, no file written. A kernel
//! that lacks one of them leaves that one out: the shaper runs, and [`GivenUp`] says which.
//! Capabilities are the exception, since every kernel has them.

mod calls;
mod files;
mod rights;

use std::io;
use std::path::Path;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities, set_no_new_privs,
};

use crate::error::{Context, Error};
pub use rights::{Limit, Needs};

/// The rights that a process has given up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GivenUp {
    /// The names of the capabilities that are left.
    pub capabilities: Vec<String>,
    /// Files, TCP, signals.
    pub files: Limit,
    /// System calls.
    pub system_calls: Limit,
}

impl Needs {
    /// Gives up all else. Call it when everything is open, on the one thread that there is.
    ///
    /// # Errors
    /// Capabilities cannot be given up, or the process cannot promise to get none by a program that it executes.
    pub fn give_up_the_rest(&self) -> Result<GivenUp, Error> {
        let what = || "giving up rights";
        set_no_new_privs(true).map_err(io::Error::from).context(what)?;
        let files = files::limit(self);
        let mut kept = CapabilitySet::empty();
        kept.set(CapabilitySet::SYS_NICE, self.realtime);
        kept.set(CapabilitySet::DAC_READ_SEARCH, self.policy.is_some());
        let capabilities = keep(kept, kept).context(what)?;
        Ok(GivenUp { capabilities, files, system_calls: calls::limit(self.realtime) })
    }
}

/// Gives up what the parent of a shaper does not need, nor the shaper that it starts: it has no
/// capability in effect, and its children have at most those that a shaper starts with.
///
/// # Errors
/// As [`Needs::give_up_the_rest`].
pub fn give_up_as_supervisor() -> Result<GivenUp, Error> {
    let what = || "giving up rights";
    set_no_new_privs(true).map_err(io::Error::from).context(what)?;
    let for_children = CapabilitySet::NET_ADMIN
        | CapabilitySet::NET_RAW
        | CapabilitySet::BPF
        | CapabilitySet::IPC_LOCK
        | CapabilitySet::SYS_NICE
        // The policy and the control socket may be in a folder of another user.
        | CapabilitySet::DAC_READ_SEARCH
        | CapabilitySet::DAC_OVERRIDE;
    let capabilities = keep(for_children, CapabilitySet::empty()).context(what)?;
    let files = Limit::None("the shaper that it starts limits itself".to_owned());
    Ok(GivenUp { capabilities, files, system_calls: calls::limit_supervisor() })
}

/// Gives up what a watcher does not need that has opened its store and its port for metrics: it reads routes, writes
/// the folder of its store, opens sockets for pings and asks shapers at their control sockets.
///
/// # Errors
/// As [`Needs::give_up_the_rest`].
pub fn give_up_as_watcher(store: &Path) -> Result<GivenUp, Error> {
    let what = || "giving up rights";
    set_no_new_privs(true).map_err(io::Error::from).context(what)?;
    let files = files::limit_watcher(store);
    let mut kept = CapabilitySet::NET_RAW;
    // The control socket of a shaper may be another user's, and so may the store.
    kept |= CapabilitySet::DAC_OVERRIDE;
    let capabilities = keep(kept, kept).context(what)?;
    Ok(GivenUp { capabilities, files, system_calls: calls::limit_watcher() })
}

/// Gives up what a thread that looks names up does not need: it reads files of the system, and asks servers.
///
/// # Errors
/// As [`Needs::give_up_the_rest`].
pub fn give_up_as_resolver() -> Result<GivenUp, Error> {
    let what = || "giving up rights";
    set_no_new_privs(true).map_err(io::Error::from).context(what)?;
    let files = files::limit_resolver();
    let capabilities = keep(CapabilitySet::empty(), CapabilitySet::empty()).context(what)?;
    Ok(GivenUp { capabilities, files, system_calls: calls::limit_watcher() })
}

/// Keeps what it has of these; returns the names of what is in effect.
fn keep(permitted: CapabilitySet, effective: CapabilitySet) -> io::Result<Vec<String>> {
    let had = capabilities(None)?;
    let left = CapabilitySets {
        effective: had.effective & effective,
        permitted: had.permitted & permitted,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, left)?;
    // Without inheritable ones there are none; a kernel that knows no ambient set (before 4.3) has none either.
    let _ = clear_ambient_capability_set();
    Ok(left.effective.iter_names().map(|(name, _)| format!("CAP_{name}")).collect())
}

#[cfg(test)]
mod tests;
