//! `kind = "backup"`: files copied one after another.

use std::sync::Arc;

use lastmile_model::{Backup, FileSizes, OpenedBy, Source, Transport};
use lastmile_units::{ByteCount, Duration};

use crate::quic;
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};
use crate::tcp;

pub(crate) static BACKUP: Section = Section {
    heading: "`kind = \"backup\"`",
    about: "A client that copies files to a server, or from one, over connections that stay open: a request and an \
            answer for each file; `count` is the number of clients. The direction is `up` unless said otherwise. \
            Results have the time to the end, files a second, and the share of the time that files wait for answers. \
            [The page of the model](../mechanisms/backup.md) has sources and limits.",
    keys: &[
        Key::optional("files", Kind::Count, "as many as the run has time for", "Files to copy.")
            .at_least("1")
            .at_most("10000000"),
        Key::optional(
            "file_size",
            Kind::Bytes,
            "drawn by the seed: lognormal, median 13 kB, mean 270 kB, up to 512 MB (Agrawal and others, FAST 2009)",
            "Bytes of each file.",
        )
        .at_least("1 B")
        .at_most("1000 GB"),
        Key::with_default(
            "request",
            Kind::Bytes,
            "350 B",
            "Bytes that ask for a file, or that precede it on its way up.",
        )
        .at_least("1 B")
        .at_most("64 KiB"),
        Key::with_default(
            "reply",
            Kind::Bytes,
            "200 B",
            "Bytes of the server's answer to a file on its way up; not where all files come down.",
        )
        .at_least("1 B")
        .at_most("64 KiB"),
        Key::with_default("parallel", Kind::Count, "1", "Connections, each with a file at a time.")
            .at_least("1")
            .at_most("64"),
        Key::with_default(
            "pause",
            Kind::Time,
            "0 s",
            "Time from the end of a file to the next file of the same connection: the client reads, compares, \
             compresses.",
        )
        .at_most("1 h"),
        quic::TRANSPORT,
        tcp::SETTINGS,
        quic::SETTINGS,
    ],
};

/// The backup of a table. `opened_by` is the end of the client.
pub(crate) fn read(table: &Table<'_>, opened_by: OpenedBy, transport: Option<Transport>) -> Option<Source> {
    let files = if table.has("files") { Some(table.optional::<u64>("files")?) } else { None };
    let sizes = if table.has("file_size") {
        FileSizes::Fixed(table.optional::<ByteCount>("file_size")?)
    } else {
        FileSizes::Published
    };
    let (request, reply) = (table.get::<ByteCount>("request"), table.get::<ByteCount>("reply"));
    let (parallel, pause) = (table.get::<u64>("parallel"), table.get::<Duration>("pause"));
    let both = table.optional::<String>("direction").is_some_and(|direction| direction == "both");
    if table.has("reply") && opened_by == OpenedBy::Receiver && !both {
        let message = format!("{}: a file that comes down is the answer itself", table.path("reply"));
        table.error("reply", message, Some("remove reply, or direction = \"up\"".into()));
    }
    Some(Source::Backup(Arc::new(Backup {
        transport: transport?,
        opened_by,
        files,
        sizes,
        request: u32::try_from(request?.as_u64()).ok()?,
        reply: u32::try_from(reply?.as_u64()).ok()?,
        parallel: u32::try_from(parallel?).ok()?,
        pause: pause?,
    })))
}
