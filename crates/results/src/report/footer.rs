//! The footer of a drawing: the inputs that reproduce it, in as many lines as it needs.

use maud::{Markup, html};

use super::panel::coordinate;
use super::style::{CHARACTER, FONT};
use crate::format::to_f64;

/// Size of its text.
const SIZE: f64 = 11.0;
/// Between baselines.
const LINE: f64 = 14.0;
/// Between parts, where a line may end.
const BETWEEN: &str = " · ";

/// A footer.
pub(crate) struct Footer(Vec<String>);

impl Footer {
    /// The parts of `text` in lines of at most `width`.
    pub(crate) fn new(text: &str, width: f64) -> Self {
        let most = most(width);
        let mut lines: Vec<String> = Vec::new();
        for part in text.split(BETWEEN) {
            let length = |line: &str| line.chars().count();
            match lines.last_mut() {
                Some(line) if length(line) + length(BETWEEN) + length(part) <= most => {
                    line.push_str(BETWEEN);
                    line.push_str(part);
                }
                _ => lines.extend(pieces(part, most)),
            }
        }
        Self(lines)
    }

    /// From the first baseline to the place of one more.
    pub(crate) fn height(&self) -> f64 {
        LINE * to_f64(self.0.len() as u64)
    }

    /// The lines, the first with its baseline at `y`.
    pub(crate) fn draw(&self, x: f64, y: f64) -> Markup {
        html! {
            @for (number, line) in self.0.iter().enumerate() {
                text.note x=(coordinate(x)) y=(coordinate(y + LINE * to_f64(number as u64))) { (line) }
            }
        }
    }
}

/// The characters of a line.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some hundreds")]
fn most(width: f64) -> usize {
    (width / (CHARACTER * SIZE / FONT)).max(1.0) as usize
}

/// A part in pieces of at most `most` characters, each as long as it may be.
fn pieces(part: &str, most: usize) -> Vec<String> {
    let characters: Vec<char> = part.chars().collect();
    characters.chunks(most).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 132 units hold 20 characters of 6.6.
    #[test]
    fn lines_end_between_parts_and_only_a_long_part_is_cut() {
        let text = "file.toml · seed 1 · 20 s · access.up.queue.limit=1000 packets · lastmile 0.1.0";
        let Footer(lines) = Footer::new(text, 132.5);
        assert_eq!(lines, ["file.toml · seed 1", "20 s", "access.up.queue.limi", "t=1000 packets", "lastmile 0.1.0"]);
        let Footer(lines) = Footer::new(text, 1000.0);
        assert_eq!(lines, [text]);
    }
}
