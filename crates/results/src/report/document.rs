//! The frame of every page: one file that works from disk, without a server.
//!
//! The page shows static drawings. Its script, which `web/` builds, replaces them by plots with values under the
//! pointer. A policy in the page permits this script alone, and no request.

use std::io::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::gallery::{Data, Gallery};
use super::{finished, style};
use crate::json;

/// The script of a page, and its digest for the page's policy.
const SCRIPT: &str = include_str!("../../assets/report.js");
const DIGEST: &str = include_str!("../../assets/report.js.sha256");

/// A page of HTML.
pub(super) fn document(title: &str, version: &str, body: &Markup, gallery: &Gallery) -> String {
    styled((title, version), "", body, gallery)
}

/// A page of HTML with further rules of style.
pub(crate) fn styled((title, version): (&str, &str), rules: &str, body: &Markup, gallery: &Gallery) -> String {
    let data = gallery.data();
    let policy = format!(
        "default-src 'none'; script-src '{}'; style-src 'unsafe-inline'; img-src data: blob:",
        DIGEST.trim_end()
    );
    finished(html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content={ "lastmile " (version) };
                title { (title) }
                style { (PreEscaped(style::page())) (PreEscaped(rules)) }
            }
            body.page {
                (body)
                @if !data.is_empty() {
                    script type="application/json" id="figures" { (PreEscaped(in_script(&data))) }
                    script type="text/plain" id="columns" { (PreEscaped(packed(data.columns()))) }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    })
}

/// `data` as JSON in ASCII, without the characters that end a script.
fn in_script(data: &Data) -> String {
    let text = json::line(data);
    let mut ascii = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() && !matches!(c, '<' | '>' | '&' | '\u{7f}') {
            ascii.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                ascii.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    ascii
}

/// Bytes compressed with DEFLATE (RFC 1951), in Base64 (RFC 4648). The least effort takes a quarter of the instructions
/// of the usual one, for a sixth more bytes.
fn packed(bytes: &[u8]) -> String {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory takes every byte");
    STANDARD.encode(encoder.finish().expect("memory takes every byte"))
}
