//! A policy for the kernel's own tools: the nearest set-up by tc(8), nft(8) and ip(8), as plain
//! data.
//!
//! The crate does not touch the machine. [`Configuration::new`] returns the steps, the purpose of
//! each, the objects to read back, and the parts of the policy that cannot be expressed. [`script`]
//! writes them as a shell script, and a live program runs them.
//!
//! | module | holds |
//! | --- | --- |
//! | `configuration` | the whole set-up: which steps, in which order |
//! | [`accounting`], [`stab`] | the parameters of `stab` and CAKE for bytes on the wire |
//! | [`command`] | commands, choices by the kernel's features, objects to read back |
//! | `nearest` | removal of parts without a counterpart in the kernel |
//! | `tree` | classes of HTB, or of the scheduler itself where the kernel has it |
//! | `order` | from "the last match decides" to "the first match decides" |
//! | `nft` | rules as a table of nft |
//! | `leaf`, `cake` | the queue of a class |
//! | `words` | conditions in words, for comments |
//! | `discipline` | the words of a queueing discipline, and the values to read back |
//! | [`ingress`] | received packets: a policer, or an intermediate device |
//! | [`lacking`] | what to use in place of a discipline that the kernel lacks |
//! | [`script`] | a configuration as a shell script |

pub mod accounting;
mod cake;
pub mod command;
mod configuration;
mod discipline;
pub mod ingress;
pub mod lacking;
mod leaf;
mod nearest;
mod nft;
mod order;
pub mod script;
pub mod stab;
mod tree;
mod words;

pub use accounting::Accounting;
pub use command::{ALIAS, Command, DEVICE, Expected, IFB, Object, Step, TABLE, Value, named, table_of};
pub use configuration::{Configuration, Direction, Flood, MAJOR, Request};
pub use nearest::nearest;
