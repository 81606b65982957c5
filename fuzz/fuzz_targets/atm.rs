//! libFuzzer target for networks of cells: see `lastmile_fuzz::atm`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lastmile_fuzz::atm::check(input));
