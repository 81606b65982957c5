//! The dashboard of a shaper: its reports, and what it can be asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use lastmile_dashboard::hub::{Hub, Program, Question, Reloading};
use lastmile_dashboard::report::{Cell, Report, Table, Unit};
use lastmile_live::bump::Record;
use lastmile_live::control::{Asker, Request, Verb};
use lastmile_packet::{FlowId, FlowKey};
use lastmile_scenario::policy::ready;
use lastmile_units::{Duration, Instant};

use super::super::control::{self, Answer};
use super::super::live_view::hops::{States, intervals};
use super::super::web::charts;
use super::replacement;
use super::shared::Shared;
use super::status::Status;
use super::what_if;

/// Flows in the table of each direction.
const MOST_FLOWS: usize = 10;

/// The time that the table of flows covers.
const FLOWS_SPAN: Duration = Duration::from_s(5);

/// Makes the reports.
pub(super) struct Reporter {
    shared: Arc<Shared>,
    before: Option<States>,
    /// The number of the policy in force at the preceding report.
    policy: u64,
}

impl Reporter {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, before: None, policy: 0 }
    }

    /// The report of this second; `None` once the shaper has ended.
    pub(super) fn sample(&mut self, hub: &Hub) -> Option<Report> {
        let now = self.shared.handle.states()?;
        let records = self.shared.handle.records();
        let in_force = self.shared.in_force();
        let mut recent = self.shared.recent();
        if self.policy != in_force.number {
            // Classes of two policies do not compare.
            recent.clear();
            if self.policy > 0 {
                hub.mark(in_force.since_ms, format!("{} is in force", in_force.name()));
            }
            self.policy = in_force.number;
        }
        recent.push(self.before.as_ref(), &now);
        drop(recent);
        let hops = intervals(self.before.as_ref(), &now);
        let (mut groups, mut tables) = (Vec::new(), Vec::new());
        for (shown, hop) in in_force.directions.iter().zip(&hops) {
            let classes = charts::classes(&shown.classes, hop);
            let title = format!("{}: {}, {}", shown.name, shown.rate, shown.link_layer);
            groups.push(charts::group(shown.name, title, Some(shown.rate.as_bps()), hop, &classes));
            if !classes.is_empty() {
                tables.push(charts::table(format!("classes {}", shown.name), &classes, hop.wire_per_byte()));
            }
        }
        for (record, name) in records.iter().flatten().zip(["up", "down"]) {
            tables.push(flows(record, name, now.0));
        }
        let status = format!("policy {}", in_force.name());
        drop(in_force);
        self.before = Some(now);
        Some(Report { status, groups, tables, ..Report::default() })
    }
}

/// The flows with the most bytes lately.
#[expect(clippy::cast_precision_loss, reason = "for the eye only")]
fn flows(record: &Record, direction: &str, now: Instant) -> Table {
    let since = Instant::from_ps(now.as_ps().saturating_sub(FLOWS_SPAN.as_ps()));
    let mut bytes: BTreeMap<FlowId, (u64, u64)> = BTreeMap::new();
    for meta in record.packets(since) {
        let (packets, sum) = bytes.entry(meta.flow).or_default();
        (*packets, *sum) = (*packets + 1, *sum + u64::from(meta.ip_len));
    }
    let keys = record.flows(since);
    let seconds = FLOWS_SPAN.as_secs_f64();
    let mut largest: Vec<(FlowId, (u64, u64))> = bytes.into_iter().collect();
    largest.sort_unstable_by_key(|(flow, (_, bytes))| (std::cmp::Reverse(*bytes), *flow));
    let rows = largest.iter().take(MOST_FLOWS).map(|(flow, (packets, bytes))| {
        let [source, destination, protocol] = words(keys.get(flow));
        vec![
            Cell::Text(source),
            Cell::Text(destination),
            Cell::Text(protocol),
            Some(*bytes as f64 * 8.0 / seconds).into(),
            Some(*packets as f64 / seconds).into(),
        ]
    });
    Table {
        title: format!("largest of {} flows {direction}, last {seconds} s, on arrival", largest.len()),
        columns: vec![
            ("from", Unit::Count),
            ("to", Unit::Count),
            ("protocol", Unit::Count),
            ("IP rate", Unit::BitsPerSecond),
            ("packets", Unit::PerSecond),
        ],
        rows: rows.collect(),
    }
}

/// Source, destination and protocol of a flow.
fn words(key: Option<&FlowKey>) -> [String; 3] {
    let Some(FlowKey { addresses, protocol }) = key else {
        return ["not IP, or unreadable".to_owned(), "-".to_owned(), "-".to_owned()];
    };
    let with_port = |address: std::net::IpAddr, port: u16| match protocol {
        6 | 17 => std::net::SocketAddr::new(address, port).to_string(),
        _ => address.to_string(),
    };
    let protocol = match protocol {
        1 | 58 => "ICMP".to_owned(),
        6 => "TCP".to_owned(),
        17 => "UDP".to_owned(),
        number => number.to_string(),
    };
    let source = with_port(addresses.ip.source(), addresses.source_port);
    [source, with_port(addresses.ip.destination(), addresses.destination_port), protocol]
}

/// A shaper, for the dashboard.
pub(super) struct Shaper {
    pub(super) shared: Arc<Shared>,
    pub(super) asker: Asker,
}

impl Program for Shaper {
    fn policies(&self) -> Vec<String> {
        ready::NAMES.iter().map(|name| (*name).to_owned()).collect()
    }

    fn what_if(&self, question: &Question) -> Result<String, String> {
        what_if::answer(&self.shared, question)
    }

    fn reload(&self, policy: Option<&Question>) -> Option<Reloading> {
        let asker = self.asker.clone();
        let request = Request { policy: policy.map(replacement::asked), ..Verb::Reload.into() };
        Some(Box::pin(async move {
            let answer = asker.ask(request.to_string()).await.ok_or("the shaper ends")?;
            match Answer::<Status>::read(&answer) {
                Ok(Answer::Done { message }) => Ok(message),
                Ok(Answer::Failed { error }) => Err(error),
                Ok(Answer::Status(_)) => Err("the shaper answered something else".to_owned()),
                Err(failure) => Err(control::words(&failure)),
            }
        }))
    }
}
