//! How often the policy `full-both-ways` keeps its claim on lines and loads for which its settings were not chosen.
//!
//! `cargo run -p lastmile-scenario --example other-lines [CASES [POLICY]]` draws CASES cases (240 by
//! default) from the axes below, runs the policy on each (by default `full-both-ways`), and prints the share
//! of them that keeps the claim, by each value of each axis, and every case that does not. The table of
//! `docs/studies/downstream.md` is its output.
#![allow(clippy::print_stdout, reason = "printing is what it is for")]

use lastmile_model::{Link, Source};
use lastmile_queueing::DropReason;
use lastmile_queueing::random::Stream;
use lastmile_scenario::Scenario;
use lastmile_units::{ByteCount, Duration, Instant};

/// Downstream, upstream, encapsulation, and the largest IP packet.
const LINES: [(&str, &str, &str, u64); 7] = [
    ("1 Mbit/s", "256 kbit/s", "pppoe-llcsnap", 1492),
    ("2 Mbit/s", "512 kbit/s", "bridged-vcmux-fcs", 1500),
    ("3 Mbit/s", "384 kbit/s", "pppoe-llcsnap", 1492),
    ("8 Mbit/s", "768 kbit/s", "pppoa-vcmux", 1500),
    ("16 Mbit/s", "1 Mbit/s", "pppoa-llc", 1500),
    ("24 Mbit/s", "1400 kbit/s", "bridged-llcsnap", 1500),
    ("50 Mbit/s", "10 Mbit/s", "pppoe-ptm", 1492),
];
const BUFFERS: [&str; 3] = ["32 kB", "64 kB", "256 kB"];
/// One way; of the line, each direction.
const DELAYS_MS: [u64; 4] = [2, 10, 30, 60];
const DOWNLOADS: [u64; 4] = [1, 2, 4, 8];
const VARIANTS: [&str; 2] = ["cubic", "newreno"];
/// Windows in KiB, with the shift that Linux takes for them.
const WINDOWS: [(u64, &str); 3] = [(64, "false"), (256, "3"), (1024, "5")];

struct Case {
    line: (&'static str, &'static str, &'static str, u64),
    buffer: &'static str,
    delay_ms: u64,
    downloads: u64,
    variant: &'static str,
    window: (u64, &'static str),
    start_ms: u64,
}

/// The figures of a run between the tenth second and the fortieth.
struct Kept {
    download: f64,
    upload: f64,
    p99: Duration,
    /// The unloaded time, a full packet each way, and 10 ms.
    allowed: Duration,
    /// Packets that the DSLAM has dropped.
    lost: u64,
    drains: u64,
}

impl Case {
    fn draw(random: &mut Stream) -> Self {
        let mut pick = |count: usize| usize::try_from(random.below(count as u64)).expect("a small number");
        Self {
            line: LINES[pick(LINES.len())],
            buffer: BUFFERS[pick(BUFFERS.len())],
            delay_ms: DELAYS_MS[pick(DELAYS_MS.len())],
            downloads: DOWNLOADS[pick(DOWNLOADS.len())],
            variant: VARIANTS[pick(VARIANTS.len())],
            window: WINDOWS[pick(WINDOWS.len())],
            start_ms: pick(3000) as u64,
        }
    }

    fn text(&self, policy: &str) -> String {
        let Self { line: (down, up, link, mtu), buffer, delay_ms, downloads, variant, window, start_ms } = self;
        let (kib, shift) = window;
        let mss = mtu - 40;
        let mut text = format!(
            "duration = \"40 s\"\n[access]\nencapsulation = \"{link}\"\npolicy = \"{policy}\"\nbackbone = {{ delay \
             = \"0 ms\" }}\n\
             down = {{ rate = \"{down}\", delay = \"{delay_ms} ms\", queue = {{ limit = \"{buffer}\" }} }}\n\
             up = {{ rate = \"{up}\", delay = \"{delay_ms} ms\", queue = {{ limit = \"206 kB\" }} }}\n\
             [tcp]\nvariant = \"{variant}\"\nmss = \"{mss} B\"\nreceive_window = \"{kib} KiB\"\nwindow_scale = \
             {shift}\ntimestamps = false\n\
             [[traffic]]\nname = \"upload\"\nkind = \"bulk\"\ndirection = \"up\"\nstart = \"{start_ms} ms\"\n"
        );
        // One after the other, 370 ms apart.
        for number in 0..*downloads {
            let start = (start_ms * 7 + 370 * number) % 4000;
            text += &format!(
                "[[traffic]]\nname = \"download-{number}\"\nkind = \"bulk\"\ndirection = \"down\"\nstart = \"{start} \
                 ms\"\n"
            );
        }
        // Snapshots number what transfers: the ping is the last.
        text +=
            "[[traffic]]\nname = \"ping\"\nkind = \"ping\"\ninterval = \"101 ms\"\nsize = \"84 B\"\nstart = \"10 s\"\n";
        text
    }

    fn run(&self, policy: &str) -> Option<Kept> {
        let scenario =
            Scenario::parse("case.toml", &self.text(policy), &[]).unwrap_or_else(|report| panic!("{report}"));
        let network = scenario.network();
        let access = scenario.access().expect("an access line");
        let (down, up) = (&network.links[access.down_link], &network.links[access.up_link]);
        let full = |link: &Link| {
            link.hop.line.rate.expect("a rate").time_for(link.hop.line.link_layer.on_wire(ByteCount::new(self.line.3)))
        };
        let ping = network.traffic.iter().position(|traffic| matches!(traffic.source, Source::Ping { .. }))?;
        let size = ByteCount::new(84);
        let unloaded = scenario.base_rtt(ping, size, size).expect("both ways are there");
        // The bound by windows: a round trip, with a full packet each way.
        let rtt = (unloaded + full(down) + full(up)).as_secs_f64();
        let payload = self.line.3 - 40;
        let fills = |link: &Link, flows: u64| {
            (flows * self.window.0 * 1024) as f64 >= 1.5 * rtt * payload as f64 / full(link).as_secs_f64()
        };
        if !fills(down, self.downloads) || !fills(up, 1) {
            return None;
        }
        let outcome = lastmile_sim::run(&network).expect("a network that was checked");
        let begin = Instant::ZERO + Duration::from_s(10);
        let first = outcome.snapshots.iter().find(|snapshot| snapshot.at == begin)?;
        let last = outcome.snapshots.last()?;
        let seconds = last.at.since(first.at).as_secs_f64();
        let bytes: u64 = (0..outcome.flows.len())
            .filter(|&flow| network.traffic[outcome.flows[flow].traffic].direction == "down")
            .map(|flow| last.bytes_delivered[flow] - first.bytes_delivered[flow])
            .sum();
        let bits = last.wire_bits[access.up_link] - first.wire_bits[access.up_link];
        let mut replies: Vec<Duration> = outcome.probes[0].replies.iter().map(|(_, rtt)| *rtt).collect();
        replies.sort_unstable();
        let tail = outcome.links[access.down_link].stats.dropped[DropReason::Tail.index()].packets;
        let counters = outcome.links.iter().flat_map(|link| &link.counters);
        let drains = counters.filter(|(_, _, name, _)| *name == "drains").map(|(.., drains)| drains).sum();
        Some(Kept {
            lost: tail,
            drains,
            download: bytes as f64 / payload as f64 * full(down).as_secs_f64() / seconds,
            upload: bits as f64 / seconds / up.hop.line.rate.expect("a rate").as_bps() as f64,
            p99: replies[(replies.len() * 99).div_ceil(100) - 1],
            allowed: unloaded + full(down) + full(up) + Duration::from_ms(10),
        })
    }

    /// The values of the axes, as the table names them.
    fn values(&self) -> [String; 6] {
        [
            format!("{} / {}, {}", self.line.0, self.line.1, self.line.2),
            format!("DSLAM {}", self.buffer),
            format!("{} ms each way", self.delay_ms),
            format!("{} downloads", self.downloads),
            self.variant.to_owned(),
            format!("{} KiB", self.window.0),
        ]
    }
}

impl Kept {
    fn holds(&self) -> [bool; 3] {
        [self.download >= 0.95, self.upload >= 0.97, self.p99 <= self.allowed]
    }
}

fn percent(part: usize, of: usize) -> String {
    format!("{:.0} %", part as f64 / of.max(1) as f64 * 100.0)
}

fn main() {
    let cases = std::env::args().nth(1).map_or(240, |count| count.parse().expect("a number of cases"));
    let policy = std::env::args().nth(2).unwrap_or_else(|| "full-both-ways".to_owned());
    let mut random = Stream::new(1, "lines and loads elsewhere");
    let mut done = Vec::new();
    let mut too_small = 0;
    while done.len() < cases {
        let case = Case::draw(&mut random);
        match case.run(&policy) {
            Some(kept) => done.push((case, kept)),
            None => too_small += 1,
        }
    }
    println!("{cases} cases; {too_small} more whose windows are too small for the line were left out.\n");
    println!("| of these | cases | all three | download | upload | ping |\n| --- | --- | --- | --- | --- | --- |");
    let mut axes: Vec<String> = vec!["all".to_owned()];
    let mut known: Vec<(usize, String)> =
        done.iter().flat_map(|(case, _)| case.values().into_iter().enumerate()).collect();
    known.sort();
    known.dedup();
    axes.extend(known.into_iter().map(|(_, value)| value));
    for value in &axes {
        let these: Vec<[bool; 3]> = done
            .iter()
            .filter(|(case, _)| value == "all" || case.values().contains(value))
            .map(|(_, kept)| kept.holds())
            .collect();
        let share =
            |of: &dyn Fn(&[bool; 3]) -> bool| percent(these.iter().filter(|holds| of(holds)).count(), these.len());
        let [all, down, up, ping] = [
            share(&|holds| *holds == [true; 3]),
            share(&|holds| holds[0]),
            share(&|holds| holds[1]),
            share(&|holds| holds[2]),
        ];
        println!("| {value} | {} | {all} | {down} | {up} | {ping} |", these.len());
    }
    println!(
        "\n| where it does not hold | download | upload | ping p99 | allowed | DSLAM drops | drains |\n| --- | --- \
         | --- | --- | --- | --- | --- |"
    );
    for (case, kept) in done.iter().filter(|(_, kept)| kept.holds() != [true; 3]) {
        let (p99, allowed) = (kept.p99.as_secs_f64() * 1e3, kept.allowed.as_secs_f64() * 1e3);
        let (download, upload) = (kept.download * 100.0, kept.upload * 100.0);
        let words = case.values().join(", ");
        println!(
            "| {words}, from {} ms | {download:.1} % | {upload:.1} % | {p99:.0} ms | {allowed:.0} ms | {} | {} |",
            case.start_ms, kept.lost, kept.drains
        );
    }
}
