//! A running `lastmile shape`, asked at its control socket.
//!
//! Its status is JSON; the members that are read here are a part of it. A request for a whole status
//! has the delays of each class value by value, so that those of an interval are a difference.

use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};

use lastmile_live::Error;
use lastmile_live::control::{self, Request, Verb};
use serde::Deserialize;

use crate::recorder::{Reading, Totals};
use crate::sample::{Backlog, QueueName, Source};

/// A shaper.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shaper {
    /// Its name in the store: that of its control socket without the ending.
    pub name: String,
    /// Its control socket.
    pub control: PathBuf,
}

impl Shaper {
    /// The shaper at this control socket.
    #[must_use]
    pub fn at(control: &FilePath) -> Self {
        let name = control.file_stem().unwrap_or(control.as_os_str()).to_string_lossy().into_owned();
        Self { name, control: control.to_owned() }
    }

    /// Its lines and classes; `None` if none runs there.
    ///
    /// # Errors
    /// It does not answer in time, may not be asked, or answers with something else.
    pub fn read(&self) -> Result<Option<Vec<Reading>>, String> {
        let request = Request { whole: true, ..Verb::Status.into() };
        match control::ask(&self.control, &request.to_string()) {
            Ok(answer) => self.readings(&answer).map(Some),
            Err(Error::NoAnswer { source, .. })
                if matches!(source.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused) =>
            {
                Ok(None)
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// The readings of an answer.
    ///
    /// # Errors
    /// It is no status of a shaper.
    pub fn readings(&self, answer: &str) -> Result<Vec<Reading>, String> {
        let answer: Answer =
            serde_json::from_str(answer).map_err(|error| format!("its answer is no status: {error}"))?;
        let status = match answer {
            Answer::Status(status) => status,
            Answer::Failed { error } => return Err(error),
        };
        let directions = [("up", status.up), ("down", status.down)];
        Ok(directions.into_iter().flat_map(|(name, direction)| self.direction(name, direction)).collect())
    }

    fn direction(&self, name: &str, direction: Direction) -> Vec<Reading> {
        let place = format!("{} {name}", self.name);
        let named = |class: &str| QueueName { source: Source::Shape, place: place.clone(), class: class.to_owned() };
        let line = Reading {
            name: named(""),
            totals: Totals {
                packets: direction.transmitted.packets,
                bytes: direction.transmitted.bytes,
                wire_bytes: Some(direction.wire_bytes),
                dropped: direction.dropped.into_iter().map(|(reason, amount)| (reason, amount.packets)).collect(),
                overlimits: direction.overlimits,
                waits: BTreeMap::new(),
            },
            backlog: Some(direction.queued.into()),
        };
        let class = |class: Class| Reading {
            name: named(&class.name),
            totals: Totals {
                packets: class.sent.packets,
                bytes: class.sent.bytes,
                wire_bytes: None,
                dropped: class.dropped,
                overlimits: class.overlimits,
                waits: class.waits_ns.into_iter().collect(),
            },
            backlog: Some(class.queued.into()),
        };
        // Packets that a drain lets by before the classes are of none of them, as in `lastmile shape status`.
        let of_drain = |name: &str| -> u64 {
            let counters = direction.counters.iter().filter(|counter| counter.kind == "drain" && counter.name == name);
            counters.map(|counter| counter.value).sum()
        };
        let urgent = (of_drain("urgent") > 0).then(|| Reading {
            name: named(if direction.classes.iter().any(|class| class.name == URGENT) { LET_BY } else { URGENT }),
            totals: Totals {
                packets: of_drain("urgent"),
                bytes: of_drain("urgent_bytes"),
                wire_bytes: None,
                dropped: BTreeMap::from([("tail".to_owned(), of_drain("dropped_tail"))]),
                overlimits: 0,
                waits: BTreeMap::new(),
            },
            backlog: None,
        });
        std::iter::once(line).chain(urgent).chain(direction.classes.into_iter().map(class)).collect()
    }
}

/// The row of packets that are let by before the classes, also beside a class of its name.
const URGENT: &str = "urgent";
const LET_BY: &str = "urgent, let by";

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Status(Box<Status>),
    Failed { error: String },
}

#[derive(Deserialize)]
struct Status {
    up: Direction,
    down: Direction,
}

#[derive(Deserialize)]
struct Direction {
    transmitted: Amount,
    wire_bytes: u64,
    dropped: BTreeMap<String, Amount>,
    overlimits: u64,
    queued: Amount,
    classes: Vec<Class>,
    #[serde(default)]
    counters: Vec<Counter>,
}

/// A counter of a part of the queue.
#[derive(Deserialize)]
struct Counter {
    kind: String,
    name: String,
    value: u64,
}

#[derive(Deserialize)]
struct Class {
    name: String,
    sent: Amount,
    dropped: BTreeMap<String, u64>,
    queued: Amount,
    overlimits: u64,
    #[serde(default)]
    waits_ns: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Deserialize)]
struct Amount {
    packets: u64,
    bytes: u64,
}

impl From<Amount> for Backlog {
    fn from(Amount { packets, bytes }: Amount) -> Self {
        Self { packets, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = r#"{"status":{"policy":"mine","up":{"wire":{"rate_bps":512000},"transmitted":{"packets":5,
        "bytes":420},"wire_bytes":795,"cells":15,"dropped":{"tail":{"packets":2,"bytes":3000}},"overlimits":3,
        "queued":{"packets":1,"bytes":84},"classes":[{"name":"quick","priority":0,"sent":{"packets":5,"bytes":420},
        "dropped_packets":2,"dropped":{"tail":2},"queued":{"packets":1,"bytes":84},"overlimits":0,
        "waits_ns":[[1023,4],[2047,1]]}]},
        "down":{"transmitted":{"packets":0,"bytes":0},"wire_bytes":0,"dropped":{},"overlimits":0,
        "queued":{"packets":0,"bytes":0},"classes":[]}}}"#;

    #[test]
    fn a_status_becomes_a_line_and_its_classes() {
        let shaper = Shaper::at(FilePath::new("/run/lastmile/home.sock"));
        let readings = shaper.readings(ANSWER).unwrap();
        let names: Vec<String> = readings.iter().map(|reading| reading.name.to_string()).collect();
        assert_eq!(names, ["home up", "home up quick", "home down"]);
        assert_eq!(readings[0].totals.wire_bytes, Some(795));
        assert_eq!(readings[0].totals.dropped, BTreeMap::from([("tail".to_owned(), 2)]));
        assert_eq!(readings[1].backlog, Some(Backlog { packets: 1, bytes: 84 }));
        assert_eq!(readings[1].totals.waits, BTreeMap::from([(1023, 4), (2047, 1)]));
        assert_eq!(shaper.readings(r#"{"failed":{"error":"it is ending"}}"#), Err("it is ending".to_owned()));
        assert!(shaper.readings("{}").unwrap_err().starts_with("its answer is no status: "));
    }

    /// The counters of a drain, as `lastmile shape status --json` prints them.
    #[test]
    fn packets_that_are_let_by_before_the_classes_have_a_row_of_their_own() {
        let shaper = Shaper::at(FilePath::new("/run/lastmile/home.sock"));
        let counters = r#""counters":[{"path":"","kind":"drain","name":"urgent","value":7},
            {"path":"","kind":"drain","name":"urgent_bytes","value":588},
            {"path":"","kind":"drain","name":"dropped_tail","value":1},
            {"path":"queue","kind":"fifo","name":"dropped_tail","value":9}],"classes":[{"name":"quick"#;
        let with = ANSWER.replace(r#""classes":[{"name":"quick"#, counters);
        let readings = shaper.readings(&with).unwrap();
        let names = |readings: &[Reading]| readings.iter().map(|reading| reading.name.to_string()).collect::<Vec<_>>();
        assert_eq!(names(&readings), ["home up", "home up urgent", "home up quick", "home down"]);
        let urgent = &readings[1].totals;
        assert_eq!((urgent.packets, urgent.bytes, urgent.wire_bytes), (7, 588, None));
        assert_eq!(urgent.dropped, BTreeMap::from([("tail".to_owned(), 1)]));
        let with = with.replace(r#""name":"quick"#, r#""name":"urgent"#);
        let readings = shaper.readings(&with).unwrap();
        assert_eq!(names(&readings), ["home up", "home up urgent, let by", "home up urgent", "home down"]);
    }

    #[test]
    fn where_no_shaper_runs_there_is_nothing_to_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Shaper::at(&folder.path().join("shape.sock")).read(), Ok(None));
    }
}
