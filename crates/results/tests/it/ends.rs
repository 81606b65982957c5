//! Sums at the end of a run: events of the last instant, and packets under way.

use lastmile_results::comparison::{Comparison, Row};
use lastmile_results::schema::Summary;
use lastmile_results::{Origin, Run, summarise};
use lastmile_scenario::Scenario;

fn summary(text: &str) -> Summary {
    let scenario = Scenario::parse("ends", text, &[]).unwrap_or_else(|report| panic!("{report}"));
    let network = scenario.network();
    let outcome = lastmile_sim::run(&network).expect("it can be run");
    summarise(&Origin::default(), &network, &outcome)
}

const VOICE: &str = r#"
duration = "3 s"
start_jitter = "0 ms"
[[link]]
from = "A"
to = "B"
rate = "12 Mbit/s"
[[traffic]]
kind = "voice"
from = "A"
to = "B"
size = "1500 B"
interval = "1 ms"
[[traffic]]
kind = "blast"
from = "A"
to = "B"
rate = "1 packets/s"
"#;

/// Packets arrive each millisecond, one of them in the last instant, in which the blast stops.
#[test]
fn the_last_phase_has_what_happens_in_the_instant_that_ends_it() {
    for stop in ["", "stop = \"3 s\"\n"] {
        let summary = summary(&format!("{VOICE}{stop}"));
        let bits = summary.phases.iter().map(|phase| phase.flows[0].goodput_bps * phase.length_s());
        let of_phases = bits.sum::<f64>() / 8.0;
        assert!((of_phases - summary.flows[0].bytes_delivered as f64).abs() < 1e-3, "{stop}: {of_phases}");
    }
}

/// Of bare IP all that is on the wire is IP, however grants cut packets.
#[test]
fn a_packet_that_grants_cut_is_on_the_wire_as_far_as_it_was_sent() {
    for duration in ["50 ms", "1 s"] {
        let summary = summary(&format!(
            "duration = \"{duration}\"\n[access]\nencapsulation = \"ip\"\ndown = {{ rate = \"5 Mbit/s\" }}\n\
             up = {{ rate = \"1 Mbit/s\", grants = \"5g-tdd\" }}\n[[traffic]]\nkind = \"blast\"\ndirection = \"up\"\n\
             rate = \"2 Mbit/s\"\n"
        ));
        let up = summary.links.iter().find(|link| link.name == "up").unwrap();
        let (all, ip) = (up.utilisation.unwrap(), up.utilisation_ip.unwrap());
        assert!(all > 0.5 && (all - ip).abs() < 1e-9, "{duration}: {all} and {ip} as IP");
    }
}

/// A wire that is busy all the time has a bit more, as a part of one is counted whole.
#[test]
fn no_wire_is_busy_for_longer_than_the_run() {
    for (duration, rate) in [("1 us", "64 kbit/s"), ("100 ms", "46784 bit/s")] {
        let summary = summary(&format!(
            "duration = \"{duration}\"\nstart_jitter = \"0 ms\"\n[[link]]\nfrom = \"A\"\nto = \"B\"\n\
             rate = \"{rate}\"\n[[traffic]]\nkind = \"blast\"\nfrom = \"A\"\nto = \"B\"\nrate = \"1 Mbit/s\"\n"
        ));
        assert_eq!(summary.links[0].utilisation, Some(1.0), "{duration}");
    }
}

/// Pings over a network without an access line have neither downloads nor queues of a line.
#[test]
fn pings_over_a_network_have_nothing_of_a_line() {
    let summary = summary(
        "duration = \"10 s\"\n[[link]]\nfrom = \"A\"\nto = \"B\"\nrate = \"1 Mbit/s\"\n\
         queue = { limit = \"2 packets\" }\n[[traffic]]\nkind = \"ping\"\nfrom = \"A\"\nto = \"B\"\n\
         interval = \"10 ms\"\nsize = \"1500 B\"\n",
    );
    assert!(summary.links[0].queue.drops["tail"] > 0);
    let run = Run { label: "one".into(), own: Vec::new(), summary, series: Vec::new() };
    let rows = Comparison::of(vec![run]).measured();
    let Row::Line(measured) = &rows[0][0] else { panic!("pings are in a row of a line") };
    assert_eq!((measured.download_bps, measured.queues.drops, measured.queues.acks_merged), (None, None, None));
    assert!(measured.ping.lost_share.unwrap() > 0.1);
}
