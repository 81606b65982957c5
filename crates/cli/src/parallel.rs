//! Jobs on several threads, whose results come in the order of the jobs whoever ends first.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// How long [`until_stopped`] waits for a job before it asks whether it is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// Does `count` jobs on so many threads, each job on one; what they return comes in their order. By default a thread a processor.
pub(crate) fn in_parallel<T: Send>(
    count: usize,
    threads: Option<NonZeroUsize>,
    job: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let mut results = Vec::with_capacity(count);
    in_order(count, threads, job, |result| {
        results.push(result);
        true
    });
    results
}

/// The same, where each result is handed over as soon as it and all before it are there. With the first that is answered by `false` no
/// further job begins, and nothing more is handed over.
pub(crate) fn in_order<T: Send>(
    count: usize,
    threads: Option<NonZeroUsize>,
    job: impl Fn(usize) -> T + Sync,
    mut each: impl FnMut(T) -> bool,
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
                    // Nobody receives after a panic of the caller.
                    if number >= count || sender.send((number, job(number))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut due = 0;
        for (number, result) in receiver {
            early.insert(number, result);
            while let Some(result) = early.remove(&due) {
                if !each(result) {
                    next.store(count, Ordering::Relaxed);
                    return;
                }
                due += 1;
            }
        }
    });
}

/// Does `count` jobs as [`in_parallel`] does, but begins none once `stopped`, and waits for none that takes long: all these are `None`.
/// Their threads go on until the program ends.
pub(crate) fn until_stopped<T: Send + 'static>(
    count: usize,
    threads: Option<NonZeroUsize>,
    job: impl Fn(usize) -> T + Send + Sync + 'static,
    stopped: impl Fn() -> bool + Send + Sync + 'static,
) -> Vec<Option<T>> {
    let threads = threads.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    let shared = Arc::new((AtomicUsize::new(0), job, stopped));
    let (sender, receiver) = mpsc::channel();
    for _ in 0..threads.min(count) {
        let (sender, shared) = (sender.clone(), Arc::clone(&shared));
        thread::spawn(move || {
            let (next, job, stopped) = &*shared;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let wanted = number < count && !stopped();
                if !wanted || sender.send((number, job(number))).is_err() {
                    return;
                }
            }
        });
    }
    drop(sender);
    let mut results: Vec<Option<T>> = std::iter::repeat_with(|| None).take(count).collect();
    loop {
        match receiver.recv_timeout(LOOK) {
            Ok((number, result)) => results[number] = Some(result),
            Err(RecvTimeoutError::Timeout) if !(shared.2)() => {}
            Err(_) => break,
        }
    }
    let all = (shared.2)() || results.iter().all(Option::is_some);
    assert!(all, "a job panicked");
    results
}

#[cfg(test)]
mod tests {
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
    fn what_takes_longer_than_anybody_waits_is_left_out() {
        let begun = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&begun);
        let job = move |number: usize| {
            seen.fetch_add(1, Ordering::SeqCst);
            if number == 1 {
                thread::sleep(Duration::from_secs(3600));
            }
            number
        };
        // The second never ends, and the third is done by then.
        let stopped = move || begun.load(Ordering::SeqCst) >= 3;
        let made = until_stopped(4, NonZeroUsize::new(2), job, stopped);
        assert_eq!(made, [Some(0), None, Some(2), None]);
        let all = until_stopped(20, NonZeroUsize::new(4), |number| number, || false);
        assert_eq!(all, (0..20).map(Some).collect::<Vec<_>>());
        assert!(until_stopped(0, None, |number| number, || false).is_empty());
    }
}
