//! Applications that request data over connections of their own: web users and video viewers.
//!
//! An application decides, and the simulation carries out: it asks for the next request, opens a connection where the
//! application has none, and reports each response that has arrived. Applications know neither packets nor transports.

use lastmile_model::Transport;
use lastmile_model::outcome::{BrowsingOutcome, ConferenceOutcome, GameOutcome, ViewingOutcome};
use lastmile_units::Instant;

use super::{Player, Session, Totals};

/// A request for data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Bytes of the request.
    pub request: u32,
    /// Bytes of the response.
    pub bytes: u64,
    /// The open connection for the request; `None`: a new one.
    pub on: Option<u32>,
}

/// The decisions of an application. Connections have the numbers that its owner gives them.
pub trait Browse {
    /// The application starts, or its timer fires.
    fn wake(&mut self, now: Instant);
    /// The next request to send at once, if there is any.
    fn next_request(&mut self) -> Option<Request>;
    /// The request of [`next_request`](Self::next_request) was sent over `connection`.
    fn asked(&mut self, connection: u32);
    /// The response has arrived completely over `connection`.
    fn completed(&mut self, now: Instant, connection: u32);
    /// `connection` has failed.
    fn broke(&mut self, now: Instant, connection: u32);
    /// Takes the time at which [`wake`](Self::wake) is due.
    fn take_timer(&mut self) -> Option<Instant>;
    /// Takes the connections to close.
    fn take_unneeded(&mut self) -> Vec<u32>;
    /// The user stops. Returns the connections to close.
    fn stop(&mut self, now: Instant) -> Vec<u32>;
}

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
