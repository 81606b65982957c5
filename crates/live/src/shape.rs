//! The middlebox: a bridge between a LAN and an access line that shapes the line with a policy's queues.
//!
//! ```text
//!             +------------------------------------------------+
//!   LAN       |   up:   policy's tree, shaped to the line      |       modem, line
//!   ----------| lan                                        wan |------------------
//!             |   down: policing, shaping, draining            |
//!             +------------------------------------------------+
//!                     bridge of the kernel, held back
//! ```
//!
//! It is a [`crate::bump`] with one hop each way that has no rate and no delay of its own: the
//! queue is the policy's, which lets packets go at the rate of the line behind it, with the bytes
//! that they take there. Every frame is carried: what cannot be understood goes by the default
//! class, unchanged.
//!
//! Both interfaces are ports of a bridge of the kernel ([`World::build`] makes one if asked to).
//! While this program lives, the bridge gets nothing ([`crate::io::Bypass`]); when it ends, however
//! it ends, the bridge carries on without it.
//!
//! One thread carries packets. Other threads ask it through a [`Handle`] for a report, for other
//! queues or to end, and it answers between two turns. The asking thread builds the queues for a
//! new policy, and they are put in while packets wait ([`crate::bump::Bump::hand_over`]).

mod bridge;
mod direction;
mod environment;
mod handle;
pub mod notify;
pub mod sandbox;
pub mod supervise;

pub use direction::Direction;
pub use environment::{Config, World};
pub use handle::Handle;

pub use crate::handle::Snapshot;
pub use crate::pace::Tuning;
