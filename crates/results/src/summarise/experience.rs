//! The results of applications that people notice in a part of a run, in words.

use lastmile_model::Source;
use lastmile_model::outcome::{Applications, FlowOutcome};
use lastmile_units::{Duration, Instant};

use super::applications::Responses;
use super::run::Run;
use super::statistics::page_response;
use crate::experience;
use crate::format::to_f64;

/// A part of a run: its start and its end, which the part contains if it is the end of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) from: Instant,
    pub(super) to: Instant,
    pub(super) last: bool,
}

impl Part {
    pub(super) fn has(self, at: Instant) -> bool {
        at >= self.from && (at < self.to || (self.last && at == self.to))
    }

    /// Something that ends at `at` ends in this part, of which it may be the end.
    fn ends(self, at: Instant) -> bool {
        at > self.from && at <= self.to
    }

    /// The times whose ends are in this part.
    fn of<'a>(self, ends: &'a [Instant], times: &'a [Duration]) -> impl Iterator<Item = Duration> + 'a {
        ends.iter().zip(times).filter(move |(end, _)| self.ends(**end)).map(|(_, time)| *time)
    }

    /// The time of a span from `from` to `to` that lies in this part.
    fn overlap(self, from: Instant, to: Instant) -> Duration {
        to.min(self.to).since(from.max(self.from))
    }
}

impl Run<'_> {
    /// The results that the user of this flow notices in a part of the run, in words; `None` for a flow that is no
    /// application's.
    pub(super) fn noticed(&self, flow: &FlowOutcome, part: Part) -> Option<String> {
        let traffic = &self.network.traffic[flow.traffic];
        let all = &self.outcome.applications;
        match &traffic.source {
            Source::Web(_) => pages(all, flow, part),
            Source::Video(model) => {
                let rate = |step: u16| to_f64(model.ladder[usize::from(step)].as_bps());
                video(all, flow, part, rate)
            }
            Source::Backup(_) => {
                let active = traffic.stop.unwrap_or(part.to).min(part.to).since(flow.start.max(part.from));
                backup(all, flow, part, active)
            }
            Source::Conference(_) => conference(all, flow, part),
            Source::Game(model) => game(all, flow, part, model.limit),
            _ => None,
        }
    }
}

fn pages(all: &Applications, flow: &FlowOutcome, part: Part) -> Option<String> {
    let user = all.browsing.iter().find(|user| user.name == flow.name)?;
    let mut times: Vec<Duration> = part.of(&user.ends, &user.responses).collect();
    times.sort_unstable();
    let response = page_response(&times);
    Some(experience::pages(times.len() as u64, response.p50, response.p95))
}

fn video(all: &Applications, flow: &FlowOutcome, part: Part, rate: impl Fn(u16) -> f64) -> Option<String> {
    let viewer = all.viewing.iter().find(|viewer| viewer.name == flow.name)?;
    let stalls = viewer.stalls.iter().zip(&viewer.stalled_at);
    let stalls: Vec<Duration> = stalls.map(|(stall, at)| part.overlap(*at, *at + *stall)).collect();
    let stalled = stalls.iter().filter(|stall| !stall.is_zero());
    let (count, stalled) = stalled.fold((0, Duration::ZERO), |(count, sum), stall| (count + 1, sum + *stall));
    let rates = viewer.arrivals.iter().zip(&viewer.segments).filter(|(at, _)| part.ends(**at));
    let rates: Vec<f64> = rates.map(|(_, step)| rate(*step)).collect();
    let mean = (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / to_f64(rates.len() as u64));
    let words = experience::video(count, stalled.as_secs_f64(), mean);
    Some(match viewer.start.map(|start| flow.start + start) {
        None => "no picture".to_owned(),
        Some(at) if at >= part.to => "no picture yet".to_owned(),
        Some(_) => words,
    })
}

fn backup(all: &Applications, flow: &FlowOutcome, part: Part, active: Duration) -> Option<String> {
    let client = all.backups.iter().find(|client| client.name == flow.name)?;
    let ended = client.end.map(|end| flow.start + end).filter(|end| part.ends(*end));
    // The time behind the last file is not the backup's.
    let active = ended.map_or(active, |end| end.since(flow.start.max(part.from)));
    let copied = part.of(&client.ends, &client.took).count() as u64;
    let seconds = active.as_secs_f64();
    Some(experience::backup(if seconds > 0.0 { to_f64(copied) / seconds } else { 0.0 }))
}

fn conference(all: &Applications, flow: &FlowOutcome, part: Part) -> Option<String> {
    let person = all.conferences.iter().find(|person| person.name == flow.name)?;
    if person.frames.packets == 0 {
        return Some(experience::NO_FRAME.to_owned());
    }
    let freezes = person.freezes.iter().zip(&person.frozen_at);
    let frozen = freezes.map(|(freeze, at)| part.overlap(*at, *at + *freeze)).filter(|frozen| !frozen.is_zero());
    let (count, frozen) = frozen.fold((0, Duration::ZERO), |(count, sum), frozen| (count + 1, sum + frozen));
    Some(experience::conference(count, frozen.as_secs_f64()))
}

fn game(all: &Applications, flow: &FlowOutcome, part: Part, limit: Duration) -> Option<String> {
    let player = all.games.iter().find(|player| player.name == flow.name)?;
    let Responses { response_s, late_share, unanswered_share } = Responses::of(player, limit, |at| part.ends(at));
    Some(experience::game(response_s.p50, [late_share, unanswered_share], limit.as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file whose end cuts the run belongs to the part that it ends, a request that leaves then to the next.
    #[test]
    fn what_ends_at_a_cut_ends_in_the_part_before() {
        let at = |s| Instant::ZERO + Duration::from_s(s);
        let parts = [(0, 5, false), (5, 9, true)].map(|(from, to, last)| Part { from: at(from), to: at(to), last });
        let ends = [at(2), at(5), at(9)];
        let counts = parts.map(|part| part.of(&ends, &[Duration::from_s(1); 3]).count());
        assert_eq!(counts, [2, 1]);
        assert_eq!(parts.map(|part| part.has(at(5))), [false, true]);
    }
}
