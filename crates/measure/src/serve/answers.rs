//! Answers to clients.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::time;

use crate::own::wire::{self, Answer};

/// Time that a client has to take an answer.
const SLOW: Duration = Duration::from_secs(20);

/// A refusal with its reason.
pub(super) fn refusal(reason: impl Into<String>) -> Answer {
    Answer::Refused { reason: reason.into() }
}

/// Sends an answer, to a client that takes it.
pub(super) async fn answer(to: &mut OwnedWriteHalf, answer: &Answer) -> io::Result<()> {
    time::timeout(SLOW, to.write_all(&wire::line(answer))).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
