//! A line watched for years: readings each second, their store, and queries.
//!
//! | module | holds |
//! | --- | --- |
//! | [`sample`] | the results of one interval, and the names that they are stored under |
//! | [`daemon`] | the loop of a watcher |
//! | [`collect`] | sources of readings: hosts, shapers, the kernel |
//! | [`history`] | spans of the store as tables and lines: percentiles by time and by hour of the day |
//! | [`delays`] | distributions of delays in fixed buckets, which add up |
//! | [`store`] | the store: intervals, minutes, hours, retention |
//! | [`recorder`] | from readings to intervals: counters, clocks, a store that is locked or full |
#![cfg(target_os = "linux")]

pub mod collect;
pub mod daemon;
pub mod delays;
pub mod history;
pub mod recorder;
pub mod sample;
pub mod store;
