//! A unit for systemd that keeps a measurement server running.

use std::path::PathBuf;

use clap::Args;
use lastmile_measure::serve::Limits;
use lastmile_text::systemd;
use lastmile_units::BitRate;

use crate::commands::unit::{CONFINED, Program};
use crate::failure::{Exit, Failure, Result};
use crate::printer::Printer;

/// The least port that needs no right: `net.ipv4.ip_unprivileged_port_start`.
const FIRST_OPEN_PORT: u16 = 1024;
/// Buffers of a client with 32 streams, and the least limit of memory, in MB.
const CLIENT_MB: u32 = 16;
const LEAST_MB: u32 = 256;

#[derive(Args)]
pub(super) struct Arguments {
    /// File with the key, readable by root alone; systemd hands it to the server
    #[arg(long, value_name = "FILE", default_value = "/etc/lastmile/measure.key")]
    key_file: PathBuf,

    /// TCP and UDP port [default: 5209]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,

    /// Largest rate of a client, in each direction [default: 1 Gbit/s]
    #[arg(long, value_name = "RATE")]
    limit_rate: Option<BitRate>,

    /// Clients at a time [default: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit_clients: Option<u32>,

    #[command(flatten)]
    program: Program,
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let program = arguments.program.word()?;
    printer.data(&text(&program, arguments)?)?;
    Ok(Exit::Done)
}

/// The text of the unit, in the form of systemd.unit(5), systemd.service(5) and systemd.exec(5).
fn text(program: &str, arguments: &Arguments) -> Result<String> {
    let key = arguments.key_file.to_str().filter(|_| arguments.key_file.is_absolute());
    let key = key.ok_or_else(|| Failure::new("the file of the key needs its whole path, in UTF-8"))?;
    let options = [
        arguments.port.map(|port| ("--port", port.to_string())),
        arguments.limit_rate.map(|rate| ("--limit-rate", rate.to_string())),
        arguments.limit_clients.map(|number| ("--limit-clients", number.to_string())),
    ];
    let options = options.into_iter().flatten().map(|(name, value)| format!(" {name} {}", systemd::word(&value)));
    let options: String = options.collect();
    let key = systemd::word(&format!("key:{key}"));
    let rights = match arguments.port {
        Some(port) if port < FIRST_OPEN_PORT => "CAP_NET_BIND_SERVICE",
        _ => "",
    };
    let needs = if rights.is_empty() { "it needs no right" } else { "the port is all that it needs a right for" };
    let clients = arguments.limit_clients.unwrap_or(Limits::default().sessions);
    let (buffers, memory) = (CLIENT_MB * clients, (2 * CLIENT_MB * clients).max(LEAST_MB));
    Ok(format!(
        "# Printed by `lastmile measure unit`; for /etc/systemd/system/lastmile-measure.service
[Unit]
Description=lastmile: server of measurements
Documentation=man:systemd.service(5)
After=network-online.target
Wants=network-online.target

[Service]
Type=notify
ExecStart={program} measure --serve --key-file ${{CREDENTIALS_DIRECTORY}}/key{options}
LoadCredential={key}
Restart=on-failure
RestartSec=1
# The key is all that it reads, and {needs}.
DynamicUser=yes
CapabilityBoundingSet={rights}
AmbientCapabilities={rights}
# Buffers of at most {clients} clients with 32 streams take less than {buffers} MB.
MemoryMax={memory}M
TasksMax=64
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
UMask=0077
ProtectHome=yes
RestrictRealtime=yes
SystemCallFilter=@system-service
{CONFINED}"
    ))
}
