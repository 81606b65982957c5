//! A formula as lines of nft: conjunctions of which one must hold, and before them lines that set bits of the mark.

use super::conjunction::Conjunction;
use super::formula::Formula;
use super::mark::{OTHER_BITS, PURE_ACK};

/// Bits for parts of one rule; the highest bit of the mark says that a packet is a pure ACK.
const FIRST_BIT: u32 = 24;
const BITS: u32 = 7;
/// Bits that a rule clears before it uses them.
const OWN_BITS: u32 = !(OTHER_BITS | PURE_ACK);

/// The lines of one formula.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Lines {
    /// Lines that set bits of the mark.
    pub(super) before: Vec<String>,
    /// The formula holds if one of these conjunctions holds.
    pub(super) last: Vec<Conjunction>,
}

impl Lines {
    /// The lines of `formula`; `None` if it needs more bits than there are.
    pub(super) fn of(formula: &Formula) -> Option<Self> {
        let mut writer = Writer::default();
        let last = writer.alternatives(formula)?;
        let mut before = writer.before;
        if writer.bits > 0 && !last.is_empty() {
            before.insert(0, format!("meta mark set meta mark & {:#010x}", !OWN_BITS));
        }
        if last.is_empty() {
            before.clear();
        }
        Some(Self { before, last })
    }
}

#[derive(Default)]
struct Writer {
    before: Vec<String>,
    bits: u32,
}

impl Writer {
    /// Conjunctions of which one holds where the formula does.
    fn alternatives(&mut self, formula: &Formula) -> Option<Vec<Conjunction>> {
        Some(match formula {
            Formula::True => vec![Conjunction::default()],
            Formula::False => vec![],
            Formula::Plain(conjunction) => vec![conjunction.clone()],
            Formula::Bit { bit, set } => vec![bit_is(*bit, *set)],
            Formula::OneOf(parts) => {
                let parts: Option<Vec<_>> = parts.iter().map(|part| self.alternatives(part)).collect();
                parts?.concat()
            }
            Formula::Not(inner) => vec![bit_is(self.bit(inner)?, false)],
            Formula::All(parts) => {
                // The last part with several conjunctions is written out; each other takes a bit.
                let spread = parts.iter().rposition(|part| matches!(part, Formula::OneOf(_)));
                let mut common = Conjunction::default();
                for (_, part) in parts.iter().enumerate().filter(|(index, _)| Some(*index) != spread) {
                    let Some(both) = common.and(&self.conjunction(part)?) else { return Some(vec![]) };
                    common = both;
                }
                match spread {
                    Some(index) => self.alternatives(&parts[index])?.iter().filter_map(|one| common.and(one)).collect(),
                    None => vec![common],
                }
            }
        })
    }

    /// One conjunction that holds where the formula does.
    fn conjunction(&mut self, formula: &Formula) -> Option<Conjunction> {
        match formula {
            Formula::OneOf(_) | Formula::All(_) => Some(bit_is(self.bit(formula)?, true)),
            simple => self.alternatives(simple)?.pop(),
        }
    }

    /// A bit that is set where the formula holds.
    fn bit(&mut self, formula: &Formula) -> Option<u32> {
        let alternatives = self.alternatives(formula)?;
        if self.bits == BITS {
            return None;
        }
        let bit = 1 << (FIRST_BIT + self.bits);
        self.bits += 1;
        let line = |one: &Conjunction| one.then(&format!("meta mark set meta mark | {bit:#010x}"));
        self.before.extend(alternatives.iter().map(line));
        Some(bit)
    }
}

fn bit_is(bit: u32, set: bool) -> Conjunction {
    Conjunction::new(format!("meta mark & {bit:#010x} {} 0", if set { "!=" } else { "==" }))
}
