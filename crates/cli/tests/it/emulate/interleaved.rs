//! Small packets between the pieces of large ones.

use super::*;

/// A line so slow that a lateness of half a second changes no order: a cell takes 26.5 ms, 1500 bytes 848 ms.
const SLOW_LINE: &str = r#"
duration = "20 s"

[access]
encapsulation = "pppoa-vcmux"
down = { rate = "2 Mbit/s" }

[access.up]
rate = "16 kbit/s"
queue = { kind = "priority", classes = [{ match = { at_most = "200 B" } }, {}] }
"#;

/// Sends pairs of a 1500-byte packet and a following 60-byte one through the line with
/// `interleave`. Returns the arrival times of each pair, and the final output of the line.
fn pairs_through(scratch: &Scratch, interleave: &str) -> (Vec<Pair>, Value) {
    let named = |role: &str| {
        let case = interleave.replace(' ', "");
        Namespace::create(&format!("lastmile-{}-{case}-{role}", std::process::id())).unwrap()
    };
    let (client, server) = (named("client"), named("server"));
    let set = format!("access.up.interleave={interleave}");
    let ends = ["--client-ns", client.name(), "--server-ns", server.name()];
    let arguments = [&["emulate", "slow.toml", "--json", "--set", &set][..], &ends].concat();
    let mut child = lastmile(&scratch.path, &arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until_it_says("for example", &mut BufReader::new(child.stderr.take().unwrap()));
    let sender = client.run(|| UdpSocket::bind("198.18.0.2:0")).unwrap().unwrap();
    let receiver = server.run(|| UdpSocket::bind("198.18.0.1:9")).unwrap().unwrap();
    receiver.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    sender.connect("198.18.0.1:9").unwrap();

    let mut pairs = Vec::new();
    for _ in 0..PAIRS {
        let began = Instant::now();
        sender.send(&[0; 1500 - 28]).unwrap();
        // A part of it has been transmitted, most of it has not.
        std::thread::sleep(Duration::from_millis(150));
        sender.send(&[0; 60 - 28]).unwrap();
        let mut pair = Pair { large: Duration::ZERO, small: Duration::ZERO };
        for _ in 0..2 {
            let length = receiver.recv(&mut [0; 2000]).unwrap();
            *(if length > 60 { &mut pair.large } else { &mut pair.small }) = began.elapsed();
        }
        pairs.push(pair);
    }
    kill("INT", child.id());
    let output = child.wait_with_output().unwrap();
    (pairs, json(&output.stdout))
}

const PAIRS: usize = 6;

/// The arrival times of a pair's packets, from the sending of the large one.
#[derive(Debug)]
struct Pair {
    large: Duration,
    small: Duration,
}

/// 1500 bytes and 10 of overhead are 32 cells, 60 bytes two. In fragments of 160 bytes, of which
/// each packet's first has 2 of PPP, with 4 of sequence number, 2 of PPP and 8 of AAL5 around each:
/// nine of 174 bytes in four cells and one of 76 in two, and 76 bytes in two for the small packet.
///
/// No packet arrives before its own cells and those sent in between; lateness only adds to that
/// time.
#[test]
#[ignore = "needs root: real packets"]
fn a_small_packet_goes_between_the_pieces_of_a_large_one() {
    const CELL: Duration = Duration::from_micros(53 * 8 * 1_000_000 / 16_000);
    let Some(scratch) = live::folder("slow.toml", SLOW_LINE) else { return };
    let cases = [("none", 32, 2), ("cells", 32, 2), ("160 B", 38, 2)];
    std::thread::scope(|scope| {
        let started: Vec<_> = cases
            .iter()
            .map(|&(interleave, large, small)| {
                let scratch = &scratch;
                (interleave, large, small, scope.spawn(move || pairs_through(scratch, interleave)))
            })
            .collect();
        for (interleave, large, small, run) in started {
            let (pairs, told) = run.join().unwrap();
            let small_first = pairs.iter().filter(|pair| pair.small < pair.large).count();
            if interleave == "none" {
                assert_eq!(small_first, 0, "{pairs:?}");
                assert!(pairs.iter().all(|pair| pair.large >= CELL * large), "{pairs:?}");
                assert!(pairs.iter().all(|pair| pair.small >= CELL * (large + small)), "{pairs:?}");
            } else {
                assert_eq!(small_first, PAIRS, "{interleave}: {pairs:?}");
                assert!(pairs.iter().all(|pair| pair.large >= CELL * (large + small)), "{interleave}: {pairs:?}");
                // It waits for a cell, or a fragment of four; the large one had 26 cells left.
                let least = pairs.iter().map(|pair| pair.small).min().unwrap();
                assert!(least < CELL * large * 3 / 4, "{interleave}: {pairs:?}");
            }
            assert_eq!(told["conservation"]["holds"], true);
            let up = told["links"].as_array().unwrap().iter().find(|link| link["name"] == "up").unwrap();
            let cells = PAIRS as u64 * u64::from(large + small);
            assert_eq!((&up["packets"], &up["cells"]), (&(2 * PAIRS).into(), &cells.into()), "{interleave}");
        }
    });
}
