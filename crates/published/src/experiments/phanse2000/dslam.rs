//! Phanse 2000, section 5.6: clients, some of them with two-way traffic, share the link from the DSLAM to the gateway.

use std::fmt::Write as _;

use lastmile_queueing::random::Stream;
use lastmile_theory::fairness::jain;

use crate::data::Table;
use crate::reproduction::RowResult;
use crate::sample::Sample;
use crate::value::{Value, Values};
use crate::verdict::Finding;

use super::super::ExperimentError;
use super::super::seeds::means_over;
use super::super::trial::Trial;
use super::setup::Setup;
use super::whole;

const SCENARIO: &str = include_str!("../../../scenarios/phanse2000/shared-dslam.toml");

pub(super) const NOTES: &[&str] = &[
    "Every client has one download without end. A two-way client also has one upload without end and e-mail over UDP of 10 kbit/s in the mean as in \
     table 5.11; the mix that was used is not stated, and voice is left out.",
    "Shares are those of each client's own downstream line, in bits on the wire, from 50 s to 200 s; a single client is run once with one-way and \
     once with two-way traffic.",
    "client_to_server_ftp_ratio_pct is not simulated: the data hold no definition of it. A client's share of all that servers sent, which the results of \
     shared lines report, is a reading of this program.",
    "Segments of equal flows over equal paths come in lockstep, so that which client loses at the gateway is chance at first and then tends to \
     stay. Starts are random, by seed.",
];

/// When the averages begin, in s.
const FROM_S: f64 = 50.0;

const ONE_WAY: &str = "downstream_utilisation_unidirectional_pct";
const TWO_WAY: &str = "downstream_utilisation_bidirectional_pct";
const SHARED: &str = "dslam_gateway_link_utilisation_pct";
const FAIRNESS: &str = "fairness_index";

/// Table 5.12, and the symmetric case with eight clients, which the data lack.
pub(super) fn rows(table: &Table, setup: &Setup, seeds: &[u64]) -> Result<Vec<RowResult>, ExperimentError> {
    let mut rows = Vec::new();
    let of = |params: &Values| means_over(seeds, |seed| measure(table, params, setup, seed));
    for row in &table.rows {
        rows.push(RowResult::of_means(row, of(&row.params)?));
    }
    if case(&rows, SYMMETRIC, 8).is_none() {
        let params: Values =
            [("scenario", Value::from(SYMMETRIC)), ("clients", Value::from(8_i64))].into_iter().collect();
        let means = of(&params)?;
        rows.push(RowResult::unpublished(params, means));
    }
    Ok(rows)
}

const SYMMETRIC: &str = "symmetric";
const ASYMMETRIC: &str = "asymmetric";

fn case<'a>(rows: &'a [RowResult], scenario: &str, clients: u64) -> Option<&'a RowResult> {
    let is_it = |row: &&RowResult| {
        row.params.text("scenario") == Some(scenario) && row.params.integer("clients") == Some(clients)
    };
    rows.iter().find(is_it)
}

fn measure(table: &Table, params: &Values, setup: &Setup, seed: u64) -> Result<Values, ExperimentError> {
    let symmetric = params.text("scenario") == Some(SYMMETRIC);
    let up = whole(&table.scenario, if symmetric { "up_bps_symmetric" } else { "up_bps_asymmetric" })?;
    let clients = whole(params, "clients")?;
    let mut values = Values::new();
    if clients == 1 {
        for (name, two_way) in [(ONE_WAY, 0), (TWO_WAY, 1)] {
            values.set(name, run(1, two_way, up, setup, seed)?.utilisation_from_pct("down", FROM_S));
        }
        return Ok(values);
    }
    let two_way = clients * setup.two_way_of_four / 4;
    let trial = run(clients, two_way, up, setup, seed)?;
    let used = |client| trial.utilisation_from_pct(&format!("down-{client}"), FROM_S);
    let mean =
        |clients: Vec<u64>| clients.iter().map(|client| used(*client)).sum::<f64>() / clients.len().max(1) as f64;
    values.set(ONE_WAY, mean((two_way + 1..=clients).collect()));
    values.set(TWO_WAY, mean((1..=two_way).collect()));
    values.set(SHARED, trial.utilisation_from_pct("gateway-dslam", FROM_S));
    values.set(FAIRNESS, jain(trial.bytes_each("download").into_iter()).unwrap_or_default());
    Ok(values)
}

/// So many clients, the first `two_way` of them with an upload and e-mail.
fn run(clients: u64, two_way: u64, up: u64, setup: &Setup, seed: u64) -> Result<Trial, ExperimentError> {
    let mut text = String::from(SCENARIO);
    let mut starts = Stream::new(seed, "phanse2000 shared uplink");
    let download = starts.below(5_000);
    for client in 1..=two_way {
        let (upload, email) = (starts.below(5_000), starts.below(5_000));
        write!(
            text,
            "\n[[traffic]]\nname = \"upload-{client}\"\nkind = \"persistent\"\ndirection = \"up\"\nline = {client}\nstart = \"{upload} ms\"\n\
             tcp = {{ receive_window = \"{} B\" }}\n\
             \n[[traffic]]\nname = \"email-{client}\"\nkind = \"onoff\"\ndirection = \"up\"\nline = {client}\nstart = \"{email} ms\"\nrate = \"10 kbit/s\"\n\
             on = \"2 s\"\noff = \"18 s\"\nsize = \"500 B\"\n",
            setup.upload_window_bytes
        )
        .expect("a string takes all");
    }
    let mut overrides = setup.open(seed);
    overrides.set("access.up.queue.limit", setup.queue);
    overrides.set("access.aggregation.queue.limit", format_args!("{} packets", setup.gateway_queue));
    overrides.set("access.lines", clients);
    overrides.set("access.up.rate", format_args!("{up} bit/s"));
    overrides.set("traffic.download.start", format_args!("{download} ms"));
    Trial::whole("phanse2000/shared-dslam.toml", &text, &overrides)
}

pub(super) fn judge(_: &Table, rows: &[RowResult]) -> Finding {
    let of = |scenario, clients, name: &str| {
        case(rows, scenario, clients).map_or_else(Sample::default, |row| row.sample(name))
    };
    let published = |scenario, clients, name: &str| {
        case(rows, scenario, clients).and_then(|row| row.published.number(name)).unwrap_or_default()
    };
    let mut finding = Finding::default();
    for clients in [4, 8] {
        finding.above(&of(ASYMMETRIC, clients, SHARED), 95.0);
    }
    let (four, eight) = (of(ASYMMETRIC, 4, FAIRNESS), of(ASYMMETRIC, 8, FAIRNESS));
    finding.difference(&eight.minus(&four), published(ASYMMETRIC, 8, FAIRNESS) - published(ASYMMETRIC, 4, FAIRNESS));
    finding.above(&of(SYMMETRIC, 8, FAIRNESS).minus(&eight), 0.0);
    let kept = |scenario| of(scenario, 4, TWO_WAY).over(&of(scenario, 4, ONE_WAY));
    let printed = |scenario| published(scenario, 4, TWO_WAY) / published(scenario, 4, ONE_WAY);
    finding.difference(&kept(SYMMETRIC).minus(&kept(ASYMMETRIC)), printed(SYMMETRIC) - printed(ASYMMETRIC));
    finding.tell(format!(
        "shared link {} and {} % full with 4 and 8 clients; fairness {four} with 4 and {eight} with 8, symmetric {} and {}; a two-way client has {} of \
         a one-way client's download, symmetric {} (4 clients)",
        of(ASYMMETRIC, 4, SHARED),
        of(ASYMMETRIC, 8, SHARED),
        of(SYMMETRIC, 4, FAIRNESS),
        of(SYMMETRIC, 8, FAIRNESS),
        kept(ASYMMETRIC),
        kept(SYMMETRIC),
    ));
    finding
}
