//! The reports of a run for the dashboard.

use std::sync::Arc;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use lastmile_dashboard::hub::{Hub, now_ms};
use lastmile_dashboard::report::{Chart, Group, Report, Unit};
use lastmile_lab::progress::{FlowProgress, Progress};
use lastmile_lab::what_if::Alternatives;
use lastmile_live::bump::{States, per_second};
use lastmile_units::{Duration, Instant};

use super::super::emulate::status::Teller;

/// Time between two reports, less the time between two looks at a run.
const REPORTS: StdDuration = StdDuration::from_millis(900);

/// The page of all runs, and what it can be asked.
pub(super) struct Page {
    pub(super) hub: Arc<Hub>,
    pub(super) alternatives: Option<Arc<Alternatives>>,
}

/// The reports of one run.
pub(super) struct Reports<'a> {
    page: &'a Page,
    teller: &'a Teller,
    /// Names of the flows, and whether they are echo requests.
    flows: &'a [(String, bool)],
    run: String,
    at: Option<StdInstant>,
    states: Option<States>,
    delivered: Option<(Instant, Vec<u64>)>,
    /// The longest round trip of each flow since the latest report.
    longest: Vec<Option<Duration>>,
}

impl<'a> Reports<'a> {
    pub(super) fn new(page: &'a Page, teller: &'a Teller, flows: &'a [(String, bool)], run: String) -> Self {
        page.hub.mark(now_ms(), format!("{run} begins"));
        Self { page, teller, flows, run, at: None, states: None, delivered: None, longest: vec![None; flows.len()] }
    }

    /// Takes the progress, and publishes a report each second.
    pub(super) fn tick(&mut self, progress: &Progress<'_>, states: &States, flows: &[FlowProgress]) {
        let now = progress.now;
        for (longest, flow) in self.longest.iter_mut().zip(flows) {
            *longest = flow.replies.iter().copied().chain(*longest).max();
        }
        if self.at.is_some_and(|at| at.elapsed() < REPORTS) {
            return;
        }
        self.at = Some(StdInstant::now());
        let mut report = self.teller.report(self.states.as_ref(), states, progress.line);
        if let Some(alternatives) = &self.page.alternatives {
            if self.states.is_none() {
                alternatives.begin(progress.line.clone());
            }
            alternatives.push(self.states.as_ref(), states);
        }
        self.states = Some(states.clone());
        if !flows.is_empty() {
            report.groups.insert(0, self.traffic(now, flows));
            self.delivered = Some((now, flows.iter().map(|flow| flow.bytes_delivered).collect()));
            self.longest.fill(None);
        }
        let status = format!("{}: {}, {:.0} s", report.status, self.run, now.since(Instant::ZERO).as_secs_f64());
        self.page.hub.publish(&Report { at_ms: now_ms(), status, ..report });
    }

    /// The goodput of transfers, and the longest round trip of pings.
    fn traffic(&self, now: Instant, flows: &[FlowProgress]) -> Group {
        let mut goodput = Chart::new("goodput", Unit::BitsPerSecond);
        let mut pings = Chart::new("longest round trip of pings", Unit::Seconds);
        let before = self.delivered.as_ref();
        for (index, ((name, is_echo), flow)) in self.flows.iter().zip(flows).enumerate() {
            if *is_echo {
                pings.push(name.clone(), self.longest[index].map(Duration::as_secs_f64));
                continue;
            }
            let rate = before.and_then(|(then, bytes)| {
                let seconds = now.since(*then).as_secs_f64();
                Some(8.0 * per_second(*bytes.get(index)?, flow.bytes_delivered, seconds))
            });
            goodput.push(name.clone(), rate);
        }
        let charts = [goodput, pings].into_iter().filter(|chart| !chart.series.is_empty()).collect();
        Group { id: "traffic".to_owned(), title: "traffic".to_owned(), charts }
    }
}
