//! The holds of a link besides its wire: shapers, grants, outages; and applications whose data wait.

use lastmile_results::schema::Flow;
use lastmile_results::{Origin, Summary, summarise};
use lastmile_scenario::Scenario;

fn simulated(text: &str) -> Summary {
    let scenario = Scenario::parse("f", text, &[]).unwrap_or_else(|report| panic!("{report}"));
    let network = scenario.network();
    let outcome = lastmile_sim::run(&network).expect("it can be run");
    summarise(&Origin::default(), &network, &outcome)
}

/// A run of 20 s over lines of 50 and 20 Mbit/s with these additions.
fn line(down: &str, up: &str, traffic: &str) -> Summary {
    simulated(&format!(
        "duration = \"20 s\"\n[access]\ndown = {{ rate = \"50 Mbit/s\", delay = \"10 ms\"{down} }}\n\
         up = {{ rate = \"20 Mbit/s\", delay = \"10 ms\"{up} }}\n{traffic}"
    ))
}

const DOWNLOAD: &str = "[[traffic]]\nname = \"x\"\nkind = \"bulk\"\ndirection = \"down\"\n";
const UPLOAD: &str = "[[traffic]]\nname = \"x\"\nkind = \"bulk\"\ndirection = \"up\"\n";

/// Bound and fair share of a flow, each with its cause.
fn limits(flow: &Flow) -> [(f64, &str); 2] {
    let limits = &flow.limits;
    let bound = limits.bound_bps.zip(limits.bound_by.as_deref());
    let share = limits.fair_share_bps.zip(limits.fair_share_by.as_deref());
    [bound, share].map(|limit| limit.expect("a transfer"))
}

/// Segments of 1448 in packets of 1500 bytes: 96.5 % of 5 Mbit/s, and in 20 s at most a burst of 5 kB more.
#[test]
fn a_shaper_is_the_bound_and_the_share() {
    let classes =
        "{ name = \"root\", rate = \"5 Mbit/s\" }, { name = \"leaf\", parent = \"root\", rate = \"5 Mbit/s\" }";
    for queue in [
        "{ kind = \"cake\", bandwidth = \"5 Mbit/s\" }".to_owned(),
        "{ kind = \"tbf\", rate = \"5 Mbit/s\", burst = \"5000 wire bytes\" }".to_owned(),
        format!("{{ kind = \"htb\", default = \"leaf\", classes = [{classes}] }}"),
    ] {
        let two = DOWNLOAD.replace("\"x\"\n", "\"x\"\ncount = 2\n");
        let run = line(&format!(", queue = {queue}"), "", &two);
        let carries = 5e6 * 1_448.0 / 1_500.0;
        for flow in &run.flows {
            let [(bound, by), (share, shared_by)] = limits(flow);
            assert_eq!(
                (by, shared_by),
                ("rate of the shaper of link down", "rate of the shaper of link down, shared by 2")
            );
            assert!((carries..carries + 20_000.0).contains(&bound) && (share - carries / 2.0).abs() < 1.0, "{flow:?}");
            let said = "rate of the shaper of link down (";
            assert!(flow.limits.explanation.starts_with(said), "{}", flow.limits.explanation);
        }
    }
    // Packets without a class are not shaped.
    let run = line(&format!(", queue = {{ kind = \"htb\", classes = [{classes}] }}"), "", DOWNLOAD);
    assert_eq!(limits(&run.flows[0])[0].1, "rate of link down");
}

/// DOCSIS 1.0: MAPs of 2 ms 3 ms ahead, asked for with the granted data: a packet in 4 ms, 2.896 Mbit/s. A download
/// has an ACK for two segments in each, twice as much.
#[test]
fn grants_of_single_packets_are_the_bound_and_the_share() {
    for (traffic, bps, by) in [
        (UPLOAD, 2.896e6, "grants of link up, one packet in 4 ms"),
        (DOWNLOAD, 5.792e6, "ACKs by the grants of link up, one packet in 4 ms"),
    ] {
        let run = line("", ", grants = \"docsis-1.0\"", traffic);
        let flow = &run.flows[0];
        let [(bound, bound_by), (share, shared_by)] = limits(flow);
        assert_eq!((bound_by, shared_by), (by, by));
        assert!((share - bps).abs() < 1.0, "{flow:?}");
        assert!(flow.goodput_bps <= bound && flow.goodput_bps > 0.9 * share, "{flow:?}");
        if traffic == UPLOAD {
            let said = &flow.limits.explanation;
            assert!(said.starts_with("grants of link up, one packet in 4 ms (9"), "{said}");
            // One request and one grant a packet, 4 ms later; the last one may wait.
            let up = run.links.iter().find(|link| link.name == "up").expect("a link");
            let grants = up.queue.grants.expect("grants");
            let waited = grants.request_grant_s;
            assert_eq!((grants.grants, waited.count, grants.granted_bytes), (up.packets, up.packets, up.ip_bytes));
            assert!((up.packets..=up.packets + 1).contains(&grants.requests), "{grants:?}");
            assert!(0 < grants.piggybacked && grants.piggybacked < grants.requests, "{grants:?}");
            assert_eq!((grants.collisions, grants.unused_bytes, grants.unrequested_bytes), (0, 0, 0));
            assert_eq!(waited.max, Some(0.004), "{waited:?}");
            let text = lastmile_results::table::run(&run, 120);
            let row = text.lines().skip_while(|line| !line.contains("Grants of link")).find(|l| l.contains(" up "));
            let words: Vec<_> = row.expect("a row").split("  ").map(str::trim).filter(|w| !w.is_empty()).collect();
            assert_eq!(words[words.len() - 2..], ["4 ms", "4 ms"], "{text}");
            // The bound adds data on the path at the end, and the packets that the span cuts.
            assert!(bound < share + 10_000.0, "{flow:?}");
        }
    }
}

fn blast(keys: &str) -> String {
    format!("[[traffic]]\nname = \"x\"\nkind = \"blast\"\ndirection = \"up\"\n{keys}")
}

/// Opportunities each 0.5 ms, and slots of 2 ms at least 3.2 ms after the request. At 20 Mbit/s 64 bytes are sent in
/// 26 us: the next request leaves at 0.5 ms and is granted at 4 ms. 1500 bytes are sent in 0.6 ms: it leaves at 1 ms
/// and is granted at 6 ms.
#[test]
fn a_station_asks_for_one_packet_after_the_other() {
    let grants = ", grants = { kind = \"docsis-1.0\", interval = \"2 ms\", request_every = \"500 us\", \
                  ahead = \"3200 us\", piggyback = false }";
    for (size, cycle_ms) in [(64_u32, 4_u32), (1_500, 6)] {
        let run = line("", grants, &blast(&format!("rate = \"3 Mbit/s\"\nsize = \"{size} bytes\"\n")));
        let flow = &run.flows[0];
        let [(bound, bound_by), (share, shared_by)] = limits(flow);
        let by = format!("grants of link up, one packet in {cycle_ms} ms");
        assert_eq!((bound_by, shared_by), (by.as_str(), by.as_str()));
        let expected = f64::from(size - 28) * 8e3 / f64::from(cycle_ms);
        assert!((share - expected).abs() < 1.0, "{flow:?}");
        assert!(flow.goodput_bps <= bound && flow.goodput_bps > 0.995 * share, "{flow:?}");
        assert!(flow.limits.explanation.starts_with(&format!("{by} (9")), "{}", flow.limits.explanation);
    }
}

/// A wire that is 5 % busy loses a tenth of the packets. All others have arrived, a second after the last one.
#[test]
fn a_source_that_waits_for_nothing_names_the_link_that_drops() {
    let run = line("", ", loss = \"10 %\"", &blast("rate = \"1 Mbit/s\"\nsize = \"1500 bytes\"\nstop = \"19 s\"\n"));
    let said = run.flows[0].limits.explanation.replace('\u{202f}', "");
    let numbers: Vec<u64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [sent, arrived, dropped] = numbers[..] else { panic!("{said}") };
    let words = "its source, which waits for nothing: ";
    assert_eq!(said, format!("{words}{sent} packets sent, {arrived} arrived; link up drops {dropped} packets"));
    assert!(dropped > 100 && sent == arrived + dropped, "{said}");
}

/// DOCSIS 2.0 without fragmentation. Slots of 2 ms are 5000 bytes at 20 Mbit/s, so 3 packets of 1500; 80 % of them hold
/// 2. A request is made with the granted data and answered 4 ms later.
#[test]
fn grants_of_whole_packets_are_the_bound_and_the_share() {
    let packet_bits = 1_448.0 * 8.0;
    for (keys, bps, by) in [
        ("", 20e6 * 1_448.0 / 1_500.0, "rate of link up"),
        (", share = \"80 %\"", 2.0 * packet_bits / 4e-3, "grants of link up, 4 kB of whole packets in 4 ms"),
        (
            ", largest = \"7000 wire bytes\"",
            4.0 * packet_bits / 4e-3,
            "grants of link up, 7 kB of whole packets in 4 ms",
        ),
        (", sustained = \"9 Mbit/s\"", 9e6 * 1_448.0 / 1_500.0, "rate of link up"),
    ] {
        let grants = format!(", grants = {{ kind = \"docsis-2.0\", fragmentation = false{keys} }}");
        let flow = &line("", &grants, UPLOAD).flows[0];
        let [(bound, bound_by), (share, shared_by)] = limits(flow);
        assert_eq!((bound_by, shared_by), (by, by));
        assert!((share - bps).abs() < 1.0, "{share}, expected {bps}");
        assert!(flow.goodput_bps <= bound && flow.goodput_bps > 0.97 * share, "{keys}: {flow:?}");
    }
}

/// The line falls to 500 kbit/s as the download stops, with a queue of 250 ms at 20 Mbit/s, 625 kB: 10 s.
#[test]
fn the_share_of_a_flow_that_delivers_after_its_stop_is_within_its_bound() {
    let trace = "steps = [{ at = \"0 s\", rate = \"20 Mbit/s\" }, { at = \"4 s\", rate = \"500 kbit/s\" }]";
    let run = line(
        &format!(", trace = {{ {trace} }}, queue = {{ limit = \"625 kB\" }}"),
        "",
        &DOWNLOAD.replace("\"x\"\n", "\"x\"\nstop = \"5 s\"\n"),
    );
    let flow = &run.flows[0];
    let [(bound, _), (share, _)] = limits(flow);
    assert!(flow.end_s.is_some_and(|end| end > 10.0) || flow.bytes_delivered > 0, "{flow:?}");
    assert!(share <= bound, "{flow:?}");
}

/// Nothing is lost: the requests wait behind the upload at the end of the run.
#[test]
fn requests_that_wait_are_not_lost() {
    let ping = "[[traffic]]\nname = \"ping\"\nkind = \"ping\"\ninterval = \"100 ms\"\n";
    let slow = ", trace = { steps = [{ at = \"0 s\", rate = \"1 Mbit/s\" }, { at = \"1 s\", rate = \"10 kbit/s\" }] }";
    let run = line("", &format!("{slow}, queue = {{ limit = \"1000 packets\" }}"), &format!("{UPLOAD}{ping}"));
    let probe = &run.probes[0];
    assert!(probe.received < probe.sent / 2 && probe.lost == 0, "{probe:?}");
    // A tenth is lost on the wire, either way.
    let lossy = line(", loss = \"10 %\"", "", ping);
    let probe = &lossy.probes[0];
    assert!(probe.lost > 5 && probe.lost + probe.received + 1 >= probe.sent, "{probe:?}");
}

/// Pictures of 400 kbit/s for a line of 300: with room for a segment in the queue nothing waits at the sender, with
/// room for ten packets its window is full.
#[test]
fn an_application_that_fills_the_line_is_limited_by_it() {
    for (limit, more) in [("1 MB", "all data were on their way for "), ("10 packets", "its connection: ")] {
        let run = simulated(&format!(
            "duration = \"60 s\"\n[access]\nup = {{ rate = \"1 Mbit/s\", delay = \"10 ms\" }}\n\
             down = {{ rate = \"300 kbit/s\", delay = \"10 ms\", queue = {{ limit = \"{limit}\" }} }}\n[[traffic]]\n\
             name = \"x\"\nkind = \"video\"\nladder = [\"400 kbit/s\"]\n"
        ));
        let said = &run.flows[0].limits.explanation;
        assert!(said.starts_with("rate of link down (9") && said.contains(more), "{limit}: {said}");
    }
}

/// 5 s of 20 without a line.
#[test]
fn an_outage_is_told() {
    let steps = "{ at = \"0 s\", rate = \"10 Mbit/s\" }, { at = \"5 s\", outage = true }, \
                 { at = \"10 s\", rate = \"10 Mbit/s\" }";
    let run = line(&format!(", trace = {{ steps = [{steps}] }}"), "", DOWNLOAD);
    let said = &run.flows[0].limits.explanation;
    assert!(said.contains("link down carried nothing for 5 s"), "{said}");
}

/// A line of 20 Mbit/s for 2 s and of 1 Mbit/s for 18.
const FALLS: &str =
    ", trace = { steps = [{ at = \"0 s\", rate = \"20 Mbit/s\" }, { at = \"2 s\", rate = \"1 Mbit/s\" }] }";

/// 5 Mbit/s of the line's 20 for 2 s, and its 1 Mbit/s after: 1.4 Mbit/s in the mean.
#[test]
fn a_shaper_before_a_slower_line_passes_what_the_line_does() {
    let queue = ", queue = { kind = \"tbf\", rate = \"5 Mbit/s\", burst = \"5000 wire bytes\" }";
    let run = line(&format!("{FALLS}{queue}"), "", DOWNLOAD);
    let flow = &run.flows[0];
    let [(bound, _), (share, shared_by)] = limits(flow);
    assert_eq!(shared_by, "rate of the shaper of link down");
    let passes = (2.0 * 5e6 + 18.0 * 1e6) / 20.0 * 1_448.0 / 1_500.0;
    assert!((share - passes).abs() < 1.0 && bound >= share, "{passes}: {flow:?}");
}

/// The capacity of the first seconds counts before a byte can arrive: the share is at most the bound.
#[test]
fn a_share_is_within_the_bound_of_a_line_that_falls() {
    let run = line(FALLS, "", DOWNLOAD);
    let [(bound, _), (share, _)] = limits(&run.flows[0]);
    assert!(share <= bound, "{:?}", run.flows[0]);
    for phase in &run.phases {
        let flow = &phase.flows[0];
        let within = flow.fair_share_bps.zip(flow.bound_bps).is_none_or(|(share, bound)| share <= bound);
        assert!(within, "{flow:?}");
    }
}

fn in_phase<'a>(run: &'a Summary, phase: &str, flow: &str) -> &'a lastmile_results::schema::PhaseFlow {
    let found = run.phases.iter().find(|other| other.name == phase).unwrap_or_else(|| panic!("{:?}", run.phases));
    found.flows.iter().find(|other| other.name == flow).expect("it is there")
}

/// A phase within an outage.
#[test]
fn a_phase_without_a_line_says_so() {
    let steps = "{ at = \"0 s\", rate = \"10 Mbit/s\" }, { at = \"5 s\", outage = true }, \
                 { at = \"15 s\", rate = \"10 Mbit/s\" }";
    let ping = "[[traffic]]\nname = \"ping\"\nkind = \"ping\"\nstart = \"6 s\"\nstop = \"12 s\"\n";
    let run = line(&format!(", trace = {{ steps = [{steps}] }}"), "", &format!("{DOWNLOAD}{ping}"));
    let flow = in_phase(&run, "during ping", "x");
    let said = &flow.explanation;
    assert!(said.ends_with("; link down carries nothing"), "{said}");
    assert_eq!((flow.bound_bps, flow.bound_by.as_deref()), (None, Some("none: link down carries nothing")));
    // The whole run has a bound unless the line never sends within it.
    assert!(run.flows[0].limits.bound_bps.is_some());
    let never = "{ at = \"0 s\", outage = true }, { at = \"1 h\", rate = \"10 Mbit/s\" }";
    let run = line(&format!(", trace = {{ steps = [{never}] }}"), "", DOWNLOAD);
    let limits = &run.flows[0].limits;
    assert_eq!((limits.bound_bps, limits.bound_by.as_deref()), (None, Some("none: link down carries nothing")));
}

/// A full queue drains after the stop: nothing was retransmitted, and the FIN has no answer yet.
#[test]
fn a_flow_that_has_stopped_waits_for_its_last_data() {
    let stopped = DOWNLOAD.replace("\"x\"\n", "\"x\"\nstop = \"5 s\"\ntcp = { receive_window = \"1 MB\" }\n");
    let run = simulated(&format!(
        "duration = \"20 s\"\n[access]\nup = {{ rate = \"1 Mbit/s\", delay = \"10 ms\" }}\n\
         down = {{ rate = \"1 Mbit/s\", delay = \"10 ms\", queue = {{ limit = \"1 MB\" }} }}\n{stopped}"
    ));
    let said = &in_phase(&run, "after x", "x").explanation;
    assert!(said.contains("waiting for its last data to be acknowledged"), "{said}");
}

/// A transfer of 20 kB waits longest for its handshake: a round trip of 40 ms, with packets of 1200 bytes over QUIC.
#[test]
fn a_short_flow_waits_for_its_handshake_too() {
    for transport in ["tcp", "quic"] {
        let run = simulated(&format!(
            "duration = \"5 s\"\n[access]\nup = {{ rate = \"128 kbit/s\", delay = \"20 ms\" }}\n\
             down = {{ rate = \"10 Mbit/s\", delay = \"20 ms\" }}\n[[traffic]]\nname = \"x\"\nkind = \"bulk\"\n\
             bytes = \"20 kB\"\ndirection = \"down\"\ntransport = \"{transport}\"\n"
        ));
        let said = &run.flows[0].limits.explanation;
        assert!(
            said.starts_with("waiting for its handshake and its last data to be acknowledged; round trip "),
            "{said}"
        );
    }
}

/// 10 Mbit/s of datagrams for a line of 1, and for one of 50. Nothing of a wire of 1 Gbit/s counts as under way.
#[test]
fn datagrams_on_a_full_line_are_told() {
    let blast = "[[traffic]]\nname = \"x\"\nkind = \"blast\"\nrate = \"10 Mbit/s\"\ndirection = \"down\"\n";
    let ping = "[[traffic]]\nname = \"ping\"\nkind = \"ping\"\nstart = \"10 s\"\n";
    let run = line("", "", &format!("{blast}{ping}"));
    let flow = in_phase(&run, "during ping", "x");
    assert_eq!(flow.explanation, "the source, which sends on its own schedule");
    assert!(flow.bound_bps.is_some_and(|bound| bound < 1.01 * flow.goodput_bps), "{flow:?}");
    let slow = simulated(&format!(
        "duration = \"20 s\"\n[access]\nup = {{ rate = \"1 Mbit/s\" }}\ndown = {{ rate = \"1 Mbit/s\" }}\n{blast}{ping}"
    ));
    let said = &in_phase(&slow, "during ping", "x").explanation;
    assert_eq!(said, "the source, which sends on its own schedule; link down is 100 % busy");
}

/// In the last 0.1 ms a packet or two decide.
#[test]
fn a_phase_of_a_few_packets_has_no_bound() {
    let late = UPLOAD.replace("\"x\"", "\"late\"").replace("\"up\"\n", "\"up\"\nstart = \"19.9999 s\"\n");
    let run = line("", "", &format!("{DOWNLOAD}{late}"));
    let flow = in_phase(&run, "during late", "x");
    assert_eq!((flow.bound_bps, &flow.bound_by), (None, &None), "{flow:?}");
    let opening = &in_phase(&run, "during late", "late").explanation;
    assert!(opening.contains("waiting for a handshake or its last data to be acknowledged"), "{opening}");
}
