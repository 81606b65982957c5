//! The analysis of a capture at the sender, compared with the state of the simulated sender:
//! congestion window, retransmissions and their causes, delayed ACKs, limits.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use lastmile_analysis::{Analysis, Cause, Connection, Kind, Limit, Sender, Sighting, Traced};
use lastmile_model::{Directory, Network, Observer, Passage};
use lastmile_packet::{FlowDirectory as _, FlowKey, Meta, Parsed};
use lastmile_results::capture::{CaptureWriter, InterfaceId, Keep};
use lastmile_results::schema::Flow;
use lastmile_results::{Origin, summarise};
use lastmile_scenario::Scenario;
use lastmile_sim::{Advance, Simulation};
use lastmile_units::Instant;

/// The packets at the server, at its end of its link.
struct Capture {
    addresses: Directory,
    sent: usize,
    received: usize,
    analysis: Analysis,
    traced: Vec<Traced>,
    file: CaptureWriter<Vec<u8>>,
    interface: InterfaceId,
}

struct Sink(Arc<Mutex<Capture>>);

impl Observer<Meta> for Sink {
    fn packet(&mut self, at: Instant, link: usize, passage: Passage, packet: &Meta) {
        let mut capture = self.0.lock().unwrap();
        let seen = match passage {
            Passage::Transmitted => link == capture.sent,
            Passage::Arrived => link == capture.received,
            Passage::Dropped(_) => false,
        };
        if seen {
            let key = FlowKey { addresses: capture.addresses.addresses(packet.flow), protocol: 6 };
            let parsed = Parsed { meta: *packet, key, transport_offset: 20 };
            let traced = capture.analysis.traced(at, Sighting::default(), &parsed);
            capture.traced.extend(traced);
            let interface = capture.interface;
            capture.file.write(interface, at, packet, &key.addresses).unwrap();
        }
    }
}

/// A run of one download, captured at the server.
struct Seen {
    traced: Vec<Traced>,
    connection: Connection,
    file: Vec<u8>,
    /// Time and congestion window of the simulated sender.
    windows: Vec<(f64, f64)>,
    flow: Flow,
}

const LINE: &str = "[access]\nencapsulation = \"ip\"\n\
    up = { rate = \"1 Mbit/s\", delay = \"15 ms\" }\n\
    down = { rate = \"8 Mbit/s\", delay = \"15 ms\", queue = { kind = \"fifo\", limit = \"60 packets\" } }\n\
    [[traffic]]\nname = \"download\"\nkind = \"bulk\"\ndirection = \"down\"\n";

fn see(overrides: &[&str]) -> Seen {
    let text = format!("duration = \"60 s\"\nrecord = {{ interval = \"20 ms\" }}\n{LINE}");
    let overrides: Vec<String> = overrides.iter().map(|one| (*one).to_owned()).collect();
    let scenario = Scenario::parse("f", &text, &overrides).unwrap_or_else(|report| panic!("{report}"));
    let network = scenario.network();
    let link = |name: &str| network.links.iter().position(|link| link.hop.name == name).unwrap();
    let mut file = CaptureWriter::new(Vec::new(), Keep::Headers).unwrap();
    let interface = file.add_interface("server-gateway").unwrap();
    let capture = Arc::new(Mutex::new(Capture {
        file,
        interface,
        addresses: Directory::new(&network),
        sent: link("server-gateway"),
        received: link("gateway-server"),
        analysis: Analysis::new(),
        traced: Vec::new(),
    }));
    let outcome = simulate(&network, Arc::clone(&capture));
    let summary = summarise(&Origin::default(), &network, &outcome);
    let windows = outcome.series.iter().find(|series| series.name == "cwnd_bytes").unwrap();
    let windows = windows.points.iter().map(|(at, value)| (at.as_secs_f64(), *value)).collect();
    let Capture { analysis, traced, file, .. } = Arc::into_inner(capture).unwrap().into_inner().unwrap();
    let connection = analysis.finish().swap_remove(0);
    Seen { traced, connection, file: file.into_inner(), windows, flow: summary.flows[0].clone() }
}

fn simulate(network: &Network, capture: Arc<Mutex<Capture>>) -> lastmile_model::outcome::Outcome {
    let mut simulation = Simulation::new(network, Some(Box::new(Sink(capture)))).unwrap();
    while simulation.advance_by(Instant::ZERO + network.duration, u64::MAX) != Advance::Reached {}
    simulation.finish()
}

impl Seen {
    /// The share of samples of which `estimate` is within a segment of the sender's window.
    fn within_a_segment(&self, estimate: impl Fn(&Sender) -> u64) -> f64 {
        let senders = self.traced.iter().filter_map(|one| {
            let sender = one.data.map(|data| data.sender).or(one.ack.map(|ack| ack.sender))?;
            Some((one.at.as_secs_f64(), sender))
        });
        let senders: Vec<_> = senders.collect();
        let segment = self.flow.setup.payload_bytes as f64;
        let near = |(at, window): &&(f64, f64)| {
            let latest = senders.partition_point(|(time, _)| time <= at).checked_sub(1);
            latest.is_some_and(|latest| (estimate(&senders[latest].1) as f64 - window).abs() <= segment)
        };
        self.windows.iter().filter(near).count() as f64 / self.windows.len() as f64
    }

    fn causes(&self, cause: Cause) -> u64 {
        let kind = Kind::Retransmission(cause);
        self.traced.iter().filter(|one| one.data.is_some_and(|data| data.kind == kind)).count() as u64
    }
}

const WIDE: &str = "tcp.receive_window=4 MB";
const BY_NUMBER: [&str; 2] = ["tcp.loss_detection=rfc6675", "tcp.recovery=rfc6675"];

/// Losses of a full queue, and others, of Reno without SACK, of SACK, and of CUBIC; with Linux's
/// repair and with that of RFC 6675. The data outstanding alone, without the estimate, are within a
/// segment less often.
#[test]
fn windows_are_within_a_segment_at_19_of_20_moments() {
    let senders: [(&str, &[&str]); 4] = [
        ("Reno", &["tcp.variant=reno", "tcp.sack=false"]),
        ("SACK", &["tcp.variant=sack"]),
        ("SACK by RFC 6675", &["tcp.variant=sack", BY_NUMBER[0], BY_NUMBER[1]]),
        ("CUBIC", &["tcp.variant=cubic"]),
    ];
    let lines: [(&str, &[&str]); 6] = [
        ("a full queue", &[]),
        ("a short queue", &["access.down.queue.limit=15 packets"]),
        ("a long path", &["access.down.delay=80 ms", "access.down.queue.limit=120 packets"]),
        ("random losses", &["access.down.loss=0.3 %"]),
        ("many losses", &["access.down.loss=2 %"]),
        ("lost ACKs", &["access.up.loss=5 %", "tcp.timestamps=true"]),
    ];
    let mut wrong = Vec::new();
    let mut plain = Vec::new();
    for (sender, of_sender) in senders {
        for (line, of_line) in lines {
            let overrides: Vec<&str> = [WIDE].iter().chain(of_sender).chain(of_line).copied().collect();
            let seen = see(&overrides);
            let share = seen.within_a_segment(|sender| sender.congestion_window.unwrap_or(0));
            plain.push(seen.within_a_segment(|sender| sender.outstanding));
            println!("{sender}, {line}: {:.1} %, outstanding {:.1} %", 100.0 * share, 100.0 * plain.last().unwrap());
            if share < 0.95 {
                wrong.push(format!("{sender}, {line}: {share:.3}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(plain.iter().any(|share| *share < 0.9), "{plain:?}");
}

/// The simulator counts expired timers, fast retransmits, and all retransmissions.
#[test]
fn each_retransmission_has_the_cause_that_the_sender_had() {
    let mut seen_of_each = [0; 3];
    for overrides in [
        &["tcp.variant=reno", "tcp.sack=false", "access.down.loss=2 %"][..],
        &["tcp.variant=sack", BY_NUMBER[0], BY_NUMBER[1], "tcp.tail_loss_probe=false", "access.down.loss=2 %"],
        &["tcp.variant=cubic", BY_NUMBER[0], BY_NUMBER[1], "tcp.tail_loss_probe=false"],
        // Losses found by time, and probes.
        &["tcp.variant=cubic", "tcp.timestamps=false", "access.down.loss=2 %"],
        &["tcp.variant=sack", "tcp.timestamps=false", "access.down.loss=5 %"],
        &["tcp.variant=bbr", "tcp.timestamps=false", "access.down.loss=1 %"],
    ] {
        let seen = see(overrides);
        let all: u64 = Cause::ALL.into_iter().map(|cause| seen.causes(cause)).sum();
        let own = [seen.causes(Cause::Timeout), seen.causes(Cause::Fast), all];
        let flow = &seen.flow;
        let run = [flow.transport.timeouts, flow.transport.fast_retransmits, flow.transport.retransmissions]
            .map(Option::unwrap_or_default);
        assert_eq!(own, run, "{overrides:?}");
        seen_of_each.iter_mut().zip(run).for_each(|(sum, count)| *sum += count);
    }
    assert!(seen_of_each[0] > 0 && seen_of_each[1] > 50 && seen_of_each[2] > 200, "{seen_of_each:?}");
}

/// A window below the bandwidth-delay product, without losses and with them, and one far above it.
#[test]
fn the_time_at_a_full_receive_window_is_within_2_percent() {
    for (overrides, least, most) in [
        (&["tcp.receive_window=20 kB"][..], 0.9, 1.0),
        (&["tcp.receive_window=24 kB", "access.down.loss=0.2 %"], 0.3, 0.9),
        (&["tcp.receive_window=60 kB", "access.down.loss=0.05 %"], 0.1, 0.9),
        (&["tcp.receive_window=4 MB"], 0.0, 0.01),
    ] {
        let seen = see(overrides);
        let run = seen.flow.limits.limited_by.receive_window.unwrap_or(0.0);
        let own = seen.connection.down.limits.shares.share(Limit::ReceiveWindow);
        println!("{overrides:?}: {own:.4}, simulator {run:.4}");
        assert!((least..=most).contains(&run), "{overrides:?}: {run}");
        assert!((own - run).abs() <= 0.02, "{overrides:?}: {own}, simulator {run}");
    }
}

/// Segments for each ACK: of every segment, of every second, of every fourth, and as Linux does.
#[test]
fn the_factor_of_delayed_acks_is_within_1_percent() {
    for overrides in [
        &["tcp.delayed_ack=0 ms"][..],
        &["tcp.quick_acks=false", "tcp.ack_every=2"],
        &["tcp.quick_acks=false", "tcp.ack_every=4", "tcp.delayed_ack=200 ms"],
        &["tcp.quick_acks=true"],
    ] {
        let seen = see(overrides);
        let factor = |segments: u64, acks: u64| segments as f64 / acks as f64;
        let run = factor(seen.flow.transport.data_packets_received, seen.flow.transport.acks_sent.unwrap());
        let down = &seen.connection.down;
        let own = factor(down.volume.data_packets, down.acks.pure);
        println!("{overrides:?}: {own:.4}, simulator {run:.4}");
        assert!((own / run - 1.0).abs() < 0.01, "{overrides:?}: {own}, simulator {run}");
    }
}

/// tshark's analysis of each packet. Skipped where it is not installed.
///
/// Equal: retransmissions (which tshark names out of order within a round trip), duplicate ACKs with an equal window
/// (one that reports data by SACK is a duplicate with any window, and the window opens while it grows), octets
/// outstanding after each data packet, and round trips. Of outstanding octets tshark subtracts those that
/// were SACKed, so that they are compared without losses. Round trips differ where an ACK covers a
/// retransmitted segment: tshark measures from its first transmission, lastmile only with timestamps and
/// from the one that was echoed.
#[test]
fn tshark_says_the_same_of_each_packet() {
    if std::process::Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("skipped: tshark is not installed");
        return;
    }
    let mut sums = [0; 4];
    for overrides in [&["access.down.loss=1 %"][..], &["tcp.variant=sack", "tcp.timestamps=true", "access.up.loss=2 %"]]
    {
        let seen = see(overrides);
        let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("each-packet.pcapng");
        std::fs::write(&path, &seen.file).unwrap();
        let rows = dissected(&path);
        assert_eq!(rows.len(), seen.traced.len());
        let mut wrong = Vec::new();
        let mut repeated = HashSet::new();
        let mut window_before = None;
        for (number, (row, one)) in rows.iter().zip(&seen.traced).enumerate() {
            let [retransmission, out_of_order, duplicate, flight, trip, window] = &row[..] else { panic!("{row:?}") };
            let again = !retransmission.is_empty() || !out_of_order.is_empty();
            let own = one.data.is_some_and(|data| matches!(data.kind, Kind::Retransmission(_)));
            repeated.extend(one.data.filter(|_| own).map(|data| data.end));
            if again != own {
                wrong.push(format!("{number}: retransmission {own}"));
            }
            let own_duplicate = one.ack.is_some_and(|ack| ack.duplicate);
            let opens = one.data.is_none() && one.ack.is_some() && window_before.replace(window) != Some(window);
            if duplicate.is_empty() == own_duplicate && !(own_duplicate && opens) {
                wrong.push(format!("{number}: duplicate {own_duplicate}"));
            }
            if let (Ok(flight), Some(data)) = (flight.parse::<u64>(), one.data)
                && data.sender.outstanding == data.sender.in_network
                && flight != data.sender.outstanding
            {
                wrong.push(format!("{number}: outstanding {}, {flight}", data.sender.outstanding));
            }
            let own_trip = one.ack.and_then(|ack| ack.round_trip);
            if let (Ok(trip), Some(own)) = (trip.parse::<f64>(), own_trip) {
                sums[3] += 1;
                let is_repeated = one.ack.is_some_and(|ack| repeated.contains(&ack.offset));
                if !is_repeated && (trip - own.as_secs_f64()).abs() > 2e-9 {
                    wrong.push(format!("{number}: round trip {}, {trip}", own.as_secs_f64()));
                }
            }
            sums[0] += u64::from(own);
            sums[1] += u64::from(own_duplicate);
            sums[2] += u64::from(!flight.is_empty());
        }
        println!("{overrides:?}: {} of {} differ: {:?}", wrong.len(), rows.len(), &wrong[..wrong.len().min(12)]);
        assert!(wrong.is_empty());
    }
    assert!(sums[0] > 100 && sums[1] > 1_000 && sums[2] > 10_000 && sums[3] > 10_000, "{sums:?}");
}

/// Fields of each packet, as tshark dissects it.
fn dissected(capture: &std::path::Path) -> Vec<Vec<String>> {
    let mut command = std::process::Command::new("tshark");
    command.arg("-r").arg(capture).args(["-T", "fields"]);
    for field in ["retransmission", "out_of_order", "duplicate_ack", "bytes_in_flight", "ack_rtt"] {
        command.args(["-e", &format!("tcp.analysis.{field}")]);
    }
    command.args(["-e", "tcp.window_size_value"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}
