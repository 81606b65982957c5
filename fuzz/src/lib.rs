//! The assertions of each fuzz target, as plain functions: libFuzzer calls them with generated
//! input, the tests with the seeds.

pub mod atm;
pub mod capture;
pub mod control;
pub mod metrics;
pub mod packet;
pub mod page;
pub mod policy;
pub mod scenario;
pub mod text;
