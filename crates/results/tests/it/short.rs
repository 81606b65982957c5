//! Transfers of less than a full segment: the round trip in their explanation, and their bound.

use lastmile_results::schema::Flow;
use lastmile_results::{Origin, summarise};
use lastmile_scenario::Scenario;

/// A download of so many bytes over 1 kbit/s both ways.
fn download(bytes: u32) -> Flow {
    let text = format!(
        "duration = \"200 s\"\nstart_jitter = \"0 ms\"\n[access]\nencapsulation = \"ip\"\n\
         down = {{ rate = \"1 kbit/s\", delay = \"5 ms\" }}\nup = {{ rate = \"1 kbit/s\", delay = \"5 ms\" }}\n\
         [[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\nbytes = \"{bytes} B\"\n"
    );
    let scenario = Scenario::parse("f", &text, &[]).unwrap_or_else(|report| panic!("{report}"));
    let network = scenario.network();
    let outcome = lastmile_sim::run(&network).expect("it can be run");
    summarise(&Origin::default(), &network, &outcome).flows.remove(0)
}

/// A segment of 53 bytes and an ACK of 52 take 840 ms at 1 kbit/s. Propagation takes 5 ms on the line and 10 ms in the
/// backbone, each way.
#[test]
fn the_round_trip_of_a_byte_is_that_of_its_segment() {
    let flow = download(1);
    assert_eq!(flow.bytes_delivered, 1);
    let (_, trip) = flow.limits.explanation.split_once("round trip ").unwrap_or_else(|| panic!("{flow:#?}"));
    assert!(trip.starts_with("870 ms"), "{trip}");
}

/// Full segments carry 1448 bytes in 1500, and nothing of a whole transfer passes beyond the rate of its wire.
#[test]
fn a_whole_transfer_is_bound_by_the_rate_of_its_wire() {
    for bytes in [1, 3_000] {
        let flow = download(bytes);
        let bound = flow.limits.bound_bps.expect("a transfer");
        assert!((bound - 1e3 * 1448.0 / 1500.0).abs() < 1e-6 && flow.goodput_bps <= bound, "{flow:#?}");
    }
}
