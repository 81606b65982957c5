//! Packets of stated sizes at stated times, and their arrivals.

use lastmile_units::{ByteCount, Duration};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// A direction of one packet train.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// From the server to the client.
    Down,
    /// From the client to the server.
    Up,
}

/// A packet of a train.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure {
    /// When it is to leave, after the start of the train.
    pub at: Duration,
    /// Its length as an IP packet.
    pub ip_len: ByteCount,
}

/// A packet of a train as it was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passage {
    /// When it left by the sender's clock, after the sender's start of the train.
    pub sent: Duration,
    /// When it arrived by the receiver's clock, after an unknown but constant zero; `None` for a
    /// packet that did not arrive.
    pub arrived: Option<Duration>,
}

/// An echo request and its round-trip time; `None` without an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Echo {
    /// Length of the request (and of its answer) as an IP packet.
    pub ip_len: ByteCount,
    /// When the request left, after the start of the first.
    pub sent: Duration,
    /// The round-trip time.
    pub round_trip: Option<Duration>,
}

/// The packets of a train, and the echoes of another flow beside it.
pub type Beside = (Vec<Passage>, Vec<Echo>);

/// A path that carries trains and echo requests. A real one is a server at the other end; tests
/// simulate one.
pub trait Path {
    /// Sends a train and returns one passage for each packet, in the order of departure. Several
    /// trains at a time (`background` in the other or the same direction) start together.
    ///
    /// # Errors
    /// The path cannot carry trains (no server of our own at the end), or the server vanished.
    fn trains(&mut self, trains: &[(Way, &[Departure])]) -> Result<Vec<Vec<Passage>>, Error>;

    /// Sends a train, and echo requests of another flow beside it. `None` where the path has no second flow.
    ///
    /// # Errors
    /// As [`Path::trains`].
    fn beside(&mut self, way: Way, train: &[Departure], requests: &[Departure]) -> Result<Option<Beside>, Error> {
        let _ = (way, train, requests);
        Ok(None)
    }

    /// Sends echo requests at the stated times. The answers have the length of the requests.
    ///
    /// # Errors
    /// No socket, or a path that drops all of them.
    fn echoes(&mut self, requests: &[Departure]) -> Result<Vec<Echo>, Error>;

    /// Time that has passed since the path was opened: a detection ends within its allowance.
    fn elapsed(&self) -> Duration;

    /// Largest IP packet of a train that the path carries without fragmentation; `None` where it is not known.
    ///
    /// # Errors
    /// No socket.
    fn mtu(&mut self) -> Result<Option<ByteCount>, Error>;
}
