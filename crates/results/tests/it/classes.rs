//! Ceilings of classes and rates of policers: bound, fair share and limit of the flows that pass them for certain.

use lastmile_results::schema::Flow;
use lastmile_results::{Origin, Summary, summarise};
use lastmile_scenario::Scenario;

/// A run of 20 s.
fn simulated(access: &str, traffic: &str) -> Summary {
    let text = format!("duration = \"20 s\"\n[access]\n{access}\n{traffic}");
    let scenario = Scenario::parse("f", &text, &[]).unwrap_or_else(|report| panic!("{report}"));
    let network = scenario.network();
    let outcome = lastmile_sim::run(&network).expect("it can be run");
    summarise(&Origin::default(), &network, &outcome)
}

fn bulk(name: &str, direction: &str, more: &str) -> String {
    format!("[[traffic]]\nname = \"{name}\"\nkind = \"bulk\"\ndirection = \"{direction}\"\n{more}\n")
}

fn by(flow: &Flow) -> [&str; 2] {
    let limits = &flow.limits;
    [&limits.bound_by, &limits.fair_share_by].map(|by| by.as_deref().expect("a transfer"))
}

/// The bound is the rate and what passes beyond it until the end at 20 s: `burst` bytes, and two segments of 1448.
fn is_bound(flow: &Flow, bps: f64, burst: f64) {
    let expected = bps + (burst + 2.0 * 1448.0) * 8.0 / (20.0 - flow.start_s);
    let bound = flow.limits.bound_bps.expect("a transfer");
    assert!((bound - expected).abs() < 1.0, "{bound}, expected {expected}: {flow:?}");
    assert!(flow.goodput_bps <= bound, "{flow:#?}");
}

const GUESTS: &str = "encapsulation = \"docsis\"\n\
    down = { rate = \"100 Mbit/s\", delay = \"5 ms\" }\n\
    [access.up]\nrate = \"20 Mbit/s\"\ndelay = \"5 ms\"\n\
    queue = { kind = \"htb\", default = \"rest\", classes = [ { name = \"line\", rate = \"19 Mbit/s\" }, \
    { name = \"guest\", parent = \"line\", rate = \"1 Mbit/s\", ceil = \"4 Mbit/s\", \
    match = { source = \"10.0.9.0/24\" }, queue = { kind = \"fq-codel\" } }, \
    { name = \"rest\", parent = \"line\", rate = \"18 Mbit/s\", ceil = \"19 Mbit/s\", \
    queue = { kind = \"fq-codel\" } } ] }";

/// DOCSIS carries 1448 bytes in 1518. A class has two bursts of its rate and two of its ceiling, 3000 bytes each, and a
/// packet of debt of as much.
#[test]
fn a_guest_is_bound_by_the_ceiling_of_its_class() {
    let run = simulated(GUESTS, &bulk("guest", "up", "client = \"10.0.9.5\""));
    let [guest] = run.flows.as_slice() else { panic!("one flow") };
    let ceiling = "ceiling of class guest of link up";
    assert_eq!(by(guest), [ceiling; 2]);
    is_bound(guest, 4e6 * 1448.0 / 1518.0, 15_000.0);
    assert!(guest.goodput_bps > 0.98 * guest.limits.bound_bps.unwrap(), "{guest:#?}");
    let said = &guest.limits.explanation;
    assert!(said.starts_with("ceiling of class guest of link up (9") && !said.contains("shared"), "{said}");
}

/// A class of HTB without a parent has nobody to borrow from: it sends at its rate, whatever its ceiling.
#[test]
fn a_class_without_a_parent_is_bound_by_its_rate() {
    let access = "down = { rate = \"100 Mbit/s\", delay = \"5 ms\" }\n\
        up = { rate = \"20 Mbit/s\", delay = \"5 ms\", queue = { kind = \"htb\", default = \"only\", classes = [ \
        { name = \"only\", rate = \"4 Mbit/s\", ceil = \"19 Mbit/s\" } ] } }";
    let run = simulated(access, &bulk("upload", "up", ""));
    let [upload] = run.flows.as_slice() else { panic!("one flow") };
    assert_eq!(by(upload), ["rate of the shaper of link up"; 2]);
    is_bound(upload, 4e6 * 1448.0 / 1500.0, 15_000.0);
    assert!(upload.goodput_bps > 0.98 * upload.limits.bound_bps.unwrap(), "{upload:#?}");
    let said = &upload.limits.explanation;
    assert!(said.starts_with("rate of the shaper of link up (9"), "{said}");
    let shaped: Vec<_> = run.links.iter().filter_map(|link| link.queue.shaper_rate_bps).collect();
    assert_eq!(shaped, [4e6]);
}

/// A CAKE that shapes for a later line over ATM: with PPPoE and LLC a packet of 1500 bytes has 33 cells there, and 1500
/// bytes on this wire. Its clock lets one packet pass at once, of 2000 bytes at most.
#[test]
fn cake_is_bound_by_the_encapsulation_that_it_counts() {
    let access = "down = { rate = \"10 Mbit/s\", delay = \"5 ms\", queue = { kind = \"cake\", \
        bandwidth = \"5 Mbit/s\", encapsulation = \"pppoe-llcsnap\" } }\n\
        up = { rate = \"1 Mbit/s\", delay = \"5 ms\" }";
    let run = simulated(access, &bulk("download", "down", ""));
    let [download] = run.flows.as_slice() else { panic!("one flow") };
    assert_eq!(by(download), ["rate of the shaper of link down"; 2]);
    let bps = 5e6 * 1448.0 / (33.0 * 53.0);
    is_bound(download, bps, 2_000.0);
    assert!((download.limits.fair_share_bps.unwrap() - bps).abs() < 0.1 && download.goodput_bps > 0.98 * bps);
    let said = &download.limits.explanation;
    assert!(said.starts_with("rate of the shaper of link down (9"), "{said}");
    let shaped: Vec<_> = run.links.iter().filter_map(|link| link.queue.shaper_rate_bps).collect();
    assert_eq!(shaped, [5e6]);
}

/// A guarantee of HFSC passes an upper limit below it, and the other class of that limit has no more than it. Limit and
/// guarantee each let a packet of 2000 bytes pass at once, and the limit makes up for the time before the flow.
#[test]
fn a_guarantee_above_the_upper_limit_is_the_ceiling_of_its_packets() {
    let access = "down = { rate = \"100 Mbit/s\", delay = \"5 ms\" }\n\
        up = { rate = \"20 Mbit/s\", delay = \"5 ms\", queue = { kind = \"hfsc\", classes = [ \
        { name = \"line\", ls = \"4 Mbit/s\", ul = \"4 Mbit/s\" }, \
        { name = \"call\", parent = \"line\", rt = \"6 Mbit/s\", match = { dscp = 46 } }, \
        { name = \"rest\", parent = \"line\", ls = \"1 Mbit/s\" } ] } }";
    for (more, mbit, burst) in [("dscp = 46", 6.0, 4_000.0), ("", 4.0, 2_000.0)] {
        let run = simulated(access, &bulk("upload", "up", more));
        let upload = &run.flows[0];
        assert_eq!(by(upload), ["rate of the shaper of link up"; 2]);
        let bps = mbit * 1e6 * 1448.0 / 1500.0;
        is_bound(upload, bps, burst + bps * upload.start_s / 8.0);
        assert!((upload.limits.fair_share_bps.unwrap() - bps).abs() < 0.1, "{upload:#?}");
        let said = &upload.limits.explanation;
        assert!(said.starts_with("rate of the shaper of link up (9"), "{said}");
        let shaped: Vec<_> = run.links.iter().filter_map(|link| link.queue.shaper_rate_bps).collect();
        assert_eq!(shaped, [6e6]);
    }
}

/// A leaf of HFSC without a share has its guarantee alone. 10 Mbit/s for 100 ms, then 2 Mbit/s, are 100 kB ahead of
/// 2 Mbit/s. A curve that begins late has nothing ahead.
#[test]
fn a_guarantee_without_a_share_is_the_ceiling_of_its_class() {
    for (curve, ahead) in [
        ("\"2 Mbit/s\"", 0.0),
        ("{ m1 = \"10 Mbit/s\", d = \"100 ms\", m2 = \"2 Mbit/s\" }", 100_000.0),
        ("{ d = \"100 ms\", m2 = \"2 Mbit/s\" }", 0.0),
    ] {
        let access = format!(
            "down = {{ rate = \"100 Mbit/s\", delay = \"5 ms\" }}\n\
             up = {{ rate = \"20 Mbit/s\", delay = \"5 ms\", queue = {{ kind = \"hfsc\", classes = [ \
             {{ name = \"line\", ls = \"20 Mbit/s\" }}, \
             {{ name = \"call\", parent = \"line\", rt = {curve}, match = {{ dscp = 46 }} }}, \
             {{ name = \"rest\", parent = \"line\", ls = \"1 Mbit/s\" }} ] }} }}"
        );
        for more in ["dscp = 46", "dscp = 46\nstart = \"10 s\""] {
            let run = simulated(&access, &(bulk("upload", "up", more) + &bulk("other", "up", "")));
            let upload = run.flows.iter().find(|flow| flow.name.starts_with("upload")).expect("the upload");
            let ceiling = "ceiling of class call of link up";
            assert_eq!(by(upload), [ceiling; 2], "{curve}");
            let bps = 2e6 * 1448.0 / 1500.0;
            is_bound(upload, bps, ahead + 2_000.0 + bps * upload.start_s / 8.0);
            assert!(upload.goodput_bps > 0.95 * bps, "{curve}: {upload:#?}");
            let said = &upload.limits.explanation;
            assert!(said.starts_with("ceiling of class call of link up ("), "{said}");
        }
    }
}

/// Two guests share 4 Mbit/s. The other upload has the rest of the 19 Mbit/s.
#[test]
fn flows_of_a_class_share_its_ceiling_and_others_the_rest() {
    let traffic = bulk("guest", "up", "client = \"10.0.9.5\"\ncount = 2") + &bulk("own", "up", "client = \"10.0.1.5\"");
    let run = simulated(GUESTS, &traffic);
    let mbit = |flow: &Flow| flow.limits.fair_share_bps.expect("a transfer") * 1518.0 / 1448.0 / 1e6;
    for (flow, share) in run.flows.iter().zip([2.0, 2.0, 15.0]) {
        assert!((mbit(flow) - share).abs() < 1e-6, "{flow:#?}");
    }
    let words = run.flows.iter().map(by).collect::<Vec<_>>();
    let of_guest = ["ceiling of class guest of link up", "ceiling of class guest of link up, shared by 2"];
    assert_eq!(words[..2], [of_guest; 2]);
    assert_eq!(words[2], ["rate of the shaper of link up"; 2]);
}

/// A send buffer of 300 bytes makes packets of 340, which go to the class `rest`: one in a round trip of 30 ms of
/// propagation, and 2.72 and 0.32 ms on the line. The class of full packets has 20 kbit/s.
#[test]
fn a_small_send_buffer_passes_no_class_of_full_packets() {
    let line = "down = { rate = \"1 Mbit/s\", delay = \"5 ms\" }\n\
        [access.up]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n\
        queue = { kind = \"htb\", default = \"rest\", classes = [ { name = \"root\", rate = \"1 Mbit/s\" }, \
        { name = \"big\", parent = \"root\", rate = \"10 kbit/s\", ceil = \"20 kbit/s\", \
        match = { at_least = \"600 B\" } }, \
        { name = \"rest\", parent = \"root\", rate = \"500 kbit/s\", ceil = \"1 Mbit/s\" } ] }";
    let tcp = |buffer: &str| format!("tcp = {{ era = \"1999\", send_buffer = \"{buffer}\", delayed_ack = \"0 ms\" }}");
    let run = simulated(line, &bulk("small", "up", &tcp("300 B")));
    let small = &run.flows[0];
    for by in by(small) {
        assert!(by.starts_with("send buffer 300 bytes / empty round trip 33"), "{by}");
    }
    assert!(small.goodput_bps > 70e3 && small.goodput_bps <= small.limits.bound_bps.unwrap(), "{small:#?}");
    let full = simulated(line, &bulk("full", "up", &tcp("1460 B")));
    assert_eq!(by(&full.flows[0])[0], "ceiling of class big of link up");
}

/// The first tier of `fq-codel-sqm` has 33 % of 95 % of the line. PPPoE over PTM carries 1440 bytes of a packet of 1492
/// in 1546: with 8 of PPPoE, 18 of Ethernet and 4 of PTM it has 1522, and 65 for each 64 of them.
#[test]
fn urgent_data_of_sqm_is_bound_by_its_tier() {
    let line = "encapsulation = \"pppoe-ptm\"\npolicy = \"fq-codel-sqm\"\n\
        down = { rate = \"16 Mbit/s\", delay = \"5 ms\" }\nup = { rate = \"1 Mbit/s\", delay = \"5 ms\" }";
    let run = simulated(line, &bulk("urgent", "up", "dscp = \"EF\""));
    let urgent = &run.flows[0];
    assert_eq!(by(urgent), ["ceiling of class express of link middlebox-up"; 2]);
    let [bound, share] = [urgent.limits.bound_bps, urgent.limits.fair_share_bps].map(|bps| bps.expect("a transfer"));
    assert!((share - 0.33 * 0.95e6 * 1440.0 / 1546.0).abs() < 0.1, "{urgent:#?}");
    assert!((share..share + 5_000.0).contains(&bound) && urgent.goodput_bps > 0.95 * bound, "{urgent:#?}");
}

/// Conditions that change within a connection decide nothing: half of its bytes may pass before they hold.
#[test]
fn a_class_that_a_connection_joins_later_is_no_bound() {
    let access = GUESTS.replace("source = \"10.0.9.0/24\"", "connection_bytes = \"> 100 kB\"");
    let run = simulated(&access, &bulk("guest", "up", ""));
    assert_eq!(by(&run.flows[0]), ["rate of the shaper of link up"; 2]);
}

/// A policer lets its rate pass and its burst, and the bytes of a packet on the wire: 1500.
#[test]
fn a_policer_is_the_bound() {
    for (meter, mbit, burst) in [
        ("kind = \"police\", rate = \"50 Mbit/s\", burst = \"100000 wire bytes\"", 50.0, 100_000.0),
        (
            "kind = \"srtcm\", rate = \"30 Mbit/s\", burst = \"50000 wire bytes\", \
             excess_burst = \"70000 wire bytes\"",
            30.0,
            50_000.0,
        ),
        (
            "kind = \"car\", rate = \"40 Mbit/s\", burst = \"50000 wire bytes\", \
             extended_burst = \"90000 wire bytes\"",
            40.0,
            140_000.0,
        ),
    ] {
        let down = format!(
            "up = {{ rate = \"100 Mbit/s\", delay = \"5 ms\" }}\n\
             down = {{ rate = \"1 Gbit/s\", delay = \"5 ms\", \
             queue = {{ kind = \"policer\", meter = {{ {meter} }} }} }}"
        );
        let run = simulated(&down, &bulk("download", "down", ""));
        assert_eq!(by(&run.flows[0]), ["policer of link down"; 2]);
        is_bound(&run.flows[0], mbit * 1e6 * 1448.0 / 1500.0, burst);
    }
}

/// Where yellow packets pass, the peak rate bounds; where red ones do, nothing.
#[test]
fn the_rate_of_a_policer_is_that_of_the_packets_that_pass() {
    for (actions, expected) in [
        (", exceed = \"transmit\"", Some((60.0, 90_000.0))),
        ("", Some((30.0, 50_000.0))),
        (", exceed = \"transmit\", violate = \"transmit\"", None),
        (", match = { dscp = \"EF\" }", None),
    ] {
        let down = format!(
            "up = {{ rate = \"100 Mbit/s\", delay = \"5 ms\" }}\n\
             down = {{ rate = \"1 Gbit/s\", delay = \"5 ms\", queue = {{ kind = \"policer\"{actions}, meter = {{ \
             kind = \"trtcm\", rate = \"30 Mbit/s\", burst = \"50000 wire bytes\", peak = \"60 Mbit/s\", \
             peak_burst = \"90000 wire bytes\" }} }} }}"
        );
        let run = simulated(&down, &bulk("download", "down", ""));
        match expected {
            Some((mbit, burst)) => {
                assert_eq!(by(&run.flows[0]), ["policer of link down"; 2]);
                is_bound(&run.flows[0], mbit * 1e6 * 1448.0 / 1500.0, burst);
            }
            None => assert_eq!(run.flows[0].limits.bound_by.as_deref(), Some("rate of link down"), "{actions}"),
        }
    }
}

/// A bounded class of CBQ, and an upper limit of HFSC, of 4 Mbit/s. A class of CBQ has twice its burst, and a packet of
/// debt of 3000 bytes; an upper limit a packet of 2000.
#[test]
fn a_bounded_class_and_an_upper_limit_are_the_bound() {
    for (classes, burst) in [
        (
            "kind = \"cbq\", rate = \"20 Mbit/s\", classes = [\
             { name = \"guest\", share = \"20 %\", borrow = false, burst = \"5000 wire bytes\", \
             match = { dscp = 46 } }, \
             { name = \"rest\", share = \"80 %\" }]",
            13_000.0,
        ),
        (
            "kind = \"hfsc\", classes = [\
             { name = \"guest\", ls = \"1 Mbit/s\", ul = \"4 Mbit/s\", match = { dscp = 46 } }, \
             { name = \"rest\", ls = \"9 Mbit/s\" }]",
            2_000.0,
        ),
    ] {
        let up = format!(
            "down = {{ rate = \"100 Mbit/s\", delay = \"5 ms\" }}\n\
             up = {{ rate = \"20 Mbit/s\", delay = \"5 ms\", queue = {{ {classes} }} }}"
        );
        let run = simulated(&up, &bulk("urgent", "up", "dscp = 46"));
        assert_eq!(by(&run.flows[0]), ["ceiling of class guest of link up"; 2]);
        let bps = 4e6 * 1448.0 / 1500.0;
        // The upper limit makes up for the time without packets before the flow.
        let saved = if classes.contains("hfsc") { bps * run.flows[0].start_s / 8.0 } else { 0.0 };
        is_bound(&run.flows[0], bps, burst + saved);
        let run = simulated(&up, &bulk("other", "up", ""));
        assert_eq!(by(&run.flows[0]), ["rate of link up"; 2]);
    }
}
