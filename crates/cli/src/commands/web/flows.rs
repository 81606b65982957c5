//! Tables of the largest flows of each direction, from the recorded headers.

use std::net::{IpAddr, SocketAddr};

use lastmile_dashboard::report::{Cell, Table, Unit};
use lastmile_live::bump::Record;
use lastmile_live::handle::Handle;
use lastmile_packet::FlowKey;
use lastmile_units::{Duration, Instant};

/// Flows in the table of each direction.
const MOST_FLOWS: usize = 10;

/// The time that a table covers, unless the record begins later.
const SPAN: Duration = Duration::from_s(5);

/// The flows with the most bytes lately, up and down; no table if no headers are recorded.
pub(in crate::commands) fn tables(handle: &Handle, now: Instant) -> Vec<Table> {
    let records = handle.records();
    records.iter().flatten().zip(["up", "down"]).map(|(record, direction)| table(record, direction, now)).collect()
}

#[expect(clippy::cast_precision_loss, reason = "for the eye only")]
fn table(record: &Record, direction: &str, now: Instant) -> Table {
    let since = record.reaches_back(now, SPAN);
    let seconds = now.since(since).as_secs_f64();
    let per_second = |count: u64| Cell::from(Some(count as f64 / seconds));
    let (count, largest) = record.largest_flows(since, MOST_FLOWS, |reason| !reason.is_ack_regulation());
    let rows = largest.into_iter().map(|flow| {
        let words = words(flow.key.as_ref()).map(Cell::Text);
        let numbers = [8 * flow.bytes, flow.packets, flow.dropped].map(per_second);
        words.into_iter().chain(numbers).collect()
    });
    Table {
        title: format!("largest of {count} flows {direction}, last {} s, on arrival", (seconds * 10.0).round() / 10.0),
        columns: vec![
            ("from", Unit::Count),
            ("to", Unit::Count),
            ("protocol", Unit::Count),
            ("IP rate", Unit::BitsPerSecond),
            ("packets", Unit::PerSecond),
            ("drops", Unit::PerSecond),
        ],
        rows: rows.collect(),
    }
}

/// Source, destination and protocol of a flow.
fn words(key: Option<&FlowKey>) -> [String; 3] {
    let Some(FlowKey { addresses, protocol }) = key else {
        return ["not IP, or unreadable".to_owned(), "-".to_owned(), "-".to_owned()];
    };
    let with_port = |address: IpAddr, port: u16| match protocol {
        6 | 17 => SocketAddr::new(address, port).to_string(),
        _ => address.to_string(),
    };
    let protocol = match protocol {
        1 | 58 => "ICMP".to_owned(),
        6 => "TCP".to_owned(),
        17 => "UDP".to_owned(),
        number => number.to_string(),
    };
    let source = with_port(addresses.ip.source(), addresses.source_port);
    [source, with_port(addresses.ip.destination(), addresses.destination_port), protocol]
}
