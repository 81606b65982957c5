//! Instructions of a run, counted by valgrind's callgrind: the count does not depend on other load.

use std::path::Path;
use std::process::Command;

/// Instructions of the measurement called `name`, or of one of its functions. `None` if valgrind is
/// not installed or reports nothing.
pub(crate) fn count(name: &str, function: Option<&str>) -> Option<u64> {
    let program = std::env::current_exe().ok()?;
    let toggle = function.map(|function| format!("--toggle-collect={function}"));
    of_command(toggle.as_deref(), &program, &["--brief", "--child", name])
}

/// Instructions of a whole process, or of one function in it with callgrind's option `toggle`.
pub(crate) fn of_command(toggle: Option<&str>, program: &Path, arguments: &[&str]) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(toggle)
        .arg(program)
        .args(arguments)
        .output()
        .ok()?;
    collected(&String::from_utf8_lossy(&output.stderr)).filter(|count| *count > 0)
}

/// The number after `Collected :` in callgrind's output.
fn collected(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains("Collected"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_from_what_callgrind_prints() {
        let text = "==7== \n==7== Events    : Ir\n==7== Collected : 216041342\n==7== \n";
        assert_eq!(collected(text), Some(216_041_342));
        assert_eq!(collected("valgrind: not found"), None);
    }
}
