//! The page of a capture: what the command prints, and the pictures of the largest connections.
//!
//! One file without references to others. Drawings are complete without a script; with it, a span can
//! be magnified in all plots of a direction, and values are shown under the pointer.

use std::net::SocketAddr;

use lastmile_analysis::{Cause, Connection, Direction, Limit, Phase, Vantage};
use lastmile_text::shown;
use lastmile_units::Duration;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;

use super::picture::Picture;
use super::{MOST_DRAWN, Pictures, curves, plot};
use crate::format::{bytes, grouped, or_dash, percent, rate, seconds};
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

const SCRIPT: &str = include_str!("zoom.js");
const STROKE: &str = ".plot .stroke{fill:none;stroke-width:1.3}\n";
const STYLE: &str = "\
a{color:inherit}
h1,h2,.caption{overflow-wrap:anywhere}
.plot .cursor{stroke:var(--ink);stroke-width:1;fill:none}
.plot .chosen{fill:var(--ink);fill-opacity:.12}
figure{margin:.6rem 0}
figcaption b{color:var(--ink)}
figcaption b{margin-right:.8em}
.key{white-space:nowrap;margin-right:.8em}
.key b{margin-right:.2em}
.connections th{white-space:normal}
.connections th,.connections td{padding:.3rem .45rem}
.connections td.limit{white-space:normal;min-width:8em}
.values{font-variant-numeric:tabular-nums;min-height:3em;font-size:.87rem;max-width:none}
.buttons button{font:inherit;font-size:.87rem;padding:.15rem .6rem;margin-right:.4rem;color:var(--ink);\
background:var(--band);border:1px solid var(--rule);border-radius:4px}
.warning{border-left:4px solid var(--c1);padding-left:.6rem}
";

/// The page of a capture and its pictures.
#[must_use]
pub fn page(capture: &Capture<'_>, pictures: &Pictures) -> String {
    let (drawn, others) = pictures.drawn();
    finished(html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content={ "lastmile " (capture.version) };
                title { (capture.name) }
                style {
                    (PreEscaped(style::page())) (PreEscaped(STYLE))
                    (PreEscaped(STROKE)) (PreEscaped(phase_colours()))
                }
            }
            body.page {
                header {
                    h1 { (capture.name) }
                    @for line in capture.lines { p.caption { (line) } }
                    @for warning in capture.warnings { p.warning { (warning) } }
                }
                h2 { "Connections" }
                (table(capture.connections, &drawn, others))
                @for table in capture.tables { pre.scroll { (table) } }
                @for (number, up, picture) in &drawn {
                    @if let Some(connection) = capture.connections.get(*number) {
                        (section(*number, *up, connection, picture))
                    }
                }
                footer { p { "lastmile " (capture.version) } }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    })
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
    let height = plots.iter().map(|plot| plot.height() + GAP).sum::<f64>() + 2.0 * GAP;
    let width = plot::WIDTH + 2.0 * GAP;
    let mut top = GAP;
    let placed: Vec<(f64, &plot::Plot)> = plots
        .iter()
        .map(|plot| {
            let at = top;
            top += plot.height() + GAP;
            (at, plot)
        })
        .collect();
    finished(html! {
        svg.plot xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (coordinate(width)) " " (coordinate(height)) }
            width=(coordinate(width)) height=(coordinate(height)) role="img" {
            title { (capture.name) }
            style { (PreEscaped(style::standalone_with(&format!("{STROKE}{}", phase_colours())))) }
            rect.ground width="100%" height="100%" {}
            @for (at, plot) in placed {
                g transform={ "translate(" (coordinate(GAP)) " " (coordinate(at + 4.0)) ")" } { (plot.within(&axis)) }
            }
            text.note x=(coordinate(GAP)) y=(coordinate(height - 10.0)) {
                (capture.name) ": " (from) " to " (to) " · lastmile " (capture.version)
            }
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

fn table(connections: &[Connection], drawn: &[(usize, bool, &Picture)], others: usize) -> Markup {
    let rows: Vec<(usize, bool, &Connection)> =
        drawn.iter().filter_map(|(number, up, _)| Some((*number, *up, connections.get(*number)?))).collect();
    let occurs = |cause: &Cause| rows.iter().any(|(_, up, connection)| count_of(of(connection, *up), *cause) > 0);
    let (causes, absent): (Vec<Cause>, Vec<Cause>) = Cause::ALL.into_iter().partition(occurs);
    let words = |cause: &Cause| cause.name().replace('_', " ");
    html! {
        div.scroll { table.connections {
            thead { tr {
                th.left { "connection" } th.left { "from, to" } th { "bytes" } th { "goodput" }
                th { "RTT" } th { "p95" }
                @for cause in &causes { th { (words(cause)) } }
                th { "spurious" } th { "ACKs compressed" } th.left { "limited by" }
            } }
            tbody { @for (number, up, connection) in &rows { (row(*number, *up, connection, &causes)) } }
        } }
        @if !absent.is_empty() && !rows.is_empty() {
            p.caption {
                "Causes without a retransmission: " (absent.iter().map(words).collect::<Vec<_>>().join(", ")) "."
            }
        }
        @if others > 0 {
            p.caption { (grouped(others as u64)) " smaller directions are not drawn: at most " (MOST_DRAWN) " are" }
        }
    }
}

fn row(number: usize, up: bool, connection: &Connection, causes: &[Cause]) -> Markup {
    let direction = of(connection, up);
    let (from, to) = ends(connection, up);
    let volume = direction.volume;
    let shares = direction.limits.shares;
    let main = Limit::ALL.into_iter().max_by_key(|limit| shares.of(*limit)).filter(|_| !shares.total().is_zero());
    html! {
        tr {
            td.name { a href={ "#" (anchor(number, up)) } { (number + 1) " " (if up { "up" } else { "down" }) } }
            td.left { (from) br; (to) }
            td { (bytes(volume.bytes_acknowledged.max(volume.bytes_new))) }
            td { (rate(direction.goodput_bps)) }
            td { (time(direction.delays.round_trips.median)) }
            td { (time(direction.delays.round_trips.p95)) }
            @for cause in causes { td { (grouped(count_of(direction, *cause))) } }
            td { (grouped(direction.repeats.spurious)) }
            td { (or_dash((direction.acks.spaced > 0).then_some(direction.acks), |acks|
                percent(acks.compressed as f64 / acks.spaced as f64))) }
            td.left.limit {
                (or_dash(main, |limit| format!("{} {}", limit.name().replace('_', " "), percent(shares.share(limit)))))
            }
        }
    }
}

fn anchor(number: usize, up: bool) -> String {
    format!("connection-{}-{}", number + 1, if up { "up" } else { "down" })
}

fn section(number: usize, up: bool, connection: &Connection, picture: &Picture) -> Markup {
    let (from, to) = ends(connection, up);
    let vantage = of(connection, up).position.vantage;
    let at_sender = matches!(vantage, Vantage::Sender | Vantage::Unknown);
    let plots = curves::plots(picture, at_sender);
    let ((first, last), axis) = (span(picture), axis(picture));
    let data = Data {
        from: first,
        left: plot::LEFT,
        plots: plots.iter().map(plot::Plot::data).collect(),
        right: plot::RIGHT,
        to: last,
        top: plot::TOP,
        width: plot::WIDTH,
    };
    let data = serde_json::to_string(&data).expect("numbers and words are JSON");
    html! {
        section.direction id=(anchor(number, up)) {
            h2 { (number + 1) " " (if up { "up" } else { "down" }) ": " (from) " to " (to) }
            @if at_sender { (phases()) } @else {
                p.caption {
                    "The capture is not next to the sender: it does not show the congestion window, and the data "
                    "outstanding are those between the capture and the receiver."
                }
            }
            @for plot in &plots { (plot.draw(&axis)) }
            // A name from a file cannot end the element: JSON of numbers and the program's own words.
            script type="application/json" { (PreEscaped(data)) }
        }
    }
}

/// The data of a section for the script.
#[derive(Serialize)]
struct Data<'a> {
    from: u64,
    left: f64,
    plots: Vec<plot::PlotData<'a>>,
    right: f64,
    to: u64,
    top: f64,
    width: f64,
}

fn phases() -> Markup {
    html! {
        p.caption {
            "Phase of the congestion window, along the foot of Windows:"
            @for phase in Phase::ALL {
                " " span.key { b style={ "color:var(--c" (plot::colour_of(phase)) ")" } { "■" } " "
                    (shown::line(&phase.name().replace('_', " "))) }
            }
        }
    }
}
