//! Windows that come without requests.

use lastmile_units::{Instant, WireBytes};

use super::capacity::{Wire, bytes_in};
use super::slots::Slots;
use super::window::{Room, Window, room};
use super::{Config, Proactive};

/// The number of windows among which the largest is sought: periods of grants and patterns seldom coincide later.
const FIRST_WINDOWS: usize = 1000;

/// Windows that come without requests.
pub(super) struct Unasked {
    wire: Wire,
    slots: Slots,
    /// `None`: all usable spans.
    grant: Option<Proactive>,
    window: Option<Window>,
}

impl Unasked {
    pub(super) fn new(config: &Config, grant: Option<Proactive>) -> Self {
        Self { wire: config.wire(), slots: config.slots.clone(), grant, window: None }
    }

    /// The window that is in use at `at` or comes next.
    pub(super) fn window(&mut self, at: Instant) -> Instant {
        loop {
            let after = match &mut self.window {
                Some(window) => {
                    window.pass(at);
                    if window.left > 0 {
                        return window.start.max(at);
                    }
                    at.max(window.end)
                }
                None => at,
            };
            self.window = Some(self.next(after));
        }
    }

    /// The first room that ends after `at` and leaves these windows out; `None` if they fill all of it for long.
    pub(super) fn room_beside(&self, mut at: Instant) -> Option<Room> {
        (0..FIRST_WINDOWS).find_map(|_| {
            let mut room = room(&self.slots, &self.wire, at, 0);
            let next = self.next(room.start);
            if next.start < room.end {
                room.end = next.start.max(room.start);
                room.bytes = bytes_in(room.rate, room.end.since(room.start));
            }
            at = next.end;
            (room.bytes > 0).then_some(room)
        })
    }

    /// Bytes of the largest of the first windows. A pattern can cut every one of them short, so that none has the
    /// bytes of the grant.
    pub(super) fn largest(&self) -> u64 {
        let windows = core::iter::successors(Some(self.next(Instant::ZERO)), |window| Some(self.next(window.end)));
        windows.take(FIRST_WINDOWS).map(|window| window.left).max().unwrap_or(0)
    }

    /// The first window that ends after `at`.
    fn next(&self, at: Instant) -> Window {
        let Some(grant) = self.grant else {
            let Room { start, end, rate, bytes } = room(&self.slots, &self.wire, at, 0);
            return Window::new(start, end, bytes, rate);
        };
        let every = grant.every.as_ps();
        // A pattern may postpone a grant beyond the time of the next one.
        let mut number = (at.as_ps() / every).saturating_sub(1);
        loop {
            let room = room(&self.slots, &self.wire, Instant::from_ps(number * every), 0);
            let (start, left) = (room.start, grant.bytes.as_u64().min(room.bytes));
            let end = start + room.rate.time_for(WireBytes::new(left));
            // A grant postponed into the window before it is part of that.
            if end > at && self.window.is_none_or(|before| start >= before.end) {
                return Window::new(start, end, left, room.rate);
            }
            number += 1;
        }
    }

    /// The window in use at `at`.
    pub(super) fn open(&mut self, at: Instant) -> Option<&mut Window> {
        self.window.as_mut().filter(|window| window.start <= at && window.left > 0)
    }

    /// Bytes of the window in use at `at`.
    pub(super) fn left(&self, at: Instant) -> u64 {
        self.window.filter(|window| window.start <= at).map_or(0, |window| window.left)
    }

    /// The rest of the window is of no use.
    pub(super) fn waste(&mut self) {
        if let Some(window) = &mut self.window {
            window.left = 0;
        }
    }
}
