//! What each fuzz target asserts, as plain functions: libFuzzer calls them with what it makes up, the tests with the seeds.

pub mod atm;
pub mod capture;
pub mod control;
pub mod metrics;
pub mod packet;
pub mod page;
pub mod policy;
pub mod scenario;
pub mod text;
