//! A small program for the kernel, written out as instructions, and the link that holds it: bpf(2).
//!
//! A link lives by its descriptor: when that is closed, be it by the end of the process, the program is detached.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::{check, check_fd};

// linux/bpf.h: commands, types of programs and maps, places to attach.
const PROG_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const PROG_TYPE_SCHED_CLS: u32 = 3;
const TCX_INGRESS: u32 = 46;
const TCX_DROP: i32 = 2;

// Instructions: class, size or source, operation.
const MOVE_IMMEDIATE: u8 = 0xB7;
const EXIT: u8 = 0x95;

/// `union bpf_attr`: every command reads the fields that it knows, and wants all behind them to be zero.
#[repr(C, align(8))]
struct Attributes([u32; 36]);

impl Attributes {
    fn new(fields: &[(usize, u32)]) -> Self {
        let mut attributes = Self([0; 36]);
        for (at, value) in fields {
            attributes.0[at / 4] = *value;
        }
        attributes
    }

    /// With a pointer at this offset, as a number of 64 bits.
    fn with_pointer<T: ?Sized>(mut self, at: usize, to: &T) -> Self {
        let bytes = (std::ptr::from_ref(to).cast::<u8>() as u64).to_ne_bytes();
        let [a, b, c, d, e, f, g, h] = bytes;
        self.0[at / 4] = u32::from_ne_bytes([a, b, c, d]);
        self.0[at / 4 + 1] = u32::from_ne_bytes([e, f, g, h]);
        self
    }
}

/// An instruction: operation, destination, source, offset, immediate (struct `bpf_insn`).
fn instruction(operation: u8, destination: u8, source: u8, offset: i16, immediate: i32) -> [u8; 8] {
    // Two halves of a byte, in the order of the machine's bit fields.
    let registers = if cfg!(target_endian = "little") { source << 4 | destination } else { destination << 4 | source };
    let [o0, o1] = offset.to_ne_bytes();
    let [i0, i1, i2, i3] = immediate.to_ne_bytes();
    [operation, registers, o0, o1, i0, i1, i2, i3]
}

fn bpf(command: libc::c_int, attributes: &Attributes) -> io::Result<libc::c_int> {
    // SAFETY: the attributes have the size that is given; what they point to is borrowed by the callers of this function until
    // it returns, and the kernel keeps no pointer.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<Attributes>()) };
    check(libc::c_int::try_from(result).expect("descriptors and zero are ints"))
}

fn descriptor(result: libc::c_int) -> io::Result<OwnedFd> {
    check_fd(result)
}

fn load(kind: u32, attach: u32, instructions: &[[u8; 8]]) -> io::Result<OwnedFd> {
    let license: &CStr = c"MIT";
    let count = u32::try_from(instructions.len()).expect("a handful");
    let attributes =
        Attributes::new(&[(0, kind), (4, count), (68, attach)]).with_pointer(8, instructions).with_pointer(16, license);
    descriptor(bpf(PROG_LOAD, &attributes)?)
}

fn link(program: BorrowedFd<'_>, device: libc::c_int, attach: u32, flags: u32) -> io::Result<OwnedFd> {
    let program = program.as_raw_fd().cast_unsigned();
    let attributes = Attributes::new(&[(0, program), (4, device.cast_unsigned()), (8, attach), (12, flags)]);
    descriptor(bpf(LINK_CREATE, &attributes)?)
}

/// Drops all that comes in through the device of this number in the namespace of the calling thread, behind the taps of packet
/// sockets and before everything else, until the link is closed.
pub(crate) fn drop_ingress(device: libc::c_int) -> io::Result<OwnedFd> {
    let program = [instruction(MOVE_IMMEDIATE, 0, 0, 0, TCX_DROP), instruction(EXIT, 0, 0, 0, 0)];
    let program = load(PROG_TYPE_SCHED_CLS, TCX_INGRESS, &program)?;
    link(program.as_fd(), device, TCX_INGRESS, 0)
}
