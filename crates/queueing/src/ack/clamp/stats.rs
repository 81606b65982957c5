//! Counters of a clamp.

use crate::discipline::Counter;

/// Counters of a clamp.
#[derive(Clone, Debug, Default)]
pub(super) struct Stats {
    pub(super) seen: u64,
    pub(super) clamped: u64,
    pub(super) kept_open: u64,
    pub(super) kept_apart: u64,
    pub(super) answered: u64,
    pub(super) passed_not_tcp: u64,
    pub(super) passed_flags: u64,
    pub(super) passed_unknown_options: u64,
    pub(super) passed_damaged: u64,
    pub(super) passed_unknown_scale: u64,
    pub(super) passed_unconfirmed_scale: u64,
    pub(super) passed_exempt: u64,
}

impl Stats {
    pub(super) fn show(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        let counts = [
            ("seen", self.seen),
            ("clamped", self.clamped),
            ("kept_open", self.kept_open),
            ("kept_apart", self.kept_apart),
            ("answered", self.answered),
            ("passed_not_tcp", self.passed_not_tcp),
            ("passed_flags", self.passed_flags),
            ("passed_unknown_options", self.passed_unknown_options),
            ("passed_damaged", self.passed_damaged),
            ("passed_unknown_scale", self.passed_unknown_scale),
            ("passed_unconfirmed_scale", self.passed_unconfirmed_scale),
            ("passed_exempt", self.passed_exempt),
        ];
        Counter::all("window-clamp", counts, visit);
    }
}
