//! Counters of interfaces, and of the queueing disciplines and classes on them.

use std::collections::BTreeMap;

use lastmile_live::gateway;
use lastmile_live::statistics::{self, Interface, Queue, Traffic};

use crate::recorder::{Reading, Totals};
use crate::sample::{Backlog, QueueName, Source};

/// The interfaces to watch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Devices {
    /// The devices of these names.
    Named(Vec<String>),
    /// The one or two that default routes go through.
    OfDefaultRoutes,
}

impl Devices {
    fn names(&self) -> Vec<String> {
        match self {
            Self::Named(names) => names.clone(),
            Self::OfDefaultRoutes => gateway::devices(),
        }
    }

    /// The readings of each interface, or why there are none, by its name.
    #[must_use]
    pub fn read(&self) -> BTreeMap<String, Result<Vec<Reading>, String>> {
        let names = self.names();
        if names.is_empty() {
            return BTreeMap::new();
        }
        let known = statistics::interfaces().map_err(|error| error.to_string());
        let of = |name: &str| {
            let interface = known.as_ref().map_err(Clone::clone)?.get(name).ok_or("there is no such interface")?;
            let queues = statistics::queues(interface).map_err(|error| error.to_string())?;
            Ok(readings(interface, &queues))
        };
        names.iter().map(|name| (name.clone(), of(name))).collect()
    }
}

fn readings(interface: &Interface, queues: &[Queue]) -> Vec<Reading> {
    let traffic = |class: &str, traffic: &Traffic| Reading {
        name: named(Source::Interface, interface, class),
        totals: Totals {
            packets: traffic.packets,
            bytes: traffic.bytes,
            dropped: [("dropped", traffic.dropped), ("errors", traffic.errors)]
                .map(|(why, n)| (why.to_owned(), n))
                .into(),
            ..Totals::default()
        },
        backlog: None,
    };
    let queue = |queue: &Queue| Reading {
        name: named(Source::Kernel, interface, &queue.name()),
        totals: Totals {
            packets: queue.packets,
            bytes: queue.bytes,
            // The kernel counts drops of a queue without their reason.
            dropped: BTreeMap::from([("any".to_owned(), queue.dropped)]),
            overlimits: queue.overlimits,
            ..Totals::default()
        },
        backlog: Some(Backlog { packets: queue.backlog_packets, bytes: queue.backlog_bytes }),
    };
    // A device without a queue has a discipline that counts nothing. Classes of these kinds are flows of the moment.
    let flow = |queue: &Queue| queue.is_class && ["fq_codel", "sfq", "cake"].contains(&queue.kind.as_str());
    let queues = queues.iter().filter(|queue| queue.kind != "noqueue" && !flow(queue)).map(queue);
    [traffic("received", &interface.received), traffic("sent", &interface.sent)].into_iter().chain(queues).collect()
}

fn named(source: Source, interface: &Interface, class: &str) -> QueueName {
    QueueName { source, place: interface.name.clone(), class: class.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_two_directions_and_one_that_is_not_there_says_so() {
        let read = Devices::Named(vec!["lo".to_owned(), "lastmile-none".to_owned()]).read();
        let names: Vec<String> = read["lo"].as_ref().unwrap().iter().map(|reading| reading.name.to_string()).collect();
        assert_eq!(names[..2], ["lo received", "lo sent"]);
        assert_eq!(read["lastmile-none"], Err("there is no such interface".to_owned()));
    }

    #[test]
    fn classes_have_the_names_of_tc() {
        let interface = Interface {
            name: "eth0".to_owned(),
            index: 2,
            received: Traffic::default(),
            sent: Traffic { packets: 7, bytes: 700, dropped: 1, errors: 0 },
        };
        let class = Queue {
            kind: "htb".to_owned(),
            handle: (0x1a57, 0x10),
            is_class: true,
            packets: 7,
            dropped: 3,
            backlog_bytes: 1500,
            ..Queue::default()
        };
        let root = Queue { kind: "htb".to_owned(), handle: (0x1a57, 0), ..Queue::default() };
        let flow = Queue { kind: "fq_codel".to_owned(), handle: (0, 0x1a3), is_class: true, ..Queue::default() };
        let readings = readings(&interface, &[root, class, flow]);
        let names: Vec<String> = readings.iter().map(|reading| reading.name.to_string()).collect();
        assert_eq!(names, ["eth0 received", "eth0 sent", "eth0 htb 1a57:", "eth0 htb 1a57:10"]);
        assert_eq!(readings[3].backlog.map(|backlog| backlog.bytes), Some(1500));
        assert_eq!(readings[3].totals.dropped["any"], 3);
    }
}
