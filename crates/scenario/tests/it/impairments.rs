//! Impairments of the wire: `loss = { ... }`, `jitter`, `reorder`, `duplicate`, `bit_error_rate`.

use lastmile_queueing::line::Config;
use lastmile_queueing::line::impairments::{BitErrorRate, Chance, Distribution, Impairments, LossModel, Reorder};
use lastmile_scenario::Scenario;
use lastmile_units::{Duration, Ratio};

fn file(up: &str) -> String {
    format!(
        "duration = \"20 s\"\n[access]\ndown = {{ rate = \"8 Mbit/s\" }}\nup = {{ rate = \"1 Mbit/s\", {up} }}\n\
         [[traffic]]\nkind = \"bulk\"\ndirection = \"up\"\n[[traffic]]\nkind = \"voice\"\ndirection = \"up\"\n\
         [[traffic]]\nkind = \"ping\"\n"
    )
}

fn up(up: &str) -> Config {
    let scenario = Scenario::parse("line.toml", &file(up), &[]).unwrap_or_else(|report| panic!("{report}"));
    scenario.access().expect("an access line").up.line.clone()
}

fn error(up: &str) -> String {
    Scenario::parse("line.toml", &file(up), &[]).expect_err("wrong").to_string()
}

fn percent(percent: u32) -> Ratio {
    Ratio::from_percent(percent).expect("a share")
}

#[test]
fn plain_values_and_tables() {
    let line = up("loss = \"1 %\", jitter = \"5 ms\", reorder = true, duplicate = \"2 %\", bit_error_rate = 1e-6");
    assert_eq!((line.loss, line.impairments.loss), (percent(1), None));
    let jitter = line.impairments.jitter.expect("jitter");
    assert_eq!((jitter.spread, jitter.distribution), (Duration::from_ms(5), Distribution::Uniform));
    assert_eq!(line.impairments.reorder, Some(Reorder::ByDelay));
    assert_eq!(line.impairments.duplicate, Some(Chance::independent(percent(2))));
    assert_eq!(line.impairments.bit_errors.map(BitErrorRate::as_f64), Some(1e-6));
    let line = up("reorder = { share = \"25 %\", correlation = \"50 %\", gap = 5 }, \
         loss = { random = \"1 %\", correlation = \"30 %\" }");
    let chance = Chance { share: percent(25), correlation: percent(50) };
    assert_eq!(line.impairments.reorder, Some(Reorder::Overtaking { chance, gap: 5 }));
    let chance = Chance { share: percent(1), correlation: percent(30) };
    assert_eq!((line.loss, line.impairments.loss), (Ratio::ZERO, Some(LossModel::Correlated(chance))));
    let line = up("loss = \"0 %\", jitter = \"0 ms\", reorder = false, duplicate = \"0 %\"");
    assert_eq!(line.impairments, Impairments::default(), "nothing is impaired, and nothing is paid");
}

/// netem: r is 100 % - p, 1-h 100 %, 1-k 0 %; p31 is 100 % - p13.
#[test]
fn models_have_the_defaults_of_netem() {
    let Some(LossModel::GilbertElliott(model)) = up("loss = { gemodel = { p = \"1 %\" } }").impairments.loss else {
        panic!("no model")
    };
    assert_eq!([model.to_bad, model.to_good, model.bad, model.good], [1, 99, 100, 0].map(percent));
    let text = "loss = { random = \"3 %\", gemodel = { p = \"1 %\", r = \"10 %\", 1-h = \"70 %\", 1-k = \"2 %\" } }";
    let line = up(text);
    let Some(LossModel::GilbertElliott(model)) = line.impairments.loss else { panic!("no model") };
    assert_eq!([line.loss, model.to_good, model.bad, model.good], [3, 10, 70, 2].map(percent));
    let Some(LossModel::States(model)) = up("loss = { state = { p13 = \"1 %\" } }").impairments.loss else {
        panic!("no model")
    };
    assert_eq!([model.p13, model.p31, model.p32, model.p23, model.p14], [1, 99, 0, 100, 0].map(percent));
}

#[test]
fn a_distribution_from_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("own.dist"), "# measured\n8192 -8192\n 0 4096 # more\n").unwrap();
    let load = |name: &str| {
        let path = folder.path().join("line.toml");
        std::fs::write(&path, file(&format!("jitter = {{ time = \"1 ms\", distribution = \"{name}\" }}"))).unwrap();
        Scenario::load(&path, &[]).map(|scenario| scenario.access().expect("an access line").up.line.clone())
    };
    let jitter = load("own.dist").unwrap().impairments.jitter.unwrap();
    assert_eq!(jitter.distribution, Distribution::Table(vec![-8192, 0, 4096, 8192].into()));
    let report = load("gauss").unwrap_err().to_string();
    assert!(report.contains("uniform, normal, pareto, paretonormal or a file"), "{report}");
    std::fs::write(folder.path().join("own.dist"), "1\n2 40000\n").unwrap();
    let report = load("own.dist").unwrap_err().to_string();
    assert!(report.contains("own.dist: line 2: \"40000\""), "{report}");
}

#[test]
fn impairments_that_cannot_be_are_refused() {
    assert!(error("loss = { gemodel = { p = \"1 %\" }, state = { p13 = \"1 %\" } }").contains("give one of them"));
    assert!(error("loss = { gemodel = { p = \"1 %\", r = \"0 %\" } }").contains("never ends"));
    assert!(error("loss = { state = { p13 = \"60 %\", p14 = \"60 %\" } }").contains("more than 100 %"));
    assert!(error("loss = { gemodel = {} }").contains("missing key \"p\""));
    assert!(error("bit_error_rate = 0.7").contains("at most 0.5"));
    assert!(error("bit_error_rate = 0").contains("above 0"));
    assert!(error("reorder = 7").contains("access.up.reorder"));
    let vj = error("reorder = true, header_compression = \"vj\"");
    assert!(vj.contains("once and in order") && vj.contains("access.up.reorder"), "{vj}");
    assert!(error("duplicate = \"1 %\", header_compression = \"vj\"").contains("access.up.duplicate"));
}

#[test]
fn packets_of_one_delay_are_not_reordered_which_is_told() {
    let told = |up: &str| {
        let scenario = Scenario::parse("line.toml", &file(up), &[]).unwrap_or_else(|report| panic!("{report}"));
        scenario.warnings().to_string()
    };
    let warning = told("reorder = true");
    assert!(warning.contains("access.up.reorder: without jitter no packet overtakes another"), "{warning}");
    for quiet in ["reorder = true, jitter = \"1 ms\"", "reorder = false", "reorder = \"1 %\""] {
        assert_eq!(told(quiet), "", "{quiet}");
    }
}

/// TCP, voice and pings over a wire that does everything at once: the account of packets holds, and the counters say
/// it.
#[test]
fn traffic_survives_a_wire_that_does_everything() {
    let all = "delay = \"20 ms\", loss = { gemodel = { p = \"1 %\", r = \"30 %\" } }, bit_error_rate = 1e-6, \
               jitter = { time = \"10 ms\", distribution = \"pareto\" }, reorder = true, duplicate = \"3 %\"";
    let scenario = Scenario::parse("line.toml", &file(all), &[]).unwrap_or_else(|report| panic!("{report}"));
    let outcome = lastmile_sim::Simulation::new(scenario.network_ref(), None).unwrap().finish();
    assert!(outcome.conservation.holds(), "{:?}", outcome.conservation);
    let up = scenario.network_ref().links.iter().position(|link| link.hop.name == "up").unwrap();
    let stats = &outcome.links[up].stats;
    assert!(stats.duplicated.packets > 20 && stats.reordered.packets > 20, "{stats:?}");
    assert_eq!(outcome.conservation.created.packets, stats.duplicated.packets);
}

/// Keys that contradict others, or that change nothing.
#[test]
fn keys_that_change_nothing_are_told() {
    let told = |down: &str, up: &str| {
        let text = format!("duration = \"1 s\"\n[access]\ndown = {{ rate = \"8 Mbit/s\", {down} }}\nup = {{ {up} }}\n");
        let scenario = Scenario::parse("line.toml", &text, &[]).unwrap_or_else(|report| panic!("{report}"));
        scenario.warnings().to_string()
    };
    let up = "rate = \"10 Mbit/s\"";
    let asked = |grants: &str| format!("{up}, grants = {grants}");
    let flow = |grants: &str, pie: &str| {
        format!(
            "{up}, grants = {{ kind = \"docsis-3.1\", sustained = \"{grants}\" }}, \
             queue = {{ kind = \"docsis-pie\"{pie} }}"
        )
    };
    let classes =
        "{ name = \"root\", rate = \"5 Mbit/s\" }, { name = \"leaf\", parent = \"root\", rate = \"5 Mbit/s\" }";
    let htb = |default: &str| format!("queue = {{ kind = \"htb\"{default}, classes = [{classes}] }}");
    for (down, up, expected) in [
        ("grants = \"5g-tdd\"", up.to_owned(), "access.down.grants: \"5g-tdd\" is for an upstream, whose station asks"),
        ("", asked("\"5g-tdd-down\""), "access.up.grants: \"5g-tdd-down\" is for a downstream"),
        (
            "",
            asked("{ kind = \"docsis-3.1\", sustained = \"20 Mbit/s\" }"),
            "access.up.grants.sustained: 20 Mbit/s, above the rate of 10 Mbit/s, limits nothing",
        ),
        (
            "",
            flow("2 Mbit/s", ", sustained = \"5 Mbit/s\""),
            "access.up.queue.sustained: 5 Mbit/s, where grants have 2 Mbit/s",
        ),
        (
            "loss = { correlation = \"50 %\" }",
            up.to_owned(),
            "access.down.loss.correlation: a correlation of no losses",
        ),
        (&htb(""), up.to_owned(), "access.down.queue.classes: no class matches a packet, so that all depart unshaped"),
    ] {
        let warning = told(down, &up);
        assert!(warning.contains(expected), "{warning}");
    }
    for (down, up) in [
        ("grants = \"5g-tdd-down\"", asked("\"5g-tdd\"")),
        ("loss = { random = \"1 %\", correlation = \"50 %\" }", flow("2 Mbit/s", "")),
        (&htb(", default = \"leaf\""), up.to_owned()),
    ] {
        assert_eq!(told(down, &up), "");
    }
}
