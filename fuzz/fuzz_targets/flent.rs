//! libFuzzer target for a parser: see `lastmile_fuzz::flent`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lastmile_fuzz::flent::check(input));
