#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lastmile_fuzz::capture::check(input));
