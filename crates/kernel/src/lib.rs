//! A policy as the kernel's own tools have it: the nearest set-up by tc(8), nft(8) and ip(8), as plain data.
//!
//! Nothing here touches the machine. [`Configuration::new`] says what would be run, step by step, what each step stands for,
//! what it leaves to read back, and what of the policy cannot be expressed; [`script`] writes it as a shell script, and a live
//! program runs it.
//!
//! | module | holds |
//! | --- | --- |
//! | [`accounting`] | bytes on the wire as `stab` and CAKE are told of them |
//! | [`command`] | commands, choices by what a kernel has, what is read back |
//! | `nearest` | what the kernel has nothing like, taken off a queue |
//! | `tree` | classes of HTB, whatever the scheduler was |
//! | `order` | "the last match decides" as "the first match decides" |
//! | `nft` | rules as a table of nft |
//! | `leaf`, `cake` | where packets wait |
//! | [`ingress`] | what comes in: a policer, or an intermediate device |
//! | [`script`] | the whole as a shell script |

pub mod accounting;
mod cake;
pub mod command;
mod configuration;
pub mod ingress;
mod leaf;
mod nearest;
mod nft;
mod order;
pub mod script;
mod tree;
mod words;

pub use accounting::Accounting;
pub use command::{Command, DEVICE, Expected, IFB, Object, Step, TABLE, Value, table_of};
pub use configuration::{Configuration, Direction, Flood, MAJOR, Request};
pub use nearest::nearest;
