//! The difference between two texts. The golden traces of the queueing crate use it as well.

use std::fmt::Write as _;

/// A unified diff with three lines of context.
pub(crate) fn diff(name: &str, old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let edits = edits(&old, &new);
    let mut out = format!("--- {name} (written)\n+++ {name} (what happened)\n");
    let near = |index: usize| {
        let from = index.saturating_sub(3);
        edits[from..(index + 4).min(edits.len())].iter().any(|(sign, _)| *sign != ' ')
    };
    let mut skipped = true;
    let (mut old_line, mut new_line) = (1, 1);
    for (index, (sign, line)) in edits.iter().enumerate() {
        if near(index) {
            if skipped {
                let _ = writeln!(out, "@@ -{old_line} +{new_line} @@");
            }
            let _ = writeln!(out, "{sign}{line}");
        }
        skipped = !near(index);
        old_line += usize::from(*sign != '+');
        new_line += usize::from(*sign != '-');
    }
    out
}

/// The lines of both texts in order, each kept (' '), removed ('-') or added ('+'), by the longest common
/// subsequence.
fn edits<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(char, &'a str)> {
    let mut common = vec![vec![0_usize; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] =
                if old[i] == new[j] { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut edits) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            edits.push((' ', old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            edits.push(('-', old[i]));
            i += 1;
        } else {
            edits.push(('+', new[j]));
            j += 1;
        }
    }
    edits
}

#[test]
fn a_difference_shows_the_lines_around_it() {
    let old = "a\nb\nc\nd\ne\nf\n";
    let new = "a\nb\nc\nd\nX\nf\n";
    assert_eq!(diff("t", old, new), "--- t (written)\n+++ t (what happened)\n@@ -2 +2 @@\n b\n c\n d\n-e\n+X\n f\n");
}
