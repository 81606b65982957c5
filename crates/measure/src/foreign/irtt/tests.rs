use super::*;
use crate::train::Way;

fn reply(number: u32, window: u64, received_ns: i64, sent_ns: i64) -> Reply {
    let stamps = (Some(received_ns), Some(sent_ns));
    Reply { token: 5, number, window: Some(window), received_ns: stamps.0, sent_ns: stamps.1 }
}

#[test]
fn the_servers_processing_is_no_delay() {
    let (mut session, mut window) = (Session::new(5, Parameters::wanted(1, 1, 0), 0), Window::default());
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
    let (mut session, mut window) = (Session::new(5, Parameters::wanted(1, 1, 0), 0), Window::default());
    for number in 0..4_u32 {
        window.send(f64::from(number), 0);
    }
    // The server has 3, 2 and 0; the replies to 2 and 0 are lost.
    session.reply(reply(3, 0b1011, 0, 0), 1, &window).unwrap();
    let lost = [0, 1, 2].map(|number| session.reception.lost(number));
    assert_eq!(lost, [Some(Way::Down), Some(Way::Up), Some(Way::Down)]);
}

/// A server without a clock: tests read its requests and write its replies.
struct Server {
    udp: UdpSocket,
    irtt: Irtt,
    client: UdpSocket,
}

impl Server {
    fn new() -> Self {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.set_nonblocking(true).unwrap();
        let (name, server) = ("x".to_owned(), udp.local_addr().unwrap());
        let irtt = Irtt::new(Settings { name, server, code_point: 0, interval: Duration::from_secs(1), key: None });
        let client = irtt.connect().unwrap();
        Self { udp, irtt, client }
    }

    /// Sessions of this length.
    fn allowed(limit_s: i64) -> Parameters {
        Parameters::wanted(limit_s * 1_000_000_000, 1_000_000_000, 0)
    }

    /// Flags, token and number of the requests that have come, which a socket of this machine has at once.
    fn came(&self) -> Vec<(u8, u64, u32)> {
        let mut buffer = [0; 2048];
        let requests = std::iter::from_fn(|| self.udp.recv(&mut buffer).ok().map(|len| buffer[..len].to_vec()));
        let one = |request: Vec<u8>| match (request[3], request[4..].split_first_chunk()) {
            (0, Some((token, rest))) => {
                let number = u32::from_le_bytes(*rest.first_chunk().unwrap());
                (0, u64::from_le_bytes(*token), number)
            }
            (packet::CLOSE, Some((token, _))) => (packet::CLOSE, u64::from_le_bytes(*token), 0),
            (flags, _) => (flags, 0, 0),
        };
        requests.map(one).collect()
    }

    /// Replies with these flags to a request of a session, or to an open request where there is none.
    fn reply(&self, flags: u8, token: u64, number: Option<u32>, allowed: Parameters) {
        let opened = || [&token.to_le_bytes()[..], &allowed.write()].concat();
        let body = number.map_or_else(opened, |number| packet::echo(token, number, allowed));
        let packet = packet::seal(packet::REPLY | flags, &body, None);
        self.udp.send_to(&packet, self.client.local_addr().unwrap()).unwrap();
    }
}

/// Sends a request in each of these seconds; whether there was one.
fn send(requests: &mut Requests<'_>, window: &mut Window, seconds: std::ops::RangeInclusive<u32>) -> Vec<bool> {
    let one = |second: u32| {
        let now_ns = u64::from(second) * 1_000_000_000;
        let is_ready = requests.prepare(now_ns).unwrap();
        if is_ready {
            let number = window.send(f64::from(second), now_ns);
            requests.send(number, now_ns).unwrap();
        }
        is_ready
    };
    seconds.map(one).collect()
}

/// Takes a packet that has come.
fn take(requests: &mut Requests<'_>, window: &Window) -> Option<u64> {
    requests.receive(window, Duration::from_secs(10)).unwrap().map(|(number, _)| number)
}

/// Numbers by the second in which they were sent.
fn lost(requests: &mut Requests<'_>, window: &mut Window) -> Vec<f64> {
    let mut lost = Vec::new();
    requests.give_up(window.given_up(f64::INFINITY), f64::INFINITY, &mut |sample| lost.push(sample.sent_s));
    lost
}

/// A limit of 30 s: five seconds before it the next session is opened, and the first one goes on until the answer. Its
/// last requests have their answers, and are lost where the line lost them.
#[test]
fn the_next_session_is_open_before_the_server_ends_the_first() {
    let (server, allowed) = (Server::new(), Server::allowed(30));
    let mut requests = Requests::new(&server.irtt, &server.client, Session::new(5, allowed, 0));
    let mut window = Window::default();
    assert!(send(&mut requests, &mut window, 0..=24).iter().all(|sent| *sent));
    assert_eq!(server.came(), (0..=24).map(|number| (0, 5, number)).collect::<Vec<_>>());
    for number in 0..=23 {
        server.reply(0, 5, Some(number), allowed);
        assert_eq!(take(&mut requests, &window), Some(u64::from(number)));
    }
    // The open request is lost, and asked again after a second.
    send(&mut requests, &mut window, 25..=26);
    assert_eq!(server.came(), [(packet::OPEN, 0, 0), (0, 5, 25), (packet::OPEN, 0, 0), (0, 5, 26)]);
    server.reply(packet::OPEN, 6, None, allowed);
    assert_eq!(take(&mut requests, &window), None);
    send(&mut requests, &mut window, 27..=28);
    assert_eq!(server.came(), [(0, 6, 0), (0, 6, 1)]);
    for (token, number, of_series) in [(5, 26, 26), (6, 1, 28), (5, 24, 24)] {
        server.reply(0, token, Some(number), allowed);
        assert_eq!(take(&mut requests, &window), Some(of_series));
        assert!(matches!(window.answer(of_series), crate::probe::window::Answer::First { .. }));
    }
    for number in 0..=23 {
        window.answer(number);
    }
    assert_eq!(lost(&mut requests, &mut window), [25.0, 27.0]);
    // Ten seconds after its end no answer to the first session can come any more.
    requests.sessions[0].left_ns = Some(26_000_000_000);
    send(&mut requests, &mut window, 36..=37);
    assert_eq!(server.came(), [(0, 6, 2), (packet::CLOSE, 5, 0), (0, 6, 3)]);
}

/// The server ends a session with the reply to 2: it drops 3 and 4, the line loses 1, and there is no request before
/// the next session.
#[test]
fn requests_that_the_server_drops_at_its_limit_are_not_lost() {
    let (server, allowed) = (Server::new(), Server::allowed(30));
    let mut requests = Requests::new(&server.irtt, &server.client, Session::new(5, allowed, 0));
    let mut window = Window::default();
    send(&mut requests, &mut window, 0..=4);
    for (flags, number) in [(0, 0), (packet::CLOSE, 2)] {
        server.reply(flags, 5, Some(number), allowed);
        let answered = take(&mut requests, &window).unwrap();
        window.answer(answered);
    }
    assert_eq!(send(&mut requests, &mut window, 5..=5), [false]);
    server.reply(packet::OPEN, 6, None, allowed);
    take(&mut requests, &window);
    assert_eq!(send(&mut requests, &mut window, 6..=7), [true, true]);
    assert_eq!(server.came()[5..], [(packet::OPEN, 0, 0), (0, 6, 0), (0, 6, 1)]);
    assert_eq!(lost(&mut requests, &mut window), [1.0, 6.0, 7.0]);
}

/// Open requests after 25, 26, 28 and 32 s, and no more after 40 s.
#[test]
fn a_series_ends_where_no_further_session_is_opened() {
    let (server, allowed) = (Server::new(), Server::allowed(30));
    let mut requests = Requests::new(&server.irtt, &server.client, Session::new(5, allowed, 0));
    let mut window = Window::default();
    let mut asked = Vec::new();
    for second in 0..=39 {
        send(&mut requests, &mut window, second..=second);
        asked.extend(server.came().iter().filter(|(flags, ..)| *flags == packet::OPEN).map(|_| second));
    }
    assert_eq!(asked, [25, 26, 28, 32]);
    assert!(!requests.is_closed());
    send(&mut requests, &mut window, 40..=40);
    assert!(requests.is_closed());
    let told = requests.failed.unwrap().to_string();
    assert!(told.ends_with("no answer in 15 s; is there an irtt server without a key?"), "{told}");
}

#[test]
fn a_server_without_a_limit_of_length_has_one_session() {
    let server = Server::new();
    let mut requests = Requests::new(&server.irtt, &server.client, Session::new(5, Server::allowed(0), 0));
    send(&mut requests, &mut Window::default(), 0..=100);
    assert!(server.came().iter().all(|(flags, ..)| *flags == 0));
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
