//! cake-autorate under the monotonic clock: echo requests to reflectors, and the rates that
//! [`lastmile_queueing::autorate`] makes of their replies, put into the shapers of a line that carries packets.
//!
//! A thread of its own waits for replies, for the next ping and for the next measurement of the load. Each change of a
//! rate, and each measurement, is a request to the thread that carries packets ([`Handle`]); no lock is shared with it.
//! The reflectors of the controller are the named ones, of which those beyond the number of pingers are spare; where
//! fewer are named, they take turns. Round-trip times end when the kernel received the reply ([`Echo`]).
//!
//! Differs from the simulated router: a ping starts when this thread woke up for it, and turns that passed meanwhile
//! are left out. A reply after more than 10 s does not count.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time;

use lastmile_queueing::autorate::{Config, Controller, Delay, Method, Pings, Replacement};
use lastmile_units::{BitRate, Duration, Instant, WireBytes};

use crate::clock::std_span;
use crate::echo::Echo;
use crate::error::{Context, Error};
use crate::handle::Handle;
use crate::netns::Namespace;
use crate::stop::Stop;
use crate::sys::wait;

/// A later reply does not count.
const PATIENCE: time::Duration = time::Duration::from_secs(10);

/// The time without any reply after which the pings are reported as unanswered.
const SILENCE: Duration = Duration::from_s(10);

/// The wait while there is no controller.
const LOOK: Duration = Duration::from_ms(200);

/// The most replies that are taken from a reflector at a time.
const BATCH: usize = 64;

/// Refuses a controller whose pings no live program sends.
///
/// # Errors
/// Its pings have timestamps.
pub fn check(config: &Config) -> Result<(), Error> {
    match config.pings.pinger_method {
        Method::Fping => Ok(()),
        Method::FpingTs => Err(Error::NoTimestamps),
    }
}

/// The sockets of reflectors, in the order in which they were named.
pub struct Reflectors(Vec<Reflector>);

struct Reflector {
    address: IpAddr,
    echo: Echo,
    sequence: u16,
    /// The sequence number and departure of requests without a reply, the oldest first, and the number that the
    /// controller has for this reflector.
    waiting: VecDeque<(u16, time::Instant, usize)>,
}

impl Reflectors {
    /// Opens a socket for each address in `namespace`, or in that of the calling thread.
    ///
    /// # Errors
    /// The process may not ping.
    pub fn open(namespace: Option<&Namespace>, addresses: &[IpAddr]) -> Result<Self, Error> {
        let open = || addresses.iter().map(|address| Reflector::open(*address)).collect::<Result<_, _>>().map(Self);
        match namespace {
            Some(namespace) => namespace.run(open)?,
            None => open(),
        }
    }

    /// True if none is named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of named ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl Reflector {
    fn open(address: IpAddr) -> Result<Self, Error> {
        let echo = Echo::open_unconnected(SocketAddr::new(address, 0), 0)?;
        Ok(Self { address, echo, sequence: 0, waiting: VecDeque::new() })
    }

    /// Sends a ping; returns whether it was sent. One that was not, as without a route, has no reply.
    fn ping(&mut self, number: usize) -> bool {
        let sent = self.echo.send(self.sequence);
        self.waiting.extend(sent.as_ref().ok().map(|sent| (self.sequence, *sent, number)));
        self.sequence = self.sequence.wrapping_add(1);
        sent.is_ok()
    }

    /// Takes the replies that wait: the controller's number and the round-trip time of each.
    fn receive(&mut self, mut tell: impl FnMut(usize, Duration)) {
        let now = time::Instant::now();
        while self.waiting.front().is_some_and(|(_, sent, _)| now.saturating_duration_since(*sent) > PATIENCE) {
            self.waiting.pop_front();
        }
        for _ in 0..BATCH {
            match self.echo.receive() {
                Ok(None) => return,
                // The network has reported that a request was lost.
                Err(_) => {}
                Ok(Some(reply)) => {
                    let asked = self.waiting.iter().position(|(sequence, ..)| *sequence == reply.sequence);
                    if let Some((_, sent, number)) = asked.and_then(|at| self.waiting.remove(at)) {
                        tell(number, span(sent, reply.received));
                    }
                }
            }
        }
    }
}

/// The time between two moments, zero at least.
fn span(from: time::Instant, to: time::Instant) -> Duration {
    Duration::from_ns(u64::try_from(to.saturating_duration_since(from).as_nanos()).unwrap_or(u64::MAX))
}

/// The shapers of a line, and the controller that steers them, if there is one.
pub struct Steering {
    handle: Handle,
    /// Hops with the shapers: down, up. Hops are numbered as in [`Handle::glance`].
    hops: [usize; 2],
    /// The number of named reflectors.
    named: usize,
    /// The zero of the controller's clock.
    origin: time::Instant,
    course: Mutex<Option<Course>>,
}

/// Pings and replies of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Pings that were sent.
    pub pings: u64,
    /// Their replies.
    pub replies: u64,
    /// Reflectors that were replaced by spare ones.
    pub replaced: u64,
}

/// A controller, and how far its pings are.
struct Course {
    controller: Controller,
    pings: Pings,
    start: Instant,
    /// By pinger: the number of its next turn.
    turns: Vec<u64>,
    /// The rates of the shapers; `None` before they have any of the controller's.
    applied: Option<[BitRate; 2]>,
    /// The bytes that the shapers had sent before the controller began.
    before: [WireBytes; 2],
    counts: Counts,
    /// The time of the last reply, or since when there are pings.
    heard: Instant,
    is_silent: bool,
}

impl Course {
    fn new(config: &Config, named: usize, start: Instant) -> Result<Self, Error> {
        check(config)?;
        let spares = named.saturating_sub(config.pings.no_pingers as usize);
        Ok(Self {
            controller: Controller::new(config, spares, start)?,
            pings: config.pings,
            start,
            turns: vec![0; config.pings.no_pingers as usize],
            applied: None,
            before: [WireBytes::ZERO; 2],
            counts: Counts::default(),
            heard: start,
            is_silent: false,
        })
    }

    /// The next turn of each pinger.
    fn turns(&self) -> impl Iterator<Item = (u32, Instant)> {
        (0..).zip(&self.turns).map(|(pinger, turn)| (pinger, self.pings.turn(self.start, pinger, *turn)))
    }

    /// The pingers whose turn it is. Turns that have passed, as while the program was stopped, are one.
    fn due(&mut self, now: Instant) -> Vec<u32> {
        let due: Vec<u32> = self.turns().filter(|(_, at)| *at <= now).map(|(pinger, _)| pinger).collect();
        for pinger in &due {
            let turn = &mut self.turns[*pinger as usize];
            while self.pings.turn(self.start, *pinger, *turn) <= now {
                *turn += 1;
            }
        }
        due
    }

    fn replied(&mut self, now: Instant, reflector: usize, round_trip: Duration) -> Option<Replacement> {
        self.heard = now;
        self.counts.replies += 1;
        self.controller.response(now, reflector, Delay::RoundTrip(round_trip))
    }

    /// The message for a user when replies begin to fail or come again.
    fn news(&mut self, now: Instant) -> Option<String> {
        if !self.controller.is_pinging() {
            self.heard = now;
        }
        let was = std::mem::replace(&mut self.is_silent, now.since(self.heard) > SILENCE);
        let silence = format!("no reply of a reflector for {SILENCE}: rates do not follow the line");
        match (was, self.is_silent) {
            (false, true) => Some(silence),
            (true, false) => Some("a reflector replies again".to_owned()),
            _ => None,
        }
    }

    /// The time at which something is due next.
    fn next(&self) -> Instant {
        self.turns().map(|(_, at)| at).fold(self.controller.next_monitor(), Instant::min)
    }
}

impl Steering {
    /// The shapers at these hops, down and up, without a controller; so many reflectors are named.
    #[must_use]
    pub fn new(handle: Handle, hops: [usize; 2], named: usize) -> Self {
        Self { handle, hops, named, origin: time::Instant::now(), course: Mutex::default() }
    }

    /// Steers by a new controller, or by none, once `change` has replaced the queues. No controller moves a rate
    /// meanwhile, and after an error the earlier one continues.
    ///
    /// # Errors
    /// Those of `change`, and pings that no live program sends.
    pub fn begin(&self, config: Option<&Config>, change: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let next = config.map(|config| Course::new(config, self.named, self.now())).transpose()?;
        let mut course = self.course();
        change()?;
        *course = next;
        Ok(())
    }

    /// The pings and replies of the controller; `None` without one.
    #[must_use]
    pub fn counts(&self) -> Option<Counts> {
        self.course().as_ref().map(|course| course.counts)
    }

    /// Pings and steers until `end` is readable or the line carries no more packets. `tell` gets a message when
    /// replies fail, and when they come again.
    ///
    /// # Errors
    /// The kernel has no descriptors left to wait with.
    pub fn run(
        &self,
        Reflectors(reflectors): &mut Reflectors,
        end: &Stop,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        let what = || "waiting for the replies of reflectors";
        let sockets: Vec<_> = reflectors.iter().map(|reflector| reflector.echo.as_fd()).collect();
        let any = wait::any_of(&sockets).context(what)?;
        while let Some(next) = self.advance(reflectors, tell) {
            let patience = std_span(next.since(self.now()));
            let [_, ended] = wait::readable([Some(any.as_fd()), Some(end.as_fd())], Some(patience)).context(what)?;
            if ended {
                break;
            }
        }
        Ok(())
    }

    /// Does all that is due, and returns when something is due next; `None` once the line carries no more packets.
    fn advance(&self, reflectors: &mut [Reflector], tell: &mut dyn FnMut(&str)) -> Option<Instant> {
        let mut course = self.course();
        let now = self.now();
        let mut replaced = Vec::new();
        for reflector in reflectors.iter_mut() {
            reflector.receive(|number, round_trip| {
                if let Some(course) = &mut *course {
                    replaced.extend(course.replied(now, number, round_trip));
                }
            });
        }
        let Some(course) = &mut *course else { return Some(now + LOOK) };
        let count = reflectors.len().max(1);
        for pinger in course.due(now) {
            let number = course.controller.reflector(pinger as usize).filter(|_| course.controller.is_pinging());
            if let Some((number, reflector)) =
                number.and_then(|number| Some((number, reflectors.get_mut(number % count)?)))
            {
                course.counts.pings += u64::from(reflector.ping(number));
            }
        }
        self.steer(course, &mut replaced)?;
        for Replacement { old, new, reason } in replaced {
            course.counts.replaced += 1;
            if let (Some(old), Some(new)) = (reflectors.get(old), reflectors.get(new)) {
                tell(&format!("reflector {} is replaced by {}: {reason}", old.address, new.address));
            }
        }
        if let Some(news) = course.news(now) {
            tell(&news);
        }
        Some(course.next())
    }

    /// Measures the load if that is due, and gives the shapers the controller's rates.
    fn steer(&self, course: &mut Course, replaced: &mut Vec<Replacement>) -> Option<()> {
        loop {
            let rates = course.controller.rates();
            let measures = course.controller.next_monitor() <= self.now();
            if !measures && course.applied == Some(rates) {
                return Some(());
            }
            let [down, up] = self.hops;
            let sent = self.handle.steer([(down, rates[0]), (up, rates[1])])?;
            if course.applied.is_none() {
                course.before = sent;
            }
            course.applied = Some(rates);
            if measures {
                let sent = [0, 1].map(|index| sent[index].saturating_sub(course.before[index]));
                replaced.extend(course.controller.monitor(self.now(), sent));
            }
        }
    }

    fn now(&self) -> Instant {
        Instant::ZERO + span(self.origin, time::Instant::now())
    }

    fn course(&self) -> MutexGuard<'_, Option<Course>> {
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
