//! Kalyanaraman et al. 1999, sections 1, 2 and 4.3: the AMP model, and what ATM makes of k.

use lastmile_linklayer::LinkLayer;
use lastmile_theory::amp::{Limit, Line};
use lastmile_theory::{Fraction, asymmetry};
use lastmile_units::{BitRate, ByteCount};

use crate::data::{Row, Table};
use crate::reproduction::TableResult;
use crate::value::Values;
use crate::verdict::{Claim, Finding, Verdict};

use super::super::closed_form::{closed_form, quoted, range};
use super::{KEY, whole};
use crate::error::ExperimentError;

/// Section 1.
pub(super) fn rates(table: &Table) -> Result<TableResult, ExperimentError> {
    Ok(quoted(KEY, table, |table| match (range(table, "down_mbps"), range(table, "up_kbps")) {
        (Some((down_least, down_most)), Some((up_least, up_most))) => {
            let (least, most) = (down_least * 1e3 / up_least, down_most * 1e3 / up_most);
            (
                least > 10.0 && most > 10.0,
                format!("down / up from {most:.0} (fastest rates) to {least:.0} (slowest rates)"),
            )
        }
        _ => (false, "no figures".to_owned()),
    }))
}

/// Section 2, the worked example.
pub(super) fn worked_example(table: &Table) -> Result<TableResult, ExperimentError> {
    closed_form(KEY, table, example, |_| (true, String::new()))
}

fn example(table: &Table, row: &Row) -> Result<Values, ExperimentError> {
    let settings = table.settings(row);
    let line = line(&settings, whole(&settings, "down_bps")?, whole(&settings, "up_bps")?, whole(&settings, "M")?)?;
    let amp = line.one_way().ok_or(ExperimentError::MissingSetting("packet_bytes"))?;
    let mut values = Values::new();
    values.set("acks_per_s", amp.acks_per_s.as_f64());
    values.set("bound_mbps", amp.bound.rate.as_f64() / 1e6);
    Ok(values)
}

/// Section 2, the unnumbered table: formulas, evaluated for the line of the worked example.
pub(super) fn classes(table: &Table) -> Result<TableResult, ExperimentError> {
    let half = Fraction::new(1, 2).ok_or(ExperimentError::MissingSetting("reverse_packet_share"))?;
    let hundredth = |hundredths| Fraction::new(hundredths, 100).ok_or(ExperimentError::MissingSetting("f_suggested"));
    let mut size = Values::new();
    size.set("packet_bytes", 1000);
    size.set("ack_bytes", 40);
    let line = line(&size, 8_000_000, 64_000, 1)?;
    let at = |f, g| line.two_way(f, g).ok_or(ExperimentError::MissingSetting("f_suggested"));
    let usual = at(hundredth(99)?, half)?;
    let mut result = TableResult::new(KEY, table);
    for row in &table.rows {
        let rate = match (row.params.text("channel"), row.params.text("traffic")) {
            (Some("reverse"), Some("packets")) => usual.reverse_packets,
            (Some("reverse"), Some("acks")) => usual.reverse_acks,
            (Some("forward"), Some("packets")) => usual.forward_packets.rate,
            _ => usual.forward_acks.rate,
        };
        let mut theory = row.theory.clone();
        theory.set("packets_per_s", rate.as_f64());
        result.rows.push(crate::reproduction::RowResult::closed_form(row, theory));
    }
    // Each bound binds where its class is the scarce one: ACKs of a tenth of the reverse link, and
    // of none of the forward.
    let starved_forward = at(hundredth(99)?, hundredth(90)?)?;
    let starved_reverse = at(Fraction::ONE, half)?;
    let shown = starved_forward.forward_packets.limit == Limit::Other
        && starved_forward.forward_packets.rate < usual.forward_packets.rate
        && starved_reverse.reverse_acknowledged.limit == Limit::Other;
    let evidence = format!(
        "for 8 Mbit/s and 64 kbit/s, packets of 1000 and ACKs of 40 bytes, M = 1, f = 0.99: forward packets {:.0}/s \
         at g = 0.5 and {:.0}/s at \
             g = 0.9, by the reverse ACK class; with f = 1 no reverse packet is acknowledged",
        usual.forward_packets.rate.as_f64(),
        starved_forward.forward_packets.rate.as_f64(),
    );
    result.claims.push(Finding::new(shown, evidence).claim(&table.claim));
    result
        .assumptions
        .push("The table holds formulas; packets_per_s evaluates them for the worked example with g = 0.5.".to_owned());
    Ok(result)
}

/// Table 6.
pub(super) fn cell_tax(table: &Table) -> Result<TableResult, ExperimentError> {
    let mut result = closed_form(KEY, table, asymmetry_with_atm, |rows| {
        let first = |name| rows.first().and_then(|row| row.theory.number(name)).unwrap_or_default();
        let two = first("k_atm_if_ack_takes_two_cells") / first("k") - 1.0;
        let rises = [100.0 * first("change"), 100.0 * two];
        (true, format!("k rises by {:.1} % with an ACK in one cell, by {:.0} % with an ACK in two", rises[0], rises[1]))
    })?;
    // Printed figures are cut, not rounded: 2.42 for 2.441, 0.47 for 0.488.
    let claim = result.claims.remove(0);
    let cut = result.rows.iter().all(|row| {
        let near = |name, relative| match (row.published.number(name), row.theory.number(name)) {
            (Some(printed), Some(exact)) => (printed - exact).abs() <= relative * exact,
            _ => false,
        };
        near("k", 0.05) && near("k_atm", 0.05) && near("change", 0.05)
    });
    // RFC 2684, sections 4 and 5: LLC and the trailer of AAL5 make 56 bytes of an ACK of 40.
    let verdict = Verdict::HangsOn {
        shown_in_base_case: cut,
        assumptions: vec!["an ACK in one cell, although it takes two with LLC, which the table names".to_owned()],
    };
    // The paper simulates nothing over ATM, so that the effect of SAD and AR there is unknown.
    let (rise, rest) = claim.text.split_once(", which").unwrap_or((&claim.text, ""));
    let text = format!("{rise}.");
    result.claims.push(Claim { verdict, text, evidence: claim.evidence.clone() });
    let evidence = "the paper has no run over ATM".to_owned();
    result.claims.push(Claim { text: format!("The rise is what{rest}"), verdict: Verdict::Quoted, evidence });
    result
        .assumptions
        .push("The sizes with ATM are the paper's: 1174 and 53 bytes (see what it contradicts).".to_owned());
    Ok(result)
}

fn asymmetry_with_atm(table: &Table, row: &Row) -> Result<Values, ExperimentError> {
    let settings = table.settings(row);
    let rate = |name| Ok::<_, ExperimentError>(Fraction::whole(whole(&settings, name)?));
    let k = |data, ack| -> Result<f64, ExperimentError> {
        let sizes = (whole(&settings, data)?, whole(&settings, ack)?);
        let k = asymmetry::normalised(rate("down_bps")?, rate("up_bps")?, sizes.0, sizes.1);
        k.map(Fraction::as_f64).ok_or(ExperimentError::MissingSetting(data))
    };
    let plain = k("packet_bytes", "ack_bytes")?;
    let atm = k("packet_with_overhead_bytes", "ack_with_overhead_bytes")?;
    let mut values = Values::new();
    values.set("k", plain);
    values.set("k_atm", atm);
    // A second cell doubles the bytes of an ACK, and k is proportional to them.
    values.set("k_atm_if_ack_takes_two_cells", 2.0 * atm);
    values.set("change", atm / plain - 1.0);
    Ok(values)
}

fn line(sizes: &Values, down: u64, up: u64, packets_per_ack: u64) -> Result<Line, ExperimentError> {
    let ip = LinkLayer::from_name("ip").ok_or(ExperimentError::MissingSetting("link_layer"))?;
    Ok(Line {
        forward: BitRate::from_bps(down).ok_or(ExperimentError::MissingSetting("down_bps"))?,
        reverse: BitRate::from_bps(up).ok_or(ExperimentError::MissingSetting("up_bps"))?,
        forward_link: ip,
        reverse_link: ip,
        data: ByteCount::new(whole(sizes, "packet_bytes")?),
        ack: ByteCount::new(whole(sizes, "ack_bytes")?),
        packets_per_ack: Fraction::whole(packets_per_ack),
    })
}
