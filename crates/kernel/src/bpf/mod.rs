//! A list of rules as one program of the BPF classifier (tc-bpf(8), `bytecode`), which returns the class of a packet.
//!
//! One filter in place of many: it computes, so that "no payload" is a subtraction and not a table of header sizes, and it
//! negates, so that every rule that headers can tell is told exactly. Classic BPF, since tc takes it as text, without a compiler.
//!
//! Published: tc-bpf(8); McCanne, Jacobson 1993. A result that is not -1 is the class (`cls_bpf` of Linux).
//! Cost: the headers once, then the rules one after the other.

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

/// The most instructions that the kernel takes (`BPF_MAXINSNS`).
pub const MOST: usize = 4096;

/// A rule: which packets, and the handle of their class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule<'a> {
    pub(crate) matches: &'a Match,
    pub(crate) class: u32,
}

/// A program, part by part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// What reads the headers, then a part for each rule, then the answer for what none matches.
    pub parts: Vec<Vec<Instruction>>,
}

impl Program {
    /// The first rule that matches decides; `otherwise` is the class of what none matches, and of what is not IP.
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

    /// How many instructions it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.iter().map(Vec::len).sum()
    }

    /// Never: it returns something.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As tc-bpf(8) reads it: the number of instructions, and each of them, with commas between. A part a line.
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
