//! libFuzzer target for pages and drawings: see `lastmile_fuzz::page`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lastmile_fuzz::page::check(input));
