//! The cost of a packet does not grow with the number of flows where it should be constant. The
//! tests count instructions, which do not depend on other load. Without valgrind they print a
//! message and pass.

use std::process::Command;

use serde_json::Value;

/// Instructions per packet; `None` if the machine cannot count them.
fn instructions(discipline: &str, load: &str, flows: &str) -> Option<f64> {
    let name = format!("queue: {discipline}, {load}, at {flows}");
    let program = env!("CARGO_BIN_EXE_lastmile-bench");
    let output =
        Command::new(program).args(["--json", "--repeat", "1", "--only", &name]).output().expect("the benchmark");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(rows.as_array().expect("rows").len(), 1, "one measurement is called {name}");
    rows[0]["queue"]["instructions_per_packet"].as_f64()
}

/// Design: the Smart ACK Dropper finds a flow's waiting ACK in constant time, for any backlog.
#[test]
fn sad_costs_the_same_at_10000_flows_as_at_1() {
    for discipline in ["sad keep", "sad count", "sad list", "sad signal"] {
        let Some(one) = instructions(discipline, "acks", "1 flow") else {
            #[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
            {
                eprintln!("skipped: valgrind, which counts instructions, is not installed");
            }
            return;
        };
        let many = instructions(discipline, "acks", "10000 flows").expect("counted once, counted again");
        assert!(many < 1.5 * one, "{discipline}: {one} instructions a packet at 1 flow, {many} at 10000");
    }
}
