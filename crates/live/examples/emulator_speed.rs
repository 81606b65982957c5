//! How fast and how punctual the emulator is on this machine: packets a second without a rate, and what it adds to the round
//! trip of a line, for each way of waiting. Needs root:
//!
//! ```text
//! cargo run --release -p lastmile-live --example emulator_speed
//! ```
#![expect(clippy::print_stdout, reason = "a program that prints")]

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::thread;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_live::bump::HopConfig;
use lastmile_live::emulate::{Config, Outcome, Side, Tuning, World};
use lastmile_live::lab::Namespace;
use lastmile_live::probe::{Ping, ping};
use lastmile_live::stop::Stop;
use lastmile_queueing::compress::Compression;
use lastmile_queueing::spec::Spec;
use lastmile_queueing::{Limit, Overflow, line};
use lastmile_units::{BitRate, Duration, PacketCount};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    println!("{:<28} {:>12} {:>12} {:>12}", "forwarding, IP bytes", "offered/s", "carried/s", "Mbit/s");
    for ip_len in [64, 1500] {
        let (offered, carried) = forwarding(ip_len)?;
        let rate = carried * f64::from(ip_len) * 8e-6;
        println!("{ip_len:<28} {offered:>12.0} {carried:>12.0} {rate:>12.0}");
    }
    println!();
    println!("{:<28} {:>12} {:>12} {:>12} {:>12}", "microseconds", "min", "p50", "p99", "p99.9");
    for (name, spin, realtime) in
        [("asleep", 0, false), ("spinning", 150, false), ("asleep, first", 0, true), ("spinning, first", 150, true)]
    {
        punctuality(name, Tuning { spin: Duration::from_us(spin), realtime })?;
    }
    Ok(())
}

/// Packets offered and carried each second, one way, on a line without a rate.
fn forwarding(ip_len: u16) -> Result<(f64, f64)> {
    let seconds = 3.0;
    let (outcome, offered) = emulating(&Config::new(vec![hop(None)?], vec![hop(None)?]), |client, server, address| {
        let target = SocketAddrV4::new(address, 9);
        // Bound, so that the kernel sends no "port unreachable"; never read.
        let _sink = server.run(|| UdpSocket::bind(target))??;
        let socket = client.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))??;
        socket.connect(target)?;
        let payload = vec![0; usize::from(ip_len) - 28];
        let (start, mut offered) = (StdInstant::now(), 0_u32);
        while start.elapsed().as_secs_f64() < seconds {
            for _ in 0..32 {
                offered += u32::from(socket.send(&payload).is_ok());
            }
        }
        Ok(f64::from(offered))
    })?;
    Ok((offered / seconds, outcome.up.sent.packets as f64 / seconds))
}

/// What the emulator adds to the round trip of a line of 2 Mbit/s and 512 kbit/s, and how late its departures are.
fn punctuality(name: &str, tuning: Tuning) -> Result<()> {
    let (up, down) = (hop(Some(512))?, hop(Some(2000))?);
    let config = Config { tuning, ..Config::new(vec![up], vec![down]) };
    let (outcome, replies) = emulating(&config, |client, _, target| {
        let interval = Duration::from_ms(20);
        let request = Ping { target, count: 500, interval, ip_len: 84, patience: Duration::from_s(1) };
        Ok(client.run(|| ping(&request))??)
    })?;
    // 84 bytes and 28 are 3 cells: 2.484375 ms up, 0.636 ms down, 4 ms each way.
    let exact = Duration::from_ps(11_120_375_000).as_secs_f64();
    let added: Vec<f64> = replies.sorted().iter().map(|time| (time.as_secs_f64() - exact) * 1e6).collect();
    let at = |share: f64| added[((added.len() - 1) as f64 * share) as usize];
    let row = |what: &str, values: [f64; 4]| {
        let [min, p50, p99, p999] = values;
        println!("{what:<28} {min:>12.1} {p50:>12.1} {p99:>12.1} {p999:>12.1}");
    };
    row(&format!("{name}: round trip"), [at(0.0), at(0.5), at(0.99), at(0.999)]);
    let mut lateness = outcome.up.lateness.clone();
    lateness.add(&outcome.down.lateness)?;
    let quantile = |share| lateness.value_at_quantile(share) as f64 / 1e3;
    row(&format!("{name}: lateness"), [quantile(0.0), quantile(0.5), quantile(0.99), quantile(0.999)]);
    Ok(())
}

/// ATM at so many kbit/s and 4 ms, or a wire without rate and delay.
fn hop(kbit_per_s: Option<u64>) -> Result<HopConfig> {
    let (link_layer, delay) = match kbit_per_s {
        Some(_) => (LinkLayer::new(28, Framing::Atm), Duration::from_ms(4)),
        None => (LinkLayer::new(0, Framing::None), Duration::ZERO),
    };
    let rate = kbit_per_s.map(BitRate::from_kbit_per_s);
    Ok(HopConfig {
        name: "line".into(),
        line: line::Config { rate, link_layer: link_layer?, delay, loss_ppb: 0, compression: Compression::None },
        queue: Spec::Fifo { limit: Limit::Packets(PacketCount::new(1000)), drop: Overflow::Tail },
    })
}

/// Carries packets while `work` runs between client and server, whose address it gets.
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
