//! Notes name policers, contracts and shapers as limits of a flow.

use lastmile_atm::contract::Peak;
use lastmile_atm::network::Upc;
use lastmile_atm::{Contract, LinkId};
use lastmile_model::{Network, OpenedBy, Source, Steady};
use lastmile_queueing::Match;
use lastmile_queueing::meter::policer::{Action, Coming, Rule, Then};
use lastmile_queueing::meter::{self, policer, tbf};
use lastmile_queueing::spec::{Over, Spec};
use lastmile_units::{BitRate, ByteCount, Duration, WireBytes};

use crate::cells::short_of_cells;
use crate::network::{bulk, line, modem, tcp, traffic};
use crate::run;

/// The uploads of `pair` share a UBR virtual channel with a peak cell rate, and their sources do
/// not shape to it. Each packet's cells arrive back to back at the rate of the link, and the
/// policer, which allows no burst, passes no packet whole.
fn unshaped() -> Network {
    let mut network = short_of_cells();
    let atm = network.atm.as_mut().expect("it has cells");
    let at: LinkId = atm.network.vcs[0].route[0];
    let peak = Peak { rate: BitRate::from_kbit_per_s(100), cdvt: Duration::from_us(1) };
    atm.network.vcs[0].upc = Some(Upc { at, contract: Contract::Ubr { peak: Some(peak), tagging: false } });
    network
}

#[test]
fn a_contract_that_lets_nothing_through_is_named_with_its_rate() {
    let summary = run(&unshaped()).summary;
    for flow in summary.flows.iter().filter(|flow| flow.name.starts_with("pair")) {
        assert!(flow.bytes_delivered == 0, "{}", flow.bytes_delivered);
        let named = "the policer of virtual channel pair 32 (above PCR 100 kbit/s, CDVT 1 µs; \
         its source does not shape its cells) drops ";
        assert!(flow.limits.explanation.starts_with(named), "{}", flow.limits.explanation);
    }
    let other = summary.flows.iter().find(|flow| flow.name == "other-1").expect("the other flow");
    assert!(!other.limits.explanation.contains("policer"), "{}", other.limits.explanation);
}

/// A policer that drops packets above 256 kbit/s.
fn policed(queue: Spec) -> Spec {
    let drop = Action { mark: None, then: Then::Drop };
    let rule = Rule {
        matches: Match::Any,
        meter: meter::Config::TokenBucket { rate: BitRate::from_kbit_per_s(256), burst: WireBytes::new(8_000) },
        coming: Coming::Blind,
        largest: ByteCount::new(1500),
        conform: Action::TRANSMIT,
        exceed: drop,
        violate: drop,
    };
    Spec::Policer(Over { config: policer::Config { rules: vec![rule] }, queue: Box::new(queue) })
}

#[test]
fn a_policer_that_drops_is_named_with_its_bucket_and_its_drops() {
    let mut network = line(2_000, 512, "ethernet", policed(modem()));
    network.duration = Duration::from_s(20);
    network.traffic.push(traffic("upload", 0, 1, bulk(&tcp(), None, OpenedBy::Sender)));
    // 400 kbit/s: half of the packets exceed the rate.
    let blast = Source::Constant { interval: Duration::from_ms(20), size: ByteCount::new(1000), kind: Steady::Blast };
    network.traffic.push(traffic("blast", 0, 1, blast));
    let summary = run(&network).summary;
    let policed = summary.links[0].queue.drops["policed"];
    assert!(policed > 100, "{policed}");
    let drops = |flow: &str| {
        let flow = summary.flows.iter().find(|other| other.name == flow).expect("it runs");
        let (_, told) = flow
            .limits
            .explanation
            .split_once("the policer of link up (256 kbit/s, bucket of 8 kB) drops ")
            .unwrap_or_else(|| panic!("{}", flow.limits.explanation));
        let digits: String = told.chars().take_while(|c| *c != 'p').filter(char::is_ascii_digit).collect();
        digits.parse::<u64>().expect("a count")
    };
    assert_eq!(drops("upload") + drops("blast"), policed);
}

#[test]
fn a_shaper_below_the_rate_of_its_link_is_what_limits() {
    let shaper = Spec::Tbf(Over {
        config: tbf::Config {
            rate: BitRate::from_kbit_per_s(300),
            burst: WireBytes::new(3_000),
            peak: None,
            largest: ByteCount::new(1500),
            catch_up: Duration::ZERO,
        },
        queue: Box::new(modem()),
    });
    let mut network = line(2_000, 512, "ethernet", shaper);
    network.duration = Duration::from_s(20);
    network.traffic.push(traffic("upload", 0, 1, bulk(&tcp(), None, OpenedBy::Sender)));
    let summary = run(&network).summary;
    let why = &summary.flows[0].limits.explanation;
    assert!(why.starts_with("rate of the shaper of link up ("), "{why}");
}
