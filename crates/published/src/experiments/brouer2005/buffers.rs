//! Brouer 2005, section 2.4: what a short queue of ACKs asks of the queue downstream.

use crate::data::Table;
use crate::reproduction::{RowResult, TableResult};
use crate::value::Values;
use crate::verdict::{Claim, Finding};

use super::super::trial::{Overrides, Trial};
use super::KEY;
use crate::error::ExperimentError;

const SHORT: (&str, &str) =
    ("brouer2005/short-ack-queue.toml", include_str!("../../../scenarios/brouer2005/short-ack-queue.toml"));

/// Of the scenario: 125 times faster down, packets 25 times larger than ACKs.
const K: u64 = 5;

/// Packets that the line holds without any queue: 1 ms each, for 10 ms of delay, 1 ms of packet and 5 ms of ACK.
const LINE: u64 = 16;

/// A download with a window of `window` packets, or with one that grows until it loses.
fn run(down: u64, up: u64, drop: &str, window: Option<u64>) -> Result<Trial, ExperimentError> {
    let mut overrides = Overrides::default();
    overrides.set("access.down.queue.limit", format_args!("{down} packets"));
    overrides.set("access.up.queue.limit", format_args!("{up} packets"));
    overrides.set("access.up.queue.drop", drop);
    match window {
        Some(packets) => overrides.set("tcp.receive_window", format_args!("{} B", packets * 960)),
        None => {
            overrides.set("tcp.receive_window", "1 MiB");
            overrides.set("duration", "100 s");
        }
    }
    Trial::whole(SHORT.0, SHORT.1, &overrides)
}

/// The largest window, of those near what the rule says, with which nothing is lost downstream.
fn loss_free_window(down: u64, up: u64) -> Result<u64, ExperimentError> {
    let rule = LINE + down + K * up;
    let mut largest = 0;
    for window in rule - 5..=rule + 5 {
        if run(down, up, "tail", Some(window))?.dropped("down") > 0 {
            break;
        }
        largest = window;
    }
    Ok(largest)
}

/// Section 2.4.
pub(super) fn rules(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = TableResult::new(KEY, table);
    // A window that fills the ACK queue, and leaves the downstream queue to the bursts alone.
    let mut least = 0;
    for down in (1..=3 * K).rev() {
        if run(down, 3, "tail", Some(20))?.dropped("down") > 0 {
            break;
        }
        least = down;
    }
    let mut windows = Vec::new();
    for (down, up) in [(6, 1), (10, 1), (6, 3), (10, 3), (20, 3)] {
        windows.push((down, up, LINE + down + K * up, loss_free_window(down, up)?));
    }
    let mut repairs = Vec::new();
    for down in [2 * K, 4 * K, 6 * K] {
        repairs.push((down, run(down, 3, "tail", None)?, run(down, 3, "head", None)?));
    }
    for row in &table.rows {
        let mut values = Values::new();
        match row.params.text("rule") {
            Some("no loss in downstream") => {
                values.set("k", K as f64);
                values.set("waiting_packets_min", least as f64);
            }
            Some("largest loss-free window") => {
                for (down, up, rule, window) in &windows {
                    values.set(format!("Qdown_{down}_Qup_{up}_rule_packets"), *rule as f64);
                    values.set(format!("Qdown_{down}_Qup_{up}_window_packets"), *window as f64);
                }
            }
            _ => {
                for (down, tail, head) in &repairs {
                    values.set(format!("Qdown_{down}_timeouts_drop_tail"), tail.timeouts("download") as f64);
                    values.set(format!("Qdown_{down}_timeouts_drop_front"), head.timeouts("download") as f64);
                }
            }
        }
        result.rows.push(RowResult::new(row, values));
    }
    let (bursts, anomaly) = table.claim.split_once("; ").unwrap_or((&table.claim, ""));
    result.claims = vec![burst_claim(bursts, least, &windows), anomaly_claim(anomaly, &repairs)];
    result.assumptions.push(
        "No line is given: 8 Mbit/s and 64 kbit/s with packets of 1000 and 40 bytes, k = 5, 5 ms each way; Reno \
         without slow start. Worse is how a loss is repaired: goodput \
         itself grows with the buffer on either side of 3k, as larger buffers meet fewer losses."
            .to_owned(),
    );
    Ok(result)
}

/// The claim about bursts: the least capacity of the downstream queue, and the windows that lose nothing.
fn burst_claim(text: &str, least: u64, windows: &[(u64, u64, u64, u64)]) -> Claim {
    let near = windows.iter().all(|(.., rule, window)| window.abs_diff(*rule) <= 2);
    let told: Vec<String> = windows
        .iter()
        .map(|(down, up, rule, window)| format!("{window} for {down} and {up}, by the rule {rule}"))
        .collect();
    let evidence = format!(
        "with k = {K} nothing is lost from {least} waiting packets on, beside the one on the wire; largest window \
         without loss, in packets, by downstream \
             and ACK queue: {}",
        told.join(", ")
    );
    Finding::new(least + 1 == K && near, evidence).claim(&format!("{text}."))
}

/// How losses are repaired with downstream queues below and above 3k, by what the ACK queue drops.
fn anomaly_claim(text: &str, repairs: &[(u64, Trial, Trial)]) -> Claim {
    let told: Vec<String> = repairs
        .iter()
        .map(|(down, tail, head)| {
            format!(
                "{down} packets: {} timeouts for {} retransmitted segments and {:.2} Mbit/s, from the front {} for {} \
                 and {:.2}",
                tail.timeouts("download"),
                tail.sent_again("download"),
                tail.goodput_bps("download") / 1e6,
                head.timeouts("download"),
                head.sent_again("download"),
                head.goodput_bps("download") / 1e6
            )
        })
        .collect();
    // A loss that ends in a timeout costs two segments: itself, and what follows it.
    let every_loss = |trial: &Trial| 2 * trial.timeouts("download") >= trial.sent_again("download").saturating_sub(2);
    let shown = repairs.iter().all(|(down, tail, head)| {
        let above = *down > 3 * K;
        every_loss(tail) == above
            && (!above || head.timeouts("download") == 0 && head.goodput_bps("download") > tail.goodput_bps("download"))
    });
    let evidence = format!(
        "drop-tail on the ACK queue: {}; above 3k every loss ends in a timeout there, and none from the front",
        told.join("; ")
    );
    Finding::new(shown, evidence).claim(&format!("P{}", text.strip_prefix('p').unwrap_or(text)))
}
