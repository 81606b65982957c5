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

/// The style of a drawing; `:root` colours are in [`colours`].
const DRAWING: &str = "\
.plot text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu \
Sans',sans-serif;fill:var(--muted);font-variant-numeric:tabular-nums}
.plot .title{font-weight:600;font-size:13px;fill:var(--ink)}
.plot .heading{font-weight:600;font-size:16px;fill:var(--ink)}
.plot .note,.plot .phase{font-size:11px}
.plot .ground{fill:var(--paper)}
.plot .band{fill:var(--band)}
.plot .grid{stroke:var(--grid);fill:none}
.plot .edge{stroke:var(--rule);fill:none}
.plot .frame{stroke:var(--muted);fill:none}
.plot .line{fill:none;stroke-width:1.6;stroke-linejoin:round;stroke-linecap:round}
.plot .line.d1{stroke-dasharray:7 3}
.plot .line.d2{stroke-dasharray:3 3}
.plot .line.d3{stroke-dasharray:10 3 2 3}
.plot .line.d4{stroke-dasharray:1 3}
.plot .faint{stroke-width:.8;stroke-opacity:.55}
.plot .bound{fill:none;stroke-width:1.2;stroke-dasharray:2 3}
.plot .reference{stroke:var(--ink);stroke-width:1;stroke-dasharray:6 3;fill:none}
.plot .leader{fill:none;stroke-width:.8}
.plot text.label{font-weight:600;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round;paint-order:stroke}
.plot text.fixed{fill:var(--ink)}
";

/// The style sheet of drawings in a page: light, and dark by the reader's system setting.
pub(crate) fn drawing() -> String {
    format!("{}{DRAWING}{}", colours(":root"), lines())
}

/// The style sheet of a self-contained drawing: without custom properties, which only browsers
/// support.
pub(crate) fn standalone() -> String {
    standalone_with("")
}

/// [`standalone`] with further rules, one a line.
pub(crate) fn standalone_with(rules: &str) -> String {
    let sheet = format!("{DRAWING}{}{rules}", lines());
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

/// The colours as custom properties of `root`, with a dark variant.
pub(crate) fn colours(root: &str) -> String {
    let palette = |colours: &[&str; COLOURS]| {
        colours.iter().enumerate().map(|(n, colour)| format!("--c{n}:{colour};")).collect::<String>()
    };
    let (light, dark) = (palette(&ON_LIGHT), palette(&ON_DARK));
    format!(
        "{root}{{color-scheme:light dark;{GROUND_LIGHT}{light}}}\n\
         @media (prefers-color-scheme:dark){{{root}{{{GROUND_DARK}{dark}}}}}\n\
         @media print{{{root}{{color-scheme:light;{GROUND_LIGHT}{light}}}}}\n"
    )
}

/// A class for each colour: the stroke of lines, the fill of their labels.
fn lines() -> String {
    (0..COLOURS)
        .map(|n| format!(".plot .c{n}{{stroke:var(--c{n})}}.plot text.c{n}{{fill:var(--c{n});stroke:var(--paper)}}\n"))
        .collect()
}

/// The style sheet of a page: [`drawing`], and the styles of text and tables.
pub(crate) fn page() -> String {
    format!("{}{PAGE}", drawing())
}

const PAGE: &str = "\
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem clamp(.75rem,3vw,2.5rem);max-width:90rem;background:var(--paper);\
color:var(--ink);font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}
h1{font-size:1.6rem;line-height:1.25;margin:.2rem 0}
h2{font-size:1.15rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--rule);padding-bottom:.2rem}
h3{font-size:1rem;margin:1.2rem 0 .4rem}
p{margin:.4rem 0;max-width:75ch}
.caption,footer{color:var(--muted);font-size:.87rem}
.caption b{color:var(--ink);font-weight:600}
figure{margin:0;break-inside:avoid;overflow-x:auto}
figcaption{color:var(--muted);font-size:.87rem}
svg.plot{display:block;width:100%;min-width:44rem;height:auto}
.columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,28rem),1fr));gap:0 1.5rem}
.panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:1rem 1.5rem}
.panels svg.plot{min-width:0}
.swatch{display:inline-block;width:1.4em;height:.28em;margin-right:.5em;vertical-align:middle}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:.87rem;font-variant-numeric:tabular-nums;width:100%}
th,td{padding:.3rem .6rem;text-align:right;vertical-align:top;white-space:nowrap}
th{font-weight:600;color:var(--muted);border-bottom:1px solid var(--muted);vertical-align:bottom}
td{border-bottom:1px solid var(--grid)}
.left{text-align:left}
td.words{text-align:left;white-space:normal;min-width:11rem}
td.name{text-align:left;font-weight:600;position:sticky;left:0;background:var(--paper)}
summary{cursor:pointer;margin:.4rem 0}
ul.why{margin:.3rem 0;padding-left:1.2rem}
ul.why li{margin:.15rem 0}
details pre{background:var(--band);padding:.8rem;overflow-x:auto;font-size:.8rem}
.bad{font-weight:600}
@media print{svg.plot{min-width:0}body{max-width:none;padding:0;font-size:10pt}h2{break-after:avoid}\
details{display:none}.scroll{overflow:visible}td,th{padding:.15rem .35rem;font-size:8pt}}
";

#[cfg(test)]
mod tests {
    use super::*;

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
