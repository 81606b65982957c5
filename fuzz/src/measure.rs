//! Messages between client and server of a measurement: a line or datagram is refused,
//! or is equal after writing and parsing. Accepted trains stay within the limits. Numbers of requests and packets are
//! counted as they come.

use lastmile_measure::own::wire::{self, Answer, Datagram, Greeting, MOST_PACKETS, MOST_TRAINS, Opening, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Rate and time that a server grants.
const RATE_BPS: u64 = 1_000_000_000;
const LONGEST: std::time::Duration = std::time::Duration::from_secs(60);

/// Panics if a property does not hold. The first byte chooses the reader.
pub fn check(input: &[u8]) {
    let Some((reader, rest)) = input.split_first() else { return };
    match reader % 6 {
        0 => line::<Greeting>(rest),
        1 => line::<Opening>(rest),
        2 => {
            line::<Request>(rest);
            if let Ok(Request::Trains { trains, .. }) = wire::read(rest) {
                accepted(&trains);
            }
        }
        3 => line::<Answer>(rest),
        4 => datagram(rest),
        _ => lastmile_measure::hostile::session(rest),
    }
}

fn line<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(input: &[u8]) {
    match wire::read::<T>(input) {
        Ok(message) => {
            let text = wire::line(&message);
            assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), 1, "one line");
            assert_eq!(wire::read::<T>(&text).as_ref(), Ok(&message), "written and read again");
        }
        // A refusal repeats at most a part of the line.
        Err(error) => assert!(error.len() <= 300 + 8 * input.len(), "{} bytes for {}", error.len(), input.len()),
    }
}

fn accepted(trains: &[wire::Train]) {
    let Ok(length) = lastmile_measure::serve::check_trains(trains, RATE_BPS, LONGEST) else { return };
    assert!(length <= LONGEST && trains.len() <= MOST_TRAINS);
    let packets: Vec<(u64, u16)> = trains.iter().flat_map(wire::Train::packets).collect();
    assert!(packets.len() <= MOST_PACKETS);
    let bytes: u64 = packets.iter().map(|(_, len)| u64::from(*len)).sum();
    // The rate over the longest time, and a burst, for each direction.
    assert!(bytes <= 2 * (RATE_BPS / 8 * LONGEST.as_secs() + (1 << 20)));
}

fn datagram(input: &[u8]) {
    let Some((session, datagram)) = Datagram::read(input) else { return };
    let mut again = vec![0xff; input.len()];
    assert!(datagram.write(session, &mut again), "its bytes are enough");
    assert_eq!(Datagram::read(&again), Some((session, datagram)), "written and read again");
    if let Datagram::Request { number, sent_ns } = datagram {
        // A reply replaces the request in its buffer.
        let (received_ns, replied_ns, highest, window) = (1, 2, number, 1);
        let reply = Datagram::Reply { number, sent_ns, received_ns, replied_ns, highest, window };
        assert!(reply.write(session, &mut again), "no longer than the request");
    }
}
