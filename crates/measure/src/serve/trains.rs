//! Packet trains of a server: downstream ones sent, upstream ones received.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::own::pace;
use crate::own::wire::{Answer, Datagram, LARGEST_TRAIN, LEAST_TRAIN, MOST_PACKETS, MOST_TRAINS, Train, Trained};
use crate::train::Way;

use super::counters::Counted;
use super::locked::locked;
use super::receiving::Receiving;
use super::session::{Session, Shared};

/// The end of an upstream train: so long without an arrival, after its last intended departure.
const SILENCE: Duration = Duration::from_secs(1);

/// The longest wait for arrivals after the last intended departure.
const PATIENCE: Duration = Duration::from_secs(8);

/// Bytes that the trains of a request may send at once beyond the limit of the rate, in each direction. The records of
/// the trains, and with them the next request, wait until the rate has repaid them.
const BURST: u64 = 1 << 20;

/// Begins trains, and returns what will have their records.
pub(super) fn begin(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    number: u32,
    trains: &[Train],
) -> Result<oneshot::Receiver<Answer>, String> {
    let rate_bps = shared.limits.rate.as_bps();
    let length = check(trains, rate_bps, shared.limits.load)?;
    let repaid = Instant::now() + at_the_rate(trains, rate_bps);
    let mut datagrams = locked(&session.datagrams);
    if datagrams.address.is_none() {
        return Err("trains need a UDP address that has returned its cookie".to_owned());
    }
    // The client chooses the number of its request, so numbers of trains may pass the end of 32 bits.
    let first = number.wrapping_mul(MOST_TRAINS as u32);
    let numbered = || trains.iter().zip((0..).map(|index| first.wrapping_add(index)));
    let upward = numbered().filter(|(train, _)| train.way == Way::Up).map(|(train, number)| (number, train.count()));
    datagrams.receiving = Some(Receiving::new(upward));
    drop(datagrams);
    shared.counters.add(Counted::Trains, trains.len() as u64);
    let running: Vec<(Way, Option<thread::JoinHandle<Vec<u64>>>)> = numbered()
        .map(|(train, number)| {
            let spawn = || {
                let (shared, session, train) = (Arc::clone(shared), Arc::clone(session), train.clone());
                thread::Builder::new().name("train".to_owned()).spawn(move || send(&shared, &session, number, &train))
            };
            (train.way, (train.way == Way::Down).then(spawn).and_then(Result::ok))
        })
        .collect();
    let (sender, receiver) = oneshot::channel();
    let session = Arc::clone(session);
    let waiting = move || {
        let mut arrivals = received(&session, length, repaid);
        let each = running.into_iter().map(|(way, thread)| match way {
            Way::Down => Trained::Sent(thread.and_then(|thread| thread.join().ok()).unwrap_or_default()),
            Way::Up => Trained::Arrived(if arrivals.is_empty() { Vec::new() } else { arrivals.remove(0) }),
        });
        let trained = Answer::Trained { trains: each.collect() };
        // A session that has ended needs no record.
        let _ = sender.send(trained);
    };
    thread::Builder::new().name("trains".to_owned()).spawn(waiting).map_err(|error| error.to_string())?;
    Ok(receiver)
}

/// Refuses trains above a limit, and returns the time of the last departure.
///
/// # Errors
/// The limit, and what is possible.
pub fn check(trains: &[Train], rate_bps: u64, longest: Duration) -> Result<Duration, String> {
    if trains.is_empty() || trains.len() > MOST_TRAINS {
        return Err(format!("{} trains: 1 to {MOST_TRAINS} are possible", trains.len()));
    }
    let count = trains.iter().fold(0_usize, |sum, train| sum.saturating_add(train.count()));
    if count > MOST_PACKETS {
        return Err(format!("{count} packets: at most {MOST_PACKETS} are possible"));
    }
    let mut last_ns = 0;
    for way in [Way::Down, Way::Up] {
        // All trains of a request begin at once.
        let mut packets: Vec<(u64, u16)> = of(trains, way).flat_map(Train::packets).collect();
        packets.sort_unstable();
        let mut bytes = 0;
        for (at_ns, len) in packets {
            if usize::from(len) < LEAST_TRAIN || len > LARGEST_TRAIN {
                return Err(format!("{len} bytes of payload: {LEAST_TRAIN} to {LARGEST_TRAIN} are possible"));
            }
            bytes += u64::from(len);
            let granted = u128::from(at_ns) * u128::from(rate_bps) / 8_000_000_000 + u128::from(BURST);
            if u128::from(bytes) > granted {
                let limit = format!("{rate_bps} bit/s and a burst of {BURST} bytes");
                return Err(format!("the sum of a direction's trains exceeds {limit}"));
            }
            last_ns = last_ns.max(at_ns);
        }
    }
    let length = Duration::from_nanos(last_ns);
    if length > longest {
        return Err(format!("a train of {} s: at most {} s are possible", length.as_secs(), longest.as_secs()));
    }
    Ok(length)
}

fn of(trains: &[Train], way: Way) -> impl Iterator<Item = &Train> {
    trains.iter().filter(move |train| train.way == way)
}

/// The time that the bytes of one direction take at the rate, of that with more bytes.
fn at_the_rate(trains: &[Train], rate_bps: u64) -> Duration {
    let bytes = |way| -> u64 { of(trains, way).flat_map(Train::packets).map(|(_, len)| u64::from(len)).sum() };
    Duration::from_nanos(bytes(Way::Down).max(bytes(Way::Up)).saturating_mul(8_000_000_000) / rate_bps)
}

/// Sends a downstream train, and returns the departures in ns after the first intended one.
fn send(shared: &Shared, session: &Session, number: u32, train: &Train) -> Vec<u64> {
    let mut buffer = crate::own::data::block(usize::from(LARGEST_TRAIN));
    let payload = buffer.clone();
    let ended = || locked(&session.datagrams).address.is_none();
    pace::send(train.packets(), ended, |index, len, sent_ns| {
        // A session that has ended has no address.
        let address = locked(&session.datagrams).address?;
        let datagram = &mut buffer[..usize::from(len)];
        datagram.copy_from_slice(&payload[..usize::from(len)]);
        let head = &mut datagram[..LEAST_TRAIN];
        Datagram::Train { train: number, index, sent_ns }.write(session.id, head).then_some(())?;
        let _ = shared.socket.send(datagram, address);
        Some(())
    })
}

/// Waits for the arrivals of upstream trains and until `repaid`, and takes them.
fn received(session: &Session, length: Duration, repaid: Instant) -> Vec<Vec<Option<u64>>> {
    let end = Instant::now() + length;
    loop {
        let mut datagrams = locked(&session.datagrams);
        let Some(receiving) = &mut datagrams.receiving else { return Vec::new() };
        let now = Instant::now();
        let silent = now > end && now.duration_since(receiving.latest.max(end)) > SILENCE;
        if now >= repaid && (receiving.missing == 0 || silent || now > end + PATIENCE) {
            let trains = std::mem::take(&mut receiving.trains);
            return trains.into_iter().map(|(_, arrivals)| arrivals).collect();
        }
        drop(datagrams);
        thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use lastmile_units::{BitRate, ByteCount, Duration as Span};

    use super::*;
    use crate::load;
    use crate::serve::Limits;
    use crate::serve::tests::{client, with_server};
    use crate::train::{Departure, Path as _};

    #[test]
    fn trains_above_a_limit_are_refused() {
        let train = |runs: &[(u32, u64, u16)]| Train { way: Way::Down, runs: runs.to_vec() };
        let check = |trains: &[Train]| check(trains, 8_000_000, Duration::from_secs(60));
        assert_eq!(check(&[train(&[(1, 0, 100), (9, 1_000_000, 100)])]), Ok(Duration::from_millis(9)));
        assert!(check(&[]).unwrap_err().contains("0 trains"));
        assert!(check(&vec![train(&[(1, 0, 100)]); 17]).is_err());
        assert!(check(&[train(&[(u32::MAX, 0, 100), (u32::MAX, 0, 100)])]).unwrap_err().contains("packets"));
        assert!(check(&[train(&[(1, 0, 27)])]).is_err() && check(&[train(&[(1, 0, 1473)])]).is_err());
        assert!(check(&[train(&[(700, 0, 1472)])]).is_ok(), "a burst of 1.03 MB");
        assert!(check(&[train(&[(800, 0, 1472)])]).unwrap_err().contains("exceeds 8000000 bit/s"));
        let up = Train { way: Way::Up, runs: vec![(700, 0, 1472)] };
        assert!(check(&[train(&[(700, 0, 1472)]), up]).is_ok(), "a burst of each direction");
        assert!(check(&vec![train(&[(50, 0, 1472)]); 16]).unwrap_err().contains("exceeds 8000000 bit/s"), "1.18 MB");
        // Each alone has the rate, 1472 bytes in 1.472 ms, for three seconds.
        let whole = train(&[(2000, 1_472_000, 1472)]);
        assert!(check(std::slice::from_ref(&whole)).is_ok());
        assert!(check(&vec![whole; 2]).unwrap_err().contains("exceeds 8000000 bit/s"));
        assert!(check(&[train(&[(2, 61_000_000_000, 100)])]).unwrap_err().contains("at most 60 s"));
        assert!(check(&[train(&[(2, u64::MAX, 100)])]).is_err());
    }

    /// 400 packets of 1472 bytes of payload are 2.3552 s of 2 Mbit/s.
    #[test]
    fn a_burst_of_a_train_is_repaid_at_the_rate_before_its_records() {
        let limits = Limits { rate: BitRate::from_mbit_per_s(2), ..Limits::default() };
        with_server(limits, |address, _| {
            let mut client = client(address);
            let stop = load::Stop::default();
            let mut path = client.path(None, &stop).unwrap();
            let burst = vec![Departure { at: Span::ZERO, ip_len: ByteCount::new(1500) }; 400];
            let begun = Instant::now();
            assert_eq!(path.trains(&[(Way::Down, &burst)]).unwrap()[0].len(), 400);
            assert!(begun.elapsed() >= Duration::from_micros(2_355_200), "{:?}", begun.elapsed());
        });
    }
}
