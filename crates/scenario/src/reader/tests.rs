use lastmile_units::{BitRate, Duration, Limit, PacketCount, Ratio};

use super::*;
use crate::diagnostics::Source;
use crate::overrides::Override;

static ROOT: Section = Section {
    heading: "the top level",
    about: "",
    keys: &[
        Key::required("name", Kind::Text, "what the run is called"),
        Key::with_default("duration", Kind::Time, "10 s", "").at_least("1 ms").at_most("2 h"),
        Key::optional("line", Kind::Table("[line]"), "none", ""),
        Key::optional("traffic", Kind::Tables("[[traffic]]"), "none", ""),
    ],
};
static LINE: Section = Section {
    heading: "[line]",
    about: "",
    keys: &[
        Key::required("rate", Kind::Rate, "rate of the line, such as \"512 kbit/s\""),
        Key::optional("limit", Kind::Limit, "unlimited", ""),
        Key::with_default("loss", Kind::Share, "0 %", "").at_most("50 %"),
    ],
};
static TRAFFIC: Section = Section {
    heading: "[[traffic]]",
    about: "",
    keys: &[Key::required("kind", Kind::Choice(&["bulk", "ping"]), ""), Key::optional("name", Kind::Text, "", "")],
};
static BULK: Section =
    Section { heading: "bulk", about: "", keys: &[Key::optional("bytes", Kind::Bytes, "all day", "")] };
static PING: Section = Section {
    heading: "ping",
    about: "",
    keys: &[Key::with_default("interval", Kind::Time, "1 s", ""), Key::with_default("count", Kind::Count, "5", "")],
};

#[derive(Debug, PartialEq)]
struct Read {
    duration: Option<Duration>,
    rate: Option<BitRate>,
    limit: Option<Limit>,
    kinds: Vec<&'static str>,
    intervals: Vec<Duration>,
}

fn read(text: &str, overrides: &[&str]) -> Result<Read, String> {
    let overrides: Vec<Override> = overrides.iter().map(|pair| Override::set(pair)).collect();
    let document = Document::parse(Source::new("f.toml", text), &overrides).map_err(|r| r.to_string())?;
    let reader = Reader::new(document);
    let root = reader.root().open(&ROOT);
    let _name: Option<String> = root.get("name");
    let line = root.table("line").map(|line| line.open(&LINE));
    let mut read = Read {
        duration: root.get("duration"),
        rate: line.as_ref().and_then(|line| line.get("rate")),
        limit: line.as_ref().and_then(|line| line.optional("limit")),
        kinds: Vec::new(),
        intervals: Vec::new(),
    };
    let _loss: Option<Ratio> = line.as_ref().and_then(|line| line.get("loss"));
    let variants = [
        Variant { name: "bulk", section: &BULK, value: "bulk" },
        Variant { name: "ping", section: &PING, value: "ping" },
    ];
    for traffic in root.tables("traffic") {
        let Some((kind, table)) = traffic.open_kind(&TRAFFIC, &variants) else { continue };
        read.kinds.push(kind);
        if kind == "ping" {
            read.intervals.extend(table.get::<Duration>("interval"));
            let _count: Option<u64> = table.get("count");
        }
    }
    let (report, _) = reader.finish();
    if report.is_empty() { Ok(read) } else { Err(report.to_string()) }
}

#[test]
fn tables_inline_tables_and_lists_read_alike() {
    let expected = Read {
        duration: Some(Duration::from_s(10)),
        rate: Some(BitRate::from_kbit_per_s(512)),
        limit: Some(Limit::Packets(PacketCount::new(5))),
        kinds: vec!["ping", "bulk"],
        intervals: vec![Duration::from_s(1)],
    };
    let long = "name = \"x\"\n[line]\nrate = \"512 kbit/s\"\nlimit = \"5 packets\"\n[[traffic]]\nkind = \"ping\"\n\
         [[traffic]]\nkind = \"bulk\"\n";
    let short = "name = \"x\"\nline = { rate = \"512 kbit/s\", limit = \"5 packets\" }\ntraffic = [{ kind = \"ping\" \
         }, { kind = \"bulk\" }]\n";
    let dotted = "name = \"x\"\nline.rate = \"512 kbit/s\"\nline.limit = \"5 packets\"\ntraffic = [{ kind = \"ping\" \
         }, { kind = \"bulk\" }]\n";
    for text in [long, short, dotted] {
        assert_eq!(read(text, &[]).as_ref(), Ok(&expected), "{text}");
    }
}

#[test]
fn an_override_is_read_as_the_same_line_in_the_file_would_be() {
    let text = "name = \"x\"\n[line]\nrate = \"512 kbit/s\"\n[[traffic]]\nkind = \"ping\"\nname = \"p\"\n";
    let read_ok = read(text, &["line.rate=1 Mbit/s", "traffic.p.interval=20ms", "duration=1min"]).unwrap();
    assert_eq!(read_ok.rate, Some(BitRate::from_mbit_per_s(1)));
    assert_eq!(read_ok.intervals, [Duration::from_ms(20)]);
    assert_eq!(read_ok.duration, Some(Duration::from_s(60)));
    assert_eq!(
        read(text, &["line.rat=1 Mbit/s", "traffic.p.interval=20", "line.loss=60 %"]).unwrap_err(),
        "error: --set line.rat=1 Mbit/s: unknown key \"rat\" in [line]\nhint: did you mean \"rate\"?\n\n\
         error: --set line.loss=60 %: line.loss: 60 % is above 50 %\n\n\
         error: --set traffic.p.interval=20: traffic.p.interval: \"20\" has no unit; write for example \"20 ms\" \
         (units: ps, ns, us, ms, s, min or h)"
    );
}

/// Each case: the file, and the whole of what is said about it.
#[test]
fn every_finding_names_its_place_and_what_would_be_right() {
    let cases = [
        ("duration = \"1 s\"", "error: f.toml: missing key \"name\" at the top level\nhint: what the run is called"),
        (
            "name = \"x\"\n[line]\n",
            "error: f.toml:2:1: missing key \"rate\" in [line]\n  |\n2 | [line]\n  | ^^^^^^\nhint: rate of the \
             line, such as \"512 kbit/s\"",
        ),
        (
            "name = \"x\"\nline = { rate = \"0 kbit/s\" }",
            "error: f.toml:2:17: line.rate: \"0 kbit/s\" is zero; a bit rate is above zero, for example \"512 \
             kbit/s\"\n  |\n2 | line = { rate = \"0 kbit/s\" }\n  |                 ^^^^^^^^^^",
        ),
        (
            "name = 5\nduration = true",
            "error: f.toml:1:8: name: a whole number, where a text is expected\n  |\n1 | name = 5\n  |        ^\n\n\
             error: f.toml:2:12: duration: a switch (true or false), where a time is expected, for example \"20 \
             ms\"\n  |\n2 | duration = true\n  |            ^^^^",
        ),
        (
            "name = \"x\"\nduration = \"3 h\"",
            "error: f.toml:2:12: duration: 10800 s is above 2 h\n  |\n2 | duration = \"3 h\"\n  |            ^^^^^\n\
             hint: 1 ms to 2 h",
        ),
        (
            "name = \"x\"\nline = 5\ntraffic = { kind = \"ping\" }",
            "error: f.toml:2:8: line is a whole number, where a table is expected\n  |\n2 | line = 5\n  |        ^\n\n\
             error: f.toml:3:11: traffic is a table, where a list of tables is expected\n  |\n3 | traffic = { kind \
             = \"ping\" }\n  |           ^^^^^^^^^^^^^^^^^\nhint: write [[traffic]] above each entry",
        ),
        (
            "name = \"x\"\n[[traffic]]\nkind = \"pong\"",
            "error: f.toml:3:8: unknown kind \"pong\"\n  |\n3 | kind = \"pong\"\n  |        ^^^^^^\nhint: did you \
             mean \"ping\"?",
        ),
        (
            "name = \"x\"\n[[traffic]]\nkind = \"bulk\"\nname = \"b\"\ninterval = \"1 s\"",
            "error: f.toml:5:1: unknown key \"interval\" in [[traffic]] \"b\"\n  |\n5 | interval = \"1 s\"\n  | \
             ^^^^^^^^\nhint: kind \"bulk\" has no such key; \"ping\" has",
        ),
        (
            "name = \"x\"\n[[traffic]]\nkind = \"ping\"\ncount = -1\n[[traffic]]\nkind = \"ping\"\ncount = \"7\"",
            "error: f.toml:4:9: traffic.0.count: -1 is negative\n  |\n4 | count = -1\n  |         ^^\n\n\
             error: f.toml:7:9: traffic.1.count: \"7\" is a text, where a whole number is expected, without \
             quotes\n  |\n7 | count = \"7\"\n  |         ^^^",
        ),
        (
            "name = \"x\"\nwarp = 9",
            "error: f.toml:2:1: unknown key \"warp\" at the top level\n  |\n2 | warp = 9\n  | ^^^^\nhint: known \
             keys: name, duration, line, traffic",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text, &[]).unwrap_err(), expected);
    }
}
