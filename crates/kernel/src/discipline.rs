//! A queueing discipline as words of tc(8).

use lastmile_queueing::fair::Per;
use lastmile_units::Duration;

use crate::command::Value;

/// A discipline: its kind and options, and the values to read back.
#[derive(Clone, Debug)]
pub(crate) struct Discipline {
    pub(crate) words: String,
    pub(crate) values: Vec<(&'static str, Value)>,
    /// The owner of a queue, if not each flow, by the options of tc-flow(8).
    pub(crate) hosts: Option<String>,
}

impl Discipline {
    pub(crate) fn new(kind: &str) -> Self {
        Self { words: kind.to_owned(), values: vec![("kind", Value::Text(kind.to_owned()))], hosts: None }
    }

    /// The name of its kind.
    pub(crate) fn kind(&self) -> &str {
        self.words.split(' ').next().unwrap_or_default()
    }

    /// Adds a number, as an option and as a value to read back.
    pub(crate) fn number(mut self, option: &'static str, number: u64) -> Self {
        self.values.push((option, Value::Number(i64::try_from(number).unwrap_or(i64::MAX))));
        self.option(&format!("{option} {number}"))
    }

    /// Divides hosts, not flows, among `buckets`.
    pub(crate) fn per(mut self, per: Per, buckets: u32) -> Self {
        self.hosts = per.tc_keys().map(|keys| format!("hash keys {keys} divisor {buckets}"));
        self
    }

    pub(crate) fn option(mut self, option: &str) -> Self {
        self.words.push(' ');
        self.words.push_str(option);
        self
    }

    pub(crate) fn reads(mut self, key: &'static str, value: Value) -> Self {
        self.values.push((key, value));
        self
    }

    /// Adds a time, whose value to read back is in microseconds.
    pub(crate) fn time(self, option: &'static str, time: Duration) -> Self {
        let us = time.as_us();
        self.option(&format!("{option} {us}us")).reads(option, Value::Time(us))
    }

    /// Adds a time that the kernel counts in ticks of its clock.
    pub(crate) fn ticks(self, option: &'static str, time: Duration) -> Self {
        let us = time.as_us();
        self.option(&format!("{option} {us}us")).reads(option, Value::Ticks(us))
    }
}
