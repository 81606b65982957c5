//! The page of a capture: what the command prints, and the pictures of the largest connections.
//!
//! One file without references to others. Drawings are complete without a script, which replaces them as in the report
//! of a run: the plots of a direction share their view.

use std::net::SocketAddr;

use lastmile_analysis::{Cause, Connection, Direction, Limit, Phase, Vantage};
use lastmile_text::escape;
use lastmile_units::Duration;
use maud::{Markup, PreEscaped, html};

use super::picture::Picture;
use super::{MOST_DRAWN, Pictures, curves, plot};
use crate::format::{bytes, closings, estimated, grouped, or_dash, percent, rate, seconds};
use crate::report::document::styled;
use crate::report::footer::Footer;
use crate::report::gallery::Gallery;
use crate::report::{finished, panel::coordinate, scale::Axis, style};

/// A capture for its page.
#[derive(Clone, Copy, Debug)]
pub struct Capture<'a> {
    /// The name of the file.
    pub name: &'a str,
    /// Packets, time, position.
    pub lines: &'a [String],
    /// Omitted or damaged parts of the capture.
    pub warnings: &'a [String],
    /// All connections.
    pub connections: &'a [Connection],
    /// Tables of other flows, as text for a terminal.
    pub tables: &'a [String],
    /// The version of the program.
    pub version: &'a str,
}

/// The most directions whose drawings are as fine as a screen; of more, a page would be large.
const FEW: usize = 4;
/// The most rows of the table of connections.
const MOST_ROWS: usize = 500;
const STYLE: &str = "\
a{color:inherit}
h1,h2,.caption{overflow-wrap:anywhere}
section.direction figure{margin:.6rem 0}
.keys b{color:var(--ink);margin-right:.8em}
.key{white-space:nowrap;margin-right:.8em}
.key b{margin-right:.2em}
.key .swatch{width:.7em;height:.7em;margin-right:.3em;vertical-align:baseline}
.connections th{white-space:normal}
.connections th,.connections td{padding:.3rem .45rem}
.connections td.limit{white-space:normal;min-width:8em}
.warning{border-left:4px solid var(--c1);padding-left:.6rem}
";

/// Segments and marks, in a drawing of its own.
const STROKE: &str = ".plot .stroke{fill:none;stroke-width:1.3}\n";

/// A direction of a connection: its number, whether it is that from the opener, the connection.
type Row<'a> = (usize, bool, &'a Connection);

/// The page of a capture and its pictures.
#[must_use]
pub fn page(capture: &Capture<'_>, pictures: &Pictures) -> String {
    let gallery = Gallery::default();
    let (drawn, others) = pictures.drawn();
    let column = if drawn.len() > FEW { 3.0 } else { 1.0 };
    let body = html! {
        header {
            h1 { (capture.name) }
            @for line in capture.lines { p.caption { (line) } }
            @for warning in capture.warnings { p.warning { (warning) } }
        }
        h2 { "Connections" }
        (table(capture.connections, &drawn))
        @if others > 0 {
            p.caption { (grouped(others as u64)) " smaller directions are not drawn: at most " (MOST_DRAWN) " are." }
        }
        @for table in capture.tables { pre.scroll tabindex="0" { (table) } }
        @for (number, up, picture) in &drawn {
            @if let Some(connection) = capture.connections.get(*number) {
                (section((*number, *up, connection), picture, column, &gallery))
            }
        }
        footer { p { "lastmile " (capture.version) } }
    };
    let rules = format!("{STYLE}{}", phase_colours());
    styled((capture.name, capture.version), &rules, &body, &gallery)
}

/// The names of the panels of a direction, in their order on the page.
pub const PANELS: [&str; 5] = ["Sequence", "Windows", "Round-trip time", "Throughput", "ACK spacing"];

/// The panels of these names of the largest direction, as a self-contained drawing for README files and slides;
/// empty without data.
#[must_use]
pub fn figure(capture: &Capture<'_>, pictures: &Pictures, panels: &[&str]) -> String {
    const GAP: f64 = 24.0;
    let (drawn, _) = pictures.drawn();
    let Some((number, up, picture)) = drawn.into_iter().max_by_key(|(.., picture)| picture.bytes()) else {
        return String::new();
    };
    let Some(connection) = capture.connections.get(number) else { return String::new() };
    let (from, to) = ends(connection, up);
    let vantage = of(connection, up).position.vantage;
    let mut plots = curves::plots(picture, matches!(vantage, Vantage::Sender | Vantage::Unknown));
    plots.retain(|plot| panels.contains(&plot.title));
    let axis = axis(picture);
    let footer = format!("{}: {from} to {to} · lastmile {}", capture.name, capture.version);
    let footer = Footer::new(&footer, plot::WIDTH);
    let mut top = GAP;
    let placed: Vec<(f64, &plot::Plot)> = plots
        .iter()
        .map(|plot| {
            let at = top;
            top += plot.height() + plot.legend_height() + GAP;
            (at, plot)
        })
        .collect();
    let (width, height) = (plot::WIDTH + 2.0 * GAP, top + footer.height() + 10.0);
    finished(html! {
        svg.plot xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (coordinate(width)) " " (coordinate(height)) }
            width=(coordinate(width)) height=(coordinate(height)) role="img" {
            title { (capture.name) }
            style { (PreEscaped(style::standalone_with(&format!("{STROKE}{}", phase_colours())))) }
            rect.ground width="100%" height="100%" {}
            @for (at, plot) in placed {
                g transform={ "translate(" (coordinate(GAP)) " " (coordinate(at + 4.0)) ")" } { (plot.within(&axis)) }
            }
            (footer.draw(GAP, top + 14.0))
        }
    })
}

/// A rule for each phase, one a line.
fn phase_colours() -> String {
    let mut colours: Vec<usize> = Phase::ALL.iter().map(|one| plot::colour_of(*one)).collect();
    colours.sort_unstable();
    colours.iter().map(|colour| format!(".plot .phase{colour}{{fill:var(--c{colour})}}\n")).collect()
}

fn axis(picture: &Picture) -> Axis {
    let (first, last) = span(picture);
    Axis::time(first as f64 / 1e6, last as f64 / 1e6, 9)
}

/// The first and the last time, in microseconds, and not the same.
fn span(picture: &Picture) -> (u64, u64) {
    let span = picture.all().first().zip(picture.all().last());
    let (first, last) = span.map_or((0, 0), |(first, last)| (first.at_us, last.at_us));
    (first, last.max(first + 1))
}

fn of(connection: &Connection, up: bool) -> &Direction {
    if up { &connection.up } else { &connection.down }
}

fn ends(connection: &Connection, up: bool) -> (String, String) {
    let addresses = if up { connection.addresses } else { connection.addresses.reversed() };
    let (source, destination) = (addresses.ip.source(), addresses.ip.destination());
    (
        SocketAddr::new(source, addresses.source_port).to_string(),
        SocketAddr::new(destination, addresses.destination_port).to_string(),
    )
}

fn time(span: Option<Duration>) -> String {
    or_dash(span, |span| seconds(span.as_secs_f64()))
}

fn count_of(direction: &Direction, cause: Cause) -> u64 {
    let repeats = &direction.repeats;
    match cause {
        Cause::Timeout => repeats.timeouts,
        Cause::Fast => repeats.fast,
        Cause::InRecovery => repeats.in_recovery,
        Cause::AfterTimeout => repeats.after_timeout,
        Cause::TailProbe => repeats.tail_probes,
        Cause::Unknown => repeats.unknown,
    }
}

/// The directions with payload, the largest first, and of too many the largest; and the number of the others.
fn rows(connections: &[Connection]) -> (Vec<Row<'_>>, usize) {
    let both = |(number, connection)| [(number, true, connection), (number, false, connection)];
    let has_payload = |(_, up, connection): &Row<'_>| size(of(connection, *up)) > 0;
    let mut rows: Vec<Row<'_>> = connections.iter().enumerate().flat_map(both).filter(has_payload).collect();
    let others = rows.len().saturating_sub(MOST_ROWS);
    rows.sort_by_key(|(_, up, connection)| std::cmp::Reverse(size(of(connection, *up))));
    rows.truncate(MOST_ROWS);
    (rows, others)
}

/// Payload that was acknowledged or captured, whichever is more.
fn size(direction: &Direction) -> u64 {
    direction.volume.bytes_acknowledged.max(direction.volume.bytes_new)
}

fn table(connections: &[Connection], drawn: &[(usize, bool, &Picture)]) -> Markup {
    let (rows, others) = rows(connections);
    let is_drawn = |number: usize, up: bool| drawn.iter().any(|(other, way, _)| (*other, *way) == (number, up));
    let occurs = |cause: &Cause| rows.iter().any(|(_, up, connection)| count_of(of(connection, *up), *cause) > 0);
    let (causes, absent): (Vec<Cause>, Vec<Cause>) = Cause::ALL.into_iter().partition(occurs);
    let columns = Columns {
        causes,
        closings: rows.iter().any(|(_, up, connection)| of(connection, *up).window.closings > 0),
        resets: rows.iter().any(|(.., connection)| connection.reset),
    };
    let words = |cause: &Cause| cause.name().replace('_', " ");
    html! {
        div.scroll { table.connections {
            thead { tr {
                th.left { "connection" } th.left { "from, to" } th { "bytes" } th { "goodput" }
                th { "RTT" } th { "p95" }
                @for cause in &columns.causes { th { (words(cause)) } }
                th { "spurious" } th { "ACKs compressed" }
                @if columns.closings { th { "window closed" } }
                @if columns.resets { th.left { "reset" } }
                th.left { "limited by" }
            } }
            tbody { @for one in &rows { (row(*one, is_drawn(one.0, one.1), &columns)) } }
        } }
        @if !absent.is_empty() && !rows.is_empty() {
            p.caption {
                "No retransmission by: " (absent.iter().map(words).collect::<Vec<_>>().join(", ")) "."
            }
        }
        @if others > 0 {
            p.caption {
                (grouped(others as u64)) " smaller directions have no row: the table has the largest " (MOST_ROWS)
                ". --csv prints all."
            }
        }
    }
}

/// The columns of what occurs in some direction.
struct Columns {
    causes: Vec<Cause>,
    closings: bool,
    resets: bool,
}

fn row((number, up, connection): Row<'_>, is_drawn: bool, columns: &Columns) -> Markup {
    let direction = of(connection, up);
    let (from, to) = ends(connection, up);
    let name = format!("{} {}", number + 1, way(up));
    let shares = direction.limits.shares;
    let explained =
        |count: u64, is_plain: bool| (direction.has_both() || is_plain && direction.has_packets()).then_some(count);
    let closed = direction.has_acks().then_some(direction.window);
    let share = |limit: Limit| percent(shares.share(limit)).replace(' ', "\u{a0}");
    let (median, p95) = direction.whole_round_trip();
    let main = Limit::ALL.into_iter().max_by_key(|limit| shares.of(*limit)).filter(|_| !shares.total().is_zero());
    html! {
        tr {
            td.name { @if is_drawn { a href={ "#" (anchor(number, up)) } { (name) } } @else { (name) } }
            td.left { (from) br; (to) }
            td { (bytes(direction.volume.bytes_of_goodput)) }
            td { (rate(direction.goodput_bps)) }
            td { (time(median)) }
            td { (or_dash(p95, |p95| estimated(p95.as_secs_f64(), direction.is_sum()))) }
            @for cause in &columns.causes {
                td { (or_dash(explained(count_of(direction, *cause), *cause == Cause::Unknown), grouped)) }
            }
            td { (or_dash(explained(direction.repeats.spurious, false), grouped)) }
            td { (or_dash((direction.acks.spaced > 0).then_some(direction.acks), |acks|
                percent(acks.compressed as f64 / acks.spaced as f64))) }
            @if columns.closings { td {
                (or_dash(closed, |window| closings(window.closings, window.closed.as_secs_f64())))
            } }
            @if columns.resets { td.left { @if connection.reset { "RST" } } }
            td.left.limit {
                (or_dash(main, |limit| format!("{} {}", limit.name().replace('_', " "), share(limit))))
            }
        }
    }
}

fn way(up: bool) -> &'static str {
    if up { "up" } else { "down" }
}

fn anchor(number: usize, up: bool) -> String {
    format!("connection-{}-{}", number + 1, way(up))
}

fn section((number, up, connection): Row<'_>, picture: &Picture, column: f64, gallery: &Gallery) -> Markup {
    let (from, to) = ends(connection, up);
    let vantage = of(connection, up).position.vantage;
    let at_sender = matches!(vantage, Vantage::Sender | Vantage::Unknown);
    let (plots, axis) = (curves::plots(picture, at_sender), axis(picture));
    html! {
        section.direction id=(anchor(number, up)) data-view {
            h2 { (number + 1) " " (way(up)) ": " (from) " to " (to) }
            @if at_sender { (phases()) } @else {
                p.caption {
                    "The capture is not next to the sender: it does not show the congestion window; round trips "
                    "and outstanding data are those between the capture and the receiver."
                }
            }
            @for plot in &plots { (gallery.sketch(plot.sketch(&axis), &plot.draw(&axis, column))) }
        }
    }
}

fn phases() -> Markup {
    html! {
        p.caption {
            "Phase of the congestion window, along the foot of Windows:"
            @for phase in Phase::ALL {
                " " span.key {
                    span.swatch style={ "background:var(--c" (plot::colour_of(phase)) ")" } {}
                    (escape::line(&phase.name().replace('_', " ")))
                }
            }
        }
    }
}
