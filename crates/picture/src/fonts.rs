//! The fonts of text: embedded ones, and those of the machine for letters that these lack.

use std::sync::Arc;

use resvg::usvg::{self, fontdb};
use ttf_parser::Face;

/// The fonts, in the order in which a letter is looked for.
const FONTS: [&[u8]; 3] = [
    include_bytes!("../fonts/Roboto-Regular.ttf"),
    include_bytes!("../fonts/Roboto-Medium.ttf"),
    include_bytes!("../fonts/DejaVuSans-symbols.ttf"),
];
/// The family that drawings have.
pub(crate) const FAMILY: &str = "Roboto";

/// The fonts for a drawing.
pub(crate) fn of(svg: &str) -> fontdb::Database {
    let mut fonts = fontdb::Database::new();
    for font in FONTS {
        fonts.load_font_data(font.to_vec());
    }
    if !svg.is_ascii() && svg.chars().any(|letter| !is_embedded(letter)) {
        fonts.load_system_fonts();
    }
    fonts
}

/// The embedded font of the wanted weight, whatever family a drawing names: browsers choose the font of their system.
pub(crate) fn select(font: &usvg::Font, fonts: &mut Arc<fontdb::Database>) -> Option<fontdb::ID> {
    let query = fontdb::Query {
        families: &[fontdb::Family::Name(FAMILY)],
        weight: fontdb::Weight(font.weight()),
        ..fontdb::Query::default()
    };
    fonts.query(&query)
}

/// True for letters that an embedded font has.
fn is_embedded(letter: char) -> bool {
    let has = |font: &[u8]| Face::parse(font, 0).is_ok_and(|face| face.glyph_index(letter).is_some());
    letter.is_ascii() || FONTS.into_iter().any(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_letters_of_a_figure_are_embedded() {
        for letter in "aZ09 ·—–△◇×≤−µäßéŁΩЖ…“„".chars() {
            assert!(is_embedded(letter), "{letter}");
        }
        assert!(!is_embedded('漢'));
    }
}
