//! The time that a connection may take, and its end, as its answer decides.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time;

/// From the start of a connection to the end of its answer.
pub const DEADLINE: Duration = Duration::from_secs(10);

/// [`DEADLINE`] of a question about another policy, and of a reload.
pub const LONG: Duration = Duration::from_secs(120);

/// The time and the end of a connection, as its answer decides.
#[derive(Default)]
pub(crate) struct Connection {
    /// Ends it.
    pub(crate) end: Arc<Notify>,
    /// An index of [`TIMES`].
    time: AtomicU8,
}

/// Times of connections; `None`: any.
const TIMES: [Option<Duration>; 3] = [Some(DEADLINE), Some(LONG), None];

impl Connection {
    /// It has the longer time.
    pub(crate) fn takes_longer(&self) {
        self.time.store(1, Ordering::Relaxed);
    }

    /// It has any time, as long as the browser reads.
    pub(crate) fn is_stream(&self) {
        self.time.store(2, Ordering::Relaxed);
    }

    /// Waits until the time is over.
    pub(crate) async fn over(&self) {
        let mut passed = Duration::ZERO;
        loop {
            match TIMES[usize::from(self.time.load(Ordering::Relaxed))] {
                Some(time) if time > passed => {
                    time::sleep(time - passed).await;
                    passed = time;
                }
                Some(_) => return,
                None => std::future::pending().await,
            }
        }
    }
}
