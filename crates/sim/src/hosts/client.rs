//! Users of applications with the sums over their connections.

use lastmile_model::{Http, OpenedBy, Source, Transport};
use lastmile_queueing::random::Stream;

use super::{Totals, User};

/// A user with the sums over the connections.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) traffic: u32,
    pub(crate) totals: Totals,
    pub(crate) transport: Transport,
    /// The end of the client, which opens connections and requests.
    pub(crate) opened_by: OpenedBy,
    /// A connection stays open after a response.
    pub(crate) keep_open: bool,
    pub(crate) user: User,
}

impl Client {
    /// The client of traffic number `traffic`; `None` unless its source requests data over connections of its own.
    pub(crate) fn new(traffic: u32, source: &Source, random: Stream) -> Option<Self> {
        let (opened_by, keep_open) = match source {
            Source::Backup(backup) => (backup.opened_by, true),
            Source::Web(web) => (OpenedBy::Receiver, web.http != Http::One0),
            _ => (OpenedBy::Receiver, true),
        };
        Some(Self {
            traffic,
            totals: Totals::default(),
            transport: source.transport()?.clone(),
            opened_by,
            keep_open,
            user: User::new(source, random)?,
        })
    }
}
