use super::*;
use proptest::prelude::*;

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_us(us)
}

fn us(count: u64) -> Option<Duration> {
    Some(Duration::from_us(count))
}

#[test]
fn an_acknowledgement_measures_the_oldest_segment_of_it() {
    let mut sent = Transmissions::default();
    for (sent_at, end) in [(100, 1001), (100, 2001), (250, 3001), (300, 4001)] {
        sent.on_sent(at(sent_at), end);
    }
    assert_eq!(sent.records.len(), 3, "a burst shares a record");
    assert_eq!(sent.acknowledge(at(1100), 1, 1001), us(1000));
    assert_eq!(sent.acknowledge(at(1200), 1001, 3001), us(1100));
    assert_eq!(sent.acknowledge(at(1300), 3001, 4001), us(1000));
    assert_eq!((sent.records.len(), sent.acknowledge(at(1300), 4001, 4002)), (0, None));
}

/// After several timeouts of 120 s a segment may be older than the 2^29 microseconds of a shorter counter.
#[test]
fn an_age_of_ten_minutes_is_measured() {
    let mut sent = Transmissions::default();
    sent.on_sent(at(5), 1001);
    assert_eq!(sent.age(at(600_000_005), 1), us(600_000_000));
    assert_eq!(sent.acknowledge(at(600_000_005), 1, 1001), us(600_000_000));
}

/// Karn's algorithm, for retransmitted octets and for those above them.
#[test]
fn retransmitted_octets_are_not_measured() {
    let mut sent = Transmissions::default();
    for (sent_at, end) in [(100, 1001), (200, 2001), (300, 3001)] {
        sent.on_sent(at(sent_at), end);
    }
    sent.on_retransmitted(at(1000), 1, Range { start: 1, end: 1001 });
    assert_eq!((sent.age(at(1100), 1), sent.age(at(1100), 1001), sent.age(at(1100), 2500)), (None, us(900), us(800)));
    assert!(sent.precedes_first_retransmission(at(1100), Duration::from_us(101)));
    assert!(!sent.precedes_first_retransmission(at(1100), Duration::from_us(100)));
    assert_eq!(sent.acknowledge(at(1100), 1, 2001), None);
    assert!(!sent.precedes_first_retransmission(at(1100), Duration::from_us(900)), "another segment is the first");
    assert_eq!(sent.acknowledge(at(1200), 2001, 3001), us(900));
}

proptest! {
    /// The reference is a list of every octet's time.
    #[test]
    fn each_octet_has_the_time_of_its_transmission(
        base in prop_oneof![Just(1_u64), (1 << 32) - 300_u64..1 << 32],
        steps in proptest::collection::vec((0_u64..3, 1_u64..20, 0_u64..30), 1..60),
    ) {
        let mut sent = Transmissions { retransmitted: base, ..Transmissions::default() };
        let mut times = VecDeque::new();
        let (mut now, mut una) = (50, base);
        for (wait, len, acked) in steps {
            now += wait;
            times.extend(std::iter::repeat_n(now, len as usize));
            sent.on_sent(at(now), una + times.len() as u64);
            for (index, &time) in times.iter().enumerate() {
                prop_assert_eq!(sent.age(at(now + 7), una + index as u64), us(now + 7 - time));
            }
            let acked = acked.min(times.len() as u64);
            if acked > 0 {
                prop_assert_eq!(sent.acknowledge(at(now), una, una + acked), us(now - times[0]));
                times.drain(..acked as usize);
                una += acked;
            }
        }
    }
}

/// The last transmission of an octet, and its state.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Octet {
    at: u64,
    again: bool,
    lost: bool,
    held: bool,
}

#[derive(Clone, Debug)]
enum Step {
    Send(u64),
    Settle(u64),
    Hold(u64, u64),
    SendAgain(u64, u64),
    Lose(u64, u32),
    Expire(u32),
    Forgive,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u64..25).prop_map(Step::Send),
        3 => (1_u64..30).prop_map(Step::Settle),
        6 => (0_u64..90, 1_u64..25).prop_map(|(from, len)| Step::Hold(from, len)),
        4 => (0_u64..90, 1_u64..25).prop_map(|(from, len)| Step::SendAgain(from, len)),
        4 => (0_u64..90, 0_u32..30).prop_map(|(place, due)| Step::Lose(place, due)),
        1 => (0_u32..30).prop_map(Step::Expire),
        1 => Just(Step::Forgive),
    ]
}

/// The definitions of RFC 8985, octet by octet.
struct Model {
    base: u64,
    una: u64,
    octets: Vec<Octet>,
}

impl Model {
    fn end(&self) -> u64 {
        self.base + self.octets.len() as u64
    }

    fn out(&mut self, from: u64, len: u64) -> (Range, &mut [Octet]) {
        let start = (self.una + from).min(self.end());
        let end = (start + len).min(self.end());
        let base = self.base;
        (Range { start, end }, &mut self.octets[(start - base) as usize..(end - base) as usize])
    }

    fn take(&mut self, step: &Step, now: u64, sent: &mut Transmissions) {
        let una = self.una;
        match *step {
            Step::Send(len) => {
                let octet = Octet { at: now, again: false, lost: false, held: false };
                self.octets.extend(std::iter::repeat_n(octet, len as usize));
                sent.on_sent(at(now), self.end());
            }
            Step::Settle(len) => {
                self.una = (una + len).min(self.end());
                let mut settled = 0;
                sent.settle(una, self.una, |part| settled += part.range.len());
                assert_eq!(settled, self.una - una);
            }
            Step::Hold(from, len) => {
                let (range, octets) = self.out(from, len);
                let new = octets.iter_mut().filter(|octet| !octet.held);
                let expected = new.map(|octet| octet.held = true).count() as u64;
                let mut newly_held = 0;
                sent.sack(una, range, |part| newly_held += part.range.len());
                assert_eq!(newly_held, expected);
            }
            Step::SendAgain(from, len) => {
                // Only lost octets are retransmitted.
                let (range, octets) = self.out(from, len);
                if range.start < range.end && octets.iter().all(|octet| octet.lost && !octet.held) {
                    octets.fill(Octet { at: now, again: true, lost: false, held: false });
                    sent.retransmit(at(now), una, range);
                }
            }
            Step::Lose(place, due_us) => {
                let (_, chosen) = self.out(place, 1);
                let Some(latest) = chosen.first().copied().filter(|octet| octet.held || octet.lost) else { return };
                let latest_end = una + place + 1;
                let time = at(latest.at);
                let newest = if latest.again { Transmission::again(time) } else { Transmission::first(time) };
                let bounds = LossBounds { newest, newest_end: latest_end, due_us };
                sent.mark_lost(at(now), una, bounds, |_, sent| assert!(!sent.lost));
                let base = self.base;
                for (index, octet) in self.octets.iter_mut().enumerate().skip((una - base) as usize) {
                    let end = base + index as u64 + 1;
                    let follows = octet.at == latest.at && octet.again && !latest.again;
                    let before = (octet.at, end) <= (latest.at, latest_end) && !follows;
                    octet.lost |= before && !octet.held && now - octet.at >= u64::from(due_us);
                }
            }
            Step::Expire(due_us) => {
                sent.expire(at(now), una, 10, due_us, |_| ());
                let base = self.base;
                let octets = &mut self.octets[(una - base) as usize..];
                let reneged = octets.first().is_some_and(|octet| octet.held);
                for (index, octet) in octets.iter_mut().enumerate() {
                    if octet.held && reneged {
                        *octet = Octet { at: now, again: true, lost: true, held: false };
                    } else if !octet.held {
                        octet.lost |= index < 10 || now - octet.at >= u64::from(due_us);
                    }
                }
            }
            Step::Forgive => {
                sent.clear_lost();
                self.octets.iter_mut().for_each(|octet| octet.lost = false);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn the_records_have_the_state_of_each_octet(
        base in prop_oneof![Just(1_u64), (1 << 32) - 300_u64..1 << 32],
        start in prop_oneof![Just(50_u64), Just((1 << 32) - 200)],
        steps in proptest::collection::vec((0_u64..4, step()), 1..100),
    ) {
        let mut sent = Transmissions { retransmitted: base, ..Transmissions::default() };
        let mut model = Model { base, una: base, octets: Vec::new() };
        let mut now = start;
        for (wait, step) in steps {
            now += wait;
            model.take(&step, now, &mut sent);
            let live = &model.octets[(model.una - base) as usize..];
            let held = live.iter().filter(|octet| octet.held).count() as u32;
            let lost = live.iter().filter(|octet| octet.lost && !octet.held).count() as u32;
            prop_assert_eq!((sent.sacked(), sent.lost()), (held, lost), "after {:?}", step);
            let first = live.iter().position(|octet| octet.lost && !octet.held);
            let found = sent.first_lost(model.una, 10);
            prop_assert_eq!(found.map(|part| part.start), first.map(|index| model.una + index as u64));
            let mut index = 0;
            for record in &sent.records {
                let end = (record.end - model.una) as usize;
                for octet in &live[index..end] {
                    let expected = (!octet.held).then_some((octet.again, octet.lost, now + 9 - octet.at));
                    let found = match record.state {
                        SegmentState::Sacked => None,
                        SegmentState::Sent(sent) => {
                            Some((sent.retransmitted, sent.lost, u64::from(sent.age_us(at(now + 9)))))
                        }
                    };
                    prop_assert_eq!(found, expected);
                }
                index = end;
            }
            prop_assert_eq!(index, live.len());
        }
    }
}
