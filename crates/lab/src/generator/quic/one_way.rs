//! The streams of a transfer: one of each end, in its direction alone.

use quinn_proto::{Dir, StreamId};

use super::peer::Peer;
use super::stream;

/// An end of a transfer, and its streams.
pub(super) struct OneWay {
    pub(super) peer: Peer,
    /// The stream of its own, once it has written something.
    own: Option<StreamId>,
    finished: bool,
    /// The stream of the other end, once it has come.
    others: Option<StreamId>,
}

impl OneWay {
    pub(super) fn new(peer: Peer) -> Self {
        Self { peer, own: None, finished: false, others: None }
    }

    /// Reads all that has come over the other end's stream; the number of bytes.
    pub(super) fn read(&mut self) -> u64 {
        let Some(connection) = self.peer.connection() else { return 0 };
        self.others = self.others.or_else(|| connection.streams().accept(Dir::Uni));
        let Some(id) = self.others else { return 0 };
        stream::read(connection, id).0
    }

    /// Bounds what it keeps unsent to about `unsent` bytes beyond a second window.
    pub(super) fn bound_unsent(&mut self, unsent: u64) {
        if let Some(connection) = self.peer.connection() {
            let window = connection.congestion_state().window();
            connection.set_send_window(window.saturating_mul(2).saturating_add(unsent));
        }
    }

    /// Writes as much of `left` bytes as there is space for, and ends its stream when nothing is left.
    pub(super) fn write(&mut self, left: &mut u64) {
        let Some(connection) = self.peer.connected().filter(|_| !self.finished) else { return };
        if self.own.is_none() && *left > 0 {
            self.own = connection.streams().open(Dir::Uni);
        }
        let Some(id) = self.own else { return };
        self.finished = stream::write(connection, id, left);
    }
}
