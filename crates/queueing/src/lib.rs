//! The datapath: queues, schedulers, shapers, ACK regulation and the line itself. Both clocks use
//! this one implementation.
//!
//! The crate reads no clock, opens no socket and does not depend on the simulator. Time is an
//! argument of every call; a packet is any type that implements [`lastmile_packet::Packet`].

pub mod ack;
pub mod aqm;
pub mod autorate;
pub mod cake;
pub mod catalogue;
pub mod classify;
pub mod compress;
pub mod discipline;
pub mod environment;
pub mod fair;
pub mod fifo;
pub mod handover;
pub mod line;
pub mod meter;
pub mod random;
mod ring;
pub mod sched;
pub mod spec;
pub mod supplied;

pub use ack::{AckCollapsing, AckFilter, AckPacing, AckRegenerator, CakeAckFilter, SmartAckDropper, WindowClamp};
pub use cake::Cake;
pub use classify::{ClassIndex, Classifier, Condition, End, FirstMatch, Match, Matcher, Rules};
pub use discipline::{Backlog, Count, Counter, Discipline, DropReason, DropSink, Node};
pub use environment::Environment;
pub use fifo::{Fifo, Limit, Overflow};
pub use handover::Handover;
pub use meter::{Drain, Policer, Tbf, TokenBucket};
pub use sched::{Cbq, CustomQueueing, Hfsc, Htb, Priority};
pub use spec::{BuildError, Spec};
