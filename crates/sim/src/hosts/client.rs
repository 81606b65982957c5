//! Web users and video viewers with the sums over their connections, and the outcomes of all users.

use lastmile_model::Transport;
use lastmile_model::outcome::{BrowsingOutcome, ConferenceOutcome, GameOutcome, ViewingOutcome};
use lastmile_units::Instant;

use super::browse::Browse;
use super::{Player, Session, Totals};

/// An application with the sums over its connections.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) traffic: u32,
    pub(crate) totals: Totals,
    pub(crate) transport: Transport,
    /// A connection stays open after a response.
    pub(crate) keep_open: bool,
    application: Application,
}

/// The kinds of applications.
#[derive(Debug)]
pub(crate) enum Application {
    Web(Session),
    Video(Player),
}

impl Client {
    /// The application of traffic number `traffic`.
    pub(crate) fn new(traffic: u32, transport: &Transport, keep_open: bool, application: Application) -> Self {
        Self { traffic, totals: Totals::default(), transport: transport.clone(), keep_open, application }
    }

    /// The decisions of the application.
    pub(crate) fn decide(&mut self) -> &mut dyn Browse {
        match &mut self.application {
            Application::Web(session) => session,
            Application::Video(player) => player,
        }
    }

    /// Results kept for the end of the run.
    pub(crate) fn kept(&self) -> usize {
        match &self.application {
            Application::Web(session) => session.responses.capacity() + session.mains.capacity(),
            Application::Video(player) => player.segments.capacity() / 8 + player.stalls.capacity(),
        }
    }

    /// The outcome of the user `name` at the end of the run.
    pub(crate) fn outcome(self, now: Instant, name: String) -> Outcome {
        let traffic = self.traffic as usize;
        match self.application {
            Application::Web(Session { pages, objects, responses, mains, .. }) => {
                Outcome::Browsing(BrowsingOutcome { traffic, name, pages, objects, responses, mains })
            }
            Application::Video(mut player) => {
                player.finish(now);
                let Player { start, segments, played, stalls, .. } = player;
                Outcome::Viewing(ViewingOutcome { traffic, name, start, segments, played, stalls })
            }
        }
    }
}

/// The outcome of one user.
pub(crate) enum Outcome {
    Browsing(BrowsingOutcome),
    Viewing(ViewingOutcome),
    Conference(ConferenceOutcome),
    Game(GameOutcome),
}
