//! A list of rules as one program of the BPF classifier (tc-bpf(8), `bytecode`), which returns the
//! class of a packet.
//!
//! One filter replaces many. It computes, so that "no payload" is a subtraction and not a table of
//! header sizes. It negates, so that every rule on headers is exact. Classic BPF is used because tc
//! takes it as text, without a compiler.
//!
//! Published: tc-bpf(8); McCanne, Jacobson 1993. A result that is not -1 is the class (`cls_bpf` of
//! Linux). Cost: the headers once, then the rules in order.

mod assembler;
mod conditions;
mod headers;
#[cfg(test)]
mod machine;
#[cfg(test)]
mod tests;

use lastmile_linklayer::stab::Device;
use lastmile_queueing::Match;

use crate::marks::Marks;
pub use assembler::Instruction;
use assembler::{Assembler, code};
use conditions::Conditions;
pub(crate) use conditions::obstacle;

/// The most instructions that the kernel accepts (`BPF_MAXINSNS`).
pub const MOST: usize = 4096;

/// A rule: its condition, and the handle of its class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule<'a> {
    pub(crate) matches: &'a Match,
    pub(crate) class: u32,
}

/// A program in parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// One part reads the headers, one part per rule follows, and the last returns the class for
    /// unmatched packets.
    pub parts: Vec<Vec<Instruction>>,
}

impl Program {
    /// The first matching rule decides. `otherwise` is the class of unmatched packets, and of
    /// frames without IP.
    pub(crate) fn new(rules: &[Rule<'_>], otherwise: u32, device: Device, marks: &Marks) -> Self {
        let mut program = Assembler::default();
        let end = program.label();
        let mut cuts = Vec::new();
        headers::read(&mut program, device, end);
        for rule in rules {
            cuts.push(program.len());
            let (yes, no) = (program.label(), program.label());
            Conditions { program: &mut program, base: device.header(), marks }.test(rule.matches, yes, no);
            program.place(yes);
            program.plain(code::RETURN, rule.class);
            program.place(no);
        }
        cuts.push(program.len());
        program.place(end);
        program.plain(code::RETURN, otherwise);
        Self { parts: program.finish(&cuts) }
    }

    /// Number of instructions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(Vec::len).sum()
    }

    /// False: every program returns a result.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The form of tc-bpf(8): the number of instructions, and the instructions, separated by
    /// commas. One line per part.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{},", self.len())];
        let last = self.parts.len();
        for (number, part) in self.parts.iter().enumerate() {
            let mut line = part.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            if number + 1 < last {
                line.push(',');
            }
            lines.push(line);
        }
        lines
    }
}
