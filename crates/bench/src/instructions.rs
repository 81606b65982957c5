//! Instructions of a run, counted by valgrind's callgrind: the count does not depend on other load.

use std::process::Command;

/// Instructions of the measurement called `name`, or of one of its functions. `None` if valgrind is
/// not installed or reports nothing.
pub(crate) fn count(name: &str, function: Option<&str>) -> Option<u64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args(function.map(|function| format!("--toggle-collect={function}")))
        .arg(program)
        .args(["--brief", "--child", name])
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
