//! An interpreter of the programs, by the kernel's documentation, for tests.

use super::assembler::code;
use super::{Instruction, Program};

/// The result of `program` for `frame` with this mark. 0 for a read beyond the frame.
pub(super) fn run(program: &Program, frame: &[u8], mark: u32) -> u32 {
    let program: Vec<Instruction> = program.parts.concat();
    assert!(program.len() <= super::MOST);
    let (mut a, mut x, mut memory, mut at) = (0_u32, 0_u32, [None; 16], 0);
    loop {
        let Instruction { code, jt, jf, k } = program[at];
        at += 1;
        let bytes = |offset: u32, count: usize| -> Option<u32> {
            let offset = usize::try_from(offset).unwrap();
            let bytes = frame.get(offset..offset.checked_add(count)?)?;
            Some(bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
        };
        let loaded = match code {
            code::LOAD_WORD if k == 0xffff_f014 => Some(mark),
            code::LOAD_WORD => bytes(k, 4),
            code::LOAD_HALF => bytes(k, 2),
            code::LOAD_BYTE => bytes(k, 1),
            code::LOAD_HALF_AT => bytes(x + k, 2),
            code::LOAD_BYTE_AT => bytes(x + k, 1),
            code::LOAD_IMMEDIATE => Some(k),
            code::LOAD_MEMORY => Some(memory[k as usize].expect("written before it is read")),
            _ => Some(a),
        };
        let Some(loaded) = loaded else { return 0 };
        a = loaded;
        let mut jump = |holds: bool| at += usize::from(if holds { jt } else { jf });
        match code {
            code::LOAD_INDEX => x = memory[k as usize].expect("written before it is read"),
            code::STORE => memory[k as usize] = Some(a),
            code::ADD => a = a.wrapping_add(k),
            code::ADD_INDEX => a = a.wrapping_add(x),
            code::SUBTRACT_INDEX => a = a.wrapping_sub(x),
            code::AND => a &= k,
            code::LEFT => a <<= k,
            code::RIGHT => a >>= k,
            code::TO_INDEX => x = a,
            code::JUMP => at += k as usize,
            code::IF_EQUAL => jump(a == k),
            code::IF_ABOVE => jump(a > k),
            code::IF_AT_LEAST => jump(a >= k),
            code::IF_AT_LEAST_INDEX => jump(a >= x),
            code::IF_ANY_BIT => jump(a & k != 0),
            code::RETURN => return k,
            _ => {}
        }
    }
}
