//! Client and server over loopback: no namespace and no rights are needed.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::Instant;

use lastmile_units::{ByteCount, Duration as Span};

use crate::load::{self, Direction, Load as _, Transferred};
use crate::own::Client;
use crate::own::wire::{Datagram, Hex};
use crate::probe::{Clocks, Prober as _, Sample};
use crate::train::{Departure, Path as _, Way};

use super::*;
use lastmile_units::BitRate;
use std::time::Duration;

fn key() -> Key {
    Key::new("correct horse battery").unwrap()
}

/// Runs `test` beside a server.
pub(crate) fn with_server(limits: Limits, test: impl FnOnce(SocketAddr, &Counters)) {
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), key(), limits).unwrap();
    let (address, counters) = (server.address().unwrap(), server.counters());
    let end = Stop::new().unwrap();
    let ending = end.handle().unwrap();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.serve(&end));
        // The server ends also when the test fails.
        struct Ending(lastmile_live::stop::StopHandle);
        impl Drop for Ending {
            fn drop(&mut self) {
                self.0.stop();
            }
        }
        let ending = Ending(ending);
        test(address, &counters);
        let begin = Instant::now();
        drop(ending);
        serving.join().unwrap().unwrap();
        assert!(begin.elapsed() < HANDSHAKE / 2, "it waits for nobody");
    });
}

pub(crate) fn client(address: SocketAddr) -> Client {
    Client::connect(&address.ip().to_string(), address.port(), &key()).unwrap()
}

/// Waits until a condition holds; a busy machine may take its time.
fn wait(mut holds: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while !holds() && begin.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    holds()
}

/// Waits until a counter has this value.
fn until(counters: &Counters, event: Counted, value: u64) {
    assert!(wait(|| counters.get(event) >= value), "{event:?}: {}", counters.get(event));
}

#[test]
fn a_load_moves_bytes_in_its_direction_and_stops() {
    with_server(Limits::default(), |address, counters| {
        let mut client = client(address);
        for direction in [Direction::Download, Direction::Upload, Direction::Both] {
            let (transferred, stop) = (Transferred::default(), load::Stop::default());
            let mut filling = client.filling(2, Some("reno".to_owned()));
            std::thread::scope(|scope| {
                let running = scope.spawn(|| filling.run(direction, &transferred, &stop));
                let wanted = (direction != Direction::Upload, direction != Direction::Download);
                let moved = || (transferred.totals().0 > 0, transferred.totals().1 > 0);
                wait(|| moved() == wanted);
                stop.request();
                running.join().unwrap().unwrap();
                assert_eq!(moved(), wanted, "{direction:?}");
            });
        }
        drop(client);
        assert_eq!(counters.get(Counted::Loads), 3);
        assert!(counters.get(Counted::SentBytes) > 0 && counters.get(Counted::ReceivedBytes) > 0);
    });
}

/// Reno is part of every kernel, and the default of a machine is another one.
#[test]
fn a_load_tells_the_congestion_control_of_its_senders() {
    with_server(Limits::default(), |address, counters| {
        let mut client = client(address);
        let offer = client.offer(Some("nosuch")).unwrap().unwrap();
        assert!(offer.congestion.iter().any(|name| name == "reno"), "{offer:?}");
        assert!(offer.fault.unwrap().contains("No such file"));
        assert_eq!(client.offer(Some("reno")).unwrap().unwrap().fault, None);
        for (direction, down, up) in [
            (Direction::Download, Some("reno"), None),
            (Direction::Upload, None, Some("reno")),
            (Direction::Both, Some("reno"), Some("reno")),
        ] {
            let used = used(&mut client, direction, Some("reno"));
            assert_eq!((used.down.as_deref(), used.up.as_deref()), (down, up), "{direction:?}");
        }
        let own = used(&mut client, Direction::Both, None);
        let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
        assert_eq!((own.down.as_deref(), own.up.as_deref()), (Some(default.trim()), Some(default.trim())));
        assert_eq!((counters.get(Counted::Malformed), counters.get(Counted::Sessions)), (0, 1));
    });
}

/// A client that has not asked what the server offers takes it for one that does not tell.
#[test]
fn an_older_server_tells_no_congestion_control() {
    with_server(Limits::default(), |address, _| {
        let used = used(&mut client(address), Direction::Both, Some("reno"));
        assert_eq!((used.down, used.up.as_deref()), (None, Some("reno")));
    });
}

/// The congestion controls of a load that runs until bytes have moved.
fn used(client: &mut Client, direction: Direction, congestion: Option<&str>) -> load::Used {
    let (transferred, stop) = (Transferred::default(), load::Stop::default());
    let mut filling = client.filling(2, congestion.map(str::to_owned));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| filling.run(direction, &transferred, &stop));
        wait(|| transferred.totals() != (0, 0));
        stop.request();
        running.join().unwrap().unwrap();
    });
    filling.congestion()
}

#[test]
fn the_rate_of_a_load_has_its_limit_without_a_burst() {
    let rate = BitRate::from_mbit_per_s(8);
    with_server(Limits { rate, ..Limits::default() }, |address, _| {
        let mut client = client(address);
        for direction in [Direction::Download, Direction::Upload] {
            let (transferred, stop) = (Transferred::default(), load::Stop::default());
            let mut filling = client.filling(3, None);
            assert_eq!(filling.limit_bps(), Some(8_000_000));
            std::thread::scope(|scope| {
                let running = scope.spawn(|| filling.run(direction, &transferred, &stop));
                wait(|| transferred.totals().0.max(transferred.totals().1) > 700_000);
                stop.request();
                running.join().unwrap().unwrap();
            });
            let (down, up) = transferred.arrived();
            let arrived = if direction == Direction::Download { down } else { up };
            // A byte in each microsecond; 10 ms of them at once, and 5 ms in each of three streams.
            let most = u64::try_from(arrived.at.as_micros()).unwrap() + 25_000;
            assert!((most / 5..=most).contains(&arrived.bytes), "{direction:?}: {arrived:?}");
        }
    });
}

#[test]
fn a_load_ends_by_itself() {
    with_server(Limits { load: Duration::from_secs(2), ..Limits::default() }, |address, counters| {
        let mut client = client(address);
        let (transferred, stop) = (Transferred::default(), load::Stop::default());
        let error = client.filling(1, None).run(Direction::Download, &transferred, &stop).unwrap_err().to_string();
        // What the client sees first of it.
        assert!(["ended the load", "closed a stream", "reset by peer"].iter().any(|it| error.contains(it)), "{error}");
        assert_eq!(counters.get(Counted::CutLoads), 1);
    });
}

#[test]
fn without_the_key_there_is_nothing() {
    with_server(Limits::default(), |address, counters| {
        let other = Key::new("correct horse batterie").unwrap();
        let error = Client::connect("127.0.0.1", address.port(), &other).unwrap_err().to_string();
        assert!(error.contains("refuses: the key is another one"), "{error}");
        assert_eq!((counters.get(Counted::WrongKey), counters.get(Counted::Sessions)), (1, 0));
    });
}

#[test]
fn a_server_without_the_key_is_found_out() {
    // A server that knows the protocol and welcomes everybody.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let greeting = wire::Greeting { lastmile_measure: wire::VERSION, challenge: Hex([1; 16]) };
        stream.write_all(&wire::line(&greeting)).unwrap();
        let _ = stream.read(&mut [0; 1000]).unwrap();
        let (code, clock) = (Hex([2; 32]), Hex([3; 32]));
        let welcome = wire::Answer::Welcome { code, session: Hex([4; 8]), clock, rate_bps: 1, load_s: 1, streams: 1 };
        stream.write_all(&wire::line(&welcome)).unwrap();
        let _ = stream.read(&mut [0; 1000]);
    });
    let error = Client::connect("127.0.0.1", address.port(), &key()).unwrap_err().to_string();
    assert!(error.contains("does not have the key"), "{error}");
    serving.join().unwrap();
}

#[test]
fn half_open_malformed_and_silent_clients_cost_a_counter() {
    with_server(Limits { sessions: 1, ..Limits::default() }, |address, counters| {
        let connect = || TcpStream::connect(address).unwrap();
        let mut malformed = connect();
        malformed.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        until(counters, Counted::Malformed, 1);
        // A line that never ends.
        let mut long = connect();
        let _ = long.write_all(&[b'x'; 4096]);
        until(counters, Counted::Malformed, 2);
        drop(connect());
        until(counters, Counted::Silent, 1);
        // More silent ones than there are slots: the oldest make way, and a client with the key is served.
        let silent: Vec<TcpStream> = (0..200).map(|_| connect()).collect();
        let first = client(address);
        assert!(first.has_udp());
        until(counters, Counted::Silent, 100);
        let error = Client::connect("127.0.0.1", address.port(), &key()).unwrap_err().to_string();
        assert!(error.contains("all 1 sessions are taken"), "{error}");
        drop(first);
        let is_served = || Client::connect(&address.ip().to_string(), address.port(), &key()).is_ok();
        assert!(wait(is_served), "the session's slot is free again");
        drop(silent);
    });
}

#[test]
fn a_silent_client_ends_by_a_time_limit() {
    with_server(Limits::default(), |address, counters| {
        let mut silent = TcpStream::connect(address).unwrap();
        silent.set_read_timeout(Some(HANDSHAKE + Duration::from_secs(5))).unwrap();
        let mut said = String::new();
        // One byte a second keeps nobody's slot.
        let begin = Instant::now();
        let _ = silent.write_all(b"{");
        silent.read_to_string(&mut said).unwrap();
        assert!(said.starts_with("{\"lastmile_measure\":1") && begin.elapsed() < HANDSHAKE + Duration::from_secs(2));
        until(counters, Counted::Silent, 1);
    });
}

/// Nothing that a stranger sends is answered, and nothing is answered by more than it had.
#[test]
fn strangers_get_no_datagram_and_nobody_gets_more_than_they_sent() {
    with_server(Limits::default(), |address, counters| {
        let client = client(address);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let mut buffer = [0; 1500];
        let request = Datagram::Request { number: 1, sent_ns: 2 };
        let hello = Datagram::Hello { nonce: Hex([0; 8]), code: Hex([0; 16]) };
        let session = client.session();
        for (datagram, session) in [(request, Hex([9; 8])), (hello, Hex([9; 8])), (request, session), (hello, session)]
        {
            datagram.write(session, &mut buffer[..100]);
            socket.send(&buffer[..100]).unwrap();
            assert!(socket.recv(&mut buffer).is_err(), "{datagram:?} was answered");
        }
        socket.send(b"").unwrap();
        socket.send(&[0xff; 1400]).unwrap();
        until(counters, Counted::Strays, 6);
    });
}

#[test]
fn echoes_have_one_way_delays_of_one_clock() {
    with_server(Limits::default(), |address, counters| {
        let client = client(address);
        let mut echo = client.echo("server".to_owned(), Duration::from_millis(5)).unwrap();
        assert_eq!(echo.clocks(), Clocks::Comparable);
        let (begin, stop) = (Instant::now(), load::Stop::default());
        let mut samples = Vec::new();
        let now_s = || begin.elapsed().as_secs_f64();
        echo.run(&now_s, &stop, &mut |sample| {
            samples.push(sample);
            if samples.len() == 20 {
                stop.request();
            }
        })
        .unwrap();
        assert!(counters.get(Counted::Echoes) >= 20);
        // A busy machine delays some, but not all.
        let least = |of: fn(&Sample) -> Option<f64>| samples.iter().map(|one| of(one).unwrap()).fold(1.0, f64::min);
        assert!([least(|it| it.up_s), least(|it| it.down_s)].iter().all(|s| (-1e-4..0.05).contains(s)), "{samples:?}");
    });
}

#[test]
fn trains_arrive_as_they_were_sent() {
    with_server(Limits::default(), |address, counters| {
        let mut client = client(address);
        let stop = load::Stop::default();
        let mut path = client.path(None, &stop).unwrap();
        let train = |gap_us: u64, len: u64| -> Vec<Departure> {
            (0..100).map(|n| Departure { at: Span::from_us(n * gap_us), ip_len: ByteCount::new(len) }).collect()
        };
        let (down, up) = (train(1000, 1500), train(500, 100));
        for _ in 0..2 {
            let passages = path.trains(&[(Way::Down, &down), (Way::Up, &up), (Way::Up, &down)]).unwrap();
            assert_eq!(passages.len(), 3);
            for (passages, wanted) in passages.iter().zip([&down, &up, &down]) {
                assert_eq!(passages.len(), 100);
                let lost = passages.iter().filter(|passage| passage.arrived.is_none()).count();
                assert!(lost < 5, "{lost} lost over loopback");
                let mut late = Vec::new();
                for (passage, departure) in passages.iter().zip(wanted) {
                    assert!(passage.sent >= departure.at, "{passage:?} early");
                    late.push(passage.sent.saturating_sub(departure.at));
                }
                late.sort_unstable();
                // A busy machine sends some late, but not all.
                assert!(late[0] < Span::from_ms(5), "{:?}", late[0]);
                let arrived: Vec<_> = passages.iter().filter_map(|passage| passage.arrived).collect();
                assert!(arrived.is_sorted());
            }
        }
        assert_eq!(counters.get(Counted::Trains), 6);
        let endless = vec![Departure { at: Span::from_s(100), ip_len: ByteCount::new(100) }];
        assert!(path.trains(&[(Way::Down, &endless)]).unwrap_err().to_string().contains("at most 60 s"));
        let short = vec![Departure { at: Span::ZERO, ip_len: ByteCount::new(40) }];
        assert!(path.trains(&[(Way::Down, &short)]).unwrap_err().to_string().contains("at least 56 bytes"));
    });
}

#[test]
fn a_server_that_vanishes_is_reported() {
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), key(), Limits::default()).unwrap();
    let address = server.address().unwrap();
    let end = Stop::new().unwrap();
    let (transferred, stop) = (Transferred::default(), load::Stop::default());
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.serve(&end));
        let mut client = client(address);
        let ending = end.handle().unwrap();
        let moved = &transferred;
        scope.spawn(move || {
            wait(|| moved.totals().1 > 0);
            ending.stop();
        });
        let error = client.filling(2, None).run(Direction::Upload, &transferred, &stop).unwrap_err();
        assert!(transferred.totals().1 > 0 && error.is_end(), "{error}");
        let again = client.filling(2, None).run(Direction::Upload, &transferred, &stop).unwrap_err();
        assert_eq!(again.to_string(), format!("{address}: the server ended: it closed the connection"));
        serving.join().unwrap().unwrap();
    });
}

/// A line of a connection that has just been accepted.
fn read_line<T: serde::de::DeserializeOwned>(stream: &mut TcpStream) -> T {
    let mut line = Vec::new();
    let mut byte = [0];
    while stream.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    wire::read(&line).unwrap()
}

/// The control connection of a session with the key, its number and its key.
fn raw_session(address: SocketAddr) -> (TcpStream, Hex<8>, Key) {
    let mut control = TcpStream::connect(address).unwrap();
    let wire::Greeting { challenge, .. } = read_line(&mut control);
    let (key, nonce) = (key(), Hex([7; 16]));
    let code = key.code("client", &[&challenge.0, &nonce.0]);
    control.write_all(&wire::line(&wire::Opening::Session { nonce, code })).unwrap();
    let welcome: wire::Answer = read_line(&mut control);
    let wire::Answer::Welcome { session, .. } = welcome else { panic!("{welcome:?}") };
    (control, session, key.of_session(&challenge, &nonce))
}

/// Resident memory of this process in bytes, of proc(5).
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// A stream of a session; the client has read that it is accepted.
fn raw_stream(address: SocketAddr, (session, key): (Hex<8>, &Key), way: Way) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let wire::Greeting { challenge, .. } = read_line(&mut stream);
    let code = key.code("stream", &[&challenge.0, &session.0]);
    stream.write_all(&wire::line(&wire::Opening::Stream { session, way, code })).unwrap();
    assert_eq!(read_line::<wire::Answer>(&mut stream), wire::Answer::Ready);
    stream
}

/// Data of the first stream would hold up the handshake of the second one. A stream that never comes is not waited for.
#[test]
fn data_wait_for_all_streams_of_their_load_but_not_for_ever() {
    with_server(Limits::default(), |address, _| {
        for come in [2, 1] {
            let (mut control, session, session_key) = raw_session(address);
            let begin = wire::Request::Load { direction: Direction::Download, streams: 2, congestion: None };
            let begun = Instant::now();
            control.write_all(&wire::line(&begin)).unwrap();
            assert_eq!(read_line::<wire::Answer>(&mut control), wire::Answer::Ready);
            let mut first = raw_stream(address, (session, &session_key), Way::Down);
            first.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
            assert!(first.read(&mut [0]).is_err(), "data before the second stream");
            let second = (come == 2).then(|| raw_stream(address, (session, &session_key), Way::Down));
            first.set_read_timeout(Some(wire::GATHERING + Duration::from_secs(10))).unwrap();
            assert_eq!(first.read(&mut [0]).unwrap(), 1);
            let is_long = begun.elapsed() >= wire::GATHERING;
            assert_eq!(is_long, come == 1, "{:?}", begun.elapsed());
            drop((second, control));
        }
    });
}

/// Clients with the key that read neither their load nor their answers, and floods without it, cost counters and a
/// bounded memory, and another client is served beside them. The test has a process of its own, whose memory no other
/// test uses.
#[test]
fn slow_readers_and_floods_leave_memory_flat_and_others_served() {
    const NAME: &str = "serve::tests::slow_readers_and_floods_leave_memory_flat_and_others_served";
    const ALONE: &str = "LASTMILE_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let output = command.args([NAME, "--exact"]).env(ALONE, "1").output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && told.contains("1 passed"), "{told}");
        return;
    }
    let load = Duration::from_secs(6);
    with_server(Limits { load, ..Limits::default() }, |address, counters| {
        let before = memory();
        // A load of 16 streams that nobody reads.
        let (mut slow, session, session_key) = raw_session(address);
        let begin = wire::Request::Load { direction: Direction::Download, streams: 16, congestion: None };
        slow.write_all(&wire::line(&begin)).unwrap();
        let streams: Vec<TcpStream> = (0..16)
            .map(|_| {
                let mut stream = TcpStream::connect(address).unwrap();
                let wire::Greeting { challenge, .. } = read_line(&mut stream);
                let code = session_key.code("stream", &[&challenge.0, &session.0]);
                stream.write_all(&wire::line(&wire::Opening::Stream { session, way: Way::Down, code })).unwrap();
                stream
            })
            .collect();
        // Requests whose answers nobody reads: the server reads no more of them than it can answer.
        let (mut asking, _, _) = raw_session(address);
        asking.set_nonblocking(true).unwrap();
        let request = wire::line(&begin).repeat(1000);
        let mut asked = 0;
        for _ in 0..3000 {
            asked += asking.write(&request).unwrap_or(0);
        }
        assert!(asked > 100_000, "{asked} bytes of requests");
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        for number in 0..50_000 {
            let mut buffer = [0; 100];
            Datagram::Request { number, sent_ns: 2 }.write(session, &mut buffer);
            let _ = socket.send_to(&buffer, address);
        }
        for _ in 0..500 {
            let mut stream = TcpStream::connect(address).unwrap();
            let _ = stream.write_all(b"\x16\x03\x01 no line\n");
        }
        until(counters, Counted::Malformed, 100);
        // Another client, while all of them are there.
        let mut good = client(address);
        let (transferred, stop) = (Transferred::default(), load::Stop::default());
        std::thread::scope(|scope| {
            let mut filling = good.filling(2, None);
            let running = scope.spawn({
                let (transferred, stop) = (&transferred, &stop);
                move || filling.run(Direction::Download, transferred, stop)
            });
            wait(|| transferred.totals().0 > 1_000_000);
            stop.request();
            running.join().unwrap().unwrap();
        });
        assert!(transferred.totals().0 > 1_000_000, "{:?}", transferred.totals());
        until(counters, Counted::CutLoads, 1);
        // Most of the flood is lost where the server had to wait for a processor.
        let stray = || (0..100).all(|_| socket.send_to(b"x", address).is_ok());
        assert!(wait(|| stray() && counters.get(Counted::Strays) >= 1000));
        let grown = memory().saturating_sub(before);
        assert!(grown < 48 << 20, "{grown} bytes more than before");
        drop((slow, streams, asking));
    });
}

/// The client chooses the number of a request of trains, also the last one of 32 bits.
#[test]
fn trains_of_any_number_are_counted() {
    with_server(Limits::default(), |address, _| {
        let mut client = client(address);
        let stop = load::Stop::default();
        let mut path = client.path(None, &stop).unwrap();
        path.next = u32::MAX;
        let train = [Departure { at: Span::ZERO, ip_len: ByteCount::new(100) }];
        let trains = [(Way::Up, &train[..]); 16];
        for _ in 0..2 {
            let passages = path.trains(&trains).unwrap();
            assert_eq!(passages.len(), 16);
        }
    });
}
