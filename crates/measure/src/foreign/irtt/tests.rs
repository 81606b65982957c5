use super::*;
use crate::train::Way;

fn reply(number: u32, window: u64, received_ns: i64, sent_ns: i64) -> Reply {
    let stamps = (Some(received_ns), Some(sent_ns));
    Reply { token: 5, number, window: Some(window), received_ns: stamps.0, sent_ns: stamps.1 }
}

#[test]
fn the_servers_processing_is_no_delay() {
    let (mut session, mut window) = (Session::new(5, Parameters::wanted(1, 1, 0)), Window::default());
    window.send(1.0, 1_000_000_000);
    // 10 ms up, 3 ms in the server, 20 ms down; the server's clock is 7 s behind.
    let arrived = reply(0, 1, -5_990_000_000, -5_987_000_000);
    let (number, sample) = session.reply(arrived, 1_033_000_000, &window).unwrap();
    assert_eq!(number, 0);
    let close = |value: Option<f64>, wanted: f64| (value.unwrap() - wanted).abs() < 1e-9;
    assert!(close(sample.rtt_s, 0.030), "{sample:?}");
    assert!(close(sample.up_s, 0.010 - 7.0) && close(sample.down_s, 0.020 + 7.0), "{sample:?}");
    let unknown = session.reply(reply(3, 1, 0, 0), 2_000_000_000, &window);
    assert_eq!(unknown, Some((3, Sample::default())), "of no request");
    let foreign = Reply { token: 6, ..reply(0, 1, 0, 0) };
    assert_eq!(session.reply(foreign, 2_000_000_000, &window), None, "another session");
}

#[test]
fn a_processing_time_that_cannot_be_is_not_subtracted() {
    let sample = timed(reply(0, 1, 0, 50_000_000), 0, 33_000_000);
    assert!((sample.rtt_s.unwrap() - 0.033).abs() < 1e-9, "{sample:?}");
    let bare = Reply { received_ns: None, sent_ns: None, ..reply(0, 1, 0, 0) };
    let sample = timed(bare, 0, 33_000_000);
    assert_eq!((sample.up_s, sample.down_s), (None, None));
}

#[test]
fn losses_have_their_direction() {
    let (mut session, mut window) = (Session::new(5, Parameters::wanted(1, 1, 0)), Window::default());
    for number in 0..4_u32 {
        window.send(f64::from(number), 0);
    }
    // The server has 3, 2 and 0; the replies to 2 and 0 are lost.
    session.reply(reply(3, 0b1011, 0, 0), 1, &window).unwrap();
    let lost = [0, 1, 2].map(|number| session.reception.lost(number));
    assert_eq!(lost, [Some(Way::Down), Some(Way::Up), Some(Way::Down)]);
}

/// Asks a server that never answers, until this time, which is also the least that the run takes.
fn asked(length: Duration) -> Result<(), Error> {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let settings = Settings {
        name: "x".to_owned(),
        server: silent.local_addr().unwrap(),
        code_point: 0,
        interval: Duration::from_millis(10),
        key: Some(b"secret".to_vec()),
    };
    let shown = format!("{settings:?}");
    assert!(!shown.contains("secret") && !shown.contains("115, 101"), "the key is not shown: {shown}");
    let (stop, began) = (Stop::default(), Instant::now());
    let mut told = 0;
    let done = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(length);
            stop.request();
        });
        Irtt::new(settings).run(&|| 0.0, &stop, &mut |_| told += 1)
    });
    assert!(told == 0 && began.elapsed() < length + Duration::from_secs(1));
    done
}

#[test]
fn a_stop_while_nobody_answers_ends_at_once() {
    asked(Duration::from_millis(100)).unwrap();
}

#[test]
fn a_measurement_that_ends_before_the_last_request_says_that_nobody_answers() {
    // In the middle of the second wait, which begins after one second and takes two.
    let told = asked(Duration::from_millis(2000)).unwrap_err().to_string();
    let ends = told.ends_with(" s; is there an irtt server that has this key?");
    assert!(ends && told.contains("no answer in "), "{told}");
}

/// The kernel answers for a closed port with ICMP, within the first wait.
#[test]
fn a_closed_port_is_refused_at_once() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (name, interval) = ("x".to_owned(), Duration::from_millis(10));
    let mut irtt = Irtt::new(Settings { name, server, code_point: 0, interval, key: None });
    let began = Instant::now();
    let told = irtt.run(&|| 0.0, &Stop::default(), &mut |_| {}).unwrap_err().to_string();
    assert!(told.ends_with("connection refused: no irtt server listens there"), "{told}");
    assert!(began.elapsed() < OPEN_WAITS[0], "{:?}", began.elapsed());
}

#[test]
fn a_key_is_text_or_hexadecimal_as_irtt_takes_it() {
    assert_eq!(key(" secret\n"), Ok(b"secret".to_vec()));
    assert_eq!(key("0x00ff6B\n"), Ok(vec![0, 255, 0x6b]));
    assert_eq!(key("0X00"), Ok(b"0X00".to_vec()), "irtt knows the small letter alone");
    for wrong in ["", " \n", "0x", "0x0", "0x0g", "0x+1", "0xé"] {
        assert!(key(wrong).is_err(), "{wrong:?}");
    }
}
