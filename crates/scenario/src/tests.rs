//! The schema against the reader: nothing is documented that is not read, and no default is said that does not hold.

use std::collections::BTreeSet;

use lastmile_tcp::{AckConfig, Config, CongestionConfig, Variant};
use lastmile_units::{ByteCount, Duration};

use crate::diagnostics::Source;
use crate::document::Document;
use crate::kinds::FileKind;
use crate::reader::Reader;
use crate::reference::chapters;
use crate::scenario::read_root;
use crate::schema::{Fallback, Kind};
use crate::{Scenario, scenario, tcp};

/// Which keys reading `text` asks for.
fn read_keys(text: &str) -> BTreeSet<(&'static str, &'static str)> {
    let reader = Reader::new(Document::parse(Source::new("f", text), &[]).unwrap_or_else(|report| panic!("{report}")));
    let _ = read_root(&reader.root().open(&scenario::ROOT), "f");
    let (report, read) = reader.finish();
    assert!(!report.has_errors(), "{report}");
    read
}

/// A file in which every kind of table occurs.
const EVERYTHING: &str = r#"
duration = "10 s"
[access]
encapsulation = { overhead = 8, framing = "atm" }
down = { rate = "2 Mbit/s", interleave = "cells", queue = { kind = "priority", classes = [{}, {}] } }
up.rate = "512 kbit/s"
up.grants = { kind = "docsis-3.1", sustained = "400 kbit/s", peak = "500 kbit/s" }
up.queue = { kind = "sad", exempt = { not = { dscp = 3 } } }
lan = { queue = { limit = "5 packets" } }
processing = { client = "1 ms" }
[[case]]
name = "another seed"
set = "seed=2"
[[node]]
name = "far"
[[node]]
name = "farther"
[[node]]
name = "farthest"
[[link]]
from = "server"
to = "far"
queue = { kind = "tbf", rate = "1 Mbit/s", burst = "3000 wire bytes" }
back.queue.kind = "priority"
back.queue.classes = [{ match = { pure_ack = true }, queue = { kind = "ack-filter" } }, {}]
[[link]]
from = "farther"
to = "farthest"
queue = { kind = "cake", encapsulation = { overhead = 8, framing = "atm" } }
[[link]]
from = "far"
to = "farther"
encapsulation = "pppoa-vcmux"
[link.queue]
kind = "policer"
meter = { kind = "token-bucket", rate = "1 Mbit/s", burst = "3000 wire bytes" }
[link.queue.queue]
kind = "policer"
[[link.queue.queue.rules]]
meter = { kind = "car", rate = "1 Mbit/s", burst = "3000 wire bytes" }
[[link.queue.queue.rules]]
meter = { kind = "srtcm", rate = "1 Mbit/s", burst = "3000 wire bytes", excess_burst = "0 wire bytes" }
[[link.queue.queue.rules]]
meter.kind = "trtcm"
meter.rate = "1 Mbit/s"
meter.burst = "3000 wire bytes"
meter.peak = "2 Mbit/s"
meter.peak_burst = "3000 wire bytes"
[[link.queue.queue.rules]]
meter = { kind = "gcra", rate = "1 Mbit/s", tolerance = "20 ms" }
[[link.queue.queue.rules]]
meter = { kind = "police", rate = "1 Mbit/s", burst = "3000 wire bytes" }
[[node]]
name = "managed"
[[link]]
from = "far"
to = "managed"
queue = { kind = "codel", ce_threshold = "1 ms" }
back = { queue = { kind = "fq-codel", ce_threshold = "1 ms", ce_threshold_selector = "0x01/0x03", per = "source" } }
[[node]]
name = "early"
[[link]]
from = "far"
to = "early"
queue = { kind = "red" }
trace = { repeat = "2 s", steps = [{ at = "0 s", rate = "1 Mbit/s", outage = false, delay = "1 ms", loss = "0 %" }] }
jitter = { time = "1 ms", correlation = "20 %", distribution = "normal" }
reorder = { share = "1 %", gap = 3 }
duplicate = { share = "1 %", correlation = "1 %" }
bit_error_rate = 1e-9
loss = { random = "1 %", correlation = "5 %" }
back.queue = { kind = "sfq" }
back.loss = { gemodel = { p = "1 %" } }
back.jitter = "1 ms"
back.reorder = true
back.duplicate = "1 %"
back.bit_error_rate = 1e-7
[[node]]
name = "generated"
[[link]]
from = "far"
to = "generated"
rate = "10 Mbit/s"
trace = { generate = "starlink" }
loss = { state = { p13 = "1 %" } }
back = { trace = { generate = "cell" } }
[[node]]
name = "generated, too"
[[link]]
from = "far"
to = "generated, too"
rate = "10 Mbit/s"
trace = { generate = "dsl-retrain", seed = 3 }
[[node]]
name = "fair"
[[link]]
from = "managed"
to = "fair"
queue = { kind = "drr", classes = [{ queue = { kind = "wf2q-plus", classes = [{ match = { pure_ack = true } }] } }] }
back = { queue = { kind = "wfq", classes = [{}] } }
[[node]]
name = "acks"
[[link]]
from = "far"
to = "acks"
queue = { kind = "ack-collapsing" }
back = { queue = { kind = "cake-ack-filter" } }
[[node]]
name = "paced"
[[link]]
from = "acks"
to = "paced"
queue = { kind = "ack-pacing", rate = "1 Mbit/s" }
back = { queue = { kind = "window-clamp", window = "64 kB" } }
[[traffic]]
name = "over quic"
kind = "bulk"
from = "server"
to = "far"
transport = "quic"
quic = { ack_frequency = { every = 10 } }
[[node]]
name = "regenerated"
[[link]]
from = "acks"
to = "regenerated"
queue = { kind = "ack-regenerator" }
back = { queue = { kind = "pie" } }
[[node]]
name = "dual"
[[link]]
from = "regenerated"
to = "dual"
queue = { kind = "fq-pie", per = "hosts", ecn_prob = "5 %" }
[[node]]
name = "shallow"
[[link]]
from = "dual"
to = "shallow"
queue = { kind = "dualpi2", step_thresh = "2 ms", min_qlen_step = "1 packet", classic_protection = "20 %" }
back = { queue = { kind = "docsis-pie", sustained = "1 Mbit/s", peak = "2 Mbit/s", limit = "9 packets" } }
[[node]]
name = "shared"
[[link]]
from = "acks"
to = "shared"
[link.queue]
kind = "htb"
classes = [
    { name = "all", rate = "1 Mbit/s" },
    { name = "a", parent = "all", rate = "1 kbit/s", match = { dscp = 3 } },
    { name = "b", parent = "all", rate = "1 kbit/s", queue = { kind = "custom", classes = [{ packets = 3 }] } },
]
[link.back.queue]
kind = "cbq"
rate = "1 Mbit/s"
classes = [{ name = "a", share = "10 %" }, { name = "b", share = "1 kbit/s" }]
[[node]]
name = "curved"
[[link]]
from = "shared"
to = "curved"
[link.queue]
kind = "hfsc"
default = "b"
classes = [
    { name = "all", ls = "1 Mbit/s", ul = "1 Mbit/s" },
    { name = "a", parent = "all", sc = { umax = "1500 wire bytes", dmax = "10 ms", rate = "1 kbit/s" } },
    { name = "b", parent = "all", rt = { d = "10 ms", m2 = "1 kbit/s" }, ls = "1 kbit/s" },
    { name = "c", parent = "all", ls = { m1 = "2 kbit/s", d = "1 s", m2 = "1 kbit/s" } },
]
[atm]
encapsulation = "vc-mux"
[[switch]]
name = "s1"
memory = "900 cells"
queue = { kind = "per-vc", queue = { kind = "epd", limit = "800 cells", threshold = "700 cells" } }
abr = { kind = "efci", threshold = "9 cells" }
[[switch]]
name = "s2"
abr = { kind = "erica" }
[switch.queue]
kind = "classes"
[[switch.queue.classes]]
name = "a"
[switch.queue.classes.queue]
kind = "spd"
limit = "9 cells"
threshold = "8 cells"
vc_threshold = "2 cells"
activation = "3 cells"
[[switch.queue.classes]]
name = "b"
queue = { kind = "epd-per-vc", limit = "9 cells", threshold = "8 cells" }
[[link]]
from = "far"
to = "s1"
rate = "155 Mbit/s"
back = { queue = { kind = "ppd" } }
[[link]]
from = "s1"
to = "s2"
interface = "oc-3c"
queue = { kind = "tail-drop" }
[[link]]
from = "s2"
to = "celled"
rate = "155 Mbit/s"
[[contract]]
name = "best"
class = "b"
[[contract]]
name = "constant"
kind = "cbr"
pcr = "1 Mbit/s"
[[contract]]
name = "frames"
kind = "gfr"
pcr = "2 Mbit/s"
mcr = "1 Mbit/s"
mbs = "100 cells"
mfs = "30 cells"
[[contract]]
name = "one"
kind = "sbr1"
pcr = "2 Mbit/s"
scr = "1 Mbit/s"
mbs = "100 cells"
[[contract]]
name = "two"
kind = "sbr2"
pcr = "2 Mbit/s"
scr = "1 Mbit/s"
mbs = "100 cells"
[[contract]]
name = "three"
kind = "sbr3"
pcr = "2 Mbit/s"
scr = "1 Mbit/s"
mbs = "100 cells"
[[contract]]
name = "available"
kind = "abr"
pcr = "2 Mbit/s"
[[vp]]
name = "path"
contract = "three"
[[edge]]
name = "assured"
dscp = ["af11", "af12", "af13"]
meter = { kind = "srtcm", rate = "1 Mbit/s", burst = "9000 wire bytes", excess_burst = "20000 wire bytes" }
[[traffic]]
name = "in cells"
kind = "bulk"
from = "far"
to = "celled"
contract = "best"
vp = "path"
[[traffic]]
kind = "bulk"
direction = "down"
tcp = { mss = "512 B" }
[[traffic]]
kind = "persistent"
from = "client"
to = "far"
[[traffic]]
kind = "writes"
direction = "up"
rate = "1 kbit/s"
tcp = { mss = "512 B" }
[[traffic]]
kind = "poisson"
direction = "up"
rate = "1 kbit/s"
[[traffic]]
kind = "onoff"
direction = "up"
rate = "1 kbit/s"
[[traffic]]
kind = "voice"
direction = "up"
[[traffic]]
kind = "blast"
direction = "up"
rate = "1 kbit/s"
[[traffic]]
kind = "web"
tcp = { mss = "512 B" }
[[traffic]]
kind = "video"
tcp = { mss = "512 B" }
[[traffic]]
kind = "backup"
tcp = { mss = "512 B" }
[[traffic]]
kind = "conference"
[[traffic]]
kind = "game"
[[traffic]]
kind = "swarm"
tcp = { mss = "512 B" }
[[traffic]]
kind = "replay"
direction = "up"
file = "../../scenarios/captures/download-and-call.pcapng"
client_prefix = "10.0.0.1"
[[traffic]]
kind = "ping"
"#;

#[test]
fn every_documented_key_is_read() {
    let read = read_keys(EVERYTHING);
    let sections = chapters().into_iter().flat_map(|(_, _, sections)| sections);
    let unread: Vec<_> = sections
        .flat_map(|section| section.keys.iter().map(|key| (section.heading, key.name)))
        .filter(|key| !read.contains(key))
        .collect();
    assert_eq!(unread, []);
}

#[test]
fn every_section_that_is_read_is_documented() {
    let documented: BTreeSet<_> =
        chapters().into_iter().flat_map(|(_, _, sections)| sections).map(|section| section.heading).collect();
    let unknown: Vec<_> =
        read_keys(EVERYTHING).into_iter().filter(|(heading, _)| !documented.contains(heading)).collect();
    assert_eq!(unknown, []);
}

/// TCP without settings has the defaults that the reference names.
#[test]
fn the_documented_defaults_of_tcp_are_those_of_tcp() {
    let written: Vec<String> = tcp::TCP
        .keys
        .iter()
        .filter_map(|key| match (key.fallback, key.kind) {
            (Fallback::Value(text), Kind::Flag | Kind::Count | Kind::Other(..)) if !matches!(text, "off" | "today") => {
                Some(format!("{} = {text}\n", key.name))
            }
            (Fallback::Value(text), _) => Some(format!("{} = \"{text}\"\n", key.name)),
            _ => None,
        })
        .collect();
    assert_eq!(
        written.len(),
        tcp::TCP.keys.len() - 4,
        "all but mss, send_buffer, autotune and initial_ssthresh have one"
    );
    let line = "duration = \"10 s\"\naccess = { down = { rate = \"2 Mbit/s\" }, up = { rate = \"512 kbit/s\" } }\n";
    let traffic = "[[traffic]]\nkind = \"persistent\"\ndirection = \"up\"\n";
    let today = Config {
        variant: Variant::Cubic,
        mss: 1448,
        receive_window: ByteCount::new(15 << 18),
        autotune: true,
        congestion: CongestionConfig {
            tso_deferral: true,
            byte_counting: lastmile_tcp::ByteCounting::Abc { limit: u8::MAX },
            ..CongestionConfig::default()
        },
        acks: AckConfig {
            delayed_ack: Duration::from_ms(200),
            quick_acks: true,
            read_delay: Duration::from_us(40),
            ..AckConfig::default()
        },
        timestamps: true,
        ..Config::default()
    };
    for text in [format!("{line}{traffic}[tcp]\nautotune = true\n{}", written.concat()), format!("{line}{traffic}")] {
        let scenario = Scenario::parse("f", &text, &[]).unwrap_or_else(|report| panic!("{report}"));
        assert_eq!(scenario.network_ref().traffic[0].tcp().next(), Some(&today));
    }
}

#[test]
fn no_heading_and_no_key_is_there_twice() {
    let mut headings = BTreeSet::new();
    for (_, _, sections) in chapters() {
        for section in sections {
            assert!(headings.insert(section.heading), "{}", section.heading);
            let mut keys = BTreeSet::new();
            assert!(section.keys.iter().all(|key| keys.insert(key.name)), "{}", section.heading);
            assert!(
                section.keys.iter().all(|key| !key.doc.contains('|') && !key.doc.is_empty()),
                "{}",
                section.heading
            );
        }
    }
}

/// A file of another kind is one error, which names the kind and the command that takes it.
#[test]
fn a_file_of_another_kind_is_one_error() {
    let scenario =
        "duration = \"1 s\"\nseed = 2\n[access]\nup = { rate = \"1 Mbit/s\" }\n[[traffic]]\nkind = \"ping\"\n";
    let policy =
        "name = \"p\"\n[line]\nup = \"1 Mbit/s\"\n[scheduler]\nkind = \"htb\"\n[[class]]\nname = \"c\"\n[ack]\n";
    let study = "scenario = \"line.toml\"\nseeds = 3\n[grid]\npolicy = [\"none\", \"cake\"]\n";
    let of_scenario = |text: &str| Scenario::parse("f.toml", text, &[]).map(|_| ()).unwrap_err().to_string();
    let of_policy = |text: &str| {
        crate::Policy::parse("f.toml", text, None::<crate::policy::Line>).map(|_| ()).unwrap_err().to_string()
    };
    let of_study = |text: &str| crate::StudyFile::parse("f.toml", text).map(|_| ()).unwrap_err().to_string();
    let (run, check, sweep) =
        ("`lastmile run FILE`", "`lastmile policy check FILE`", "`lastmile study FILE --out DIR`");
    let cases = [
        (of_scenario(policy), "this is a policy, where a scenario is expected", check),
        (of_scenario(study), "this is a study, where a scenario is expected", sweep),
        (of_policy(scenario), "this is a scenario, where a policy is expected", run),
        (of_policy(study), "this is a study, where a policy is expected", sweep),
        (of_study(scenario), "this is a scenario, where a study is expected", run),
        (of_study(policy), "this is a policy, where a study is expected", check),
    ];
    for (said, wrong, command) in cases {
        assert!(said.starts_with(&format!("error: f.toml: {wrong}\nhint: {command}")), "{said}");
        assert_eq!(said.matches("error: ").count(), 1, "{said}");
    }
    // What `lastmile policy show` prints is prose.
    let prose = "cake\nCAKE both ways\n\nline: 512 kbit/s up\nqueue: cake\nbehind the downstream: cake\n";
    let said = of_scenario(prose);
    assert!(said.starts_with("error: f.toml:1:5: ") && said.contains("`lastmile policy show NAME --file`"), "{said}");
    assert_eq!(said.matches("error: ").count(), 1, "{said}");
    // A key of another kind in a scenario is a fault of its own, and an override is none of the file.
    let mixed = of_scenario("duration = \"1 s\"\n[ack]\n[[traffic]]\nkind = \"ping\"\n");
    assert!(mixed.contains("unknown key \"ack\""), "{mixed}");
    let set = Scenario::parse("f.toml", "duration = \"1 s\"\n", &["ack.rate=1".to_owned()]);
    let set = set.map(|_| ()).unwrap_err().to_string();
    assert!(set.contains("unknown key \"ack\""), "{set}");
}

/// A key that tells the kind of a file is one of that kind's schema, and of no other's.
#[test]
fn keys_that_tell_the_kind_of_a_file_belong_to_that_kind_alone() {
    let unknown = |kind: FileKind, key: &str| {
        // The first key is of the kind itself, so that the second is judged by its schema.
        let text = format!("{} = 1\n{key} = 1\n", kind.keys()[0]);
        let said = match kind {
            FileKind::Scenario => Scenario::parse("f", &text, &[]).map(|_| ()).unwrap_err(),
            FileKind::Policy => crate::Policy::parse("f", &text, None::<crate::policy::Line>).map(|_| ()).unwrap_err(),
            FileKind::Study => crate::StudyFile::parse("f", &text).map(|_| ()).unwrap_err(),
        };
        said.to_string().contains(&format!("unknown key {key:?}"))
    };
    for of in FileKind::ALL {
        for key in of.keys() {
            for read_as in FileKind::ALL.into_iter().filter(|kind| kind.keys()[0] != *key) {
                assert_eq!(unknown(read_as, key), read_as != of, "{key} in a {read_as:?}");
            }
        }
    }
}
