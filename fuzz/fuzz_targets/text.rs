//! libFuzzer target for the escaping of text: see `lastmile_fuzz::text`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| lastmile_fuzz::text::check(input));
