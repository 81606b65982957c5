//! The picture of the guide to the downstream is drawn from what was measured.

#[path = "../../examples/both-ways.rs"]
mod picture;

#[test]
fn the_picture_of_the_guide_shows_what_was_measured() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images/both-ways.svg");
    let shown = std::fs::read_to_string(path).unwrap_or_default();
    let again = "cargo run -p lastmile-results --example both-ways > docs/images/both-ways.svg";
    assert!(shown == picture::picture(), "draw it again: {again}");
}
