//! Meters and shapers: what conforms to a rate, and when the rest will.

pub mod tbf;
pub mod token_bucket;

pub use tbf::Tbf;
pub use token_bucket::TokenBucket;
