//! The display of a run on a terminal: a live view, or a progress bar.

use std::time::{Duration as StdDuration, Instant as StdInstant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lastmile_lab::plan::Plan;
use lastmile_lab::progress::{FlowProgress, Progress};
use lastmile_lab::spec::Kind;
use lastmile_live::bump::{States, per_second};
use lastmile_terminal::{INTERVAL, Panel, Series, Unit, View};
use lastmile_units::{Duration, Instant};

use super::super::emulate::status::Teller;
use super::super::live_view::Display;
use super::dashboard::{Page, Reports};
use crate::printer::Printer;

/// Flows in the view; further ones are counted only.
const MOST_FLOWS: usize = 12;

/// The display of one run.
pub(super) struct Watch<'a> {
    shown: Shown<'a>,
    web: Option<Reports<'a>>,
    /// The time of the latest look at the run: ticks come more often.
    at: Option<StdInstant>,
}

/// The display on a terminal.
enum Shown<'a> {
    View(Box<Viewed<'a>>),
    Bar(ProgressBar),
}

/// A view, and the state of the run at its latest snapshot.
pub(super) struct Viewed<'a> {
    view: View,
    /// For when the user leaves the view.
    bar: ProgressBar,
    teller: &'a Teller,
    /// Names of the flows, and whether they are echo requests.
    flows: &'a [(String, bool)],
    run: String,
    duration: Duration,
    states: Option<States>,
    delivered: Option<(Instant, Vec<FlowProgress>)>,
}

/// The state of the view that all runs of a plan share.
pub(super) struct Watcher {
    title: String,
    teller: Teller,
    flows: Vec<(String, bool)>,
    duration: Duration,
    runs: u16,
    display: Display,
    page: Option<Page>,
}

impl Watcher {
    pub(super) fn new(scenario: &str, plan: &Plan<'_>, (display, page): (Display, Option<Page>), runs: u16) -> Self {
        let flows = plan.flows().into_iter().map(|flow| (flow.name, matches!(flow.kind, Kind::Echo(_)))).collect();
        let config = plan.config();
        let teller = Teller::new(scenario, &config.line.up, &config.line.down);
        let title = format!("lastmile lab {scenario}");
        Self { title, teller, flows, duration: config.duration, runs, display, page }
    }

    /// The display of the run of this number.
    pub(super) fn run(&self, number: u16, printer: &Printer) -> Watch<'_> {
        let message = if self.runs > 1 { format!("live run {number} of {}", self.runs) } else { "live".to_owned() };
        let web = self.page.as_ref().map(|page| Reports::new(page, &self.teller, &self.flows, message.clone()));
        let shown = match self.display.view(&self.title, "") {
            None => Shown::Bar(bar(self.duration, message, printer.is_watched())),
            Some(view) => Shown::View(Box::new(Viewed {
                view,
                bar: bar(self.duration, message.clone(), false),
                teller: &self.teller,
                flows: &self.flows,
                run: message,
                duration: self.duration,
                states: None,
                delivered: None,
            })),
        };
        Watch { shown, web, at: None }
    }
}

impl Watch<'_> {
    /// Shows the progress of the run.
    pub(super) fn tick(&mut self, progress: &Progress<'_>) {
        let is_open = match &mut self.shown {
            Shown::View(viewed) if viewed.view.is_open() => true,
            Shown::View(viewed) => {
                if viewed.bar.is_hidden() {
                    viewed.bar.set_draw_target(ProgressDrawTarget::stderr());
                    viewed.bar.enable_steady_tick(STEADY);
                }
                viewed.bar.set_position(progress.now.since(Instant::ZERO).as_ms());
                false
            }
            Shown::Bar(bar) => {
                bar.set_position(progress.now.since(Instant::ZERO).as_ms());
                false
            }
        };
        if !is_open && self.web.is_none() || self.at.is_some_and(|at| at.elapsed() < INTERVAL) {
            return;
        }
        let Some(states) = progress.line.states() else { return };
        self.at = Some(StdInstant::now());
        let flows = progress.take_flows();
        if let Some(web) = &mut self.web {
            web.tick(progress, &states, &flows);
        }
        if let Shown::View(viewed) = &mut self.shown
            && is_open
        {
            viewed.tick(progress.now, states, flows);
        }
    }

    /// Gives the terminal back.
    pub(super) fn finish(self) {
        match self.shown {
            Shown::View(viewed) => viewed.bar.finish_and_clear(),
            Shown::Bar(bar) => bar.finish_and_clear(),
        }
    }
}

const STEADY: StdDuration = StdDuration::from_millis(500);

fn bar(duration: Duration, message: String, shown: bool) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {bar:40} {percent:>3} %  {eta} left")
        .expect("the template is a constant")
        .progress_chars("━━ ");
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(duration.as_ms()), target).with_style(style).with_message(message);
    if shown {
        bar.enable_steady_tick(STEADY);
    }
    bar
}

impl Viewed<'_> {
    fn tick(&mut self, at: Instant, now: States, flows: Vec<FlowProgress>) {
        let mut snapshot = self.teller.view(self.states.as_ref(), &now);
        self.states = Some(now);
        if !flows.is_empty() {
            snapshot.panels.insert(0, self.panel(at, &flows));
            self.delivered = Some((at, flows));
        }
        let seconds = |span: Duration| span.as_secs_f64();
        let elapsed = seconds(at.since(Instant::ZERO));
        snapshot.status = format!("{}: {elapsed:.0} of {:.0} s", self.run, seconds(self.duration));
        self.view.update(snapshot);
    }

    /// The goodput of transfers and the longest round trip of pings since the snapshot before.
    fn panel(&self, now: Instant, flows: &[FlowProgress]) -> Panel {
        let (then, before) = self.delivered.as_ref().map_or((now, flows), |(then, before)| (*then, before.as_slice()));
        let span = now.since(then).as_secs_f64();
        let series = self.flows.iter().zip(flows).zip(before).map(|(((name, is_echo), flow), before)| {
            if *is_echo {
                let longest = flow.replies.iter().max().map(|reply| reply.as_secs_f64());
                return Series::new(name.clone(), Unit::Seconds, longest);
            }
            let bytes = per_second(before.bytes_delivered, flow.bytes_delivered, span);
            Series::new(name.clone(), Unit::BitsPerSecond, Some(bytes * 8.0))
        });
        let more = self.flows.len().saturating_sub(MOST_FLOWS);
        let note = if more > 0 { format!("; {more} more flows") } else { String::new() };
        Panel::new(format!("goodput, longest round trip of pings{note}"), series.take(MOST_FLOWS).collect())
    }
}
