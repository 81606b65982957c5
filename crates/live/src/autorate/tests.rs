use std::thread;

use lastmile_linklayer::LinkLayer;
use lastmile_model::Hop;
use lastmile_packet::HashKey;
use lastmile_queueing::autorate::Rates;
use lastmile_queueing::cake;
use lastmile_queueing::line;
use lastmile_queueing::spec::Spec;

use super::*;
use crate::bump::{Bump, BumpConfig, Queues};
use crate::handle::{Asked, Draws, Inbox, Snapshot};
use crate::io::Counters;

fn mbit(rate: u64) -> BitRate {
    BitRate::from_mbit_per_s(rate)
}

/// Rates of 5 to 20 Mbit/s down and of 1 to 4 Mbit/s up, from 10 and 2.
fn config() -> Config {
    let rates =
        |base| Rates { min: mbit(base / 2), base: mbit(base), max: mbit(2 * base), largest: WireBytes::new(1500) };
    Config::new([rates(10), rates(2)])
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(ms)
}

/// A line of two CAKEs at 100 Mbit/s that carries nothing, and answers.
struct Line {
    bump: Bump,
    inbox: Inbox,
}

impl Asked for Line {
    fn inbox(&mut self) -> &mut Inbox {
        &mut self.inbox
    }

    fn snapshot(&mut self) -> Result<Snapshot, Error> {
        let (up, down) = self.bump.reports();
        Ok(Snapshot { uptime: Duration::ZERO, hand_overs: 0, up, down })
    }

    fn ports(&mut self) -> Result<[Counters; 2], Error> {
        Ok(Default::default())
    }

    fn bump(&mut self) -> (&mut Bump, Instant) {
        (&mut self.bump, Instant::ZERO)
    }

    fn hand_over(&mut self, queues: Queues) {
        self.bump.hand_over(queues);
    }
}

/// The outcome of `work`, while a thread answers for a line.
fn on_a_line<T>(work: impl FnOnce(&Handle) -> T) -> T {
    let hop = |name: &str| Hop {
        name: name.to_owned(),
        line: line::Config::new(None, LinkLayer::from_name("ethernet").unwrap(), Duration::ZERO),
        queue: Spec::Cake(cake::Config { bandwidth: Some(mbit(100)), ..cake::Config::default() }),
    };
    let hash_key = HashKey::default();
    let config = BumpConfig { up: vec![hop("up")], down: vec![hop("down")], mtu: 1500, seed: 1, hash_key };
    let mut line = Line { bump: Bump::new(&config).unwrap(), inbox: Inbox::new(Draws { seed: 1, hash_key }).unwrap() };
    let handle = line.inbox.handle();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !line.answer().unwrap() {
                line.inbox.waiting.within(time::Duration::from_secs(1)).unwrap();
            }
        });
        let done = work(&handle);
        handle.stop();
        done
    })
}

fn shapers(handle: &Handle) -> [Option<BitRate>; 2] {
    let (_, hops) = handle.glance().unwrap();
    [hops[1].shaper_rate, hops[0].shaper_rate]
}

#[test]
fn shapers_get_the_rates_of_the_controller_in_force() {
    on_a_line(|handle| {
        let steering = Steering::new(handle.clone(), [1, 0], 1);
        assert!(steering.advance(&mut [], &mut |_| {}).is_some());
        assert_eq!((shapers(handle), steering.counts()), ([None; 2], None), "there is no controller");
        steering.begin(Some(&config()), || Ok(())).unwrap();
        let next = steering.advance(&mut [], &mut |_| {}).unwrap();
        assert_eq!(shapers(handle), [Some(mbit(10)), Some(mbit(2))]);
        // A ping is due every 50 ms.
        assert!(next.since(steering.now()) <= Duration::from_ms(50));

        let double = Config { rates: [config().rates[0], Rates { base: mbit(3), ..config().rates[1] }], ..config() };
        let refused = steering.begin(Some(&double), || Err(Error::NoReflector));
        assert!(matches!(refused, Err(Error::NoReflector)));
        steering.advance(&mut [], &mut |_| {});
        assert_eq!(shapers(handle), [Some(mbit(10)), Some(mbit(2))], "a change that failed has changed nothing");
        steering.begin(Some(&double), || Ok(())).unwrap();
        steering.advance(&mut [], &mut |_| {});
        assert_eq!(shapers(handle), [Some(mbit(10)), Some(mbit(3))]);
    });
}

/// Six pingers each 300 ms, 50 ms apart. Turns that have passed by 1 s are one.
#[test]
fn pings_are_on_a_grid_from_the_start_of_the_controller() {
    let mut course = Course::new(&config(), 1, at(1000)).unwrap();
    assert_eq!(course.due(at(999)), [0; 0]);
    assert_eq!(course.due(at(1000)), [0]);
    assert_eq!(course.due(at(1110)), [1, 2]);
    assert_eq!(course.next(), at(1150));
    assert_eq!(course.due(at(2010)), [0, 1, 2, 3, 4, 5]);
    // The turns of pinger 0 are at 1000 + 300 n, those of pinger 3 at 1150 + 300 n.
    assert_eq!((course.due(at(2049)), course.due(at(2050))), (vec![], vec![3]));
}

#[test]
fn silence_is_reported_once_and_so_is_its_end() {
    let mut course = Course::new(&config(), 1, at(0)).unwrap();
    let news = |course: &mut Course, ms| course.news(at(ms)).is_some();
    assert_eq!([10_000, 10_001, 20_000].map(|ms| news(&mut course, ms)), [false, true, false]);
    course.replied(at(21_000), 0, Duration::from_ms(40));
    assert_eq!([21_000, 22_000, 31_001].map(|ms| news(&mut course, ms)), [true, false, true]);
    assert_eq!(course.counts, Counts { replies: 1, ..Counts::default() });
}

#[test]
fn pings_with_timestamps_are_refused() {
    let mut config = config();
    config.pings.pinger_method = Method::FpingTs;
    let steering = on_a_line(|handle| Steering::new(handle.clone(), [1, 0], 1));
    assert!(matches!(steering.begin(Some(&config), || Ok(())), Err(Error::NoTimestamps)));
}

#[test]
fn a_line_that_has_ended_ends_the_pings() {
    let steering = on_a_line(|handle| Steering::new(handle.clone(), [1, 0], 1));
    steering.begin(Some(&config()), || Ok(())).unwrap();
    assert_eq!(steering.advance(&mut [], &mut |_| {}), None);
}

/// The kernel's own echo over loopback, by both families, in turns.
#[test]
#[ignore = "needs root for a raw socket"]
fn reflectors_are_pinged_in_turns_and_their_replies_count() {
    let mut reflectors = Reflectors::open(None, &["127.0.0.1".parse().unwrap(), "::1".parse().unwrap()]).unwrap();
    let counts = on_a_line(|handle| {
        let (steering, end) = (Steering::new(handle.clone(), [1, 0], 1), Stop::new().unwrap());
        steering.begin(Some(&config()), || Ok(())).unwrap();
        let ending = end.handle().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| steering.run(&mut reflectors, &end, &mut |_| {}).unwrap());
            thread::sleep(time::Duration::from_millis(1020));
            ending.stop();
        });
        (steering.counts().unwrap(), steering.now().since(Instant::ZERO).as_ms() / 50 + 1)
    });
    // One every 50 ms from 0 on. A busy machine loses turns, and may end before the replies of its last ones, of which
    // each of six pingers has one at most.
    let (Counts { pings, replies, .. }, most) = counts;
    assert!((most / 3..=most).contains(&pings) && pings - replies <= 6, "{counts:?}");
    assert!(reflectors.0.iter().all(|reflector| u64::from(reflector.sequence) >= most / 6), "each had some");
}
