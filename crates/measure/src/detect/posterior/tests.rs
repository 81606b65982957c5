use super::super::hypothesis::classes;
use super::*;

/// Replicates of a law with noise of `error`, alternating in sign.
fn segments(law: impl Fn(u16) -> f64, sizes: &[u16], error: f64) -> Vec<Segment> {
    let one = |&size: &u16| {
        [1.0, -1.0, 0.5, -0.5].map(|sign| Segment {
            pattern: (size, 0),
            mix: vec![(size, 1.0)],
            seconds: law(size) * 1e-6 * (1.0 + sign * error),
            scale: 1.0,
        })
    };
    sizes.iter().flat_map(one).collect()
}

const SIZES: [u16; 9] = [64, 88, 89, 132, 280, 400, 700, 1100, 1500];

fn best(law: impl Fn(u16) -> f64, error: f64) -> (Vec<&'static str>, i32, Posterior) {
    let classes = classes(48, 1500);
    let posterior = posterior(&classes, &segments(law, &SIZES, error));
    let class = &classes[posterior.best()];
    (class.presets.clone(), class.law().link.overhead(), posterior)
}

/// 26 bytes and no cells are no preset's: the data outweigh the prior for presets.
#[test]
fn an_overhead_of_no_preset_is_found() {
    let (presets, overhead, posterior) = best(|size| f64::from(size) + 26.0, 1e-4);
    assert_eq!((presets.len(), overhead), (0, 26));
    assert!(posterior.beliefs[posterior.best()].probability > 0.999);
}

/// A law that no hypothesis has (a fixed time for each packet, as on a radio): nothing is named.
#[test]
fn a_foreign_law_is_a_misfit() {
    let (_, _, posterior) = best(|size| 2_000.0 + f64::from(size).sqrt(), 1e-4);
    assert!(posterior.misfit(), "{}", posterior.birge);
}

/// With noise of 3 % on those times, 24 and 28 bytes are not distinguished.
#[test]
fn noise_leaves_it_open() {
    let law = |size: u16| f64::from(size) + 22.0;
    let (_, _, precise) = best(law, 1e-4);
    let (_, _, noisy) = best(law, 3e-2);
    let top = |posterior: &Posterior| posterior.beliefs[posterior.best()].probability;
    assert!(top(&precise) > 0.99 && top(&noisy) < 0.9, "{} {}", top(&precise), top(&noisy));
}

/// One pattern of nine hit by cross traffic, 20 % too slow, does not change the name.
#[test]
fn one_bad_pattern_changes_nothing() {
    let cells = |size: u16| f64::from((u32::from(size) + 10).div_ceil(48) * 53);
    let (presets, ..) = best(|size| cells(size) * if size == 400 { 1.2 } else { 1.0 }, 1e-3);
    assert_eq!(presets, ["pppoa-vcmux"]);
}

/// Eight and ten bytes of overhead differ where the two bytes need another cell: at 87 and 88 of 48
/// bytes each, less the overhead.
#[test]
fn the_next_size_is_one_that_decides() {
    let classes = classes(48, 1500);
    let mut state = posterior(&classes, &segments(f64::from, &[1500], 1e-3));
    for (belief, class) in state.beliefs.iter_mut().zip(&classes) {
        let rival = class.presets.contains(&"ipoa-vcmux") || class.presets.contains(&"pppoa-vcmux");
        belief.probability = if rival { 0.5 } else { 0.0 };
    }
    let sizes: Vec<u16> = (64..1500).collect();
    assert_eq!(next_sizes(&classes, &state, &sizes, 1e-3, 1), [87]);
}
