//! Access lines that share a DSLAM: their goodputs, and the fairness among them (Jain, Chiu, Hawe
//! 1984; as Phanse 2000, table 5.12).

use lastmile_model::outcome::{FlowOutcome, Outcome};
use lastmile_model::{AccessLine, Network};
use lastmile_theory::fairness::jain;

use crate::format::to_f64;
use crate::schema::{Line, LineFairness, Link};

/// One row for each of several lines; none for a single line, whose flows say everything.
pub(crate) fn lines(network: &Network, outcome: &Outcome, links: &[Link]) -> Vec<Line> {
    if network.lines.len() < 2 {
        return Vec::new();
    }
    // Delivered bytes by link, in one pass over the flows for any number of lines.
    let mut bytes = vec![0_u64; network.links.len()];
    for flow in &outcome.flows {
        flow.data_path.iter().for_each(|link| bytes[*link] += flow.bytes_delivered);
    }
    let seconds = outcome.duration.as_secs_f64();
    let goodput = |link: usize| to_f64(bytes[link]) * 8.0 / seconds;
    let sent: f64 = outcome.flows.iter().filter(|flow| goes_down(network, flow)).map(sent_bytes).sum();
    let row = |line: &AccessLine| Line {
        name: line.name.clone(),
        down_link: links[line.down].name.clone(),
        up_link: links[line.up].name.clone(),
        down_goodput_bps: goodput(line.down),
        up_goodput_bps: goodput(line.up),
        down_utilisation: links[line.down].utilisation,
        up_utilisation: links[line.up].utilisation,
        client_to_server_ratio: (sent > 0.0).then(|| to_f64(bytes[line.down]) / sent),
    };
    network.lines.iter().map(row).collect()
}

/// True for a flow whose data go to the client of a line.
fn goes_down(network: &Network, flow: &FlowOutcome) -> bool {
    network.lines.iter().any(|line| flow.data_path.contains(&line.down))
}

/// Payload sent by the source of a flow: the delivered bytes, scaled by the packets sent per packet
/// received.
fn sent_bytes(flow: &FlowOutcome) -> f64 {
    to_f64(flow.bytes_delivered) * to_f64(flow.data_packets) / to_f64(flow.data_packets_received.max(1))
}

/// The fairness among `lines` in each direction with any goodput.
pub(crate) fn fairness(lines: &[Line]) -> Vec<LineFairness> {
    let index = |direction: &str, goodput: fn(&Line) -> f64| {
        let jain_index = jain(lines.iter().map(goodput))?;
        Some(LineFairness { direction: direction.to_owned(), lines: lines.len() as u64, jain_index })
    };
    [index("down", |line| line.down_goodput_bps), index("up", |line| line.up_goodput_bps)]
        .into_iter()
        .flatten()
        .collect()
}
