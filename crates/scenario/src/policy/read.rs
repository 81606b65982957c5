//! From the file to the effective policy.

use lastmile_linklayer::preset;
use lastmile_queueing::spec::Spec;
use lastmile_units::{BitRate, ByteCount, Ratio};

use super::autorate::{self, Shaper};
use super::classes::{Around, Sharing, kind_of_queue, scheduled, unshaped, with_bandwidth};
use super::form::{FORMS, Form};
use super::model::{Down, Line, LineOf, Policy, Position, Regulated};
use super::{down, schema};
use crate::diagnostics::Report;
use crate::line;
use crate::queue;
use crate::reader::Table;

const PLACES: &[(&str, Position)] = &[("modem", Position::Modem), ("middlebox", Position::Middlebox)];

/// Reads the policy of a file for `line`.
pub(super) fn policy(root: &Table<'_>, file: &str, line: LineOf) -> Option<Policy> {
    let name = root.optional_name("name").unwrap_or_else(|| {
        let stem = std::path::Path::new(file).file_stem();
        stem.map_or_else(|| file.to_owned(), |stem| stem.to_string_lossy().into_owned())
    });
    let about: String = root.optional("about").unwrap_or_default();
    let (line, line_is_own) = chosen_line(root, line)?;
    let down = match root.table("down") {
        Some(table) => down::read(&table.open(&schema::DOWN), line),
        None => Some((None, Regulated::default())),
    };
    let up = upstream(root, line);
    let ((down, regulated), Upstream { rate, form, largest, place, sharing }) = (down?, up?);
    let Sharing { ack, classes, rules, kind, queue } = sharing;
    if line.up.is_none() && down.is_none() {
        let hint = Some("the rate of a direction that the policy has: up, or down with [down]".to_owned());
        root.error("line", "neither direction is shaped", hint);
        return None;
    }
    let shaper = rate.map(|rate| Shaper { rate, layer: line.up_layer, largest, has_rates: form == Form::Cbq });
    let autorate = autorate::read(root, &line, place, shaper.as_ref(), down.as_ref());
    if root.has("autorate") && autorate.is_none() {
        return None;
    }
    let down = down.map(|down| Down { autorate, ..down });
    let up = regulated.over(queue);
    queue::checked_at(root, "down", &up, &line.up_layer)?;
    Some(Policy {
        name,
        about,
        line,
        line_is_own,
        scheduler: kind,
        place,
        rate,
        largest,
        ack,
        classes,
        rules,
        up,
        down,
        regulated,
        warnings: Report::default(),
    })
}

/// The line that `line` chooses, and whether it is the file's own. The file's own is checked in any case.
fn chosen_line(root: &Table<'_>, line: LineOf) -> Option<(Line, bool)> {
    let own = match root.table("line") {
        Some(table) => Some(own_line(&table.open(&schema::LINE))?),
        None => None,
    };
    match (own, line) {
        (_, LineOf::Caller(line)) | (None, LineOf::PolicyOr(line)) => Some((line, false)),
        (Some(own), LineOf::Policy | LineOf::PolicyOr(_)) => Some((own, true)),
        (None, LineOf::Policy) => {
            root.missing("line");
            None
        }
    }
}

fn own_line(table: &Table<'_>) -> Option<Line> {
    let layer = line::shared_layer(table, preset::IP.link);
    let (up, down): (Option<BitRate>, Option<BitRate>) = (table.optional("up"), table.optional("down"));
    let is_wrong = |key, rate: Option<BitRate>| table.has(key) && rate.is_none();
    if is_wrong("up", up) || is_wrong("down", down) {
        return None;
    }
    Some(Line::steady(up, down, layer, layer))
}

/// The queue of the upstream.
struct Upstream {
    /// `None`: it is not shaped.
    rate: Option<BitRate>,
    form: Form,
    largest: ByteCount,
    place: Position,
    sharing: Sharing,
}

fn upstream(root: &Table<'_>, line: Line) -> Option<Upstream> {
    let scheduler = match root.table("scheduler") {
        Some(table) => table.open(&schema::SCHEDULER),
        None => root.empty("scheduler", &schema::SCHEDULER),
    };
    let form = scheduler.choice("kind", &FORMS);
    let place = scheduler.choice("place", PLACES);
    let share: Option<Ratio> = scheduler.get("share");
    let largest: Option<ByteCount> = scheduler.get("largest");
    let (form, place, share, largest) = (form?, place?, share?, largest?);
    let Some(line_up) = line.up else {
        let (kind, queue) = ("none".to_owned(), unshaped());
        let sharing = Sharing { ack: None, classes: Vec::new(), rules: Vec::new(), kind, queue };
        return Some(Upstream { rate: None, form: Form::None, largest, place: Position::Middlebox, sharing });
    };
    let Some(rate) = share.of_rate(line_up) else {
        scheduler.error("share", format!("{}: {share} of {line_up} is nothing", scheduler.path("share")), None);
        return None;
    };
    if place == Position::Middlebox && share == Ratio::ONE {
        let hint = "a share of 99 % leaves the modem's queue empty".to_owned();
        scheduler.warning(
            "place",
            "a middlebox that lets all of the line through: the modem's queue fills",
            Some(hint),
        );
    }
    let around = Around { line, layer: line.up_layer, rate, largest, form, drains: false };
    let mut sharing = if form == Form::None {
        let queue = unscheduled(root, &scheduler, rate, &around)?;
        Sharing { ack: None, classes: Vec::new(), rules: Vec::new(), kind: kind_of_queue(&scheduler), queue }
    } else {
        let ack = root.table("ack").map(|table| table.open(&schema::ACK));
        scheduled(root, &scheduler, ack, &around)?
    };
    if place == Position::Middlebox {
        sharing.queue = around.one_by_one(line_up, share, sharing.queue);
    }
    Some(Upstream { rate: Some(rate), form, largest, place, sharing })
}

/// One queue, without classes.
fn unscheduled(root: &Table<'_>, scheduler: &Table<'_>, rate: BitRate, around: &Around) -> Option<Spec> {
    let classed: Vec<String> =
        FORMS.iter().filter(|(_, form)| *form != Form::None).map(|(name, _)| format!("{name:?}")).collect();
    for key in ["ack", "class", "rule"] {
        if root.has(key) {
            let hint = format!("each kind of scheduler but \"none\" has classes: {}", classed.join(", "));
            root.error(key, format!("{key} without a scheduler of classes"), Some(hint));
        }
    }
    let Some(queue) = scheduler.table("queue") else { return Some(Spec::fifo(100)) };
    Some(with_bandwidth(around.patient(queue::read(queue, &around.wire())?), rate))
}
