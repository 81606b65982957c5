//! The emulated line between two namespaces: packets a second without a rate, TCP, and its addition
//! to a round trip.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_live::emulate::{Config, Outcome, Side, Tuning, World};
use lastmile_live::netns::Namespace;
use lastmile_live::probe::{Ping, ping};
use lastmile_live::stop::Stop;
use lastmile_model::Hop;
use lastmile_queueing::spec::Spec;
use lastmile_queueing::{Limit, Overflow, fifo, line};
use lastmile_units::{BitRate, Duration, PacketCount};

use super::row::{Result, Row};

const SECONDS: f64 = 2.0;
const PINGS: u16 = 400;
const INTERVAL: Duration = Duration::from_ms(20);

/// A measurement.
#[derive(Clone, Copy, Debug)]
enum Case {
    /// UDP of this number of IP bytes, one way.
    Packets(u16),
    Tcp,
    /// Round trips over a line, with or without rates, with this way of waiting.
    Ping {
        what: &'static str,
        rated: bool,
        tuning: Tuning,
    },
}

fn cases() -> Vec<(String, Case)> {
    let mut cases: Vec<(String, Case)> =
        [44, 64, 1_476, 1_500].map(|ip_len| (format!("live: emulated, {ip_len} bytes"), Case::Packets(ip_len))).into();
    cases.push(("live: emulated, TCP".into(), Case::Tcp));
    let asleep = Tuning { spin: Duration::ZERO, spin_percent: 100, awake: Duration::ZERO, realtime: false };
    let spinning = Tuning { spin: Duration::from_us(150), ..asleep };
    let awake = Tuning { awake: Duration::from_ms(250), ..spinning };
    for (what, rated, tuning) in [
        ("asleep", true, asleep),
        ("awake before departures", true, spinning),
        ("awake after packets too", true, awake),
        ("the same, first", true, Tuning { realtime: true, ..awake }),
        ("no line, awake before departures", false, spinning),
        ("no line, awake after packets too", false, awake),
    ] {
        cases.push((format!("live: emulated, ping, {what}"), Case::Ping { what, rated, tuning }));
    }
    cases
}

pub(super) fn names() -> Vec<String> {
    cases().into_iter().map(|(name, _)| name).collect()
}

pub(super) fn run(wanted: &str) -> Option<Result<Vec<Row>>> {
    let (_, case) = cases().into_iter().find(|(name, _)| name == wanted)?;
    Some(match case {
        Case::Packets(ip_len) => packets(ip_len),
        Case::Tcp => tcp(),
        Case::Ping { what, rated, tuning } => round_trips(what, rated, tuning),
    })
}

const RATES: [&str; 4] = ["emulated", "offered/s", "carried/s", "Mbit/s"];

/// Packets offered and carried per second, one way, on a line without a rate.
fn packets(ip_len: u16) -> Result<Vec<Row>> {
    let (mut offered, mut carried) = (0.0_f64, 0.0_f64);
    for _ in 0..3 {
        let config = Config::new(vec![hop(None)?], vec![hop(None)?]);
        let (outcome, sent) = emulating(&config, |client, server, address| {
            let target = SocketAddrV4::new(address, 9);
            // Bound, so that the kernel sends no "port unreachable"; never read.
            let _sink = server.run(|| UdpSocket::bind(target))??;
            let socket = client.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))??;
            socket.connect(target)?;
            let payload = vec![0; usize::from(ip_len) - 28];
            let (start, mut sent) = (StdInstant::now(), 0_u32);
            while start.elapsed().as_secs_f64() < SECONDS {
                for _ in 0..32 {
                    sent += u32::from(socket.send(&payload).is_ok());
                }
            }
            Ok(f64::from(sent))
        })?;
        offered = offered.max(sent / SECONDS);
        carried = carried.max(outcome.up.sent.packets as f64 / SECONDS);
    }
    let megabits = carried * f64::from(ip_len) * 8e-6;
    let cells =
        [format!("UDP of {ip_len} bytes"), format!("{offered:.0}"), format!("{carried:.0}"), format!("{megabits:.0}")];
    Ok(vec![Row::new(RATES, cells)])
}

/// One TCP connection of the kernel, on a line without a rate.
fn tcp() -> Result<Vec<Row>> {
    let config = Config::new(vec![hop(None)?], vec![hop(None)?]);
    let (outcome, bits) = emulating(&config, |client, server, address| {
        let target = SocketAddrV4::new(address, 9);
        let listener = server.run(|| TcpListener::bind(target))??;
        let receiver = thread::spawn(move || -> std::io::Result<u64> {
            let (mut stream, _) = listener.accept()?;
            let (mut buffer, mut received) = (vec![0; 1 << 18], 0);
            loop {
                match stream.read(&mut buffer)? {
                    0 => return Ok(received),
                    len => received += len as u64,
                }
            }
        });
        let mut stream = client.run(|| TcpStream::connect(target))??;
        let (start, data) = (StdInstant::now(), vec![0; 1 << 17]);
        while start.elapsed().as_secs_f64() < SECONDS {
            stream.write_all(&data)?;
        }
        drop(stream);
        let received = receiver.join().map_err(|_| "the receiver panicked")??;
        Ok(received as f64 * 8.0 / start.elapsed().as_secs_f64())
    })?;
    let carried = outcome.up.sent.packets as f64 / SECONDS;
    let cells = ["TCP".to_owned(), String::new(), format!("{carried:.0}"), format!("{:.0}", bits * 1e-6)];
    Ok(vec![Row::new(RATES, cells)])
}

/// The addition to the round trip of a line of 2 Mbit/s and 512 kbit/s, and the lateness of its
/// departures.
fn round_trips(what: &str, rated: bool, tuning: Tuning) -> Result<Vec<Row>> {
    let [up, down] = [512, 2_000].map(|kbit_per_s| hop(rated.then_some(kbit_per_s)));
    let config = Config { tuning, ..Config::new(vec![up?], vec![down?]) };
    let (outcome, replies) = emulating(&config, |client, _, target| {
        let request =
            Ping { target: target.into(), count: PINGS, interval: INTERVAL, ip_len: 84, patience: Duration::from_s(1) };
        Ok(client.run(|| ping(&request))??)
    })?;
    // 84 bytes and 28 are 3 cells: 2.484375 ms up, 0.636 ms down, 4 ms each way.
    let exact = if rated { Duration::from_ps(11_120_375_000).as_secs_f64() } else { 0.0 };
    let added: Vec<f64> = replies.sorted().iter().map(|time| (time.as_secs_f64() - exact) * 1e6).collect();
    let at = |share: f64| format!("{:.0}", added[((added.len() - 1) as f64 * share) as usize]);
    let mut lateness = outcome.up.lateness.clone();
    lateness.add(&outcome.down.lateness);
    let late = |share| format!("{:.1}", lateness.value_at_quantile(share) as f64 / 1e3);
    let headings = ["microseconds added to a round trip", "min", "p50", "p90", "p99", "late p50", "late p99"];
    Ok(vec![Row::new(headings, [what.to_owned(), at(0.0), at(0.5), at(0.9), at(0.99), late(0.5), late(0.99)])])
}

/// ATM at this rate in kbit/s and 4 ms, or a wire without rate and delay.
fn hop(kbit_per_s: Option<u64>) -> Result<Hop> {
    let (link_layer, delay) = match kbit_per_s {
        Some(_) => (LinkLayer::new(28, Framing::Atm), Duration::from_ms(4)),
        None => (LinkLayer::new(0, Framing::None), Duration::ZERO),
    };
    let rate = kbit_per_s.map(BitRate::from_kbit_per_s);
    Ok(Hop {
        name: "line".into(),
        line: line::Config::new(rate, link_layer?, delay),
        queue: Spec::Fifo(fifo::Config { limit: Limit::Packets(PacketCount::new(1000)), drop: Overflow::Tail }),
    })
}

/// Carries packets while `work` runs between client and server. `work` receives the server's
/// address.
fn emulating<T>(
    config: &Config,
    work: impl FnOnce(&Namespace, &Namespace, Ipv4Addr) -> Result<T>,
) -> Result<(Outcome, T)> {
    let mut world = World::build(config)?;
    let open = |side: &Side| Namespace::open(side.namespace().map_or("", Namespace::name));
    let (client, server) = (open(world.client())?, open(world.server())?);
    let address = world.server().address().ok_or("an end with an address")?;
    let stop = Stop::new()?;
    let handle = stop.handle()?;
    thread::scope(|scope| {
        let carrier = scope.spawn(|| world.run(&stop, None));
        let done = work(&client, &server, address);
        thread::sleep(StdDuration::from_millis(50));
        handle.stop();
        let outcome = carrier.join().map_err(|_| "the emulator panicked")??;
        Ok((outcome, done?))
    })
}
