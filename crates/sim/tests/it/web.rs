//! Web users over HTTP/1.1, HTTP/2 and HTTP/3: round trips and head-of-line blocking. Equal seeds draw equal pages, so
//! that page n of one run is page n of the other.

use std::sync::Arc;

use lastmile_model::outcome::Outcome;
use lastmile_model::{Http, Network, Source, Transport, Web};
use lastmile_queueing::line::trace::{Step, Steps, Trace};
use lastmile_sim::run;
use lastmile_tcp::Config;
use lastmile_units::{BitRate, Duration, Ratio};

use crate::build;

fn user(http: Http, tls: bool, connections: u32) -> Web {
    let transport = match http {
        Http::Three => Transport::Quic(Arc::new(lastmile_quic::Config::default())),
        _ => Transport::Tcp(Arc::new(Config::default())),
    };
    Web {
        transport,
        http,
        tls,
        reading: Duration::from_s(2),
        parsing: Duration::from_ms(50),
        request: 350,
        connections,
    }
}

/// A line of 50 and 20 Mbit/s of bare IP with this one-way delay.
fn network(web: Web, delay_ms: u64) -> Network {
    let mut network = build::line(50_000, 20_000, "none", Duration::from_ms(delay_ms));
    network.duration = Duration::from_s(600);
    network.traffic.push(build::traffic("reader", 1, 0, Source::Web(Arc::new(web))));
    network
}

fn read(network: &Network) -> Outcome {
    let outcome = run(network).expect("the network runs");
    assert!(outcome.conservation.holds(), "{:?}", outcome.conservation);
    assert!(outcome.applications.browsing[0].responses.len() >= 80);
    outcome
}

/// The mean response time of the first 80 pages, in seconds.
fn mean(outcome: &Outcome) -> f64 {
    let responses = &outcome.applications.browsing[0].responses[..80];
    responses.iter().map(|took| took.as_secs_f64()).sum::<f64>() / 80.0
}

/// A round trip more for each page over one connection: 2 kB of certificates take 0.3 ms at 50 Mbit/s.
#[test]
fn tls_costs_a_round_trip_before_the_first_request() {
    let plain = mean(&read(&network(user(Http::One1, false, 1), 50)));
    let secured = mean(&read(&network(user(Http::One1, true, 1), 50)));
    assert!((secured - plain - 0.1).abs() < 0.01, "{secured} s with, {plain} s without");
}

/// One connection asks for object after object, a round trip each; HTTP/2 asks for all embedded objects at a time.
#[test]
fn http_2_saves_round_trips_that_grow_with_the_delay() {
    let saved = |delay_ms| {
        let one = mean(&read(&network(user(Http::One1, true, 1), delay_ms)));
        one - mean(&read(&network(user(Http::Two, true, 1), delay_ms)))
    };
    let (near, far) = (saved(5), saved(50));
    assert!(near > 0.0 && far > 5.0 * near, "{near} s at 10 ms, {far} s at 100 ms of round trip");
}

/// QUIC has connection and keys after one round trip, TCP with TLS after two. Slow start differs a little.
#[test]
fn http_3_saves_the_round_trip_of_tls() {
    let two = mean(&read(&network(user(Http::Two, true, 1), 100)));
    let three = mean(&read(&network(user(Http::Three, false, 1), 100)));
    let saved = two - three;
    assert!((0.12..0.28).contains(&saved), "{two} s less {three} s at a round trip of 0.2 s");
}

/// 2 % of loss: what a lost segment of TCP delays includes whole objects behind it, in HTTP/3 its own object only.
#[test]
fn a_loss_delays_all_objects_behind_it_on_tcp_only() {
    let lossy = |http, tls| {
        let mut network = network(user(http, tls, 1), 20);
        network.links[1].hop.line.loss = Ratio::from_ppm(20_000).unwrap();
        mean(&read(&network))
    };
    let (two, three) = (lossy(Http::Two, true), lossy(Http::Three, false));
    assert!(two - three > 0.04, "{two} s over HTTP/2, {three} s over HTTP/3: more than the round trip of TLS");
}

#[test]
fn a_page_has_one_connection() {
    for (http, tls) in [(Http::Two, true), (Http::Two, false), (Http::Three, false)] {
        let outcome = read(&network(user(http, tls, 1), 10));
        let browsing = &outcome.applications.browsing[0];
        assert_eq!(outcome.flows[0].connections, Some((browsing.pages, 0)), "{http:?}");
        assert!(browsing.mains.iter().zip(&browsing.responses).all(|(main, page)| main <= page));
    }
}

/// HTTP/1.1 with TLS opens as many connections as it has objects to request, up to its limit.
#[test]
fn six_connections_of_tls_carry_the_same_objects() {
    let plain = read(&network(user(Http::One1, false, 6), 10));
    let secured = read(&network(user(Http::One1, true, 6), 10));
    let objects = |outcome: &Outcome| outcome.applications.browsing[0].objects;
    assert!(objects(&secured) > 200 && objects(&secured).abs_diff(objects(&plain)) < objects(&plain) / 10);
    assert!(mean(&secured) > mean(&plain));
}

/// Nothing arrives in the first ten minutes. The SYNs of a TCP connection end after 127 s, and its object is requested
/// again; QUIC goes on, at twice the time each time. Over each version of HTTP the first page is the only one, and it
/// is whole after the outage.
#[test]
fn a_page_is_whole_only_when_it_has_arrived() {
    for (http, tls) in
        [(Http::One0, false), (Http::One1, false), (Http::One1, true), (Http::Two, true), (Http::Three, false)]
    {
        let mut network = network(user(http, tls, 1), 10);
        let step = |s, rate| Step { at: Duration::from_s(s), rate, delay: Duration::from_ms(10), loss: Ratio::ZERO };
        let steps = vec![step(0, None), step(600, Some(BitRate::from_mbit_per_s(50)))];
        network.links[1].hop.line.trace = Some(Trace::Steps(Arc::new(Steps::new(steps, None).unwrap())));
        let dead = run(&network).expect("the network runs");
        let browsing = &dead.applications.browsing[0];
        assert_eq!((browsing.pages, browsing.objects, browsing.mains.len(), browsing.responses.len()), (1, 0, 0, 0));
        assert_eq!(dead.flows[0].bytes_delivered, 0, "{http:?}");
        let (opened, failed) = dead.flows[0].connections.unwrap();
        assert_eq!((opened, failed), if http == Http::Three { (1, 0) } else { (5, 4) }, "{http:?}");
        network.duration = Duration::from_s(1_200);
        let browsing = &run(&network).expect("the network runs").applications.browsing[0];
        assert!(browsing.responses.len() > 10 && browsing.responses[0] > Duration::from_s(600), "{http:?}");
    }
}
