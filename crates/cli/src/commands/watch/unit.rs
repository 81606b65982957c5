//! A unit for systemd that keeps a watcher running.

use clap::Args;

use crate::commands::unit::{CONFINED, Program};
use crate::failure::{Exit, Result};
use crate::printer::Printer;

#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    program: Program,
}

pub(super) fn run(arguments: &Arguments, printer: &mut Printer) -> Result {
    let program = arguments.program.word()?;
    printer.data(&text(&program))?;
    Ok(Exit::Done)
}

/// The text of the unit, in the form of systemd.unit(5), systemd.service(5) and systemd.exec(5). `program` is already
/// escaped.
fn text(program: &str) -> String {
    format!(
        "# Printed by `lastmile watch unit`; for /etc/systemd/system/lastmile-watch.service
[Unit]
Description=lastmile: latency and queues of the line
Documentation=man:systemd.service(5)
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
Type=notify
# TARGETS=\"192.0.2.1 198.51.100.1\", hosts to ping, and further options in OPTIONS; both may be empty
EnvironmentFile=-/etc/lastmile/watch.env
ExecStart={program} watch --store /var/lib/lastmile/line.watch $OPTIONS $TARGETS
# An interval is a minute at most.
WatchdogSec=180
Restart=on-failure
RestartSec=5
StateDirectory=lastmile
# Raw sockets for pings; control sockets of shapers, which are their owners' alone.
CapabilityBoundingSet=CAP_NET_RAW CAP_DAC_OVERRIDE
MemoryMax=256M
TasksMax=16
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
UMask=0027
ProtectHome=yes
RestrictRealtime=yes
SystemCallFilter=@system-service seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self
{CONFINED}"
    )
}
