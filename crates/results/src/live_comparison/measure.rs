//! The measures by which live runs are compared: of flows, pings and links in a phase, and of applications in a run.

use serde::Serialize;

use crate::format;
use crate::schema::{Conference, Phase, Summary};

/// A measured quantity; its name includes the unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Goodput of a flow in the phase.
    GoodputBps,
    /// Segments that a flow retransmitted in the phase.
    Retransmissions,
    /// Median round-trip time of a ping.
    RttP50S,
    /// The 99th percentile of a ping's round-trip time.
    RttP99S,
    /// Mean queueing delay of a link.
    QueueDelayMeanS,
    /// Share of the phase during which the wire was busy.
    Utilisation,
    /// Median time from the request for a web page to its last byte.
    PageP50S,
    /// The 95th percentile of that time.
    PageP95S,
    /// Time to the first picture of a video.
    StartS,
    /// Share of the time from the first picture on for which a video stalled.
    StalledShare,
    /// Mean bit rate of the segments of a video.
    BitRateMeanBps,
    /// Time to the end of a backup.
    EndS,
    /// Files a second of a backup.
    FilesPerS,
    /// Share of the time that files of a backup wait for answers.
    WaitingShare,
    /// Rate of the video of a conference.
    VideoBps,
    /// Median time from the capture of a conference's frame to its display.
    FrameDelayP50S,
    /// Share of a conference's frames that were late or skipped.
    FramesLateShare,
    /// Time for which the picture of a conference was frozen.
    FrozenS,
    /// Median time from a command of a game to its effect.
    ResponseP50S,
    /// The 99th percentile of that time.
    ResponseP99S,
    /// Share of the responses of a game that exceeded its limit.
    LateShare,
}

const PAGES: &[Measure] = &[Measure::PageP50S, Measure::PageP95S];
const VIDEOS: &[Measure] = &[Measure::StartS, Measure::StalledShare, Measure::BitRateMeanBps];
const BACKUPS: &[Measure] = &[Measure::EndS, Measure::FilesPerS, Measure::WaitingShare];
const CONFERENCES: &[Measure] =
    &[Measure::VideoBps, Measure::FrameDelayP50S, Measure::FramesLateShare, Measure::FrozenS];
const GAMES: &[Measure] = &[Measure::ResponseP50S, Measure::ResponseP99S, Measure::LateShare];

/// The applications of a run, with the measures of each.
pub(super) fn of_applications(summary: &Summary) -> Vec<(String, Measure)> {
    let all = &summary.applications;
    let pages = summary.pages.iter().map(|row| (&row.name, PAGES));
    let videos = all.videos.iter().map(|row| (&row.name, VIDEOS));
    let backups = all.backups.iter().map(|row| (&row.name, BACKUPS));
    let conferences = all.conferences.iter().map(|row| (&row.name, CONFERENCES));
    let games = all.games.iter().map(|row| (&row.name, GAMES));
    let rows = pages.chain(videos).chain(backups).chain(conferences).chain(games);
    rows.flat_map(|(name, measures)| measures.iter().map(|measure| (name.clone(), *measure))).collect()
}

impl Measure {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::GoodputBps => "goodput, kbit/s",
            Self::Retransmissions => "retransmitted",
            Self::RttP50S => "ping p50, ms",
            Self::RttP99S => "ping p99, ms",
            Self::QueueDelayMeanS => "queue, ms",
            Self::Utilisation => "busy, %",
            Self::PageP50S => "page p50, ms",
            Self::PageP95S => "page p95, ms",
            Self::StartS => "start, ms",
            Self::StalledShare => "stalled, %",
            Self::BitRateMeanBps => "bit rate, kbit/s",
            Self::EndS => "end, ms",
            Self::FilesPerS => "files/s",
            Self::WaitingShare => "waiting, %",
            Self::VideoBps => "video, kbit/s",
            Self::FrameDelayP50S => "frame p50, ms",
            Self::FramesLateShare => "frames late or lost, %",
            Self::FrozenS => "frozen, ms",
            Self::ResponseP50S => "response p50, ms",
            Self::ResponseP99S => "response p99, ms",
            Self::LateShare => "late, %",
        }
    }

    /// The value in the unit of the table.
    pub(super) fn text(self, value: f64) -> String {
        match self {
            Self::Retransmissions => format!("{value:.0}"),
            Self::FilesPerS => format!("{value:.2}"),
            Self::GoodputBps | Self::BitRateMeanBps | Self::VideoBps => format!("{:.1}", value / 1e3),
            Self::Utilisation | Self::StalledShare | Self::WaitingShare | Self::FramesLateShare | Self::LateShare => {
                format!("{:.1}", value * 1e2)
            }
            Self::RttP50S
            | Self::RttP99S
            | Self::QueueDelayMeanS
            | Self::PageP50S
            | Self::PageP95S
            | Self::StartS
            | Self::EndS
            | Self::FrameDelayP50S
            | Self::FrozenS
            | Self::ResponseP50S
            | Self::ResponseP99S => format!("{:.1}", value * 1e3),
        }
    }

    /// The value of the flow, ping or link `of` in a phase; `None` for measures of applications.
    pub(super) fn of_phase(self, phase: &Phase, of: &str) -> Option<f64> {
        let flow = || phase.flows.iter().find(|flow| flow.name == of);
        let probe = || phase.probes.iter().find(|probe| probe.name == of);
        let link = || phase.links.iter().find(|link| link.name == of);
        match self {
            Self::GoodputBps => flow().map(|flow| flow.goodput_bps),
            Self::Retransmissions => flow()?.retransmissions.map(format::to_f64),
            Self::RttP50S => probe()?.rtt_s.p50,
            Self::RttP99S => probe()?.rtt_s.p99,
            Self::QueueDelayMeanS => link()?.queue_delay_mean_s,
            Self::Utilisation => link()?.utilisation,
            _ => None,
        }
    }

    /// The value of the application `of` in a run; `None` for measures of phases.
    pub(super) fn of_run(self, summary: &Summary, of: &str) -> Option<f64> {
        let all = &summary.applications;
        let pages = || summary.pages.iter().find(|row| row.name == of);
        let video = || all.videos.iter().find(|row| row.name == of);
        let backup = || all.backups.iter().find(|row| row.name == of);
        let conference = || all.conferences.iter().find(|row| row.name == of);
        let game = || all.games.iter().find(|row| row.name == of);
        match self {
            Self::PageP50S => pages()?.response_s.p50,
            Self::PageP95S => pages()?.response_s.p95,
            Self::StartS => video()?.start_s,
            Self::StalledShare => video()?.stalled_share,
            Self::BitRateMeanBps => video()?.bit_rate_mean_bps,
            Self::EndS => backup()?.end_s,
            Self::FilesPerS => backup().map(|row| row.files_per_s),
            Self::WaitingShare => backup()?.waiting_share,
            Self::VideoBps => conference().map(|row| row.video_bps),
            Self::FrameDelayP50S => conference()?.frame_delay_s.p50,
            Self::FramesLateShare => conference().map(Conference::bad_share),
            Self::FrozenS => conference().map(|row| row.frozen_s),
            Self::ResponseP50S => game()?.response_s.p50,
            Self::ResponseP99S => game()?.response_s.p99,
            Self::LateShare => game()?.late_share,
            _ => None,
        }
    }
}
