//! Changed seeds for a target, without libFuzzer: `cargo run --profile ci --package lastmile-fuzz --example mutate --
//! TARGET COUNT [START]`. Each input is a seed with one to eight random changes, and START begins another sequence. An
//! input that a property does not hold for is printed in hexadecimal and ends the run.
#![expect(clippy::print_stdout, reason = "the count is for the caller")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use lastmile_fuzz as fuzz;

/// A generator of splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `bound`, which is not zero.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below a size")
    }
}

/// Texts and bytes at the ends of what readers take.
const TOKENS: [&[u8]; 16] = [
    b"18446744073709551616",
    b"4294967296",
    b"-1",
    b"1e308",
    b"0.5",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b"\"\"",
    b"\\u0000",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\0\0\0\0\0\0\0\0",
    b"\x7f\xff\xff\xff",
    b"\xc3\x28",
    b"\n",
];

/// Changes an input at one place.
fn change(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let end = at + random.below(input.len() - at + 1).min(16);
    match random.below(8) {
        0 => input.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
        1 => input.iter_mut().skip(at).take(1).for_each(|byte| *byte = random.next().to_le_bytes()[0]),
        2 => drop(input.drain(at..end)),
        3 => drop(input.splice(at..end, TOKENS[random.below(TOKENS.len())].iter().copied())),
        4 => drop(input.splice(at..at, TOKENS[random.below(TOKENS.len())].iter().copied())),
        5 => {
            let part = input[at..end].to_vec();
            drop(input.splice(at..at, part));
        }
        6 => {
            let from = random.below(other.len() + 1);
            let to = from + random.below(other.len() - from + 1).min(64);
            drop(input.splice(at..end, other[from..to].iter().copied()));
        }
        _ => input.truncate(at),
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let target = arguments.next().unwrap_or_default();
    let check: fn(&[u8]) = match target.as_str() {
        "flent" => fuzz::flent::check,
        "iperf3" => fuzz::iperf3::check,
        "irtt" => fuzz::irtt::check,
        "measure" => fuzz::measure::check,
        "responsiveness" => fuzz::responsiveness::check,
        _ => panic!("`{target}` is no target; flent, iperf3, irtt, measure and responsiveness are"),
    };
    let number = |argument: Option<String>| argument.map(|text| text.parse::<u64>().expect("a number of inputs"));
    let count = number(arguments.next()).expect("TARGET COUNT [START]");
    let mut random = Random(number(arguments.next()).unwrap_or(1));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(&target);
    let files = std::fs::read_dir(&folder).expect("each target has a folder of seeds");
    let mut files: Vec<_> = files.map(|file| file.expect("an entry").path()).collect();
    files.sort();
    let seeds: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).expect("a seed is a file")).collect();
    for _ in 0..count {
        let mut input = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(8) {
            let other = &seeds[random.below(seeds.len())];
            change(&mut input, other, &mut random);
        }
        if catch_unwind(AssertUnwindSafe(|| check(&input))).is_err() {
            let text: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
            panic!("{target}: {text}");
        }
    }
    println!("{target}: {count} inputs, no finding");
}
