//! Progress: a live view on a terminal; elsewhere plain lines, one at the start of each phase and one each
//! second with the rate and the latest probe.

use lastmile_measure::probe::Subject;
use lastmile_measure::session::{self, Event, SAMPLING};
use lastmile_results::format;
use lastmile_terminal::{Panel, Series, Snapshot, Unit, View};

use crate::printer::Printer;

/// Time between two lines.
const INTERVAL_S: f64 = 1.0;

/// Shows progress in the view, or prints it on standard error.
pub(super) struct Progress<'a> {
    printer: &'a mut Printer,
    view: Option<View>,
    /// The latest round-trip time of each series of probes, by kind and target.
    round_trips: Vec<(String, Option<f64>)>,
    latest_rtt_s: Option<f64>,
    rate: Rate,
    next_s: f64,
    /// When the view has its next column on an idle line.
    next_column_s: f64,
    phase: &'static str,
}

/// The mean of the rates since the last line.
#[derive(Default)]
struct Rate {
    down: f64,
    up: f64,
    count: f64,
}

impl<'a> Progress<'a> {
    pub(super) fn new(printer: &'a mut Printer, view: Option<View>) -> Self {
        Self {
            printer,
            view,
            round_trips: Vec::new(),
            latest_rtt_s: None,
            rate: Rate::default(),
            next_s: 0.0,
            next_column_s: 0.0,
            phase: "",
        }
    }

    pub(super) fn tell(&mut self, event: &Event<'_>) {
        match event {
            Event::Started { load, at_s } => {
                self.phase = load.map_or("idle", session::words);
                (self.next_s, self.rate) = (at_s + INTERVAL_S, Rate::default());
                self.printer.talk(&format!("{:5.1} s  {}", at_s, self.phase));
            }
            Event::Rate { at_s, down_bps, up_bps } => {
                let Rate { down, up, count } = &self.rate;
                self.rate = Rate { down: down + down_bps, up: up + up_bps, count: count + 1.0 };
                if self.shows(*at_s, *down_bps, *up_bps) {
                    return;
                }
                if *at_s >= self.next_s {
                    self.line(*at_s);
                }
            }
            Event::Probed { subject, sample } => {
                self.latest_rtt_s = sample.rtt_s.or(self.latest_rtt_s);
                let label = label(subject);
                match self.round_trips.iter_mut().find(|(known, _)| *known == label) {
                    Some((_, latest)) => *latest = sample.rtt_s,
                    None => self.round_trips.push((label, sample.rtt_s)),
                }
                // As many columns a second as under load, whatever the number of series.
                if self.phase == "idle" && sample.sent_s >= self.next_column_s {
                    self.next_column_s = sample.sent_s + SAMPLING.as_secs_f64();
                    self.shows(sample.sent_s, 0.0, 0.0);
                }
            }
            Event::Warning(warning) => self.printer.talk(&format!("warning: {warning}")),
            Event::Ended { .. } => {}
        }
    }

    /// Updates the view; false without one.
    fn shows(&self, at_s: f64, down_bps: f64, up_bps: f64) -> bool {
        let Some(view) = self.view.as_ref().filter(|view| view.is_open()) else { return false };
        let rate = |label: &str, bps: f64| Series::new(label, Unit::BitsPerSecond, Some(bps));
        let probes = self.round_trips.iter().map(|(label, rtt_s)| Series::new(label.as_str(), Unit::Seconds, *rtt_s));
        view.update(Snapshot {
            status: format!("{at_s:.0} s, phase {}", self.phase),
            panels: vec![
                Panel::new("goodput", vec![rate("download", down_bps), rate("upload", up_bps)]),
                Panel::new("round trips", probes.collect()),
            ],
            tables: Vec::new(),
        });
        true
    }

    fn line(&mut self, at_s: f64) {
        let Rate { down, up, count } = std::mem::take(&mut self.rate);
        let rates = [("down", down), ("up", up)].into_iter().filter(|(_, sum)| *sum > 0.0);
        let rates: Vec<String> = rates.map(|(name, sum)| format!("{name} {}", format::rate(sum / count))).collect();
        let probe = format!("round trip {}", format::or_dash(self.latest_rtt_s, format::seconds));
        let parts: Vec<String> = rates.into_iter().chain([probe]).collect();
        self.printer.talk(&format!("{at_s:5.1} s  {}: {}", self.phase, parts.join(", ")));
        self.next_s = at_s + INTERVAL_S;
    }
}

/// Kind, code point and target of a series. The view cuts long labels, so the target comes last.
fn label(subject: &Subject) -> String {
    let class = if subject.code_point == 0 { String::new() } else { format!("@{} ", subject.code_point) };
    format!("{} {class}{}", subject.kind.name(), subject.target)
}

#[cfg(test)]
mod tests {
    use lastmile_measure::probe::Kind;

    use super::*;

    #[test]
    fn series_of_one_target_differ_by_kind_and_code_point() {
        let subject = |kind, code_point| Subject { target: "192.0.2.1".to_owned(), kind, code_point };
        assert_eq!(label(&subject(Kind::Icmp, 0)), "ICMP 192.0.2.1");
        assert_eq!(label(&subject(Kind::Icmp, 46)), "ICMP @46 192.0.2.1");
        assert_eq!(label(&subject(Kind::Udp, 0)), "UDP 192.0.2.1");
    }
}
