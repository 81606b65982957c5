//! `lastmile measure HOST --detect`: what the line is, and a scenario of it.

use std::path::PathBuf;

use clap::Args;
use lastmile_measure::detect::idle::{self, Idle};
use lastmile_measure::detect::{
    self, Buffer, Detection, Discipline, Encapsulation, Limiter, Options, Side, Unit, Verdict, scenario,
};
use lastmile_measure::load::Stop;
use lastmile_measure::own::{Client, EchoPath};
use lastmile_results::{format, json};
use lastmile_text::table::{Kind as Align, Table};
use lastmile_units::ByteCount;

use crate::failure::{Failure, Result};
use crate::folders::Folders;
use crate::printer::Printer;

use super::outputs::{Outputs, file, outcome};

/// Options of a measurement that no detection reads.
const MEASURING: [&str; 13] = [
    "serve",
    "protocol",
    "phases",
    "duration",
    "streams",
    "congestion",
    "fill_buffers",
    "ping",
    "interval",
    "precision",
    "flent",
    "page",
    "plain",
];

/// Detection in place of a measurement.
#[derive(Args)]
pub(super) struct Detecting {
    /// Detect what the line is, in place of a measurement: encapsulation, rates of the wire,
    /// buffers, shapers and policers. It loads the line for up to three minutes. It takes --port,
    /// --key-file, --json and --scenario, and refuses the options of a measurement: it has no live
    /// view, so it refuses --plain, too
    #[arg(long, conflicts_with_all = MEASURING, conflicts_with_all = ["authorities", "insecure"])]
    pub(super) detect: bool,

    /// Detect cells and their overhead from echo requests alone, to any HOST that answers them:
    /// the idle line is not loaded, and no server of lastmile is needed. It takes --json, and
    /// refuses the options of a measurement and --plain
    #[arg(long, conflicts_with_all = MEASURING)]
    #[arg(conflicts_with_all = ["authorities", "insecure", "detect", "port", "key_file"])]
    pub(super) detect_idle: bool,

    /// Write the detected line as a scenario file, for run, compare and emulate
    #[arg(long, value_name = "FILE", requires = "detect")]
    scenario: Option<PathBuf>,
}

impl Detecting {
    /// Checks that the scenario can be written, before anything is detected.
    ///
    /// # Errors
    /// Errors of the file system.
    pub(super) fn prepare(&self, folders: &mut Folders) -> Result<()> {
        self.scenario.as_ref().map_or(Ok(()), |path| folders.prepare_file(path, "--scenario"))
    }
}

/// Loads the line and prints what it is, and whether all of it was examined. Echoes of the `other` session are another
/// flow.
pub(super) fn loaded(
    (client, other): (&mut Client, Option<Client>),
    stop: &Stop,
    host: &str,
    options: &Detecting,
    outputs: &Outputs,
    printer: &mut Printer,
) -> Result<bool> {
    let bounds = bounds(client);
    let mut path = client.path(other, stop)?;
    let detection = detect::detect(&mut path, &bounds, &mut |step| printer.talk(step))?;
    let scenario = scenario::scenario(&detection, &format!("The line to {host}"));
    if options.scenario.is_some() && scenario.is_none() {
        printer.talk("no scenario is written: a way of the line was not examined to the end");
    }
    let written = [
        options.scenario.as_ref().zip(scenario).map(|(path, text)| file(path, text.as_bytes())),
        outputs.json_file().map(|path| file(path, json::pretty(&detection).as_bytes())),
    ];
    let printed = match outputs.prints_json() {
        true => printer.json(&detection).map_err(Failure::from),
        false => print(&detection, printer),
    };
    outcome(written, printed, printer)?;
    Ok(detection.complete)
}

/// The limits that the server grants, in packets of 1500 bytes. IPv6 headers take 20 bytes more.
fn bounds(client: &Client) -> Options {
    let usual = Options::default();
    let granted = u32::try_from(client.granted().rate_bps / (8 * 1500)).unwrap_or(u32::MAX);
    let smallest = if client.address().is_ipv6() { ByteCount::new(80) } else { usual.smallest };
    Options { packets_per_second: usual.packets_per_second.min(granted), smallest, ..usual }
}

/// Sends echo requests and prints what they show of cells.
pub(super) fn idle(address: std::net::IpAddr, outputs: &Outputs, printer: &mut Printer) -> Result<()> {
    printer.talk("echo requests of 48 sizes, for up to three minutes");
    let idle = idle::detect(&mut EchoPath::new(address), &Options::default())?;
    let written = outputs.json_file().map(|path| file(path, json::pretty(&idle).as_bytes()));
    let printed = match outputs.prints_json() {
        true => printer.json(&idle).map_err(Failure::from),
        false => print_idle(&idle, printer),
    };
    outcome([written], printed, printer)
}

fn print(detection: &Detection, printer: &mut Printer) -> Result<()> {
    let names = [
        ("", Align::Name),
        ("encapsulation", Align::Name),
        ("sure", Align::Number),
        ("rate of\nthe wire", Align::Number),
        ("95 %\ninterval", Align::Number),
        ("buffer", Align::Number),
        ("full for", Align::Number),
        ("limited by", Align::Name),
        ("queue", Align::Name),
    ];
    let mut table = Table::new(names);
    for (name, side) in [("down", &detection.down), ("up", &detection.up)] {
        let Some(side) = side else { continue };
        let rate = side.gross_bps.unwrap_or(side.ip_bps);
        table.row([
            name.to_owned(),
            encapsulation(&side.encapsulation),
            format::or_dash(side.encapsulation.sure(), |sure| format!("{:.1} %", sure * 100.0)),
            wire_rate(side),
            format!("{:.3} to {:.3} Mbit/s", rate.low / 1e6, rate.high.min(1e12) / 1e6),
            format::or_dash(side.buffer, |buffer| capacity(&buffer)),
            format::or_dash(side.buffer, |buffer| format!("{:.0} ms", buffer.wait_s.value * 1e3)),
            limiter(side),
            format::or_dash(side.discipline.as_ref(), queue),
        ]);
    }
    printer.table(&table)?;
    let mtu = detection.mtu_bytes.map_or("not known".to_owned(), |mtu| format!("{mtu} bytes"));
    let rtt = detection.idle_rtt_s.map_or("not known".to_owned(), |rtt| format!("{:.1} ms", rtt.value * 1e3));
    let mut text = format!("\nMTU {mtu}, idle round trip {rtt}, {:.0} s\n", detection.took_s);
    for warning in &detection.warnings {
        text.push_str(&format!("warning: {warning}\n"));
    }
    for unseen in &detection.not_seen {
        text.push_str(&format!("not seen: {unseen}\n"));
    }
    Ok(printer.data(&text)?)
}

fn encapsulation(found: &Encapsulation) -> String {
    let first = found.candidates.first().map(|first| match first.presets.as_slice() {
        [] => first.counts(),
        presets => presets.join(" or "),
    });
    match (found.verdict, first) {
        (Verdict::Sure, Some(first)) => first,
        (Verdict::NotSure, Some(first)) => format!("not sure: {first}"),
        (Verdict::Shaper, Some(first)) => format!("a shaper hides it; it counts as {first}"),
        (Verdict::Policer, _) => "a policer hides it".to_owned(),
        (Verdict::Misfit, _) => "not sure: no encapsulation explains the times".to_owned(),
        (Verdict::Unloaded, _) => "not sure: faster than the senders".to_owned(),
        (_, None) => "not sure".to_owned(),
    }
}

/// The rate of a side. Without an encapsulation the bytes of IP packets alone are known.
fn wire_rate(side: &Side) -> String {
    side.gross_bps
        .map_or_else(|| format!("{} of IP", format::rate(side.ip_bps.value)), |gross| format::rate(gross.value))
}

fn capacity(buffer: &Buffer) -> String {
    match buffer.unit {
        Unit::Packets => format!("{:.0} packets", buffer.packets.value),
        Unit::Bytes | Unit::WireBytes | Unit::Unknown => format!("{:.1} kB", buffer.bytes.value / 1e3),
    }
}

fn limiter(side: &Side) -> String {
    match side.limiter {
        Limiter::Line => "line".to_owned(),
        Limiter::Unknown => "not known".to_owned(),
        Limiter::Shaper { bucket_bytes, .. } => format!("shaper, bucket {:.0} kB", bucket_bytes.value / 1e3),
        Limiter::Policer { bucket_bytes } => format!("policer, bucket {:.0} kB", bucket_bytes.value / 1e3),
    }
}

fn queue(found: &Discipline) -> String {
    let names: Vec<&str> = found.kinds.iter().map(|kind| kind.name()).collect();
    match names[..] {
        [] => "controlled by another law".to_owned(),
        ["fq-codel"] => "fq-codel or CAKE".to_owned(),
        [name] => name.to_owned(),
        _ => format!("not sure: {}", names.join(" or ")),
    }
}

fn print_idle(idle: &Idle, printer: &mut Printer) -> Result<()> {
    let name = |cells: &idle::Cells| match (cells.offset_bytes, cells.presets.as_slice()) {
        (None, _) => "no cells: Ethernet, DOCSIS, PTM or bare IP".to_owned(),
        (Some(offset), []) => format!("ATM cells, overhead {offset} modulo 48: no preset"),
        (Some(offset), presets) => format!("ATM cells, overhead {offset} modulo 48: {}", presets.join(" or ")),
    };
    let mut text = String::new();
    if idle.verdict != Verdict::Sure {
        text.push_str("Not sure. Candidates:\n");
    }
    for cells in &idle.candidates {
        text.push_str(&format!("{:.1} %  {}\n", cells.probability * 100.0, name(cells)));
    }
    let byte = idle.byte_s;
    text.push_str(&format!(
        "{:.2} us for each byte on the wire, both ways together ({:.2} to {:.2}); {} echoes, {:.0} s\n",
        byte.value * 1e6,
        byte.low * 1e6,
        byte.high * 1e6,
        idle.echoes,
        idle.took_s
    ));
    Ok(printer.data(&text)?)
}

#[cfg(test)]
mod tests {
    use lastmile_measure::report::Estimate;

    use super::*;

    /// Without an encapsulation, 3.89 Mbit/s are those of IP packets; with one, the wire has more.
    #[test]
    fn a_rate_of_ip_packets_is_not_one_of_the_wire() {
        let exactly = |value| Estimate { value, low: value, high: value };
        let side = Side {
            encapsulation: Encapsulation { verdict: Verdict::NotSure, name_probability: None, candidates: Vec::new() },
            ip_bps: exactly(3.89e6),
            gross_bps: None,
            limiter: Limiter::Unknown,
            buffer: None,
            discipline: None,
            loss_share: None,
            others_share: None,
        };
        assert_eq!(wire_rate(&side), "3.89 Mbit/s of IP");
        assert_eq!(wire_rate(&Side { gross_bps: Some(exactly(4.5e6)), ..side }), "4.5 Mbit/s");
    }
}
