//! Two small programs for the kernel, written out as instructions, and the links that hold them: bpf(2).
//!
//! bpf(2) is called by hand: the crates that wrap it load compiled objects, where these programs have at most eleven
//! instructions. A link lives by its descriptor: when that is closed, be it by the end of the process, the program is
//! detached. Closing it takes some 10 ms, and a packet socket as long. So each program reads a word of this process,
//! which ends its work within a microsecond and without a system call.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use super::mapping::Mapping;
use super::{check, check_fd};

// linux/bpf.h: commands, types of programs and maps, places to attach.
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE_ELEM: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const PROG_TYPE_SCHED_CLS: u32 = 3;
const PROG_TYPE_XDP: u32 = 6;
const MAP_TYPE_ARRAY: u32 = 2;
const MAP_TYPE_XSKMAP: u32 = 17;
/// The map's values are memory that processes share with the kernel.
const MAPPABLE: u32 = 1 << 10;
const XDP: u32 = 37;
const TCX_INGRESS: u32 = 46;
const TCX_DROP: i32 = 2;
/// Says nothing of the frame: the next program, or the rest of the kernel, decides.
const TCX_NEXT: i32 = -1;
const XDP_PASS: i32 = 2;
const REDIRECT_MAP: i32 = 51;
/// Says of an immediate that it is the descriptor of a map.
const PSEUDO_MAP_FD: u8 = 1;
/// Says of an immediate that it is the descriptor of a map whose first value is meant.
const PSEUDO_MAP_VALUE: u8 = 2;
/// Where struct `__sk_buff` has the time of the arrival, in nanoseconds since 1970.
const TIME_STAMP: i16 = 152;
/// Where struct `xdp_md` has the number of the queue.
const RX_QUEUE_INDEX: i16 = 16;

// Instructions: class, size or source, operation.
const LOAD_WORD: u8 = 0x61;
const LOAD_DOUBLE: u8 = 0x79;
const LOAD_IMMEDIATE_64: u8 = 0x18;
const JUMP_UNLESS_IMMEDIATE: u8 = 0x55;
const JUMP_IF_LESS: u8 = 0xAD;
const CALL: u8 = 0x85;
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

    /// With a pointer at this offset, as a number of 64 bits, to what the kernel only reads.
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

fn bpf(command: libc::c_int, mut attributes: Attributes) -> io::Result<libc::c_int> {
    // SAFETY: the attributes have the size that is given, and the kernel may write to them (`log_true_size`). It only
    // reads what they point to, which the callers of this function borrow until it returns, and keeps no pointer.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut attributes, size_of::<Attributes>()) };
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
    descriptor(bpf(PROG_LOAD, attributes)?)
}

fn link(program: BorrowedFd<'_>, device: libc::c_int, attach: u32, flags: u32) -> io::Result<OwnedFd> {
    let program = program.as_raw_fd().cast_unsigned();
    let attributes = Attributes::new(&[(0, program), (4, device.cast_unsigned()), (8, attach), (12, flags)]);
    descriptor(bpf(LINK_CREATE, attributes)?)
}

/// A number that a program reads and this process writes.
#[derive(Debug)]
struct Word(Mapping);

impl Word {
    /// The number, and the map that a program has it from.
    fn new(value: u64) -> io::Result<(Self, OwnedFd)> {
        let map = Attributes::new(&[(0, MAP_TYPE_ARRAY), (4, 4), (8, 8), (12, 1), (16, MAPPABLE)]);
        let map = descriptor(bpf(MAP_CREATE, map)?)?;
        let word = Self(Mapping::new(size_of::<u64>(), libc::MAP_SHARED, map.as_raw_fd(), 0)?);
        word.set(value);
        Ok((word, map))
    }

    fn set(&self, value: u64) {
        // SAFETY: the mapping begins with a page, and has eight bytes. Both sides access them at once.
        let shared: &AtomicU64 = unsafe { self.0.at(0).cast().as_ref() };
        shared.store(value, Ordering::Release);
    }
}

/// The instructions that load the word of this map into `into`, by way of `by`.
fn load_word(into: u8, by: u8, map: &OwnedFd) -> [[u8; 8]; 3] {
    [
        instruction(LOAD_IMMEDIATE_64, by, PSEUDO_MAP_VALUE, 0, map.as_raw_fd()),
        instruction(0, 0, 0, 0, 0),
        instruction(LOAD_DOUBLE, into, by, 0, 0),
    ]
}

/// Frames of a device are dropped, until this goes.
#[derive(Debug)]
pub(crate) struct Dropping {
    _link: OwnedFd,
    until: Word,
}

impl Dropping {
    /// Frames that the kernel receives at `from` or later are dropped no more.
    pub(crate) fn end(&self, from: SystemTime) {
        let since = from.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.until.set(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
    }
}

/// Drops all that comes in through the device of this number in the namespace of the calling thread, behind the taps of
/// packet sockets and before everything else.
pub(crate) fn drop_ingress(device: libc::c_int) -> io::Result<Dropping> {
    let (until, map) = Word::new(u64::MAX)?;
    let [at, rest, value] = load_word(2, 3, &map);
    let program = [
        at,
        rest,
        value,
        // A frame that the kernel gave no time has 0.
        instruction(LOAD_DOUBLE, 4, 1, TIME_STAMP, 0),
        instruction(MOVE_IMMEDIATE, 0, 0, 0, TCX_DROP),
        instruction(JUMP_IF_LESS, 4, 2, 1, 0),
        instruction(MOVE_IMMEDIATE, 0, 0, 0, TCX_NEXT),
        instruction(EXIT, 0, 0, 0, 0),
    ];
    let program = load(PROG_TYPE_SCHED_CLS, TCX_INGRESS, &program)?;
    Ok(Dropping { _link: link(program.as_fd(), device, TCX_INGRESS, 0)?, until })
}

/// Frames of a device go to AF_XDP sockets, until this goes.
#[derive(Debug)]
pub(crate) struct Redirecting {
    _link: OwnedFd,
    ended: Word,
}

impl Redirecting {
    /// From now on frames are the kernel's. Those that sockets have stay there.
    pub(crate) fn end(&self) {
        self.ended.set(1);
    }
}

/// Hands all that comes in through the device of this number, in the namespace of the calling thread, to the AF_XDP
/// socket of the queue that it came by. Queues without a socket stay the kernel's.
pub(crate) fn redirect(device: libc::c_int, sockets: &[impl AsFd], flags: u32) -> io::Result<Redirecting> {
    let count = u32::try_from(sockets.len()).expect("a device has few queues");
    // Keys and values of four bytes.
    let map = Attributes::new(&[(0, MAP_TYPE_XSKMAP), (4, 4), (8, 4), (12, count)]);
    let map = descriptor(bpf(MAP_CREATE, map)?)?;
    let map_fd = map.as_raw_fd();
    for (queue, socket) in (0..count).zip(sockets) {
        let fd = socket.as_fd().as_raw_fd();
        let entry = Attributes::new(&[(0, map_fd.cast_unsigned())]).with_pointer(8, &queue).with_pointer(16, &fd);
        bpf(MAP_UPDATE_ELEM, entry)?;
    }
    let (ended, word) = Word::new(0)?;
    let [at, rest, value] = load_word(3, 2, &word);
    let program = [
        at,
        rest,
        value,
        instruction(MOVE_IMMEDIATE, 0, 0, 0, XDP_PASS),
        instruction(JUMP_UNLESS_IMMEDIATE, 3, 0, 5, 0),
        // r2 = the queue, r1 = the map, r3 = what to do where it has no socket.
        instruction(LOAD_WORD, 2, 1, RX_QUEUE_INDEX, 0),
        instruction(LOAD_IMMEDIATE_64, 1, PSEUDO_MAP_FD, 0, map_fd),
        instruction(0, 0, 0, 0, 0),
        instruction(MOVE_IMMEDIATE, 3, 0, 0, XDP_PASS),
        instruction(CALL, 0, 0, 0, REDIRECT_MAP),
        instruction(EXIT, 0, 0, 0, 0),
    ];
    let program = load(PROG_TYPE_XDP, XDP, &program)?;
    Ok(Redirecting { _link: link(program.as_fd(), device, XDP, flags)?, ended })
}
