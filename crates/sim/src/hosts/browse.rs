//! The interface of applications that request data over connections of their own: web users, video viewers, backups.
//!
//! An application decides, and the simulation carries out: it asks for the next request, opens a connection where the
//! application has none, and reports each response that has arrived. Applications know neither packets nor transports.

use lastmile_units::Instant;

/// A request, and the response to it. One of them may be a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Bytes of the request.
    pub request: u64,
    /// Bytes of the response.
    pub bytes: u64,
    /// The open connection for the request; `None`: a new one.
    pub on: Option<u32>,
}

/// The decisions of an application. Connections have the numbers that its owner gives them.
pub trait Browse {
    /// The application starts, or its timer fires.
    fn wake(&mut self, now: Instant);
    /// The next request to send at once, if there is any.
    fn next_request(&mut self) -> Option<Request>;
    /// The request of [`next_request`](Self::next_request) was sent over `connection`.
    fn asked(&mut self, connection: u32);
    /// The response has arrived completely over `connection`.
    fn completed(&mut self, now: Instant, connection: u32);
    /// `connection` has failed.
    fn broke(&mut self, now: Instant, connection: u32);
    /// Takes the time at which [`wake`](Self::wake) is due.
    fn take_timer(&mut self) -> Option<Instant>;
    /// Takes the connections to close.
    fn take_unneeded(&mut self) -> Vec<u32>;
    /// The user stops. Returns the connections to close.
    fn stop(&mut self, now: Instant) -> Vec<u32>;
}
