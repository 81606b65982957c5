//! The assertions of each fuzz target, as plain functions: libFuzzer calls them with generated
//! input, the tests with the seeds.

pub mod atm;
pub mod capture;
pub mod control;
pub mod flent;
pub mod iperf3;
pub mod irtt;
pub mod measure;
pub mod metrics;
pub mod packet;
pub mod page;
pub mod policy;
pub mod responsiveness;
pub mod scenario;
pub mod text;
