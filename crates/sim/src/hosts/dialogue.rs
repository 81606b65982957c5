//! Applications whose two ends exchange datagrams: conferences and games.
//!
//! Each has one pending event at a time, and sends what is due when it fires. Both ends are in one place, under either
//! clock: a datagram carries its length and its number, by which the far end finds the contents.

use lastmile_model::outcome::{ConferenceOutcome, GameOutcome};
use lastmile_model::{Source, Traffic};
use lastmile_packet::{FlowId, Meta};
use lastmile_queueing::random::Stream;
use lastmile_units::{Duration, Instant};

use super::{Conference, DataCounts, Game, UserOutcome, conference, game};

/// An exchange of datagrams, both ends of it.
#[derive(Debug)]
pub enum Dialogue {
    /// One direction of a conference.
    Conference(Box<Conference>),
    /// A player of a game.
    Game(Box<Game>),
}

impl Dialogue {
    /// The dialogue of `traffic`, number `index` in its list, whose datagrams have the numbers `flows` there and back;
    /// `None` for other kinds. Equal streams make equal draws.
    #[must_use]
    pub fn new(traffic: &Traffic, index: usize, flows: [FlowId; 2], random: Stream) -> Option<Self> {
        let (flows, buffer) = ((flows, traffic.ip), traffic.listener.buffer);
        match &traffic.source {
            Source::Conference(model) => {
                Some(Self::Conference(Box::new(Conference::new(model, index, flows, buffer, random))))
            }
            Source::Game(model) => Some(Self::Game(Box::new(Game::new(model, index, flows, buffer, random)))),
            _ => None,
        }
    }

    /// Index of its traffic.
    pub(crate) fn traffic(&self) -> usize {
        match self {
            Self::Conference(conference) => conference.traffic,
            Self::Game(game) => game.traffic,
        }
    }

    /// The application starts.
    pub fn start(&mut self, now: Instant, stop: Option<Instant>) {
        match self {
            Self::Conference(conference) => conference.start(now, stop),
            Self::Game(game) => game.start(now, stop),
        }
    }

    /// The time of the next event after `now`, unless a wake-up is pending at that time or earlier.
    pub fn take_wake(&mut self, now: Instant) -> Option<Instant> {
        match self {
            Self::Conference(conference) => conference.take_wake(now),
            Self::Game(game) => game.take_wake(),
        }
    }

    /// The event fires: hands the packets that are due to `send`.
    pub fn wake(&mut self, now: Instant, send: &mut dyn FnMut(Meta)) {
        match self {
            Self::Conference(conference) => conference.wake(now, send),
            Self::Game(game) => game.wake(now, send),
        }
    }

    /// A packet reaches its end.
    pub fn arrived(&mut self, now: Instant, packet: &Meta) {
        match self {
            Self::Conference(conference) => conference.arrived(now, packet),
            Self::Game(game) => game.arrived(now, packet),
        }
    }

    /// The network drops packet `number` of `flow`.
    pub(crate) fn dropped(&mut self, flow: FlowId, number: u64) {
        match self {
            Self::Conference(conference) => conference.dropped(flow, number),
            Self::Game(game) => game.dropped(flow, number),
        }
    }

    /// The counters of its data.
    #[must_use]
    pub fn counts(&self) -> &DataCounts {
        match self {
            Self::Conference(conference) => &conference.data,
            Self::Game(game) => &game.data,
        }
    }

    /// Times kept for the end of the run.
    pub(crate) fn kept(&self) -> usize {
        match self {
            Self::Conference(conference) => conference.kept(),
            Self::Game(game) => game.kept(),
        }
    }

    /// The outcome at `now` of the user `name`, who was `active` for this time.
    #[must_use]
    pub fn outcome(self, now: Instant, name: String, active: Duration) -> UserOutcome {
        let traffic = self.traffic();
        match self {
            Self::Conference(conference) => {
                let conference::Counts { frames: captured, key_frames, retransmitted, video_bytes, audio_sent } =
                    conference.counts;
                let conference::Finished { frames, freezes, frozen_at, audio, lost: [frames_lost, audio_lost] } =
                    conference.finish(now);
                UserOutcome::Conference(ConferenceOutcome {
                    traffic,
                    name,
                    captured,
                    key_frames,
                    retransmitted,
                    video_bytes,
                    audio_sent,
                    active,
                    frames,
                    frames_lost,
                    freezes,
                    frozen_at,
                    audio,
                    audio_lost,
                })
            }
            Self::Game(game) => {
                let (updates_sent, commands_sent) = (game.data.sent, game.commands_sent());
                let game::Finished { updates, commands, responses, response_ends, unanswered, end, lost } =
                    game.finish(now);
                UserOutcome::Game(GameOutcome {
                    traffic,
                    name,
                    updates_sent,
                    commands_sent,
                    updates,
                    commands,
                    lost,
                    responses,
                    response_ends,
                    unanswered,
                    end,
                })
            }
        }
    }
}
