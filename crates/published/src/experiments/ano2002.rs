//! Ano, Decre and Hasegawa 2002: assured forwarding as SBR3 with selective cell discard, beside best effort as UBR, on one OC-3c trunk.
//!
//! The paper measured on a testbed. What it leaves open was answered before any throughput was compared, for the reasons told in
//! [`QUESTIONS`]; what other answers give is told beside each table.

mod closed_forms;
mod contracts;
mod recovery;
mod testbed;
mod throughput;

use crate::data::Table;
use crate::reproduction::TableResult;

use super::open::{Brief, Model, Own, Question, Reproducible, Simulated};
use super::{Drawing, ExperimentError, Tables, number, whole};
use testbed::{Setup, Weights};

pub(super) const KEY: &str = "ano2002";

/// What reproduces which table.
pub(super) const TABLES: Tables = &[
    ("fig-4", closed_forms::segment),
    ("text-3.2", closed_forms::contracts),
    ("text-4.1", closed_forms::shares),
    ("fig-3", simulated),
    ("text-4.1-delay", simulated),
    ("fig-5", simulated),
    ("1", simulated),
    ("fig-7", simulated),
    ("fig-8", simulated),
];

fn simulated(table: &Table) -> Result<TableResult, ExperimentError> {
    MODEL.reproduce(table)
}

/// The progress of connections of both classes, as in figures 8 and 9.
pub(super) fn drawings(table: &Table) -> Result<Vec<Drawing>, ExperimentError> {
    if table.id == "fig-8" { recovery::drawings(&Setup::base()) } else { Ok(Vec::new()) }
}

/// What the paper leaves open, for [`Reproducible`].
pub(super) const REPRODUCIBLE: &dyn Reproducible = &MODEL;

const MODEL: Model<Setup> = Model {
    publication: KEY,
    tables: &[
        Simulated::new("fig-3", throughput::congested, throughput::judge_congested, NOTES),
        Simulated::new("text-4.1-delay", throughput::delays, throughput::judge_delays, NOTES),
        Simulated::new("fig-5", throughput::uncongested, throughput::judge_uncongested, NOTES),
        Simulated::new("1", contracts::rates, contracts::judge_rates, NOTES),
        // Twelve points, none of which a seed moves by much.
        Simulated {
            own: Own { seeds: 3, ..Own::NOTHING },
            ..Simulated::new("fig-7", contracts::bursts, contracts::judge_bursts, NOTES)
        },
        Simulated {
            own: Own { shorter: Some(2.0), ..Own::NOTHING },
            ..Simulated::new("fig-8", recovery::rows, recovery::judge, NOTES)
        },
    ],
    base: Setup::base,
    seeds: 5,
    brief: Brief { set: |setup| setup.duration_s = 30, shorter: 6.0 },
    questions: QUESTIONS,
};

const NOTES: &[&str] = &[
    "Runs last 180 s, as the testbed's did; what is tried otherwise 30 s (figure 8: 90 s). Connections start within the first second.",
    "Rows without published figures are predictions.",
];

const CONGESTED: &[&str] = &["fig-3", "text-4.1-delay", "fig-5", "1", "fig-8"];

/// What the paper leaves open. The first answers were fixed, with their reasons, before anything was compared.
const QUESTIONS: &[Question<Setup>] = &[
    Question {
        asks: "TCP variant",
        taken: "Reno without SACK",
        because: "Solaris 7 (1998) is older than NewReno (RFC 2582, 1999), and offers SACK only where the peer begins with it.",
        others: &[
            ("NewReno", |setup| setup.variant = "newreno"),
            ("Tahoe", |setup| setup.variant = "tahoe"),
            ("SACK", |setup| setup.variant = "sack"),
        ],
        tables: CONGESTED,
    },
    Question {
        asks: "delayed ACKs",
        taken: "one for two segments, within 50 ms",
        because: "50 ms is the interval of Solaris 7 (tcp_deferred_ack_interval), two segments the most that RFC 1122 allows.",
        others: &[
            ("one for eight segments, within 50 ms", |setup| setup.delayed_ack = ("50 ms", 8)),
            ("one for each segment", |setup| setup.delayed_ack = ("0 ms", 2)),
        ],
        tables: CONGESTED,
    },
    Question {
        asks: "least timeout",
        taken: "200 ms",
        because: "That is tcp_rexmit_interval_min of Solaris 7.",
        others: &[("400 ms", |setup| setup.min_rto = "400 ms"), ("1 s", |setup| setup.min_rto = "1 s")],
        tables: CONGESTED,
    },
    Question {
        asks: "weights of the two queues",
        taken: "what the share formula gives their paths: 7 to 9 with full contracts",
        because: "The paper estimates with it, and only the weights of two queues can give it.",
        others: &[
            ("equal", |setup| setup.weights = Weights::Fixed(1, 1)),
            ("as the contracted rates to the rest: 1 to 3", |setup| setup.weights = Weights::Contracts),
            ("as the numbers of paths: 1 to 3, whatever the contracts", |setup| setup.weights = Weights::Fixed(1, 3)),
        ],
        tables: CONGESTED,
    },
    Question {
        asks: "memory of which the 90 % of selective cell discard are counted",
        taken: "20 000 cells, 10 000 for each queue",
        because: "The memory is shared, and two queues of 10 000 cells are all that is said of it.",
        others: &[
            ("10 000 cells, though both queues fill it", |setup| setup.discard_from = 9_000),
            ("11 112 cells, of which 90 % are one full queue", |setup| setup.discard_from = 10_000),
        ],
        tables: CONGESTED,
    },
    Question {
        asks: "scope of the shaping at 35 Mbit/s",
        taken: "all cells of a host",
        because: "The paper speaks of shaping of PCs.",
        others: &[
            ("each virtual channel", |setup| setup.shaping = testbed::Shaping::Channel),
            ("none", |setup| setup.shaping = testbed::Shaping::None),
        ],
        tables: CONGESTED,
    },
    Question {
        asks: "start times",
        taken: "within 1 s of one another, by seed",
        because: "Programs on eight hosts are hardly started together.",
        others: &[("within 10 ms", |setup| setup.starts_within_us = 10_000)],
        tables: CONGESTED,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduction::RowResult;

    const ONE: &[u64] = &[1];

    fn table(id: &str) -> Table {
        let publications = crate::publications().unwrap();
        let ours = publications.iter().find(|publication| publication.key == KEY).unwrap();
        ours.table(id).unwrap().clone()
    }

    /// The criterion is that of the publication: its own figures meet it.
    #[test]
    fn the_published_aggregates_show_what_is_claimed() {
        let table = table("1");
        let rows: Vec<RowResult> = table.rows.iter().map(|row| RowResult::new(row, row.published.clone())).collect();
        let finding = contracts::judge_rates(&table, &rows);
        assert!(finding.is_shown(), "{}", finding.evidence());
    }

    /// The share formula gives what the data computed from the paper.
    #[test]
    fn shares_are_those_of_the_paper() {
        for row in &table("1").rows {
            let scr = row.params.number("scr0_af2_mbps").unwrap();
            let expected = row.theory.number("aggregate_mbps").unwrap();
            assert!((contracts::share_mbps(scr) / expected - 1.0).abs() < 1e-3, "{scr}");
        }
    }

    /// A table tells the seeds that it ran with, and shares of the work follow from them.
    #[test]
    fn tables_with_seeds_or_lengths_of_their_own_tell_them() {
        let model = Model { base: || Setup { duration_s: 1, ..Setup::base() }, ..MODEL };
        let bursts = table("fig-7");
        let result = model.join(&bursts, vec![model.part(&bursts, 0).unwrap()]).unwrap();
        assert_eq!(result.seeds, [1, 2, 3]);
        // Five seeds in place of three and 180 s in place of 30, of figure 8 in place of 90; figure 7 has three seeds.
        assert_eq!(["1", "fig-8", "fig-7"].map(|id| model.whole_by_brief(id).round() as u64), [10, 3, 6]);
    }

    /// Every answer makes a network; and windows limit connections where nothing else does (figure 5).
    #[test]
    fn every_answer_can_be_tried() {
        let base = || Setup { duration_s: 8, ..Setup::base() };
        let table = table("fig-5");
        let mbps = |setup: &Setup| {
            let rows = throughput::uncongested(&table, setup, ONE).unwrap();
            rows[0].simulated.number("tcp_throughput_mbps").unwrap()
        };
        let plain = mbps(&base());
        assert!((1.0..2.42).contains(&plain), "{plain} Mbit/s, windows allow 2.41");
        for question in QUESTIONS {
            for (answer, set) in question.others {
                let mut setup = base();
                set(&mut setup);
                setup.duration_s = 1;
                let ran = throughput::uncongested(&table, &setup, ONE);
                assert!(ran.is_ok(), "{}: {answer}: {ran:?}", question.asks);
            }
        }
    }
}
