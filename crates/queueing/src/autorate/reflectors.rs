//! The reflectors of a controller: those that are pinged, their delays, and their replacement by spare ones.
//!
//! A replaced reflector is the last spare, and keeps its baseline. Checks, at most one replacement each:
//!
//! - *Rotation*: each `reflector_replacement_interval` one reflector is replaced whatever its delays are.
//! - *Comparison*: each `reflector_comparison_interval` the first reflector whose sum of baselines, or whose mean
//!   excess in a direction, is above the least of all by more than a threshold.
//! - *Health*: each `reflector_health_check_interval` a reflector without a reply for `reflector_response_deadline`
//!   commits an offence, and is replaced at `reflector_misbehaving_detection_thr` of the latest
//!   `reflector_misbehaving_detection_window` checks.
//!
//! Differs: a rotation takes the pingers in turns, where the script draws one.

use core::fmt::{self, Display};
use std::collections::VecDeque;

use lastmile_units::{Duration, Instant};

use super::config::{Baseline, Config, Health, moved};

/// The baseline of a reflector that has not replied yet, in microseconds.
const FIRST_BASELINE_US: i64 = 100_000;

/// Why a reflector is replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// `reflector_replacement_interval` has passed.
    Rotation,
    /// Its baselines are too long.
    Baseline,
    /// Its delays are too far above its baseline.
    Excess,
    /// It replies late or not at all.
    Offences,
}

impl Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rotation => "its time is over",
            Self::Baseline => "its baseline is longer than that of another",
            Self::Excess => "its delays vary more than those of another",
            Self::Offences => "its replies are late or missing",
        })
    }
}

/// A reflector that is pinged no longer, and the one in its stead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Replacement {
    /// The number of the replaced reflector.
    pub old: usize,
    /// The number of its successor.
    pub new: usize,
    /// What the old one did.
    pub reason: Reason,
}

/// The delays of a reflector in microseconds: down, up.
#[derive(Clone, Copy, Debug)]
struct Delays {
    baselines: [i64; 2],
    /// Moving averages of the excess over the baseline, of replies without high load.
    excesses: [i64; 2],
}

#[derive(Clone, Debug)]
struct Pinger {
    reflector: usize,
    last_response: Instant,
    /// By health check of the window.
    offences: Vec<bool>,
}

#[derive(Clone, Debug)]
pub(super) struct Reflectors {
    /// By reflector.
    delays: Vec<Delays>,
    pingers: Vec<Pinger>,
    spares: VecDeque<usize>,
    checked: Instant,
    compared: Instant,
    rotated: Instant,
    /// The pinger of the next rotation.
    turn: usize,
    /// The position of the next health check in its window.
    check: usize,
}

impl Reflectors {
    pub(super) fn new(config: &Config, spares: usize, start: Instant) -> Self {
        let pinged = config.pings.no_pingers as usize;
        let offences = vec![false; config.health.reflector_misbehaving_detection_window as usize];
        let pinger = |reflector| Pinger { reflector, last_response: start, offences: offences.clone() };
        Self {
            delays: vec![Delays { baselines: [FIRST_BASELINE_US; 2], excesses: [0; 2] }; pinged + spares],
            pingers: (0..pinged).map(pinger).collect(),
            spares: (pinged..pinged + spares).collect(),
            checked: start,
            compared: start,
            rotated: start,
            turn: 0,
            check: 0,
        }
    }

    /// The reflector of a pinger.
    pub(super) fn of(&self, pinger: usize) -> Option<usize> {
        self.pingers.get(pinger).map(|pinger| pinger.reflector)
    }

    pub(super) fn is_pinged(&self, reflector: usize) -> bool {
        self.pingers.iter().any(|pinger| pinger.reflector == reflector)
    }

    /// Updates the baselines of a reflector by a reply; its excess over them in microseconds.
    pub(super) fn excess(&mut self, baseline: &Baseline, now: Instant, reflector: usize, delays: [i64; 2]) -> [i64; 2] {
        for pinger in self.pingers.iter_mut().filter(|pinger| pinger.reflector == reflector) {
            pinger.last_response = now;
        }
        let baselines = &mut self.delays[reflector].baselines;
        [0, 1].map(|index| {
            baselines[index] = baseline.moved(baselines[index], delays[index]);
            delays[index] - baselines[index]
        })
    }

    /// An excess of a reply while neither direction has a high load.
    pub(super) fn average(&mut self, health: &Health, reflector: usize, excess: [i64; 2]) {
        for (average, excess) in self.delays[reflector].excesses.iter_mut().zip(excess) {
            *average = moved(health.alpha_delta_ewma, *average, excess);
        }
    }

    /// The pings have slept; none is late yet.
    pub(super) fn wake(&mut self, at: Instant) {
        self.checked = at;
    }

    /// Does the checks that are due.
    pub(super) fn check(&mut self, health: &Health, now: Instant) -> Option<Replacement> {
        let is_due = |last: Instant, interval: Duration| now > last.saturating_add(interval);
        if self.spares.is_empty() || !is_due(self.checked, health.reflector_health_check_interval) {
            return None;
        }
        if is_due(self.rotated, health.reflector_replacement_interval) {
            self.rotated = now;
            let pinger = self.turn;
            self.turn = (pinger + 1) % self.pingers.len();
            return self.replace(now, pinger, Reason::Rotation);
        }
        if is_due(self.compared, health.reflector_comparison_interval) {
            self.compared = now;
            if let Some((pinger, reason)) = self.deviating(health) {
                return self.replace(now, pinger, reason);
            }
        }
        self.checked = now;
        let check = self.check;
        self.check = (check + 1) % health.reflector_misbehaving_detection_window as usize;
        for pinger in &mut self.pingers {
            pinger.offences[check] = now.since(pinger.last_response) > health.reflector_response_deadline;
        }
        let count = |pinger: &Pinger| pinger.offences.iter().filter(|offence| **offence).count();
        let most = health.reflector_misbehaving_detection_thr as usize;
        let offender = self.pingers.iter().position(|pinger| count(pinger) >= most)?;
        self.replace(now, offender, Reason::Offences)
    }

    /// The first pinger whose reflector deviates from the best of all.
    fn deviating(&self, health: &Health) -> Option<(usize, Reason)> {
        let us = |threshold: Duration| i64::try_from(threshold.as_us()).unwrap_or(i64::MAX);
        let delays = || self.pingers.iter().map(|pinger| &self.delays[pinger.reflector]);
        let baseline = |delays: &Delays| delays.baselines.iter().sum::<i64>();
        let least_baseline = delays().map(baseline).min()?;
        let least_excesses = [0, 1].map(|index| delays().map(|delays| delays.excesses[index]).min());
        delays().enumerate().find_map(|(pinger, delays)| {
            if baseline(delays) - least_baseline > us(health.reflector_sum_owd_baselines_delta_thr) {
                return Some((pinger, Reason::Baseline));
            }
            let most = us(health.reflector_owd_delta_ewma_delta_thr);
            let mut excesses = delays.excesses.iter().zip(least_excesses);
            let exceeds = excesses.any(|(excess, least)| least.is_some_and(|least| excess - least > most));
            exceeds.then_some((pinger, Reason::Excess))
        })
    }

    fn replace(&mut self, now: Instant, pinger: usize, reason: Reason) -> Option<Replacement> {
        let new = self.spares.pop_front()?;
        let pinger = self.pingers.get_mut(pinger)?;
        let old = std::mem::replace(&mut pinger.reflector, new);
        self.spares.push_back(old);
        pinger.last_response = now;
        pinger.offences.fill(false);
        Some(Replacement { old, new, reason })
    }
}
