//! The monotonic clock: real packets through the same datapath, Linux only.
