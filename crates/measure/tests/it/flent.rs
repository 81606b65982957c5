//! Our data files in flent, and flent's in ours.

use std::path::{Path, PathBuf};
use std::process::Command;

use lastmile_measure::flent;
use lastmile_measure::load::Direction;
use lastmile_measure::probe::{Kind, Sample, Subject};
use lastmile_measure::report::{Estimate, Measurement, Phase, SCHEMA, Series, Throughput};

use crate::servers::programs;

fn ramp(from: f64, to: f64, at: f64) -> f64 {
    from + (to - from) * at / 10.0
}

/// Ten seconds idle, ten with load whose rate and delay rise.
fn measurement(load: Option<Direction>) -> Measurement {
    let throughput = |to_bps: f64| {
        let samples: Vec<(f64, f64)> = (1..=40).map(f64::from).map(|n| (n / 4.0, ramp(1e6, to_bps, n / 4.0))).collect();
        let goodput_bps = Estimate { value: to_bps / 2.0, low: 0.0, high: to_bps };
        Throughput { bytes: 1, streams: 4, congestion: None, goodput_bps, ramp_included: false, samples }
    };
    let series = |kind: Kind, start_s: f64, to_s: f64| {
        let sample = |n: f64| {
            let rtt_s = ramp(0.01, to_s, n / 10.0);
            Sample { sent_s: start_s + n / 10.0, rtt_s: Some(rtt_s), ..Sample::default() }
        };
        let subject = Subject { target: "server".to_owned(), kind, code_point: 0 };
        Series::new(subject, (0..100).map(f64::from).map(sample).collect())
    };
    let phase = |load: Option<Direction>, start_s: f64, to_s: f64| Phase {
        load,
        start_s,
        duration_s: 10.0,
        ramp_s: 1.0,
        download: load.filter(|load| *load != Direction::Upload).map(|_| throughput(50e6)),
        upload: load.filter(|load| *load != Direction::Download).map(|_| throughput(10e6)),
        probes: vec![series(Kind::Icmp, start_s, to_s), series(Kind::Irtt, start_s, to_s / 2.0)],
        ..Phase::default()
    };
    let mut phases = vec![phase(None, 0.0, 0.01)];
    phases.extend(load.map(|load| phase(Some(load), 10.0, 0.2)));
    Measurement {
        schema: SCHEMA,
        version: "0.1.0".to_owned(),
        started_unix_s: 1_780_155_767.0,
        host: "server".to_owned(),
        load: load.map(|_| "iperf3 server:5201".to_owned()),
        phases,
        clocks: None,
        warnings: Vec::new(),
        complete: true,
    }
}

fn run(program: &PathBuf, folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !said.contains("ERROR"), "flent {arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The values of a series at each step as `flent -f csv` prints them.
fn column(csv: &str, name: &str) -> Vec<Option<f64>> {
    let mut lines = csv.lines().map(|line| line.split(',').map(|cell| cell.trim_matches('"')).collect::<Vec<_>>());
    let header = lines.next().unwrap();
    let at = header.iter().position(|cell| *cell == name).unwrap_or_else(|| panic!("{name} is not in {header:?}"));
    lines.map(|line| line[at].parse().ok()).collect()
}

/// `LASTMILE_KEEP=FOLDER` keeps files and pictures.
#[test]
#[ignore = "needs flent"]
fn flent_draws_written_files() {
    let keep = std::env::var_os("LASTMILE_KEEP").map(PathBuf::from);
    let scratch = tempfile::tempdir().unwrap();
    let folder = keep.as_deref().unwrap_or(scratch.path());
    for program in programs("flent", "LASTMILE_FLENT") {
        for (load, plots, series) in [
            (None, &["ping", "ping_cdf"][..], &[("Ping (ms) ICMP", 10.0)][..]),
            (Some(Direction::Download), &["totals", "download"], &[("TCP download", 40.2)]),
            (Some(Direction::Upload), &["totals", "ping"], &[("TCP upload", 8.2)]),
            (
                Some(Direction::Both),
                &["all_scaled", "totals", "ping_cdf", "box_totals"],
                &[
                    ("TCP download sum", 40.2),
                    ("TCP upload avg", 2.05),
                    ("TCP totals", 48.4),
                    ("Ping (ms) ICMP", 161.3),
                ],
            ),
        ] {
            let measured = measurement(load);
            let name = format!("{load:?}{}", flent::SUFFIX);
            std::fs::write(folder.join(&name), flent::write(&measured)).unwrap();
            assert_eq!(flent::read(&name, &std::fs::read(folder.join(&name)).unwrap()).unwrap(), measured);
            for plot in plots {
                let picture = format!("{load:?}-{plot}.png");
                run(&program, folder, &["-i", &name, "-p", plot, "-o", &picture]);
                let size = std::fs::metadata(folder.join(&picture)).unwrap().len();
                assert!(size > 8_000, "{picture} has {size} bytes");
            }
            run(&program, folder, &["-i", &name, "-f", "csv", "-o", "values.csv"]);
            let csv = std::fs::read_to_string(folder.join("values.csv")).unwrap();
            for (series, at_18_s) in series {
                let values = column(&csv, series);
                // Step 90 of 0.2 s is at 18 s: at 8 s of the load; a ping of 161 ms that came then left before.
                let value = values.get(90).or(values.get(40)).copied().flatten().unwrap();
                assert!((value - at_18_s).abs() < 3.1, "{load:?} {series}: {value}, expected {at_18_s}");
            }
        }
    }
}

/// Files of flent in `LASTMILE_FLENT_FILES`, separated by colons.
#[test]
#[ignore = "needs files of flent"]
fn files_of_flent_are_read() {
    for path in crate::servers::paths_in("LASTMILE_FLENT_FILES") {
        let name = path.display().to_string();
        let read = flent::read(&name, &std::fs::read(&path).unwrap()).unwrap_or_else(|error| panic!("{error}"));
        for phase in &read.phases {
            let rates =
                [&phase.download, &phase.upload].map(|rate| rate.as_ref().map(|rate| rate.goodput_bps.value / 1e6));
            let pings: Vec<_> = phase
                .probes
                .iter()
                .map(|series| (series.subject.target.clone(), series.round_trip.map(|delays| delays.p50_s.value * 1e3)))
                .collect();
            println!("{name}: {:?} {} s, {rates:?} Mbit/s, {pings:?} ms", phase.load, phase.duration_s);
        }
        assert!(!read.phases.is_empty(), "{name}");
    }
}
