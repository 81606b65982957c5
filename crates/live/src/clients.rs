//! Connections from outside, with limits: how many there are, how long each may take, and how
//! accepting goes on after a failure.
//!
//! A server has a slot for each of `Clients::most` connections. A connection that has made its
//! whole request is *attended* and keeps its slot until it has the answer. When all slots are taken
//! and one more connection comes, the oldest connection that is not attended is closed. So clients
//! that say nothing, or one byte a second, keep nobody out, and the server's memory, threads and
//! descriptors do not grow with the number of its clients.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{AbortHandle, JoinSet};
use tokio::{select, time};

use crate::stop::Stop;

/// Time that a client has for its request, and again for reading the answer.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The pause after a connection could not be accepted: the process, or the machine, has no
/// descriptors or memory left for it.
const PAUSE: Duration = Duration::from_millis(100);

/// Time that clients have for reading their answers when the server ends.
const FAREWELL: Duration = Duration::from_millis(500);

/// The runtime of a server: its own thread, without helpers.
///
/// # Errors
/// No descriptors left.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_io().enable_time().build()
}

/// The connections of one server.
#[derive(Debug)]
pub struct Clients {
    most: usize,
    tasks: JoinSet<()>,
    /// Oldest first.
    connected: VecDeque<Client>,
}

#[derive(Debug)]
struct Client {
    task: AbortHandle,
    attended: Attended,
}

/// Whether a client has made its whole request.
#[derive(Clone, Default, Debug)]
pub struct Attended(Arc<AtomicBool>);

impl Attended {
    /// The request is whole.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Clients {
    /// A server with this many slots.
    #[must_use]
    pub fn at_most(most: usize) -> Self {
        Self { most, tasks: JoinSet::new(), connected: VecDeque::new() }
    }

    /// Whether one more may come: a slot is free, or a client that says nothing has one.
    #[must_use]
    pub fn may_come(&self) -> bool {
        self.connected.len() < self.most || self.connected.iter().any(|client| !client.attended.is_set())
    }

    /// Begins `work` for a connection that has come.
    pub fn take<F>(&mut self, work: impl FnOnce(Attended) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if self.connected.len() >= self.most
            && let Some(silent) = self.connected.iter().position(|client| !client.attended.is_set())
            && let Some(client) = self.connected.remove(silent)
        {
            client.task.abort();
        }
        let attended = Attended::default();
        let task = self.tasks.spawn(work(attended.clone()));
        self.connected.push_back(Client { task, attended });
    }

    /// Waits until a connection has ended, however it did; for ever if there is none. Nothing is
    /// lost if nobody waits to the end.
    pub async fn one_gone(&mut self) {
        match self.tasks.join_next().await {
            // One that panicked was one client's.
            Some(_) => self.connected.retain(|client| !client.task.is_finished()),
            None => std::future::pending().await,
        }
    }

    /// Accepts connections and begins `work` for each, until `end`.
    ///
    /// # Errors
    /// The descriptor of `end` is gone.
    pub async fn attend<T, F>(
        &mut self,
        end: &Awaited,
        accept: impl AsyncFn() -> io::Result<T>,
        mut work: impl FnMut(T, Attended) -> F,
    ) -> io::Result<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        loop {
            let may_come = self.may_come();
            select! {
                biased;
                ended = end.come() => return ended,
                () = self.one_gone() => {}
                connection = accepted(&accept), if may_come => self.take(|attended| work(connection, attended)),
            }
        }
    }

    /// Lets those that are attended take their answers, for a moment, and closes all.
    pub async fn finish(mut self) {
        self.connected.iter().filter(|client| !client.attended.is_set()).for_each(|client| client.task.abort());
        let all = async { while self.tasks.join_next().await.is_some() {} };
        let _ = time::timeout(FAREWELL, all).await;
    }
}

/// The next connection. Errors pass after a while: a client that has closed again, or a lack of descriptors.
pub async fn accepted<T>(accept: impl AsyncFn() -> io::Result<T>) -> T {
    loop {
        match accept().await {
            Ok(connection) => return connection,
            Err(_) => time::sleep(PAUSE).await,
        }
    }
}

/// A [`Stop`] that a server waits for.
#[derive(Debug)]
pub struct Awaited(UnixStream);

impl Awaited {
    /// Call it within the server's runtime.
    ///
    /// # Errors
    /// No descriptors left.
    pub fn new(stop: &Stop) -> io::Result<Self> {
        UnixStream::from_std(stop.watched()?).map(Self)
    }

    /// Waits until it is time.
    ///
    /// # Errors
    /// The descriptor is gone.
    pub async fn come(&self) -> io::Result<()> {
        self.0.readable().await
    }

    /// Forgets the calls so far, to wait for the next.
    ///
    /// # Errors
    /// The descriptor is gone.
    pub fn rearm(&self) -> io::Result<()> {
        let mut buffer = [0; 64];
        loop {
            match self.0.try_read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Tasks that end when the test says so, by number.
    fn run(test: impl AsyncFnOnce()) {
        runtime().unwrap().block_on(test());
    }

    async fn settle() {
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn the_oldest_that_says_nothing_makes_way() {
        run(async || {
            let mut clients = Clients::at_most(2);
            let alive: Vec<Arc<()>> = (0..4).map(|_| Arc::default()).collect();
            let begin = |clients: &mut Clients, index: usize, speaks: bool| {
                let token = Arc::clone(&alive[index]);
                clients.take(|attended| async move {
                    if speaks {
                        attended.set();
                    }
                    std::future::pending::<()>().await;
                    drop(token);
                });
            };
            begin(&mut clients, 0, true);
            begin(&mut clients, 1, false);
            settle().await;
            assert!(clients.may_come());
            begin(&mut clients, 2, true);
            settle().await;
            let held: Vec<usize> = alive.iter().map(Arc::strong_count).collect();
            assert_eq!(held, [2, 1, 2, 1], "the silent one was closed");
            clients.one_gone().await;
            assert!(!clients.may_come(), "both are attended");
        });
    }

    #[test]
    fn one_that_has_ended_leaves_its_slot_even_if_it_panicked() {
        run(async || {
            let mut clients = Clients::at_most(1);
            clients.take(|attended| async move {
                attended.set();
                panic!("of one client");
            });
            clients.one_gone().await;
            assert!(clients.may_come());
        });
    }

    #[test]
    fn accepting_goes_on_after_a_failure() {
        run(async || {
            let failures = Cell::new(0);
            let accept = async || match failures.replace(failures.get() + 1) {
                0 => Err(io::Error::from_raw_os_error(libc::EMFILE)),
                1 => Err(io::ErrorKind::ConnectionAborted.into()),
                tries => Ok(tries),
            };
            assert_eq!(accepted(accept).await, 2);
        });
    }
}
