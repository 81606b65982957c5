//! The exit code of `lastmile emulate`.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use lastmile_live::emulate::Ended;

use crate::failure::Exit;

/// A server that failed has not done what the command's success stands for.
pub(super) fn exit(ended: Ended, server: Option<ExitStatus>) -> Exit {
    let server_failed = server.is_some_and(|status| !status.success());
    match ended {
        Ended::Command(status) if !status.success() => Exit::Command(code(status)),
        _ if server_failed => Exit::CouldNotRun,
        Ended::Command(status) => Exit::Command(code(status)),
        // Ctrl-C is the usual end of a line without a command.
        Ended::Asked | Ended::Signal(_) | Ended::Limit => Exit::Done,
    }
}

/// The exit code as in a shell: the status, or 128 plus the number of the signal that ended the
/// command.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(128 + status.signal()?)).unwrap_or(2);
    u8::try_from(code).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_is_that_of_the_command() {
        // wait(2): the status is in the upper byte, a signal in the lower.
        assert_eq!(code(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(code(ExitStatus::from_raw(15)), 143);
    }

    #[test]
    fn a_server_that_failed_takes_its_success_from_a_command_and_leaves_its_failure() {
        let status = |code: i32| ExitStatus::from_raw(code << 8);
        let of = |command, server: Option<i32>| u8::from(exit(Ended::Command(status(command)), server.map(status)));
        assert_eq!([of(0, None), of(0, Some(0)), of(0, Some(3))], [0, 0, 2]);
        assert_eq!([of(7, None), of(7, Some(0)), of(7, Some(3))], [7, 7, 7]);
        assert_eq!(u8::from(exit(Ended::Limit, Some(status(3)))), 2);
        assert_eq!(u8::from(exit(Ended::Limit, Some(status(0)))), 0);
    }
}
