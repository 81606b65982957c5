//! TCP connections of several traffics together: what each of them got, and how it recovered from losses.

use lastmile_analysis::fairness::{Fairness, Share, fairness};

use super::trial::{Connection, Trial};

/// The connections of the traffics of a name, numbered from 1.
pub(super) struct Connections<'a> {
    run: &'a Trial,
    all: Vec<Connection>,
}

impl<'a> Connections<'a> {
    pub(super) fn of(run: &'a Trial, name: &str, count: f64) -> Self {
        let all = (1..=count as u64).flat_map(|number| run.connections(&format!("{name}{number}"))).collect();
        Self { run, all }
    }

    fn mean(&self, of: impl Fn(&Connection) -> f64) -> f64 {
        self.all.iter().map(of).sum::<f64>() / self.all.len().max(1) as f64
    }

    pub(super) fn goodput_mean_mbps(&self) -> f64 {
        self.mean(mbps)
    }

    pub(super) fn goodput_min_mbps(&self) -> f64 {
        self.all.iter().map(mbps).fold(f64::INFINITY, f64::min)
    }

    pub(super) fn goodput_max_mbps(&self) -> f64 {
        self.all.iter().map(mbps).fold(0.0, f64::max)
    }

    /// Standard deviation over mean, in percent.
    pub(super) fn goodput_spread_pct(&self) -> f64 {
        let mean = self.goodput_mean_mbps();
        100.0 * self.mean(|connection| (mbps(connection) - mean).powi(2)).sqrt() / mean
    }

    pub(super) fn timeouts_mean(&self) -> f64 {
        self.mean(|connection| connection.timeouts as f64)
    }

    pub(super) fn fast_retransmits_mean(&self) -> f64 {
        self.mean(|connection| connection.fast_retransmits as f64)
    }

    /// Pauses longer than `least_s` for each connection.
    pub(super) fn pauses_above_mean(&self, least_s: f64) -> f64 {
        self.mean(|connection| self.pauses(connection).iter().filter(|pause| **pause > least_s).count() as f64)
    }

    pub(super) fn pause_max_s(&self) -> f64 {
        self.all.iter().flat_map(|connection| self.pauses(connection)).fold(0.0, f64::max)
    }

    fn pauses(&self, connection: &Connection) -> Vec<f64> {
        pauses(self.run.samples("acked_bytes", &connection.name))
    }

    pub(super) fn fairness(&self) -> Fairness {
        let share = |(number, connection): (usize, &Connection)| Share {
            number,
            goodput_bps: connection.goodput_bps,
            timeouts: connection.timeouts,
            fast_retransmits: connection.fast_retransmits,
            ..Share::default()
        };
        fairness(&self.all.iter().enumerate().map(share).collect::<Vec<_>>())
    }
}

fn mbps(connection: &Connection) -> f64 {
    connection.goodput_bps / 1e6
}

/// The goodput of a traffic's connections, together.
pub(super) fn goodput_sum_mbps(run: &Trial, traffic: &str) -> f64 {
    run.connections(traffic).iter().map(mbps).sum()
}

/// Waits of a ping: its round trips beyond the fastest one of all pings whose names begin with `others`, in ms.
pub(super) fn waits_ms(run: &Trial, ping: &str, others: &str) -> Vec<f64> {
    let least = run.least_round_trip_ms(others);
    run.round_trips(ping).map(|(_, took)| took - least).collect()
}

/// The times during which nothing new was acknowledged, in s, after the first data.
fn pauses(acked: impl Iterator<Item = (f64, f64)>) -> Vec<f64> {
    let mut pauses = Vec::new();
    let mut last: Option<(f64, f64)> = None;
    for (at, bytes) in acked.filter(|(_, bytes)| *bytes > 0.0) {
        match last {
            Some((_, before)) if bytes <= before => {}
            Some((since, _)) => {
                pauses.push(at - since);
                last = Some((at, bytes));
            }
            None => last = Some((at, bytes)),
        }
    }
    pauses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_lasts_until_something_new_is_acknowledged() {
        let acked = [(0.1, 0.0), (0.2, 5.0), (0.3, 9.0), (0.4, 9.0), (1.8, 9.0), (1.9, 12.0)];
        let pauses = pauses(acked.into_iter());
        assert_eq!(pauses.len(), 2);
        assert!((pauses[1] - 1.6).abs() < 1e-9, "{pauses:?}");
    }
}
