//! libFuzzer target for a parser: see `lastmile_fuzz::responsiveness`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lastmile_fuzz::responsiveness::check(input));
