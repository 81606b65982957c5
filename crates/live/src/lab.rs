//! Namespaces and devices for real hosts to stand in: what a live program builds around its datapath, and takes away again.

pub mod netns;

pub use netns::Namespace;
