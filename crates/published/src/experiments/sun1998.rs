//! Sun 1998: single packet discard (SPD), so that more of what TCP sends over UBR arrives usefully.
//!
//! The thesis simulated with NetSim and leaves a good deal open. What is taken here was fixed before any of its ratios was compared, for the
//! reasons told in [`QUESTIONS`]; what other answers give is told beside each table.

mod closed_forms;
mod network;
mod queue;
mod schemes;
mod shared_link;
mod thresholds;

use crate::data::Table;
use crate::reproduction::TableResult;

use super::open::{Brief, Model, Question, Reproducible, Simulated};
use super::{Drawing, ExperimentError, Tables, number, whole};
use network::Setup;

pub(super) const KEY: &str = "sun1998";

/// What reproduces which table.
pub(super) const TABLES: Tables = &[
    ("text-3.3", closed_forms::algorithm),
    ("text-4.1", closed_forms::parameters),
    ("5.1", simulated),
    ("5.3", simulated),
    ("5.4", simulated),
    ("5.6", simulated),
    ("5.7", simulated),
    ("5.8", simulated),
    ("5.10", simulated),
    ("5.11", simulated),
    ("text-5.3-rule", closed_forms::room),
    ("fig-5.12", simulated),
    ("5.12", simulated),
];

fn simulated(table: &Table) -> Result<TableResult, ExperimentError> {
    MODEL.reproduce(table)
}

/// The queues of figures 5.12 to 5.14.
pub(super) fn drawings(table: &Table) -> Result<Vec<Drawing>, ExperimentError> {
    if table.id == "fig-5.12" { queue::drawings(table, &Setup::base()) } else { Ok(Vec::new()) }
}

/// What the thesis leaves open, for [`Reproducible`].
pub(super) const REPRODUCIBLE: &dyn Reproducible = &MODEL;

const MODEL: Model<Setup> = Model {
    publication: KEY,
    tables: &[
        Simulated::new("5.1", thresholds::rows, thresholds::judge, NOTES),
        Simulated::new("5.3", thresholds::rows, thresholds::judge, NOTES),
        Simulated::new("5.4", thresholds::rows, thresholds::judge, NOTES),
        Simulated::new("5.6", thresholds::rows, thresholds::judge, NOTES),
        Simulated::new("5.7", schemes::rows, schemes::always_ahead, NOTES),
        Simulated::new("5.8", schemes::rows, schemes::worst_beats_best, NOTES),
        Simulated::new("5.10", schemes::rows, schemes::about_level, NOTES),
        Simulated::new("5.11", schemes::rows, schemes::ahead_and_level, NOTES),
        Simulated::new("fig-5.12", queue::rows, queue::judge, queue::NOTES),
        Simulated::new("5.12", shared_link::rows, shared_link::judge, shared_link::NOTES),
    ],
    base: Setup::base,
    seeds: 10,
    brief: Brief { set: |_| (), shorter: 1.0 },
    questions: QUESTIONS,
};

const NOTES: &[&str] = &[
    "ACKs take one cell each, in buffers of 1000 cells of their own; none is lost.",
    "link23_goodput is the share of the bottleneck that complete packets took. The ratio does not tell it: where few packets are dropped because all \
     connections wait for their timers, the ratio is high and the link is idle.",
    "Rows without published figures are predictions: thresholds and numbers of connections between those printed.",
];

const SCHEMES: &[&str] = &["5.7", "5.8", "5.10", "5.11", "fig-5.12"];
const THRESHOLDS: &[&str] = &["5.1", "5.3", "5.4", "5.6"];

/// What the thesis leaves open. The first answers were fixed, with their reasons, before anything was compared.
const QUESTIONS: &[Question<Setup>] = &[
    Question {
        asks: "TCP clock and least timeout",
        taken: "ticks of 500 ms, at least 1 s",
        because: "Tahoe is the TCP of 4.3BSD, whose slow timer ticks every 500 ms and whose least timeout is two ticks.",
        others: &[
            ("ticks of 100 ms, at least 200 ms", |setup| setup.clock = ("100 ms", "200 ms")),
            ("no ticks, at least 1 s (RFC 6298)", |setup| setup.clock = ("0 ms", "1 s")),
            ("no ticks, at least 10 ms", |setup| setup.clock = ("0 ms", "10 ms")),
        ],
        tables: &[],
    },
    Question {
        asks: "delayed ACKs",
        taken: "an ACK for each segment",
        because: "The thesis does not mention delayed ACKs, and simulators of its time seldom had them.",
        others: &[("one for two segments, within 200 ms", |setup| setup.delayed_ack = ("200 ms", 2))],
        tables: &[],
    },
    Question {
        asks: "cells of a packet",
        taken: "23: 1024 bytes, 40 of TCP/IP, 8 of AAL5",
        because: "That is what 1024 bytes of data take.",
        others: &[
            ("22: 1024 bytes with their headers", |setup| setup.mss = 984),
            ("20: 1024 bytes by 53, as the thesis counts them", |setup| setup.mss = 912),
        ],
        tables: &[],
    },
    Question {
        asks: "start times",
        taken: "within 10 ms of one another, by seed",
        because: "A simulator starts its sources together; within one propagation round trip seeds have something to draw.",
        others: &[
            ("all at once", |setup| setup.starts_within_us = 0),
            ("within 1 s", |setup| setup.starts_within_us = 1_000_000),
        ],
        tables: &[],
    },
    Question {
        asks: "run length",
        taken: "20 s from the first SYN, without warm-up",
        because: "Long beside the timeouts, so that the start weighs little.",
        others: &[
            ("0.3 s, which the counts of section 5.6 suggest", |setup| setup.duration_ms = 300),
            ("1 s", |setup| setup.duration_ms = 1000),
            ("5 s", |setup| setup.duration_ms = 5000),
        ],
        tables: &["5.1", "5.3", "5.4", "5.6", "5.7", "5.8", "5.10", "5.11", "fig-5.12"],
    },
    Question {
        asks: "last cell of a packet that is being dropped",
        taken: "passes if there is room",
        because: "The listing of section 3.3 lets it pass, and all schemes are written into that switch.",
        others: &[("is dropped (Romanow and Floyd 1995)", |setup| setup.last_cell = "drop")],
        tables: &[],
    },
    Question {
        asks: "which switches discard packets",
        taken: "all of them",
        because: "The thesis gives buffers and thresholds for the switches, not for one of them.",
        others: &[("Switch2 alone", |setup| setup.second_switch_alone = true)],
        tables: &["5.1", "5.3", "5.4", "5.6", "5.7", "5.8", "5.10", "5.11", "fig-5.12"],
    },
    Question {
        asks: "TCP processing delay of 300 us",
        taken: "delays every packet that a host receives",
        because: "It is called a delay.",
        others: &[("is what a host takes for a packet, one after the other", |setup| setup.serial_hosts = true)],
        tables: &[],
    },
    Question {
        asks: "SPDth is passed",
        taken: "with q >= SPDth",
        because: "The listing's comment leaves equality open; the code drops from q >= SPDth on.",
        others: &[("with q > SPDth", |setup| setup.strictly_above = true)],
        tables: &[],
    },
    Question {
        asks: "CongestTh in section 5.2",
        taken: "200 cells",
        because: "Chapter 4 gives it for all experiments except those of section 5.6.",
        others: &[("none: SPD acts at any total", |setup| setup.activation = 0)],
        tables: THRESHOLDS,
    },
    Question {
        asks: "VCs among which per-VC EPD divides its threshold",
        taken: "all",
        because: "Its example divides 700 cells by the 10 VCs that there are.",
        others: &[("those of which cells wait", |setup| setup.active_share = true)],
        tables: SCHEMES,
    },
    Question {
        asks: "buffer and CongestTh with 5 VCs",
        taken: "200 cells, CongestTh 40",
        because: "Thresholds of 100 to 200 cells are K = 0.5 to 1 of 200, and CongestTh keeps its fifth of the buffer: with 200 SPD could not act.",
        others: &[
            ("200 cells, no CongestTh", |setup| setup.small = (200, 0)),
            ("1000 cells, CongestTh 40", |setup| setup.small = (1000, 40)),
        ],
        tables: &["5.7"],
    },
    Question {
        asks: "size of one arrival in section 5.4",
        taken: "one packet",
        because: "The unit of mu is 1024 bytes, and one packet at mu is the rate that is meant; the text's 1024 Kbytes would be 1024 of them.",
        others: &[
            ("1024 kbytes, as the text says, as much in the mean", |setup| setup.arrival_bytes = Some(1 << 20)),
            ("8 kbytes, as much in the mean", |setup| setup.arrival_bytes = Some(8192)),
        ],
        tables: &["5.11"],
    },
    Question {
        asks: "mean rate of a source in section 5.4",
        taken: "1.966 Mbit/s, mu in its unit",
        because: "0.24 Mbit/s, which is printed, would load the link to 24 %; mu in its unit is 0.246 Mbyte/s.",
        others: &[("0.24 Mbit/s, as printed", |setup| setup.arrival_bps = Some(240_000))],
        tables: &["5.11"],
    },
    Question {
        asks: "CongestTh with buffers of 5000 cells",
        taken: "1000 cells",
        because: "It keeps its fifth of the buffer.",
        others: &[("200 cells", |setup| setup.large_activation = 200), ("none", |setup| setup.large_activation = 0)],
        tables: &["5.12"],
    },
    Question {
        asks: "interval over which cells are counted in section 5.6",
        taken: "10 s from the first SYN",
        because: "Several timeouts long; the counts are compared for each second.",
        others: &[
            ("0.3 s, in which Link12 can carry 60 000 cells", |setup| setup.shared_ms = 300),
            ("1 s", |setup| setup.shared_ms = 1000),
        ],
        tables: &["5.12"],
    },
    Question {
        asks: "link delays in section 5.6",
        taken: "3 ms each, as in chapter 4",
        because: "No others are given.",
        others: &[("none", |setup| setup.shared_delay_ms = 0)],
        tables: &["5.12"],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduction::RowResult;

    fn tables() -> Vec<Table> {
        let publications = crate::publications().unwrap();
        publications.into_iter().find(|publication| publication.key == KEY).unwrap().tables
    }

    /// The criteria are those of the publication: its own figures meet them.
    #[test]
    fn the_published_figures_show_what_is_claimed() {
        for table in tables() {
            let Some(simulated) = MODEL.tables.iter().find(|known| known.id == table.id) else { continue };
            let rows: Vec<RowResult> =
                table.rows.iter().map(|row| RowResult::new(row, row.published.clone())).collect();
            // The queues of figure 5.12 are told in words.
            if table.id != "fig-5.12" {
                let finding = (simulated.judge)(&table, &rows);
                assert!(finding.is_shown(), "{}: {}", table.id, finding.evidence());
            }
        }
    }

    /// One row of each kind, briefly: what it measures is there, under the names of the publication.
    #[test]
    fn every_kind_of_table_measures_what_was_published() {
        let brief = Setup { duration_ms: 2000, shared_ms: 500, ..Setup::base() };
        for id in ["5.1", "5.7", "5.11", "fig-5.12", "5.12"] {
            let mut table = tables().into_iter().find(|table| table.id == id).unwrap();
            if id != "fig-5.12" {
                table.rows.truncate(1);
            }
            let simulated = MODEL.tables.iter().find(|known| known.id == id).unwrap();
            let rows = (simulated.rows)(&table, &brief, &[1, 2]).unwrap();
            for row in &rows {
                for (name, value) in row.published.iter().filter(|(name, _)| !name.starts_with("goodput_epd_cells")) {
                    if name != "goodput_spd_cells" {
                        assert!(row.simulated.get(name).is_some(), "{id}: no {name} beside {value}");
                    }
                }
                for (name, ratio) in row.simulated.iter().filter(|(name, _)| name.starts_with("goodput_to_input")) {
                    assert!((0.2..=1.0).contains(&ratio.as_f64().unwrap()), "{id}: {name} is {ratio}");
                }
            }
        }
    }

    /// The base case is part 0 and, with few seeds, part 1; the next are the other answers to the first question. All judge the predictions, too.
    #[test]
    fn predictions_are_judged_with_every_answer() {
        let mut table = tables().into_iter().find(|table| table.id == "5.7").unwrap();
        table.rows.truncate(1);
        let model = Model { base: || Setup { duration_ms: 1000, ..Setup::base() }, ..MODEL };
        let parts = [model.part(&table, 0), model.part(&table, 1), model.part(&table, 2)];
        let result = model.join(&table, parts.into_iter().map(Result::unwrap).collect()).unwrap();
        assert_eq!(result.sensitivity[1].answer, QUESTIONS[0].others[0].0);
        assert!(result.rows.iter().any(|row| row.predicted));
        for told in &result.sensitivity {
            // 120 cells is no threshold of the thesis.
            assert!(told.evidence.contains(" at 120"), "{}", told.evidence);
        }
    }

    /// Every answer makes a network, in every table that it concerns.
    #[test]
    fn every_answer_can_be_tried() {
        for id in ["5.7", "5.11"] {
            let mut table = tables().into_iter().find(|table| table.id == id).unwrap();
            table.rows.truncate(1);
            for question in QUESTIONS.iter().filter(|question| question.concerns(&table)) {
                for (answer, set) in question.others {
                    let mut setup = Setup::base();
                    set(&mut setup);
                    setup.duration_ms = 500;
                    let ran = schemes::rows(&table, &setup, &[1]);
                    assert!(ran.is_ok(), "{id}: {}: {answer}: {ran:?}", question.asks);
                }
            }
        }
    }
}
