//! Servers that misbehave, played on loopback. Real servers are in `tests/it`.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use super::*;

fn load(port: u16) -> Iperf3 {
    let one = NonZeroU32::MIN;
    let settings = Settings {
        host: "127.0.0.1".to_owned(),
        port,
        streams: one,
        longest_s: NonZeroU32::new(5).unwrap(),
        congestion: None,
        udp_bps: None,
    };
    Iperf3::new(settings).unwrap()
}

/// The error of a test against a server that does this with the control connection.
fn error(direction: Direction, server: impl FnOnce(&TcpListener, TcpStream) + Send) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut control, _) = listener.accept().unwrap();
            control.read_exact(&mut [0; protocol::COOKIE_LEN]).unwrap();
            server(&listener, control);
        });
        load(port).run(direction, &Transferred::default(), &Stop::default()).unwrap_err().to_string()
    })
}

fn read_json(control: &mut TcpStream) -> serde_json::Value {
    let mut len = [0; 4];
    control.read_exact(&mut len).unwrap();
    let mut text = vec![0; u32::from_be_bytes(len) as usize];
    control.read_exact(&mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// Brings a test to its running state.
fn begin(listener: &TcpListener, control: &mut TcpStream) -> TcpStream {
    control.write_all(&[9]).unwrap();
    assert_eq!(read_json(control)["parallel"], 1);
    control.write_all(&[10]).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.read_exact(&mut [0; protocol::COOKIE_LEN]).unwrap();
    control.write_all(&[1, 2]).unwrap();
    stream
}

#[test]
fn a_busy_server_refuses_in_plain_words() {
    let text = error(Direction::Download, |_, mut control| control.write_all(&[255]).unwrap());
    assert!(text.contains("refuses: it is busy with the test of another client"), "{text}");
}

#[test]
fn the_reason_of_a_server_is_told() {
    // A login is refused without a number of the system up to iperf3 3.18.
    for (code, of_system, words) in [
        (142, &[][..], "a user name and a password"),
        (142, &[0; 4], "a user name and a password"),
        (37, &[0; 4], "longer than the server allows"),
        (999, &[0; 4], "error 999"),
    ] {
        let text = error(Direction::Upload, |_, mut control| {
            control.write_all(&[9]).unwrap();
            read_json(&mut control);
            let codes = [&i32::to_be_bytes(code), of_system].concat();
            control.write_all(&[&[254], &codes[..]].concat()).unwrap();
        });
        assert!(text.contains(words), "{text}: expected {words}");
    }
}

#[test]
fn a_server_of_another_protocol_is_recognised() {
    let text = error(Direction::Download, |_, mut control| control.write_all(b"HTTP/1.1 400 Bad Request").unwrap());
    assert!(text.contains("sends the message 72") && text.contains("Is it an iperf3 server?"), "{text}");
    let text = error(Direction::Download, |_, mut control| control.write_all(&[13]).unwrap());
    assert!(text.contains("sends ExchangeResults; ParamExchange is right"), "{text}");
}

#[test]
fn a_server_that_closes_is_told_and_bytes_before_it_count() {
    let text = error(Direction::Download, |_, control| drop(control));
    assert!(text.contains("waiting for the message ParamExchange"), "{text}");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let transferred = Transferred::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut control, _) = listener.accept().unwrap();
            control.read_exact(&mut [0; protocol::COOKIE_LEN]).unwrap();
            let mut stream = begin(&listener, &mut control);
            stream.write_all(&[7; 5000]).unwrap();
            thread::sleep(Duration::from_millis(100));
        });
        let error = load(port).run(Direction::Download, &transferred, &Stop::default()).unwrap_err();
        assert!(error.to_string().contains("closes the connection during the test"), "{error}");
    });
    assert_eq!(transferred.totals(), (5000, 0));
}

#[test]
fn results_of_boundless_length_are_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let stop = Stop::default();
    let error = thread::scope(|scope| {
        scope.spawn(|| {
            let (mut control, _) = listener.accept().unwrap();
            control.read_exact(&mut [0; protocol::COOKIE_LEN]).unwrap();
            let mut stream = begin(&listener, &mut control);
            stream.read_exact(&mut [0]).unwrap();
            stop.request();
            let mut end = [0];
            control.read_exact(&mut end).unwrap();
            assert_eq!(end, [4], "TEST_END");
            control.write_all(&[13, 0xff, 0xff, 0xff, 0xff]).unwrap();
            let sent = read_json(&mut control);
            assert_eq!(sent["streams"][0]["id"].as_f64(), Some(1.0));
        });
        load(port).run(Direction::Upload, &Transferred::default(), &stop).unwrap_err().to_string()
    });
    assert!(error.contains("announces 4294967295 bytes of results"), "{error}");
}

/// The warnings on a download by Reno, which every Linux has, from a server that names this congestion control.
fn warnings(used: &str) -> Vec<String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut load = load(listener.local_addr().unwrap().port());
    load.settings.congestion = Some("reno".to_owned());
    let (transferred, stop) = (Transferred::default(), Stop::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut control, _) = listener.accept().unwrap();
            control.read_exact(&mut [0; protocol::COOKIE_LEN]).unwrap();
            begin(&listener, &mut control).write_all(&[7]).unwrap();
            while transferred.totals() == (0, 0) {
                thread::sleep(Duration::from_millis(1));
            }
            stop.request();
            control.read_exact(&mut [0]).unwrap();
            control.write_all(&[13]).unwrap();
            read_json(&mut control);
            let text = format!(
                r#"{{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":1,
                "congestion_used":"{used}",
                "streams":[{{"id":1,"bytes":1,"retransmits":0,"jitter":0,"errors":0,"packets":0}}]}}"#
            );
            let len = u32::try_from(text.len()).unwrap().to_be_bytes();
            control.write_all(&[&len, text.as_bytes(), &[14]].concat()).unwrap();
            control.read_exact(&mut [0]).unwrap();
        });
        load.run(Direction::Download, &transferred, &stop).unwrap();
    });
    load.warnings()
}

#[test]
fn a_server_that_sends_by_another_congestion_control_has_a_warning() {
    assert_eq!(warnings("cubic"), ["the server sends by cubic, since it does not have reno"]);
    assert_eq!(warnings("reno"), [""; 0]);
}

#[test]
fn a_port_without_a_server_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let error = load(port).run(Direction::Download, &Transferred::default(), &Stop::default()).unwrap_err();
    assert!(error.to_string().contains(&format!("connecting to 127.0.0.1:{port}")), "{error}");
}

#[test]
fn a_stop_before_the_test_is_no_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let stop = Stop::default();
    stop.request();
    let mut load = load(port);
    load.run(Direction::Download, &Transferred::default(), &stop).unwrap();
    assert!(load.outcome().is_none());
}

#[test]
fn more_streams_than_iperf3_has_are_refused() {
    let settings = Settings { streams: NonZeroU32::new(129).unwrap(), ..load(1).settings };
    let two = Settings { streams: NonZeroU32::new(2).unwrap(), ..settings.clone() };
    assert_eq!(Iperf3::new(two).unwrap().streams(), 2);
    assert!(Iperf3::new(settings).unwrap_err().to_string().contains("at most 128 streams"));
}
