//! Phanse 2000, sections 5.1.3 and 5.2.3: downloads beside e-mail or voice upstream, of one mean rate.

use crate::data::{Row, Table};
use crate::reproduction::{Claim, Means, RowResult, TableResult};
use crate::value::Values;

use super::super::ExperimentError;
use super::super::seeds::{SEEDS, Sample, over_seeds};
use super::super::trial::{Overrides, Trial};
use super::{KEY, base_overrides};

const SCENARIO: (&str, &str) =
    ("phanse2000/upstream-load.toml", include_str!("../../../scenarios/phanse2000/upstream-load.toml"));

/// When the averages begin, in s.
const FROM_S: f64 = 30.0;

/// Table 5.7.
pub(super) fn email_or_voice(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(KEY, table);
    result.seeds = SEEDS.to_vec();
    for row in &table.rows {
        result.rows.push(RowResult::of_means(row, measure(table, row)?));
    }
    // The data hold three of the four cells of the table: all four are run for the claim.
    let used = |link: &str, voice| {
        let mut overrides = overrides(table, &table.rows[0])?;
        overrides.set("access.encapsulation", link);
        Sample::of(|seed| Ok(run(&overrides, voice, seed)?.utilisation_from_pct("down", FROM_S)))
    };
    let (email, voice) = (used("ip", false)?, used("ip", true)?);
    let (email_atm, voice_atm) = (used("aal5", false)?, used("aal5", true)?);
    let deep = |voice| {
        let mut overrides = overrides(table, &table.rows[0])?;
        overrides.set("access.up.queue.limit", "1000 packets");
        Sample::of(|seed| Ok(run(&overrides, voice, seed)?.utilisation_from_pct("down", FROM_S)))
    };
    let (deep_email, deep_voice) = (deep(false)?, deep(true)?);
    result.claims.push(Claim {
        text: table.claim.clone(),
        shown: voice.below(&email) && voice_atm.below(&email_atm) && email_atm.below(&email) && voice_atm.below(&voice),
        evidence: format!(
            "without ATM {email} % beside e-mail and {voice} % beside voice, with ATM {email_atm} and {voice_atm} %; with a queue \
             that loses nothing (1000 packets, no ATM) {deep_email} % beside e-mail and {deep_voice} % beside voice: there the bursts wait, and \
             the ACKs behind them"
        ),
    });
    result.assumptions = [
        "The load is not stated, only that it is about equal: 64 kbit/s of IP in the mean, the rate of digitised voice (ITU-T G.711), for both.",
        "Voice is a packet of 160 bytes of IP every 20 ms; e-mail is bursts of 1500-byte packets, 1 s of every 10 s in the mean and ten \
         times as fast: sizes and lengths are not stated.",
        "The modem's queue is not stated: 32 KiB, which a burst of e-mail overflows and voice with the ACKs of four windows does not. The claim \
         hangs on that: where nothing is lost, bursts of the same mean hold ACKs back for longer than voice does.",
        "Four downloads, an ACK for each segment as for the single downloads, averages from 30 s to 300 s. With ACKs delayed by 50 ms half as many \
         fit beside either source, and nothing is lost at this load.",
    ]
    .map(String::from)
    .to_vec();
    Ok(result)
}

fn measure(table: &Table, row: &Row) -> Result<Means, ExperimentError> {
    let overrides = overrides(table, row)?;
    let voice = table.settings(row).text("upstream_traffic").is_some_and(|traffic| traffic.contains("voice"));
    over_seeds(|seed| {
        let trial = run(&overrides, voice, seed)?;
        let mut simulated = Values::new();
        simulated.set("downstream_utilisation_pct", trial.utilisation_from_pct("down", FROM_S));
        simulated.set("upstream_utilisation_pct", trial.utilisation_from_pct("up", FROM_S));
        Ok(simulated)
    })
}

fn overrides(table: &Table, row: &Row) -> Result<Overrides, ExperimentError> {
    base_overrides(&table.settings(row))
}

fn run(overrides: &Overrides, voice: bool, seed: u64) -> Result<Trial, ExperimentError> {
    let mut overrides = overrides.clone();
    let silent = if voice { "email" } else { "voice" };
    // A source that starts after the end is not there.
    overrides.set(&format!("traffic.{silent}.start"), "299.9 s");
    overrides.set("seed", seed);
    Trial::whole(SCENARIO.0, SCENARIO.1, &overrides)
}
