//! Namespaces of killed runs, and their removal by the next run. The tests need root, network
//! namespaces and TUN devices, so they run only on request (`scripts/live-tests.sh`).

use std::io::{BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::hosts::Running;
use crate::live::{folder, kill, lastmile, namespaces, until_it_says};

const SCENARIO: &str = r#"
name = "A download"
duration = "60 s"

[access]
encapsulation = "bridged-vcmux-fcs"
down = { rate = "2 Mbit/s", delay = "4 ms" }
up = { rate = "512 kbit/s", delay = "4 ms" }

[[traffic]]
name = "download"
kind = "bulk"
direction = "down"
"#;

fn start(folder: &Path, arguments: &[&str]) -> Running {
    let mut command = lastmile(folder, arguments);
    let mut child = Running(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    if arguments[0] == "emulate" {
        until_it_says("Ctrl-C ends the line", &mut BufReader::new(child.stderr.as_mut().unwrap()));
    }
    let end = Instant::now() + Duration::from_secs(20);
    while namespaces(child.id()).len() < 2 {
        assert!(Instant::now() < end, "it makes no namespaces");
        std::thread::sleep(Duration::from_millis(20));
    }
    child
}

fn killed(mut child: Running) -> u32 {
    kill("KILL", child.id());
    child.wait().unwrap();
    child.id()
}

/// Other tests also start runs, which may remove the namespaces first, with a message.
#[test]
#[ignore = "needs root: real packets"]
fn what_killed_runs_leave_goes_at_the_next_start_and_a_living_run_keeps_its_own() {
    let Some(scratch) = folder("line.toml", SCENARIO) else { return };
    let path = &scratch.path;
    let mut living = start(path, &["emulate", "line.toml"]);
    let dead = [start(path, &["emulate", "line.toml"]), start(path, &["lab", "line.toml"])].map(killed);
    let socket = |pid: u32| Path::new("/run/lastmile").join(format!("emulate-{pid}.sock"));
    assert!(socket(living.id()).exists());

    let next = lastmile(path, &["emulate", "line.toml", "--duration", "100 ms"]).output().unwrap();
    let said = String::from_utf8_lossy(&next.stderr);
    assert!(next.status.success(), "{said}");
    for pid in dead {
        assert_eq!(namespaces(pid), [""; 0], "{said}");
        assert!(!socket(pid).exists(), "{said}");
    }
    assert!(!said.contains(&format!("lastmile-{}-", living.id())), "{said}");
    assert!(!said.contains("removes it"), "{said}");

    assert_eq!(namespaces(living.id()).len(), 2, "{said}");
    assert!(socket(living.id()).exists());
    let client = format!("lastmile-{}-client", living.id());
    let ping = Command::new("ip")
        .args(["netns", "exec", &client, "ping", "-c", "1", "-W", "5", "198.18.0.1"])
        .output()
        .unwrap();
    assert!(ping.status.success(), "{}", String::from_utf8_lossy(&ping.stdout));
    kill("INT", living.id());
    let mut rest = String::new();
    living.stderr.take().unwrap().read_to_string(&mut rest).unwrap();
    assert!(living.wait().unwrap().success(), "{rest}");
    assert_eq!(namespaces(living.id()), [""; 0]);
}
