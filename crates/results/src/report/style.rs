//! The one plot style: colours, sizes, and the style sheet that every plot and page shares.
//!
//! Line colours are Dark2 on light ground and Set2 on dark ground, from ColorBrewer (Brewer,
//! Harrower, The Pennsylvania State University): qualitative sets that colour-blind readers can
//! distinguish. Each colour of one has its counterpart in the other. Lines also have names, so that
//! colour is never the only distinction.

/// Dark2, for light ground.
const ON_LIGHT: [&str; COLOURS] =
    ["#1b9e77", "#d95f02", "#7570b3", "#e7298a", "#66a61e", "#b8860b", "#a6761d", "#666666"];
/// Set2, for dark ground.
const ON_DARK: [&str; COLOURS] =
    ["#66c2a5", "#fc8d62", "#8da0cb", "#e78ac3", "#a6d854", "#ffd92f", "#e5c494", "#b3b3b3"];
/// Number of colours before they repeat.
pub(crate) const COLOURS: usize = 8;

/// Number of dash patterns before they repeat; the first is an unbroken line.
pub(crate) const DASHES: usize = 5;

/// Size of plot text, in user units of the drawing.
pub(crate) const FONT: f64 = 12.0;
/// Width of one character of plot text, slightly overestimated: the layout does not measure a font.
pub(crate) const CHARACTER: f64 = 7.2;

const GROUND_LIGHT: &str =
    "--paper:#ffffff;--ink:#1f2328;--muted:#59636e;--grid:#e4e7eb;--band:#f3f5f7;--rule:#d1d9e0;";
const GROUND_DARK: &str = "--paper:#14171c;--ink:#e6e9ee;--muted:#9aa4b0;--grid:#2a3038;--band:#1b2027;--rule:#3a424d;";

/// The rules of drawings, one a line; colours are custom properties.
const DRAWING: &str = include_str!("../../assets/drawing.css");
/// The custom properties of pages: light, dark, printed.
const TOKENS: &str = include_str!("../../assets/tokens.css");
/// The rules of text and tables in pages.
const TEXT: &str = include_str!("../../assets/text.css");

/// The style sheet of a self-contained drawing: without custom properties, which only browsers
/// support.
pub(crate) fn standalone() -> String {
    standalone_with("")
}

/// [`standalone`] with further rules, one a line.
pub(crate) fn standalone_with(rules: &str) -> String {
    let sheet = format!("{DRAWING}{rules}");
    // Rules with a colour occur again with the dark one. A rule takes one line.
    let coloured =
        sheet.lines().filter(|line| line.contains("var(")).map(|line| format!("{line}\n")).collect::<String>();
    let (light, dark) = (literal(&sheet, GROUND_LIGHT, &ON_LIGHT), literal(&coloured, GROUND_DARK, &ON_DARK));
    format!(":root{{color-scheme:light dark}}\n{light}@media screen and (prefers-color-scheme:dark){{\n{dark}}}\n")
}

/// A style sheet with colour values in place of their names.
fn literal(sheet: &str, ground: &str, palette: &[&str; COLOURS]) -> String {
    let named = ground.split_terminator(';').filter_map(|property| property.split_once(':'));
    let of_ground = named.map(|(name, colour)| (name.to_owned(), colour));
    let of_lines = palette.iter().enumerate().map(|(n, colour)| (format!("--c{n}"), *colour));
    of_ground
        .chain(of_lines)
        .fold(sheet.to_owned(), |sheet, (name, colour)| sheet.replace(&format!("var({name})"), colour))
}

/// The style sheet of a page.
pub(crate) fn page() -> String {
    [TOKENS, DRAWING, TEXT].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Drawings outside of pages have colours of their own, which are those of pages.
    #[test]
    fn pages_and_drawings_have_equal_colours() {
        for (ground, palette) in [(GROUND_LIGHT, &ON_LIGHT), (GROUND_DARK, &ON_DARK)] {
            assert!(ground.split_terminator(';').all(|property| TOKENS.contains(property)), "{ground}");
            let lines = palette.iter().enumerate().map(|(n, colour)| format!("--c{n}:{colour}"));
            assert!(lines.into_iter().all(|property| TOKENS.contains(&property)), "{palette:?}");
        }
    }

    /// SVG viewers other than browsers support no custom properties, and many no media queries.
    #[test]
    fn a_drawing_that_stands_alone_names_its_colours() {
        let sheet = standalone();
        assert!(!sheet.contains("var("), "{sheet}");
        let (light, dark) = sheet.split_once("@media").unwrap();
        assert!(
            light.contains(".plot .ground{fill:#ffffff}") && dark.contains(".plot .ground{fill:#14171c}"),
            "{sheet}"
        );
        assert!(
            light.contains("text.c7{fill:#666666;stroke:#ffffff}") && dark.contains("text.c7{fill:#b3b3b3;"),
            "{sheet}"
        );
        assert_eq!(sheet.matches('{').count(), sheet.matches('}').count(), "{sheet}");
    }
}
