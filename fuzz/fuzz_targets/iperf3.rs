//! libFuzzer target for a parser: see `lastmile_fuzz::iperf3`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lastmile_fuzz::iperf3::check(input));
