//! The downstream half of a policy: what is shaped, drained, policed and regulated.

use lastmile_queueing::ack::clamp::{Growth, Target};
use lastmile_queueing::meter::{policer, tbf};
use lastmile_queueing::spec::{Over, Spec};
use lastmile_scenario::policy::Policy;
use lastmile_units::{BitRate, ByteCount, Ratio};

use crate::policy::{LINE, headlines, refused};

const SHARED: &str = "[[class]]\nname = \"all\"\nrate = \"100 %\"\n";

#[track_caller]
fn down(text: &str) -> lastmile_scenario::policy::Down {
    let policy = Policy::parse("p.toml", &format!("{LINE}{SHARED}[down]\n{text}"), None);
    policy.unwrap_or_else(|report| panic!("{report}")).down.expect("something behind the downstream")
}

/// 2 Mbit/s: 95 % are 1.9, 98 % are 1.96.
#[test]
fn what_stands_behind_the_downstream_is_as_the_table_says() {
    let kbit = BitRate::from_kbit_per_s;
    let plain = down("share = \"95 %\"\n");
    assert!(matches!(plain.queue, Spec::Tbf(Over { config: tbf::Config { rate, .. }, .. }) if rate == kbit(1900)));
    assert_eq!((plain.scheduler, plain.rate, plain.drain), ("none", Some(kbit(1900)), None));
    assert_eq!(plain.kind, "fifo");

    let drained = down("drain = true\n");
    assert_eq!(drained.rate, Some(kbit(1960)));
    let Spec::Drain(Over { config, .. }) = &drained.queue else { panic!("{:?}", drained.queue) };
    assert_eq!((config.line, config.share.as_f64(), config.drain), (kbit(2000), 0.98, drained.drain));
    assert!(down("drain = false\nshare = \"90 %\"\n").drain.is_none());

    let classes = "share = \"90 %\"\ndrain = { depth = \"70 %\" }\n[[down.class]]\nname = \"a\"\nrate = \"10 \
                   %\"\npriority = 0\n\
                   [[down.class]]\nname = \"b\"\nrate = \"50 %\"\n[[down.rule]]\nclass = \"a\"\nmatch = { protocol \
                   = \"icmp\" }\n";
    let shared = down(classes);
    assert_eq!(shared.classes[1].rate, Some(kbit(900)), "half of what is let through");
    // The rules, and below them the drain, which knows by the class what is urgent.
    let Spec::Rules(rules) = &shared.queue else { panic!("{:?}", shared.queue) };
    let Spec::Drain(Over { config, queue }) = &*rules.queue else { panic!("{:?}", rules.queue) };
    let first = lastmile_queueing::Match::OneOf(vec![lastmile_queueing::Match::Class(0)]);
    assert_eq!((&config.urgent, config.drain.unwrap().depth.as_f64()), (&first, 0.7));
    assert!(matches!(&**queue, Spec::Htb(_)));
    // HTB shapes by itself.
    let Spec::Rules(rules) = down(&classes.replace("drain = { depth = \"70 %\" }\n", "")).queue else {
        panic!("rules")
    };
    assert!(matches!(&*rules.queue, Spec::Htb(htb) if htb.tree.classes[0].share.rate == kbit(1800)));

    let policed = down("police = { share = \"50 %\" }\n");
    let Spec::Policer(Over { config: policer::Config { rules, .. }, .. }) = &policed.queue else {
        panic!("{:?}", policed.queue)
    };
    assert_eq!((rules.len(), policed.police.unwrap().rate, policed.rate), (1, kbit(1000), None));
}

/// 98 % of 2 Mbit/s carry 1460 of 1500 bytes of payload: 1 907 733 bit/s; the bare IP packets of this
/// line have no more around them.
#[test]
fn acks_of_downloads_are_regulated_on_their_way_up() {
    let text = "[down]\nshare = \"98 %\"\nclamp = { rtt = \"100 ms\" }\npace = { max_hold = \"50 ms\" }\n";
    let policy = Policy::parse("p.toml", &format!("{LINE}{SHARED}{text}"), None).unwrap();
    let Spec::WindowClamp(Over { config: clamp, queue }) = &policy.up else { panic!("{:?}", policy.up) };
    let Spec::AckPacing(Over { config: pace, queue }) = &**queue else { panic!("{queue:?}") };
    assert!(matches!(&**queue, Spec::Rules(_)));
    let payload = BitRate::from_bps(1_907_733).unwrap();
    assert_eq!((pace.rate, pace.max_hold), (payload, lastmile_units::Duration::from_ms(50)));
    // A packet of 1500 bytes takes 23.4375 ms up and 6 ms down.
    let rtt = lastmile_units::Duration::from_us(100_000 + 23_437 + 6_000) + lastmile_units::Duration::from_ns(500);
    // Of the 2 % that the share leaves, windows grow by half.
    let growth = Growth { slack: rtt - lastmile_units::Duration::from_ms(100), share: Ratio::from_percent(1).unwrap() };
    let target = Target::Shared { rate: payload, rtt, growth: Some(growth) };
    assert_eq!((clamp.target, clamp.mss), (target, ByteCount::new(1460)));
    assert_eq!((&policy.regulated.clamp, &policy.regulated.pace), (&Some(clamp.clone()), &Some(pace.clone())));

    let growth = |text: &str| {
        let policy = Policy::parse("p.toml", &format!("{LINE}{SHARED}{text}"), None).unwrap();
        match policy.regulated.clamp.unwrap().target {
            Target::Shared { growth, .. } => growth.map(|growth| growth.share),
            target => panic!("{target:?}"),
        }
    };
    let own = "[down]\nshare = \"98 %\"\nclamp = { rtt = \"100 ms\", growth = \"3 %\" }\n";
    assert_eq!(growth(own), Ratio::from_percent(3));
    assert_eq!(growth("[down]\nclamp = { rtt = \"100 ms\" }\n"), None, "without a share there is no margin");
}

#[test]
fn a_downstream_that_would_do_nothing_is_refused() {
    let refused_down = |text: &str, headline: &str| refused(&format!("{SHARED}[down]\n{text}"), headline);
    refused_down(
        "share = \"100 %\"\ndrain = true",
        "error: p.toml:9:9: down.drain: a share of 100 %; it must be below 100 %, so that the line is idle when \
         its far end has no queue",
    );
    refused_down(
        "share = \"80 %\"\ndrain = { depth = \"90 %\" }",
        "error: p.toml:9:9: down.drain: a drain to 90 % that is not below the share of 80 %",
    );
    refused_down("[[down.rule]]\nclass = \"a\"", "error: p.toml:8:1: rule without a class");
    refused_down(
        "kind = \"none\"\n[[down.class]]\nname = \"a\"\nrate = \"1 %\"",
        "error: p.toml:9:1: class without a scheduler of classes",
    );
    refused_down(
        "police = { burst = \"100 wire bytes\" }",
        "error: p.toml:8:20: down.police.burst: a burst of 100 wire bytes is smaller than the largest packet, which \
         takes 1500 wire bytes",
    );
    refused_down("clamp = {}", "error: p.toml:8:9: missing key \"rtt\" in [down.clamp]");
    let text = format!("{LINE}[scheduler]\nplace = \"middlebox\"\n{SHARED}");
    let policy = Policy::parse("p.toml", &text, None).unwrap();
    assert_eq!(
        headlines(policy.warnings.findings()),
        ["warning: p.toml:5:9: a middlebox that lets all of the line through: the modem's queue fills"]
    );
}
