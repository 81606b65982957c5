//! The output for people: a table of connections, their fairness, and all results of one
//! connection.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use lastmile_analysis::Limit;
use lastmile_analysis::datagrams::LARGEST_QUIC;
use lastmile_results::format::{
    bytes, closings, estimated, grouped, number, or_dash, percent, rate, seconds, times, to_f64,
};
use lastmile_text::escape;
use lastmile_text::table::{Kind, Table, wrap};

use super::connection::Row;
use super::document::{CapturePosition, Document};
use super::read::Analysed;
use super::{both_ends, flows, without_data};
use crate::error::Error;

/// For a capture that was not read to its end: the position of the error, and its cause.
pub(super) fn broken(document: &Document) -> Option<String> {
    let why = document.broken.as_ref()?;
    Some(format!(
        "{} was NOT READ TO ITS END: only its first {} packets ({} bytes, {}) are analysed; {why}",
        escape::line(&document.file),
        grouped(document.packets),
        grouped(document.bytes_read),
        seconds(document.duration_s),
    ))
}

/// A warning of datagrams that are several packets.
fn several_datagrams(document: &Document) -> Option<String> {
    let is_several = |row: &&flows::FlowRow| {
        row.protocol == "quic" && row.volume.largest_payload_bytes.is_some_and(|largest| largest > LARGEST_QUIC)
    };
    let count = document.datagram_flows.iter().filter(is_several).count();
    (count > 0).then(|| {
        format!(
            "{} of QUIC with datagrams of more than {} bytes: the capture is before segmentation offload \
             (UDP GSO) or behind receive offload (GRO), and counts, sizes and bursts are of such datagrams",
            if count == 1 { "a direction".to_owned() } else { format!("{count} directions") },
            grouped(LARGEST_QUIC.into())
        )
    })
}

/// Warnings about the file.
pub(super) fn warnings(document: &Document) -> Vec<String> {
    let packets = document.packets;
    let mut all: Vec<String> = several_datagrams(document).into_iter().collect();
    let mut warn = |text: String| all.push(text);
    if let Some(first) = &document.incidents.first_unreadable {
        warn(format!(
            "{} of {packets} packets cannot be read and are left out, the first is {first}",
            document.incidents.packets_unreadable
        ));
    }
    if document.incidents.packets_fragmented > 0 {
        let count = grouped(document.incidents.packets_fragmented);
        warn(format!(
            "{count} of {packets} packets are fragments of IP packets and are left out: their connections and flows \
             lack these data"
        ));
    }
    if document.incidents.packets_with_cut_options > 0 {
        let count = document.incidents.packets_with_cut_options;
        warn(format!(
            "options of {count} packets were cut by the snap length; capture at least 128 bytes of each packet"
        ));
    }
    if document.incidents.packets_of_several_segments > 0 {
        let count = grouped(document.incidents.packets_of_several_segments);
        warn(format!(
            "{count} packets have several segments: the capture is before segmentation offload (TSO, GSO) or behind \
             receive offload (GRO, LRO), and counts of packets and retransmissions are of such packets"
        ));
    }
    if document.incidents.packets_seen_at_other_interfaces > 0 {
        let count = document.incidents.packets_seen_at_other_interfaces;
        warn(format!("{count} packets were seen before at another interface of the capture and are left out"));
    }
    if document.incidents.packets_copied_by_mirror > 0 {
        let count = document.incidents.packets_copied_by_mirror;
        warn(format!(
            "{} of {} packets ({}) are second copies, as a mirror port makes them that shows packets where they enter \
             and where they depart; they are left out",
            grouped(count),
            grouped(packets),
            percent(to_f64(count) / to_f64(packets))
        ));
    }
    let rows = document.connections.iter();
    let missed: u64 = rows.filter(|row| row.volume.bytes_new > 0).filter_map(|row| row.volume.bytes_unseen).sum();
    if missed > 0 {
        warn(format!(
            "the capture missed packets: {} bytes of theirs were acknowledged, and losses before the capture may be \
             such packets",
            grouped(missed)
        ));
    }
    if let Some(why) = &document.incidents.interfaces_left_out {
        warn(format!("packets of an interface are left out: {why}"));
    }
    let incidents = &document.incidents;
    for (way, count, largest_s) in [
        ("back", incidents.clock.clock_steps_back, incidents.clock.largest_clock_step_s),
        ("forward", incidents.clock.clock_steps_forward, incidents.clock.largest_clock_step_forward_s),
    ] {
        if count > 0 {
            warn(format!(
                "the clock of the capture was set {way} {}, by up to {}: times go on from the packet \
                 before, and delays across a step are wrong",
                times(count),
                seconds(largest_s)
            ));
        }
    }
    if incidents.clock.clock_steps_by_timestamps > 0 {
        warn(format!(
            "the clock of the capture was set forward {}, by up to {}, by the timestamps of both ends of \
             connections, which go on steadily: pauses there are none, and rates and shares of time are wrong",
            times(incidents.clock.clock_steps_by_timestamps),
            seconds(incidents.clock.largest_clock_step_by_timestamps_s)
        ));
    }
    all
}

/// The first lines about a capture.
pub(super) fn summary(document: &Document) -> String {
    let incidents = &document.incidents;
    let others = incidents.packets_without_ip + incidents.packets_not_tcp + incidents.packets_unreadable;
    let tcp = document.packets - others - incidents.packets_copied_by_mirror;
    let connections = document.connections.iter().map(|row| row.connection).collect::<BTreeSet<_>>().len();
    let plural = if connections == 1 { "" } else { "s" };
    let of_links = || format!("link type {}", escape::line(&document.link_types.join(", ")));
    if document.packets == 0 {
        return if document.link_types.is_empty() { String::new() } else { format!("No packets; {}\n", of_links()) };
    }
    if document.packets == incidents.packets_without_ip {
        return format!("{} packets, none of them IP; {}\n", grouped(document.packets), of_links());
    }
    format!(
        "{} packets in {}, {} of TCP; {connections} connection{plural} with data\n{}{}{}",
        grouped(document.packets),
        seconds(document.duration_s),
        grouped(tcp),
        without_data::line(&document.connections_without_data),
        stands(&document.stands),
        marks(&document.connections)
    )
}

/// Marks of congestion, in one line; empty without any.
fn marks(rows: &[Row]) -> String {
    let marked: u64 = rows.iter().map(|row| row.ecn.ce_packets).sum();
    let told: u64 = rows.iter().filter_map(|row| row.ecn.ece_acks).sum();
    if marked + told == 0 {
        return String::new();
    }
    let one = |count: u64, one: &str, more: &str| format!("{} {}", grouped(count), if count == 1 { one } else { more });
    let (packets, acks) = (one(marked, "packet", "packets"), one(told, "ACK tells", "ACKs tell"));
    format!("The path marks packets in place of dropping them (ECN): {packets} with CE here, {acks} of marks (ECE)\n")
}

/// The tables of a capture in lines of `width`: its connections, their fairness, and the run's counters.
pub(super) fn all(document: &Document, most: usize, width: u16) -> String {
    let mut text = String::new();
    for line in summary(document).lines() {
        wrap(&mut text, line, 0, width);
    }
    if !document.connections.is_empty() {
        let _ = write!(text, "\n{}", connections(&document.connections, most, width));
    }
    groups(&mut text, document, width);
    if !document.datagram_flows.is_empty() {
        let table = flows::table(&document.datagram_flows, most, width);
        let _ = write!(text, "\nFlows of datagrams; up: from the end of the first packet\n{table}");
    }
    if let Some(joined) = &document.joined {
        text.push_str(&both_ends::text(joined, &document.file, width));
    }
    if let Some(run) = &document.run {
        let mut table = Table::new([
            ("counter", Kind::Name),
            ("direction", Kind::Text),
            ("run", Kind::Number),
            ("capture", Kind::Number),
        ]);
        for counter in &run.counters {
            let [run, capture] = [counter.run, counter.capture].map(|count| or_dash(count, grouped));
            table.row([counter.name.to_owned(), counter.direction.clone(), run, capture]);
        }
        let _ = write!(text, "\nThe run itself: {}\n{}", run.scenario, table.render_within(width));
    }
    text.push('\n');
    text
}

/// The position of the capture, in one line; empty without connections.
fn stands(stands: &CapturePosition) -> String {
    let mut text = match (stands, &stands.next_to) {
        (CapturePosition { to_it_s: Some(near), to_the_others_s: Some(far), .. }, Some(address)) => {
            format!(
                "The capture is at {address} or next to it: {} from there, {} from the other end",
                seconds(*near),
                seconds(*far)
            )
        }
        (CapturePosition { at_sender: 0, between: 0, at_receiver: 0, unknown: 0, .. }, _) => return String::new(),
        (CapturePosition { at_sender: 0, between: 0, at_receiver: 0, .. }, _) => {
            return "The position of the capture is unknown: too few packets of one end, or too short a round trip\n"
                .to_owned();
        }
        (CapturePosition { at_sender: 0, between: 1.., at_receiver: 0, .. }, _) => {
            "The capture is between the ends".to_owned()
        }
        _ => format!(
            "The capture is at the sender of {} directions, at the receiver of {}, between the ends of {}",
            stands.at_sender, stands.at_receiver, stands.between
        ),
    };
    if stands.unknown > 0 {
        let _ = write!(text, "; not sure of {}", stands.unknown);
    }
    text.push('\n');
    text
}

fn connections(all: &[Row], most: usize, width: u16) -> String {
    use Kind::{Name, Number, Text};
    let are_closed = all.iter().any(|row| row.acks.zero_windows.is_some_and(|closings| closings > 0));
    let are_reset = all.iter().any(|row| row.life.reset);
    let mut columns = vec![
        ("#", Name),
        ("", Name),
        ("from", Text),
        ("to", Text),
        ("seen at", Text),
        ("bytes", Number),
        ("goodput", Number),
        ("RTT", Number),
        ("p95", Number),
        ("retrans", Number),
        ("timeouts", Number),
        ("fast", Number),
        ("spurious", Number),
        ("stall", Number),
    ];
    columns.extend(are_closed.then_some(("window closed", Number)));
    columns.extend(are_reset.then_some(("reset", Text)));
    columns.push(("limited by", Text));
    let mut table = Table::new(columns);
    let mut rows: Vec<&Row> = all.iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.volume.bytes_acknowledged.unwrap_or(0).max(row.volume.bytes_new)));
    let shown = if most == 0 { rows.len() } else { rows.len().min(most) };
    let hidden = rows.len() - shown;
    rows.truncate(shown);
    rows.sort_by_key(|row| (row.connection, row.direction == "down"));
    for row in rows {
        let closed = row.acks.zero_windows.zip(row.acks.zero_window_s);
        let mut cells = vec![
            row.connection.to_string(),
            row.direction.to_owned(),
            row.ends.from.clone(),
            row.ends.to.clone(),
            row.position.vantage.unwrap_or("?").to_owned(),
            bytes(row.volume.bytes_of_goodput),
            rate(row.volume.goodput_bps),
            or_dash(row.delays.round_trip_median_s, seconds),
            or_dash(row.delays.round_trip_p95_s, |p95_s| estimated(p95_s, row.delays.round_trip_is_sum)),
            or_dash(row.repeats.retransmissions, grouped),
            or_dash(row.repeats.timeouts, grouped),
            or_dash(row.repeats.fast_retransmits, grouped),
            or_dash(row.repeats.spurious, grouped),
            or_dash(row.acks.longest_stall_s, seconds),
        ];
        cells.extend(are_closed.then(|| or_dash(closed, |(count, closed_s)| closings(count, closed_s))));
        cells.extend(are_reset.then(|| if row.life.reset { "RST" } else { "" }.to_owned()));
        cells.push(row.limits.limit.clone());
        table.row(cells);
    }
    let mut text = table.render_within(width);
    if hidden > 0 {
        let _ = writeln!(text, "... and {hidden} smaller ones (--most 0 shows all)");
    }
    text
}

fn groups(text: &mut String, document: &Document, width: u16) {
    use Kind::{Name, Number};
    if document.groups.is_empty() {
        return;
    }
    let grouped_by = document.groups.iter().any(|group| group.group.is_some());
    let mut table = Table::new([
        (if grouped_by { "group" } else { "direction" }, Name),
        ("connections", Number),
        ("goodput", Number),
        ("Jain's index", Number),
        ("without timers", Number),
        ("variation", Number),
        ("timeouts", Number),
        ("fast", Number),
        ("by timeout", Number),
        ("correlation of\ngoodput and\ntimeouts", Number),
    ]);
    let name = |group: &super::document::Group| match &group.group {
        Some(name) => format!("{name}, {}", group.direction),
        None => group.direction.to_owned(),
    };
    let two = |value: f64| format!("{value:.3}");
    for group in &document.groups {
        let repairs = group.timeouts.zip(group.fast_retransmits);
        let by_timeout = repairs.filter(|(timeouts, fast)| timeouts + fast > 0);
        let share = |(timeouts, fast): (u64, u64)| to_f64(timeouts) / to_f64(timeouts + fast);
        table.row([
            name(group),
            group.connections.to_string(),
            rate(group.goodput_bps),
            or_dash(group.jain_index, two),
            or_dash(group.jain_index_without_timers, two),
            or_dash(group.coefficient_of_variation, two),
            or_dash(group.timeouts, grouped),
            or_dash(group.fast_retransmits, grouped),
            or_dash(by_timeout, |repairs| percent(share(repairs))),
            or_dash(group.correlation_with_timeouts, |value| format!("{value:+.2}")),
        ]);
    }
    let _ = write!(text, "\n{}", table.render_within(width));
    for group in document.groups.iter().filter(|group| !group.explanation.is_empty()) {
        wrap(text, &format!("{}: {}", name(group), group.explanation), 0, width);
    }
}

/// All results of one connection, in lines of `width`.
pub(super) fn one(analysed: &Analysed, document: &Document, wanted: usize, width: u16) -> Result<String, Error> {
    let count = analysed.connections.len();
    let Some(connection) = wanted.checked_sub(1).and_then(|index| analysed.connections.get(index)) else {
        return Err(Error::new(format_args!("{}: no connection {wanted}", document.file))
            .hint(format!("connections are numbered from 1 to {count}")));
    };
    let mut text = String::new();
    if let Some(without) = document.connections_without_data.iter().find(|one| one.connection == wanted) {
        let [up, down] = [&connection.up, &connection.down].map(|direction| direction.volume.packets);
        let _ = writeln!(text, "no data: {}, {up} packets up and {down} down", without.words());
    }
    // A SYN waits for a timer whatever its direction carries.
    for (name, direction) in [("up", &connection.up), ("down", &connection.down)] {
        let has_row = document.connections.iter().any(|row| row.connection == wanted && row.direction == name);
        let timeouts = direction.repeats.timeouts;
        if !has_row && timeouts > 0 {
            let plural = if timeouts == 1 { "" } else { "s" };
            let _ = writeln!(text, "{name}: no data, and {timeouts} timeout{plural} of its SYN or FIN");
        }
    }
    for row in document.connections.iter().filter(|row| row.connection == wanted) {
        let direction = if row.direction == "up" { &connection.up } else { &connection.down };
        let _ = writeln!(text, "\n{}: {} to {}", row.direction, row.ends.from, row.ends.to);
        let values = serde_json::to_value(row).map_err(Error::new)?;
        let mut table = Table::new([("value", Kind::Name), ("", Kind::Text)]);
        for (name, value) in values.as_object().into_iter().flatten() {
            if !value.is_object()
                && !value.is_null()
                && !["connection", "direction", "from", "to"].contains(&name.as_str())
            {
                let value = value.as_f64().filter(|_| value.is_f64()).map_or_else(|| value.to_string(), number);
                table.row([name.clone(), value.trim_matches('"').to_owned()]);
            }
        }
        for limit in Limit::ALL.into_iter().filter(|_| direction.limits.basis.is_some()) {
            table.row([format!("time limited by {}", limit.name()), percent(direction.limits.shares.share(limit))]);
        }
        text.push_str(&table.render_within(width));
        let mut pauses = Table::new([("pause at", Kind::Number), ("for", Kind::Number), ("waiting for", Kind::Text)]);
        for pause in &direction.events.pauses {
            let at = format!("{:.3} s", pause.from.as_secs_f64());
            pauses.row([at, seconds(pause.span.as_secs_f64()), pause.limit.name().replace('_', " ")]);
        }
        if !direction.events.pauses.is_empty() {
            let _ = write!(text, "\n{}", pauses.render_within(width));
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::super::read::Counts;
    use super::*;
    use lastmile_analysis::{Analysis, Connection};
    use lastmile_packet::{FlowAddresses, FlowId, FlowKey, Meta, Parsed, SeqNumber, TcpFlags};
    use lastmile_scenario::capture::Extent;
    use lastmile_units::{Duration, Instant};

    /// Three segments of 1000 bytes in 300 ms, with an ACK of the first two or without.
    fn captured(with_ack: bool) -> Connection {
        let mut analysis = Analysis::new();
        let mut packet = |ms, up, meta: Meta| {
            let forward = FlowAddresses::of_simulated(FlowId::new(0));
            let key = FlowKey { addresses: if up { forward } else { forward.reversed() }, protocol: 6 };
            analysis.packet(Instant::ZERO + Duration::from_ms(ms), &Parsed { meta, key, transport_offset: 20 });
        };
        let ack = Meta { flags: TcpFlags::ACK, window: 9_000, header_len: 40, ip_len: 40, ..Meta::default() };
        for number in 0..3 {
            packet(150 * u64::from(number), true, Meta { seq: SeqNumber::new(1_000 * number), ip_len: 1_040, ..ack });
        }
        if with_ack {
            packet(300, false, Meta { ack: SeqNumber::new(2_000), ..ack });
        }
        analysis.finish().remove(0)
    }

    #[test]
    fn a_table_that_is_too_wide_continues_below_with_number_and_direction() {
        let connection = captured(true);
        let rows = ["up", "down"].map(|direction| Row::new(1, &connection, direction, &connection.up));
        for width in [80, 120] {
            let text = connections(&rows, 0, width);
            assert!(text.lines().all(|line| line.chars().count() <= width.into()), "{text}");
            let parts = text.lines().filter(|line| line.starts_with(" #")).count();
            assert!(parts > 1 && text.matches(" 1   down ").count() == parts, "{text}");
        }
    }

    /// Columns for closed windows and resets stand where some direction has them. What needs ACKs is absent without.
    #[test]
    fn closed_windows_resets_and_missing_acks_are_shown() {
        let mut connection = captured(true);
        let cells = |connection: &Connection| {
            let text = connections(&[Row::new(1, connection, "up", &connection.up)], 0, 400);
            let rows: Vec<Vec<String>> = text
                .lines()
                .map(|line| {
                    line.split("   ").map(str::trim).map(str::to_owned).filter(|cell| !cell.is_empty()).collect()
                })
                .collect();
            (rows[0].join("|"), rows[rows.len() - 1].join("|"))
        };
        let (head, _) = cells(&connection);
        assert!(!head.contains("window closed") && !head.contains("reset"), "{head}");
        connection.reset = true;
        connection.up.window.closings = 2;
        connection.up.window.closed = Duration::from_ms(1_500);
        let (head, row) = cells(&connection);
        assert!(head.ends_with("stall|window closed|reset|limited by") && row.contains("2 times, 1.5 s|RST"), "{row}");
        let (_, row) = cells(&captured(false));
        assert!(row.ends_with("3 kB|80 kbit/s|–|–|0|–|–|–|–|does not show from here"), "{row}");
    }

    /// Captures of Ethernet without packets, and with three of ARP; a folder of results has no link type.
    #[test]
    fn a_capture_without_ip_says_so() {
        let text = |packets, foreign, links: &[&str]| {
            let links = links.iter().map(|link| (*link).to_owned()).collect();
            let extent = Extent { links, ..Extent::default() };
            let counts = Counts { packets, foreign, extent, ..Counts::default() };
            all(&Document::new(&Analysed { counts, ..Analysed::default() }, None), 0, 80)
        };
        assert_eq!(text(0, 0, &["ETHERNET"]), "No packets; link type ETHERNET\n\n");
        assert_eq!(text(3, 3, &["ETHERNET", "PPP"]), "3 packets, none of them IP; link type ETHERNET, PPP\n\n");
        assert_eq!(text(0, 0, &[]), "\n");
    }

    /// 16 000 bits in 300 ms are 53.3 kbit/s, 24 000 bits 80 kbit/s.
    #[test]
    fn bytes_are_those_of_the_goodput() {
        for (with_ack, expected) in [(true, ["2", "kB", "53.3", "kbit/s"]), (false, ["3", "kB", "80", "kbit/s"])] {
            let connection = captured(with_ack);
            let text = connections(&[Row::new(1, &connection, "up", &connection.up)], 0, 200);
            let row: Vec<&str> = text.lines().last().unwrap_or_default().split_whitespace().collect();
            assert_eq!(row[5..9], expected, "{text}");
        }
    }
}
