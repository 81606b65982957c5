//! The inputs of an analysis: capture files, and folders with the results of a run.

use std::fs::File;
use std::io::{self, ErrorKind, Read, stdin};
use std::path::{Path, PathBuf};

use lastmile_analysis::datagrams::{DatagramAnalysis, DatagramFlow};
use lastmile_analysis::joined::{Fingerprints, ends_on_its_link};
use lastmile_analysis::{Analysis, Connection, Copies, Sighting, Traced, is_fragment, parse_captured};
use lastmile_results::Summary;
use lastmile_results::atomic::AtomicFile;
use lastmile_results::captured::{Pictures, Segments};
use lastmile_results::read::summary;
use lastmile_scenario::capture;
use lastmile_units::Instant;

use crate::error::Error;

type Result<T> = std::result::Result<T, Error>;

/// The name of standard input.
pub const STANDARD_INPUT: &str = "-";

/// A file with the results of its analysis.
#[derive(Default)]
pub(super) struct Analysed {
    pub(super) path: PathBuf,
    /// The summary of the run in this folder, or in the capture's folder.
    pub(super) run: Option<Summary>,
    pub(super) connections: Vec<Connection>,
    pub(super) datagrams: Vec<DatagramFlow>,
    pub(super) counts: Counts,
    pub(super) pictures: Option<Pictures>,
    pub(super) glimpses: Option<Fingerprints>,
    /// Every segment, in a file without its final name.
    pub(super) segments: Option<AtomicFile>,
}

/// Information about packets to keep, beyond the connections.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// The packets that a page draws of the largest connections.
    pub pictures: bool,
    /// Digests of packets, which [`Capture::join`](super::Capture::join) compares.
    pub glimpses: bool,
    /// The file for all segments.
    pub segments: Option<&'a Path>,
}

impl Wanted<'_> {
    const fn any(self) -> bool {
        self.pictures || self.glimpses || self.segments.is_some()
    }
}

/// A step back by more is a clock set back, and no packets out of order.
const STEP_NS: i128 = 1_000_000_000;
/// A step forward by more is a clock set forward, and no pause: the longest capture.
const STEP_FORWARD_NS: i128 = capture::Times::LONGEST.as_ns() as i128;

/// The time of a packet since the first, and by the clock of the first packets in ns.
type Moment = (Instant, u64);

/// The clock of a capture. Where it is set, time goes on from the packet before.
#[derive(Clone, Copy, Default)]
struct Clock {
    /// Nanoseconds to add to a time of the capture to get the time by the clock of the first packets.
    lacks_ns: i128,
    /// The latest time, by the clock of the first packets.
    last_ns: Option<u64>,
    set: SetClock,
}

/// How a clock was set: back by more than a second, forward by more than the longest capture, and forward by less, as
/// timestamps show.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SetClock {
    pub(super) back: Steps,
    pub(super) forward: Steps,
    pub(super) by_timestamps: Steps,
}

/// How often a clock was set, and the largest step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps {
    pub(super) count: u64,
    pub(super) largest_s: f64,
}

impl Steps {
    #[expect(clippy::cast_precision_loss, reason = "shown to a few digits")]
    fn add(&mut self, step_ns: i128) {
        self.count += 1;
        self.largest_s = self.largest_s.max(step_ns as f64 / 1e9);
    }
}

impl Clock {
    /// The time of a packet; `None` for one that is too late, which changes nothing.
    fn read(&mut self, at_ns: u64, times: &mut capture::Times) -> Option<Moment> {
        let at_ns = self.step(at_ns);
        let at = times.since_first(at_ns)?;
        self.last_ns = self.last_ns.max(Some(at_ns));
        Some((at, at_ns))
    }

    /// The time by the clock of the first packets. After a step it is the latest, which is not too late.
    fn step(&mut self, at_ns: u64) -> u64 {
        let last_ns = self.last_ns.unwrap_or(at_ns);
        if self.lacks_ns == 0 && i128::from(at_ns.abs_diff(last_ns)) <= STEP_NS {
            return at_ns;
        }
        let now_ns = i128::from(at_ns) + self.lacks_ns;
        let ahead_ns = now_ns - i128::from(last_ns);
        let steps = if -ahead_ns > STEP_NS {
            &mut self.set.back
        } else if ahead_ns > STEP_FORWARD_NS {
            &mut self.set.forward
        } else {
            return u64::try_from(now_ns.max(0)).unwrap_or(u64::MAX);
        };
        steps.add(ahead_ns.abs());
        self.lacks_ns -= ahead_ns;
        last_ns
    }
}

/// Packets of a capture.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    pub(super) packets: u64,
    /// Packets without IP.
    pub(super) foreign: u64,
    /// Packets with truncated or contradictory headers, and those without a time.
    pub(super) unreadable: u64,
    /// The number of the first unreadable packet, and its error.
    pub(super) first_unreadable: Option<(u64, String)>,
    /// IP packets without readable TCP.
    pub(super) other: u64,
    /// Fragments of IP packets, which have no ports, or not all of their packet.
    pub(super) fragments: u64,
    /// Packets with options that the snap length cut.
    pub(super) cut: u64,
    pub(super) back_in_time: u64,
    pub(super) clock: SetClock,
    /// Packets seen before at another interface, and omitted.
    pub(super) seen_before: u64,
    /// Copies that a mirror port made, and that are left out.
    pub(super) mirrored: u64,
    /// The extent of the file that was read.
    pub(super) extent: capture::Extent,
    pub(super) duration_s: f64,
}

impl Counts {
    /// Counts a packet that cannot be analysed. Reading goes on.
    #[cold]
    fn unread(&mut self, why: &dyn std::fmt::Display) -> std::result::Result<(), String> {
        self.unreadable += 1;
        self.first_unreadable.get_or_insert_with(|| (self.packets, why.to_string()));
        Ok(())
    }

    /// Adds what the reader, its clock and the analysis counted.
    fn complete(
        &mut self,
        extent: capture::Extent,
        clock: Clock,
        (analysis, datagrams): (&Analysis, &DatagramAnalysis),
    ) {
        self.extent = extent;
        self.clock = clock.set;
        self.other = analysis.other_packets();
        self.back_in_time = analysis.packets_back_in_time();
        self.seen_before = analysis.packets_seen_before() + datagrams.packets_seen_before();
        for step in analysis.clock_steps() {
            self.clock.by_timestamps.add(i128::from(step.by.as_ns()));
        }
    }
}

/// Receives every TCP packet of a capture.
pub type Tap<'a> = dyn FnMut(&Traced) + 'a;

/// Analyses a capture, or all captures of a folder. `tap` receives the packets of a single one.
pub(super) fn all(path: &Path, wanted: Wanted<'_>, tap: Option<&mut Tap<'_>>) -> Result<Vec<Analysed>> {
    if path.is_dir() { folder(path, wanted, tap) } else { Ok(vec![one(path, None, wanted, tap)?]) }
}

fn folder(path: &Path, wanted: Wanted<'_>, tap: Option<&mut Tap<'_>>) -> Result<Vec<Analysed>> {
    let failed = |path: &Path, error: &dyn std::fmt::Display| Error::new(format_args!("{}: {error}", path.display()));
    let summary = summary(path).map_err(|error| {
        failed(&error.path, &error.source)
            .hint("a folder must hold the results of a run, as `lastmile run --out DIR` writes them")
    })?;
    let captures = in_folder(path).map_err(|error| failed(path, &error))?;
    if (wanted.any() || tap.is_some()) && captures.len() != 1 {
        return Err(Error::new(format_args!("{}: a folder with {} captures", path.display(), captures.len()))
            .hint("--page, --segments and --with are of one capture: name it"));
    }
    if captures.is_empty() {
        return Ok(vec![Analysed { path: path.to_owned(), run: Some(summary), ..Analysed::default() }]);
    }
    if let ([capture], Some(tap)) = (&captures[..], tap) {
        return Ok(vec![one(capture, Some(summary), wanted, Some(tap))?]);
    }
    captures.iter().map(|capture| one(capture, Some(summary.clone()), wanted, None)).collect()
}

/// The captures in a folder, by name.
fn in_folder(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?;
    let mut captures: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    captures.retain(|path| is_capture(path));
    captures.sort();
    Ok(captures)
}

/// True of a file, and of a folder with one capture: of these, pictures can be made.
#[must_use]
pub fn is_one(path: &Path) -> bool {
    !path.is_dir() || in_folder(path).is_ok_and(|captures| captures.len() == 1)
}

/// True for the extensions `.pcap` and `.pcapng`, optionally followed by `.gz` or `.zst`.
fn is_capture(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
    plain.ends_with(".pcap") || plain.ends_with(".pcapng")
}

/// The file of this name, or standard input.
fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if path == Path::new(STANDARD_INPUT) { Ok(Box::new(stdin().lock())) } else { Ok(Box::new(File::open(path)?)) }
}

/// Where packets go, beyond the connections.
#[derive(Default)]
struct Sinks {
    pictures: Option<Pictures>,
    glimpses: Option<Fingerprints>,
    segments: Option<Segments<AtomicFile>>,
    /// Why the segments could not be written.
    failure: Option<io::Error>,
    wanted: bool,
}

/// Makes the allocator of glibc keep the memory that is given back to it. It returns free memory to the kernel, and
/// takes it anew, until a larger block was free once (mallopt(3), `M_MMAP_THRESHOLD`). The block is never touched.
fn keep_memory() {
    const LARGER: usize = 8 << 20;
    drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGER)));
}

impl Sinks {
    fn new(wanted: Wanted<'_>) -> io::Result<Self> {
        let segments = wanted.segments.map(AtomicFile::create).transpose()?.map(Segments::new).transpose()?;
        let pictures = wanted.pictures.then(Pictures::default);
        let glimpses = wanted.glimpses.then(Fingerprints::default);
        let wanted = pictures.is_some() || segments.is_some();
        if wanted {
            keep_memory();
        }
        Ok(Self { pictures, glimpses, segments, failure: None, wanted })
    }

    fn add(&mut self, packet: &Traced) {
        if let Some(pictures) = &mut self.pictures {
            pictures.add(packet);
        }
        if let (Some(segments), None) = (&mut self.segments, &self.failure) {
            self.failure = segments.add(packet).err();
        }
    }
}

fn one(path: &Path, run: Option<Summary>, wanted: Wanted<'_>, mut tap: Option<&mut Tap<'_>>) -> Result<Analysed> {
    let wrong = |message: String| Error::new(format_args!("{}: {message}", path.display()));
    let file = open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => wrong("no such file".to_owned()).hint(
            "pcap and pcapng can be read, also compressed (gz, zst) or from standard input (-), \
                 and folders of `run --out`",
        ),
        _ => wrong(error.to_string()),
    })?;
    let mut analysis = Analysis::new();
    let mut counts = Counts::default();
    let mut times = capture::Times::default();
    let mut clock = Clock::default();
    let mut last = Instant::ZERO;
    let mut datagrams = DatagramAnalysis::default();
    let mut copies = Copies::default();
    let mut sinks = Sinks::new(wanted).map_err(|error| cannot_write(wanted, &error))?;
    let extent = capture::read(file, &mut |frame| {
        counts.packets += 1;
        let Some(ip) = frame.ip else {
            counts.foreign += 1;
            return Ok(());
        };
        let Some(at_ns) = frame.at_ns else { return counts.unread(&"it has no time") };
        let read = parse_captured(ip, frame.ip_len);
        // The packet stays where it was read: a copy takes as long as reading it.
        let parsed = match &read {
            Ok(parsed) => parsed,
            Err(error) => return counts.unread(error),
        };
        let Some((at, at_ns)) = clock.read(at_ns, &mut times) else {
            let longest = capture::Times::LONGEST;
            return counts.unread(&format_args!("its time is more than {longest} after that of the first"));
        };
        last = last.max(at);
        let capture::Sighting { interface, sent } = frame.sighting;
        let sighting = Sighting { interface, sent };
        if copies.is_copy(at, sighting, parsed, ip) {
            return Ok(());
        }
        counts.cut += u64::from(parsed.meta.options().is_cut());
        counts.fragments += u64::from(is_fragment(parsed, ip));
        if sinks.wanted || tap.is_some() {
            if let Some(traced) = &analysis.traced(at, sighting, parsed) {
                sinks.add(traced);
                if let Some(tap) = &mut tap {
                    tap(traced);
                }
            }
        } else {
            analysis.packet_at(at, sighting, parsed);
        }
        datagrams.packet_at(last, sighting, parsed, ip);
        if let Some(glimpses) = &mut sinks.glimpses
            && !ends_on_its_link(parsed, ip)
        {
            glimpses.packet(at_ns, sighting, parsed, ip);
        }
        Ok(())
    });
    let extent = extent.map_err(|problem| {
        wrong(problem).hint("pcap and pcapng of Ethernet, raw IP, PPP, Linux cooked and loopback captures can be read")
    })?;
    counts.duration_s = last.as_secs_f64();
    counts.mirrored = copies.count();
    counts.complete(extent, clock, (&analysis, &datagrams));
    let Sinks { pictures, glimpses, segments, failure, .. } = sinks;
    let finished = match failure {
        Some(error) => Err(error),
        None => segments.map(Segments::finish).transpose(),
    };
    Ok(Analysed {
        path: path.to_owned(),
        run,
        connections: analysis.finish(),
        datagrams: datagrams.finish(),
        counts,
        pictures,
        glimpses,
        segments: finished.map_err(|error| cannot_write(wanted, &error))?,
    })
}

fn cannot_write(wanted: Wanted<'_>, error: &io::Error) -> Error {
    let path = wanted.segments.unwrap_or(Path::new(""));
    Error::new(format_args!("cannot write {}: {error}", path.display()))
}
