//! The rights that a line needs.

use super::*;

/// `arguments` quoted for a shell.
fn quoted(arguments: &[&str]) -> String {
    arguments.iter().map(|argument| format!("'{}'", argument.replace('\'', "'\\''"))).collect::<Vec<_>>().join(" ")
}

/// Runs the program, or another one, as the user nobody, in a folder that all users may enter.
pub(super) fn as_nobody(scratch: &Scratch, with_tun: bool, arguments: &[&str]) -> std::process::Output {
    let tun = "mount -t tmpfs -o mode=755 lastmile /dev/net && mknod -m 666 /dev/net/tun c 10 200";
    let closed = "mount -t tmpfs -o mode=755 lastmile /dev/net && mknod -m 600 /dev/net/tun c 10 200";
    let nobody = "exec setpriv --reuid 65534 --regid 65534 --clear-groups --";
    let script = format!("{} && {nobody} {}", if with_tun { tun } else { closed }, quoted(arguments));
    // A separate mount namespace hides the second device from other processes.
    Command::new("unshare").args(["--mount", "sh", "-c", &script]).current_dir(&scratch.path).output().unwrap()
}

/// A folder with the program and these tests in it, for all users; `None`, with a message, without
/// user namespaces.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub(super) fn folder_for_all() -> Option<Scratch> {
    let scratch = folder()?;
    if !as_nobody(&scratch, true, &["unshare", "--user", "--map-current-user", "--net", "true"]).status.success() {
        eprintln!("skipped: this kernel gives ordinary users no user namespaces");
        return None;
    }
    // Their folders may be accessible to root only.
    std::fs::copy(env!("CARGO_BIN_EXE_lastmile"), scratch.path.join("lastmile")).unwrap();
    std::fs::copy(std::env::current_exe().unwrap(), scratch.path.join("tests")).unwrap();
    Some(scratch)
}

#[test]
#[ignore = "needs root, to give it up"]
fn an_ordinary_user_has_the_line_and_stays_who_they_are() {
    let Some(scratch) = folder_for_all() else { return };
    let script = "id -u; grep CapEff /proc/self/status; ping -n -q -c 3 -i 0.2 198.18.0.1";
    let output = as_nobody(&scratch, true, &["./lastmile", "emulate", "line.toml", "--json", "--", "sh", "-c", script]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.starts_with("65534\nCapEff:\t0000000000000000\n"), "{text}");
    assert!(text.contains("3 received, 0% packet loss"), "{text}");
    assert_eq!(json(&output.stderr)["conservation"]["packets"]["sent"], 6);

    let mapped =
        ["./lastmile", "emulate", "line.toml", "--map-root", "--", "sh", "-c", "id -u; ip link set lo mtu 1400"];
    let output = as_nobody(&scratch, true, &mapped);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "needs root, to give it up"]
fn without_rights_it_says_what_would_give_them() {
    let Some(scratch) = folder_for_all() else { return };
    let output = as_nobody(&scratch, false, &["./lastmile", "emulate", "line.toml", "--", "true"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("error: cannot open /dev/net/tun: Permission denied"), "{said}");
    assert!(said.contains("\nhint: `chmod 666 /dev/net/tun`"), "{said}");

    // In a user namespace without further user namespaces, and in a process without capabilities.
    let script = "echo 0 > /proc/sys/user/max_user_namespaces; \
                  exec setpriv --bounding-set=-all ./lastmile emulate line.toml -- true";
    let output = as_nobody(&scratch, true, &["unshare", "--user", "--map-root-user", "sh", "-c", script]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("error: without root a line needs a user namespace, and the kernel gives none"), "{said}");
    assert!(said.contains("\nhint: `sysctl -w user.max_user_namespaces=10000`"), "{said}");

    let existing = ["./lastmile", "emulate", "line.toml", "--server-here", "--", "true"];
    let said = as_nobody(&scratch, true, &existing).stderr;
    let said = String::from_utf8_lossy(&said);
    assert!(said.starts_with("error: ") && said.contains("needs root"), "{said}");
}

/// A TUN device needs CAP_NET_ADMIN, the packet socket next to it CAP_NET_RAW.
#[test]
#[ignore = "needs root: real packets"]
fn where_nothing_tells_when_packets_came_it_says_so_and_counts_them() {
    let Some(scratch) = folder() else { return };
    let run = |limits: &[&str]| {
        // A datagram to a closed port returns an error.
        let datagrams = "for i in 1 2 3; do echo $i > /dev/udp/198.18.0.1/9; sleep 0.2; done";
        let emulate = ["emulate", "line.toml", "--json", "--", "bash", "-c", datagrams];
        let mut command = Command::new("setpriv");
        command.args(limits).arg(env!("CARGO_BIN_EXE_lastmile")).args(emulate).current_dir(&scratch.path);
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        let (warnings, document) = said.split_once('{').unwrap();
        let live = json(format!("{{{document}").as_bytes())["live"].clone();
        (
            warnings.to_owned(),
            ["up", "down"].map(|way| [&live[way]["received"], &live[way]["unstamped"]].map(|n| n.as_u64().unwrap())),
        )
    };
    let (warnings, counts) = run(&["--bounding-set=-net_raw"]);
    assert_eq!(warnings.matches("warning: no packet socket for device lastmile").count(), 2, "{warnings}");
    assert!(warnings.contains("it takes CAP_NET_RAW): packets count as arrived when they are read"), "{warnings}");
    for [received, unstamped] in counts {
        assert!(received >= 3 && unstamped == received, "{counts:?}");
    }
    let (warnings, counts) = run(&[]);
    assert_eq!((warnings.as_str(), counts.map(|[_, unstamped]| unstamped)), ("", [0, 0]));
}
