//! What `remedy` in `[access]` is short for.

use lastmile_queueing::Match;
use lastmile_queueing::ack::{filter, sad};
use lastmile_queueing::spec::{ClassSpec, Spec};

use crate::reader::Table;

/// What is done about ACKs that wait upstream: `remedy` in `[access]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remedy {
    /// Nothing: the queue is as the file says.
    None,
    /// A Smart ACK Dropper over the queue.
    Sad,
    /// The queue filters ACKs.
    AckFilter,
    /// Pure ACKs go first.
    AckPriority,
    /// Pure ACKs go first, and a Smart ACK Dropper keeps one of each flow waiting among them.
    SadPriority,
}

impl Remedy {
    /// The names in files.
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("none", Self::None),
        ("sad", Self::Sad),
        ("ack-filter", Self::AckFilter),
        ("ack-priority", Self::AckPriority),
        ("sad-priority", Self::SadPriority),
    ];

    /// The name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, remedy)| *remedy == self).map_or("none", |(name, _)| name)
    }
}

/// `spec` with the remedy over it, or an error at `remedy`.
pub(crate) fn with_remedy(table: &Table<'_>, spec: Spec, remedy: Remedy) -> Option<Spec> {
    let (limit, drop) = match (&spec, remedy) {
        (_, Remedy::None) => return Some(spec),
        (Spec::Fifo { limit, drop }, _) => (*limit, *drop),
        _ => {
            let message =
                format!("a remedy for a queue that is no FIFO: {} has a kind of its own", table.path("up.queue"));
            let hint = "leave out the remedy, or the queue's kind: see the reference for what each remedy is short for";
            table.error("remedy", message, Some(hint.into()));
            return None;
        }
    };
    Some(match remedy {
        Remedy::None => spec,
        Remedy::Sad => sad_over(spec),
        Remedy::AckFilter => Spec::AckFilter { limit, drop, rules: filter::Rules::default() },
        Remedy::AckPriority => acks_first(spec.clone(), spec),
        Remedy::SadPriority => acks_first(sad_over(spec.clone()), spec),
    })
}

fn sad_over(queue: Spec) -> Spec {
    Spec::Sad {
        duplicates: sad::Duplicates::Keep,
        report: sad::Report::None,
        exempt: Match::Never,
        queue: Box::new(queue),
    }
}

/// Two classes: pure ACKs, then the rest.
pub(super) fn acks_first(acks: Spec, rest: Spec) -> Spec {
    let acks = ClassSpec { matches: Match::PureAck, queue: acks };
    Spec::Priority { classes: vec![acks, ClassSpec { matches: Match::Any, queue: rest }] }
}
