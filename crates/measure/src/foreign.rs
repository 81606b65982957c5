//! Servers that exist, in their own protocols.
//!
//! | module | server |
//! | --- | --- |
//! | [`iperf3`] | `iperf3 -s`: load |
//! | [`irtt`] | `irtt server`: probes |
//! | [`responsiveness`] | draft-ietf-ippm-responsiveness over HTTP/2: load and probes |

pub mod iperf3;
pub mod irtt;
pub mod responsiveness;
mod wire;
