//! Our prober against `irtt server`.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use lastmile_measure::foreign::irtt::{Irtt, PORT, Settings};
use lastmile_measure::load::Stop;
use lastmile_measure::probe::{Prober, Sample};
use lastmile_measure::train::Way;
use serde_json::Value;

use crate::hosts::{Hosts, ip};
use crate::servers::{SERVER, programs, start, wait_for_port};

fn prober(key: Option<&str>) -> Irtt {
    Irtt::new(Settings {
        name: SERVER.to_owned(),
        server: SocketAddr::new(SERVER.parse().unwrap(), PORT),
        code_point: 46,
        interval: Duration::from_millis(20),
        key: key.map(|key| key.as_bytes().to_vec()),
    })
}

/// The samples of a run of this length in the left host. `during` is done after half of it.
fn run(hosts: &Hosts, key: Option<&str>, length: Duration, during: impl FnOnce()) -> Result<Vec<Sample>, String> {
    let stop = Stop::default();
    let began = Instant::now();
    std::thread::scope(|scope| {
        let prober = scope.spawn(|| {
            let mut samples = Vec::new();
            let now_s = || began.elapsed().as_secs_f64();
            let done = hosts.left.run(|| prober(key).run(&now_s, &stop, &mut |sample| samples.push(sample))).unwrap();
            done.map(|()| samples).map_err(|error| error.to_string())
        });
        std::thread::sleep(length / 2);
        during();
        std::thread::sleep(length / 2);
        stop.request();
        prober.join().unwrap()
    })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Both clients measure the same veth, whose delay of some tens of microseconds follows the machine's load.
#[test]
#[ignore = "live: needs root and irtt"]
fn round_trips_are_those_of_irtts_client() {
    for program in programs("irtt", "LASTMILE_IRTT") {
        for key in [None, Some("a key of the test")] {
            let hosts = Hosts::new(true);
            let hmac = key.map(|_| "--hmac=0x61206b6579206f66207468652074657374").unwrap_or_default();
            let _server = start(&hosts.right, &program, &format!("server -b {SERVER} {hmac}"));
            wait_for_port(&hosts.right, PORT);
            let samples = run(&hosts, key, Duration::from_secs(2), || ()).unwrap();
            assert!((80..=101).contains(&samples.len()), "{} samples", samples.len());
            assert!(samples.iter().all(|sample| sample.rtt_s.is_some() && !sample.reordered && !sample.duplicate));
            let client = || {
                let arguments = format!("client -o - -Q -d 2s -i 20ms {hmac} {SERVER}");
                Command::new(&program).args(arguments.split_whitespace()).output().unwrap()
            };
            let report: Value = serde_json::from_slice(&hosts.left.run(client).unwrap().stdout).unwrap();
            let theirs_us = report["stats"]["rtt"]["median"].as_f64().unwrap() / 1e3;
            let ours_us = median(samples.iter().filter_map(|sample| sample.rtt_s).collect()) * 1e6;
            // Kernel receive stamps leave out the wake-up of the client, which irtt has in its figure.
            eprintln!("median of ours {ours_us:.0} us, of irtt's {theirs_us:.0} us");
            assert!(ours_us < theirs_us * 1.5 + 100.0, "ours {ours_us}, irtt's {theirs_us}");
            // Without the server's processing, the one-way differences add up to the round trip.
            for sample in &samples {
                let sum = sample.up_s.unwrap() + sample.down_s.unwrap();
                assert!((sum - sample.rtt_s.unwrap()).abs() < 1e-6, "{sample:?}");
            }
        }
    }
}

#[test]
#[ignore = "live: needs root and irtt"]
fn losses_are_found_in_their_direction() {
    for program in programs("irtt", "LASTMILE_IRTT") {
        for way in [Way::Down, Way::Up] {
            let hosts = Hosts::new(true);
            let _server = start(&hosts.right, &program, &format!("server -b {SERVER}"));
            wait_for_port(&hosts.right, PORT);
            let (from, to) = match way {
                Way::Up => (hosts.left.name(), SERVER),
                Way::Down => (hosts.right.name(), "10.9.0.1"),
            };
            // For a third of a second one host sends to a station that is not there.
            let samples = run(&hosts, None, Duration::from_secs(3), || {
                ip(&format!("-n {from} neigh replace {to} lladdr 02:00:00:00:00:99 dev eth nud permanent"));
                std::thread::sleep(Duration::from_millis(333));
                ip(&format!("-n {from} neigh del {to} dev eth"));
            })
            .unwrap();
            let lost: Vec<_> =
                samples.iter().filter(|sample| sample.rtt_s.is_none()).map(|sample| sample.lost).collect();
            assert!((14..=25).contains(&lost.len()), "{} of {} lost", lost.len(), samples.len());
            assert!(lost.iter().all(|direction| *direction == Some(way)), "{way:?}: {lost:?}");
        }
    }
}

#[test]
#[ignore = "live: needs root and irtt"]
fn a_session_that_the_server_ends_is_opened_again() {
    for program in programs("irtt", "LASTMILE_IRTT") {
        let hosts = Hosts::new(true);
        // Two seconds of grace are the server's own.
        let _server = start(&hosts.right, &program, &format!("server -b {SERVER} -d 1s -i 50ms"));
        wait_for_port(&hosts.right, PORT);
        let samples = run(&hosts, None, Duration::from_secs(5), || ()).unwrap();
        let answered: Vec<f64> =
            samples.iter().filter(|sample| sample.rtt_s.is_some()).map(|sample| sample.sent_s).collect();
        assert!(answered.last().unwrap() > &4.5, "{answered:?}");
        assert!((80..=101).contains(&answered.len()), "{}: the server's interval of 50 ms holds", answered.len());
    }
}

#[test]
#[ignore = "live: needs root and irtt"]
fn a_server_with_a_key_is_silent_without_it() {
    for program in programs("irtt", "LASTMILE_IRTT") {
        let hosts = Hosts::new(true);
        let _server = start(&hosts.right, &program, &format!("server -b {SERVER} --hmac=secret"));
        wait_for_port(&hosts.right, PORT);
        let error = run(&hosts, None, Duration::from_secs(16), || ()).unwrap_err();
        assert!(error.contains("is there an irtt server without a key?"), "{error}");
    }
}
