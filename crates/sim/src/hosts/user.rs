//! The users of applications that request data over connections of their own, and the outcomes of all users.
//!
//! A user decides and keeps results. The owner of a clock has the connections: the simulation those of its transports,
//! the lab those of the kernel.

use lastmile_model::Source;
use lastmile_model::outcome::{
    Applications, BackupOutcome, BrowsingOutcome, ConferenceOutcome, GameOutcome, ViewingOutcome,
};
use lastmile_queueing::random::Stream;
use lastmile_units::Instant;

use super::backup::Backup;
use super::browse::Browse;
use super::{Player, Session};

/// A user of an application, without connections.
#[derive(Debug)]
pub enum User {
    /// A reader of web pages.
    Web(Session),
    /// A viewer of a video.
    Video(Player),
    /// A client that copies files.
    Backup(Backup),
}

impl User {
    /// The user of `source`, who has not begun; `None` for other sources. Equal streams make equal draws.
    #[must_use]
    pub fn new(source: &Source, random: Stream) -> Option<Self> {
        match source {
            Source::Web(model) => Some(Self::Web(Session::new(model, random))),
            Source::Video(model) => Some(Self::Video(Player::new(model))),
            Source::Backup(model) => Some(Self::Backup(Backup::new(model, random))),
            _ => None,
        }
    }

    /// The decisions of the application.
    pub fn decide(&mut self) -> &mut dyn Browse {
        match self {
            Self::Web(session) => session,
            Self::Video(player) => player,
            Self::Backup(backup) => backup,
        }
    }

    /// Data arrive at their receiver over `connection`.
    pub fn delivered(&mut self, now: Instant, connection: u32) {
        if let Self::Backup(backup) = self {
            backup.delivered(now, connection);
        }
    }

    /// The end of a backup whose files were all copied, or of a video whose segments have all arrived.
    pub(crate) fn end(&self) -> Option<Instant> {
        match self {
            Self::Web(_) => None,
            Self::Video(player) => player.end(),
            Self::Backup(backup) => backup.ended,
        }
    }

    /// Results kept for the end of the run, in 8 bytes each.
    pub(crate) fn kept(&self) -> usize {
        match self {
            Self::Web(session) => 2 * session.responses.capacity() + session.mains.capacity(),
            Self::Video(player) => 2 * player.segments.capacity() + 2 * player.stalls.capacity(),
            Self::Backup(backup) => 2 * backup.took.capacity(),
        }
    }

    /// The outcome at `now` of the user `name` of traffic number `traffic`.
    #[must_use]
    pub fn outcome(self, now: Instant, traffic: usize, name: String) -> UserOutcome {
        match self {
            Self::Web(Session { pages, objects, responses, ends, mains, .. }) => {
                UserOutcome::Browsing(BrowsingOutcome { traffic, name, pages, objects, responses, ends, mains })
            }
            Self::Video(mut player) => {
                player.finish(now);
                let Player { start, segments, arrivals, played, stalls, stalled_at, .. } = player;
                UserOutcome::Viewing(ViewingOutcome {
                    traffic,
                    name,
                    start,
                    segments,
                    arrivals,
                    played,
                    stalls,
                    stalled_at,
                })
            }
            Self::Backup(backup) => {
                let (end, active) = (backup.end(), backup.active(now));
                let Backup { took, ends, bytes, waited, .. } = backup;
                UserOutcome::Backup(BackupOutcome { traffic, name, took, ends, bytes, waited, end, active })
            }
        }
    }
}

/// The outcome of one user.
#[derive(Clone, Debug)]
pub enum UserOutcome {
    /// A reader of web pages.
    Browsing(BrowsingOutcome),
    /// A viewer of a video.
    Viewing(ViewingOutcome),
    /// A client that copies files.
    Backup(BackupOutcome),
    /// One direction of a conference.
    Conference(ConferenceOutcome),
    /// A player of a game.
    Game(GameOutcome),
}

impl UserOutcome {
    /// Adds this row to those of its kind.
    pub fn add_to(self, all: &mut Applications) {
        match self {
            Self::Browsing(user) => all.browsing.push(user),
            Self::Viewing(viewer) => all.viewing.push(viewer),
            Self::Backup(backup) => all.backups.push(backup),
            Self::Conference(conference) => all.conferences.push(conference),
            Self::Game(player) => all.games.push(player),
        }
    }
}
