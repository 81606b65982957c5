//! Which standard streams the program was started without, as by `lastmile run >&-`.
//!
//! The standard library opens /dev/null in the place of a closed standard stream before `main`
//! runs, and output to it is lost without an error. Afterwards such a stream looks like one that
//! the caller has sent to /dev/null, which is no error. So the streams are looked at earlier: when
//! the dynamic loader, or in a static program its start-up code, calls what `.init_array` lists.
#![expect(unsafe_code, reason = "an entry of .init_array, and a system call before the standard library is there")]

use std::sync::atomic::{AtomicU8, Ordering};

/// Bit 0 to 2: the descriptor was closed when the program started.
static CLOSED: AtomicU8 = AtomicU8::new(0);

// SAFETY: the section holds pointers to functions that take what C's `main` takes, or nothing, which is
// the same to them. The function uses nothing of the standard library that is not there yet: a system
// call and an atomic.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    for descriptor in 0..3 {
        // SAFETY: takes two numbers, and changes nothing.
        if unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0 {
            CLOSED.fetch_or(1 << descriptor, Ordering::Relaxed);
        }
    }
}

/// Whether the program was started without a standard output.
#[must_use]
pub fn output_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed) & 1 << libc::STDOUT_FILENO != 0
}
