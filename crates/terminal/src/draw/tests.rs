//! The screen at several sizes, character by character.

use lastmile_text::table::{Kind, Table};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::time::Instant;

use super::*;
use crate::snapshot::Panel;
use crate::snapshot::{Series, Unit};
use ratatui::style::Color;

const UNICODE: Look = Look { unicode: true, colour: false };
const ASCII: Look = Look { unicode: false, colour: false };

fn direction(title: &str, full: f64, step: f64) -> Panel {
    let series = vec![
        Series::new("rate", Unit::BitsPerSecond, Some(full * step)).out_of(full),
        Series::new("backlog", Unit::Bytes, Some(50_000.0 * step)),
        // Nothing was delayed in every third interval.
        Series::new("delay p50", Unit::Seconds, (step * 4.0 % 1.0 >= 0.3).then_some(0.02 * step)),
        Series::new("delay p99", Unit::Seconds, Some(0.1 * step)),
        Series::new("drops", Unit::PerSecond, Some(0.0)),
    ];
    Panel::new(title, series)
}

/// A view after 30 s, whose values have grown evenly to three quarters.
fn content() -> Content {
    let mut content = Content { title: "lastmile shape four-classes".to_owned(), ..Content::default() };
    let begin = Instant::now();
    let mut classes = Table::new(
        [("class", Kind::Name)]
            .into_iter()
            .chain(["rate", "backlog ms", "p50 ms", "p99 ms", "drops"].map(|name| (name, Kind::Number))),
    );
    classes.row(["acks", "120 kbit/s", "0", "0.1", "2.5", "0"]);
    classes.row(["bulk", "390 kbit/s", "1 250", "812", "1 405", "17 tail"]);
    classes.title = "classes up".to_owned();
    for step in 0..=60_u32 {
        let part = f64::from(step) / 80.0;
        let snapshot = Snapshot {
            status: "bridge lastmile0: lan0 (LAN), wan0 (line)".to_owned(),
            panels: vec![direction("up: 512 kbit/s", 512e3, part), direction("down: 8 Mbit/s", 8e6, part)],
            tables: vec![classes.clone()],
        };
        content.history.add(&snapshot, begin + Duration::from_millis(500) * step);
        content.snapshot = snapshot;
    }
    content.log = ["control: /run/lastmile/shape.sock", "policy read again", "capabilities: none", "a\x1b[2Jb"]
        .map(str::to_owned)
        .into();
    content
}

/// The lines of a terminal of this size, without blanks at their ends.
fn screen(content: &Content, columns: u16, rows: u16, look: Look) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    let area = Rect::new(0, 0, columns, rows);
    terminal
        .draw(|frame| frame.buffer_mut().clone_from(&draw(content, area, look, Duration::from_secs(3723))))
        .unwrap();
    let cells = terminal.backend().buffer().content();
    let line = |line: &[ratatui::buffer::Cell]| line.iter().map(ratatui::buffer::Cell::symbol).collect::<String>();
    cells.chunks(columns.into()).map(|cells| line(cells).trim_end().to_owned()).collect()
}

fn assert_screen(name: &str, lines: &[String]) {
    let path = format!("{}/src/draw/screens/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = lines.join("\n") + "\n";
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap_or_default(), "{path}: UPDATE_SNAPSHOTS=1 writes it");
}

#[test]
fn screens_of_usual_sizes() {
    let content = content();
    assert_screen("80x24", &screen(&content, 80, 24, UNICODE));
    assert_screen("80x24-ascii", &screen(&content, 80, 24, ASCII));
    assert_screen("120x40", &screen(&content, 120, 40, UNICODE));
    assert_screen("60x20", &screen(&content, 60, 20, UNICODE));
    assert_screen("40x12", &screen(&content, 40, 12, UNICODE));
}

/// Of the first series of each panel at least the heading and the value are there.
#[test]
fn what_matters_most_is_on_the_smallest_screen() {
    let small = screen(&content(), 30, 6, ASCII).join("\n");
    for words in ["up: 512", "rate  384 kbit/s", "down: 8", "rate 6.00 Mbit/s"] {
        assert!(small.contains(words), "{words}: {small}");
    }
}

#[test]
fn ascii_is_ascii() {
    for (columns, rows) in [(80, 24), (200, 60)] {
        let lines = screen(&content(), columns, rows, ASCII).join("\n");
        assert!(lines.is_ascii(), "{lines}");
    }
}

#[test]
fn no_size_is_too_small() {
    let content = content();
    for columns in (0..130).step_by(3).chain([1, 2]) {
        for rows in 0..45 {
            draw(&content, Rect::new(0, 0, columns, rows), UNICODE, Duration::ZERO);
            draw(&Content::default(), Rect::new(0, 0, columns, rows), ASCII, Duration::ZERO);
        }
    }
}

#[test]
fn long_messages_wrap() {
    let log = ["word ".repeat(30).trim_end().to_owned(), "last".to_owned()].into();
    let lines = screen(&Content { log, ..Content::default() }, 80, 24, ASCII);
    assert_eq!(lines[2], "word ".repeat(16).trim_end());
    assert_eq!(lines[3], format!("  {}", "word ".repeat(14).trim_end()));
    assert_eq!(lines[4], "last");
}

#[test]
fn names_cannot_move_the_cursor() {
    let lines = screen(&content(), 120, 40, UNICODE).join("\n");
    assert!(lines.contains("a\\u{1b}[2Jb"), "{lines}");
}

#[test]
fn a_value_above_zero_is_visible_and_zero_is_not() {
    let mut content = Content::default();
    for value in [0.0, 1.0, 1000.0] {
        let drops = Series::new("drops", Unit::PerSecond, Some(value));
        content.snapshot = Snapshot { panels: vec![Panel::new("up", vec![drops])], ..Snapshot::default() };
        content.history.add(&content.snapshot, Instant::now());
    }
    let lines = screen(&content, 30, 3, UNICODE);
    assert!(lines[2].ends_with(" ▁█"), "{lines:?}");
}

#[test]
fn colours_only_where_they_are_wanted() {
    let area = Rect::new(0, 0, 80, 24);
    let coloured = |colour| {
        let buffer = draw(&content(), area, Look { unicode: true, colour }, Duration::ZERO);
        buffer.content.iter().any(|cell| cell.fg != Color::Reset)
    };
    assert!(coloured(true));
    assert!(!coloured(false));
}
