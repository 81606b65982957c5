//! The functions that WebAssembly exports, and the one that it imports.
//!
//! A page calls [`reserve`] with the length of its request, writes the request there, and calls [`answer`]. The answer
//! has the returned length, and is at the address that [`answer_at`] returns.

#![expect(unsafe_code, reason = "names of exported functions are unsafe attributes, and so is a block of imports")]

use std::cell::RefCell;

use crate::Bench;

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Hears of the share of the work that is done.
    safe fn progress(share: f64);
}

thread_local! {
    static BENCH: RefCell<Bench> = RefCell::new(Bench::new(progress_of));
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

fn progress_of(share: f64) {
    progress(share);
}

/// Makes space for a request of `length` bytes, and returns its address.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn reserve(length: usize) -> *mut u8 {
    BUFFER.with_borrow_mut(|buffer| {
        buffer.clear();
        buffer.resize(length, 0);
        buffer.as_mut_ptr()
    })
}

/// Answers the request, and returns the length of the answer.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn answer() -> usize {
    let request = BUFFER.take();
    let answer = BENCH.with_borrow_mut(|bench| bench.answer(&request)).0;
    let length = answer.len();
    BUFFER.set(answer);
    length
}

/// The address of the answer.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn answer_at() -> *const u8 {
    BUFFER.with_borrow(|buffer| buffer.as_ptr())
}
