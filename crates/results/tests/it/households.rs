//! Results of the recommended policy, in households and over satellites.

use lastmile_results::{Origin, Summary, summarise};
use lastmile_scenario::Scenario;

fn under_full_both_ways(text: &str) -> Summary {
    let policy = ["access.policy=full-both-ways".to_owned()];
    let scenario = Scenario::parse("f", text, &policy).unwrap_or_else(|report| panic!("{report}"));
    let network = scenario.network();
    let outcome = lastmile_sim::run(&network).expect("it can be run");
    summarise(&Origin::default(), &network, &outcome)
}

/// A download, two uploads, three web users, and a call in packets of 200 bytes: 6 cells, 127
/// kbit/s of an upstream of 1 Mbit/s, of which 667 are reserved for ACKs. A user is satisfied from
/// R 80 on, very satisfied from 90 (G.107, annex B).
#[test]
fn a_household_on_adsl_keeps_its_call() {
    let summary = under_full_both_ways(
        "duration = \"30 s\"\n[access]\nencapsulation = \"pppoe-llcsnap\"\n\
         down = { rate = \"16 Mbit/s\", delay = \"8 ms\" }\n\
         up = { rate = \"1 Mbit/s\", delay = \"8 ms\" }\n[[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n\
         [[traffic]]\nkind = \"bulk\"\ndirection = \"up\"\ncount = 2\nstart = \"5 s\"\n[[traffic]]\n\
         kind = \"web\"\ncount = 3\n\
         [[traffic]]\nkind = \"voice\"\ndirection = \"both\"\ndscp = \"EF\"\n",
    );
    let voice = summary.flows.iter().filter_map(|flow| flow.datagrams.as_deref()?.voice.as_ref());
    let r: Vec<f64> = voice.map(|voice| voice.r_factor).collect();
    assert!(r.len() == 2 && r.iter().all(|r| *r > 88.0), "{r:?}");
}

/// A geostationary satellite: the handshake alone takes 560 ms, and the policy's clamp assumes 80
/// ms for usual paths. CAKE leaves 17 Mbit/s.
#[test]
fn a_satellite_has_the_windows_that_it_needs() {
    let summary = under_full_both_ways(
        "duration = \"60 s\"\n[access]\nencapsulation = \"ip\"\ndown = { rate = \"50 Mbit/s\", delay = \"280 ms\" }\n\
         up = { rate = \"5 Mbit/s\", delay = \"280 ms\" }\n[[traffic]]\nkind = \"bulk\"\ndirection = \"both\"\n",
    );
    let down = summary.flows.iter().find(|flow| &*flow.direction == "down").expect("it is there").goodput_bps;
    assert!(down > 28e6, "{down}");
}
