//! The worst calls, games and other datagrams of a run.

use serde::Serialize;

use super::cell::{Cell, Quantity};
use crate::format::to_f64;
use crate::schema::{Flow, FlowKind, Game, Summary};

/// The worst of a run's datagram flows, over its whole length. A `blast` is load, and does not
/// count. All `None` without such flows.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Calls {
    /// R factor (ITU-T G.107) of the worst call, 0 to 100.
    pub call_r_factor_min: Option<f64>,
    /// Mean opinion score of the worst call, 1 to 4.5.
    pub call_mos_min: Option<f64>,
    /// The largest 99th percentile of the one-way delay of any flow, and of the commands of a game.
    pub datagram_delay_p99_max_s: Option<f64>,
    /// The largest share of packets of any flow that were lost, or too late for the play-out buffer, and of the
    /// commands of a game that were lost.
    pub datagram_unplayed_share_max: Option<f64>,
}

impl Calls {
    pub(super) fn of(summary: &Summary) -> Self {
        let flows = || summary.flows.iter().filter(|flow| flow.setup.kind != FlowKind::Blast);
        let datagrams = || flows().filter_map(|flow| flow.datagrams.as_deref());
        let calls = || datagrams().filter_map(|datagrams| datagrams.voice.as_ref());
        let delay = |flow: &Flow| flow.datagrams.as_ref().and(flow.delay_s.as_deref()).and_then(|delay| delay.p99);
        // A game's flow is its updates.
        let games = || summary.applications.games.iter();
        let delays = flows().filter_map(delay).chain(games().filter_map(|game| game.command_delay_s.p99));
        let lost = |game: &Game| (game.commands > 0).then(|| to_f64(game.commands_lost) / to_f64(game.commands));
        let unplayed = datagrams().filter_map(|datagrams| datagrams.unplayed_share).chain(games().filter_map(lost));
        Self {
            call_r_factor_min: calls().map(|call| call.r_factor).min_by(f64::total_cmp),
            call_mos_min: calls().map(|call| call.mos).min_by(f64::total_cmp),
            datagram_delay_p99_max_s: delays.max_by(f64::total_cmp),
            datagram_unplayed_share_max: unplayed.max_by(f64::total_cmp),
        }
    }

    pub(super) fn cells(&self) -> [Cell; 4] {
        [
            Cell::new("call R", Quantity::Index(1), self.call_r_factor_min),
            Cell::new("call MOS", Quantity::Index(2), self.call_mos_min),
            Cell::new("datagram p99", Quantity::Time, self.datagram_delay_p99_max_s),
            Cell::new("datagrams unplayed", Quantity::Share, self.datagram_unplayed_share_max),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Applications, Datagrams, FlowSetup, OneWay, Voice};

    fn call(kind: FlowKind, r_factor: f64, unplayed_share: f64, p99: f64) -> Flow {
        let voice = Some(Voice { r_factor, mos: r_factor / 20.0, ..Voice::default() });
        Flow {
            setup: FlowSetup { kind, ..FlowSetup::default() },
            delay_s: Some(Box::new(OneWay { p99: Some(p99), ..OneWay::default() })),
            datagrams: Some(Box::new(Datagrams {
                unplayed_share: Some(unplayed_share),
                voice,
                ..Datagrams::default()
            })),
            ..Flow::default()
        }
    }

    #[test]
    fn the_worst_call_speaks_for_all_and_a_blast_for_none() {
        let flows = vec![
            call(FlowKind::Voice, 90.0, 0.01, 0.2),
            call(FlowKind::Voice, 70.0, 0.0, 0.1),
            call(FlowKind::Blast, 10.0, 0.9, 2.0),
        ];
        let calls = Calls::of(&Summary { flows, ..Summary::default() });
        let expected = Calls {
            call_r_factor_min: Some(70.0),
            call_mos_min: Some(3.5),
            datagram_delay_p99_max_s: Some(0.2),
            datagram_unplayed_share_max: Some(0.01),
        };
        assert_eq!(calls, expected);
        assert_eq!(Calls::of(&Summary::default()), Calls::default());
    }

    /// The flow of a game is its updates; its commands go the other way.
    #[test]
    fn the_commands_of_a_game_count() {
        let command_delay_s = OneWay { p99: Some(0.3), ..OneWay::default() };
        let game = Game { commands: 40, commands_lost: 2, command_delay_s, ..Game::default() };
        let applications = Applications { games: vec![game], ..Applications::default() };
        let flows = vec![call(FlowKind::Voice, 90.0, 0.01, 0.2)];
        let calls = Calls::of(&Summary { flows, applications, ..Summary::default() });
        assert_eq!(calls.datagram_delay_p99_max_s, Some(0.3));
        assert_eq!(calls.datagram_unplayed_share_max, Some(0.05));
    }
}
