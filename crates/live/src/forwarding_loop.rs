//! The loop of a live program: waits for packets of two ports, for the next departure and for
//! whatever else may end the wait.

use std::os::fd::BorrowedFd;

use lastmile_units::{Duration, Instant};

use crate::bump::Bump;
use crate::clock::{Clock, LAST, MonotonicClock, std_span};
use crate::error::{Context, Error};
use crate::io::Device;
use crate::pace::Pace;
use crate::sys::wait;

/// How often ports are asked for packets where nothing comes: only then a packet socket notices
/// that its device was removed after it went down.
const LOOK: Duration = Duration::from_s(1);

/// The longest time for which packets are carried that came before the end.
const LONGEST_END: Duration = Duration::from_s(1);

/// How often to look whether any is left.
const LOOK_AT_THE_END: Duration = Duration::from_ms(1);

/// Why the loop came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woken {
    /// The watched descriptor of this index is readable.
    Watched(usize),
    /// The time was up.
    Time,
}

/// Carries packets between the ports until one of `watched` is readable or it is `until`. Packets
/// that have arrived when a watched descriptor becomes readable are left for the next call.
pub(crate) fn carry(
    bump: &mut Bump,
    clock: &MonotonicClock,
    pace: &mut Pace,
    [a, b]: [&mut dyn Device; 2],
    watched: [Option<BorrowedFd<'_>>; 3],
    until: Option<Instant>,
) -> Result<Woken, Error> {
    let mut latest = None;
    let tuning = pace.tuning;
    loop {
        pace.rest(clock.now())?;
        let now = clock.now();
        if until.is_some_and(|until| until <= now) {
            return Ok(Woken::Time);
        }
        if now > LAST {
            return Err(Error::ClockEnds);
        }
        let departure = bump.next_wake().map(|due| due.since(now).saturating_sub(pace.spin.before(now, due)));
        let end = until.map(|until| until.since(now));
        let awake = latest.filter(|latest| now.since(*latest) < tuning.awake).map(|_| Duration::ZERO);
        let timeout = [departure, end, awake, Some(LOOK)].into_iter().flatten().min();
        let [first, second, third] = watched;
        let ready = wait::readable([first, second, third, Some(a.as_fd()), Some(b.as_fd())], timeout.map(std_span))
            .context(|| "waiting for packets")?;
        if let Some(index) = ready[..watched.len()].iter().position(|&ready| ready) {
            return Ok(Woken::Watched(index));
        }
        let packets_wait = ready[watched.len()..].contains(&true);
        if packets_wait && !tuning.awake.is_zero() {
            latest = Some(clock.now());
        } else if awake.is_some() && departure != Some(Duration::ZERO) {
            // Nothing came and nothing is due.
            continue;
        }
        bump.turn(clock, a, b).context(|| "reading packets")?;
    }
}

/// Carries the packets that came before the ports' frames became the kernel's, and those that wait or are on their way:
/// until there are none, for a second at most, and no longer than until `stop` is readable.
pub(crate) fn finish(
    bump: &mut Bump,
    clock: &MonotonicClock,
    pace: &mut Pace,
    [a, b]: [&mut dyn Device; 2],
    stop: BorrowedFd<'_>,
) -> Result<(), Error> {
    let end = clock.now() + LONGEST_END;
    loop {
        let until = end.min(clock.now() + LOOK_AT_THE_END);
        let woken = carry(bump, clock, pace, [&mut *a, &mut *b], [Some(stop), None, None], Some(until))?;
        let is_over = a.has_let_go() && b.has_let_go() && bump.is_empty();
        if is_over || woken != Woken::Time || clock.now() >= end {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use lastmile_linklayer::LinkLayer;
    use lastmile_model::Hop;
    use lastmile_packet::{Frame, HashKey};
    use lastmile_queueing::{line, spec::Spec};

    use super::*;
    use crate::bump::BumpConfig;
    use crate::io::{Framing, Port, Refusal};
    use crate::pace::Tuning;

    /// Nothing comes, and all is taken.
    struct Silent(UnixStream);

    impl AsFd for Silent {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }

    impl Port for Silent {
        fn name(&self) -> &str {
            "silent"
        }

        fn framing(&self) -> Framing {
            Framing::Packet
        }

        fn receive(&mut self, clock: &dyn Clock, _: usize, _: &mut dyn FnMut(Instant, &[u8])) -> io::Result<Instant> {
            Ok(clock.now())
        }

        fn send(&mut self, _: &mut Vec<Frame>, _: &mut dyn FnMut(Frame, Result<(), Refusal>)) {}
    }

    /// At the end of the clock, token buckets and shapers would let nothing go any more, or everything.
    #[test]
    fn days_before_its_clock_ends_a_loop_ends_with_an_error() {
        let link_layer = LinkLayer::from_name("raw").unwrap();
        let hop = || Hop {
            name: "wire".to_owned(),
            line: line::Config::new(None, link_layer, Duration::ZERO),
            queue: Spec::fifo(30),
        };
        let (up, down) = (vec![hop()], vec![hop()]);
        let config = BumpConfig { up, down, mtu: 1500, seed: 0, hash_key: HashKey::default() };
        let mut bump = Bump::new(&config).unwrap();
        let ends = [UnixStream::pair().unwrap(), UnixStream::pair().unwrap()];
        let [mut a, mut b] = ends.each_ref().map(|(end, _)| Silent(end.try_clone().unwrap()));
        let mut carried = |clock: MonotonicClock| {
            let mut pace = Pace::new(Tuning::default()).unwrap();
            let until = clock.now() + Duration::from_ms(5);
            carry(&mut bump, &clock, &mut pace, [&mut a, &mut b], [None; 3], Some(until))
        };
        let second = Duration::from_s(1);
        let before = MonotonicClock::at(Instant::ZERO + LAST.since(Instant::ZERO + second));
        assert_eq!(carried(before).unwrap(), Woken::Time);
        assert!(matches!(carried(MonotonicClock::at(LAST + second)), Err(Error::ClockEnds)));
        assert_eq!(Instant::MAX.since(LAST).as_ps() / second.as_ps() / 86_400, 13, "days that remain");
    }
}
