//! A unit for systemd that keeps a shaper running.

use std::fmt::Write as _;
use std::path::Path;

use clap::Args;

use crate::commands::policy::OnLine;
use crate::exit::{Exit, Failure, Result};
use crate::printer::Printer;

/// Which shaper it is for.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    on_line: OnLine,

    /// Interface to the LAN
    #[arg(long, value_name = "IF")]
    lan: String,

    /// Interface to the modem
    #[arg(long, value_name = "IF")]
    wan: String,
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    // A unit that could not start helps nobody.
    arguments.on_line.load_for_a_line()?;
    let program = std::env::current_exe().map_err(|error| Failure::new(format_args!("where is lastmile? {error}")))?;
    printer.data(&text(&program, arguments))?;
    Ok(Exit::Done)
}

/// As systemd.unit(5) and systemd.service(5) have it.
fn text(program: &Path, arguments: &Arguments) -> String {
    let Arguments { on_line, lan, wan } = arguments;
    let policy = std::fs::canonicalize(&on_line.policy)
        .map_or_else(|_| on_line.policy.clone(), |path| path.display().to_string());
    let mut command =
        format!("{} shape {} --lan {lan} --wan {wan} --make-bridge", quoted(program), quoted(policy.as_ref()));
    for (name, value) in on_line.given() {
        // A string takes all.
        let _ = write!(command, " --{name} \"{value}\"");
    }
    format!(
        "# Printed by `lastmile shape unit`; for /etc/systemd/system/lastmile-shape.service
[Unit]
Description=lastmile: {policy} between {lan} and {wan}
Documentation=man:systemd.service(5)
After=network-pre.target sys-subsystem-net-devices-{lan}.device sys-subsystem-net-devices-{wan}.device
Wants=sys-subsystem-net-devices-{lan}.device sys-subsystem-net-devices-{wan}.device
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStartPre=ip link set {lan} up
ExecStartPre=ip link set {wan} up
ExecStart={command}
ExecReload={program} shape reload
WatchdogSec=10
Restart=always
RestartSec=1
RuntimeDirectory=lastmile
RuntimeDirectoryPreserve=restart
ProtectHome=read-only
ProtectSystem=strict
ReadWritePaths=/run/lastmile
NoNewPrivileges=yes

[Install]
WantedBy=multi-user.target
",
        program = quoted(program),
    )
}

/// systemd splits a command at blanks.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    if text.contains(' ') { format!("\"{text}\"") } else { text }
}
