//! A video viewer: a player that requests segment after segment over one connection and plays them.
//!
//! Published: adaptive streaming over HTTP (ISO/IEC 23009-1, RFC 8216). Each segment exists in the bit rates of a
//! ladder. The player chooses one for each segment by a rule ([`super::bitrate`]), requests the next segment once the
//! last one has arrived and its buffer has space for another, starts playback once the buffer holds enough, and stalls
//! when the buffer is empty.
//!
//! Differs: a segment has exactly its bit rate times its playing time, where encoders vary it. A segment plays once it
//! has arrived whole; players with chunked segments (CMAF) start earlier. There is no manifest, no separate audio, no
//! seeking, and no connection set up in advance: the start time contains the handshake of the transport, and neither
//! TLS over TCP nor DNS. The start and the end of a stall need equal amounts of media.
//!
//! The player has no timer while a segment is on its way: what was played follows from the time that has passed. Cost:
//! two events and a pass over the ladder for each segment.

use std::sync::Arc;

use lastmile_model::Video;
use lastmile_units::{Duration, Instant};

use super::bitrate::Choice;
use super::browse::{Browse, Request};

/// A video viewer, without the connection: the caller opens it and gives it a number.
#[derive(Debug)]
pub struct Player {
    /// Time from the request for the first segment to the first picture.
    pub(super) start: Option<Duration>,
    /// The steps of the segments that arrived.
    pub(super) segments: Vec<u16>,
    /// The arrivals of the segments.
    pub(super) arrivals: Vec<Instant>,
    /// Media played up to `as_of`.
    pub(super) played: Duration,
    /// The lengths of the stalls that are over.
    pub(super) stalls: Vec<Duration>,
    /// The starts of the stalls.
    pub(super) stalled_at: Vec<Instant>,
    model: Arc<Video>,
    choice: Choice,
    began: Option<Instant>,
    state: State,
    /// Media in the buffer at `as_of`.
    buffered: Duration,
    as_of: Instant,
    /// The segment that is requested.
    loading: Option<Loading>,
    connection: Option<u32>,
    timer: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The viewer has not come yet.
    Waiting,
    /// The first segments are loading.
    Starting,
    Playing,
    /// The buffer is empty since then.
    Stalled(Instant),
    /// The video is over, or the viewer has gone.
    Over,
}

#[derive(Clone, Copy, Debug)]
struct Loading {
    step: u16,
    bytes: u64,
    requested: Instant,
}

impl Player {
    /// A viewer who has not come yet.
    pub(super) fn new(model: &Arc<Video>) -> Self {
        Self {
            start: None,
            segments: Vec::new(),
            arrivals: Vec::new(),
            played: Duration::ZERO,
            stalls: Vec::new(),
            stalled_at: Vec::new(),
            model: Arc::clone(model),
            choice: Choice::default(),
            began: None,
            state: State::Waiting,
            buffered: Duration::ZERO,
            as_of: Instant::ZERO,
            loading: None,
            connection: None,
            timer: None,
        }
    }

    /// Media that has arrived.
    fn loaded(&self) -> Duration {
        self.model.segment * self.segments.len() as u64
    }

    /// All of the video has arrived.
    fn is_whole(&self) -> bool {
        self.model.length.is_some_and(|length| self.loaded() >= length)
    }

    /// The arrival of the last segment of a video.
    pub(super) fn end(&self) -> Option<Instant> {
        self.arrivals.last().copied().filter(|_| self.is_whole())
    }

    /// Plays up to `now`.
    fn advance(&mut self, now: Instant) {
        let passed = now.since(self.as_of);
        if self.state == State::Playing {
            let played = passed.min(self.buffered);
            self.played += played;
            self.buffered = self.buffered.saturating_sub(played);
            if passed > played || (self.buffered.is_zero() && self.is_whole()) {
                let ran_dry = self.as_of + played;
                self.state = if self.is_whole() { State::Over } else { State::Stalled(ran_dry) };
            }
        }
        self.as_of = now;
    }

    /// The run is over, or the viewer goes: the player reports up to `now`.
    pub(super) fn finish(&mut self, now: Instant) {
        self.advance(now);
        if let State::Stalled(since) = self.state {
            self.end_stall(since, now);
        }
        self.state = State::Over;
    }

    fn end_stall(&mut self, since: Instant, now: Instant) {
        self.stalls.push(now - since);
        self.stalled_at.push(since);
    }

    /// Starts or continues playback if the buffer holds enough.
    fn play(&mut self, now: Instant) {
        if self.buffered < self.model.startup && !self.is_whole() {
            return;
        }
        match self.state {
            State::Starting => self.start = self.began.map(|began| now - began),
            State::Stalled(since) => self.end_stall(since, now),
            State::Waiting | State::Playing | State::Over => return,
        }
        self.state = State::Playing;
    }

    /// Sets the timer for the next request, which the buffer does not admit yet.
    fn wait_for_space(&mut self, now: Instant) {
        let excess = (self.buffered + self.model.segment).saturating_sub(self.model.buffer);
        self.timer = (!excess.is_zero()).then_some(now + excess);
    }
}

impl Browse for Player {
    fn wake(&mut self, now: Instant) {
        if self.state == State::Waiting {
            self.state = State::Starting;
            self.began = Some(now);
        }
        self.advance(now);
    }

    fn next_request(&mut self) -> Option<Request> {
        if matches!(self.state, State::Waiting | State::Over) || self.loading.is_some() || self.is_whole() {
            return None;
        }
        if self.buffered + self.model.segment > self.model.buffer {
            return None;
        }
        let step = self.choice.next(&self.model, self.buffered);
        let bits = u128::from(self.model.ladder[step].as_bps()) * u128::from(self.model.segment.as_ps());
        let bytes = u64::try_from(bits / 8_000_000_000_000).unwrap_or(u64::MAX).max(1);
        self.loading = Some(Loading { step: step as u16, bytes, requested: self.as_of });
        Some(Request { request: self.model.request.into(), bytes, on: self.connection })
    }

    fn asked(&mut self, connection: u32) {
        self.connection = Some(connection);
    }

    fn completed(&mut self, now: Instant, _: u32) {
        self.advance(now);
        let Some(loading) = self.loading.take().filter(|_| self.state != State::Over) else { return };
        self.choice.measured(loading.bytes, now - loading.requested);
        self.segments.push(loading.step);
        self.arrivals.push(now);
        self.buffered += self.model.segment;
        self.play(now);
        self.wait_for_space(now);
    }

    fn broke(&mut self, now: Instant, connection: u32) {
        if self.connection == Some(connection) {
            // The segment is requested again over another connection, in a bit rate of its own.
            self.advance(now);
            self.connection = None;
            self.loading = None;
        }
    }

    fn take_timer(&mut self) -> Option<Instant> {
        self.timer.take()
    }

    fn take_unneeded(&mut self) -> Vec<u32> {
        if self.is_whole() { self.connection.take().into_iter().collect() } else { Vec::new() }
    }

    fn stop(&mut self, now: Instant) -> Vec<u32> {
        self.finish(now);
        self.timer = None;
        self.connection.take().into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use lastmile_model::{Rule, Transport};
    use lastmile_units::BitRate;

    use super::*;

    fn player(length: Option<u64>) -> Player {
        Player::new(&Arc::new(Video {
            transport: Transport::Tcp(Arc::new(lastmile_tcp::Config::default())),
            segment: Duration::from_s(4),
            ladder: vec![BitRate::from_mbit_per_s(1)],
            rule: Rule::Throughput,
            startup: Duration::from_s(8),
            buffer: Duration::from_s(12),
            length: length.map(Duration::from_s),
            request: 350,
        }))
    }

    fn at(s: u64) -> Instant {
        Instant::ZERO + Duration::from_s(s)
    }

    /// The segment that the player requests, which arrives at `second`.
    fn segment(player: &mut Player, second: u64) {
        let request = player.next_request().expect("space for a segment");
        assert_eq!(request.bytes, 500_000, "4 s of 1 Mbit/s");
        player.asked(0);
        player.completed(at(second), 0);
    }

    /// Segments of 4 s arrive at 3 s and 5 s: playback starts at 5 s with 8 s of media and the player waits until there
    /// is space for 4 s more, at 5 s. The third segment takes until 16 s, and the buffer is empty at 13 s. Playback
    /// continues with the fourth, at 17 s.
    #[test]
    fn playback_starts_stalls_and_continues_with_enough_media() {
        let mut player = player(None);
        player.wake(at(0));
        segment(&mut player, 3);
        assert_eq!(player.start, None);
        segment(&mut player, 5);
        assert_eq!(player.start, Some(Duration::from_s(5)));
        segment(&mut player, 16);
        assert!(player.stalls.is_empty(), "a stall counts once it is over");
        segment(&mut player, 17);
        assert_eq!(player.stalls, [Duration::from_s(4)]);
        player.finish(at(20));
        assert_eq!((player.played, player.stalls.len()), (Duration::from_s(11), 1));
    }

    /// Of 12 s of buffer 8 s are needed to start. With 12 s the next request waits until 4 s are played.
    #[test]
    fn a_full_buffer_delays_the_request() {
        let mut player = player(None);
        player.wake(at(0));
        (1..=3).for_each(|second| segment(&mut player, second));
        // Started at 2 s with 8 s; at 3 s it holds 7 s and the third segment: 11 s.
        assert_eq!((player.next_request(), player.take_timer()), (None, Some(at(6))));
        player.wake(at(6));
        assert!(player.next_request().is_some());
    }

    #[test]
    fn a_video_that_is_over_has_not_stalled() {
        let mut player = player(Some(8));
        player.wake(at(0));
        segment(&mut player, 1);
        assert_eq!(player.end(), None);
        segment(&mut player, 2);
        assert_eq!((player.next_request(), player.take_unneeded()), (None, vec![0]));
        player.finish(at(60));
        assert_eq!(player.end(), Some(at(2)));
        assert_eq!((player.played, player.stalls.len()), (Duration::from_s(8), 0));
    }

    #[test]
    fn a_stall_that_lasts_until_the_end_counts_up_to_the_end() {
        let mut player = player(None);
        player.wake(at(0));
        segment(&mut player, 1);
        segment(&mut player, 2);
        assert!(player.next_request().is_some());
        player.finish(at(30));
        assert_eq!((player.played, &player.stalls[..]), (Duration::from_s(8), &[Duration::from_s(20)][..]));
    }
}
