//! Calls and datagrams, delays from end to end, service classes.

use lastmile_theory::y1541;

use super::columns::{NOTHING, columns, without_empty_columns};
use super::{Kind, Table};
use crate::format;
use crate::schema::{ClassDelay, DatagramClass, Datagrams, Delay, Flow, OneWay, Summary, Y1541};

/// The first `most` datagram flows: delay, jitter, losses, and the quality of voice.
pub(crate) fn datagrams(summary: &Summary, most: usize) -> Table {
    use Kind::{Name, Number, Text, Words};
    let columns = columns(&[
        ("Datagrams", Name),
        ("Class", Text),
        ("Sent", Number),
        ("Lost", Number),
        ("Late", Number),
        ("for a\nbuffer of", Number),
        ("Delay\np50", Number),
        ("p99", Number),
        ("max", Number),
        ("Jitter", Number),
        ("R", Number),
        ("MOS", Number),
        ("Call", Words),
        ("Y.1541", Text),
    ]);
    let flows = summary.flows.iter().filter_map(|flow| Some((flow, flow.datagrams.as_deref()?)));
    let rows = flows.take(most).map(|(flow, datagrams)| row(flow, datagrams)).collect();
    let title = "Datagrams: one-way delay, jitter (RFC 3550), R factor and MOS (ITU-T G.107)";
    without_empty_columns(Table { title: title.to_owned(), columns, rows })
}

/// The number of datagram flows.
pub(crate) fn datagram_flows(summary: &Summary) -> usize {
    summary.flows.iter().filter(|flow| flow.datagrams.is_some()).count()
}

fn row(flow: &Flow, datagrams: &Datagrams) -> Vec<String> {
    let delay = flow.delay_s.as_deref().copied().unwrap_or_default();
    let voice = datagrams.voice.as_ref();
    let mut cells = vec![flow.name.clone(), flow.setup.class.to_string()];
    cells.extend([flow.transport.data_packets, datagrams.lost_packets, datagrams.late_packets].map(format::grouped));
    cells.push(format::seconds(datagrams.playout_buffer_s));
    cells.extend([delay.p50, delay.p99, delay.max, datagrams.jitter_mean_s].map(seconds));
    cells.push(format::or_dash(voice, |voice| format!("{:.1}", voice.r_factor)));
    cells.push(format::or_dash(voice, |voice| format!("{:.2}", voice.mos)));
    cells.push(format::or_dash(voice, |voice| format!("{}, {}", voice.codec, voice.satisfaction)));
    cells.push(classes(flow.y1541.as_deref()));
    cells
}

/// One row per code point and direction of datagrams, if any class has several flows.
pub(crate) fn datagram_classes(summary: &Summary) -> Table {
    use Kind::{Name, Number, Text};
    let columns = columns(&[
        ("Class of datagrams", Name),
        ("Direction", Text),
        ("Flows", Number),
        ("Sent", Number),
        ("Lost", Number),
        ("Late", Number),
        ("Delay\np50", Number),
        ("p99", Number),
        ("max", Number),
        ("Jitter", Number),
        ("R mean", Number),
        ("R least", Number),
        ("MOS mean", Number),
        ("MOS least", Number),
        ("Y.1541", Text),
    ]);
    let classes = summary.datagram_classes.iter();
    let rows = if classes.clone().any(|class| class.flows > 1) { classes.map(class_row).collect() } else { Vec::new() };
    without_empty_columns(Table { title: "Datagrams by class".to_owned(), columns, rows })
}

fn class_row(class: &DatagramClass) -> Vec<String> {
    let OneWay { p50, p99, max, .. } = class.delay_s;
    let mut cells = vec![class.class.clone(), class.direction.clone()];
    cells.extend([class.flows, class.sent_packets, class.lost_packets, class.late_packets].map(format::grouped));
    cells.extend([p50, p99, max, class.jitter_mean_s].map(seconds));
    cells.extend([class.r_factor_mean, class.r_factor_min].map(|r| format::or_dash(r, |r| format!("{r:.1}"))));
    cells.extend([class.mos_mean, class.mos_min].map(|mos| format::or_dash(mos, |mos| format!("{mos:.2}"))));
    cells.push(classes(class.y1541.as_ref()));
    cells
}

/// One-way delays of the data and the ACKs of TCP flows, and the service classes that the data
/// meet.
pub(crate) fn delays(summary: &Summary) -> Table {
    use Kind::{Name, Number, Text};
    let columns = columns(&[
        ("Flow", Name),
        ("Data: mean", Number),
        ("p50", Number),
        ("p99", Number),
        ("max", Number),
        ("Lost", Number),
        ("ACKs: mean", Number),
        ("p50", Number),
        ("p99", Number),
        ("max", Number),
        ("Y.1541", Text),
    ]);
    let row = |flow: &Flow| {
        let [data, acks] =
            [&flow.delay_s, &flow.ack_delay_s].map(|delay| delay.as_deref().copied().unwrap_or_default());
        let cells = |delay: OneWay| [delay.mean, delay.p50, delay.p99, delay.max].map(seconds);
        let lost = flow.y1541.as_deref().and_then(|verdict| verdict.iplr);
        let mut row = vec![flow.name.clone()];
        row.extend(cells(data));
        row.push(format::or_dash(lost, format::percent));
        row.extend(cells(acks));
        row.push(classes(flow.y1541.as_deref()));
        row
    };
    let flows = summary.flows.iter().filter(|flow| flow.setup.tcp.is_some() && flow.delay_s.is_some());
    Table { title: "Delay of packets from end to end".to_owned(), columns, rows: flows.map(row).collect() }
}

/// Queueing delays of each class, one row per class of each queue with several classes.
pub(crate) fn waits_by_class(summary: &Summary) -> Table {
    use Kind::{Name, Number, Text};
    let columns = columns(&[
        ("Queue of link", Name),
        ("Class", Text),
        ("Packets", Number),
        ("Wait mean", Number),
        ("p50", Number),
        ("p99", Number),
        ("p99.9", Number),
        ("max", Number),
    ]);
    let links = summary.links.iter().filter(|link| link.queue.class_queue_delays.len() > 1);
    let rows = links.flat_map(|link| {
        link.queue.class_queue_delays.iter().map(|ClassDelay { class, queue_delay_s }| {
            let Delay { mean, p50, p99, p999, max, count } = *queue_delay_s;
            let mut row = vec![link.name.clone(), class.clone(), format::grouped(count)];
            row.extend([mean, p50, p99, p999, max].map(seconds));
            row
        })
    });
    Table { title: "Waits by class".to_owned(), columns, rows: rows.collect() }
}

fn seconds(value: Option<f64>) -> String {
    format::or_dash(value, format::seconds)
}

/// The classes that are met, as ranges: `0-5`, `2-5`, `1, 3-5`, with a mark behind those that few packets judge.
pub(crate) fn classes(verdict: Option<&Y1541>) -> String {
    let Some(verdict) = verdict else { return NOTHING.to_owned() };
    let (judged, few): (Vec<u8>, Vec<u8>) =
        verdict.classes.iter().partition(|class| y1541::is_judged(**class, verdict.packets));
    let marked = (!few.is_empty()).then(|| format!("{} (few)", ranges(&few)));
    let judged = (!judged.is_empty()).then(|| ranges(&judged));
    judged.into_iter().chain(marked).collect::<Vec<_>>().join(", ")
}

fn ranges(classes: &[u8]) -> String {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for class in classes {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *class => *last = *class,
            _ => runs.push((*class, *class)),
        }
    }
    let ranges: Vec<String> = runs
        .iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    ranges.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_that_follow_one_another_are_one_range() {
        let text = |list: &[u8], packets| classes(Some(&Y1541 { classes: list.to_vec(), packets, ..Y1541::default() }));
        assert_eq!(text(&[0, 1, 2, 3, 4, 5], 1_000), "0-5");
        assert_eq!(text(&[1, 3, 4, 5], 1_000), "1, 3-5");
        assert_eq!(text(&[5], 999), "5 (few)");
        assert_eq!(text(&[0, 1, 2, 3, 4, 5, 6, 7], 100_000), "0-7");
        assert_eq!(text(&[0, 1, 2, 3, 4, 5, 6, 7], 99_999), "0-5, 6-7 (few)");
        assert_eq!(classes(None), NOTHING);
    }
}
