use proptest::prelude::*;
use serde_json::{Value, json};

use super::format::OWN;
use super::*;
use crate::load::Direction;
use crate::probe::{Kind, Sample, Subject};
use crate::report::{Estimate, Phase, SCHEMA, Series, Throughput};
use crate::statistics;
use crate::train::Way;

/// Written by flent 2.1.1: `flent ping -H 127.0.0.1 -l 3 -s 0.5` against irtt 0.9.0, without the metadata of its host.
const PING_FILE: &[u8] = include_bytes!("../../tests/data/ping.flent.gz");

fn sample(sent_s: f64, rtt_s: Option<f64>) -> Sample {
    Sample { sent_s, rtt_s, ..Sample::default() }
}

fn series(kind: Kind, code_point: u8, samples: Vec<Sample>) -> Series {
    let delays: Vec<f64> = samples.iter().filter_map(|sample| sample.rtt_s).collect();
    let subject = Subject { target: "192.0.2.1".to_owned(), kind, code_point };
    Series { round_trip: statistics::delays(&delays), ..Series::new(subject, samples) }
}

fn throughput(samples: &[(f64, f64)]) -> Throughput {
    let estimate = Estimate { value: 8e6, low: 7.5e6, high: 8.5e6 };
    Throughput {
        bytes: 1_000_003,
        streams: 4,
        goodput_bps: estimate,
        samples: samples.to_vec(),
        ..Throughput::default()
    }
}

fn phase(load: Option<Direction>, start_s: f64, rates: &[(f64, f64)], probes: Vec<Series>) -> Phase {
    let loaded = |wanted| load.filter(|load| *load == wanted || *load == Direction::Both);
    Phase {
        load,
        start_s,
        duration_s: 1.0,
        ramp_s: 0.2,
        download: loaded(Direction::Download).map(|_| throughput(rates)),
        upload: loaded(Direction::Upload).map(|_| throughput(rates)),
        probes,
        ..Phase::default()
    }
}

fn measurement(phases: Vec<Phase>) -> Measurement {
    Measurement {
        schema: SCHEMA,
        version: "0.1.0".to_owned(),
        // 2026-05-30 15:42:47.075621 UTC
        started_unix_s: 1_780_155_767.075_621,
        host: "192.0.2.1".to_owned(),
        load: Some("iperf3 192.0.2.1:5201".to_owned()),
        phases,
        clocks: None,
        warnings: vec!["a warning".to_owned()],
        complete: true,
    }
}

/// The JSON of a written file.
fn written(measurement: &Measurement) -> Value {
    serde_json::from_slice(&decompress(&write(measurement)).ok().unwrap()).unwrap()
}

/// flent's man page: `tcp_cong_control`, a pair where the ends differ.
#[test]
fn the_congestion_controls_are_a_parameter_of_the_test() {
    let parameters = |names: &[(Direction, Option<&str>, Option<&str>)]| {
        let one = |(load, down, up): &(Direction, Option<&str>, Option<&str>)| {
            let mut phase = phase(Some(*load), 0.0, &[(0.5, 8e6)], Vec::new());
            for (throughput, name) in [(&mut phase.download, down), (&mut phase.upload, up)] {
                throughput.iter_mut().for_each(|throughput| throughput.congestion = name.map(str::to_owned));
            }
            phase
        };
        written(&measurement(names.iter().map(one).collect()))["metadata"]["TEST_PARAMETERS"].clone()
    };
    let (down, up, both) = (Direction::Download, Direction::Upload, Direction::Both);
    assert_eq!(parameters(&[(down, Some("bbr"), None)]), json!({"tcp_cong_control": "bbr"}));
    let two = [(down, Some("bbr"), None), (up, None, Some("cubic")), (both, Some("bbr"), Some("cubic"))];
    assert_eq!(parameters(&two), json!({"tcp_cong_control": "cubic,bbr"}));
    assert_eq!(parameters(&[(both, None, Some("cubic"))]), json!({}));
    assert_eq!(parameters(&[(down, Some("bbr"), None), (down, Some("reno"), None)]), json!({}));
    assert_eq!(parameters(&[]), json!({}));
}

/// A file that flent's `tcp_upload` or `rrul_be` could have written, by `resultset.py`.
fn by_hand() -> Value {
    json!({
        "version": 4,
        "metadata": {
            "NAME": "rrul_be", "HOST": "server", "T0": "2026-05-30T15:42:47.500000Z", "STEP_SIZE": 0.5,
            "TIME": "2026-05-30T15:42:40.000000Z", "FLENT_VERSION": "2.1.1",
            "SERIES_META": { "Ping (ms) UDP EF": { "RUNNER": "IrttRunner" } },
        },
        "x_values": [0.0, 0.5, 1.0, 1.5, 2.0, 2.5],
        "results": {
            "TCP upload BE": [null, null, null, 1.5, 2.5, null],
            "TCP upload BE2": [null, null, null, 1.0, 1.0, null],
            "TCP upload BE::tcp_cwnd": [null, null, 10, 10, 10, null],
            "TCP upload avg": [null, null, null, 1.25, 1.75, null],
            "Ping (ms) ICMP": [10.0, 10.0, 20.0, 31.0, 20.0, 12.0],
            "Ping (ms) UDP EF": [null, 11.0, null, null, null, null],
            "Ping (ms) avg": [10.0, 10.5, 20.0, 31.0, 20.0, 12.0],
        },
        "raw_values": {
            "Ping (ms) ICMP": [
                { "t": 1_780_155_767.51, "val": 10.0, "seq": 1.0 },
                { "t": 1_780_155_768.8, "val": 100.0, "seq": 2.0 },
                { "t": 1_780_155_768.75, "val": 10.0, "seq": 4.0 },
                { "t": 1_780_155_769.8, "val": 12.0, "seq": 5.0 },
            ],
        },
    })
}

fn refused(file: &Value) -> String {
    read("line.flent.gz", file.to_string().as_bytes()).unwrap_err().to_string()
}

#[test]
fn a_file_of_flent_is_read() {
    let read = read("ping.flent.gz", PING_FILE).unwrap();
    assert_eq!((read.host.as_str(), read.version.as_str()), ("127.0.0.1", "flent 2.1.1"));
    // T0 is 2026-11-23T18:54:55.367346Z.
    assert!((read.started_unix_s - 1_795_460_095.367_346).abs() < 1e-6, "{}", read.started_unix_s);
    let [phase] = &read.phases[..] else { panic!("{} phases", read.phases.len()) };
    assert_eq!((phase.load, phase.start_s, phase.duration_s), (None, 0.0, 3.0));
    let kinds: Vec<_> = phase.probes.iter().map(|series| (series.subject.kind, series.samples.len())).collect();
    assert_eq!(kinds, [(Kind::Icmp, 6), (Kind::Irtt, 6)]);
    let icmp = &phase.probes[0];
    let rtt_ms: Vec<f64> = icmp.samples.iter().map(|sample| sample.rtt_s.unwrap() * 1e3).collect();
    // MIN_VALUE, MAX_VALUE and MEAN_VALUE of the series' metadata are 0.026, 0.05 and 0.042.
    assert!((rtt_ms[0] - 0.026).abs() < 1e-12, "{rtt_ms:?}");
    let delays = icmp.round_trip.unwrap();
    assert!((delays.max_s - 5e-5).abs() < 1e-12 && (delays.mean_s - 4.2e-5).abs() < 5e-7, "{delays:?}");
    // The first answer is the start of the file.
    assert!((icmp.samples[0].sent_s + 2.6e-5).abs() < 1e-6, "{:?}", icmp.samples[0]);
    let irtt = &phase.probes[1].samples[0];
    assert!((irtt.up_s.unwrap() - 124.705e-6).abs() < 1e-12 && (irtt.down_s.unwrap() - 86.118e-6).abs() < 1e-12);
    assert!(read.clocks.is_some() && read.warnings.is_empty());
}

#[test]
fn streams_are_added_and_times_without_load_are_idle() {
    let read = read("line.flent", by_hand().to_string().as_bytes()).unwrap();
    let spans: Vec<_> = read.phases.iter().map(|phase| (phase.load, phase.start_s, phase.duration_s)).collect();
    // The first interval with data ends at 1.5, the last at 2.0.
    assert_eq!(spans, [(None, 0.0, 1.0), (Some(Direction::Upload), 1.0, 1.0), (None, 2.0, 1.0)]);
    let loaded = &read.phases[1];
    let upload = loaded.upload.as_ref().unwrap();
    assert_eq!((upload.streams, &upload.samples), (2, &vec![(0.5, 2.5e6), (1.0, 3.5e6)]));
    assert!((upload.goodput_bps.value - 3e6).abs() < 1.0 && loaded.download.is_none());
    // Two intervals of half a second at 2.5 and 3.5 Mbit/s.
    assert_eq!(upload.bytes, 375_000);
}

#[test]
fn pings_of_flent_have_their_class_and_their_losses() {
    let read = read("line.flent", by_hand().to_string().as_bytes()).unwrap();
    let loaded = read.phases.iter().find(|phase| phase.load.is_some()).unwrap();
    let of = |series: &Series| (series.subject.kind, series.subject.code_point, series.samples.len(), series.lost);
    assert_eq!(loaded.probes.iter().map(of).collect::<Vec<_>>(), [(Kind::Icmp, 0, 3, 1), (Kind::Irtt, 46, 0, 0)]);
    let icmp = &loaded.probes[0];
    assert_eq!(icmp.reordered, 1, "the answer to the fourth came before that to the second");
    let sent: Vec<f64> = icmp.samples.iter().map(|sample| (sample.sent_s * 1e3).round()).collect();
    assert_eq!(sent, [1200.0, 1220.0, 1240.0], "the third is missing, in the middle between its neighbours");
    assert_eq!(icmp.samples[1].rtt_s, None);
    let idle = &read.phases[0];
    assert_eq!(idle.probes[1].samples.len(), 1, "from the grid, where raw values are missing");
    assert_eq!(idle.probes[1].samples[0].rtt_s, Some(0.011));
}

/// The lost probes of a series of pings by the tenth of a second in which they were sent, and the warnings.
#[expect(clippy::cast_possible_truncation, reason = "some tenths of a second")]
fn lost_of(pings: &Value) -> (Vec<i64>, Vec<String>) {
    let mut file = by_hand();
    file["metadata"]["T0"] = json!("1970-01-01T00:00:00.000000Z");
    file["results"] = json!({ "Ping (ms) ICMP": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0] });
    file["raw_values"] = json!({ "Ping (ms) ICMP": pings });
    let read = read("line.flent", file.to_string().as_bytes()).unwrap();
    let [phase] = &read.phases[..] else { panic!("{} phases", read.phases.len()) };
    let lost: Vec<&Sample> = phase.probes[0].samples.iter().filter(|sample| sample.rtt_s.is_none()).collect();
    assert_eq!(phase.probes[0].lost, lost.len() as u64);
    (lost.iter().map(|sample| (sample.sent_s * 10.0).round() as i64).collect(), read.warnings)
}

#[test]
fn losses_are_gaps_in_the_sequence_numbers() {
    // Sent at this tenth of a second.
    let answer = |tenth: u32, seq: u32| json!({ "t": f64::from(tenth) / 10.0 + 0.01, "val": 10.0, "seq": seq });
    let of = |pings: &[(u32, u32)]| {
        lost_of(&pings.iter().map(|&(tenth, seq)| answer(tenth, seq)).collect::<Vec<_>>().into())
    };
    let none: Vec<String> = Vec::new();
    assert_eq!(of(&[(0, 7), (1, 8), (2, 9)]), (vec![], none.clone()));
    // fping counts from zero; 3 came after 4, and 1, 5 and 6 did not come.
    assert_eq!(of(&[(0, 0), (2, 2), (4, 4), (3, 3), (7, 7)]), (vec![1, 5, 6], none.clone()));
    // The numbers of ping have 16 bits: 65 534 is missing, 65 535 came after 0, and 1 is missing.
    assert_eq!(of(&[(0, 65_533), (3, 0), (2, 65_535), (5, 2)]), (vec![1, 4], none.clone()));
    // irtt's runner records the request that was lost: it is not counted twice.
    let lost = json!({ "t": 0.1, "lost": true, "lost_dir": "up", "seq": 1 });
    assert_eq!(lost_of(&json!([answer(0, 0), lost, answer(3, 3)])), (vec![1, 2], none));
}

#[test]
fn losses_without_sequence_numbers_are_unknown() {
    let unknown =
        |of: &str| vec![format!("losses of {of} are unknown and count as none: the file does not number their probes")];
    let answer = |seq: Value| json!({ "t": 1.0, "val": 10.0, "seq": seq });
    let bare = json!({ "t": 0.5, "val": 10.0 });
    for pings in [
        json!([]),
        json!([bare]),
        json!([bare, answer(json!(1))]),
        json!([answer(json!(null))]),
        json!([answer(json!(0.5))]),
        // More than a file of flent has.
        json!([answer(json!(0)), answer(json!(1_000_002))]),
        json!([answer(json!(0)), answer(json!(1e300))]),
    ] {
        assert_eq!(lost_of(&pings), (vec![], unknown("ICMP server")), "{pings}");
    }
    let read = read("line.flent", by_hand().to_string().as_bytes()).unwrap();
    assert_eq!(read.warnings[1..], unknown("irtt server (UDP EF) @46"), "from the grid");
}

#[test]
fn local_times_of_old_files_are_shifted_by_whole_hours() {
    let mut file = by_hand();
    file["metadata"]["T0"] = json!("2026-05-30T17:42:47.500000");
    let read = read("line.flent", file.to_string().as_bytes()).unwrap();
    assert!((read.started_unix_s - 1_780_155_767.5).abs() < 1e-6, "{}", read.started_unix_s);
}

#[test]
fn old_versions_are_read_from_their_grid() {
    let mut file = by_hand();
    file["version"] = json!(2);
    let read = read("line.flent", file.to_string().as_bytes()).unwrap();
    let pings: usize = read.phases.iter().map(|phase| phase.probes[0].samples.len()).sum();
    assert_eq!(pings, 6);
}

#[test]
fn a_fault_is_told_with_file_and_key() {
    let with = |change: fn(&mut Value)| {
        let mut file = by_hand();
        change(&mut file);
        refused(&file)
    };
    for (change, told) in [
        ((|file| file["version"] = json!(5)) as fn(&mut Value), "version: is 5; 1 to 4 are known"),
        (|file| file["version"] = json!("four"), "version: a whole number is expected"),
        (|file| file["metadata"] = json!([]), "metadata: an object is expected"),
        (|file| file["metadata"]["T0"] = json!("yesterday"), "metadata.T0: `yesterday` is no date"),
        (|file| drop(file.as_object_mut().unwrap().remove("x_values")), "x_values: missing"),
        (|file| file["x_values"][2] = json!("x"), "x_values[2]: a number or null is expected"),
        (|file| file["x_values"][2] = json!(null), "x_values[2]: a number is expected"),
        (|file| file["x_values"][0] = json!(9), "x_values: times in rising order"),
        (|file| file["x_values"] = json!([]), "results.\"Ping (ms) ICMP\": has 6 values; `x_values` has 0"),
        (|file| file["results"]["TCP upload BE"][1] = json!({}), "results.\"TCP upload BE\"[1]: a number or null"),
        (
            |file| file["raw_values"]["Ping (ms) ICMP"][1]["t"] = json!("noon"),
            "raw_values.\"Ping (ms) ICMP\"[1].t: a number is expected",
        ),
        (|file| file["raw_values"]["Ping (ms) ICMP"][0] = json!({}), "raw_values.\"Ping (ms) ICMP\"[0].t: missing"),
        (|file| file["metadata"][OWN] = json!({"schema": 1}), "metadata.LASTMILE: no measurement of lastmile: missing"),
    ] {
        let text = with(change);
        assert!(text.starts_with("line.flent.gz: ") && text.contains(told), "{text}: expected {told}");
    }
    for (bytes, told) in [
        (&b"{"[..], "file: not JSON"),
        (b"BZh9", "file: compressed by bzip2"),
        (&[0x1f, 0x8b, 8, 0], "file: not gzip"),
        (&PING_FILE[..900], "file: not gzip"),
    ] {
        let text = read("line.flent.gz", bytes).unwrap_err().to_string();
        assert!(text.contains(told), "{text}: expected {told}");
    }
}

#[test]
fn a_sample_without_its_place_is_told() {
    let measured = measurement(vec![phase(None, 0.0, &[], vec![series(Kind::Icmp, 0, vec![sample(0.1, Some(0.01))])])]);
    let mut file = written(&measured);
    file["raw_values"]["Ping (ms) ICMP"][0][OWN]["series"] = json!(7);
    assert!(refused(&file).contains("raw_values.\"Ping (ms) ICMP\"[0].LASTMILE: `series` is the index"));
    file["raw_values"]["Ping (ms) ICMP"][0][OWN]["phase"] = json!(7);
    assert!(refused(&file).contains("`phase` is the index of a phase"));
}

#[test]
fn series_have_the_names_of_the_test_that_fits() {
    let pings = || {
        vec![
            series(Kind::Icmp, 0, vec![sample(0.1, Some(0.01))]),
            series(Kind::Irtt, 0, vec![]),
            series(Kind::Udp, 46, vec![]),
        ]
    };
    let names = |phases: Vec<Phase>| {
        let file = written(&measurement(phases));
        let results: Vec<String> = file["results"].as_object().unwrap().keys().cloned().collect();
        (file["metadata"]["NAME"].as_str().unwrap().to_owned(), results)
    };
    let rates = [(0.5, 8e6)];
    let idle = || phase(None, 0.0, &[], pings());
    let plain = ["Ping (ms) ICMP", "Ping (ms) UDP", "Ping (ms) UDP EF"];
    assert_eq!(names(vec![idle()]), ("ping".to_owned(), plain.map(str::to_owned).to_vec()));
    let (name, series) = names(vec![idle(), phase(Some(Direction::Download), 1.0, &rates, pings())]);
    assert_eq!((name.as_str(), series.last().unwrap().as_str()), ("tcp_download", "TCP download"));
    let (name, series) = names(vec![idle(), phase(Some(Direction::Upload), 1.0, &rates, pings())]);
    assert_eq!((name.as_str(), series.last().unwrap().as_str()), ("tcp_upload", "TCP upload"));
    let (name, series) = names(vec![idle(), phase(Some(Direction::Both), 1.0, &rates, pings())]);
    let rrul = [
        "Ping (ms) ICMP",
        "Ping (ms) UDP BE",
        "Ping (ms) UDP EF",
        "Ping (ms) avg",
        "TCP download avg",
        "TCP download sum",
        "TCP totals",
        "TCP upload avg",
        "TCP upload sum",
    ];
    assert_eq!((name.as_str(), series), ("rrul", rrul.map(str::to_owned).to_vec()));
}

#[test]
fn the_grid_has_values_only_near_samples() {
    let rates = [(0.25, 8e6), (0.5, 10e6), (1.0, 10e6)];
    let measured =
        measurement(vec![phase(None, 0.0, &[], vec![]), phase(Some(Direction::Upload), 1.0, &rates, vec![])]);
    let file = written(&measured);
    let values: Vec<Option<f64>> =
        file["results"]["TCP upload"].as_array().unwrap().iter().map(Value::as_f64).collect();
    // Steps 0, 0.2, ... 1.8; intervals end at 1.25, 1.5 and 2.0.
    assert_eq!(values.len(), 10);
    assert_eq!(values[..6], [None; 6]);
    assert_eq!(values[6], Some(8.0), "1.2 is less than half a step before 1.25");
    let between = values[7].unwrap();
    assert!((between - 9.2).abs() < 1e-9, "1.4 is 0.6 of the time between 1.25 and 1.5: {between}");
    assert_eq!(values[8..], [Some(10.0); 2]);
    assert_eq!(file["metadata"]["T0"], "2026-05-30T15:42:47.075621Z");
}

proptest! {
    /// Every sample and every figure survives, bit for bit.
    #[test]
    fn a_measurement_is_read_as_it_was_written(
        sent in proptest::collection::vec((0.0..1e4_f64, proptest::option::of(1e-6..10.0_f64)), 0..40),
        rates in proptest::collection::vec((0.0..1e4_f64, 0.0..1e10_f64), 0..20),
        load in proptest::option::of(prop_oneof![
            Just(Direction::Download),
            Just(Direction::Upload),
            Just(Direction::Both)
        ]),
        kind in prop_oneof![Just(Kind::Icmp), Just(Kind::Irtt), Just(Kind::HttpSelf)],
        code_point in 0_u8..64,
        started in 0.0..4e9_f64,
    ) {
        let samples: Vec<Sample> = sent.iter().map(|&(sent_s, rtt_s)| Sample {
            sent_s,
            rtt_s,
            up_s: rtt_s.map(|rtt_s| rtt_s / 3.0),
            down_s: None,
            reordered: sent_s > 50.0,
            duplicate: false,
            lost: rtt_s.is_none().then_some(Way::Up),
        }).collect();
        let probes = || vec![series(kind, code_point, samples.clone()), series(kind, code_point, samples.clone())];
        let phases = vec![phase(None, 0.0, &[], probes()), phase(load, 1.0, &rates, probes())];
        let measured = Measurement { started_unix_s: started, ..measurement(phases) };
        prop_assert_eq!(read("own.flent.gz", &write(&measured)).unwrap(), measured);
    }

    /// A file with bytes changed or missing is read or refused, and what is read can be written.
    #[test]
    fn no_file_panics(changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
                      cut in proptest::option::of(any::<proptest::sample::Index>())) {
        for file in [by_hand().to_string(), written(&measurement(vec![phase(
            Some(Direction::Both), 0.0, &[(0.5, 1e6)], vec![series(Kind::Icmp, 0, vec![sample(0.1, Some(0.01))])],
        )])).to_string()] {
            let mut bytes = file.into_bytes();
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            if let Ok(read) = read("x", &bytes) {
                prop_assert!(!write(&read).is_empty());
            }
        }
    }
}
