//! Messages of an iperf3 server: results are refused with a short reason, or have each stream of the test once; counts
//! of datagrams stay possible.

/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    lastmile_measure::hostile::iperf3(input);
}
