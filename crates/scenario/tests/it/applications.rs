//! Web users, swarms and replays, from file to network; and that what comes of them is sound.

use lastmile_model::{FileSizes, Http, IpFields, Network, OpenedBy, Source};
use lastmile_scenario::Scenario;
use lastmile_units::{ByteCount, Duration};

const LINE: &str = "duration = \"60 s\"\n[access]\ndown = { rate = \"8 Mbit/s\" }\nup = { rate = \"512 kbit/s\" }\n";
const CAPTURE: &str = "file = \"../../scenarios/captures/download-and-call.pcapng\"";

fn parse(traffic: &str) -> Result<Network, String> {
    let text = format!("{LINE}[[traffic]]\n{traffic}");
    Scenario::parse("f.toml", &text, &[]).map(|scenario| scenario.network()).map_err(|report| report.to_string())
}

fn names(network: &Network) -> Vec<(&str, &str)> {
    network.traffic.iter().map(|traffic| (traffic.name.as_str(), traffic.direction.as_str())).collect()
}

#[test]
fn web_pages_come_down_by_default_and_the_client_opens() {
    let network = parse("kind = \"web\"\ncount = 3\nserver_port = 80").unwrap();
    assert_eq!(names(&network), [("web", "down")]);
    let traffic = &network.traffic[0];
    assert_eq!((traffic.count, traffic.opened_by()), (3, OpenedBy::Receiver));
    assert_eq!(traffic.names.from.port, Some(80), "data come from the server");
    let Source::Web(web) = &traffic.source else { panic!("{traffic:?}") };
    assert_eq!((web.reading, web.request, web.connections), (Duration::from_s(30), 350, 6));
    assert_eq!((web.http, web.tls), (Http::One1, false));
}

#[test]
fn a_swarm_goes_both_ways_unless_told_otherwise() {
    let network = parse("kind = \"swarm\"\nname = \"p2p\"\npeers = 9").unwrap();
    assert_eq!(names(&network), [("p2p-down", "down"), ("p2p-up", "up")]);
    let ends: Vec<_> = network.traffic.iter().map(|traffic| (traffic.from, traffic.to)).collect();
    assert_eq!(ends[0], (ends[1].1, ends[1].0));
    assert_eq!(names(&parse("kind = \"swarm\"\ndirection = \"up\"").unwrap()), [("swarm", "up")]);
    assert_eq!(names(&parse("kind = \"swarm\"\nfrom = \"cpe\"\nto = \"gateway\"").unwrap()).len(), 2);
}

#[test]
fn a_replay_takes_the_packets_of_its_direction() {
    let both =
        parse(&format!("kind = \"replay\"\n{CAPTURE}\ndirection = \"both\"\nclient_prefix = \"10.0.0.1\"")).unwrap();
    assert_eq!(names(&both), [("replay-down", "down"), ("replay-up", "up")]);
    let counts: Vec<_> = both
        .traffic
        .iter()
        .map(|traffic| match &traffic.source {
            Source::Replay(replay) => (replay.packets.len(), replay.flows.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    let all = parse(&format!("kind = \"replay\"\n{CAPTURE}\ndirection = \"up\"")).unwrap();
    let Source::Replay(whole) = &all.traffic[0].source else { panic!("a replay") };
    assert_eq!(counts[0].0 + counts[1].0, whole.packets.len());
    assert_eq!((counts[0].1, counts[1].1), (1, 2), "data of the download; its ACKs and the call");
    // 50 packets of voice next to the ACKs, with their code point and times 20 ms apart.
    let Source::Replay(up) = &both.traffic[1].source else { panic!("a replay") };
    let voice: Vec<_> = up.packets.iter().filter(|(_, packet)| packet.traffic_class == 46 << 2).collect();
    assert_eq!(voice.len(), 50);
    assert!(voice.windows(2).all(|pair| pair[1].0 - pair[0].0 == Duration::from_ms(20)));
}

#[test]
fn what_cannot_be_replayed_is_told() {
    let refused = |traffic: &str, wanted: &str| {
        let report = parse(traffic).unwrap_err();
        assert!(report.contains(wanted), "{traffic}: {report}");
    };
    refused("kind = \"replay\"\ndirection = \"up\"\nfile = \"nowhere.pcap\"", "no such file");
    refused("kind = \"replay\"\ndirection = \"up\"\nfile = \"Cargo.toml\"", "neither pcap nor pcapng");
    refused(&format!("kind = \"replay\"\ndirection = \"both\"\n{CAPTURE}"), "both directions of a capture without");
    let elsewhere = format!("kind = \"replay\"\ndirection = \"up\"\n{CAPTURE}\nclient_prefix = \"198.51.100.0/24\"");
    refused(&elsewhere, "no packet of");
    refused(&format!("kind = \"replay\"\ndirection = \"up\"\n{CAPTURE}\nspeed = 0"), "no number from 0.001 to 1000");
    refused(&format!("kind = \"replay\"\ndirection = \"up\"\n{CAPTURE}\nclient_prefix = \"10.0.0/8\""), "no prefix");
}

#[test]
fn every_packet_of_them_is_somewhere_and_equal_seeds_agree() {
    let all = [
        "kind = \"web\"\ncount = 4\nreading = \"2 s\"\n[[traffic]]\nkind = \"swarm\"\nstop = \"40 s\"",
        &format!("kind = \"replay\"\n{CAPTURE}\ndirection = \"both\"\nclient_prefix = \"10.0.0.1\"\nspeed = 0.5"),
    ];
    for traffic in all {
        let network = parse(traffic).unwrap();
        let (one, other) = (lastmile_sim::run(&network).unwrap(), lastmile_sim::run(&network).unwrap());
        assert!(one.conservation.holds(), "{:?}", one.conservation);
        assert_eq!((one.events, one.conservation), (other.events, other.conservation));
        assert!(one.conservation.delivered.packets > 100);
    }
}

fn refused(traffic: &str, wanted: &str) {
    let report = parse(traffic).expect_err("it is refused");
    assert!(report.contains(wanted), "{traffic}: {report}");
}

#[test]
fn a_video_has_the_ladder_of_apple_and_the_least_buffer_of_hls_js() {
    let network = parse("kind = \"video\"").unwrap();
    assert_eq!(names(&network), [("video", "down")]);
    assert_eq!(network.traffic[0].opened_by(), OpenedBy::Receiver);
    let Source::Video(video) = &network.traffic[0].source else { panic!("{network:?}") };
    assert_eq!((video.ladder.len(), video.segment, video.startup), (9, Duration::from_s(4), Duration::from_s(4)));
    assert_eq!((video.buffer, video.length, video.transport.tcp().is_some()), (Duration::from_s(30), None, true));
    let quic = parse("kind = \"video\"\ntransport = \"quic\"\nladder = \"2 Mbit/s\"").unwrap();
    let Source::Video(video) = &quic.traffic[0].source else { panic!("{quic:?}") };
    assert_eq!((video.ladder.len(), video.transport.tcp().is_none()), (1, true));
}

#[test]
fn a_video_that_cannot_be_played_is_told() {
    refused("kind = \"video\"\nladder = []", "0 bit rates, where 1 to 64 are expected");
    refused("kind = \"video\"\nladder = [\"3 Mbit/s\", \"1 Mbit/s\"]", "1 Mbit/s after 3 Mbit/s; bit rates ascend");
    refused(
        "kind = \"video\"\nbuffer = \"6 s\"",
        "6 s do not hold the 4 s that playback needs and the next segment of 4 s",
    );
    refused("kind = \"video\"\nquic = { congestion = \"bbr\" }", "add transport = \"quic\", or remove quic");
}

#[test]
fn a_version_of_http_needs_no_quotes_in_an_override() {
    let text = format!("{LINE}[[traffic]]\nname = \"web\"\nkind = \"web\"\n");
    let with = |value: &str| Scenario::parse("f.toml", &text, &[format!("traffic.web.http={value}")]);
    for (value, http) in [("2", Http::Two), ("\"2\"", Http::Two), ("1.0", Http::One0)] {
        let network = with(value).unwrap().network();
        assert!(matches!(&network.traffic[0].source, Source::Web(web) if web.http == http), "{value}");
    }
    assert!(with("5").unwrap_err().to_string().contains("unknown http \"5\""));
}

#[test]
fn http_chooses_transport_connections_and_tls() {
    let web = |keys: &str| {
        let network = parse(&format!("kind = \"web\"\n{keys}")).unwrap();
        let Source::Web(web) = &network.traffic[0].source else { panic!("{network:?}") };
        (web.http, web.tls, web.connections, web.transport.tcp().is_some())
    };
    assert_eq!(web("http = \"1.0\""), (Http::One0, false, 6, true));
    assert_eq!(web("persistent = false"), (Http::One0, false, 6, true));
    assert_eq!(web("persistent = true\nconnections = 2"), (Http::One1, false, 2, true));
    assert_eq!(web("tls = true"), (Http::One1, true, 6, true));
    assert_eq!(web("http = \"2\""), (Http::Two, true, 1, true));
    assert_eq!(web("http = \"2\"\ntls = false"), (Http::Two, false, 1, true));
    assert_eq!(web("http = \"3\"\nquic = { congestion = \"bbr\" }"), (Http::Three, false, 1, false));
    refused("kind = \"web\"\nhttp = \"2\"\npersistent = true", "persistent together with http");
    refused("kind = \"web\"\nhttp = \"2\"\nconnections = 6", "HTTP/2 has one connection");
    refused("kind = \"web\"\nhttp = \"1.0\"\ntls = true", "HTTP/1.0 is modelled without TLS");
    refused("kind = \"web\"\nhttp = \"3\"\ntls = true", "HTTP/3 has the handshake of QUIC");
    refused("kind = \"web\"\nquic = { congestion = \"bbr\" }", "add http = \"3\", or remove quic");
    refused("kind = \"web\"\nhttp = \"3\"\ntcp = { mss = \"512 B\" }", "settings of another transport than \"quic\"");
}

#[test]
fn a_conference_goes_both_ways_and_its_rates_ascend() {
    assert_eq!(names(&parse("kind = \"conference\"").unwrap()), [("conference-down", "down"), ("conference-up", "up")]);
    let one = parse("kind = \"conference\"\ndirection = \"down\"\nrate_most = \"4 Mbit/s\"").unwrap();
    let Source::Conference(conference) = &one.traffic[0].source else { panic!("{one:?}") };
    // Opus: 80 B of payload and 58 B of headers 50 times a second.
    let v4 = IpFields::default();
    assert!((conference.audio_bps(v4) - 55_200.0).abs() < 1e-6);
    let v6 = IpFields { ipv6: true, ..v4 };
    assert!((conference.audio_bps(v6) - 63_200.0).abs() < 1e-6, "20 bytes more 50 times a second");
    assert_eq!(conference.rates.most.as_bps(), 4_000_000);
    refused("kind = \"conference\"\nrate_most = \"200 kbit/s\"", "200 kbit/s with a rate_start of 300 kbit/s");
    refused("kind = \"conference\"\nrate_least = \"50 kbit/s\"", "the audio alone has 55.2 kbit/s");
}

#[test]
fn a_game_comes_down_and_its_datagrams_fit_the_path() {
    let network = parse("kind = \"game\"\ncount = 3").unwrap();
    assert_eq!(names(&network), [("game", "down")]);
    let Source::Game(game) = &network.traffic[0].source else { panic!("{network:?}") };
    assert_eq!(game.commands.interval.location, Duration::from_ms(40));
    assert_eq!((game.updates.size.location.as_u64(), game.updates.size.scale.as_u64()), (120, 36));
    refused("kind = \"game\"\nupdate_size = \"1600 B\"", "1600 bytes exceed the 1500 bytes that the path carries");
}

#[test]
fn a_backup_goes_up_and_its_client_opens() {
    let network = parse("kind = \"backup\"\nfiles = 9\nfile_size = \"20 kB\"").unwrap();
    assert_eq!(names(&network), [("backup", "up")]);
    assert_eq!(network.traffic[0].opened_by(), OpenedBy::Sender);
    let Source::Backup(backup) = &network.traffic[0].source else { panic!("{network:?}") };
    assert_eq!((backup.files, backup.sizes), (Some(9), FileSizes::Fixed(ByteCount::new(20_000))));
    assert_eq!((backup.request, backup.reply, backup.parallel, backup.pause), (350, 200, 1, Duration::ZERO));
    let down = parse("kind = \"backup\"\ndirection = \"down\"").unwrap();
    assert_eq!(down.traffic[0].opened_by(), OpenedBy::Receiver);
    let Source::Backup(backup) = &down.traffic[0].source else { panic!("{down:?}") };
    assert_eq!((backup.files, backup.sizes), (None, FileSizes::Published));
    let both = parse("kind = \"backup\"\ndirection = \"both\"\nreply = \"9 B\"").unwrap();
    assert_eq!(names(&both), [("backup-down", "down"), ("backup-up", "up")]);
    refused("kind = \"backup\"\ndirection = \"down\"\nreply = \"9 B\"", "a file that comes down is the answer itself");
    refused("kind = \"backup\"\nfiles = 0", "files");
    refused("kind = \"backup\"\nparallel = 65", "parallel");
}

#[test]
fn applications_conserve_packets_and_equal_seeds_agree() {
    let all = "kind = \"video\"\n[[traffic]]\nkind = \"conference\"\n[[traffic]]\nkind = \"game\"\ncount = 2\n\
               [[traffic]]\nkind = \"web\"\nhttp = \"2\"\nreading = \"1 s\"\n[[traffic]]\nkind = \"web\"\n\
               name = \"three\"\nhttp = \"3\"\nreading = \"1 s\"\n\
               [[traffic]]\nkind = \"backup\"\nparallel = 2\n\
               [[traffic]]\nkind = \"bulk\"\ndirection = \"up\"\nstart = \"20 s\"";
    let network = parse(all).unwrap();
    let (one, other) = (lastmile_sim::run(&network).unwrap(), lastmile_sim::run(&network).unwrap());
    assert!(one.conservation.holds(), "{:?}", one.conservation);
    assert_eq!((one.events, one.conservation), (other.events, other.conservation));
    let applications = &one.applications;
    let users = (
        applications.browsing.len(),
        applications.viewing.len(),
        applications.backups.len(),
        applications.conferences.len(),
        applications.games.len(),
    );
    assert_eq!(users, (2, 1, 1, 2, 2));
}
