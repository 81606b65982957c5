//! Local time: what the user writes, and what the user reads.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use crate::failure::{Failure, Result};

/// The forms of a time.
const FORMS: &str = "write `2026-11-01`, `2026-11-01 18:30`, `now`, or a time ago such as `7 d`, `36 h` or `90 min`";

/// A time zone.
pub(super) struct Calendar {
    zone: TimeZone,
    now_s: i64,
}

impl Calendar {
    /// Times of UTC.
    pub(super) fn utc() -> Self {
        Self::of(TimeZone::UTC)
    }

    /// Times of this machine's zone; `None` where it is not known.
    pub(super) fn local() -> Option<Self> {
        TimeZone::try_system().ok().map(Self::of)
    }

    fn of(zone: TimeZone) -> Self {
        Self { zone, now_s: Timestamp::now().as_second() }
    }

    /// The name for an axis.
    pub(super) fn name(&self) -> &'static str {
        if self.zone == TimeZone::UTC { "UTC" } else { "local time" }
    }

    /// The time that the user has written, in seconds since 1970. `now` is rounded up to a whole second.
    pub(super) fn time(&self, text: &str, option: &str) -> Result<i64> {
        self.read(text.trim()).ok_or_else(|| Failure::new(format_args!("{option}: {text:?} is no time")).hint(FORMS))
    }

    fn read(&self, text: &str) -> Option<i64> {
        if text == "now" {
            return Some(self.now_s + 1);
        }
        if let Some(ago_s) = ago_s(text) {
            return self.now_s.checked_sub(ago_s);
        }
        if let Ok(timestamp) = text.parse::<Timestamp>() {
            return Some(timestamp.as_second());
        }
        let date_time = match text.parse::<Date>() {
            Ok(date) if text.len() <= 10 => date.at(0, 0, 0, 0),
            _ => text.parse::<DateTime>().ok()?,
        };
        Some(date_time.to_zoned_datetime(self.zone.clone()).ok()?.timestamp().as_second())
    }

    /// The distance from UTC.
    pub(super) fn offset_s(&self, time_s: i64) -> i64 {
        Timestamp::from_second(time_s).map_or(0, |time| self.zone.to_offset(time).seconds().into())
    }

    /// The distances from UTC between two times: when each begins, and its seconds. The first begins with the span.
    pub(super) fn offsets_s(&self, from_s: i64, to_s: i64) -> Vec<(i64, i64)> {
        let changes = Timestamp::from_second(from_s).into_iter().flat_map(|from| self.zone.following(from));
        let changes = changes.map(|change| change.timestamp().as_second()).take_while(|at| *at <= to_s);
        [from_s].into_iter().chain(changes).map(|at| (at, self.offset_s(at))).collect()
    }

    fn format(&self, time_s: i64, form: &str) -> String {
        let time = Timestamp::from_second(time_s).map(|time| time.to_zoned_datetime(self.zone.clone()));
        time.map_or_else(|_| "-".to_owned(), |time| time.strftime(form).to_string())
    }

    /// `2026-11-01 18:30`.
    pub(super) fn minute(&self, time_s: i64) -> String {
        self.format(time_s, "%Y-%m-%d %H:%M")
    }

    /// `2026-11-01 18:30:05`.
    pub(super) fn second(&self, time_s: i64) -> String {
        self.format(time_s, "%Y-%m-%d %H:%M:%S")
    }

    /// Ticks at round local times, at most about ten, with labels.
    pub(super) fn ticks(&self, from_s: i64, to_s: i64) -> Vec<(i64, String)> {
        const HOUR: i64 = 3600;
        const DAY: i64 = 24 * HOUR;
        let steps = [1, 5, 10, 30, 60, 300, 600, 1800, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR];
        let days = [1, 2, 7, 14, 30, 60, 90, 180, 365, 730].map(|days| days * DAY);
        let wanted = (to_s - from_s) / 10;
        let step = steps.into_iter().chain(days).find(|step| *step >= wanted).unwrap_or(730 * DAY);
        let form = match step {
            ..60 => "%H:%M:%S",
            60..HOUR => "%H:%M",
            HOUR..DAY => "%a %H:%M",
            _ if to_s - from_s > 300 * DAY => "%Y-%m-%d",
            _ => "%a %d %b",
        };
        // Multiples of the step on the local clock. A change of that clock moves those after it.
        let first = from_s + (-(from_s + self.offset_s(from_s))).rem_euclid(step);
        let local = |tick: i64| tick + self.offset_s(first) - self.offset_s(tick);
        let mut ticks: Vec<i64> = (0..=20).map(|n| local(first + n * step)).take_while(|tick| *tick <= to_s).collect();
        // A time that the clock leaves out is that of an earlier tick.
        ticks.dedup();
        ticks.into_iter().map(|tick| (tick, self.format(tick, form))).collect()
    }
}

/// `7 d`, `36h`, `90 min`, `2 w`: seconds.
fn ago_s(text: &str) -> Option<i64> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    let unit_s = match unit.trim() {
        "s" => 1,
        "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 604_800,
        "y" => 31_557_600,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(unit_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-20 12:00 UTC.
    const NOW_S: i64 = 1_795_176_000;

    fn calendar() -> Calendar {
        Calendar { zone: TimeZone::fixed(jiff::tz::offset(1)), now_s: NOW_S }
    }

    #[test]
    fn times_are_dates_of_the_zone_or_ago() {
        let at = |text: &str| calendar().read(text);
        assert_eq!(at("2026-11-20"), Some(NOW_S - 13 * 3600));
        assert_eq!(at("2026-11-20 13:00"), Some(NOW_S));
        assert_eq!(at("2026-11-20T13:00:30"), Some(NOW_S + 30));
        assert_eq!(at("2026-11-20T12:00:00Z"), Some(NOW_S));
        assert_eq!(at("90 min"), Some(NOW_S - 5400));
        assert_eq!(at("7d"), Some(NOW_S - 7 * 86_400));
        assert_eq!(at("now"), Some(NOW_S + 1));
        for wrong in ["yesterday", "7", "7 m", "2026-13-01", "", "99999999999999999999 d"] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
        assert_eq!(calendar().minute(NOW_S), "2026-11-20 13:00");
    }

    /// Summer time in Berlin in 2026: from 29 March 01:00 UTC to 25 October 01:00 UTC (directive 2000/84/EC).
    #[test]
    fn the_distance_from_utc_changes_within_a_span() {
        let rule = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let (spring_s, autumn_s) = (1_774_746_000, 1_792_890_000);
        let from_s = 1_767_225_600;
        let calendar_of_berlin = Calendar { zone: rule, now_s: NOW_S };
        let offsets = calendar_of_berlin.offsets_s(from_s, NOW_S);
        assert_eq!(offsets, [(from_s, 3600), (spring_s, 7200), (autumn_s, 3600)]);
        let ticks = calendar_of_berlin.ticks(spring_s - 3 * 3600, spring_s + 3 * 3600);
        let labels: Vec<&str> = ticks.iter().map(|(_, label)| &label[4..]).collect();
        assert_eq!(labels, ["23:00", "00:00", "01:00", "03:00", "04:00", "05:00", "06:00"]);
        assert_eq!(calendar().offsets_s(from_s, NOW_S), [(from_s, 3600)]);
    }

    #[test]
    fn ticks_are_round_local_times() {
        let calendar = calendar();
        let labels = |from_s: i64, to_s: i64| -> Vec<String> {
            calendar.ticks(from_s, to_s).into_iter().map(|(_, label)| label).collect()
        };
        let day = labels(NOW_S, NOW_S + 86_400);
        assert_eq!(day[..2], ["Fri 15:00", "Fri 18:00"]);
        let month = labels(NOW_S, NOW_S + 30 * 86_400);
        assert!(month.len() <= 12 && month.iter().all(|label| label.len() == 10), "{month:?}");
        assert_eq!(labels(NOW_S, NOW_S + 60).first().map(String::as_str), Some("13:00:00"));
    }
}
