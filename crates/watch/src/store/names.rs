//! The numbers of names that a store has.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, params};

use crate::sample::{Path, QueueName};

/// The numbers of names that the store has.
#[derive(Clone, Default, Debug)]
pub(super) struct Names {
    paths: BTreeMap<Path, i64>,
    queues: BTreeMap<QueueName, i64>,
}

impl Names {
    pub(super) fn path(&mut self, connection: &Connection, path: &Path) -> rusqlite::Result<i64> {
        if let Some(id) = self.paths.get(path) {
            return Ok(*id);
        }
        let id = number_of(
            connection,
            "SELECT id FROM path WHERE target = ?1 AND code_point = ?2",
            "INSERT INTO path (target, code_point) VALUES (?1, ?2)",
            params![path.target, path.code_point],
        )?;
        self.paths.insert(path.clone(), id);
        Ok(id)
    }

    pub(super) fn queue(&mut self, connection: &Connection, queue: &QueueName) -> rusqlite::Result<i64> {
        if let Some(id) = self.queues.get(queue) {
            return Ok(*id);
        }
        let id = number_of(
            connection,
            "SELECT id FROM queue WHERE source = ?1 AND place = ?2 AND class = ?3",
            "INSERT INTO queue (source, place, class) VALUES (?1, ?2, ?3)",
            params![queue.source.name(), queue.place, queue.class],
        )?;
        self.queues.insert(queue.clone(), id);
        Ok(id)
    }
}

fn number_of(
    connection: &Connection,
    select: &str,
    insert: &str,
    key: &[&dyn rusqlite::ToSql],
) -> rusqlite::Result<i64> {
    let known = connection.prepare_cached(select)?.query_row(key, |row| row.get(0)).optional()?;
    match known {
        Some(id) => Ok(id),
        None => connection.prepare_cached(insert)?.insert(key),
    }
}
