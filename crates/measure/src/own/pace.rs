//! Packets at stated times: sleep until shortly before, then wait awake.

use std::thread;
use std::time::Duration;

use crate::clock;

/// The last part of each wait is spent awake: a sleeping thread is woken late by about this much.
const AWAKE: Duration = Duration::from_micros(150);

/// The longest sleep without a look at the end.
const LOOK: Duration = Duration::from_millis(50);

/// Calls `send` with index, length and clock time for each of `packets` (departure in ns after the
/// start, length), when it is due, and returns when each was sent, in ns after the start. A late
/// packet is sent at once and does not shift those after it. `send` ends the train with `None`, and so does `ended`,
/// which long waits ask, too.
pub(crate) fn send(
    packets: impl Iterator<Item = (u64, u16)>,
    ended: impl Fn() -> bool,
    mut send: impl FnMut(u32, u16, u64) -> Option<()>,
) -> Vec<u64> {
    let start_ns = clock::now_ns();
    let mut sent = Vec::new();
    for (index, (at_ns, len)) in (0..).zip(packets) {
        let due_ns = start_ns.saturating_add(at_ns);
        let Some(now_ns) = wait_until(due_ns, &ended).filter(|&now_ns| send(index, len, now_ns).is_some()) else {
            break;
        };
        sent.push(now_ns.saturating_sub(start_ns));
    }
    sent
}

/// Waits, and returns the time; `None` once `ended`.
fn wait_until(due_ns: u64, ended: impl Fn() -> bool) -> Option<u64> {
    loop {
        if ended() {
            return None;
        }
        let left = Duration::from_nanos(due_ns.saturating_sub(clock::now_ns()));
        if left <= AWAKE {
            break;
        }
        thread::sleep((left - AWAKE).min(LOOK));
    }
    loop {
        let now_ns = clock::now_ns();
        if now_ns >= due_ns {
            return Some(now_ns);
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
        let sent = send(
            due.iter().copied(),
            || false,
            |index, len, _| {
                seen.push((index, len));
                (index < 40).then_some(())
            },
        );
        assert_eq!((sent.len(), seen.len()), (40, 41));
        assert!(sent.iter().zip(&due).all(|(sent, (due, _))| sent >= due), "{sent:?}");
    }

    /// A packet that is due in a minute, and an end after a tenth of a second.
    #[test]
    fn a_long_wait_ends_with_the_train() {
        let start = std::time::Instant::now();
        let ended = || start.elapsed() > Duration::from_millis(100);
        assert!(send([(60_000_000_000, 100)].into_iter(), ended, |_, _, _| Some(())).is_empty());
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    }
}
