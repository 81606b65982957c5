use lastmile_units::Duration;

use super::*;
use crate::spec::{ApplicationPlan, ConnectionPlan, Kind, Window};

const LINE: &str = r#"
    duration = "1 s"
    [access]
    encapsulation = "bridged-vcmux-fcs"
    down = { rate = "2 Mbit/s", delay = "4 ms" }
    up = { rate = "512 kbit/s", delay = "4 ms" }
"#;

fn scenario(traffic: &str) -> Scenario {
    Scenario::parse("lab.toml", &format!("{LINE}\n{traffic}"), &[]).unwrap()
}

#[test]
fn what_only_the_simulator_has_is_refused() {
    let writes = "[[traffic]]\nkind = \"writes\"\ndirection = \"up\"\nrate = \"100 kbit/s\"";
    let scenario = scenario(writes);
    let refused = Plan::of(&scenario, None, Kernel::default()).err().unwrap().to_string();
    assert!(refused.contains("traffic.writes is of kind \"writes\", which only the simulator has"), "{refused}");
}

/// Browsers of HTTP/3 open from any port to the one of the server.
#[test]
fn applications_over_quic_have_its_settings() {
    let quic = "quic = { congestion = \"bbr3\", datagram = \"1400 B\" }";
    let web = format!("[[traffic]]\nkind = \"web\"\nhttp = \"3\"\n{quic}\n");
    let backup = format!("[[traffic]]\nkind = \"backup\"\ntransport = \"quic\"\n{quic}\n");
    let scenario = scenario(&format!("{web}{backup}"));
    let plan = Plan::of(&scenario, None, Kernel::default()).unwrap();
    assert_eq!(plan.warnings().filter(|warning| warning.contains("bbr3 is BBR of the lab's QUIC")).count(), 2);
    for flow in plan.flows() {
        let Kind::Application(ApplicationPlan { connection: ConnectionPlan::Quic(quic), .. }) = flow.kind else {
            panic!("{flow:?}")
        };
        assert_eq!((quic.quic.datagram, quic.opener, quic.opener_port), (1400, End::Client, 0));
        assert_ne!(quic.listener_port, 0);
    }
}

#[test]
fn a_transfer_over_quic_has_the_ports_and_settings_of_its_traffic() {
    let traffic = "[[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\ntransport = \"quic\"\nbytes = \"1 MB\"\n\
                   quic = { congestion = \"bbr3\", max_ack_delay = \"5 ms\", datagram = \"1350 B\" }";
    let scenario = scenario(traffic);
    let plan = Plan::of(&scenario, None, Kernel::default()).unwrap();
    let warnings: Vec<&str> = plan.warnings().collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    let flow = plan.flows().remove(0);
    let Kind::Quic(quic) = flow.kind else { panic!("{flow:?}") };
    assert_eq!((quic.bytes, quic.quic.datagram, quic.opener), (Some(1_000_000), 1350, End::Client));
    assert_ne!(quic.opener_port, quic.listener_port);
}

/// `start_jitter` is 100 ms, and at most a tenth of the run: the two downloads start in the first 100 ms.
#[test]
fn flows_start_when_the_simulated_ones_do() {
    let scenario =
        scenario("[[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\ncount = 2\n[[traffic]]\nkind = \"ping\"\n");
    let plan = Plan::of(&scenario, None, Kernel::default()).unwrap();
    let starts: Vec<Instant> = plan.flows().iter().map(|flow| flow.start).collect();
    let simulated = lastmile_sim::run(&scenario.network()).unwrap();
    let pings = simulated.probes.iter().map(|probe| probe.start);
    assert_eq!(starts, simulated.flows.iter().map(|flow| flow.start).chain(pings).collect::<Vec<_>>());
    assert_eq!(starts, (0..starts.len()).map(|number| plan.start(number)).collect::<Vec<_>>());
    assert!(starts[0] != starts[1] && starts.iter().all(|start| *start < Instant::ZERO + Duration::from_ms(100)));
}

#[test]
fn a_file_that_sets_nothing_has_nothing_to_warn_of() {
    let bulk = scenario("[[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n");
    let plan = Plan::of(&bulk, None, Kernel::default()).unwrap();
    assert_eq!(plan.warnings().collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn traffic_of_ipv6_has_addresses_of_its_family_and_other_traffic_keeps_its_own() {
    let traffic = "[[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\nipv6 = true\n\
                   [[traffic]]\nkind = \"bulk\"\nname = \"named\"\ndirection = \"down\"\nipv6 = true\n\
                   server = \"2001:db8::7\"\n[[traffic]]\nkind = \"ping\"\n\
                   [[traffic]]\nkind = \"voice\"\ndirection = \"up\"\nipv6 = true\n";
    let scenario = scenario(traffic);
    let plan = Plan::of(&scenario, None, Kernel::default()).unwrap();
    let addresses: Vec<String> = plan.flows().iter().map(|flow| format!("{:?}", flow.addresses)).collect();
    let own = "[2001:2::2, 2001:2::1]";
    assert_eq!(addresses, [own, "[2001:2::2, 2001:db8::7]", "[198.18.0.2, 198.18.0.1]", own]);
    let call = plan.flows().into_iter().find_map(|flow| match flow.kind {
        Kind::Datagrams(plan) => Some(plan.payload),
        _ => None,
    });
    assert_eq!(call, Some(172), "160 bytes of sound and 12 of RTP");
    let segment = plan.flows().into_iter().find_map(|flow| match flow.kind {
        Kind::Transfer(plan) => Some(plan.segment),
        _ => None,
    });
    // With the timestamps' 12 bytes: 1500 less 40 of IPv6 and 20 of TCP.
    assert_eq!((segment, plan.config().line.mtu), (Some(1440), 1500));
}

/// 3.75 MiB are what a current Linux makes of 6 MiB of memory.
#[test]
fn windows_grow_unless_the_file_sets_one() {
    let bulk = "[[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n";
    let window = |text: &str| {
        let scenario = scenario(text);
        let plan = Plan::of(&scenario, None, Kernel::default()).unwrap();
        let window = plan.flows().into_iter().find_map(|flow| match flow.kind {
            Kind::Transfer(plan) => Some(plan.window),
            _ => None,
        });
        (window.unwrap(), plan.config().hosts.largest_window)
    };
    assert_eq!(window(bulk), (Window::Grows, Some(15 << 18)));
    assert_eq!(window(&format!("{bulk}tcp = {{ receive_window = \"64 KiB\" }}")), (Window::Fixed(65_536), None));
    let both = "tcp = { receive_window = \"1 MiB\", autotune = true }";
    assert_eq!(window(&format!("{bulk}{both}")), (Window::Grows, Some(1 << 20)));
}

#[test]
fn a_send_buffer_is_that_of_the_sockets() {
    let buffer = |key: &str| {
        let text = format!("[[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\ntcp = {{ {key} }}\n");
        let scenario = scenario(&text);
        let plan = Plan::of(&scenario, None, Kernel::default()).unwrap();
        let buffers = plan.flows().into_iter().filter_map(|flow| match flow.kind {
            Kind::Transfer(plan) => Some(plan.send_buffer),
            _ => None,
        });
        buffers.collect::<Vec<_>>()
    };
    assert_eq!(buffer("send_buffer = \"64 KiB\""), [Some(65_536)]);
    assert_eq!(buffer(""), [None]);
}

const DOWN_AND_UP: &str = r#"
    [[traffic]]
    name = "down"
    kind = "bulk"
    direction = "down"
    count = 2
    tcp = { variant = "sack" }
    [[traffic]]
    kind = "web"
    [[traffic]]
    name = "up"
    kind = "bulk"
    direction = "up"
    tcp = { variant = "cubic", receive_window = "64 KiB" }
"#;

#[test]
fn flows_have_the_simulators_names_ports_and_paths() {
    let scenario = scenario(DOWN_AND_UP);
    let plan = Plan::of(&scenario, None, Kernel::default()).unwrap();
    let rows: Vec<(usize, String)> = plan.rows().collect();
    let names: Vec<(usize, &str)> = rows.iter().map(|(traffic, name)| (*traffic, name.as_str())).collect();
    assert_eq!(names, [(0, "down-1"), (0, "down-2"), (1, "web"), (2, "up")]);
    let [data, acks] = plan.paths(3);
    assert_eq!((data[0], acks.len()), (0, 4));
    assert_eq!(plan.paths(0), [acks, data]);
    let ports: Vec<(End, u16, u16, String)> = plan
        .flows()
        .into_iter()
        .filter_map(|flow| match flow.kind {
            Kind::Transfer(plan) => Some((plan.opener, plan.opener_port, plan.listener_port, plan.congestion)),
            _ => None,
        })
        .collect();
    // The client opens every one; the web user between them has number 2.
    let reno = || "reno".to_owned();
    let expected = [(50_000, reno()), (50_001, reno()), (50_003, "cubic".to_owned())];
    assert_eq!(ports, expected.map(|(port, name)| (End::Client, port, 49_152, name)));
}

#[test]
fn connections_that_come_and_go_have_the_kernels_ports_and_count_as_many_as_may_be_open() {
    let small = scenario(DOWN_AND_UP);
    let plan = Plan::of(&small, None, Kernel::default()).unwrap();
    let web = plan.flows().into_iter().find_map(|flow| match flow.kind {
        Kind::Application(plan) => Some(plan.connection),
        _ => None,
    });
    let web = web.unwrap();
    assert_eq!((web.opener(), web.ports()), (End::Client, [0, 49_152]));
    assert_eq!(plan.sockets(), 2 + 6 + 1);
    let many = DOWN_AND_UP.replace("kind = \"web\"", "kind = \"web\"\ncount = 400");
    let error = Plan::of(&scenario(&many), None, Kernel::default()).err().unwrap();
    assert!(error.to_string().contains("2403 flows and connections"), "{error:?}");
}

#[test]
fn the_mtu_lets_the_largest_segment_through_with_its_options() {
    let mtu = |text: &str| Plan::of(&scenario(text), None, Kernel::default()).unwrap().config().line.mtu;
    let bulk = "[[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n";
    assert_eq!(mtu(bulk), 1500);
    assert_eq!(mtu(&format!("{bulk}tcp = {{ timestamps = false }}")), 1500);
    // Links of bare IP have no MTU of their own.
    let jumbo = "[[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"c\"\ntcp = { mss = \"8948 B\" }\n";
    assert_eq!(Plan::of(&own(jumbo), None, Kernel::default()).unwrap().config().line.mtu, 9000);
    let quic = "[[traffic]]\nkind = \"backup\"\nfrom = \"a\"\nto = \"c\"\ntransport = \"quic\"\n\
                quic = { datagram = \"3000 B\" }\n";
    assert_eq!(Plan::of(&own(quic), None, Kernel::default()).unwrap().config().line.mtu, 3028);
}

const OWN: &str = r#"
    duration = "1 s"
    [[link]]
    from = "a"
    to = "b"
    rate = "1 Mbit/s"
    [[link]]
    from = "b"
    to = "c"
    rate = "2 Mbit/s"
"#;

fn own(traffic: &str) -> Scenario {
    Scenario::parse("own.toml", &format!("{OWN}\n{traffic}"), &[]).unwrap()
}

#[test]
fn without_an_access_line_the_hosts_are_where_the_traffic_runs() {
    let ping = |from: &str, to: &str| format!("[[traffic]]\nkind = \"ping\"\nfrom = \"{from}\"\nto = \"{to}\"\n");
    let scenario = own(&ping("a", "c"));
    let plan = Plan::of(&scenario, None, Kernel::default()).unwrap();
    assert_eq!((plan.network().links.len(), plan.flows()[0].from), (4, End::Client));
    let ends = ("c".to_owned(), "a".to_owned());
    assert_eq!(Plan::of(&scenario, Some(&ends), Kernel::default()).unwrap().flows()[0].from, End::Server);
    let two = own(&format!("{}{}name = \"short\"\n", ping("a", "c"), ping("a", "b")));
    let error = Plan::of(&two, None, Kernel::default()).err().unwrap().to_string();
    assert!(error.contains("traffic.short runs from a to b, and the lab has hosts at a and c"), "{error}");
}

#[test]
fn a_scenario_without_traffic_or_with_several_clients_is_refused() {
    assert!(Plan::of(&scenario(""), None, Kernel::default()).is_err());
    assert!(Plan::of(&own(""), None, Kernel::default()).is_err());
    let several = LINE.replace("[access]", "[access]\nlines = 2");
    let several = Scenario::parse("lab.toml", &format!("{several}\n[[traffic]]\nkind = \"web\""), &[]).unwrap();
    let error = Plan::of(&several, None, Kernel::default()).err().unwrap().to_string();
    assert!(error.contains("access.lines is 2"), "{error}");
}
