//! Between which nodes a traffic runs, which way, and on which access lines.

use lastmile_model::{NodeIndex, OpenedBy};

use crate::reader::Table;
use crate::traffic::{Form, Surroundings};

/// The directions of the data, true for down; two for both directions. `None` where `from` and `to` give the direction.
pub(crate) type Ways = &'static [Option<bool>];

/// Reads `direction`; `None` if it is wrong.
pub(crate) fn ways(table: &Table<'_>, form: Form) -> Option<Ways> {
    const DOWN: Ways = &[Some(true)];
    const UP: Ways = &[Some(false)];
    const BOTH: Ways = &[Some(true), Some(false)];
    if !table.has("direction") {
        let named = table.has("from") || table.has("to");
        return Some(match form {
            Form::Swarm | Form::Conference => BOTH,
            Form::Web | Form::Video | Form::Game if !named => DOWN,
            Form::Backup if !named => UP,
            _ => &[None],
        });
    }
    table.choice("direction", &[("down", DOWN), ("up", UP), ("both", BOTH)])
}

/// Between which nodes, and who opens the connection by default.
#[derive(Clone)]
pub(crate) struct Ends {
    pub(crate) from: NodeIndex,
    pub(crate) to: NodeIndex,
    pub(crate) label: String,
    pub(crate) opened_by: OpenedBy,
}

impl Ends {
    /// The ends on each line that the traffic runs on, with what its name ends in there.
    pub(crate) fn read(
        table: &Table<'_>,
        form: Form,
        ways: &[Option<bool>],
        around: &Surroundings<'_, '_>,
    ) -> Option<Vec<(String, Self)>> {
        let named = table.has("from") || table.has("to");
        // Of both ways the one up comes from here, and the other is turned.
        let down = if ways.len() > 1 { Some(false) } else { ways.first().copied().flatten() };
        if named {
            if table.has("line") {
                table.error("line", "line together with from and to, which name its nodes", None);
                return None;
            }
            return Self::named(table, down, around).map(|ends| vec![(String::new(), ends)]);
        }
        let Some((clients, server)) = &around.ends else {
            if !around.topology.is_complete() {
                return None;
            }
            let hint = Some("name the nodes with from and to".to_owned());
            if table.has("direction") {
                table.error("direction", "direction without an [access] line", hint);
            } else {
                table.error("kind", "neither from and to nor a direction", hint);
            }
            return None;
        };
        if down.is_none() && !table.has("direction") && form != Form::Ping {
            let hint = "\"down\" (from the server) or \"up\" (to the server); or name nodes with from and to";
            table.error("kind", "no direction", Some(hint.into()));
            return None;
        }
        let on = |client: NodeIndex| {
            if down.unwrap_or(false) {
                Self { from: *server, to: client, label: "down".into(), opened_by: OpenedBy::Receiver }
            } else {
                Self { from: client, to: *server, label: "up".into(), opened_by: OpenedBy::Sender }
            }
        };
        if !table.has("line") {
            let suffix = |line: usize| if clients.len() > 1 { format!("-line-{line}") } else { String::new() };
            return Some((1..).zip(clients).map(|(line, client)| (suffix(line), on(*client))).collect());
        }
        let lines = table.each::<u64>("line");
        let several = lines.len() > 1;
        let mut read = Vec::new();
        for (number, (place, line)) in lines.into_iter().enumerate() {
            let client = usize::try_from(line).ok().and_then(|line| clients.get(line.checked_sub(1)?));
            let suffix = if several { format!("-line-{line}") } else { String::new() };
            match client {
                Some(client) if read.iter().all(|(known, _)| *known != suffix) || number == 0 => {
                    read.push((suffix, on(*client)));
                }
                Some(_) => table.error_at(place, "line", format_args!("line {line} is listed twice")),
                None => {
                    let lines = clients.len();
                    table.error_at(
                        place,
                        "line",
                        format_args!("there is no line {line}; [access] has lines = {lines}"),
                    );
                }
            }
        }
        if read.is_empty() { None } else { Some(read) }
    }

    /// A copy of the ends, given for data that goes up, turned for data that goes down or up.
    pub(crate) fn turned(&self, down: Option<bool>) -> Self {
        if down == Some(true) {
            Self { from: self.to, to: self.from, label: "down".into(), opened_by: OpenedBy::Receiver }
        } else {
            Self { label: "up".into(), ..self.clone() }
        }
    }

    fn named(table: &Table<'_>, down: Option<bool>, around: &Surroundings<'_, '_>) -> Option<Self> {
        for (key, other) in [("from", "to"), ("to", "from")] {
            if !table.has(key) {
                table.error(other, format!("{other} without {key}"), Some(format!("name both nodes: add {key}")));
                return None;
            }
        }
        let (from, to) = (around.topology.find(table, "from"), around.topology.find(table, "to"));
        let (from, to) = (from?, to?);
        if from == to {
            table.error("to", "from and to are the same node", None);
            return None;
        }
        let nodes = &around.topology.nodes;
        Some(match down {
            Some(true) => Self { from, to, label: "down".into(), opened_by: OpenedBy::Receiver },
            Some(false) => Self { from, to, label: "up".into(), opened_by: OpenedBy::Sender },
            None => {
                let label = format!("{} to {}", nodes[from].name, nodes[to].name);
                Self { from, to, label, opened_by: OpenedBy::Sender }
            }
        })
    }
}
