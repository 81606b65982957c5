//! Names, descriptions and paths with commands for a shell, systemd or a terminal, through every
//! output of the program.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use lastmile_text::escape;

use crate::transcript::Scratch;

/// A hostile description: a clipboard write (OSC 52), erased screens (ESC [ 2J, CSI 2J), a
/// right-to-left override, line breaks, and special characters of shells, systemd, markup and
/// spreadsheets.
const TEXT: &str = "\u{1b}]52;c;cm0=\u{7}\u{1b}[2J\u{9b}2J\u{202e}\u{2028}a\r\ntouch ran\n\
 \"'`touch ran`$(touch ran)<script>]]>-->%i;=cmd|\u{8}\\";

/// A hostile name of a file.
const FILE: &str = "\u{1b}[2J\u{9b}2J\u{202e}a\r\ntouch ran\nUser=root\n'`touch ran`$(touch ran)<script>%i;\u{8}.toml";

fn lastmile(folder: &Path, arguments: &[impl AsRef<std::ffi::OsStr>]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lastmile"));
    // Styles as on a terminal: the program's own escape sequences are present, and nothing removes
    // others.
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).env("CLICOLOR_FORCE", "1").output().unwrap()
}

/// A folder with a policy of that description and name, and an ordinary one.
fn folder() -> Scratch {
    let scratch = Scratch::new();
    let usual = include_str!("../../../../policies/adsl-optimizer.toml");
    let (head, rest) = usual.split_once("\nabout = ").unwrap();
    let rest = rest.split_once('\n').unwrap().1;
    let about = format!("{head}\nabout = {}\n{rest}", serde_json::Value::from(TEXT));
    std::fs::write(scratch.path.join(FILE), about.replace("name = \"adsl-optimizer\"\n", "")).unwrap();
    std::fs::write(scratch.path.join("usual.toml"), usual).unwrap();
    scratch
}

/// Output to a terminal consists of text, line feeds and the program's own styles (SGR of ECMA-48).
fn assert_shown(what: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = &*text;
    while let Some(at) = rest.find(|c| escape::is_hidden(c) && c != '\n') {
        let style = rest[at..]
            .strip_prefix("\u{1b}[")
            .map(|style| style.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'));
        rest = style.and_then(|style| style.strip_prefix('m')).unwrap_or_else(|| panic!("{what}: {text:?}"));
    }
}

fn assert_both_shown(what: &str, output: &Output) {
    assert_shown(what, &output.stdout);
    assert_shown(what, &output.stderr);
}

/// Substitutes for the kernel's tools: each writes its arguments, each followed by NUL, and a line
/// feed.
fn tools(scratch: &Scratch) -> PathBuf {
    let tools = scratch.path.join("tools");
    std::fs::create_dir(&tools).unwrap();
    // Every device is one of Ethernet with its own name, and none carries PPPoE.
    let link = "[ \"$1 $2\" != 'link show' ] || printf '2: %s: link/ether\\n' \"$4\"\n";
    let answers = [("tc", ""), ("ip", link), ("nft", ""), ("grep", "exit 1\n")];
    for (name, answer) in answers {
        let tool = tools.join(name);
        let record = format!("printf '%s\\0' {name} \"$@\" >>\"$RECORD\"\nprintf '\\n' >>\"$RECORD\"\n");
        let script = format!("#!/bin/sh\n{record}{answer}");
        std::fs::write(&tool, script).unwrap();
        std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    tools
}

/// Runs a script with those tools and no other program, and returns the commands that it ran.
fn ran(scratch: &Scratch, tools: &Path, script: &[u8]) -> Vec<u8> {
    let record = scratch.path.join("record");
    let _ = std::fs::remove_file(&record);
    let file = scratch.path.join("script");
    std::fs::write(&file, script).unwrap();
    let syntax = Command::new("/bin/sh").arg("-n").arg(&file).output().unwrap();
    assert!(syntax.status.success(), "{}", String::from_utf8_lossy(&syntax.stderr));
    let mut command = Command::new("/bin/sh");
    command.arg(&file).current_dir(&scratch.path).env_clear().env("PATH", tools).env("RECORD", &record);
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(record).unwrap()
}

#[test]
fn the_script_of_a_hostile_policy_runs_what_that_of_the_usual_policy_runs() {
    let scratch = folder();
    let tools = tools(&scratch);
    let of = |policy: &str| {
        let printed = lastmile(&scratch.path, &["tc", policy, "--device", "eth0"]);
        assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
        assert_both_shown("tc", &printed);
        ran(&scratch, &tools, &printed.stdout)
    };
    let usual = of("usual.toml");
    assert!(usual.split(|byte| *byte == b'\n').count() > 20);
    assert_eq!(String::from_utf8_lossy(&of(FILE)), String::from_utf8_lossy(&usual));
    assert!(!scratch.path.join("ran").exists());
}

#[test]
fn a_device_is_no_word_of_another_language() {
    let scratch = folder();
    for device in ["a;reboot", "-x", "a b", "$(reboot)", "a\nb", "%i", "\u{1b}[2J"] {
        for arguments in [
            ["tc".to_owned(), "usual.toml".to_owned(), format!("--device={device}")].to_vec(),
            ["tc".to_owned(), "usual.toml".to_owned(), format!("--ifb={device}")].to_vec(),
            ["shape", "unit", "usual.toml", "--lan=a"]
                .map(str::to_owned)
                .into_iter()
                .chain([format!("--wan={device}")])
                .collect(),
            ["shape", "unit", "usual.toml", "--wan=a"]
                .map(str::to_owned)
                .into_iter()
                .chain([format!("--lan={device}")])
                .collect(),
        ] {
            let refused = lastmile(&scratch.path, &arguments);
            assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
            assert!(String::from_utf8_lossy(&refused.stderr).contains("the name of a device"), "{refused:?}");
            assert_both_shown("device", &refused);
        }
    }
}

/// The names of a unit's directives, with their sections.
fn directives(unit: &[u8]) -> Vec<String> {
    let text = String::from_utf8(unit.to_vec()).unwrap();
    assert!(!text.contains("\\\n"), "no line joins the next: {text}");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split('=').next().unwrap().to_owned()).collect()
}

#[test]
fn the_unit_of_a_hostile_policy_has_the_directives_of_any_other() {
    let scratch = folder();
    let unit = |policy: &str| {
        let printed = lastmile(
            &scratch.path,
            &["shape", "unit", policy, "--lan", "eth1", "--wan", "eth2", "--program", "/opt/a b/%i/$x/lastmile"],
        );
        assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
        assert_both_shown("unit", &printed);
        printed.stdout
    };
    let hostile = unit(FILE);
    assert_eq!(directives(&hostile), directives(&unit("usual.toml")));
    // A backslash at the end of a description that does not end in a file's text joins no line
    // either.
    assert_eq!(directives(&unit("later\\")), directives(&unit("usual.toml")));
    let refused = lastmile(&scratch.path, &["shape", "unit", "--program", "/opt/a\nUser=root"]);
    assert_eq!(refused.status.code(), Some(2));
    assert_both_shown("program", &refused);

    let file = scratch.path.join("lastmile-hostile.service");
    std::fs::write(&file, String::from_utf8(hostile).unwrap().replace("/opt/a b/%%i/$x/lastmile", "/bin/sh")).unwrap();
    let Ok(verified) = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(file).output() else {
        eprintln!("skipped: no systemd-analyze");
        return;
    };
    let said = String::from_utf8_lossy(&[verified.stdout, verified.stderr].concat()).into_owned();
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("lastmile-hostile")).collect();
    assert!(ours.is_empty(), "{said}");
}

/// Every output that shows a file, an argument or a text of a file.
#[test]
fn a_terminal_gets_no_sequence_of_a_file_or_an_argument() {
    let scratch = folder();
    let path = &scratch.path;
    let evil = "\u{1b}[2J\u{9b}2J\u{202e}\r\nerror: fake\n\u{8}";
    std::fs::write(
        path.join("keys.toml"),
        "\"k\\u001b[2J\\u202e\" = 1\nname = \"a\\u009b\"\n[access]\n\"\\r\" = \"\\u0007\"\n",
    )
    .unwrap();
    std::fs::write(path.join("raw.toml"), "na\u{202e}me = \"\u{1b}[2J\"\n\u{9b}[x]\ny = 1 # \r\u{1b}[2J\n").unwrap();
    let commands: Vec<Vec<&str>> = vec![
        vec!["policy", "show", FILE],
        vec!["policy", "check", FILE],
        vec!["policy", "check", "raw.toml"],
        vec!["policy", "show", evil],
        vec!["tc", evil],
        vec!["run", "keys.toml"],
        vec!["run", "raw.toml"],
        vec!["run", evil],
        vec!["run", "keys.toml", "--set", evil],
        vec!["run", "keys.toml", "--set", "a.\u{1b}[2J=\u{202e}"],
        vec!["run", "keys.toml", "--policy", evil],
        vec!["run", "keys.toml", evil],
        vec!["run", "--evil\u{1b}[2J\u{202e}"],
        vec![evil],
        vec!["compare", evil],
        vec!["report", evil],
        vec!["analyse", evil],
        vec!["analyse", FILE],
        vec!["emulate", evil],
        vec!["emulate", "keys.toml", "--between", evil],
        vec!["emulate", "keys.toml", "--bridge", evil],
        vec!["emulate", "keys.toml", "--path", evil],
        vec!["emulate", "status", "--control", evil],
        vec!["lab", evil],
        vec!["lab", "keys.toml", "--between", evil],
        vec!["shape", "status", "--control", evil],
        vec!["shape", FILE, "--lan", evil, "--wan", "b"],
        vec!["shape", "unit", evil, "--lan", "a", "--wan", "b"],
        vec!["overhead", evil],
        vec!["overhead", "--sizes", evil],
        vec!["model", "amp", evil],
        vec!["reproduce", evil],
        vec!["completions", evil],
    ];
    for command in &commands {
        assert_both_shown(&format!("{command:?}"), &lastmile(path, command));
    }
    // The name of a file need not be UTF-8.
    let name = OsString::from_vec(b"\xff\x1b[2J\xc2\x9b.toml".to_vec());
    std::fs::write(path.join(&name), "").unwrap();
    for command in [["run"].as_slice(), &["policy", "check"], &["analyse"], &["compare"], &["report"]] {
        let arguments: Vec<OsString> = command.iter().map(OsString::from).chain([name.clone()]).collect();
        assert_both_shown(&format!("{command:?}"), &lastmile(path, &arguments));
    }
}

/// A run of a file with that name, its comparison, its report, and a foreign summary.
#[test]
fn results_with_hostile_names_are_shown_and_stay_exact() {
    let scratch = folder();
    let path = &scratch.path;
    let scenario = "scenarios/upload-starves-download.toml";
    std::fs::copy(path.join(scenario), path.join(FILE)).unwrap();
    let run = |arguments: &[&str]| {
        let output = lastmile(path, &[&["run", FILE, "--duration", "1s"], arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_both_shown("run", &output);
        output
    };
    run(&["--out", "one"]);
    let json: serde_json::Value = serde_json::from_slice(&run(&["--json"]).stdout).unwrap();
    assert_eq!(json["inputs"]["file"].as_str().unwrap(), FILE, "data for programs is exact");

    // A foreign summary, with names that no scenario may have.
    let summary = path.join("one/summary.json");
    let mut told: serde_json::Value = serde_json::from_slice(&std::fs::read(&summary).unwrap()).unwrap();
    told["scenario"] = TEXT.into();
    for list in ["flows", "links", "probes"] {
        for item in told[list].as_array_mut().into_iter().flatten() {
            item["name"] = TEXT.into();
        }
    }
    for phase in told["phases"].as_array_mut().unwrap() {
        phase["name"] = TEXT.into();
    }
    std::fs::write(&summary, told.to_string()).unwrap();
    let other = path.join("\u{1b}[2J");
    std::fs::create_dir(&other).unwrap();
    for name in ["summary.json", "series.parquet"] {
        std::fs::copy(path.join("one").join(name), other.join(name)).unwrap();
    }
    for arguments in [
        ["report", "one", "\u{1b}[2J"].as_slice(),
        &["report", "one", "\u{1b}[2J", "--out", "page.html"],
        &["report", "one", "\u{1b}[2J", "--json"],
    ] {
        let output = lastmile(path, arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_both_shown(&format!("{arguments:?}"), &output);
    }
    for page in ["one/report.html", "page.html"] {
        let text = std::fs::read_to_string(path.join(page)).unwrap();
        assert!(!text.contains(|c| escape::is_hidden(c) && !matches!(c, '\n' | '\t')), "{page}");
        // Two scripts of data, and the program.
        assert_eq!(text.matches("<script").count(), 3, "{page}");
        assert!(!text.contains("-->") && !text.contains("]]>"), "{page}");
    }
}

/// A program at the socket may answer anything.
#[test]
fn an_answer_from_a_control_socket_is_shown() {
    let scratch = Scratch::new();
    let socket = scratch.path.join("control.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let evil = serde_json::Value::from(TEXT);
    let answers = [
        format!("{{\"failed\":{{\"error\":{evil}}}}}"),
        format!("{{\"done\":{{\"message\":{evil}}}}}"),
        format!("{{{evil}:1}}"),
        "\u{1b}[2J\u{202e}".to_owned(),
    ];
    let commands = [["shape", "status"], ["shape", "reload"], ["shape", "stop"], ["emulate", "status"]];
    let current = Arc::new(Mutex::new(String::new()));
    let given = Arc::clone(&current);
    // Ends with the test, because commands differ in their number of requests.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            BufReader::new(&stream).read_line(&mut String::new()).unwrap();
            let _ = writeln!(stream, "{}", given.lock().unwrap());
        }
    });
    for command in commands {
        for answer in &answers {
            current.lock().unwrap().clone_from(answer);
            let output = lastmile(&scratch.path, &[&command, &["--control", "control.sock"][..]].concat());
            assert_both_shown(&format!("{command:?} {answer}"), &output);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                said.contains("touch ran") || said.contains("an answer that cannot be read"),
                "{command:?}: {output:?}"
            );
        }
    }
}

/// On a real terminal, as script(1) records it, data for programs are escaped too.
#[test]
fn a_terminal_gets_data_for_programs_as_text() {
    let scratch = Scratch::new();
    let name = "a\u{1b}[2J\u{9b}\u{202e}.pcap";
    let seed = crate::workspace::root().join("fuzz/seeds/capture/fast-retransmit-raw.pcap");
    std::fs::copy(seed, scratch.path.join(name)).unwrap();
    let exact = lastmile(&scratch.path, &["analyse", "--csv", name]);
    assert!(String::from_utf8(exact.stdout).unwrap().contains(name), "a pipe gets data as it is");
    for how in ["--csv", "--json"] {
        let command = format!("{} analyse {how} a*.pcap", env!("CARGO_BIN_EXE_lastmile"));
        let recorded = Command::new("script")
            .args(["-qec", &command, "/dev/null"])
            .current_dir(&scratch.path)
            .env_remove("NO_COLOR")
            .stdin(Stdio::null())
            .output();
        let Ok(recorded) = recorded else {
            eprintln!("skipped: no script(1)");
            return;
        };
        // The terminal converts a line feed to CR LF.
        let text = String::from_utf8_lossy(&recorded.stdout).replace("\r\n", "\n");
        assert!(text.contains("pcap"), "{text}");
        assert_shown(how, text.as_bytes());
    }
}

#[test]
fn names_are_refused_where_they_are_read() {
    let scratch = Scratch::new();
    let bad: BTreeSet<&str> =
        ["\\u001b[2J", "a\\nb", "\\u009b", "\\u202e", "\\u2028", "\\ra", "\\u0000", "\\u0008", "a\\tb"].into();
    let usual = include_str!("../../../../policies/adsl-optimizer.toml");
    for name in bad {
        let policy = usual.replacen("name = \"interactive\"", &format!("name = \"x{name}\""), 1);
        std::fs::write(scratch.path.join("policy.toml"), policy).unwrap();
        let refused = lastmile(&scratch.path, &["policy", "check", "policy.toml"]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{name}");
        assert!(
            said.contains("policy.toml:")
                && said.contains("name: a name with '\\")
                && said.contains("every other printing character will do"),
            "{said}"
        );
        assert_shown(name, &refused.stderr);
    }
}
