//! Policies with `[autorate]`: the rates on a line, what is refused, and what becomes of a line that changes.

use lastmile_linklayer::preset;
use lastmile_queueing::autorate::{Config, Health};
use lastmile_queueing::spec::Spec;
use lastmile_scenario::Scenario;
use lastmile_scenario::policy::{Line, LineOf, Policy};
use lastmile_units::{BitRate, Duration, Instant, Ratio};

const MBIT: fn(u64) -> BitRate = BitRate::from_mbit_per_s;

fn line() -> Line {
    Line::steady(MBIT(10), MBIT(100), preset::IP.link, preset::IP.link)
}

fn policy(text: &str) -> Result<Policy, String> {
    Policy::parse("p", text, LineOf::Caller(line())).map_err(|report| report.to_string())
}

fn kbit(config: &Config) -> [[u64; 3]; 2] {
    config.rates.map(|rates| [rates.min, rates.base, rates.max].map(|rate| rate.as_bps() / 1000))
}

/// The base rates are the shares of CAKE; the minimum is a quarter of them, the maximum the best of the line.
#[test]
fn rates_are_shares_of_the_line() {
    let policy = Policy::load("cake-autorate", None, Some(line())).expect("built in");
    let controller = policy.autorate().expect("a controller");
    assert_eq!(kbit(controller), [[22_500, 90_000, 100_000], [2_375, 9_500, 10_000]]);
    // All else has the defaults of the script.
    assert_eq!(*controller, Config::new(controller.rates));
}

/// On a line that changes, shares are of its mean and the maximum is the best of its trace. The queues of the network
/// have the largest rates, and the controller starts at the base rates.
#[test]
fn the_largest_rate_is_the_best_of_a_trace() {
    let scenario = Scenario::parse(
        "s",
        r#"
duration = "1 s"
[access]
policy = "cake-autorate"
up = { rate = "10 Mbit/s" }
down = { trace = { steps = [{ at = "0 s", rate = "10 Mbit/s" }, { at = "3 s", rate = "50 Mbit/s" }], repeat = "4 s" } }
"#,
        &[],
    )
    .unwrap_or_else(|report| panic!("{report}"));
    let network = scenario.network();
    let [autorate] = network.autorates.as_slice() else { panic!("one line") };
    assert_eq!(kbit(&autorate.controller), [[4_500, 18_000, 50_000], [2_375, 9_500, 10_000]]);
    let names = autorate.shapers.map(|link| network.links[link].hop.name.as_str());
    assert_eq!(names, ["middlebox-down", "middlebox-up"]);
    let rates = autorate.shapers.map(|link| network.links[link].hop.queue.shapers()[0].rate);
    assert_eq!(rates, [MBIT(50), MBIT(10)]);
    assert!(
        matches!(&network.links[autorate.shapers[0]].hop.queue, Spec::Cake(cake) if cake.bandwidth == Some(MBIT(50)))
    );
}

#[test]
fn keys_have_the_names_of_the_script() {
    let text = r#"
scheduler = { kind = "none", place = "middlebox", share = "95 %", queue = { kind = "fq-codel" } }
down = { share = "90 %" }
[autorate]
min_shaper_rate = "50 %"
pinger_method = "fping-ts"
no_pingers = 4
reflector_ping_interval = "200 ms"
owd_delta_delay_thr = "15 ms"
alpha_baseline_increase = 0.01
shaper_rate_max_adjust_up_load_high = 1.1
high_load_thr = "0.8"
enable_sleep_function = false
reflector_health_check_interval = "2 s"
reflector_response_deadline = "3 s"
reflector_misbehaving_detection_window = 50
reflector_misbehaving_detection_thr = 5
reflector_replacement_interval = "2 h"
reflector_comparison_interval = "90 s"
reflector_sum_owd_baselines_delta_thr = "30 ms"
reflector_owd_delta_ewma_delta_thr = "15 ms"
alpha_delta_ewma = 0.1
"#;
    let config = policy(text).expect("valid").autorate().cloned().expect("a controller");
    assert_eq!(kbit(&config)[1], [4_750, 9_500, 10_000]);
    assert_eq!(config.pings.response_interval(), Duration::from_ms(50));
    assert_eq!(config.thresholds.owd_delta_delay_thr, Duration::from_ms(15));
    assert_eq!(config.baseline.alpha_baseline_increase.as_parts_per_billion(), 10_000_000);
    assert_eq!(config.adjust.max_adjust_up_load_high, 1_100);
    assert_eq!(config.load.high_load_thr.as_parts_per_billion(), 800_000_000);
    assert_eq!(config.idle.sustained_idle_sleep_thr, None);
    let health = Health {
        reflector_health_check_interval: Duration::from_s(2),
        reflector_response_deadline: Duration::from_s(3),
        reflector_misbehaving_detection_window: 50,
        reflector_misbehaving_detection_thr: 5,
        reflector_replacement_interval: Duration::from_s(7_200),
        reflector_comparison_interval: Duration::from_s(90),
        reflector_sum_owd_baselines_delta_thr: Duration::from_ms(30),
        reflector_owd_delta_ewma_delta_thr: Duration::from_ms(15),
        alpha_delta_ewma: Ratio::from_percent(10).expect("a share"),
    };
    assert_eq!(config.health, health);
}

#[test]
fn a_policy_without_two_shapers_is_refused() {
    let before = "scheduler = { kind = \"none\", place = \"middlebox\", share = \"95 %\" }\nautorate = {}\n";
    for (text, message, hint) in [
        ("scheduler = { kind = \"none\" }\ndown = { share = \"90 %\" }\nautorate = {}\n", "has no shaper", "middlebox"),
        (before, "no shaper of the downstream", "share in [down]"),
        (&format!("{before}down = {{ drain = true }}\n"), "no shaper of the downstream", "without drain"),
        (
            "scheduler = { kind = \"cbq\", place = \"middlebox\", share = \"95 %\" }\n\
             down = { share = \"90 %\" }\nautorate = {}\n\
             [[class]]\nname = \"all\"\nrate = \"50 %\"\n",
            "the rates of classes of \"cbq\" do not follow",
            "kind = \"htb\" or \"hfsc\"",
        ),
    ] {
        let refused = policy(text).expect_err(text);
        assert!(refused.contains(message) && refused.contains(hint), "{refused}");
    }
}

#[test]
fn values_that_contradict_are_refused_with_their_key() {
    let with = |keys: &str| {
        policy(&format!(
            "scheduler = {{ kind = \"none\", place = \"middlebox\", share = \"95 %\" }}\n\
             down = {{ share = \"90 %\" }}\n\
             autorate = {{ {keys} }}\n"
        ))
        .expect_err(keys)
    };
    for (keys, message) in [
        ("max_shaper_rate = \"50 %\"", "autorate.max_shaper_rate: a minimum of 22.5 Mbit/s and a maximum of 50 Mbit/s"),
        ("bufferbloat_detection_thr = 7", "autorate.bufferbloat_detection_thr: 7 delayed replies out of 6"),
        (
            "reflector_misbehaving_detection_window = 2",
            "autorate.reflector_misbehaving_detection_thr: 3 offences out of 2",
        ),
        ("high_load_thr = 1.5", "1.5 is above 1"),
        ("shaper_rate_max_adjust_down_bufferbloat = 0.12345", "0.12345 is no number with at most three decimals"),
        ("shaper_rate_max_adjust_up_load_high = 0.9", "0.9 is below 1"),
        ("no_pingers = 0", "0 is below 1"),
    ] {
        let refused = with(keys);
        assert!(refused.contains(message), "{keys}: {refused}");
    }
}

/// Mbit/s of the download and the mean queueing delay of the line in the second half of each third of
/// `scenarios/rate-halves.toml`.
fn thirds(policy: &str) -> [(f64, f64); 3] {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/rate-halves.toml");
    let scenario =
        Scenario::load(&path, &[format!("access.policy={policy}")]).unwrap_or_else(|report| panic!("{report}"));
    let mut network = scenario.network();
    network.record.cuts = [10, 30, 50].map(|second| Instant::ZERO + Duration::from_s(second)).to_vec();
    let outcome = lastmile_sim::run(&network).expect("valid");
    assert!(outcome.conservation.holds());
    let down = scenario.access().expect("an access line").down_link;
    let at = |second: u64| {
        let at = Instant::ZERO + Duration::from_s(second);
        outcome.snapshots.iter().find(|snapshot| snapshot.at == at).expect("a snapshot")
    };
    [10, 30, 50].map(|from| {
        let (first, last) = (at(from), at(from + 10));
        let bits = (last.bytes_delivered[0] - first.bytes_delivered[0]) as f64 * 8.0;
        (bits / 10e6, last.queue_delay[down].mean_s().expect("packets"))
    })
}

/// Classes of HTB and HFSC in both directions: their rates are in proportion, and the download follows the line as
/// under CAKE.
#[test]
fn the_rates_of_classes_follow_a_line_that_halves() {
    for kind in ["htb", "hfsc"] {
        let classes = |table: &str| {
            format!(
                "[[{table}class]]\nname = \"few\"\nrate = \"40 %\"\nceil = \"50 %\"\n\
                 [[{table}class]]\nname = \"rest\"\nrate = \"60 %\"\nqueue = {{ kind = \"fq-codel\" }}\n\
                 [[{table}rule]]\nclass = \"few\"\nmatch = {{ protocol = \"udp\" }}\n"
            )
        };
        let text = format!(
            "scheduler = {{ kind = \"{kind}\", place = \"middlebox\", share = \"95 %\", default = \"rest\" }}\n\
             autorate = {{}}\n{}[down]\nkind = \"{kind}\"\nshare = \"90 %\"\ndefault = \"rest\"\n{}",
            classes(""),
            classes("down."),
        );
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("classes.toml");
        std::fs::write(&path, text).expect("a file");
        let [before, halved, after] = thirds(path.to_str().expect("UTF-8"));
        assert!(before.0 > 33.0 && after.0 > 33.0, "{kind}: {before:?} {after:?} of 40 Mbit/s");
        assert!((16.5..19.4).contains(&halved.0), "{kind}: {halved:?} of 20 Mbit/s");
        let delays = [before, halved, after].map(|(_, delay)| delay);
        assert!(delays.iter().all(|delay| *delay < 0.06), "{kind}: {delays:?}");
    }
}

/// 9.5 Mbit/s in the policy, and 4.75 from the controller: 40 and 50 % of it.
#[test]
fn the_rates_of_a_class_are_in_proportion_to_the_shaper() {
    let text = "scheduler = { kind = \"htb\", place = \"middlebox\", share = \"95 %\", default = \"few\" }\n\
                [[class]]\nname = \"few\"\nrate = \"40 %\"\nceil = \"50 %\"\n";
    let policy = policy(text).unwrap_or_else(|error| panic!("{error}"));
    let [class] = policy.classes.as_slice() else { panic!("one class") };
    let kbit = |rates: [u64; 2]| {
        let [rate, ceil] = rates.map(BitRate::from_kbit_per_s);
        (Some(rate), ceil)
    };
    let built = policy.shapers()[0];
    assert_eq!(class.rates(built, None), kbit([3800, 4750]));
    assert_eq!(class.rates(built, BitRate::from_bps(4_750_000)), kbit([1900, 2375]));
}

/// What users of cake-autorate report: where the rate halves, the throughput follows and the delay stays near the
/// threshold (30 ms each way of a half round trip); where it is back, so is the throughput. CAKE at the mean rate of
/// the line leaves a quarter of the better rate unused.
#[test]
fn the_rate_follows_a_line_that_halves() {
    let [before, halved, after] = thirds("cake-autorate");
    let steady = thirds("cake");
    assert!(before.0 > 34.0 && after.0 > 34.0, "{before:?} {after:?} of 40 Mbit/s");
    assert!((17.0..19.4).contains(&halved.0), "{halved:?} of 20 Mbit/s");
    assert!([before, halved, after].iter().all(|(_, delay)| *delay < 0.06), "{before:?} {halved:?} {after:?}");
    assert!(steady[0].0 < 28.0 && steady[2].0 < 28.0, "{steady:?}");
}
