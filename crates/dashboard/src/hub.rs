//! The hand-over of reports: from one thread of the program to all browsers.
//!
//! [`Hub::publish`] never waits for a browser. Each browser has a queue of [`WAITING`] reports; when one
//! more finds no space, the browser is disconnected and counted. It connects again when it reads again,
//! and gets what it missed from the history.

use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, mpsc};

use crate::history::History;
use crate::report::{Mark, Report};

/// Reports that wait for one browser.
pub const WAITING: usize = 8;

/// Browsers that get reports at a time.
pub const MOST_LISTENERS: usize = 16;

/// Questions and requests that a program answers.
pub trait Program: Send + Sync + 'static {
    /// The policies of which [`Program::what_if`] can be asked; none if it cannot be asked.
    fn policies(&self) -> Vec<String> {
        Vec::new()
    }

    /// The traffic of the last minute with another policy, next to what happened, as JSON. May take
    /// seconds: a thread of its own calls it.
    ///
    /// # Errors
    /// Why there is no answer, in words for the page.
    fn what_if(&self, question: &Question) -> Result<String, String> {
        let _ = question;
        Err("this program has no policy that could be another one".to_owned())
    }

    /// Reads the policy again, or puts the given one in force; the message. `None`: this program has none.
    fn reload(&self, policy: Option<&Question>) -> Option<Reloading> {
        let _ = policy;
        None
    }
}

/// The result of a reload, once it is there: a message, or an error.
pub type Reloading = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;

/// A policy to ask about, or to put in force: a built-in one, or the text of a file.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub enum Question {
    /// The name of a built-in policy.
    Policy(String),
    /// The text of a policy.
    Text(String),
}

/// The program, for the page.
#[derive(Clone, Debug, Serialize)]
pub struct About {
    /// The program, such as `lastmile shape`.
    pub title: String,
    /// The version of the program.
    pub version: &'static str,
    /// Number of the process: another one has another history.
    pub pid: u32,
    /// Whether the page may change something.
    pub control: bool,
}

/// Counts of a server: what was refused, and how often.
#[derive(Default, Debug, Serialize)]
pub struct Counts {
    /// Reports that were published.
    pub reports: AtomicU64,
    /// Answers.
    pub answered: AtomicU64,
    /// Requests with a wrong name of the server.
    pub refused_host: AtomicU64,
    /// Requests from other sites.
    pub refused_origin: AtomicU64,
    /// Requests without the token, or with a wrong one.
    pub refused_token: AtomicU64,
    /// Requests for what is not there, or with a body that is not understood.
    pub refused_other: AtomicU64,
    /// Connections that sent no request of HTTP, or none in time.
    pub malformed: AtomicU64,
    /// Browsers that were disconnected, since they did not read.
    pub slow: AtomicU64,
    /// Requests for reports beyond [`MOST_LISTENERS`].
    pub too_many: AtomicU64,
}

/// Adds one.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The meeting point of a program and its browsers.
pub struct Hub {
    about: About,
    program: Box<dyn Program>,
    counts: Counts,
    history: Mutex<History>,
    listeners: Mutex<Vec<Listener>>,
    /// The latest report, for a browser that comes between two.
    latest: Mutex<Option<Bytes>>,
}

struct Listener {
    reports: mpsc::Sender<Bytes>,
    /// Ends the connection.
    end: Arc<Notify>,
}

/// Milliseconds since 1970.
#[must_use]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    /// The hub of a program.
    #[must_use]
    pub fn new(about: About, program: impl Program) -> Arc<Self> {
        Arc::new(Self {
            about,
            program: Box::new(program),
            counts: Counts::default(),
            history: Mutex::default(),
            listeners: Mutex::default(),
            latest: Mutex::default(),
        })
    }

    /// Publishes the report of this second.
    pub fn publish(&self, report: &Report) {
        lock(&self.history).push(report);
        count(&self.counts.reports);
        self.send("report", report);
    }

    /// Marks a moment on the time axes.
    pub fn mark(&self, at_ms: u64, words: impl Into<String>) {
        let mark = Mark { at_ms, words: words.into() };
        self.send("mark", &mark);
        lock(&self.history).mark(mark);
    }

    /// Sends an event to every browser. One whose queue is full is disconnected.
    fn send(&self, name: &str, value: &impl Serialize) {
        let mut text = format!("event: {name}\ndata: ");
        // JSON has no line breaks, which would end the event.
        let _ = write!(text, "{}\n\n", serde_json::to_string(value).unwrap_or_default());
        let event = Bytes::from(text);
        if name == "report" {
            *lock(&self.latest) = Some(event.clone());
        }
        lock(&self.listeners).retain(|listener| match listener.reports.try_send(event.clone()) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(_)) => {
                count(&self.counts.slow);
                listener.end.notify_one();
                false
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        });
    }

    /// The reports from now on, the latest one first; `None` if too many browsers listen. `end` is
    /// notified when the browser is to be disconnected.
    pub(crate) fn listen(&self, end: &Arc<Notify>) -> Option<mpsc::Receiver<Bytes>> {
        let mut listeners = lock(&self.listeners);
        listeners.retain(|listener| !listener.reports.is_closed());
        if listeners.len() >= MOST_LISTENERS {
            count(&self.counts.too_many);
            return None;
        }
        let (sender, reports) = mpsc::channel(WAITING);
        if let Some(latest) = lock(&self.latest).clone() {
            let _ = sender.try_send(latest);
        }
        listeners.push(Listener { reports: sender, end: Arc::clone(end) });
        Some(reports)
    }

    /// Ends all streams of reports.
    pub(crate) fn close(&self) {
        lock(&self.listeners).clear();
    }

    pub(crate) fn history(&self) -> Vec<u8> {
        lock(&self.history).encode()
    }

    pub(crate) fn program(&self) -> &dyn Program {
        &*self.program
    }

    /// Counts of the server.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(crate) const fn about(&self) -> &About {
        &self.about
    }

    /// The program and the server for the page, as JSON.
    pub(crate) fn state(&self) -> String {
        #[derive(Serialize)]
        struct State<'a> {
            #[serde(flatten)]
            about: &'a About,
            policies: Vec<String>,
            reloads: bool,
            listeners: usize,
            left_out: u64,
            counts: &'a Counts,
        }
        let state = State {
            about: &self.about,
            policies: self.program.policies(),
            reloads: self.about.control && self.program.reload(None).is_some(),
            listeners: lock(&self.listeners).len(),
            left_out: lock(&self.history).left_out(),
            counts: &self.counts,
        };
        serde_json::to_string(&state).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Chart, Group, Unit};

    struct Nothing;

    impl Program for Nothing {}

    fn hub() -> Arc<Hub> {
        Hub::new(About { title: "a test".into(), version: "1", pid: 7, control: true }, Nothing)
    }

    #[test]
    fn a_browser_that_does_not_read_is_disconnected_and_the_others_go_on() {
        let hub = hub();
        let (slow_end, quick_end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let slow = hub.listen(&slow_end).unwrap();
        let mut quick = hub.listen(&quick_end).unwrap();
        for second in 0..100 {
            hub.publish(&Report { at_ms: second, ..Report::default() });
            let event = quick.try_recv().unwrap();
            assert!(event.starts_with(b"event: report\ndata: {") && event.ends_with(b"}\n\n"));
        }
        assert_eq!(hub.counts().slow.load(Ordering::Relaxed), 1);
        assert_eq!(slow.len(), WAITING);
        assert!(slow.is_closed() && !quick.is_closed());
    }

    #[test]
    fn one_that_comes_between_two_reports_gets_the_latest_at_once() {
        let hub = hub();
        hub.publish(&Report { at_ms: 1, ..Report::default() });
        hub.publish(&Report { at_ms: 2, ..Report::default() });
        let mut reports = hub.listen(&Arc::default()).unwrap();
        assert!(reports.try_recv().unwrap().starts_with(b"event: report\ndata: {\"at_ms\":2,"));
        hub.mark(7, "a policy");
        assert!(reports.try_recv().unwrap().starts_with(b"event: mark\n"));
    }

    #[test]
    fn listeners_have_a_bound_and_those_that_left_do_not_count() {
        let hub = hub();
        let end = Arc::default();
        let mut some: Vec<_> = (0..MOST_LISTENERS).map(|_| hub.listen(&end).unwrap()).collect();
        assert!(hub.listen(&end).is_none());
        some.pop();
        assert!(hub.listen(&end).is_some());
        assert!(hub.state().contains("\"too_many\":1"), "{}", hub.state());
    }

    /// Text of names cannot end an event, and thus not begin another.
    #[test]
    fn a_line_break_in_a_name_does_not_end_the_event() {
        let hub = hub();
        let mut reports = hub.listen(&Arc::default()).unwrap();
        let chart = Chart::new("rate", Unit::BitsPerSecond).with("a\n\nevent: mark\r", Some(1.0));
        let groups = vec![Group { id: "up".into(), title: "up".into(), charts: vec![chart] }];
        hub.publish(&Report { groups, ..Report::default() });
        let event = String::from_utf8(reports.try_recv().unwrap().to_vec()).unwrap();
        assert_eq!(event.matches('\n').count(), 3, "{event}");
        assert!(!event.contains('\r'));
    }
}
