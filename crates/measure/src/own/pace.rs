//! Packets at stated times: sleep until shortly before, then wait awake.

use std::thread;
use std::time::Duration;

use crate::clock;

/// The last part of each wait is spent awake: a sleeping thread is woken late by about this much.
const AWAKE: Duration = Duration::from_micros(150);

/// Calls `send` with index, length and clock time for each of `packets` (departure in ns after the
/// start, length), when it is due, and returns when each was sent, in ns after the start. A late
/// packet is sent at once and does not shift those after it. `send` ends the train with `None`.
pub(crate) fn send(
    packets: impl Iterator<Item = (u64, u16)>,
    mut send: impl FnMut(u32, u16, u64) -> Option<()>,
) -> Vec<u64> {
    let start_ns = clock::now_ns();
    let mut sent = Vec::new();
    for (index, (at_ns, len)) in (0..).zip(packets) {
        let now_ns = wait_until(start_ns.saturating_add(at_ns));
        if send(index, len, now_ns).is_none() {
            break;
        }
        sent.push(now_ns.saturating_sub(start_ns));
    }
    sent
}

/// Waits, and returns the time.
fn wait_until(due_ns: u64) -> u64 {
    let left = Duration::from_nanos(due_ns.saturating_sub(clock::now_ns()));
    if left > AWAKE {
        thread::sleep(left - AWAKE);
    }
    loop {
        let now_ns = clock::now_ns();
        if now_ns >= due_ns {
            return now_ns;
        }
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_sent_in_order_and_never_early() {
        let due: Vec<(u64, u16)> = (0..50).map(|n| (n * 200_000, 100)).collect();
        let mut seen = Vec::new();
        let sent = send(due.iter().copied(), |index, len, _| {
            seen.push((index, len));
            (index < 40).then_some(())
        });
        assert_eq!((sent.len(), seen.len()), (40, 41));
        assert!(sent.iter().zip(&due).all(|(sent, (due, _))| sent >= due), "{sent:?}");
    }
}
