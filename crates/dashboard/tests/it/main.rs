//! The memory of a hub that publishes for a week. A process of its own: others would count in.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;

use lastmile_dashboard::hub::{About, Hub, Program};
use lastmile_dashboard::report::{Chart, Group, Report, Unit};

struct Nothing;

impl Program for Nothing {}

/// Resident memory, in bytes.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
}

/// A report with a chart of this many series.
fn report(second: u64, series: u64) -> Report {
    let mut chart = Chart::new("rate on the wire", Unit::BitsPerSecond);
    (0..series).for_each(|number| chart.push(format!("class {number}"), Some((second * number) as f64)));
    let group = Group { id: "up".into(), title: "up".into(), charts: vec![chart] };
    Report { at_ms: second * 1000, status: "policy mine".into(), groups: vec![group], tables: vec![] }
}

/// A fifth of a week, and with `LASTMILE_LONG` the week. Policies change every hour.
#[test]
fn a_week_of_reports_takes_the_memory_of_two_hours() {
    let week = 7 * 24 * 3600;
    let seconds = if std::env::var_os("LASTMILE_LONG").is_some() { week } else { week / 5 };
    let hub = Hub::new(About { title: "a test".into(), version: "1", pid: 7, control: false }, Nothing);
    let mut early = 0;
    for second in 0..seconds {
        hub.publish(&report(second, 20));
        if second % 3600 == 0 {
            hub.mark(second * 1000, format!("policy {second} is in force"));
        }
        if second == 2 * 3600 {
            early = resident();
        }
    }
    let late = resident();
    println!("{seconds} reports: {early} bytes after two hours, {late} at the end");
    assert!(late < early + (1 << 20), "{early} bytes after two hours, {late} at the end");
}
