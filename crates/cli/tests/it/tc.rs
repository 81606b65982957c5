//! `lastmile tc` on real devices. The tests need root, network namespaces, tc(8) and a kernel with
//! HTB, so they run only on request (`scripts/live-tests.sh`).

use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lastmile_live::netns::Namespace;
use lastmile_live::tc::sizes::Pair;
use serde_json::Value;

use crate::live::{kill, until_it_says};
use crate::transcript::{Scratch, is_root};

pub(crate) const LINE: [&str; 6] = ["--up", "512 kbit/s", "--down", "2 Mbit/s", "--link", "bridged-vcmux-fcs"];

/// Two namespaces with a veth pair; `None`, with a message, where these tests cannot run.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub(crate) fn pair() -> Option<Pair> {
    if !is_root() || Command::new("tc").arg("-V").output().is_err() {
        eprintln!("skipped: needs root and tc(8)");
        return None;
    }
    let pair = Pair::new().unwrap();
    let htb = shell(pair.sender(), "tc qdisc add dev veth1 root htb 2>&1 || tc qdisc add dev veth0 root htb");
    if !htb.status.success() {
        eprintln!("skipped: the kernel has no HTB");
        return None;
    }
    shell(pair.sender(), "tc qdisc del dev veth0 root");
    // The kernel reports the state of a veth's other end with a delay.
    let end = Instant::now() + Duration::from_secs(10);
    while !shown(pair.sender(), "ip -br link show veth0").contains(" UP ") {
        assert!(Instant::now() < end, "veth0 does not come up");
        thread::sleep(Duration::from_millis(5));
    }
    Some(pair)
}

pub(crate) fn run(place: &Namespace, command: &mut Command) -> Output {
    place.run(|| command.stdin(Stdio::null()).output()).unwrap().unwrap()
}

pub(crate) fn shell(place: &Namespace, script: &str) -> Output {
    run(place, Command::new("sh").args(["-c", script]))
}

pub(crate) fn shown(place: &Namespace, script: &str) -> String {
    String::from_utf8(shell(place, script).stdout).unwrap()
}

/// A search path with a tc(8) or ip(8) that refuses commands with these words.
pub(crate) fn refusing(place: &Namespace, scratch: &Scratch, tool: &str, words: &str, message: &str) -> String {
    let real = shown(place, &format!("command -v {tool}"));
    let refuse = format!("case \" $* \" in *'{words}'*) echo '{message}' >&2; exit 2;; esac");
    std::fs::write(scratch.path.join(tool), format!("#!/bin/sh\n{refuse}\nexec {} \"$@\"\n", real.trim())).unwrap();
    shell(place, &format!("chmod +x {}/{tool}", scratch.path.display()));
    format!("{}:{}", scratch.path.display(), std::env::var("PATH").unwrap())
}

/// Runs `lastmile tc` on the shaped device.
pub(crate) fn tc(place: &Namespace, policy: &str, line: &[&str], rest: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.arg("tc").arg(policy).args(line).args(["--device", "veth0"]).args(rest);
    let output = run(place, &mut command);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
#[ignore = "needs root: real packets"]
fn a_policy_is_set_up_read_back_measured_and_taken_away() {
    let Some(pair) = pair() else { return };
    let place = pair.sender();
    let before = shown(place, "tc qdisc show; ip -br link");
    for time in ["once", "again"] {
        let (code, _, error) = tc(place, "ack-priority", &LINE, &["--apply"]);
        assert_eq!(code, Some(0), "{time}: {error}");
    }
    let (code, data, error) = tc(place, "ack-priority", &LINE, &["--verify", "--json", "--each", "1.5 s"]);
    assert_eq!(code, Some(0), "{data}{error}");
    let report: Value = serde_json::from_str(&data).unwrap();
    let read = report["read_back"].as_array().unwrap();
    assert!(read.len() > 25 && read.iter().all(|finding| finding["ok"] == true), "{data}");
    let sizes = report["sizes"].as_array().unwrap();
    assert_eq!(sizes.len(), 13);
    for size in sizes {
        let deviation = size["deviation"].as_f64().unwrap();
        eprintln!("{} bytes, {} on the wire: {deviation:+.1e}", size["size_bytes"], size["wire_bytes"]);
        assert!(deviation.abs() < 1e-3, "{size}");
    }
    // A changed value is detected.
    shell(
        place,
        "tc class change dev veth0 parent 1a57:1 classid 1a57:10 htb rate 100kbit ceil 512kbit burst 5088 cburst 5088",
    );
    let findings = |data: &str| -> Vec<String> {
        let report: Value = serde_json::from_str(data).unwrap();
        let wrong = report["read_back"].as_array().unwrap().iter().filter(|finding| finding["ok"] == false);
        wrong.map(|finding| format!("{} {}", finding["name"], finding["key"])).collect()
    };
    let (code, data, _) = tc(place, "ack-priority", &LINE, &["--verify", "--json", "--each", "0 s"]);
    assert_eq!((code, findings(&data)[0].as_str()), (Some(1), "\"class ack\" \"rate\""), "{data}");
    // Removal needs neither the file of the policy nor its line.
    for told in ["veth0: the set-up is removed\n", "veth0: no set-up of lastmile is there\n"] {
        let (code, _, error) = tc(place, "no-longer-there.toml", &[], &["--remove"]);
        assert_eq!((code, error.as_str()), (Some(0), told));
        assert_eq!(shown(place, "tc qdisc show; ip -br link"), before);
    }
}

/// The root of the device is that of somebody else, and stays.
#[test]
#[ignore = "needs root: real packets"]
fn a_download_alone_is_set_up_beside_a_foreign_root() {
    let Some(pair) = pair() else { return };
    let place = pair.sender();
    shell(place, "tc qdisc add dev veth0 root handle 5: htb");
    let before = shown(place, "tc qdisc show; ip -br link");
    let line = ["--down", "2 Mbit/s", "--link", "docsis"];
    let (code, _, error) = tc(place, "fq-codel-sqm", &line, &["--apply"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(shown(place, "tc qdisc show dev ifb-veth0").contains("htb 1a57: root"));
    let (code, data, error) = tc(place, "fq-codel-sqm", &line, &["--verify", "--json"]);
    assert_eq!((code, error.as_str()), (Some(0), "sizes are not measured: the upstream is not shaped\n"), "{data}");
    let report: Value = serde_json::from_str(&data).unwrap();
    let read = report["read_back"].as_array().unwrap();
    assert!(read.len() > 10 && read.iter().all(|finding| finding["ok"] == true), "{data}");
    let (code, _, error) = tc(place, "fq-codel-sqm", &[], &["--remove"]);
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(shown(place, "tc qdisc show; ip -br link"), before);
}

/// Programs that attach BPF to a device leave a clsact there, in place of an ingress discipline.
#[test]
#[ignore = "needs root: real packets"]
fn a_download_is_set_up_beside_a_foreign_clsact() {
    let Some(pair) = pair() else { return };
    let place = pair.sender();
    if !shell(place, "tc qdisc add dev veth0 clsact").status.success() {
        eprintln!("skipped: the kernel has no clsact");
        return;
    }
    shell(place, "tc filter add dev veth0 ingress protocol ip pref 5 u32 match u32 0 0 flowid 1:1");
    let state = "tc qdisc show; tc filter show dev veth0 ingress; ip -br link";
    let before = shown(place, state);
    assert!(before.contains("qdisc clsact ffff:") && before.contains("pref 5 u32"), "{before}");
    let line = ["--down", "2 Mbit/s", "--link", "docsis"];
    let script = tc(place, "fq-codel-sqm", &line, &[]).1;
    let scratch = Scratch::new();
    std::fs::write(scratch.path.join("setup.sh"), script).unwrap();
    let file = scratch.path.join("setup.sh").display().to_string();
    for by_script in [false, true] {
        let (code, error) = if by_script {
            let output = run(place, Command::new("sh").arg(&file));
            (output.status.code(), String::from_utf8(output.stderr).unwrap())
        } else {
            let (code, _, error) = tc(place, "fq-codel-sqm", &line, &["--apply"]);
            (code, error)
        };
        assert_eq!(code, Some(0), "{error}");
        assert!(error.contains("a free ingress: the existing discipline is used"), "{error}");
        let filters = shown(place, "tc filter show dev veth0 ingress");
        assert!(filters.contains("pref 6743") && filters.contains("to device ifb-veth0"), "{filters}");
        let (code, data, error) = tc(place, "fq-codel-sqm", &line, &["--verify", "--json"]);
        assert_eq!(code, Some(0), "{data}{error}");
        let removed = match by_script {
            true => run(place, Command::new("sh").arg(&file).arg("remove")).status.code(),
            false => tc(place, "fq-codel-sqm", &[], &["--remove"]).0,
        };
        assert_eq!(removed, Some(0));
        assert_eq!(shown(place, state), before);
    }
}

/// VLANs of a port whose names have more characters than fit behind `ifb-`, set up by --apply and by a script.
#[test]
#[ignore = "needs root: real packets"]
fn devices_with_long_names_have_intermediate_devices_of_their_own() {
    let Some(pair) = pair() else { return };
    let place = pair.sender();
    let names = ["enp0s31f6.10", "enp0s31f6.11"];
    for (name, peer) in names.into_iter().zip(["p10", "p11"]) {
        let add =
            format!("ip link add {name} type veth peer name {peer}; ip link set {name} up; ip link set {peer} up");
        assert!(shell(place, &add).status.success());
    }
    let tc = |device: &[&str], rest: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
        command.args(["tc", "fq-codel-sqm", "--down", "10 Mbit/s", "--link", "docsis"]).args(device).args(rest);
        let output = run(place, &mut command);
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let before = shown(place, "ip -br link");
    let (code, _, error) = tc(&["--device", names[0]], &["--apply"]);
    assert_eq!(code, Some(0), "{error}");
    let scratch = Scratch::new();
    let file = scratch.path.join("setup.sh").display().to_string();
    let script = |device: &[&str], rest: &[&str], ifb: &str| {
        std::fs::write(&file, tc(device, rest).1).unwrap();
        let output = run(place, Command::new("sh").arg(&file).env("DEV", names[1]).env("IFB", ifb));
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let done = script(&[], &[], "");
    assert_eq!(done.0, Some(0), "{}", done.1);
    // The script and --apply give one name: each verifies, and removes, what the other has set up.
    for name in names {
        let (code, data, error) = tc(&["--device", name], &["--verify", "--each", "0 s"]);
        assert!(code == Some(0) && data.contains(&format!("lastmile tc {name} ")), "{data}{error}");
    }
    // The intermediate device of another is neither taken over nor removed.
    let ifb = lastmile_kernel::script::ifb_of(names[0]);
    let both = shown(place, "ip -br link; tc qdisc show");
    for (device, given) in [(&[][..], &[][..]), (&["--device", names[1]], &["--ifb", &ifb])] {
        let (code, told) = script(device, given, &ifb);
        let refused = format!("{ifb} exists, and is none of lastmile for {}; print this anew with: ", names[1]);
        assert!(code == Some(1) && told.starts_with(&refused) && told.ends_with("--ifb NAME\n"), "{told}");
    }
    let (code, _, told) = tc(&["--device", names[1]], &["--ifb", &ifb, "--apply"]);
    let refused = format!("error: {ifb} exists, and is none of lastmile for {}\nhint: --ifb NAME", names[1]);
    assert!(code == Some(2) && told.starts_with(&refused), "{told}");
    assert_eq!(shown(place, "ip -br link; tc qdisc show"), both);
    assert_eq!(tc(&["--device", names[1]], &["--remove"]).0, Some(0));
    assert_eq!(tc(&["--device", names[0]], &["--verify", "--each", "0 s"]).0, Some(0));
    assert_eq!(tc(&["--device", names[0]], &["--remove"]).0, Some(0));
    assert_eq!(shown(place, "ip -br link"), before);
}

/// An ingress discipline without filters is taken away by the set-up that made it, and by no other.
#[test]
#[ignore = "needs root: real packets"]
fn an_ingress_discipline_of_somebody_else_stays() {
    let Some(pair) = pair() else { return };
    let place = pair.sender();
    let scratch = Scratch::new();
    let path = refusing(place, &scratch, "tc", "filter add", "Error: refused.");
    let state = "tc qdisc show; ip -br link";
    let line = ["--down", "2 Mbit/s", "--link", "docsis"];
    std::fs::write(scratch.path.join("setup.sh"), tc(place, "fq-codel-sqm", &line, &[]).1).unwrap();
    let file = scratch.path.join("setup.sh").display().to_string();
    for foreign in [false, true] {
        if foreign {
            shell(place, "tc qdisc add dev veth0 ingress");
        }
        let before = shown(place, state);
        assert_eq!(before.contains("qdisc ingress ffff: dev veth0"), foreign, "{before}");
        assert_eq!(tc(place, "fq-codel-sqm", &[], &["--remove"]).2, "veth0: no set-up of lastmile is there\n");
        assert!(run(place, Command::new("sh").args([&file, "remove"])).status.success());
        assert_eq!(shown(place, state), before);
        // Neither filter is taken, after the discipline was made.
        let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
        command.args(["tc", "fq-codel-sqm"]).args(line).args(["--device", "veth0", "--apply"]).env("PATH", &path);
        let applied = run(place, &mut command);
        assert_eq!(applied.status.code(), Some(2));
        assert_eq!(shown(place, state), before);
        assert!(!run(place, Command::new("sh").arg(&file).env("PATH", &path)).status.success());
        assert_eq!(shown(place, state), before);
    }
}

/// A tc(8) that answers as on a kernel without CAKE stands for such a kernel.
#[test]
#[ignore = "needs root: real packets"]
fn what_the_kernel_lacks_costs_no_earlier_set_up() {
    let Some(pair) = pair() else { return };
    let place = pair.sender();
    let scratch = Scratch::new();
    let path = refusing(place, &scratch, "tc", " cake ", "Error: Specified qdisc kind is unknown.");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/files");
    let shaped = folder.join("shaped.toml").display().to_string();
    let (code, _, error) = tc(place, &shaped, &[], &["--apply"]);
    assert_eq!(code, Some(0), "{error}");
    let state = "tc -d qdisc show; tc class show dev veth0; tc filter show dev veth0 parent ffff:; nft list ruleset; \
                 ip -br link";
    let before = shown(place, state);
    assert!(before.contains("htb 1a57: dev veth0") && before.contains("ifb-veth0"), "{before}");
    let cake = |rest: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
        command.args(["tc", "cake"]).args(LINE).args(["--device", "veth0", "--apply"]).args(rest).env("PATH", &path);
        let output = run(place, &mut command);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, error) = cake(&[]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("tc qdisc add dev veth0 root handle 1a57: cake "), "{error}");
    assert!(error.contains("qdisc kind is unknown. (tried elsewhere: the set-up of veth0 is as it was)"), "{error}");
    assert!(error.contains("this kernel has no cake"), "{error}");
    assert_eq!(shown(place, state), before);
    // A device of this name exists, of somebody else.
    let (code, _, error) = tc(place, &shaped, &[], &["--apply", "--ifb", "lo"]);
    assert_eq!(code, Some(2), "{error}");
    assert_eq!(shown(place, state), before);
    // A downstream alone is an earlier set-up, too.
    assert_eq!(tc(place, "cake", &[], &["--remove"]).0, Some(0));
    let (code, _, error) = tc(place, "fq-codel-sqm", &["--down", "2 Mbit/s", "--link", "docsis"], &["--apply"]);
    assert_eq!(code, Some(0), "{error}");
    let before = shown(place, state);
    assert!(!before.contains("1a57: dev veth0") && before.contains("htb 1a57: dev ifb-veth0"), "{before}");
    let (code, error) = cake(&[]);
    assert!(code == Some(2) && error.contains("the set-up of veth0 is as it was"), "{error}");
    assert_eq!(shown(place, state), before);
    // Without an earlier set-up nothing is rehearsed, and nothing is left.
    assert_eq!(tc(place, "cake", &[], &["--remove"]).0, Some(0));
    let before = shown(place, state);
    let (code, error) = cake(&[]);
    assert!(code == Some(2) && !error.contains("tried elsewhere"), "{error}");
    assert_eq!(shown(place, state), before);
}

#[test]
#[ignore = "needs root: real packets"]
fn a_signal_ends_a_measurement_and_nothing_is_left_behind() {
    let Some(pair) = pair() else { return };
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    command.args(["tc", "fifo"]).args(LINE).args(["--device", "veth0", "--verify", "--each", "60 s"]);
    let mut child = pair.sender().run(|| command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()).unwrap().unwrap();
    until_it_says("measuring", &mut BufReader::new(child.stderr.take().unwrap()));
    let own = format!("lastmile-{}-", child.id());
    let namespaces = || {
        let names = std::fs::read_dir("/var/run/netns").unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_str().unwrap().starts_with(&own)).count()
    };
    assert_eq!(namespaces(), 2);
    kill("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    assert_eq!(namespaces(), 0);
}

/// Packets of each class so far, by `tc -s`.
fn sent(place: &Namespace, class: &str) -> u64 {
    let shown = shown(place, "tc -s class show dev veth0");
    let mut lines = shown.lines().skip_while(|line| !line.starts_with(&format!("class htb {class} "))).skip(1);
    let words: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    let at = words.iter().position(|word| *word == "pkt").unwrap();
    words[at - 1].parse().unwrap()
}

/// The kernel's own TCP, which sends timestamps: the ACKs of a download are assigned to their
/// class, and an upload is not.
#[test]
#[ignore = "needs root: real packets"]
fn acks_with_timestamps_go_into_their_class_and_data_does_not() {
    let Some(pair) = pair() else { return };
    let place = pair.sender();
    let sysctl = place.run(|| std::fs::read_to_string("/proc/sys/net/ipv4/tcp_timestamps")).unwrap().unwrap();
    assert_ne!(sysctl.trim(), "0", "ACKs carry timestamps");
    let script = tc(place, "ack-priority", &LINE, &[]).1;
    let scratch = Scratch::new();
    std::fs::write(scratch.path.join("setup.sh"), script).unwrap();
    let file = scratch.path.join("setup.sh").display().to_string();
    // Twice, because a script removes its own earlier set-up.
    for _ in 0..2 {
        let output = run(place, Command::new("sh").arg(&file));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let server = SocketAddr::from((pair.addresses().1, 9001));
    let listener = pair.receiver().run(|| TcpListener::bind(server)).unwrap().unwrap();
    let served = thread::spawn(move || {
        let block = vec![0; 1 << 16];
        let (mut stream, _) = listener.accept().unwrap();
        for _ in 0..16 {
            stream.write_all(&block).unwrap();
        }
        drop(stream);
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap()
    });
    let connect = || place.run(|| TcpStream::connect(server)).unwrap().unwrap();
    assert_eq!(connect().read_to_end(&mut Vec::new()).unwrap(), 1 << 20);
    thread::sleep(Duration::from_millis(300));
    let (acks, others) = (sent(place, "1a57:10"), sent(place, "1a57:11"));
    eprintln!("a download of 1 MiB: {acks} packets in the ACK class, {others} in the other");
    // Only SYN, FIN and a few others are no pure ACKs.
    assert!(acks >= 8 && others <= 4, "{acks} and {others}");

    let start = Instant::now();
    let mut upload = connect();
    upload.write_all(&vec![0; 60_000]).unwrap();
    drop(upload);
    assert_eq!(served.join().unwrap(), 60_000);
    let (acks, others) = (sent(place, "1a57:10") - acks, sent(place, "1a57:11") - others);
    eprintln!("an upload of 60 kB in {:?}: {acks} packets in the ACK class, {others} in the other", start.elapsed());
    assert!(others >= 2 && acks <= 4, "{acks} and {others}");
    assert!(run(place, Command::new("sh").arg(&file).arg("remove")).status.success());
    assert!(!shown(place, "tc qdisc show dev veth0").contains("1a57:"));
}

/// Of the bytes that the line adds, stab's overhead on Ethernet has 14 less than on ppp0: without a check a script for
/// the one would count wrongly on the other, and say nothing.
#[test]
#[ignore = "needs root: real packets"]
fn a_script_refuses_a_device_whose_frames_it_does_not_count() {
    let Some(pair) = pair() else { return };
    let place = pair.sender();
    assert!(shell(place, "ip tuntap add dev tun0 mode tun").status.success());
    let scratch = Scratch::new();
    let file = scratch.path.join("setup.sh").display().to_string();
    let before = shown(place, "tc qdisc show; ip -br link");
    for (header, right, wrong, instead) in [("ethernet", "veth0", "tun0", "ip"), ("ip", "tun0", "veth0", "ethernet")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
        command.args(["tc", "ack-priority"]).args(LINE);
        if header != "ethernet" {
            command.args(["--header", header]);
        }
        std::fs::write(&file, run(place, &mut command).stdout).unwrap();
        let script = |device: &str, rest: &[&str]| {
            run(place, Command::new("sh").arg(&file).args(rest).env("DEV", device).env_remove("IFB"))
        };
        let refused = script(wrong, &[]);
        let told = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{told}");
        assert!(told.starts_with(&format!("{wrong}: this script is for a device whose frames have ")), "{told}");
        assert!(told.ends_with(&format!("lastmile tc ... --header {instead}\n")), "{told}");
        assert_eq!(shown(place, "tc qdisc show; ip -br link"), before, "{wrong}");
        // So does --apply.
        let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
        command.args(["tc", "ack-priority"]).args(LINE).args(["--device", wrong, "--header", header, "--apply"]);
        let refused = run(place, &mut command);
        let told = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{told}");
        assert!(told.starts_with(&format!("error: {wrong}: this set-up is for a device whose frames have ")), "{told}");
        assert!(told.ends_with(&format!("hint: --header {instead}\n")), "{told}");
        assert_eq!(shown(place, "tc qdisc show; ip -br link"), before, "{wrong}");
        let done = script(right, &[]);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let overhead = if right == "tun0" { "overhead 28 " } else { "overhead 14 " };
        assert!(shown(place, &format!("tc -d qdisc show dev {right} root")).contains(overhead));
        // Removal asks for no kind.
        assert!(script(wrong, &["remove"]).status.success() && script(right, &["remove"]).status.success());
        assert_eq!(shown(place, "tc qdisc show; ip -br link"), before);
    }
}

#[test]
#[ignore = "needs root: real packets"]
fn what_others_have_set_up_stays_and_what_fails_leaves_nothing() {
    let Some(pair) = pair() else { return };
    let place = pair.sender();
    let before = shown(place, "tc qdisc show; ip -br link");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/files");
    let shaped = folder.join("shaped.toml").display().to_string();
    // The name of an existing device: the command fails after the upstream is set up.
    let (code, _, error) = tc(place, &shaped, &[], &["--apply", "--ifb", "lo"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("lo exists, and is none of lastmile for veth0"), "{error}");
    assert_eq!(shown(place, "tc qdisc show; ip -br link"), before);

    let (code, _, error) = tc(place, &shaped, &[], &["--apply"]);
    assert_eq!(code, Some(0), "{error}");
    let after = shown(place, "tc qdisc show; ip -br link");
    assert!(after.contains("htb 1a57: dev ifb-veth0") && after.contains("ingress ffff: dev veth0"), "{after}");
    // A foreign filter keeps the ingress discipline.
    shell(place, "tc filter add dev veth0 parent ffff: protocol ip pref 7 u32 match u32 0 0 flowid 1:1");
    assert_eq!(tc(place, &shaped, &[], &["--remove"]).0, Some(0));
    let after = shown(place, "tc qdisc show; ip -br link");
    assert!(after.contains("ingress ffff: dev veth0") && !after.contains("ifb-veth0"), "{after}");
    shell(place, "tc qdisc del dev veth0 ingress");

    shell(place, "tc qdisc add dev veth0 root handle 5: htb");
    let (code, _, error) = tc(place, "ack-priority", &LINE, &["--apply"]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("veth0 has a queueing discipline of its own: htb 5:"), "{error}");
    assert_eq!(tc(place, "ack-priority", &LINE, &["--remove"]).0, Some(0));
    assert!(shown(place, "tc qdisc show dev veth0").contains("htb 5: root"));
}
