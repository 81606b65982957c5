//! `lastmile tc` with devices that are gone, and with stand-ins for tc(8), ip(8) and nft(8).

use std::path::Path;
use std::process::Command;

use crate::tc::{LINE, pair, refusing, run, shell, shown, tc};
use crate::transcript::Scratch;

/// BusyBox's ip(8) has no alias: an intermediate device without one would be that of somebody else for every later run.
#[test]
#[ignore = "needs root: real packets"]
fn an_intermediate_device_that_gets_no_alias_is_removed() {
    let Some(pair) = pair() else { return };
    let place = pair.sender();
    let scratch = Scratch::new();
    let path = refusing(place, &scratch, "ip", " alias ", "ip: either \"dev\" is duplicate");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/files");
    let shaped = folder.join("shaped.toml").display().to_string();
    let file = scratch.path.join("setup.sh").display().to_string();
    std::fs::write(&file, tc(place, &shaped, &[], &[]).1).unwrap();
    let state = "tc qdisc show; ip -br link; nft list tables";
    let before = shown(place, state);
    let mut apply = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    apply.args(["tc", &shaped, "--device", "veth0", "--apply"]);
    let mut script = Command::new("sh");
    for command in [&mut apply, script.arg(&file)] {
        let done = run(place, command.env("PATH", &path));
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && told.contains("is duplicate"), "{told}");
        assert_eq!(shown(place, state), before);
    }
}

/// A session of PPPoE that ends takes its device with it, and leaves the intermediate device and the tables of nft.
#[test]
#[ignore = "needs root: real packets"]
fn a_set_up_is_removed_after_its_device_is_gone() {
    let Some(pair) = pair() else { return };
    let place = pair.sender();
    let scratch = Scratch::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/files");
    let shaped = folder.join("shaped.toml").display().to_string();
    let file = scratch.path.join("setup.sh").display().to_string();
    std::fs::write(&file, tc(place, &shaped, &[], &[]).1).unwrap();
    let state = "ip -br link show type ifb; nft list tables";
    for by_script in [false, true] {
        shell(place, "ip link del veth0; ip link add veth0 type veth peer name other; ip link set veth0 up");
        let (code, _, error) = tc(place, &shaped, &[], &["--apply"]);
        assert_eq!(code, Some(0), "{error}");
        shell(place, "ip link del veth0");
        let left = shown(place, state);
        assert!(left.contains("ifb-veth0") && left.contains("table inet lastmile-veth0"), "{left}");
        if by_script {
            let done = run(place, Command::new("sh").args([&file, "remove"]));
            assert!(done.status.success() && done.stderr.is_empty(), "{done:?}");
        } else {
            assert_eq!(tc(place, &shaped, &[], &["--remove"]).2, "veth0: the set-up is removed\n");
        }
        assert_eq!(shown(place, state), "");
        assert_eq!(tc(place, &shaped, &[], &["--remove"]).2, "veth0: no set-up of lastmile is there\n");
    }
}

/// Rules compare the own name of a device, and see no packet of an offloaded flow. The `ip` here knows one device, by
/// both of its names, and nothing is set up.
#[test]
fn a_script_refuses_an_alternative_name_of_a_device_and_warns_of_a_flowtable() {
    let scratch = Scratch::new();
    let link = "2: eth0@if3: <UP> mtu 1500\n    link/ether 00:00:5e:00:53:01\n    altname enp3s0";
    let standing_in = |name: &str, does: &str| {
        let file = scratch.path.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{does}\n")).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    standing_in("ip", &format!("echo '{link}'"));
    standing_in("tc", "");
    standing_in("nft", "");
    let set_up = |device: &str| {
        let mut lastmile = Command::new(env!("CARGO_BIN_EXE_lastmile"));
        let script = lastmile.args(["tc", "fifo"]).args(LINE).args(["--device", device]).output().unwrap().stdout;
        let mut shell = Command::new("sh");
        let path = format!("{}:{}", scratch.path.display(), std::env::var("PATH").unwrap());
        let done = shell.arg("-c").arg(String::from_utf8(script).unwrap()).env("PATH", path).output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    assert_eq!(set_up("eth0"), (Some(0), String::new()));
    let (code, told) = set_up("enp3s0");
    assert_eq!(code, Some(1), "{told}");
    assert!(told.starts_with("enp3s0 is an alternative name, which rules do not know; the own one"), "{told}");
    // A table may have that name.
    standing_in("nft", "case $* in 'list flowtables') printf 'table inet flowtable {\\n}\\n' ;; esac");
    assert_eq!(set_up("eth0"), (Some(0), String::new()));
    let tables = "table inet fw4 {\\n\\tflowtable ft {\\n\\t\\thook ingress priority filter\\n\\t}\\n}\\n";
    standing_in("nft", &format!("case $* in 'list flowtables') printf '{tables}' ;; esac"));
    let (code, told) = set_up("eth0");
    assert_eq!(code, Some(0), "{told}");
    assert!(told.starts_with("nft has a flowtable: offloaded packets pass no rules here, and"), "{told}");
}
