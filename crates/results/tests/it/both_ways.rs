//! The pictures in the documents agree with their measurements.

#[path = "../../examples/both-ways.rs"]
mod picture;

#[test]
fn the_pictures_show_what_was_measured() {
    let images = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
    for (name, drawn) in picture::pictures() {
        let shown = std::fs::read_to_string(images.join(name).with_extension("svg")).unwrap_or_default();
        assert!(
            shown == drawn,
            "draw {name}.svg again: cargo run -p lastmile-results --example both-ways -- guest, or without guest"
        );
    }
}
