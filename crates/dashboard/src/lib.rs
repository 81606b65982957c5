//! The dashboard of a running program: a page in the browser, with a report each second, an hour of
//! history, and questions about other policies.
//!
//! | module | holds |
//! | --- | --- |
//! | [`report`] | a program's state at a time: series in charts, tables, marks |
//! | [`history`] | the last hour of all series, in memory of a fixed size |
//! | [`hub`] | the hand-over of reports from the program to browsers |
//! | [`guard`] | who may ask, and for what |
//! | [`server`] | the port: connections, their limits |
//!
//! The program publishes a [`report::Report`] each second from a thread that carries no packets
//! ([`hub::Hub::publish`]). A browser that reads slowly, or not at all, holds up neither that thread nor
//! another browser: it has a queue of [`hub::WAITING`] reports, and is disconnected when the queue is full.
//!
//! The page is in the binary: `page/`, whose script and style `make web` builds from `web/src/dashboard`.
#![cfg(target_os = "linux")]

mod body;
mod connection;
pub mod guard;
pub mod history;
pub mod hub;
mod page;
pub mod report;
mod routes;
pub mod server;

pub use server::Server;
