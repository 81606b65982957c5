//! The counters of a server.

use std::sync::atomic::{AtomicU64, Ordering};

/// An event that is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    /// TCP connections accepted.
    Connections,
    /// Sessions opened.
    Sessions,
    /// Connections that ended without a whole first line: half open, silent, or too slow.
    Silent,
    /// First lines that are none of the protocol, and later ones.
    Malformed,
    /// Connections whose code is not of the key.
    WrongKey,
    /// Requests above a limit.
    Refused,
    /// Loads begun.
    Loads,
    /// Loads that the limit of time ended.
    CutLoads,
    /// Payload bytes sent over streams.
    SentBytes,
    /// Payload bytes received over streams.
    ReceivedBytes,
    /// Trains begun.
    Trains,
    /// Echo requests answered.
    Echoes,
    /// Datagrams that are none of the protocol, of no session, or of an address without a cookie.
    Strays,
}

impl Counted {
    /// All events, with names for metrics and their meaning.
    pub const ALL: [(Self, &'static str, &'static str); 13] = [
        (Self::Connections, "connections", "TCP connections accepted"),
        (Self::Sessions, "sessions", "sessions opened"),
        (Self::Silent, "silent", "connections closed without a whole first line"),
        (Self::Malformed, "malformed", "lines that are none of the protocol"),
        (Self::WrongKey, "wrong_key", "connections without the key"),
        (Self::Refused, "refused", "requests above a limit"),
        (Self::Loads, "loads", "loads begun"),
        (Self::CutLoads, "cut_loads", "loads that the time limit ended"),
        (Self::SentBytes, "sent_bytes", "payload bytes sent over streams"),
        (Self::ReceivedBytes, "received_bytes", "payload bytes received over streams"),
        (Self::Trains, "trains", "packet trains begun"),
        (Self::Echoes, "echoes", "UDP echo requests answered"),
        (Self::Strays, "stray_datagrams", "datagrams of no session, or malformed"),
    ];
}

/// Counters since the start.
#[derive(Default, Debug)]
pub struct Counters([AtomicU64; Counted::ALL.len()]);

impl Counters {
    pub(super) fn add(&self, event: Counted, number: u64) {
        self.0[event as usize].fetch_add(number, Ordering::Relaxed);
    }

    /// The number of this event.
    #[must_use]
    pub fn get(&self, event: Counted) -> u64 {
        self.0[event as usize].load(Ordering::Relaxed)
    }

    /// The counters as a text of Prometheus's exposition format, version 0.0.4.
    #[must_use]
    pub fn exposition(&self) -> String {
        let each = Counted::ALL.iter().map(|(event, name, help)| {
            let name = format!("lastmile_measure_{name}_total");
            format!("# HELP {name} {help}\n# TYPE {name} counter\n{name} {}\n", self.get(*event))
        });
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_has_its_counter() {
        for (index, (event, _, _)) in Counted::ALL.iter().enumerate() {
            assert_eq!(*event as usize, index);
        }
        let counters = Counters::default();
        counters.add(Counted::WrongKey, 3);
        assert!(counters.exposition().contains("\nlastmile_measure_wrong_key_total 3\n"));
    }
}
