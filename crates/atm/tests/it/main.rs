//! Networks of ATM, through the public interface.

mod abr;
mod against_a_list;
mod alternating;
mod loss;
mod network;
mod trials;
