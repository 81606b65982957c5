//! Kalyanaraman, Shekhar, Kidambi 1999: the AMP model; ACK dropping, ACK regeneration and two classes upstream.
//!
//! The paper simulated with ns, and says little of how: [`QUESTIONS`] lists what is taken, why, and what else may be meant. Throughput is
//! TCP payload.

mod closed_forms;
mod setup;
mod single;
mod two_way;

use crate::data::Table;
use crate::reproduction::TableResult;

use super::open::{Brief, Model, Question, Reproducible, Simulated};
use super::{ExperimentError, Tables, whole};
use setup::Setup;

pub(super) const KEY: &str = "kalyanaraman1999";

/// What reproduces which table.
pub(super) const TABLES: Tables = &[
    ("text-1", closed_forms::rates),
    ("text-2-example", closed_forms::worked_example),
    ("text-2-cbq", closed_forms::classes),
    ("1", simulated),
    ("2", simulated),
    ("3", simulated),
    ("4", simulated),
    ("5", simulated),
    ("6", closed_forms::cell_tax),
];

fn simulated(table: &Table) -> Result<TableResult, ExperimentError> {
    MODEL.reproduce(table)
}

/// What the paper leaves open, for [`Reproducible`].
pub(super) const REPRODUCIBLE: &dyn Reproducible = &MODEL;

const MODEL: Model<Setup> = Model {
    publication: KEY,
    tables: &[
        Simulated::new("1", single::unregulated, single::judge_unregulated, NOTES),
        Simulated::new("2", single::dropper, single::judge_dropper, NOTES),
        Simulated::new("3", single::regenerator, single::judge_regenerator, NOTES),
        Simulated::new("4", two_way::fifo, two_way::judge_fifo, NOTES),
        Simulated::new("5", two_way::classes, two_way::judge_classes, NOTES),
    ],
    base: Setup::base,
    seeds: 10,
    brief: Brief { set: |setup| setup.duration_s = 30, shorter: 3.3 },
    questions: QUESTIONS,
};

const NOTES: &[&str] = &[
    "Seeds draw the start of each transfer within the first 100 ms and up to 1 ms of delay on the backbone, so that no figure rests on one \
     phase between packets and ACKs.",
    "What is tried otherwise runs for 30 s.",
];

const REGENERATED: &[&str] = &["3", "5"];

/// What the paper leaves open. The first answers do not depend on the published throughputs.
const QUESTIONS: &[Question<Setup>] = &[
    Question {
        asks: "delays",
        taken: "5 ms each way",
        because: "A short path, on which the line decides.",
        others: &[("20 ms each way", |setup| setup.delay_ms = 20), ("50 ms each way", |setup| setup.delay_ms = 50)],
        tables: &[],
    },
    Question {
        asks: "queue downstream",
        taken: "50 packets",
        because: "The default of the simulator used.",
        others: &[("20 packets", |setup| setup.down_queue = 20), ("1000 packets", |setup| setup.down_queue = 1000)],
        tables: &[],
    },
    Question {
        asks: "queue upstream",
        taken: "1000 packets",
        because: "The paper sees no losses upstream.",
        others: &[("50 packets", |setup| setup.up_queue = 50)],
        tables: &[],
    },
    Question {
        asks: "TCP variant",
        taken: "Reno",
        because: "The usual variant of its time, which the simulator used has.",
        others: &[
            ("Tahoe, the default of the simulator used", |setup| setup.variant = "tahoe"),
            ("NewReno", |setup| setup.variant = "newreno"),
        ],
        tables: &[],
    },
    Question {
        asks: "window",
        taken: "64 KiB",
        because: "The most without scaling.",
        others: &[
            ("20 packets, the default of the simulator used", |setup| setup.window_bytes = 20 * 960),
            ("32 KiB", |setup| setup.window_bytes = 32 * 1024),
            ("1 MiB", |setup| setup.window_bytes = 1 << 20),
        ],
        tables: &[],
    },
    Question {
        asks: "delayed ACKs",
        taken: "an ACK for each segment",
        because: "The bound of table 1 is that of M = 1.",
        others: &[("one for two segments, within 100 ms", |setup| setup.delayed_ack = ("100 ms", 2))],
        tables: &[],
    },
    Question {
        asks: "least timeout",
        taken: "1 s",
        because: "RFC 6298.",
        others: &[("200 ms", |setup| setup.min_rto = "200 ms")],
        tables: &[],
    },
    Question {
        asks: "payload of a packet of 1000 bytes",
        taken: "960 bytes",
        because: "Headers belong to a packet.",
        others: &[("1000 bytes, headers not counted", |setup| setup.mss = 1000)],
        tables: &[],
    },
    Question {
        asks: "length of a run",
        taken: "100 s from the start",
        because: "Long compared with slow start.",
        others: &[("10 s", |setup| setup.duration_s = 10)],
        tables: &[],
    },
    Question {
        asks: "duplicate ACKs at the dropper",
        taken: "are kept",
        because: "A fast retransmit needs them.",
        others: &[("are dropped like others", |setup| setup.keep_duplicates = false)],
        tables: &["2", "3", "5"],
    },
    Question {
        asks: "spacing of regenerated ACKs",
        taken: "all at once",
        because: "A regenerator without a clock needs nothing more.",
        others: &[("paced", |setup| setup.release = "paced")],
        tables: REGENERATED,
    },
    Question {
        asks: "regeneration factor with two classes",
        taken: "1",
        because: "The least: one ACK for each that was dropped.",
        others: &[("3", |setup| setup.factor = 3), ("4", |setup| setup.factor = 4)],
        tables: &["5"],
    },
    Question {
        asks: "classes",
        taken: "borrow what the other leaves",
        because: "The published upload at G = 0.1 is five times its share.",
        others: &[("have their shares alone", |setup| setup.borrow = false)],
        tables: &["5"],
    },
    Question {
        asks: "window of the upload",
        taken: "that of the download",
        because: "Nothing sets the two apart.",
        others: &[("8 packets", |setup| setup.upload_window_bytes = Some(8 * 960))],
        tables: &["4", "5"],
    },
];

/// A run of ten seconds of `table`, which is table 1.
pub(super) fn yardstick(table: &Table) -> Result<(), ExperimentError> {
    let row = table.rows.last().ok_or(ExperimentError::MissingSetting("rows"))?;
    let setup = Setup { duration_s: 10, ..Setup::base() };
    setup.run(table, row, setup::Network::Alone, 1).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduction::RowResult;

    fn tables() -> Vec<Table> {
        let publications = crate::publications().unwrap();
        let ours = publications.into_iter().find(|publication| publication.key == KEY).unwrap();
        ours.tables.into_iter().filter(|table| MODEL.tables.iter().any(|known| known.id == table.id)).collect()
    }

    /// Every answer makes a network that measures what was published.
    #[test]
    fn every_answer_can_be_tried() {
        for mut table in tables() {
            table.rows.truncate(1);
            let simulated = MODEL.tables.iter().find(|known| known.id == table.id).unwrap();
            for question in QUESTIONS.iter().filter(|question| question.concerns(&table)) {
                for (answer, set) in question.others {
                    let mut setup = Setup::base();
                    set(&mut setup);
                    setup.duration_s = 2;
                    let rows = (simulated.rows)(&table, &setup, &[1]);
                    let rows: Vec<RowResult> =
                        rows.unwrap_or_else(|error| panic!("{}: {}: {answer}: {error}", table.id, question.asks));
                    for (name, _) in rows[0].published.iter() {
                        assert!(rows[0].simulated.get(name).is_some(), "{}: no {name}", table.id);
                    }
                }
            }
        }
    }
}
