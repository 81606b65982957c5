use proptest::prelude::*;

use super::*;

const MSS: u32 = 10;

/// The definitions of RFC 6675, octet by octet.
#[derive(Default)]
struct Model {
    una: u64,
    max: u64,
    sacked: std::collections::BTreeSet<u64>,
    high_rxt: u64,
    timeout_edge: u64,
}

impl Model {
    fn unsacked(&self) -> impl Iterator<Item = u64> + '_ {
        (self.una..self.max).filter(|octet| !self.sacked.contains(octet))
    }

    /// Section 4, IsLost: DupThresh discontiguous sequences or more than (DupThresh - 1) * SMSS octets SACKed above.
    /// After a timeout, until all that was out then is acknowledged, just that counts as lost.
    fn is_lost(&self, octet: u64) -> bool {
        if self.timeout_edge > 0 {
            return octet < self.timeout_edge;
        }
        let above = self.sacked.range(octet + 1..);
        let sequences = above.clone().filter(|&&held| held == octet + 1 || !self.sacked.contains(&(held - 1))).count();
        sequences >= 3 || above.count() as u64 > 2 * u64::from(MSS)
    }

    /// Section 4, SetPipe: (a) not lost, (b) at or below HighRxt.
    fn pipe(&self) -> u64 {
        self.unsacked().map(|octet| u64::from(!self.is_lost(octet)) + u64::from(octet < self.high_rxt)).sum()
    }

    /// From the first octet that `fits` on: at most a segment, up to the next octet SACKed.
    fn segment(&self, fits: impl Fn(u64) -> bool) -> Option<Range> {
        let start = self.unsacked().find(|&octet| octet >= self.high_rxt && fits(octet))?;
        let end =
            (start..self.max.min(start + u64::from(MSS))).take_while(|octet| !self.sacked.contains(octet)).count();
        Some(Range { start, end: start + end as u64 })
    }
}

#[derive(Clone, Debug)]
enum Step {
    Send(u64),
    Sack(u64, u64),
    Ack(u64),
    Enter,
    NextLost,
    NextSuspect,
    Timeout,
    Leave,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u64..25).prop_map(Step::Send),
        8 => (0_u64..120, 1_u64..25).prop_map(|(from, len)| Step::Sack(from, len)),
        4 => (1_u64..40).prop_map(Step::Ack),
        1 => Just(Step::Enter),
        6 => Just(Step::NextLost),
        2 => Just(Step::NextSuspect),
        1 => Just(Step::Timeout),
        1 => Just(Step::Leave),
    ]
}

fn take(step: &Step, board: &mut Scoreboard, model: &mut Model) -> Result<(), TestCaseError> {
    match *step {
        Step::Send(len) => model.max += len,
        Step::Sack(from, len) => {
            let (left, right) = (model.una + from, (model.una + from + len).min(model.max));
            if left < right {
                let before = model.sacked.len();
                model.sacked.extend(left..right);
                let mut news = 0;
                board.insert(left, right, |part| news += part.len());
                prop_assert_eq!(news as usize, model.sacked.len() - before);
            }
        }
        Step::Ack(len) => {
            let to = (model.una + len).min(model.max);
            board.advance(model.una, to);
            model.una = to;
            model.sacked = model.sacked.split_off(&to);
            if model.timeout_edge <= to {
                model.timeout_edge = 0;
            }
        }
        Step::Enter if model.timeout_edge == 0 && model.max > model.una && !model.sacked.contains(&model.una) => {
            model.high_rxt = model.una;
            let expected = model.segment(|_| true).expect("something is out");
            prop_assert_eq!(board.retransmit_first(model.una, model.max, MSS), expected);
            model.high_rxt = expected.end;
        }
        Step::NextLost => {
            let expected = model.segment(|octet| model.is_lost(octet)).filter(|part| {
                // Rule 1 asks for the smallest octet: it is lost, or none above it is.
                model.unsacked().find(|&octet| octet >= model.high_rxt) == Some(part.start)
            });
            prop_assert_eq!(board.next_lost(model.una, model.max, MSS), expected);
            model.high_rxt = expected.map_or(model.high_rxt, |part| part.end);
        }
        Step::NextSuspect => {
            let highest = model.sacked.last().copied();
            let expected = model.segment(|octet| highest.is_some_and(|highest| octet < highest));
            prop_assert_eq!(board.next_suspect(model.una, model.max, MSS), expected);
            model.high_rxt = expected.map_or(model.high_rxt, |part| part.end);
        }
        Step::Timeout => {
            if model.sacked.contains(&model.una) {
                model.sacked.clear();
            }
            model.high_rxt = model.una;
            model.timeout_edge = if model.max > model.una { model.max } else { 0 };
            board.on_timeout(model.una, model.max);
        }
        Step::Leave => {
            model.high_rxt = model.una;
            board.forget_retransmissions(model.una);
        }
        Step::Enter => {}
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn the_kept_pipe_is_the_sum_over_all_octets(
        una in prop_oneof![Just(0_u64), (1_u64 << 32) - 2_000..1 << 32, (1_u64 << 31) - 2_000..1 << 31],
        steps in proptest::collection::vec(step(), 1..150),
    ) {
        let mut board = Scoreboard::new(una);
        let mut model = Model { una, max: una, high_rxt: una, ..Model::default() };
        for step in steps {
            take(&step, &mut board, &mut model)?;
            board.update(model.una, MSS);
            prop_assert_eq!(board.pipe(model.una, model.max), model.pipe(), "after {:?}", step);
            for octet in model.unsacked() {
                prop_assert_eq!(board.is_lost(octet), model.is_lost(octet), "octet {}", octet);
            }
            prop_assert_eq!(board.is_empty(), model.sacked.is_empty());
        }
    }
}

/// RFC 6675, section 4, NextSeg, rule 4: the segment has the highest octet that is out and not SACKed, once.
#[test]
fn the_rescue_has_the_highest_octet_and_comes_once() {
    let mut board = Scoreboard::new(0);
    board.insert(20, 30, |_| {});
    board.update(0, MSS);
    assert_eq!(board.retransmit_first(0, 50, MSS), Range { start: 0, end: 10 });
    assert_eq!(board.rescue(0, 50, MSS, 50), None, "not before the first is acknowledged");
    board.advance(0, 5);
    board.update(5, MSS);
    assert_eq!(board.rescue(5, 50, MSS, 50), None, "not before all of the first is");
    board.advance(5, 30);
    board.update(30, MSS);
    assert_eq!(board.rescue(30, 50, MSS, 50), Some(Range { start: 40, end: 50 }));
    assert_eq!(board.rescue(31, 50, MSS, 50), None, "once a recovery");
}

#[test]
fn the_rescue_lies_below_what_is_held_at_the_end() {
    let mut board = Scoreboard::new(0);
    board.retransmit_first(0, 50, MSS);
    board.advance(0, 15);
    board.insert(40, 50, |_| {});
    board.insert(20, 35, |_| {});
    board.update(15, MSS);
    assert_eq!(board.rescue(15, 50, MSS, 50), Some(Range { start: 35, end: 40 }));
}
