//! One of the loads of cells, for counting its instructions or for a profile. Arguments: `frames`,
//! `shaped`, `per-vc` or `classes`; `cells` or `trains`; milliseconds of simulated time (100),
//! after 300 in which the wires fill.
//!
//! `cargo build --release -p lastmile-bench --example cells`, then `valgrind --tool=callgrind
//! --toggle-collect=go_on target/release/examples/cells classes trains`

#![expect(clippy::print_stdout, reason = "what it measured is for whoever runs it")]

#[path = "../src/atm/load.rs"]
mod load;

use std::time::Instant as Clock;

use lastmile_units::{Duration, Instant};
use load::{Kind, Load};

fn main() {
    let mut args = std::env::args().skip(1);
    let wanted = args.next().unwrap_or_default();
    let kind = ["frames", "shaped", "per-vc", "classes"].into_iter().zip(Kind::ALL).find(|(name, _)| *name == wanted);
    let (_, kind) = kind.unwrap_or_else(|| panic!("frames, shaped, per-vc or classes, not {wanted:?}"));
    let trains = match args.next().as_deref() {
        Some("cells") => false,
        Some("trains") => true,
        other => panic!("cells or trains, not {other:?}"),
    };
    let ms = args.next().map_or(100, |ms| ms.parse().expect("milliseconds"));
    let mut load = Load::new(kind, trains);
    let start = Instant::ZERO + Duration::from_ms(300);
    load.run(start);
    let before = load.cells().0;
    let clock = Clock::now();
    go_on(&mut load, start + Duration::from_ms(ms));
    let ns = clock.elapsed().as_nanos() as f64;
    let hops = load.cells().0 - before;
    println!("{}: {hops} cells and hops, {:.1} ns each", kind.name(), ns / hops as f64);
}

// A function of its own, so that callgrind can count its instructions separately.
#[inline(never)]
fn go_on(load: &mut Load, until: Instant) {
    load.run(until);
}
