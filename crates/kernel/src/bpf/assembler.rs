//! Programs of the classic BPF machine, with labels: McCanne, Jacobson, "The BSD Packet Filter"
//! (1993); `Documentation/networking/filter.rst` of Linux.
//!
//! A conditional jump reaches 255 instructions ahead. Longer branches use unconditional jumps
//! placed right after them; the last step inserts these.

use core::fmt;

/// An instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// The operation.
    pub code: u16,
    /// Number of instructions skipped if the condition is true.
    pub jt: u8,
    /// Number of instructions skipped if the condition is false.
    pub jf: u8,
    /// The operand.
    pub k: u32,
}

/// The form of tc-bpf(8).
impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.code, self.jt, self.jf, self.k)
    }
}

/// Operations. `A` is the accumulator, `X` the index, `M` the scratch memory, `P` the packet.
pub(super) mod code {
    /// A <- k
    pub(in crate::bpf) const LOAD_IMMEDIATE: u16 = 0x00;
    /// A <- P[k], 4 bytes
    pub(in crate::bpf) const LOAD_WORD: u16 = 0x20;
    /// A <- P[k], 2 bytes
    pub(in crate::bpf) const LOAD_HALF: u16 = 0x28;
    /// A <- P[k], 1 byte
    pub(in crate::bpf) const LOAD_BYTE: u16 = 0x30;
    /// A <- P[X + k], 2 bytes
    pub(in crate::bpf) const LOAD_HALF_AT: u16 = 0x48;
    /// A <- P[X + k], 1 byte
    pub(in crate::bpf) const LOAD_BYTE_AT: u16 = 0x50;
    /// A <- M[k]
    pub(in crate::bpf) const LOAD_MEMORY: u16 = 0x60;
    /// X <- M[k]
    pub(in crate::bpf) const LOAD_INDEX: u16 = 0x61;
    /// M[k] <- A
    pub(in crate::bpf) const STORE: u16 = 0x02;
    /// A <- A + k
    pub(in crate::bpf) const ADD: u16 = 0x04;
    /// A <- A + X
    pub(in crate::bpf) const ADD_INDEX: u16 = 0x0c;
    /// A <- A - X
    pub(in crate::bpf) const SUBTRACT_INDEX: u16 = 0x1c;
    /// A <- A & k
    pub(in crate::bpf) const AND: u16 = 0x54;
    /// A <- A << k
    pub(in crate::bpf) const LEFT: u16 = 0x64;
    /// A <- A >> k
    pub(in crate::bpf) const RIGHT: u16 = 0x74;
    /// X <- A
    pub(in crate::bpf) const TO_INDEX: u16 = 0x07;
    /// pc += k
    pub(in crate::bpf) const JUMP: u16 = 0x05;
    /// A = k?
    pub(in crate::bpf) const IF_EQUAL: u16 = 0x15;
    /// A > k?
    pub(in crate::bpf) const IF_ABOVE: u16 = 0x25;
    /// A >= k?
    pub(in crate::bpf) const IF_AT_LEAST: u16 = 0x35;
    /// A >= X?
    pub(in crate::bpf) const IF_AT_LEAST_INDEX: u16 = 0x3d;
    /// A & k?
    pub(in crate::bpf) const IF_ANY_BIT: u16 = 0x45;
    /// Ends the program with the result k
    pub(in crate::bpf) const RETURN: u16 = 0x06;
}

/// A position in a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Label(usize);

#[derive(Clone, Copy, Debug)]
enum Item {
    Plain(u16, u32),
    Branch { code: u16, k: u32, yes: Label, no: Label },
    Jump(Label),
}

/// A program under construction.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    items: Vec<Item>,
    /// The item that each label precedes.
    places: Vec<Option<usize>>,
}

impl Assembler {
    /// A new label without a position.
    pub(super) fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// Sets the label's position to the next item.
    pub(super) fn place(&mut self, label: Label) {
        self.places[label.0] = Some(self.items.len());
    }

    pub(super) fn plain(&mut self, code: u16, k: u32) {
        self.items.push(Item::Plain(code, k));
    }

    /// Continues at `yes` or at `no`; both must be ahead.
    pub(super) fn branch(&mut self, code: u16, k: u32, yes: Label, no: Label) {
        self.items.push(Item::Branch { code, k, yes, no });
    }

    pub(super) fn jump(&mut self, to: Label) {
        self.items.push(Item::Jump(to));
    }

    /// Number of items so far, to mark the parts of the program.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// The program, split at the items `cuts`.
    pub(super) fn finish(&self, cuts: &[usize]) -> Vec<Vec<Instruction>> {
        let mut long = vec![false; self.items.len()];
        let starts = loop {
            let starts = self.starts(&long);
            let mut changed = false;
            for (index, item) in self.items.iter().enumerate() {
                if let Item::Branch { yes, no, .. } = item
                    && !long[index]
                    && [yes, no].iter().any(|to| self.distance(&starts, index, **to) > usize::from(u8::MAX))
                {
                    long[index] = true;
                    changed = true;
                }
            }
            if !changed {
                break starts;
            }
        };
        let mut parts = vec![Vec::new()];
        for (index, item) in self.items.iter().enumerate() {
            if cuts.contains(&index) {
                parts.push(Vec::new());
            }
            if let Some(part) = parts.last_mut() {
                self.write(part, index, *item, &starts, long[index]);
            }
        }
        parts
    }

    /// The first instruction of each item, and the end of the program.
    fn starts(&self, long: &[bool]) -> Vec<usize> {
        let mut at = 0;
        let mut starts: Vec<usize> = long
            .iter()
            .map(|long| {
                let start = at;
                at += if *long { 3 } else { 1 };
                start
            })
            .collect();
        starts.push(at);
        starts
    }

    /// Instructions between the first of item `from` and the position of `to`.
    fn distance(&self, starts: &[usize], from: usize, to: Label) -> usize {
        let to = self.places[to.0].expect("every label that is used is placed");
        starts[to] - starts[from] - 1
    }

    fn write(&self, part: &mut Vec<Instruction>, index: usize, item: Item, starts: &[usize], long: bool) {
        let distance = |to| self.distance(starts, index, to);
        let jump = |by: usize| Instruction { code: code::JUMP, jt: 0, jf: 0, k: number(by) };
        match item {
            Item::Plain(code, k) => part.push(Instruction { code, jt: 0, jf: 0, k }),
            Item::Jump(to) => part.push(jump(distance(to))),
            Item::Branch { code, k, yes, no } if long => {
                part.push(Instruction { code, jt: 0, jf: 1, k });
                part.push(jump(distance(yes) - 1));
                part.push(jump(distance(no) - 2));
            }
            Item::Branch { code, k, yes, no } => {
                let short = |to| u8::try_from(distance(to)).expect("what is further is long");
                part.push(Instruction { code, jt: short(yes), jf: short(no), k });
            }
        }
    }
}

fn number(by: usize) -> u32 {
    u32::try_from(by).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A branch over 300 instructions needs two jumps; one over 255 is direct.
    #[test]
    fn far_places_are_reached_by_way_of_jumps() {
        for (between, first) in [(255, [(255, 0), (0, 0)]), (256, [(0, 1), (0, 0)])] {
            let mut program = Assembler::default();
            let (far, near) = (program.label(), program.label());
            program.branch(code::IF_EQUAL, 7, far, near);
            program.place(near);
            for _ in 0..between {
                program.plain(code::ADD, 1);
            }
            program.place(far);
            program.plain(code::RETURN, 0);
            let program = program.finish(&[]).concat();
            assert_eq!((program[0].jt, program[0].jf), first[0], "{between}");
            if between == 256 {
                // The first jump skips the second and all instructions between; the second
                // continues with the next instruction.
                assert_eq!((program[1].code, program[1].k, program[2].k), (code::JUMP, 257, 0));
                assert_eq!(program.len(), 260);
            }
        }
    }
}
