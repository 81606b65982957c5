//! Arguments that are refused, and the hints that they get.

use super::*;

#[test]
fn a_key_of_irtt_that_is_none_is_refused_by_its_file() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path.join("irtt.key"), "0xabc").unwrap();
    let arguments = ["measure", "127.0.0.1", "--protocol", "irtt", "--irtt-key-file", "irtt.key"];
    let output = lastmile(&scratch.path, &arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("irtt.key: the key after 0x needs pairs of hexadecimal digits"), "{said}");
}

/// No key on the command line, no key at all.
#[test]
fn without_a_key_it_says_how_to_have_one() {
    let scratch = Scratch::new();
    let mut command = lastmile(&scratch.path, &["measure", "--serve"]);
    let output = command.env_remove("LASTMILE_KEY").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("need a key") && said.contains("hint: ") && said.contains("--key-file"), "{said}");
}

/// At an address of its own of this machine, something listens at the port of iperf3, and nothing at that of lastmile.
#[test]
fn a_key_that_is_named_does_not_measure_against_iperf3() {
    let _iperf3 = std::net::TcpListener::bind("127.77.52.9:5201").unwrap();
    let scratch = Scratch::new();
    std::fs::write(scratch.path.join("key"), "sixteen characters and more").unwrap();
    let output = lastmile(&scratch.path, &["measure", "127.77.52.9", "--key-file", "key"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("error: --key-file: 127.77.52.9 does not answer at port 5209"), "{said}");
}

/// Before anything is connected: nobody listens at the address of documentation.
#[test]
fn a_congestion_control_that_this_machine_lacks_is_refused_with_those_that_it_offers() {
    let scratch = Scratch::new();
    let words = ["measure", "192.0.2.1", "--congestion", "nosuch"];
    let output = lastmile(&scratch.path, &words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("error: --congestion nosuch: this machine cannot have it: No such file"), "{said}");
    let offered = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    let offered = offered.split_whitespace().collect::<Vec<_>>().join(", ");
    assert!(said.contains(&format!("hint: its kernel offers {offered}\n")), "{said}");
}

/// A detection sends packets of its own choice: options that shape a measurement have no effect.
#[test]
fn a_detection_refuses_the_options_of_a_measurement_by_name() {
    let scratch = Scratch::new();
    let cases: [(&str, &[&str]); 12] = [
        ("--detect", &["--protocol", "iperf3"]),
        ("--detect", &["--phases", "idle"]),
        ("--detect", &["--duration", "5 s", "--streams", "2"]),
        ("--detect", &["--congestion", "cubic", "--fill-buffers"]),
        ("--detect", &["--ping", "192.0.2.1"]),
        ("--detect", &["--interval", "50 ms"]),
        ("--detect", &["--precision", "5"]),
        ("--detect", &["--flent", "x.flent.gz", "--page", "x.html"]),
        ("--detect", &["--plain"]),
        ("--detect", &["--insecure"]),
        ("--detect-idle", &["--streams", "2", "--port", "7"]),
        ("--detect-idle", &["--key-file", "measure.key"]),
    ];
    for (detection, options) in cases {
        let words = [&["measure", "192.0.2.1", detection], options].concat();
        let output = lastmile(&scratch.path, &words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        for option in options.iter().filter(|word| word.starts_with("--")) {
            assert!(said.contains(option) && said.contains(detection), "{words:?}: {said}");
        }
    }
}

/// Uploads to other servers hold what their protocols ask for.
#[test]
fn buffers_are_filled_by_uploads_to_a_responsiveness_server_alone() {
    let scratch = Scratch::new();
    for protocol in ["lastmile", "iperf3", "irtt"] {
        let words = ["measure", "192.0.2.1", "--protocol", protocol, "--fill-buffers"];
        let output = lastmile(&scratch.path, &words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("--fill-buffers") && said.contains("hint: --protocol responsiveness"), "{said}");
    }
}

/// An option that is refused without a word of it in the help is a surprise.
#[test]
fn the_help_of_a_detection_names_its_options() {
    let scratch = Scratch::new();
    let output = lastmile(&scratch.path, &["measure", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    let of = |from: &str, to: &str| help.split_once(from).unwrap().1.split_once(to).unwrap().0.to_owned();
    let [detect, idle] = [of(" --detect Detect", " --detect-idle "), of(" --detect-idle Detect", " --scenario ")];
    for option in ["takes --port, --key-file, --json and --scenario", "refuses --plain"] {
        assert!(detect.contains(option), "{option}: {detect}");
    }
    for option in ["takes --json", "refuses the options of a measurement and --plain"] {
        assert!(idle.contains(option), "{option}: {idle}");
    }
}
