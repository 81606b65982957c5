//! Phanse 2000: TCP over ADSL, plain, over ATM, over PPP over ATM; the Smart ACK Dropper.
//!
//! Every row runs a scenario of `scenarios/phanse2000/` with what the row varies. [`QUESTIONS`] lists what the thesis leaves open, what is
//! taken, why, and what else may be meant. Tables of single downloads compare steady utilisation; those of the Smart ACK Dropper compare
//! means over the transfer.

mod closed_forms;
mod dropper;
mod dslam;
mod growth;
mod policing;
mod scheduling;
mod setup;
mod several;
mod single;
mod upstream_load;

use lastmile_queueing::random::Stream;

use crate::data::Table;
use crate::reproduction::TableResult;

use super::open::{Brief, Model, Question, Reproducible, Simulated};
use super::trial::Overrides;
use super::{ExperimentError, Tables, whole};
use setup::Setup;

pub(super) const KEY: &str = "phanse2000";
const DOWNLOAD: (&str, &str) = ("phanse2000/download.toml", include_str!("../../scenarios/phanse2000/download.toml"));
const BOTH_WAYS: (&str, &str) =
    ("phanse2000/both-ways.toml", include_str!("../../scenarios/phanse2000/both-ways.toml"));

/// What reproduces which table.
pub(super) const TABLES: Tables = &[
    ("2.1", closed_forms::applications),
    ("text-4.2", closed_forms::line_rates),
    ("text-3.4", closed_forms::worked_example),
    ("text-3.7.2", closed_forms::ppp_header),
    ("text-5.2.1", closed_forms::cell_tax_example),
    ("text-5.3", closed_forms::ack_cells),
    ("5.1", simulated),
    ("5.2", simulated),
    ("text-5.1.2", simulated),
    ("5.3", simulated),
    ("5.4", simulated),
    ("5.5", simulated),
    ("text-5.2.2", simulated),
    ("5.6", simulated),
    ("5.7", simulated),
    ("fig-5.9", simulated),
    ("5.8", simulated),
    ("text-5.4.1", growth::window_growth),
    ("5.9", simulated),
    ("5.10", simulated),
    ("5.11", simulated),
    ("5.12", simulated),
];

fn simulated(table: &Table) -> Result<TableResult, ExperimentError> {
    MODEL.reproduce(table)
}

/// What the thesis leaves open, for [`Reproducible`].
pub(super) const REPRODUCIBLE: &dyn Reproducible = &MODEL;

const MODEL: Model<Setup> = Model {
    publication: KEY,
    tables: &[
        Simulated::new("5.1", single::downloads, single::follows_k, SINGLE_NOTES),
        Simulated::new("5.2", single::downloads, single::smaller_packets_cost, SINGLE_NOTES),
        Simulated::new("text-5.1.2", several::downloads, several::judge_without_atm, several::NOTES),
        Simulated::new("5.3", several::delays, several::judge_compression_wins, several::NOTES),
        Simulated::new("5.4", single::over_atm, single::cell_tax, SINGLE_NOTES),
        Simulated::new("5.5", single::over_atm, single::small_packets_over_atm, SINGLE_NOTES),
        Simulated::new("text-5.2.2", several::downloads, several::judge_over_atm, several::NOTES),
        Simulated::new("5.6", several::delays, several::judge_delay_wins, several::NOTES),
        Simulated::new("5.7", upstream_load::rows, upstream_load::judge, upstream_load::NOTES),
        Simulated::new("fig-5.9", several::ppp, several::judge_ppp, several::NOTES),
        Simulated::new("5.8", dropper::alone, dropper::judge_alone, dropper::NOTES_ALONE),
        Simulated::new("5.9", dropper::beside_upload, dropper::judge_beside_upload, dropper::NOTES_BESIDE),
        Simulated::new("5.10", scheduling::rows, scheduling::judge, scheduling::NOTES),
        Simulated::new("5.11", policing::rows, policing::judge, policing::NOTES),
        Simulated::new("5.12", dslam::rows, dslam::judge, dslam::NOTES),
    ],
    base: Setup::base,
    seeds: 10,
    brief: Brief { set: |_| (), shorter: 1.0 },
    questions: QUESTIONS,
};

const SINGLE_NOTES: &[&str] = &[
    "Utilisation is that of the line's bits from a fifth of the transfer to one second before its end.",
    "Times run from the first SYN to the last byte. The published ones contain a start-up of about 10.3 s that is nowhere stated (inferred from all \
     rows alike); download_time_with_start_up_s adds it.",
    "Seeds draw up to 1 ms of delay on the backbone, so that no figure rests on one phase between packets and ACKs.",
];

const SEVERAL: &[&str] = &["text-5.1.2", "5.3", "text-5.2.2", "5.6", "5.7", "fig-5.9"];
const UPLOADS: &[&str] = &["5.9", "5.10", "5.12"];

/// What the thesis leaves open.
const QUESTIONS: &[Question<Setup>] = &[
    Question {
        asks: "delays",
        taken: "2 ms each way on the line, 5 ms each way on the backbone",
        because: "A modem without interleaving and a regional path.",
        others: &[
            ("20 ms each way on the line", |setup| setup.line_delay_ms = 20),
            ("50 ms each way on the backbone", |setup| setup.backbone_delay_ms = 50),
        ],
        tables: &[],
    },
    Question {
        asks: "queues at CPE and DSLAM",
        taken: "1000 packets",
        because: "A window of 64 KB never overflows them.",
        others: &[("50 packets", |setup| setup.queue = "50 packets"), ("32 KiB", |setup| setup.queue = "32 KiB")],
        tables: &[],
    },
    Question {
        asks: "queue at the CPE alone",
        taken: "that of the DSLAM",
        because: "Nothing sets the two apart.",
        others: &[("32 KiB", |setup| setup.cpe_queue = Some("32 KiB"))],
        tables: &["5.7"],
    },
    Question {
        asks: "window of 64 KB",
        taken: "65 535 bytes",
        because: "The most that a TCP header tells without scaling.",
        others: &[
            ("32 KB, which the published delay of table 5.8 suggests", |setup| setup.window_bytes = 32_768),
            ("8760 bytes, the default of the simulator used", |setup| setup.window_bytes = 8_760),
        ],
        tables: &[],
    },
    Question {
        asks: "window of an upload",
        taken: "64 KB",
        because: "The window that section 4.8.2 states.",
        others: &[
            ("8760 bytes, the default of the simulator used", |setup| setup.upload_window_bytes = 8_760),
            ("32 KB", |setup| setup.upload_window_bytes = 32_768),
        ],
        tables: UPLOADS,
    },
    Question {
        asks: "TCP clock and least timeout",
        taken: "no ticks, at least 1 s",
        because: "RFC 6298.",
        others: &[
            ("ticks of 500 ms, at least 1 s (4.3BSD)", |setup| setup.clock = ("500 ms", "1 s")),
            ("no ticks, at least 200 ms", |setup| setup.clock = ("0 ms", "200 ms")),
        ],
        tables: &[],
    },
    Question {
        asks: "first window",
        taken: "one segment",
        because: "RFC 2001, which was current.",
        others: &[("two segments", |setup| setup.initial_window = 2)],
        tables: &["5.1", "5.2", "5.4", "5.5", "5.8", "5.9", "5.10"],
    },
    Question {
        asks: "number of downloads",
        taken: "four",
        because: "Enough that segments of several flows alternate.",
        others: &[("two", |setup| setup.downloads = 2), ("ten", |setup| setup.downloads = 10)],
        tables: SEVERAL,
    },
    Question {
        asks: "delayed ACKs beside voice and e-mail",
        taken: "an ACK for each segment",
        because: "As in the tables of single downloads.",
        others: &[("within 50 ms", |setup| setup.beside_load_delayed_ack = "50 ms")],
        tables: &["5.7"],
    },
    Question {
        asks: "bursts of e-mail",
        taken: "1 s of every 10 s in the mean",
        because: "Ten times the mean rate is well above the line.",
        others: &[
            ("0.1 s of every second", |setup| setup.email = ("100 ms", "900 ms")),
            ("10 s of every 20 s", |setup| setup.email = ("10 s", "10 s")),
        ],
        tables: &["5.7"],
    },
    Question {
        asks: "mean rate of the e-mail that is policed",
        taken: "10 kbit/s",
        because: "Figure 5.14 gives 1250 bytes/s.",
        others: &[("64 kbit/s, that of the line, which the published times look like", |setup| {
            setup.policed_email = "64 kbit/s";
        })],
        tables: &["5.11"],
    },
    Question {
        asks: "clients with two-way traffic",
        taken: "half",
        because: "Both kinds are named, and no count.",
        others: &[
            ("three quarters", |setup| setup.two_way_of_four = 3),
            ("a quarter", |setup| setup.two_way_of_four = 1),
        ],
        tables: &["5.12"],
    },
    Question {
        asks: "queue at the gateway",
        taken: "100 packets",
        because: "Two windows fit in it.",
        others: &[
            ("30 packets", |setup| setup.gateway_queue = 30),
            ("1000 packets", |setup| setup.gateway_queue = 1000),
        ],
        tables: &["5.12"],
    },
];

/// An upload starts within a second of the download.
fn start_upload(overrides: &mut Overrides, setup: &Setup, seed: u64) {
    overrides.set("traffic.upload.tcp.receive_window", format_args!("{} B", setup.upload_window_bytes));
    overrides
        .set("traffic.upload.start", format_args!("{} us", Stream::new(seed, "phanse2000 upload").below(1_000_000)));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every answer makes a network that measures what was published.
    #[test]
    fn every_answer_can_be_tried() {
        let publications = crate::publications().unwrap();
        let ours = publications.iter().find(|publication| publication.key == KEY).unwrap();
        for simulated in MODEL.tables {
            let mut table = ours.table(simulated.id).unwrap().clone();
            table.rows.truncate(1);
            for question in QUESTIONS.iter().filter(|question| question.concerns(&table)) {
                let answer = question.others.last().unwrap();
                let mut setup = Setup::base();
                answer.1(&mut setup);
                let rows = (simulated.rows)(&table, &setup, &[1]);
                let rows = rows.unwrap_or_else(|error| panic!("{}: {}: {error}", table.id, question.asks));
                for (name, _) in rows[0].published.iter().filter(|(name, _)| !name.starts_with("client_to_server")) {
                    assert!(rows[0].simulated.get(name).is_some(), "{}: no {name}", table.id);
                }
            }
        }
    }

    /// The criteria are those of the thesis: its own figures meet them, where it prints all that they compare.
    #[test]
    fn the_published_figures_show_what_is_claimed() {
        for id in ["5.1", "5.2", "5.10"] {
            let publications = crate::publications().unwrap();
            let table = publications.iter().find(|known| known.key == KEY).unwrap().table(id).unwrap().clone();
            let simulated = MODEL.tables.iter().find(|known| known.id == id).unwrap();
            let rows: Vec<_> = table.rows.iter().map(|row| crate::RowResult::new(row, row.published.clone())).collect();
            let finding = (simulated.judge)(&table, &rows);
            assert!(finding.is_shown(), "{id}: {}", finding.evidence());
        }
    }
}
