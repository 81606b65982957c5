//! The TCP that every published scenario starts from. A scenario's own `[tcp]` says what differs from it.
//!
//! Publications of 1998 to 2005 do not follow the program's defaults, which are those of a current Linux.

use toml::{Table, Value};

/// Keys of `[tcp]` that hold unless a scenario sets them.
const TCP_OF_THE_TIME: &str = r#"
variant = "sack"
mss = "1460 B"
receive_window = "65535 B"
initial_window = 10
delayed_ack = "40 ms"
ack_every = 2
timestamps = false
window_scale = true
rto = "linux"
min_rto = "200 ms"
max_rto = "120 s"
initial_rto = "1 s"
clock_granularity = "0 ms"
byte_counting = true
limited_transmit = true
idle_restart = true
"#;

/// The scenario `text` with every key of [`TCP_OF_THE_TIME`] that its `[tcp]` does not set.
///
/// A text that is not TOML is returned unchanged: the scenario's parser reports what is wrong with it.
pub(super) fn with_tcp_of_the_time(text: &str) -> String {
    let (Ok(mut document), Ok(base)) = (text.parse::<Table>(), TCP_OF_THE_TIME.parse::<Table>()) else {
        return text.to_owned();
    };
    if let Value::Table(tcp) = document.entry("tcp").or_insert_with(|| Value::Table(Table::new())) {
        for (key, value) in base {
            tcp.entry(key).or_insert(value);
        }
    }
    document.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_keeps_its_own_tcp_and_takes_the_rest_from_the_time() {
        let text = with_tcp_of_the_time("name = \"a\"\n[tcp]\nvariant = \"tahoe\"\n[[traffic]]\nname = \"b\"\n");
        let document: Table = text.parse().unwrap();
        assert_eq!(document["tcp"]["variant"].as_str(), Some("tahoe"));
        assert_eq!(document["tcp"]["min_rto"].as_str(), Some("200 ms"));
        assert_eq!(document["traffic"][0]["name"].as_str(), Some("b"));
        let bare: Table = with_tcp_of_the_time("name = \"a\"\n").parse().unwrap();
        assert_eq!(bare["tcp"]["variant"].as_str(), Some("sack"));
    }

    #[test]
    fn the_tcp_of_the_time_is_understood() {
        TCP_OF_THE_TIME.parse::<Table>().unwrap();
        assert_eq!(with_tcp_of_the_time("["), "[");
    }

    /// No experiment reads a scenario by itself: each goes through the one place that sets its TCP.
    #[test]
    fn scenarios_are_read_in_one_place() {
        fn sources(folder: &std::path::Path, found: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    sources(&path, found);
                } else if std::fs::read_to_string(&path).unwrap().contains(concat!("Scenario::", "parse(")) {
                    found.push(path.file_name().unwrap().to_string_lossy().into_owned());
                }
            }
        }
        let mut found = Vec::new();
        sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
        assert_eq!(found, ["trial.rs"]);
    }
}
