//! Jobs on several threads, with results in the order of the jobs.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Time between calls of [`in_order_attended`] without a result.
const ATTENTION: Duration = Duration::from_millis(20);

/// Runs `count` jobs on `threads` threads, each job on one, and returns their results in order. The
/// default is one thread per processor.
pub fn in_parallel<T: Send>(count: usize, threads: Option<NonZeroUsize>, job: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let mut results = Vec::with_capacity(count);
    in_order(count, threads, job, |result| {
        results.push(result);
        true
    });
    results
}

/// Runs jobs and passes on each result as soon as it and all before it are complete. After the
/// first `false` no further job begins, and no further result is passed on.
pub fn in_order<T: Send>(
    count: usize,
    threads: Option<NonZeroUsize>,
    job: impl Fn(usize) -> T + Sync,
    mut each: impl FnMut(T) -> bool,
) {
    in_order_attended(count, threads, job, |result| result.is_none_or(&mut each));
}

/// As [`in_order`], and calls `each` with `None` every 20 ms on the calling thread, so that it can attend to signals.
/// Running jobs are not ended after `false`: a job looks for that itself.
pub fn in_order_attended<T: Send>(
    count: usize,
    threads: Option<NonZeroUsize>,
    job: impl Fn(usize) -> T + Sync,
    mut each: impl FnMut(Option<T>) -> bool,
) {
    let threads = threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for _ in 0..threads.min(count) {
            let (sender, next, job) = (sender.clone(), &next, &job);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    // The receiver is gone after a panic of the caller.
                    if number >= count || sender.send((number, job(number))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut due = 0;
        loop {
            match receiver.recv_timeout(ATTENTION) {
                Ok((number, result)) => _ = early.insert(number, result),
                Err(RecvTimeoutError::Timeout) if each(None) => continue,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while let Some(result) = early.remove(&due) {
                if !each(Some(result)) {
                    next.store(count, Ordering::Relaxed);
                    return;
                }
                due += 1;
            }
        }
        next.store(count, Ordering::Relaxed);
    });
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs_whoever_ends_first() {
        let mut told = Vec::new();
        let late = |number: usize| {
            thread::sleep(Duration::from_millis(if number.is_multiple_of(3) { 8 } else { 0 }));
            number
        };
        in_order(20, NonZeroUsize::new(4), late, |number| {
            told.push(number);
            number < 11
        });
        assert_eq!(told, (0..12).collect::<Vec<_>>(), "11 was the last that was wanted");
        assert_eq!(in_parallel(3, NonZeroUsize::new(8), late), [0, 1, 2]);
        assert!(in_parallel(0, None, late).is_empty());
    }

    #[test]
    fn the_calling_thread_attends_while_jobs_run_and_can_end_them() {
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let endless = |_| {
            while !is_over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
        };
        let (mut attended, mut results) = (0, 0);
        in_order_attended(5, NonZeroUsize::new(2), endless, |result| {
            results += u32::from(result.is_some());
            attended += 1;
            is_over.store(attended == 3, Ordering::Relaxed);
            attended < 3
        });
        assert_eq!((attended, results), (3, 0));
    }
}
