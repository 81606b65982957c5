//! The loop of a watcher: readings each interval, pings on a thread of their own.
//!
//! A shaper that hangs delays the interval, which then is longer: spans are measured, never
//! assumed. Pings go on meanwhile.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use lastmile_live::Error;
use lastmile_live::clock;
use lastmile_live::stop::Stop;

use crate::collect::kernel::Devices;
use crate::collect::pings::{News, Pings};
use crate::collect::shaper::Shaper;
use crate::recorder::{Moment, Readings, Recorder, Seen};
use crate::store::Store;

/// The paths, devices and shapers to watch.
#[derive(Clone, Debug)]
pub struct Config {
    /// Hosts, and the interval of everything.
    pub pings: Pings,
    /// Shapers.
    pub shapers: Vec<Shaper>,
    /// Interfaces of the kernel.
    pub devices: Devices,
}

/// Those who hear of a watcher.
pub trait Audience {
    /// A message for the operator.
    fn say(&mut self, message: &str);

    /// An interval is over.
    fn beat(&mut self);
}

/// The moment now. Monotonic time is since `start`.
fn moment(start: Instant) -> Moment {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Moment {
        wall_ms: i64::try_from(wall.as_millis()).unwrap_or(i64::MAX),
        monotonic: start.elapsed(),
        suspended: clock::suspended(),
    }
}

impl Config {
    /// Watches until `stop`, and keeps `seen` up to date.
    ///
    /// # Errors
    /// The kernel has no descriptors or threads left. All other errors are reported, and the watcher goes on.
    pub fn run(&self, store: Store, stop: &Stop, seen: &Mutex<Seen>, audience: &mut dyn Audience) -> Result<(), Error> {
        let start = Instant::now();
        let pings_end = Stop::new()?;
        let (sender, news) = mpsc::channel();
        let recorder = Recorder::new(store, moment(start));
        thread::scope(|scope| {
            let pinging = scope.spawn(|| self.pings.run(start, &pings_end, &sender));
            let recorded = self.record(recorder, start, (stop, seen), &news, audience);
            let told = pings_end.handle().map(|handle| handle.stop());
            let pinged = pinging.join().unwrap_or(Ok(()));
            recorded.and(told).and(pinged)
        })
    }

    /// The error of a watcher that has nothing to store: its hosts may not be pinged, no shaper runs, and no interface
    /// can be read. `None` for any other, also for one that is to ping no host.
    #[must_use]
    pub fn nothing_to_watch(&self) -> Option<Error> {
        let refused = self.pings.refused()?;
        let is_shaped = || self.shapers.iter().any(|shaper| matches!(shaper.read(), Ok(Some(_))));
        let is_counted = || self.devices.read().iter().any(|(_, read)| read.is_ok());
        (!is_shaped() && !is_counted()).then_some(refused)
    }

    fn record(
        &self,
        mut recorder: Recorder,
        start: Instant,
        (stop, seen): (&Stop, &Mutex<Seen>),
        news: &Receiver<News>,
        audience: &mut dyn Audience,
    ) -> Result<(), Error> {
        let interval = self.pings.interval;
        let mut next = interval;
        let mut interfaces = BTreeSet::new();
        loop {
            let stopped = stop.within(next.saturating_sub(start.elapsed()))?;
            if !stopped && start.elapsed() < next {
                continue;
            }
            let readings = self.readings(news, &mut interfaces);
            let now = moment(start);
            if stopped {
                recorder.finish(now, readings).iter().for_each(|message| audience.say(message));
                return Ok(());
            }
            recorder.tick(now, readings).iter().for_each(|message| audience.say(message));
            seen.lock().unwrap_or_else(PoisonError::into_inner).clone_from(recorder.seen());
            audience.beat();
            next = following(next, start.elapsed(), interval);
        }
    }

    /// `interfaces` are those of earlier readings.
    fn readings(&self, news: &Receiver<News>, interfaces: &mut BTreeSet<String>) -> Readings {
        let mut readings = Readings::default();
        for one in news.try_iter() {
            match one {
                News::Outcome(outcome) => readings.outcomes.push(outcome),
                News::Sources(sources) => readings.sources.extend(sources),
                News::Returned(host, silence) => {
                    let longest = readings.outages.entry(host).or_default();
                    *longest = silence.max(*longest);
                }
            }
        }
        for shaper in &self.shapers {
            let (queues, trouble) = match shaper.read() {
                Ok(Some(queues)) => (queues, None),
                Ok(None) => (Vec::new(), Some("no shaper runs".to_owned())),
                Err(why) => (Vec::new(), Some(why)),
            };
            readings.queues.extend(queues);
            readings.sources.insert(format!("shaper {}", shaper.name), trouble);
        }
        let read = self.devices.read();
        let gone = interfaces.iter().filter(|device| !read.contains_key(*device));
        let gone =
            gone.map(|device| (format!("interface {device}"), Some("no default route goes through it".to_owned())));
        readings.sources.extend(gone);
        interfaces.extend(read.keys().cloned());
        for (device, read) in read {
            let trouble = read.as_ref().err().cloned();
            readings.queues.extend(read.unwrap_or_default());
            readings.sources.insert(format!("interface {device}"), trouble);
        }
        readings
    }
}

/// The end of the next interval on the grid of the first: one that was missed is not made up for.
fn following(ended: Duration, now: Duration, interval: Duration) -> Duration {
    let next = ended + interval;
    if next > now {
        return next;
    }
    let missed = (now - ended).as_nanos() / interval.as_nanos().max(1);
    ended + interval * u32::try_from(missed + 1).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_stay_on_their_grid() {
        let ms = Duration::from_millis;
        assert_eq!(following(ms(1000), ms(1010), ms(1000)), ms(2000));
        assert_eq!(following(ms(1000), ms(2000), ms(1000)), ms(3000));
        assert_eq!(following(ms(1000), ms(5300), ms(1000)), ms(6000));
    }
}
