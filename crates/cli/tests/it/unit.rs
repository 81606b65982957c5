//! The output of `lastmile shape unit` and `lastmile measure unit`, checked by systemd where it is installed, and the
//! scripts of the Debian package that handle these units.

use std::process::Command;

use crate::transcript::Scratch;

/// Writes the unit that `lastmile COMMAND unit ARGUMENTS` prints to a file of this name, and returns
/// the messages of systemd-analyze(1) about it; `None`, with a message, without that program.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn verified(scratch: &Scratch, name: &str, command: &str, arguments: &[&str]) -> Option<(String, String)> {
    let printed = Command::new(env!("CARGO_BIN_EXE_lastmile"))
        .args([command, "unit"])
        .args(arguments)
        .current_dir(&scratch.path)
        .output()
        .unwrap();
    let unit = String::from_utf8(printed.stdout).unwrap();
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    std::fs::write(scratch.path.join(name), &unit).unwrap();
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no"]).arg(scratch.path.join(name));
    let Ok(verified) = verify.output() else {
        eprintln!("skipped: no systemd-analyze");
        return None;
    };
    let said = String::from_utf8_lossy(&[verified.stdout, verified.stderr].concat()).into_owned();
    // It also reports on the machine's other units.
    let ours = said.lines().filter(|line| line.contains("lastmile")).collect::<Vec<_>>().join("\n");
    Some((unit, ours))
}

#[test]
fn systemd_finds_no_fault_with_the_units() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path.join("a policy.toml"), include_str!("../../../../policies/adsl-optimizer.toml"))
        .unwrap();
    let own = ["a policy.toml", "--lan", "br-lan", "--wan", "eth0.7", "--metrics", "[::1]:9100", "--realtime"];
    let ready =
        ["fifo", "--lan", "a", "--wan", "b", "--up", "512 kbit/s", "--down", "2 Mbit/s", "--link", "pppoa-vcmux"];
    for (name, arguments) in [
        ("lastmile-shape.service", &own[..]),
        ("lastmile-other.service", &ready[..]),
        ("lastmile-shape@.service", &[][..]),
    ] {
        let Some((unit, faults)) = verified(&scratch, name, "shape", arguments) else { return };
        assert_eq!(faults, "", "{unit}");
        assert_eq!(unit.contains(" --metrics \"[::1]:9100\" --realtime\n"), arguments == own, "{unit}");
    }
    // It detects errors.
    let (unit, _) = verified(&scratch, "lastmile-shape.service", "shape", &own).unwrap();
    let wrong = scratch.path.join("lastmile-wrong.service");
    std::fs::write(&wrong, unit.replace("Type=notify", "Type=notifie")).unwrap();
    let verified = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(wrong).output().unwrap();
    assert!(String::from_utf8_lossy(&verified.stderr).contains("notifie"));
}

/// The scripts of the Debian package, with a systemctl(1) that writes down what it is told.
#[test]
fn the_package_restarts_services_on_an_upgrade_and_ends_them_on_removal() {
    let scratch = Scratch::new();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/dist/debian");
    std::fs::create_dir_all(scratch.path.join("run/systemd/system")).unwrap();
    std::fs::write(scratch.path.join("systemctl"), "#!/bin/sh\nshift\necho \"$*\" >>\"$DPKG_ROOT/told\"\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(scratch.path.join("systemctl"), mode).unwrap();
    let told = |script: &str, arguments: &[&str]| {
        let mut run = Command::new("/bin/sh");
        run.arg(format!("{root}/{script}")).args(arguments).env("DPKG_ROOT", &scratch.path);
        let output = run.env("PATH", format!("{}:/usr/bin:/bin", scratch.path.display())).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let told = std::fs::read_to_string(scratch.path.join("told")).unwrap_or_default();
        let _ = std::fs::remove_file(scratch.path.join("told"));
        (told, String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(told("postinst", &["configure", ""]).0, "daemon-reload\n");
    let (upgraded, said) = told("postinst", &["configure", "0.0.9"]);
    let restarted = "try-restart lastmile-watch.service lastmile-measure.service\n";
    assert_eq!(upgraded, format!("daemon-reload\n{restarted}--quiet is-active lastmile-shape@*.service\n"));
    assert!(said.ends_with("systemctl try-restart 'lastmile-shape@*.service'\n"), "{said}");
    assert_eq!(told("prerm", &["upgrade", "0.2.0"]).0, "");
    let ended = "lastmile-watch.service lastmile-measure.service";
    let expected = format!("stop lastmile-shape@*.service {ended}\ndisable lastmile-shape@.service {ended}\n");
    assert_eq!(told("prerm", &["remove"]).0, expected);
    assert_eq!(told("postrm", &["remove"]).0, "daemon-reload\n");
}

#[test]
fn systemd_finds_no_fault_with_the_unit_of_a_measurement_server() {
    let scratch = Scratch::new();
    let arguments = ["--key-file", "/etc/last mile/key", "--port", "5300", "--limit-rate", "100 Mbit/s"];
    for (name, arguments) in [("lastmile-measure.service", &[][..]), ("lastmile-measured.service", &arguments[..])] {
        let Some((unit, faults)) = verified(&scratch, name, "measure", arguments) else { return };
        assert_eq!(faults, "", "{unit}");
        let options = if arguments.is_empty() { "/key\n" } else { "/key --port 5300 --limit-rate \"100 Mbit/s\"\n" };
        assert!(unit.contains(options), "{unit}");
    }
}

#[test]
fn the_unit_of_a_measurement_server_has_what_its_port_and_its_clients_need() {
    let unit = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
        String::from_utf8(command.args(["measure", "unit"]).args(more).output().unwrap().stdout).unwrap()
    };
    let usual = unit(&[]);
    assert_eq!((lines(&usual, "CapabilityBoundingSet"), lines(&usual, "MemoryMax")), (vec![""], vec!["256M"]));
    assert!(usual.contains("at most 4 clients with 32 streams take less than 64 MB"), "{usual}");
    // ip(7): a port below 1024 needs a right.
    let public = unit(&["--port", "443", "--limit-clients", "200"]);
    for key in ["CapabilityBoundingSet", "AmbientCapabilities"] {
        assert_eq!(lines(&public, key), ["CAP_NET_BIND_SERVICE"]);
    }
    assert_eq!(lines(&public, "MemoryMax"), ["6400M"]);
    assert!(public.contains("at most 200 clients with 32 streams take less than 3200 MB"), "{public}");
    assert_eq!(unit(&["--limit-clients", "1001"]), "", "the server takes at most 1000");
}

#[test]
fn a_policy_that_is_not_there_yet_is_no_error_and_a_wrong_one_is() {
    let scratch = Scratch::new();
    let unit = |policy: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
        command.args(["shape", "unit", policy, "--lan", "a", "--wan", "b"]).current_dir(&scratch.path);
        command.output().unwrap()
    };
    let absent = unit("later.toml");
    assert!(absent.status.success());
    let text = String::from_utf8(absent.stdout).unwrap();
    assert!(text.contains(&format!("shape {}/later.toml --lan a", scratch.path.display())), "{text}");
    assert!(String::from_utf8_lossy(&absent.stderr).starts_with("later.toml does not exist yet"));
    assert!(unit("later").status.success(), "no name of a built-in policy is close to it");
    let typo = unit("cak");
    assert_eq!((typo.status.code(), typo.stdout.len()), (Some(2), 0));
    let told = String::from_utf8(typo.stderr).unwrap();
    assert_eq!(told, "error: there is no built-in policy \"cak\"\nhint: did you mean \"cake\" or \"cake-autorate\"?\n");
    let mut reload = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    let reload = reload.args(["shape", "reload", "--policy", "cak"]).current_dir(&scratch.path).output().unwrap();
    let told = String::from_utf8(reload.stderr).unwrap();
    assert!(
        told.ends_with("\nhint: did you mean \"cake\" or \"cake-autorate\"?\n") && reload.status.code() == Some(2),
        "{told}"
    );
    std::fs::write(scratch.path.join("wrong.toml"), "name = 7").unwrap();
    assert_eq!(unit("wrong.toml").status.code(), Some(2));
    assert_eq!(unit("fifo").status.code(), Some(2), "a ready policy needs a line");
}

/// The values of a unit's lines with this key.
fn lines<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
}

#[test]
fn a_unit_gives_what_its_options_need_and_no_more() {
    let scratch = Scratch::new();
    let unit = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
        command.args(["shape", "unit"]).args(more).current_dir(&scratch.path);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let line =
        ["full-both-ways", "--lan", "a", "--wan", "b", "--up", "1 Mbit/s", "--down", "8 Mbit/s", "--link", "ethernet"];
    let plain = unit(&line);
    assert_eq!(lines(&plain, "CapabilityBoundingSet"), ["CAP_NET_ADMIN CAP_NET_RAW CAP_BPF CAP_IPC_LOCK"]);
    assert_eq!(lines(&plain, "RestrictRealtime"), ["yes"]);
    assert_eq!((lines(&plain, "IPAddressDeny"), lines(&plain, "IPAddressAllow").len()), (vec!["any"], 0));
    for key in ["MemoryMax", "TasksMax", "ProtectProc", "ProcSubset"] {
        assert_eq!(lines(&plain, key).len(), 1, "{key}");
    }
    let here = unit(&[&line[..], &["--metrics", "127.0.0.1:9100", "--realtime"]].concat());
    assert_eq!(lines(&here, "IPAddressAllow"), ["localhost"]);
    assert_eq!(lines(&here, "RestrictRealtime"), ["no"]);
    assert!(lines(&here, "CapabilityBoundingSet")[0].ends_with(" CAP_SYS_NICE"));
    let elsewhere = unit(&[&line[..], &["--metrics", "192.0.2.1:9100"]].concat());
    assert_eq!(lines(&elsewhere, "IPAddressAllow"), ["localhost"]);
    assert!(elsewhere.contains("# Metrics are at 192.0.2.1:9100: what scrapes them must be allowed"), "{elsewhere}");
    let reflectors = ["cake-autorate", "--reflector", "192.0.2.7", "--reflector", "2001:db8::7"];
    let pings = unit(&[&reflectors[..], &line[1..]].concat());
    assert_eq!(lines(&pings, "IPAddressAllow"), ["192.0.2.7", "2001:db8::7"]);
    assert!(lines(&pings, "ExecStart")[0].ends_with(" --reflector 192.0.2.7 --reflector 2001:db8::7"), "{pings}");
    assert_eq!(unit(&[&reflectors[..1], &line[1..]].concat()), "", "a unit that cannot start is of no use");
    std::fs::write(scratch.path.join("own.toml"), include_str!("../../../../policies/adsl-optimizer.toml")).unwrap();
    let own = unit(&["own.toml", "--lan", "a", "--wan", "b"]);
    let rights = "CAP_NET_ADMIN CAP_NET_RAW CAP_BPF CAP_IPC_LOCK CAP_DAC_READ_SEARCH";
    assert_eq!(lines(&own, "CapabilityBoundingSet"), [rights], "a policy in the folder of another user");
    assert!(lines(&unit(&[]), "CapabilityBoundingSet")[0].contains("CAP_DAC_READ_SEARCH"));
    // The options of a template are unknown.
    assert_eq!(lines(&unit(&[]), "IPAddressAllow"), ["localhost"]);
}
