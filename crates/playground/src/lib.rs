//! The simulator for pages: scenarios read, simulated and reported in a browser, by the crates that the command uses.
//!
//! A page writes a request (JSON) into the module's memory and reads the answer from it. `web/src/engine` is the other
//! side.
//!
//! | file | holds |
//! | --- | --- |
//! | `request.rs` | requests and answers |
//! | `bench.rs` | the state between requests: the results of the last run |
//! | `catalogue.rs` | lines, homes, policies |
//! | `exports.rs` | the functions that WebAssembly exports |

mod bench;
mod catalogue;
#[cfg(target_arch = "wasm32")]
mod exports;
mod request;

pub use bench::{Answer, Bench};
