//! libFuzzer target for a parser: see `lastmile_fuzz::irtt`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lastmile_fuzz::irtt::check(input));
