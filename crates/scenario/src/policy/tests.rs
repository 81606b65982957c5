use super::*;

/// A policy in which every kind of table occurs.
const EVERYTHING: &str = r#"
[line]
up = "512 kbit/s"
down = "2 Mbit/s"
[scheduler]
[ack]
[[class]]
name = "all"
rate = "50 %"
[[rule]]
class = "all"
[down]
share = "98 %"
drain = {}
police = {}
pace = {}
clamp = { rtt = "100 ms" }
[[down.class]]
name = "all"
rate = "50 %"
"#;

/// With one queue in each direction in place of classes.
const QUEUES: &str = r#"
line = { up = "512 kbit/s", down = "2 Mbit/s" }
scheduler = { kind = "none", queue = {} }
down = { queue = {} }
"#;

/// With a controller of the rates.
const AUTORATE: &str = r#"
line = { up = "512 kbit/s", down = "2 Mbit/s" }
scheduler = { kind = "none", place = "middlebox", share = "95 %" }
down = { share = "90 %" }
autorate = {}
"#;

#[test]
fn every_documented_key_is_read() {
    let mut read = std::collections::BTreeSet::new();
    for text in [EVERYTHING, QUEUES, AUTORATE] {
        let document = Document::parse(Source::new("p", text), &[]).unwrap_or_else(|report| panic!("{report}"));
        let reader = Reader::new(document);
        assert!(read::policy(&reader.root().open(&schema::POLICY), "p", LineOf::Policy).is_some());
        let (report, keys) = reader.finish();
        assert!(!report.has_errors(), "{report}");
        read.extend(keys);
    }
    let documented = SECTIONS.iter().flat_map(|section| section.keys.iter().map(|key| (section.heading, key.name)));
    assert_eq!(documented.filter(|key| !read.contains(key)).collect::<Vec<_>>(), []);
}
