//! Servers of others as processes of a namespace.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lastmile_live::netns::Namespace;

use crate::hosts::{Hosts, Running};

/// The address of the host with the server.
pub(crate) const SERVER: &str = "10.9.0.2";

/// Waits for the program's own end and returns its output.
pub(crate) fn output(mut program: Running) -> String {
    use std::io::Read;
    let mut text = String::new();
    program.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    text
}

/// The programs of this name: on the PATH, and at the paths in the environment variable, separated by colons.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub(crate) fn programs(name: &str, variable: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file());
    let found: Vec<_> = on_path.into_iter().chain(paths_in(variable)).collect();
    if found.is_empty() {
        eprintln!("skipped: {name} is not installed");
    }
    found
}

/// The paths in an environment variable, separated by colons.
pub(crate) fn paths_in(variable: &str) -> Vec<PathBuf> {
    let named = std::env::var_os(variable).unwrap_or_default();
    std::env::split_paths(&named).filter(|path| !path.as_os_str().is_empty()).collect()
}

/// Starts a program in a namespace.
pub(crate) fn start(host: &Namespace, program: &PathBuf, arguments: &str) -> Running {
    let mut command = Command::new(program);
    command.args(arguments.split_whitespace()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    Running(host.run(|| command.spawn().unwrap()).unwrap())
}

/// Waits until a socket of the namespace listens at `port`, as `ss -H -ln` lists it.
pub(crate) fn wait_for_port(host: &Namespace, port: u16) {
    let end = Instant::now() + Duration::from_secs(10);
    let filter = format!("sport = :{port}");
    loop {
        let list = host.run(|| Command::new("ss").args(["-Htuln", &filter]).output().unwrap()).unwrap();
        if !list.stdout.is_empty() {
            return;
        }
        assert!(Instant::now() < end, "nothing listens at {port}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// `tc` in the namespace between the hosts.
pub(crate) fn tc(hosts: &Hosts, arguments: &str) {
    let arguments = format!("-n {} {arguments}", hosts.middle.name());
    let done = Command::new("tc").args(arguments.split_whitespace()).status().unwrap();
    assert!(done.success(), "tc {arguments}");
}
