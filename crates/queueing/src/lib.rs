//! The datapath: queues, schedulers, shapers, ACK regulation and the line itself, written once for both clocks.
//!
//! Nothing here reads a clock, opens a socket or knows of the simulator. Time comes in with every call; packets are
//! whatever offers [`lastmile_packet::Packet`].

pub mod discipline;

pub mod random;

pub use discipline::{Backlog, Discipline, DropReason, DropSink};
