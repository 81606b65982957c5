//! `lastmile plot`, `lastmile schema` and `lastmile man`.

use crate::docs::STARVATION;
use crate::json::json;
use crate::transcript::Scratch;
use crate::workspace::root;

const SHORT: &str = "scenarios/upload-starves-download.toml --duration '65 s'";

fn made(scratch: &Scratch, command: &str, file: &str) -> Vec<u8> {
    let output = scratch.run(command);
    assert_eq!((output.code, output.stdout.as_str()), (0, ""), "{command}: {}", output.stderr);
    assert_eq!(output.stderr, format!("figure: {file}\n"), "{command}");
    std::fs::read(scratch.path.join(file)).unwrap()
}

#[test]
fn the_ending_of_the_name_is_the_format_and_equal_seeds_give_equal_drawings_and_pixels() {
    let scratch = Scratch::new();
    for (file, signature) in [("a.svg", &b"<svg"[..]), ("b.PDF", b"%PDF-"), ("c.png", b"\x89PNG")] {
        let plot = format!("lastmile plot {SHORT} --panel Goodput --panel rtt_s --out {file}");
        let first = made(&scratch, &plot, file);
        assert!(first.starts_with(signature), "{file}");
        let second = made(&scratch, &plot, file);
        // The library that writes PDF orders its objects at random.
        assert!(first == second || file == "b.PDF", "{file}");
    }
    let svg = std::fs::read_to_string(scratch.path.join("a.svg")).unwrap();
    assert!(svg.contains(">Goodput, ") && svg.contains("Round-trip time of probes"), "{svg:.300}");
    assert!(!svg.contains("Congestion window"));
}

#[test]
fn the_list_has_the_panels_and_an_unknown_one_is_an_error_that_leaves_no_file() {
    let scratch = Scratch::new();
    let listed = scratch.run(&format!("lastmile plot {SHORT} --list"));
    assert!(listed.stdout.starts_with("Goodput\nQueue\n"), "{}", listed.stdout);
    let wrong = scratch.run(&format!("lastmile plot {SHORT} --panel Godput --out a.svg"));
    assert_eq!(
        (wrong.code, wrong.stderr.as_str()),
        (2, "error: no panel is called \"Godput\"\nhint: did you mean \"Goodput\"?\n")
    );
    assert!(!scratch.path.join("a.svg").exists());
    let format = scratch.run(&format!("lastmile plot {SHORT} --out a.jpg"));
    let expected = "error: --out: a.jpg names no format of figures\nhint: a name that ends in .svg, .pdf or .png\n";
    assert_eq!((format.code, format.stderr.as_str()), (2, expected));
}

#[test]
fn folders_of_results_are_columns_or_curves_of_common_panels() {
    let scratch = Scratch::new();
    for policy in ["none", "cake"] {
        assert_eq!(scratch.run(&format!("lastmile run {SHORT} --policy {policy} --out out/{policy}")).code, 0);
    }
    let text = |command: &str| String::from_utf8(made(&scratch, command, "a.svg")).unwrap();
    let apart = text("lastmile plot out/none out/cake --panel Goodput --out a.svg");
    assert_eq!(apart.matches(">Goodput, ").count(), 2);
    assert!(apart.contains(">none<") && apart.contains(">cake<"));
    let together = text(
        "lastmile plot out/none out/cake --together --label before --label after --panel 'Goodput of download' \
         --out a.svg",
    );
    assert_eq!(together.matches("Goodput of download, ").count(), 1, "{together:.600}");
    assert!(together.contains(">before<") && together.contains(">after<"));
    let policy = scratch.run("lastmile plot out/none --policy cake --out a.svg");
    assert!(policy.stderr.starts_with("error: --policy: out/none has results"), "{}", policy.stderr);
    let changed = scratch.run("lastmile plot out/none --set 'access.up.rate=10 Mbit/s' --out a.svg");
    assert_eq!(
        (changed.code, changed.stderr.as_str()),
        (
            2,
            "error: --set, --seed, --duration: out/none has results of a run\nhint: these options are for scenario \
             files\n"
        )
    );
    let labels = scratch.run("lastmile plot out/none out/cake --label one --out a.svg");
    assert_eq!(
        labels.stderr,
        "error: 1 of --label for 2 inputs\nhint: --label is given once for each input, or not at all\n"
    );
}

/// As `compare` takes them: curves of one list, of labelled names, and of two options.
#[test]
fn policies_may_be_a_list() {
    let scratch = Scratch::new();
    let drawn = |policies: &str| {
        let plot = format!("lastmile plot {SHORT} {policies} --panel 'Goodput of download' --out a.svg");
        String::from_utf8(made(&scratch, &plot, "a.svg")).unwrap()
    };
    let list = drawn("--policy none,cake");
    assert!(list.contains(">none<") && list.contains(">cake<"), "{list:.600}");
    assert_eq!(list, drawn("--policy none --policy cake"));
    let labelled = drawn("--policy 'as it is=none,with CAKE=cake'");
    assert!(labelled.contains(">as it is<") && labelled.contains(">with CAKE<"), "{labelled:.600}");
}

#[test]
fn a_capture_has_panels_of_its_own() {
    let scratch = Scratch::new();
    let captured = scratch.run(&format!("lastmile run {SHORT} --out out --capture up"));
    assert_eq!(captured.code, 0, "{}", captured.stderr);
    let listed = scratch.run("lastmile plot out/up.pcapng --list");
    assert_eq!(listed.stdout, "Sequence\nWindows\nRound-trip time\nThroughput\nACK spacing\n", "{}", listed.stderr);
    let svg = String::from_utf8(made(&scratch, "lastmile plot out/up.pcapng --panel throughput --out a.svg", "a.svg"))
        .unwrap();
    assert!(svg.contains(">Throughput, ") && !svg.contains(">Sequence, "));
    let mixed = scratch.run("lastmile plot out/up.pcapng out --out a.svg");
    assert!(mixed.stderr.starts_with("error: a capture is drawn alone"), "{}", mixed.stderr);
}

/// The font of the crate `picture` has at most 6.6 units for a character of 11.
#[test]
fn the_footer_has_as_many_lines_as_the_inputs_need() {
    let scratch = Scratch::new();
    let together = "lastmile plot scenarios/upload-starves-download.toml --set 'traffic.upload.start=4 s' \
                    --duration '20 s' --policy none --policy cake --panel 'Goodput of download' --out a.svg";
    let sets = "--set access.up.queue.limit='100 packets' --set access.down.queue.limit='200 packets' \
                --set tcp.receive_window='1 MiB'";
    for command in [together, &*format!("lastmile plot {SHORT} {sets} --panel Goodput --out a.svg")] {
        let svg = String::from_utf8(made(&scratch, command, "a.svg")).unwrap();
        let notes = svg.split("<text class=\"note\"").skip(1).filter_map(|rest| rest.split(['>', '<']).nth(1));
        // Notes of panels come first.
        let lines: Vec<&str> = notes.skip_while(|note| !note.starts_with("upload-starves-download.toml · ")).collect();
        assert!(lines.len() >= 2, "{lines:?}");
        assert!(lines.last().unwrap().contains("lastmile "), "{lines:?}");
        for line in &lines {
            let count = u32::try_from(line.chars().count()).unwrap();
            assert!(f64::from(count) * 6.6 <= 560.0, "a column has 560 units: {line}");
        }
    }
}

/// The command in the guide draws the picture of README.md.
#[test]
fn a_guide_has_the_command_of_the_picture() {
    let guide = std::fs::read_to_string(root().join("docs/guides/plotting.md")).unwrap();
    let shown = guide.replace("\\\n    ", "");
    assert!(shown.contains(&format!("\n{STARVATION} --out docs/images/starvation.svg\n")), "{STARVATION}");
}

#[test]
fn both_schemas_are_json_with_their_draft() {
    let scratch = Scratch::new();
    for (file, key) in [("scenario", "access"), ("policy", "scheduler")] {
        let schema = json(&scratch, &format!("lastmile schema {file}"));
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert!(schema["properties"][key]["description"].is_string(), "{file}");
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let scratch = Scratch::new();
    let written = scratch.run("lastmile man pages");
    assert_eq!((written.code, written.stdout.as_str()), (0, ""), "{}", written.stderr);
    for (name, text) in [
        ("lastmile.1", "lastmile\\-run(1)"),
        ("lastmile-run.1", "SH SYNOPSIS"),
        ("lastmile-shape-unit.1", "unit for systemd"),
    ] {
        let page = std::fs::read_to_string(scratch.path.join("pages").join(name)).unwrap();
        assert!(page.contains(text), "{name}: {page:.300}");
    }
}
