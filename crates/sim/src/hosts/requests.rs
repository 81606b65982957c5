//! The requests and responses of one connection: each response follows its request, several may be on their way.
//!
//! The server writes a response when its request has arrived, in the order of the requests: the order that RFC 9218,
//! section 10, recommends for responses of equal urgency that are not incremental. On a connection of TCP a response
//! has arrived once everything before it has. On a connection of QUIC each request and each response is a stream (RFC
//! 9114, section 4.1), which has arrived once its own octets have.
//!
//! Differs: the streams of a connection are consecutive ranges of one sequence of octets, so that all have the numbers
//! of one stream. Flow control is that of the connection, and gives credit for octets in order.
//!
//! Cost: O(1) a segment and a pass over the responses on their way.

use std::collections::VecDeque;

/// Octets of one direction: from `start` to `end`, excluded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The first octet.
    pub start: u64,
    /// The octet behind the last.
    pub end: u64,
}

/// The requests and responses of one connection.
#[derive(Clone, Debug, Default)]
pub struct Turns {
    /// Octets of all requests, and of all responses.
    requested: u64,
    responded: u64,
    /// Requests without a response, and the bytes of the responses.
    asked: VecDeque<(Span, u64)>,
    /// Responses that have not arrived.
    due: Vec<Span>,
}

impl Turns {
    /// Octets of all requests.
    #[must_use]
    pub fn requested(&self) -> u64 {
        self.requested
    }

    /// The client writes `request` octets for a response of `bytes`.
    pub fn ask(&mut self, request: u64, bytes: u64) {
        let span = Span { start: self.requested, end: self.requested + request };
        self.requested = span.end;
        self.asked.push_back((span, bytes));
    }

    /// The octets of the responses that the server writes, to requests that have `arrived`.
    pub fn respond(&mut self, arrived: impl Fn(Span) -> bool) -> u64 {
        let before = self.responded;
        self.asked.retain(|(request, bytes)| {
            let answered = arrived(*request);
            if answered {
                self.due.push(Span { start: self.responded, end: self.responded + bytes });
                self.responded += bytes;
            }
            !answered
        });
        self.responded - before
    }

    /// The number of responses that have `arrived` since the last call.
    pub fn receive(&mut self, arrived: impl Fn(Span) -> bool) -> u32 {
        let before = self.due.len();
        self.due.retain(|response| !arrived(*response));
        (before - self.due.len()) as u32
    }

    /// The server answers no further request.
    pub fn stop(&mut self) {
        self.asked.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_order_a_response_waits_for_those_before_it() {
        let mut turns = Turns::default();
        turns.ask(100, 1_000);
        turns.ask(100, 500);
        assert_eq!(turns.respond(|span| span.end <= 99), 0);
        assert_eq!(turns.respond(|span| span.end <= 150), 1_000);
        assert_eq!(turns.respond(|span| span.end <= 200), 500);
        let up_to = |end: u64| move |span: Span| span.end <= end;
        assert_eq!((turns.receive(up_to(999)), turns.receive(up_to(1_200)), turns.receive(up_to(1_500))), (0, 1, 1));
    }

    #[test]
    fn a_stream_of_its_own_arrives_without_those_before_it() {
        let mut turns = Turns::default();
        turns.ask(100, 1_000);
        turns.ask(100, 500);
        assert_eq!(turns.respond(|span| span.start == 100), 500);
        assert_eq!(turns.respond(|_| true), 1_000);
        assert_eq!(turns.receive(|span| span == Span { start: 500, end: 1_500 }), 1);
        assert_eq!(turns.receive(|_| true), 1);
    }
}
