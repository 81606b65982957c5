//! Networks of ATM, as those who use the crate see them.

mod abr;
mod against_a_list;
mod loss;
mod network;
mod side_by_side;
mod trials;
