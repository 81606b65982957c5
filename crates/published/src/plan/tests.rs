use std::cell::RefCell;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::runs::RowRuns;
use super::*;
use crate::data::{Row, Table};
use crate::experiments::open_questions::Reproducible as _;
use crate::reproduction::RowResult;
use crate::verdict::Finding;
use crate::{Kind, Publication};

fn plans() -> impl Iterator<Item = (Publication, &'static Plan)> {
    let publications = crate::publications().unwrap();
    publications.into_iter().filter_map(|known| {
        let plan = Plan::of(&known.key).unwrap()?;
        Some((known, plan))
    })
}

fn table(key: &str, id: &str) -> (Table, &'static Plan) {
    let (publication, plan) = plans().find(|(publication, _)| publication.key == key).unwrap();
    (publication.table(id).unwrap().clone(), plan)
}

/// The claim of a table, judged by these figures of its rows.
fn judged<const N: usize>(key: &str, id: &str, ours: impl Fn(&Row) -> [(&'static str, f64); N]) -> Finding {
    let (table, plan) = table(key, id);
    let row = |row: &Row| RowResult::new(row, ours(row).into_iter().collect());
    let rows: Vec<RowResult> = table.rows.iter().map(row).collect();
    plan.judge(&table, &rows).with_figures_of(&rows)
}

fn printed(row: &Row, name: &str) -> f64 {
    row.published.number(name).unwrap()
}

#[test]
fn every_simulated_table_has_an_experiment_and_questions_are_about_tables() {
    for (publication, plan) in plans() {
        for table in publication.tables.iter().filter(|table| table.kind == Kind::Simulated) {
            let own = table.id == "text-5.4.1";
            assert!(own || plan.experiment(&table.id).is_some(), "{}/{}", publication.key, table.id);
        }
        let asked = plan.questions.iter().flat_map(|question| &question.tables).map(String::as_str);
        for id in plan.tables().into_iter().chain(asked) {
            assert!(publication.table(id).is_some(), "{}/{id}", publication.key);
        }
    }
}

/// The settings of a table lie over those that a publication leaves open: a brief run would be as long as a whole one.
#[test]
fn no_table_hides_what_makes_runs_brief() {
    for (publication, plan) in plans() {
        for (table, (name, _)) in
            publication.tables.iter().flat_map(|table| plan.brief.iter().map(move |each| (table, each)))
        {
            assert!(table.scenario.get(name).is_none(), "{}/{}: {name}", publication.key, table.id);
        }
    }
}

/// The last answer to every question makes a network, in which the published quantities are measured.
#[test]
fn every_question_can_be_answered_otherwise() {
    let plans: Vec<_> = plans().collect();
    let tables: Vec<_> = plans
        .iter()
        .flat_map(|(publication, plan)| {
            // All tables of the testbed have one network.
            let distinct = |id: &&str| plan.publication != "ano2002" || *id == "fig-5";
            plan.tables().into_iter().filter(distinct).map(|id| (*plan, publication.table(id).unwrap()))
        })
        .collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some((plan, table)) = tables.get(next.fetch_add(1, Ordering::Relaxed)) {
            answer_otherwise(plan, table);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(worker);
        }
    });
}

fn answer_otherwise(plan: &Plan, table: &Table) {
    // A second of 48 connections takes long.
    let brief: Values = toml::from_str(match plan.publication.as_str() {
        "ano2002" => "run_s = 0.1\nstarts_within_us = 10000",
        _ => "duration_s = 1\nduration_ms = 500\nshared_ms = 300\nfrom_s = 0",
    })
    .unwrap();
    let (id, experiment) = (&table.id, plan.experiment(&table.id).unwrap());
    let attempts = plan.attempts(table);
    let is_last = |number: &usize| attempts.get(*number).is_none_or(|next| next.0 != attempts[number - 1].0);
    for attempt in (1..=attempts.len()).filter(is_last) {
        let open = plan.open(table, Some(attempt)).unwrap();
        let trials = RefCell::default();
        let row = &table.rows[0];
        let runs = RowRuns::new((plan, experiment), (table, &row.params), &open, 1, &trials).unwrap();
        let figures = runs.over(&brief).figures().unwrap_or_else(|error| panic!("{id}, attempt {attempt}: {error}"));
        for (name, _) in row.published.iter() {
            let derived = experiment.then.get(name).is_some()
                || experiment.pooled.get(name).is_some()
                || UNMEASURED.contains(&name);
            assert!(derived || figures.get(name).is_some(), "{id}: no {name}");
        }
    }
}

/// Published figures without a counterpart, and one that is about all rows.
const UNMEASURED: [&str; 6] = [
    "goodput_epd_cells",
    "goodput_spd_cells",
    "pauses_longer_than_s",
    "pauses_at_ms",
    "longest_backoff_above_s",
    "throughput_change",
];

/// The criteria are those of the publications: their own figures meet them, where all that is compared is printed.
#[test]
fn published_figures_show_what_is_claimed() {
    let complete = [
        ("ano2002", ["1"].as_slice()),
        ("kalyanaraman1999", &["1", "3"]),
        ("phanse2000", &["5.1", "5.2", "5.10"]),
        ("sun1998", &["5.1", "5.3", "5.4", "5.6", "5.7", "5.8", "5.10", "5.11", "5.12"]),
    ];
    for (key, ids) in complete {
        for id in ids {
            let (table, plan) = table(key, id);
            let rows: Vec<RowResult> =
                table.rows.iter().map(|row| RowResult::new(row, row.published.clone())).collect();
            let finding = plan.judge(&table, &rows);
            assert!(finding.is_shown(), "{key}/{id}: {}", finding.evidence());
        }
    }
}

const DOWN: &str = "downstream_throughput_mbps";

#[test]
fn a_throughput_that_is_the_same_with_each_factor_is_no_growth() {
    let with = |of: fn(f64) -> f64| judged("kalyanaraman1999", "3", |row| [(DOWN, of(printed(row, DOWN)))]);
    assert!(with(|mbps| mbps).is_shown());
    assert!(!with(|_| 7.673).is_shown());
    assert!(!with(|mbps| 7.6 + 0.001 * mbps).is_shown(), "a thousandth of the growth is none");
    assert!(!judged("kalyanaraman1999", "1", |_| [(DOWN, 1.52)]).is_shown());
}

/// 1.09 Mbit/s where 6.43 are published is ten times as much as in a FIFO, and another result.
#[test]
fn a_download_far_below_the_published_one_is_not_shown() {
    const UP: &str = "upstream_throughput_kbps";
    let with = |down: fn(&Row) -> f64, up: fn(&Row) -> f64| {
        judged("kalyanaraman1999", "5", |row| {
            [(DOWN, down(row)), (UP, up(row)), ("download_alone_mbps", 1.53), ("download_in_a_fifo_mbps", 0.06)]
        })
    };
    assert!(with(|row| printed(row, DOWN), |row| printed(row, UP)).is_shown());
    let low = with(|row| if row.params.number("G") == Some(0.9) { 1.09 } else { 3.4 }, |row| printed(row, UP));
    assert!(!low.is_shown() && low.evidence().contains("-8"), "{}", low.evidence());
    assert!(!with(|row| printed(row, DOWN), |_| 44.0).is_shown(), "the upload does not rise");
}

const SCHEMES: [&str; 3] = ["goodput_to_input_epd_aggregate", "goodput_to_input_spd", "goodput_to_input_epd_per_vc"];

/// 0.012 to 0.027 where 0.108 to 0.215 are published.
#[test]
fn a_lead_of_a_tenth_of_the_published_one_is_not_shown() {
    let small = judged("sun1998", "5.7", |_| [(SCHEMES[0], 0.949), (SCHEMES[1], 0.969), (SCHEMES[2], 0.940)]);
    assert!(!small.is_shown(), "{}", small.evidence());
}

#[test]
fn a_prediction_that_contradicts_a_claim_counts() {
    let (table, plan) = table("sun1998", "5.7");
    let mut rows: Vec<RowResult> = table.rows.iter().map(|row| RowResult::new(row, row.published.clone())).collect();
    let mut predicted = RowResult { published: Values::new(), predicted: true, ..rows[0].clone() };
    predicted.set_simulated([(SCHEMES[0], 0.96), (SCHEMES[1], 0.95), (SCHEMES[2], 0.9)].into_iter().collect());
    rows.push(predicted);
    assert!(!plan.judge(&table, &rows).is_shown());
}

/// The base case is part 0 and, with few seeds, part 1; the next are the other answers to the first
/// question. All judge the predictions, too.
#[test]
fn predictions_are_judged_with_every_answer() {
    let (mut table, _) = table("sun1998", "5.7");
    table.rows.truncate(1);
    let plan = Plan::parse("sun1998", &FILES[4].1.replace("duration_ms = 20000", "duration_ms = 1000")).unwrap();
    let parts = [plan.part(&table, 0), plan.part(&table, 1), plan.part(&table, 2)];
    let result = plan.join(&table, parts.into_iter().map(Result::unwrap).collect()).unwrap();
    assert_eq!(result.sensitivity[1].answer, plan.attempts(&table)[0].1);
    assert!(result.rows.iter().any(|row| row.predicted));
    for tried in &result.sensitivity {
        // 120 cells is no threshold of the thesis.
        assert!(tried.evidence.contains(" at 120"), "{}", tried.evidence);
    }
}

/// The share formula gives what the data computed from the paper.
#[test]
fn shares_are_those_of_the_paper() {
    let (table, plan) = table("ano2002", "1");
    let formula = plan.experiment("1").unwrap().rows[0].theory.get("aggregate_mbps").unwrap();
    for row in &table.rows {
        let result = RowResult::new(row, Values::new());
        let ours = formula.number(&judge::Figures::of_row(&table, &result)).unwrap();
        let expected = row.theory.number("aggregate_mbps").unwrap();
        assert!((ours / expected - 1.0).abs() < 1e-3, "{ours}, not {expected}");
    }
}

/// Five seeds in place of three and 180 s in place of 30, of figure 8 in place of 90; figure 7 has three seeds.
#[test]
fn tables_may_have_seeds_and_lengths_of_their_own() {
    let (_, plan) = table("ano2002", "1");
    assert_eq!(["1", "fig-8", "fig-7"].map(|id| plan.whole_by_brief(id).round() as u64), [10, 3, 6]);
    assert_eq!(plan.seeds("fig-7"), 3);
}

/// Three queues next to one another, and windows of both classes in one run.
#[test]
fn drawings_have_a_label_each() {
    let labels = |key, id| -> Vec<(String, String)> {
        let (table, plan) = table(key, id);
        plan.drawings(&table).unwrap().into_iter().map(|drawing| (drawing.label, drawing.of)).collect()
    };
    let of = |drawings: [(&str, &str); 2]| drawings.map(|(label, of)| (label.to_owned(), of.to_owned())).to_vec();
    assert_eq!(labels("ano2002", "fig-8"), of([("AF", "af-1-"), ("DF", "df-1-")]));
    assert_eq!(labels("sun1998", "fig-5.12")[1..], of([("EPD per-VC", "link23"), ("SPD", "link23")]));
    assert!(labels("sun1998", "5.7").is_empty() && labels("phanse2000", "2.1").is_empty());
}

/// The longest round trip of two seeds together is the longer of both; their mean has an interval.
#[test]
fn figures_of_all_seeds_together_are_pooled() {
    let (table, plan) = table("brouer2005", "fig-7.1");
    let with = |seeds: &[u64]| plan.rows(&table, &Values::new(), seeds).unwrap().remove(0);
    let (first, second, both) = (with(&[1]), with(&[2]), with(&[1, 2]));
    let longest = |row: &RowResult| row.simulated.number("rtt_max_ms").unwrap();
    assert!((longest(&both) - longest(&first).max(longest(&second))).abs() < 1e-9);
    assert_eq!((both.ci95.get("rtt_max_ms"), both.ci95.number("rtt_mean_ms").is_some()), (None, true));
}

/// 512 in place of 513.3 kbit/s lengthen the queue of a fixed window by 0.25 %: 1142 ms become 1144.
#[test]
fn a_variant_changes_one_key_and_tells_its_figures() {
    let (table, plan) = table("brouer2005", "fig-3.6");
    let told = plan.assumptions(&table).unwrap();
    let [sensitivity] = told.iter().filter(|note| note.starts_with("How sensitive")).collect::<Vec<_>>()[..] else {
        panic!("{told:?}")
    };
    assert!(sensitivity.contains("one seed): a backbone of 20 ms each way: "), "{sensitivity}");
    assert!(sensitivity.ends_with("an upstream of 512 kbit/s: 1144 ms."), "{sensitivity}");
}

const SMALL: &str = r#"
seeds = 10
open = { delay_ms = 5 }
notes = { all = ["n"] }

[[rule]]
set = { "access.up.delay" = "${delay_ms} ms" }

[[experiment]]
tables = ["1"]
scenario = "phanse2000/download.toml"
notes = ["all"]
runs = { plain = { until_complete = true } }
figures = { time_s = "run.time_s@plain()" }

[[experiment.claim]]
each = "row"
holds = ["time_s < 5"]
tell = ["${time_s:.1} s"]
"#;

/// A fault is shown with its file, its line, its key and what would be right.
#[test]
fn errors_name_file_line_and_key() {
    assert!(Plan::parse("someone1999", SMALL).is_ok());
    let faults = [
        ("run.time_s@plain()", "run.duration()", 14, "no function or metric is called run.duration; known are abs, "),
        ("run.time_s@plain()", "flow.goodput_bps()", 14, "flow.goodput_bps takes 1 arguments, not 0"),
        ("run.time_s@plain()", "run.time_s@other()", 11, "figures.time_s: @other is no run; known are main, plain"),
        ("time_s < 5", "time_s", 18, "a condition needs one of < <= > >= =="),
        ("time_s < 5", "time_s < (5", 18, "a ) is missing"),
        ("{time_s:.1}", "{time_s:.x}", 19, "\".x\" is no format of a value; one is .2 or +.2"),
        ("${delay_ms} ms", "${delay_ms ms", 7, "${ has no end"),
        ("each = \"row\"", "each = \"rows\"", 17, "unknown variant `rows`, expected one of `table`, `row`"),
        ("holds =", "hold =", 18, "unknown field `hold`, expected one of"),
        ("2000/download.toml", "2000/upload.toml", 11, "scenario = \"phanse2000/upload.toml\" is not known"),
        ("notes = [\"all\"]", "notes = [\"none\"]", 12, "notes = \"none\" is not known; known are all"),
        ("notes = [\"all\"]", "notes = [\"sensitivity\"]", 12, "notes = \"sensitivity\" is not known; known are all"),
        ("figures = {", "pooled = { all_s = \"run.time_s@other()\" }\nfigures = {", 11, "@other is no run"),
        ("tables = [\"1\"]", "tables = [\"1\", \"1\"]", 10, "tables: \"1\" already has an experiment"),
    ];
    for (right, wrong, line, message) in faults {
        assert!(SMALL.contains(right), "{right}");
        let error = Plan::parse("someone1999", &SMALL.replace(right, wrong)).unwrap_err().to_string();
        let known = error.starts_with("experiments/someone1999.toml") && error.contains(message);
        assert!(known && error.contains(&format!("line {line}")), "{wrong}: {error}");
    }
}

/// Figure 8.4 of brouer2005 claims a delay and a cost.
#[test]
fn the_parts_of_a_claim_are_words_of_it() {
    let mut parts = 0;
    for (publication, plan) in plans() {
        for experiment in &plan.experiments {
            for id in experiment.tables.iter().map(Spanned::get_ref) {
                let claim = &publication.table(id).unwrap().claim;
                let words = |text: &str| text.trim_end_matches('.').rsplit(" at ").next().unwrap().to_owned();
                for text in experiment.steps.iter().filter_map(|step| step.text.as_ref()) {
                    assert!(claim.contains(&words(text)), "{id}: \"{text}\" is not in \"{claim}\"");
                    parts += 1;
                }
            }
        }
    }
    assert_eq!(parts, 4);
}

/// Listings 8.2 and 8.3: the policer has the settings of its table; 393.8 and 1575.2 of 1999 kbit/s are shares of what
/// the ACKs leave.
#[test]
fn keys_follow_from_the_settings_of_a_table() {
    let keys = |id: &str, downstream: &str, more: (&str, Value)| {
        let (table, plan) = table("brouer2005", id);
        let settings: Values = [("downstream", downstream.into()), more].into_iter().collect();
        let keys = plan.keys(&table, &settings)?;
        Ok::<_, crate::ExperimentError>(keys.into_iter().map(|(_, text)| text).collect::<String>())
    };
    let none = || ("other", Value::Integer(0));
    let policer = keys("fig-8.3", "policed", none()).unwrap();
    assert!(policer.contains("1766 kbit/s") && policer.contains("10240 wire bytes"), "{policer}");
    let slower = keys("fig-8.3", "policed", ("ingress_rate_kbps", 900.into())).unwrap();
    assert!(slower.contains("\"900 kbit/s\""), "{slower}");
    assert!(keys("fig-8.4", "policed", none()).is_err(), "figure 8.4 has no policer");
    let shaper = keys("fig-8.4", "shaped", none()).unwrap();
    for rate in ["\"1999 kbit/s\"", "\"393.8 kbit/s\"", "\"1575.2 kbit/s\""] {
        assert!(shaper.contains(rate), "{rate}: {shaper}");
    }
}

/// Keys that the experiment sets hold with the TCP of today too: figure 3.7 is about a window of 18750 bytes.
#[test]
fn a_table_with_the_tcp_of_today_has_the_default_of_a_scenario_and_its_own_keys() {
    let tcp = |id: &str, today: bool| {
        let (table, plan) = table("brouer2005", id);
        let table = if today { table.with_todays_tcp() } else { table };
        let open = plan.open(&table, None).unwrap();
        let trials = RefCell::default();
        let experiment = plan.experiment(&table.id).unwrap();
        let runs = RowRuns::new((plan, experiment), (&table, &table.rows[0].params), &open, 1, &trials).unwrap();
        let network = runs.scenario("main").unwrap().network();
        network.traffic.iter().flat_map(lastmile_model::Traffic::tcp).last().unwrap().clone()
    };
    let published = tcp("fig-3.2", false);
    assert_eq!((format!("{:?}", published.variant).as_str(), published.autotune), ("Sack", false));
    let today = tcp("fig-3.2", true);
    assert_eq!((format!("{:?}", today.variant).as_str(), today.autotune), ("Cubic", true));
    assert_eq!(tcp("fig-3.7", true).receive_window.as_u64(), 18_750);
    let (table, plan) = table("brouer2005", "fig-3.7");
    let says_so = |table: &Table| plan.assumptions(table).unwrap()[0].starts_with("TCP is that of a current Linux");
    assert!(says_so(&table.with_todays_tcp()) && !says_so(&table));
}
