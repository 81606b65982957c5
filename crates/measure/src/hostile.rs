//! Readers of what a server or a file says, for fuzzing: each function panics if a property does not hold.

use crate::foreign;
use crate::serve;

/// Heads of datagrams, results and messages of an iperf3 server.
pub fn iperf3(input: &[u8]) {
    foreign::iperf3::hostile(input);
}

/// Packets of an irtt server.
pub fn irtt(input: &[u8]) {
    foreign::irtt::hostile(input);
}

/// The configuration of a responsiveness server.
pub fn responsiveness(input: &[u8]) {
    foreign::responsiveness::hostile(input);
}

/// Numbers of echo requests and of packets of trains, as the own server counts them.
pub fn session(input: &[u8]) {
    serve::hostile(input);
}
