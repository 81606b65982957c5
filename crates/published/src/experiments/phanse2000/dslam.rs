//! Phanse 2000, section 5.6: clients, half of them with two-way traffic, share the link from the DSLAM to the gateway.

use std::fmt::Write as _;

use lastmile_queueing::random::Stream;
use lastmile_theory::fairness::jain;

use crate::data::{Row, Table};
use crate::reproduction::{Claim, Means, RowResult, TableResult};
use crate::value::Values;

use super::super::ExperimentError;
use super::super::seeds::{SEEDS, Sample, over_seeds};
use super::super::trial::{Overrides, Trial};
use super::{KEY, whole};

const SCENARIO: &str = include_str!("../../../scenarios/phanse2000/shared-dslam.toml");

/// When the averages begin, in s.
const FROM_S: f64 = 50.0;

/// Table 5.12.
pub(super) fn shared_uplink(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(KEY, table);
    result.seeds = SEEDS.to_vec();
    for row in &table.rows {
        let up = upstream_bps(table, row)?;
        let clients = whole(&row.params, "clients")?;
        let means = if clients == 1 {
            alone(up)?
        } else {
            over_seeds(|seed| Ok(shares(&run(clients, clients / 2, up, seed)?, clients)))?
        };
        result.rows.push(RowResult::of_means(row, means));
    }
    result.claims.push(claim(table)?);
    result.assumptions = [
        "How many clients have two-way traffic is not stated: every other one, two-way clients first where the number is odd.",
        "Every client has one download without end. A two-way client also has one upload without end, with a receive window of 8760 bytes as in \
         table 5.9, and e-mail over UDP of 10 kbit/s in the mean as in table 5.11; the mix that was used is not stated, and voice is left out.",
        "Shares are those of each client's own downstream line, in bits on the wire, from 50 s to 200 s; a single client is run once with one-way \
         and once with two-way traffic.",
        "The queue at the gateway is not stated: 100 packets. Queues elsewhere, delays, first window and minimum RTO: as in table 5.1.",
        "With a fixed part of the clients two-way, fairness is that between two classes and hardly hangs on their number. It falls where the \
         part grows, as the published shares suggest it did (see the contradictions): that was tried with 6 of 8.",
        "client_to_server_ftp_ratio_pct is not defined well enough to compute.",
        "Which client loses when the gateway drops is chance at first and then tends to stay: segments of equal flows over equal paths come in \
         lockstep. Starts at random times, by seed, are what the intervals are over.",
    ]
    .map(String::from)
    .to_vec();
    Ok(result)
}

fn claim(table: &Table) -> Result<Claim, ExperimentError> {
    let up = |name| whole(&table.scenario, name);
    let (slow, fast) = (up("up_bps_asymmetric")?, up("up_bps_symmetric")?);
    let mixed =
        |clients, two_way, up| Sample::of(|seed| Ok(shares_fairness(&run(clients, two_way, up, seed)?) * 100.0));
    let fairness = |clients, up| mixed(clients, clients / 2, up);
    let two_way_loss = |clients, up| {
        Sample::of(|seed| {
            let values = shares(&run(clients, clients / 2, up, seed)?, clients);
            let share = |name| values.number(name).unwrap_or_default();
            Ok(100.0 * share("downstream_utilisation_bidirectional_pct")
                / share("downstream_utilisation_unidirectional_pct"))
        })
    };
    let full = Sample::of(|seed| Ok(run(8, 4, slow, seed)?.utilisation_from_pct("gateway-dslam", FROM_S)))?;
    let (two, four, eight) = (fairness(2, slow)?, fairness(4, slow)?, fairness(8, slow)?);
    let six_of_eight = mixed(8, 6, slow)?;
    let (four_even, eight_even) = (fairness(4, fast)?, fairness(8, fast)?);
    let (loss, loss_even) = (two_way_loss(4, slow)?, two_way_loss(4, fast)?);
    let shown = full.mean() > 95.0 && eight.below(&four) && eight.below(&eight_even) && loss.below(&loss_even);
    Ok(Claim {
        text: table.claim.clone(),
        shown,
        evidence: format!(
            "shared link {full} % full; fairness in percent {two} with 2 clients, {four} with 4 and {eight} with 8, \
             {six_of_eight} with 6 of 8 two-way; symmetric {four_even} with 4 and {eight_even} with 8; a two-way \
             client has {loss} % of a one-way client's download, symmetric {loss_even} % (4 clients)"
        ),
    })
}

/// One client, with one-way and with two-way traffic.
fn alone(up: u64) -> Result<Means, ExperimentError> {
    over_seeds(|seed| {
        let mut values = Values::new();
        let used = |two_way| Ok::<_, ExperimentError>(run(1, two_way, up, seed)?.utilisation_from_pct("down", FROM_S));
        values.set("downstream_utilisation_unidirectional_pct", used(0)?);
        values.set("downstream_utilisation_bidirectional_pct", used(1)?);
        Ok(values)
    })
}

/// What the clients with one-way and with two-way traffic have of their lines.
fn shares(trial: &Trial, clients: u64) -> Values {
    let used = |client| trial.utilisation_from_pct(&format!("down-{client}"), FROM_S);
    let mean =
        |clients: Vec<u64>| clients.iter().map(|client| used(*client)).sum::<f64>() / clients.len().max(1) as f64;
    let two_way = clients / 2;
    let mut values = Values::new();
    values.set("downstream_utilisation_unidirectional_pct", mean((two_way + 1..=clients).collect()));
    values.set("downstream_utilisation_bidirectional_pct", mean((1..=two_way).collect()));
    values.set("dslam_gateway_link_utilisation_pct", trial.utilisation_from_pct("gateway-dslam", FROM_S));
    values.set("fairness_index", shares_fairness(trial));
    values
}

/// Jain's index of what the clients downloaded.
fn shares_fairness(trial: &Trial) -> f64 {
    jain(trial.bytes_each("download").into_iter()).unwrap_or_default()
}

/// So many clients, the first `two_way` of them with an upload and e-mail.
fn run(clients: u64, two_way: u64, up: u64, seed: u64) -> Result<Trial, ExperimentError> {
    let mut text = String::from(SCENARIO);
    let mut starts = Stream::new(seed, "phanse2000 shared uplink");
    let download = starts.below(5_000);
    for client in 1..=two_way {
        let (upload, email) = (starts.below(5_000), starts.below(5_000));
        write!(
            text,
            "\n[[traffic]]\nname = \"upload-{client}\"\nkind = \"persistent\"\ndirection = \"up\"\nline = {client}\nstart = \"{upload} ms\"\n\
             tcp = {{ receive_window = \"8760 B\" }}\n\
             \n[[traffic]]\nname = \"email-{client}\"\nkind = \"onoff\"\ndirection = \"up\"\nline = {client}\nstart = \"{email} ms\"\nrate = \"10 kbit/s\"\n\
             on = \"2 s\"\noff = \"18 s\"\nsize = \"500 B\"\n"
        )
        .map_err(|_| ExperimentError::MissingSetting("clients"))?;
    }
    let mut overrides = Overrides::default();
    overrides.set("access.lines", clients);
    overrides.set("access.up.rate", format_args!("{up} bit/s"));
    overrides.set("traffic.download.start", format_args!("{download} ms"));
    overrides.set("seed", seed);
    Trial::whole("phanse2000/shared-dslam.toml", &text, &overrides)
}

fn upstream_bps(table: &Table, row: &Row) -> Result<u64, ExperimentError> {
    let symmetric = row.params.text("scenario") == Some("symmetric");
    whole(&table.scenario, if symmetric { "up_bps_symmetric" } else { "up_bps_asymmetric" })
}
