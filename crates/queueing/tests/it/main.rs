//! What every discipline promises, held against random traffic.

mod contract;
mod disciplines;
mod policers;
mod sender_view;
mod sharing;
mod traffic;
