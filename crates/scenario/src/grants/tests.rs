use super::*;
use crate::Scenario;

#[test]
fn every_preset_can_be_built() {
    for preset in &PRESETS {
        let text = format!(
            "duration = \"1 s\"\n[access]\ndown = {{ rate = \"1 Mbit/s\" }}\n\
             up = {{ rate = \"1 Mbit/s\", grants = {:?} }}\n",
            preset.name
        );
        let scenario = Scenario::parse("f", &text, &[]).unwrap_or_else(|report| panic!("{report}"));
        let up = scenario.network_ref().links.iter().find(|link| link.hop.name == "up").expect("a line");
        assert!(up.hop.line.grants.is_some());
    }
    // The burst of the schema and of the mechanism.
    assert_eq!(LARGEST_PACKET, WireBytes::new(1600));
}

/// `none` is a line without grants at its rate, also over grants of the file.
#[test]
fn grants_can_be_switched_off() {
    let text = "duration = \"1 s\"\n[access]\ndown = { rate = \"1 Mbit/s\" }\n\
                up = { rate = \"2 Mbit/s\", grants = { kind = \"docsis-3.1\", sustained = \"1 Mbit/s\" } }\n";
    let off = Scenario::parse("f", text, &["access.up.grants=none".to_owned()]).expect("no grants");
    let up = off.network_ref().links.iter().find(|link| link.hop.name == "up").expect("a line");
    assert!(up.hop.line.grants.is_none());
    assert_eq!(up.hop.line.rate, Some(BitRate::from_mbit_per_s(2)));
}

fn errors(up: &str) -> String {
    let text = format!("duration = \"1 s\"\n[access]\ndown = {{ rate = \"1 Mbit/s\" }}\nup = {{ {up} }}\n");
    Scenario::parse("f", &text, &[]).map(|_| ()).expect_err("it is wrong").to_string()
}

#[test]
fn what_cannot_work_is_refused_at_its_key() {
    let unknown = errors("rate = \"1 Mbit/s\", grants = \"docsis\"");
    assert!(unknown.contains("unknown grants \"docsis\"") && unknown.contains("docsis-3.1"), "{unknown}");
    // One that is near a known one is near several.
    let kind = errors("rate = \"1 Mbit/s\", grants = { kind = \"docsis-3.0\" }");
    assert!(kind.contains("unknown kind \"docsis-3.0\""), "{kind}");
    assert!(kind.contains(&format!("hint: known: {}", NAMES.join(", "))), "{kind}");
    let pattern = errors("rate = \"1 Mbit/s\", grants = { kind = \"5g-tdd\", pattern = \"DDX\" }");
    assert!(pattern.contains("access.up.grants.pattern: 'X' is no slot"), "{pattern}");
    let never = errors("rate = \"1 Mbit/s\", grants = { kind = \"5g-tdd\", pattern = \"DDD\" }");
    assert!(never.contains("grants.pattern: no slot of the pattern may be used"), "{never}");
    let parts = errors(
        "rate = \"1 Mbit/s\", grants = { kind = \"docsis-2.0\", fragmentation = false, outstanding = \"many\" }",
    );
    assert!(parts.contains("access.up.grants.fragmentation: without fragmentation"), "{parts}");
    let steps =
        |grants| errors(&format!("trace = {{ steps = [{{ at = \"0 s\", rate = \"1 Mbit/s\" }}] }}, grants = {grants}"));
    let whole = steps("{ kind = \"docsis-2.0\", fragmentation = false, outstanding = \"one\" }");
    assert!(whole.contains("access.up.grants.fragmentation: with a trace packets are cut"), "{whole}");
    let limited = steps("{ kind = \"docsis-3.1\", sustained = \"400 kbit/s\" }");
    assert!(limited.contains("access.up.grants.sustained: with a trace packets are cut"), "{limited}");
}

/// 23 % of 132 Mbit/s: of five slots of 0.5 ms one and two of fourteen symbols of another. Steps of 1 s are 400 rounds.
#[test]
fn grants_share_the_rates_of_a_trace() {
    let text = "duration = \"4 s\"\n[access]\ndown = { rate = \"1 Mbit/s\" }\n[access.up]\ngrants = \"5g-tdd\"\n\
                trace = { steps = [{ at = \"0 s\", rate = \"132 Mbit/s\" }, \
                { at = \"1 s\", rate = \"66 Mbit/s\" }] }\n";
    let scenario = Scenario::parse("f", text, &[]).unwrap_or_else(|report| panic!("{report}"));
    let up = scenario.network_ref().links.iter().find(|link| link.hop.name == "up").expect("a line").clone();
    let line = up.hop.line;
    let constant = "duration = \"4 s\"\n[access]\ndown = { rate = \"1 Mbit/s\" }\n\
                    [access.up]\ngrants = \"5g-tdd\"\nrate = \"132 Mbit/s\"\n";
    let constant = Scenario::parse("f", constant, &[]).unwrap_or_else(|report| panic!("{report}"));
    let at_most = constant.network_ref().links.iter().find(|link| link.hop.name == "up").expect("a line").hop.line.rate;
    let Some(Trace::Steps(steps)) = &line.trace else { panic!("a trace") };
    let rates: Vec<_> = steps.steps().iter().map(|step| step.rate).collect();
    let [first, second] = [rates[0].unwrap().as_bps(), rates[1].unwrap().as_bps()];
    let at_most = at_most.unwrap().as_bps();
    assert_eq!((first, second), (at_most, at_most / 2));
    // 1 s of four with the first rate.
    assert_eq!(line.rate.map(BitRate::as_bps), Some((first + 3 * second) / 4));
    assert_eq!(line.grants.map(|grants| grants.rate), Some(BitRate::from_mbit_per_s(132)));
    let opportunities = errors("trace = { file = \"lte.mahi\" }, grants = \"lte\"");
    assert!(!opportunities.is_empty());
}

/// 580 of 2500 us of 40 and 80 Mbit/s, each for 6 ms: steps that end within a round of the slots have no more. The way
/// back of a link has the same grants and its own delay.
#[test]
fn the_mean_of_a_granted_trace_is_that_of_its_usable_slots() {
    let text = "duration = \"1 s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\ndelay = \"10 ms\"\n\
                grants = { kind = \"5g-tdd\", special = \"16 %\" }\nback = { delay = \"3 ms\" }\n\
                trace = { repeat = \"12 ms\", steps = [{ at = \"0 s\", rate = \"40 Mbit/s\" }, \
                { at = \"6 ms\", rate = \"80 Mbit/s\" }] }\n";
    let scenario = Scenario::parse("f", text, &[]).unwrap_or_else(|report| panic!("{report}"));
    let kbit = |rate: Option<BitRate>| rate.map(|rate| rate.as_bps() / 1_000);
    for (link, delay_ms) in scenario.network_ref().links.iter().zip([10, 3]) {
        let line = &link.hop.line;
        let Some(Trace::Steps(steps)) = &line.trace else { panic!("a trace") };
        let rates: Vec<_> = steps.steps().iter().map(|step| kbit(step.rate)).collect();
        assert_eq!((kbit(line.rate), rates), (Some(13_920), vec![Some(9_280), Some(18_560)]));
        let delays = line.grants.as_ref().and_then(|grants| grants.trace.as_ref()).expect("a trace").steps();
        assert!(delays.iter().all(|step| step.delay == Duration::from_ms(delay_ms)));
        // 4.8 rounds of the first 12 ms, and the whole of 60 ms.
        assert_eq!(kbit(line.mean_rate(Duration::from_ms(60))), Some(13_920));
    }
}

/// DOCSIS has 3044 bytes, which is more than a packet of 1600 bytes and 2 ms of 5 Mbit/s, 1250 bytes. 2 ms of 50
/// Mbit/s are 12 500 bytes; a round of DDDSU is 2.5 ms, in which 100 Mbit/s bring 31 250 bytes.
#[test]
fn a_bucket_holds_what_its_rate_brings_between_two_grants() {
    let burst = |grants: &str| {
        let text = format!(
            "duration = \"1 s\"\n[access]\ndown = {{ rate = \"1 Mbit/s\" }}\n\
             up = {{ rate = \"1 Gbit/s\", grants = {{ {grants} }} }}\n"
        );
        let scenario = Scenario::parse("f", &text, &[]).unwrap_or_else(|report| panic!("{report}"));
        let up = scenario.network_ref().links.iter().find(|link| link.hop.name == "up").expect("a line").clone();
        up.hop.line.grants.expect("grants").limits.iter().map(|limit| limit.burst.as_u64()).collect::<Vec<_>>()
    };
    assert_eq!(burst("kind = \"docsis-3.1\", sustained = \"5 Mbit/s\""), [3044]);
    assert_eq!(burst("kind = \"docsis-3.1\", sustained = \"50 Mbit/s\", peak = \"100 Mbit/s\""), [14_100, 26_600]);
    assert_eq!(burst("kind = \"5g-tdd\", sustained = \"100 Mbit/s\""), [32_850]);
    // Whole bursts: 7 ms of 50 Mbit/s, 43 750 bytes. One packet is asked for at a time, and 2 ms.
    let whole = "fragmentation = false, sustained = \"50 Mbit/s\"";
    assert_eq!(burst(&format!("kind = \"docsis-2.0\", {whole}")), [45_350]);
    assert_eq!(burst(&format!("kind = \"docsis-1.0\", {whole}")), [14_100]);
    assert_eq!(burst("kind = \"docsis-3.1\", sustained = \"50 Mbit/s\", burst = \"3044 wire bytes\""), [3044]);
}

/// 250 bytes in each millisecond are 2 Mbit/s.
#[test]
fn proactive_grants_beyond_the_rate_of_the_service_flow_are_told() {
    let warnings = |grants: &str| {
        let text = format!(
            "duration = \"1 s\"\n[access]\ndown = {{ rate = \"1 Mbit/s\" }}\n\
             up = {{ rate = \"100 Mbit/s\", grants = {{ {grants} }} }}\n"
        );
        let scenario = Scenario::parse("f", &text, &[]).unwrap_or_else(|report| panic!("{report}"));
        scenario.warnings().to_string()
    };
    let told = warnings("kind = \"docsis-lld\", sustained = \"1 Mbit/s\"");
    let expected = "access.up.grants.sustained: proactive grants bring 2 Mbit/s, more than 1 Mbit/s";
    assert!(told.contains(expected), "{told}");
    assert_eq!(warnings("kind = \"docsis-lld\", sustained = \"2 Mbit/s\""), "");
    let peak = warnings("kind = \"docsis-lld\", peak = \"1 Mbit/s\"");
    assert!(peak.contains("access.up.grants.peak: proactive grants bring"), "{peak}");
}

/// DOCSIS 1.1 and 2.0 concatenate and fragment; DOCSIS 1.0 does neither.
#[test]
fn modems_fragment_from_docsis_1_1_on() {
    let fragments = PRESETS.map(|preset| (preset.name, preset.fragmentation));
    let without: Vec<_> = fragments.iter().filter(|(_, fragments)| !fragments).map(|(name, _)| *name).collect();
    assert_eq!(without, ["docsis-1.0"]);
}

/// 100 Mbit/s in 580 of 2500 us; a queue and k take the mean.
#[test]
fn the_rate_is_that_of_a_transmission() {
    let text = "duration = \"1 s\"\n[access]\ndown = { rate = \"1 Mbit/s\" }\n\
                up = { rate = \"100 Mbit/s\", grants = { kind = \"5g-tdd\", special = \"16 %\" } }\n";
    let scenario = Scenario::parse("f", text, &[]).unwrap_or_else(|report| panic!("{report}"));
    let up = scenario.network_ref().links.iter().find(|link| link.hop.name == "up").expect("a line");
    assert_eq!(up.hop.line.rate, Some(BitRate::from_kbit_per_s(23_200)));
    assert_eq!(up.hop.line.grants.as_ref().map(|grants| grants.rate), Some(BitRate::from_mbit_per_s(100)));
}

/// DOCSIS 1.1 and 2.0 may have fragmentation; a PON always cuts packets.
#[test]
fn whole_packets_where_the_technology_cuts_them_are_told() {
    let told = |kind: &str| {
        let text = format!(
            "duration = \"1 s\"\n[access]\ndown = {{ rate = \"50 Mbit/s\" }}\nup = {{ rate = \"3 Mbit/s\", grants = \
             {{ kind = \"{kind}\", outstanding = \"one\", fragmentation = false }} }}\n"
        );
        Scenario::parse("f", &text, &[]).unwrap_or_else(|report| panic!("{report}")).warnings().to_string()
    };
    let pon = told("pon");
    assert!(pon.contains("access.up.grants.fragmentation: every station of \"pon\" cuts packets"), "{pon}");
    assert_eq!((told("docsis-2.0"), told("docsis-1.0")), (String::new(), String::new()));
}

/// A request for one packet asks for no bytes, and requests that all collide bring no grant.
#[test]
fn keys_of_requests_without_effect_are_told() {
    let told = |grants: &str| {
        let text = format!(
            "duration = \"1 s\"\n[access]\ndown = {{ rate = \"50 Mbit/s\" }}\nup = {{ rate = \"3 Mbit/s\", grants = \
             {grants} }}\n"
        );
        Scenario::parse("f", &text, &[]).unwrap_or_else(|report| panic!("{report}")).warnings().to_string()
    };
    let one = told("{ kind = \"docsis-1.0\", largest = \"64 wire bytes\" }");
    assert!(one.contains("access.up.grants.largest: not used; each request asks for one packet"), "{one}");
    assert_eq!(told("{ kind = \"docsis-2.0\", largest = \"64 wire bytes\" }"), "");
    let all = told("{ kind = \"docsis-2.0\", collisions = \"100 %\" }");
    assert!(all.contains("access.up.grants.collisions: every request collides"), "{all}");
    let first = told("{ kind = \"lte\", piggyback = false }");
    let expected = "access.up.grants.piggyback: `first` without `piggyback`: each request brings 100 wire bytes, at \
                    most 80 kbit/s";
    assert!(first.contains(expected), "{first}");
    let alone = "{ kind = \"docsis-3.1\", piggyback = false }";
    assert_eq!([told("\"lte\""), told(alone)].concat(), "");
}
