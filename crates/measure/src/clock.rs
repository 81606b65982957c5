//! The kernel's monotonic clock in nanoseconds since the machine started, and receive stamps on it.
//!
//! Both ends use it: it is never set, and two processes of one machine share it, so that their
//! one-way delays need no estimate.

use std::time::SystemTime;

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the machine started.
#[must_use]
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let [seconds, ns] = [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds.saturating_mul(1_000_000_000).saturating_add(ns)
}

/// When the kernel received a packet with this stamp (`SO_TIMESTAMPNS`, of the wall clock) that has
/// been read by now. The distance of the clocks is read anew each time, since the wall clock may be
/// set.
#[must_use]
pub(crate) fn received_ns(stamp: Option<SystemTime>) -> u64 {
    let attempt = || {
        let before = now_ns();
        let wall = SystemTime::now();
        (now_ns() - before, before, wall)
    };
    // The faster of two: an interruption between the readings would be an error.
    let (took, before, wall) = attempt().min(attempt());
    let now = before + took;
    let age = stamp.and_then(|stamp| wall.duration_since(stamp).ok());
    // A stamp older than ten seconds is one of a wall clock that was set.
    let age_ns = age.map(|age| age.as_nanos()).filter(|age| *age < 10_000_000_000).unwrap_or(0);
    now.saturating_sub(took / 2).saturating_sub(u64::try_from(age_ns).unwrap_or(0))
}

/// A name of this machine's clock: equal at two ends only if they share it. The kernel's boot
/// identifier, and the offsets of this time namespace (time_namespaces(7)); empty where there is
/// none.
#[must_use]
pub(crate) fn identity() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let boot = read("/proc/sys/kernel/random/boot_id");
    if boot.is_empty() {
        return boot;
    }
    // A kernel without time namespaces has no offsets.
    let offsets = read("/proc/self/timens_offsets");
    boot.split_whitespace().chain(offsets.split_whitespace()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_lands_on_the_monotonic_clock() {
        let before = now_ns();
        let stamp = SystemTime::now();
        let after = now_ns();
        std::thread::sleep(std::time::Duration::from_millis(5));
        let received = received_ns(Some(stamp));
        assert!(
            before.saturating_sub(200_000) <= received && received <= after + 200_000,
            "{before} {received} {after}"
        );
        let future = SystemTime::now() + std::time::Duration::from_secs(3600);
        assert!(received_ns(Some(future)) >= after, "a stamp of the future is of now");
    }
}
