//! What every discipline promises, held against random traffic.

mod contract;
mod disciplines;
mod sender_view;
mod traffic;
