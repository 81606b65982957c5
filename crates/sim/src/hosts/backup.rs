//! A backup: files copied one after another over few connections, up to a server or down from it.
//!
//! Published: HTTP/1.1 (RFC 9112) with connections that stay open, a `PUT` or a `GET` for each file; the sizes of files
//! of Agrawal, Arpaci-Dusseau and Arpaci-Dusseau, "Generating Realistic Impressions for File-System Benchmarking" (FAST
//! 2009, table 2), for five years of file systems at a company: lognormal with mu 9.48 and sigma 2.46, the body of
//! their distribution by count. Half of the files have less than 13 kB, and the mean is 270 kB.
//!
//! On each connection the client copies a file, waits for the server's answer, pauses, and copies the next. A file that
//! comes down is the answer itself. A file of n bytes takes a round trip and n bytes at the rate of the line; the
//! backup waits for the first. The share of the time that files wait is that from a request to the first octet that
//! arrives, and from the last octet to the answer: on its way up a file waits for half a round trip at each end.
//!
//! Differs: the published distribution has a Pareto tail of 6 files in 100 000, above 512 MB; a size above is drawn
//! anew. Contents are not compared or compressed, a file has one request, requests are not pipelined, and there is no
//! TLS. A file whose connection broke is copied again.
//!
//! Cost: O(connections) a file, and 16 bytes for each copied file.

use std::sync::Arc;

use lastmile_model::{Backup as Model, FileSizes, OpenedBy};
use lastmile_queueing::random::Stream;
use lastmile_units::{Duration, Instant};

use super::browse::{Browse, Request};

/// Logarithms of the sizes in bytes: mean and standard deviation.
const SIZES: (f64, f64) = (9.48, 2.46);
/// The sizes of the published body, in bytes.
const LEAST: f64 = 1.0;
const MOST: f64 = 512e6;

/// A client that copies files, without its connections: the caller opens them and gives them numbers.
#[derive(Debug)]
pub struct Backup {
    /// The times of the copied files.
    pub(super) took: Vec<Duration>,
    /// The ends of the copied files.
    pub(super) ends: Vec<Instant>,
    /// The bytes of the copied files.
    pub(super) bytes: u64,
    /// The part of their times in which nothing of them arrived.
    pub(super) waited: Duration,
    model: Arc<Model>,
    random: Stream,
    began: Option<Instant>,
    pub(super) ended: Option<Instant>,
    stopped: Option<Instant>,
    as_of: Instant,
    /// Files that are not requested yet; `None` without end.
    left: Option<u64>,
    /// The sizes of files whose connections broke.
    again: Vec<u64>,
    busy: Vec<(u32, Copying)>,
    /// Open connections without a file, and the ends of their pauses.
    idle: Vec<(u32, Instant)>,
    /// The end of a pause for which a wake-up is due.
    scheduled: Option<Instant>,
}

/// A file on its way.
#[derive(Clone, Copy, Debug)]
struct Copying {
    bytes: u64,
    asked: Instant,
    /// The arrivals of the first and the latest octets.
    arrived: Option<[Instant; 2]>,
}

impl Backup {
    /// A client that has not begun. Equal streams draw equal sizes.
    pub(super) fn new(model: &Arc<Model>, random: Stream) -> Self {
        Self {
            took: Vec::new(),
            ends: Vec::new(),
            bytes: 0,
            waited: Duration::ZERO,
            model: Arc::clone(model),
            random,
            began: None,
            ended: None,
            stopped: None,
            as_of: Instant::ZERO,
            left: model.files,
            again: Vec::new(),
            busy: Vec::new(),
            idle: Vec::new(),
            scheduled: None,
        }
    }

    /// Octets of a file, or of its request, arrive over `connection`.
    pub(super) fn delivered(&mut self, now: Instant, connection: u32) {
        if let Some((_, file)) = self.busy.iter_mut().find(|(other, _)| *other == connection) {
            let [_, latest] = file.arrived.get_or_insert([now; 2]);
            *latest = now;
        }
    }

    /// Time from the start to the end of the last file.
    pub(super) fn end(&self) -> Option<Duration> {
        Some(self.ended?.since(self.began?))
    }

    /// Time from the start to the end of the last file, to the stop, or to `now`.
    pub(super) fn active(&self, now: Instant) -> Duration {
        let until = self.ended.or(self.stopped).unwrap_or(now);
        self.began.map_or(Duration::ZERO, |began| until.since(began))
    }

    /// No file is left to request.
    fn has_asked_for_all(&self) -> bool {
        self.left == Some(0) && self.again.is_empty()
    }

    fn next_size(&mut self) -> u64 {
        if let Some(size) = self.again.pop() {
            return size;
        }
        self.left = self.left.map(|left| left - 1);
        match self.model.sizes {
            FileSizes::Fixed(bytes) => bytes.as_u64(),
            FileSizes::Published => draw(&mut self.random),
        }
    }
}

fn draw(random: &mut Stream) -> u64 {
    let (mean, deviation) = SIZES;
    loop {
        let size = random.lognormal(mean, deviation);
        if (LEAST..=MOST).contains(&size) {
            return size as u64;
        }
    }
}

impl Browse for Backup {
    /// The backup starts, or a pause ends.
    fn wake(&mut self, now: Instant) {
        self.began.get_or_insert(now);
        self.as_of = now;
        self.scheduled = self.scheduled.filter(|at| *at > now);
    }

    fn next_request(&mut self) -> Option<Request> {
        if self.began.is_none() || self.stopped.is_some() || self.has_asked_for_all() {
            return None;
        }
        let ready = self.idle.iter().position(|(_, from)| *from <= self.as_of);
        let on = ready.map(|index| self.idle.remove(index).0);
        if on.is_none() && self.busy.len() + self.idle.len() >= self.model.parallel as usize {
            return None;
        }
        let bytes = self.next_size();
        // Its connection gets a number in `asked`.
        self.busy.push((u32::MAX, Copying { bytes, asked: self.as_of, arrived: None }));
        let (request, reply) = (u64::from(self.model.request), u64::from(self.model.reply));
        Some(match self.model.opened_by {
            OpenedBy::Sender => Request { request: request + bytes, bytes: reply, on },
            OpenedBy::Receiver => Request { request, bytes, on },
        })
    }

    fn asked(&mut self, connection: u32) {
        if let Some((number, _)) = self.busy.last_mut() {
            *number = connection;
        }
    }

    fn completed(&mut self, now: Instant, connection: u32) {
        self.as_of = now;
        let Some(index) = self.busy.iter().position(|(other, _)| *other == connection) else { return };
        let (_, Copying { bytes, asked, arrived }) = self.busy.remove(index);
        let [first, last] = arrived.unwrap_or([now; 2]);
        self.took.push(now - asked);
        self.ends.push(now);
        self.bytes += bytes;
        self.waited += (first - asked) + (now - last);
        self.idle.push((connection, now + self.model.pause));
        if self.has_asked_for_all() && self.busy.is_empty() {
            self.ended = Some(now);
        }
    }

    fn broke(&mut self, now: Instant, connection: u32) {
        self.as_of = now;
        self.idle.retain(|(other, _)| *other != connection);
        if let Some(index) = self.busy.iter().position(|(other, _)| *other == connection) {
            self.again.push(self.busy.remove(index).1.bytes);
        }
    }

    fn take_timer(&mut self) -> Option<Instant> {
        if self.stopped.is_some() || self.has_asked_for_all() {
            return None;
        }
        let next = self.idle.iter().map(|(_, from)| *from).min()?;
        if self.scheduled.is_some_and(|at| at <= next) {
            return None;
        }
        self.scheduled = Some(next);
        Some(next)
    }

    /// All connections without a file, once no file is left for them.
    fn take_unneeded(&mut self) -> Vec<u32> {
        if !self.has_asked_for_all() {
            return Vec::new();
        }
        self.idle.drain(..).map(|(connection, _)| connection).collect()
    }

    fn stop(&mut self, now: Instant) -> Vec<u32> {
        self.stopped = Some(now);
        let idle = self.idle.drain(..).map(|(connection, _)| connection);
        idle.chain(self.busy.drain(..).map(|(connection, _)| connection)).collect()
    }
}

#[cfg(test)]
mod tests {
    use lastmile_model::Transport;
    use lastmile_units::ByteCount;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_ms(ms)
    }

    fn backup(opened_by: OpenedBy, files: Option<u64>, parallel: u32, pause_ms: u64) -> Backup {
        let model = Model {
            transport: Transport::Tcp(Arc::new(lastmile_tcp::Config::default())),
            opened_by,
            files,
            sizes: FileSizes::Fixed(ByteCount::new(1000)),
            request: 350,
            reply: 200,
            parallel,
            pause: Duration::from_ms(pause_ms),
        };
        let mut backup = Backup::new(&Arc::new(model), Stream::new(1, "traffic backup-0"));
        backup.wake(at(0));
        backup
    }

    #[test]
    fn a_file_goes_up_with_its_request_and_comes_down_as_the_answer() {
        let up = backup(OpenedBy::Sender, Some(1), 1, 0).next_request();
        assert_eq!(up, Some(Request { request: 1350, bytes: 200, on: None }));
        let down = backup(OpenedBy::Receiver, Some(1), 1, 0).next_request();
        assert_eq!(down, Some(Request { request: 350, bytes: 1000, on: None }));
    }

    /// Requested at 0, the first octet at 20 ms, the last at 90 ms, the answer at 110 ms: 40 of 110 ms waited. After a
    /// pause of 50 ms the second file takes the same connection, which is closed behind it.
    #[test]
    fn a_connection_copies_waits_pauses_and_closes() {
        let mut backup = backup(OpenedBy::Sender, Some(2), 1, 50);
        assert_eq!(backup.next_request().unwrap().on, None);
        backup.asked(7);
        assert_eq!((backup.next_request(), backup.take_timer()), (None, None));
        backup.delivered(at(20), 7);
        backup.delivered(at(90), 7);
        backup.completed(at(110), 7);
        assert_eq!((backup.waited, &backup.took[..]), (Duration::from_ms(40), &[Duration::from_ms(110)][..]));
        assert_eq!((backup.next_request(), backup.take_timer(), backup.take_timer()), (None, Some(at(160)), None));
        assert_eq!(backup.take_unneeded(), []);
        backup.wake(at(160));
        assert_eq!(backup.next_request().unwrap().on, Some(7));
        backup.asked(7);
        backup.completed(at(260), 7);
        assert_eq!((backup.take_timer(), backup.take_unneeded()), (None, vec![7]));
        assert_eq!((backup.end(), backup.bytes), (Some(Duration::from_ms(260)), 2000));
        assert_eq!(backup.active(at(9000)), Duration::from_ms(260));
    }

    #[test]
    fn several_connections_have_a_file_each_and_a_broken_one_is_copied_again() {
        let mut backup = backup(OpenedBy::Sender, Some(3), 2, 0);
        for connection in 0..2 {
            assert_eq!(backup.next_request().unwrap().on, None);
            backup.asked(connection);
        }
        assert_eq!(backup.next_request(), None);
        backup.broke(at(10), 0);
        assert_eq!(backup.next_request().unwrap().on, None);
        backup.asked(2);
        backup.completed(at(20), 1);
        assert_eq!(backup.next_request().unwrap().on, Some(1));
        backup.asked(1);
        backup.completed(at(30), 2);
        assert_eq!((backup.end(), backup.take_unneeded()), (None, vec![2]));
        backup.completed(at(40), 1);
        assert_eq!((backup.end(), backup.took.len()), (Some(Duration::from_ms(40)), 3));
    }

    /// The mean of the lognormal distribution is e^(9.48 + 2.46^2 / 2) = 269.9 kB, the median e^9.48 = 13.1 kB. Sizes
    /// above 512 MB, 0.9 in 100 000, have 3.3 % of the bytes: P(Z > (ln 512e6 - 9.48 - 2.46^2) / 2.46) = P(Z > 1.838).
    #[test]
    fn sizes_have_the_published_median_and_mean() {
        let mut random = Stream::new(5, "files");
        let mut sizes: Vec<u64> = (0..400_000).map(|_| draw(&mut random)).collect();
        let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
        sizes.sort_unstable();
        let median = sizes[sizes.len() / 2] as f64;
        assert!((median / 13_095.0 - 1.0).abs() < 0.02, "{median}");
        assert!((mean / (0.967 * 269_900.0) - 1.0).abs() < 0.1, "{mean}");
        assert!(*sizes.last().unwrap() <= 512_000_000);
    }
}
