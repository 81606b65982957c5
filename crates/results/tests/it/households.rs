//! Results of the recommended policy, in households and over satellites.

use lastmile_results::schema::FlowKind;
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

fn simulated(text: &str) -> Summary {
    let scenario = Scenario::parse("f", text, &[]).unwrap_or_else(|report| panic!("{report}"));
    let network = scenario.network();
    let outcome = lastmile_sim::run(&network).expect("it can be run");
    summarise(&Origin::default(), &network, &outcome)
}

/// An application's retransmissions and the limits of its connections are those of its phases together: here on a line
/// that loses a packet in fifty, with a second user from the middle of the run on.
#[test]
fn phases_of_applications_add_up() {
    let line = "duration = \"30 s\"\n[access]\ndown = { rate = \"20 Mbit/s\", loss = \"2 %\" }\n\
                up = { rate = \"5 Mbit/s\", loss = \"2 %\" }\n";
    let applications = ["web", "video", "swarm", "backup", "video\"\ntransport = \"quic"];
    let text: String = applications.map(|kind| format!("[[traffic]]\nkind = \"{kind}\"\n")).concat();
    let second = "[[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\nstart = \"15 s\"\n";
    let summary = simulated(&format!("{line}{text}{second}"));
    assert!(summary.phases.len() >= 2, "{:?}", summary.phases);
    for flow in &summary.flows {
        let parts = || summary.phases.iter().flat_map(|phase| &phase.flows).filter(|part| part.name == flow.name);
        let retransmitted: u64 = parts().map(|part| part.retransmissions.expect("it has connections")).sum();
        assert_eq!(Some(retransmitted), flow.transport.retransmissions, "{}", flow.name);
        assert!(retransmitted > 0 || flow.setup.kind == FlowKind::Web, "{}", flow.name);
        // Over the phases, each cause has a share between its least and its largest one.
        for (cause, share) in flow.limits.limited_by.iter() {
            let of_parts = || parts().map(|part| part.limited_by.iter().find(|(other, _)| *other == cause));
            let shares: Vec<f64> = of_parts().map(|found| found.map_or(0.0, |(_, share)| share)).collect();
            let least = shares.iter().copied().fold(f64::MAX, f64::min);
            let most = shares.iter().copied().fold(0.0, f64::max);
            assert!(least - 1e-9 <= share && share <= most + 1e-9, "{} {cause}: {share} of {shares:?}", flow.name);
        }
    }
}

/// A clamp of 80 ms gives a download of 2 Mbit/s about 20 kB of its 64 KiB: that is its receive window.
#[test]
fn the_window_that_limits_is_told_and_not_the_configured_one() {
    let summary = under_full_both_ways(
        "duration = \"20 s\"\n[access]\ndown = { rate = \"2 Mbit/s\", delay = \"10 ms\" }\n\
         up = { rate = \"512 kbit/s\", delay = \"10 ms\" }\n[[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n\
         tcp = { receive_window = \"64 KiB\" }\n[[traffic]]\nkind = \"bulk\"\ndirection = \"up\"\n",
    );
    let words = &summary.flows.iter().find(|flow| &*flow.direction == "down").expect("it is there").limits.explanation;
    let window = words.split("receive window ").nth(1).and_then(|rest| rest.split(' ').next());
    let bytes: f64 = window.and_then(|bytes| bytes.parse().ok()).unwrap_or_else(|| panic!("{words}"));
    assert!((10e3..40e3).contains(&bytes), "{words}");
}

/// A clamp gives each of two downloads half of the window once the second one comes, and the first one all of it again:
/// the window at the end of a phase is not that of the phase. Window by round trip is the goodput, as the words say.
#[test]
fn a_window_that_moves_is_told_by_its_mean() {
    let summary = under_full_both_ways(
        "duration = \"40 s\"\n[access]\ndown = { rate = \"20 Mbit/s\", delay = \"10 ms\" }\n\
         up = { rate = \"2 Mbit/s\", delay = \"10 ms\" }\n[[traffic]]\nkind = \"bulk\"\nname = \"first\"\n\
         direction = \"down\"\n[[traffic]]\nkind = \"web\"\ncount = 6\ndirection = \"down\"\n",
    );
    let first = summary.flows.iter().find(|flow| &*flow.name == "first").expect("it is there");
    let words = &first.limits.explanation;
    let number = |before: &str| {
        let rest = words.split(before).nth(1).unwrap_or_else(|| panic!("{words}"));
        let mut parts = rest.split([' ', ',']);
        let value: f64 = parts.next().and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{words}"));
        (value, parts.next().expect("a unit").to_owned())
    };
    assert!(words.contains(" on average ("), "{words}");
    let ((window, bytes), (trip, ms)) = (number("receive window "), number("round trip "));
    assert_eq!((&*bytes, &*ms), ("kB", "ms"), "{words}");
    let goodput_bps = first.goodput_bps;
    assert!((window * 8e6 / trip / goodput_bps - 1.0).abs() < 0.02, "{words}, {goodput_bps} bit/s");
}
