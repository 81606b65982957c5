//! Drawings as files: SVG as it is, PDF with lines and text, PNG in pixels.
//!
//! Text has an embedded font, so that pictures are equal on machines without fonts. The fonts of the machine
//! are read for a drawing with letters that the embedded font lacks. Equal drawings give equal bytes of SVG and
//! PNG; `svg2pdf` writes the objects of a PDF in any order.
//!
//! The fonts are subsets of Roboto (Apache License 2.0) and, for symbols, of DejaVu Sans (`fonts/README.md`).

mod fonts;

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, FontResolver, Options, Tree};

/// The most pixels of a PNG: 400 MB of memory while it is drawn.
const MOST_PIXELS: u64 = 100_000_000;

/// A file format of drawings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Scalable Vector Graphics: for browsers and README files.
    Svg,
    /// Portable Document Format: for papers and slides.
    Pdf,
    /// Portable Network Graphics: for programs without vector graphics.
    Png,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Svg, Self::Pdf, Self::Png];

    /// The ending of its files.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Pdf => "pdf",
            Self::Png => "png",
        }
    }

    /// The format with this ending of a file, in letters of any case.
    #[must_use]
    pub fn of_extension(extension: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.extension().eq_ignore_ascii_case(extension))
    }
}

/// Why there is no picture.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The drawing is no SVG that can be read.
    #[error("the drawing cannot be read: {0}")]
    Drawing(String),
    /// The PDF could not be written.
    #[error("the PDF cannot be made: {0}")]
    Pdf(String),
    /// The PNG would have more pixels than fit.
    #[error("a picture of {width} by {height} pixels is larger than {MOST_PIXELS} pixels")]
    TooLarge {
        /// Pixels across.
        width: u64,
        /// Pixels down.
        height: u64,
    },
    /// The PNG could not be encoded.
    #[error("the PNG cannot be made: {0}")]
    Png(String),
}

/// The bytes of a file with this drawing. `scale` is the number of pixels of a PNG for each unit of the drawing.
///
/// # Errors
/// The drawing is no SVG, or the picture is too large.
pub fn file(svg: &str, format: Format, scale: f32) -> Result<Vec<u8>, Error> {
    match format {
        Format::Svg => Ok(svg.as_bytes().to_vec()),
        Format::Pdf => pdf(svg),
        Format::Png => png(svg, scale),
    }
}

fn pdf(svg: &str) -> Result<Vec<u8>, Error> {
    let tree = read(svg)?;
    let (conversion, page) = (svg2pdf::ConversionOptions::default(), svg2pdf::PageOptions::default());
    svg2pdf::to_pdf(&tree, conversion, page).map_err(|error| Error::Pdf(error.to_string()))
}

fn png(svg: &str, scale: f32) -> Result<Vec<u8>, Error> {
    let tree = read(svg)?;
    let size = tree.size();
    let [width, height] = [size.width(), size.height()].map(|length| pixels(length * scale));
    let too_large = Error::TooLarge { width, height };
    if width * height > MOST_PIXELS {
        return Err(too_large);
    }
    let pixmap = u32::try_from(width).ok().zip(u32::try_from(height).ok()).and_then(|(w, h)| Pixmap::new(w, h));
    let mut pixmap = pixmap.ok_or(too_large)?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixmap.as_mut());
    pixmap.encode_png().map_err(|error| Error::Png(error.to_string()))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a length in pixels is above zero")]
fn pixels(length: f32) -> u64 {
    length.ceil().clamp(1.0, 1e9) as u64
}

/// The drawing, with the glyphs of its text.
fn read(svg: &str) -> Result<Tree, Error> {
    let options = Options {
        font_family: fonts::FAMILY.into(),
        fontdb: Arc::new(fonts::of(svg)),
        font_resolver: FontResolver { select_font: Box::new(fonts::select), ..FontResolver::default() },
        ..Options::default()
    };
    Tree::from_str(svg, &options).map_err(|error: usvg::Error| Error::Drawing(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWING: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60\" height=\"20\">\
        <style>text{font:600 12px system-ui,sans-serif;fill:#1f2328}</style>\
        <rect width=\"60\" height=\"20\" fill=\"#fff\"/>\
        <text x=\"2\" y=\"15\">lastmile · ≤ △</text></svg>";

    #[test]
    fn each_format_has_its_signature() {
        let of = |format| file(DRAWING, format, 2.0).unwrap();
        assert_eq!(of(Format::Svg), DRAWING.as_bytes());
        assert!(of(Format::Pdf).starts_with(b"%PDF-"));
        assert!(of(Format::Png).starts_with(b"\x89PNG"));
        assert_eq!(Format::of_extension("PDF"), Some(Format::Pdf));
        assert_eq!(Format::of_extension("jpg"), None);
    }

    #[test]
    fn equal_drawings_give_equal_bytes() {
        for format in [Format::Svg, Format::Png] {
            assert_eq!(file(DRAWING, format, 1.5), file(DRAWING, format, 1.5), "{format:?}");
        }
    }

    /// Pixels darker than the ground, left and right of the middle.
    #[test]
    fn text_is_drawn_in_pixels() {
        let png = file(DRAWING, Format::Png, 2.0).unwrap();
        let pixmap = Pixmap::decode_png(&png).unwrap();
        assert_eq!((pixmap.width(), pixmap.height()), (120, 40));
        let dark = |from: u32, to: u32| {
            let pixels = (from..to).flat_map(|x| (0..40).map(move |y| (x, y)));
            pixels.filter(|(x, y)| pixmap.pixel(*x, *y).is_some_and(|pixel| pixel.red() < 100)).count()
        };
        assert!(dark(0, 60) > 50 && dark(60, 120) > 20, "{} and {}", dark(0, 60), dark(60, 120));
    }

    #[test]
    fn what_is_no_drawing_or_too_large_is_an_error() {
        assert!(matches!(file("<svg", Format::Pdf, 1.0), Err(Error::Drawing(_))));
        assert!(matches!(file(DRAWING, Format::Png, 1000.0), Err(Error::TooLarge { width: 60_000, height: 20_000 })));
    }
}
