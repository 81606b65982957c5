//! What every discipline promises, held against random traffic.

mod cake;
mod contract;
mod disciplines;
mod fair;
mod managed;
mod policers;
mod regeneration;
mod sender_view;
mod sharing;
mod traffic;
