//! Units for systemd: the parts that those of all services share.

use std::path::PathBuf;

use clap::Args;
use lastmile_text::systemd;

use crate::failure::{Failure, Result};
use crate::invocation;

/// The program of a unit.
#[derive(Args)]
pub(in crate::commands) struct Program {
    /// Path of the program in the unit [default: its current path]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

impl Program {
    /// The path, escaped for systemd.
    pub(in crate::commands) fn word(&self) -> Result<String> {
        let program = match &self.program {
            Some(program) => program.clone(),
            None => invocation::program().map_err(|error| Failure::new(format_args!("where is lastmile? {error}")))?,
        };
        systemd::program(&program)
            .map_err(|no| Failure::new(format_args!("{} cannot be started by systemd: {no}", program.display())))
            .map_err(|failure| failure.hint("--program says where it will be"))
    }
}

/// The end of every unit: what no service needs is denied, in the form of systemd.exec(5).
pub(in crate::commands) const CONFINED: &str = "NoNewPrivileges=yes
ProtectSystem=strict
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
ProtectProc=invisible
RemoveIPC=yes
KeyringMode=private
RestrictNamespaces=yes
RestrictSUIDSGID=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
SystemCallArchitectures=native
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
";
