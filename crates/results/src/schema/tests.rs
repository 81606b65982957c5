use super::*;

fn keys(value: &serde_json::Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn has(value: &serde_json::Value, expected: &str) {
    for key in expected.split_whitespace() {
        assert!(value.get(key).is_some(), "no key {key:?} among {:?}", keys(value));
    }
}

/// Keys on which other programs rely: the result schema of the design, section 9.
#[test]
fn the_promised_keys_are_there() {
    let summary = Summary {
        flows: vec![Flow::default()],
        links: vec![Link::default()],
        probes: vec![Probe::default()],
        phases: vec![Phase {
            flows: vec![PhaseFlow::default()],
            probes: vec![PhaseProbe::default()],
            ..Phase::default()
        }],
        ..Summary::default()
    };
    let json: serde_json::Value = serde_json::from_str(&summary.to_json()).unwrap();
    has(&json, "scenario seed version duration_s events flows links probes phases conservation");
    let flow = "name direction kind tcp start_s end_s bytes_delivered goodput_bps response_time_s retransmissions \
     timeouts \
        data_packets acks_sent acks_received limited_by bound_bps bound_by fair_share_bps fair_share_by";
    has(&json["flows"][0], flow);
    has(&json["links"][0], "name rate_bps wire_bits ip_bytes packets cells utilisation queue_delay_s drops");
    has(&json["links"][0]["queue_delay_s"], "mean p50 p99 p999 max");
    has(&json["probes"][0], "name class sent received rtt_s");
    has(&json["probes"][0]["rtt_s"], "min mean p50 p99 p999 max");
    has(&json["phases"][0], "name from_s to_s flows probes");
    has(&json["phases"][0]["flows"][0], "name goodput_bps");
    has(&json["conservation"], "sent created delivered dropped queued in_flight");
}

#[test]
fn only_the_document_tells_of_the_machine() {
    let summary = Summary::default();
    assert!(!summary.to_json().contains("timing"));
    let timing = Some(Timing { wall_s: 0.5, ..Timing::default() });
    let document = Document { summary: &summary, timing }.to_json();
    let json: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(json["timing"]["wall_s"], 0.5);
    assert_eq!(json["conservation"], serde_json::to_value(&summary.conservation).unwrap());
}

#[test]
fn a_summary_reads_back_as_it_was_and_what_is_no_number_is_null() {
    let flow = Flow { goodput_bps: 0.1 + 0.2, ..Flow::default() };
    let summary = Summary { flows: vec![flow], ..Summary::default() };
    let text = summary.to_json();
    assert!(text.contains("\"goodput_bps\": 0.30000000000000004"), "{text}");
    assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
    let endless = Summary { run: RunFacts { duration_s: f64::INFINITY, ..RunFacts::default() }, ..Summary::default() };
    assert!(endless.to_json().contains("\"duration_s\": null"));
}
