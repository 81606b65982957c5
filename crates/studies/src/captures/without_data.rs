//! Connections without data: those that nobody answered or that were refused, and those without payload.

use lastmile_analysis::{Connection, Direction};
use lastmile_results::format::{grouped, times};
use serde::Serialize;

use super::row::Ends;

/// What a connection without data was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// A reset answered the SYN.
    Refused,
    /// Nothing answered the SYN.
    Unanswered,
    /// Nothing answered the SYN-ACK.
    HalfOpen,
    /// A reset came later, or no SYN was captured.
    Reset,
    /// Both sides sent a FIN.
    Closed,
    /// None of these: opened and idle, or ACKs alone.
    Open,
}

impl Kind {
    const ALL: [Self; 6] = [Self::Refused, Self::Unanswered, Self::HalfOpen, Self::Reset, Self::Closed, Self::Open];

    /// A missing answer is one that the capture does not have: ACKs of its receiver show that it came.
    fn of(connection: &Connection) -> Self {
        let [syn, syn_ack] = [connection.handshake.syn, connection.handshake.syn_ack].map(|one| one.is_some());
        let (up, down) = (&connection.up, &connection.down);
        let is_acknowledged = down.acks.captured > 0;
        match (syn, syn_ack) {
            (true, false) if connection.reset && down.volume.packets > 0 => Self::Refused,
            (true, false) if down.volume.packets == 0 && !is_acknowledged && !connection.reset => Self::Unanswered,
            (true, true) if !is_acknowledged && !connection.reset && up.volume.data_packets == 0 => Self::HalfOpen,
            _ if connection.reset => Self::Reset,
            _ if connection.closed => Self::Closed,
            _ => Self::Open,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Refused => "refused (RST)",
            Self::Unanswered => "unanswered",
            Self::HalfOpen => "with an unanswered SYN-ACK",
            Self::Reset => "reset",
            Self::Closed => "opened and closed",
            Self::Open => "open",
        }
    }
}

/// A connection without data.
#[derive(Serialize)]
pub(super) struct WithoutData {
    pub(super) connection: usize,
    #[serde(flatten)]
    ends: Ends,
    start_s: f64,
    end_s: f64,
    kind: Kind,
    /// Retransmissions of the SYN, or of the SYN-ACK of a half-open connection.
    syn_retransmissions: u64,
}

impl WithoutData {
    fn new(number: usize, connection: &Connection) -> Self {
        let kind = Kind::of(connection);
        let opens = if kind == Kind::HalfOpen { &connection.down } else { &connection.up };
        Self {
            connection: number,
            ends: Ends::new(connection.addresses),
            start_s: connection.from.as_secs_f64(),
            end_s: connection.to.as_secs_f64(),
            kind,
            syn_retransmissions: opens.repeats.packets(),
        }
    }

    /// Its kind, with the retransmissions of its SYN.
    pub(super) fn words(&self) -> String {
        words(self.kind, self.syn_retransmissions)
    }
}

/// True for a direction with payload, captured or acknowledged.
pub(super) fn has_data(direction: &Direction) -> bool {
    direction.volume.data_packets > 0 || direction.volume.bytes_acknowledged > 0
}

pub(super) fn all(connections: &[Connection]) -> Vec<WithoutData> {
    let is_without = |connection: &Connection| !has_data(&connection.up) && !has_data(&connection.down);
    let numbered = connections.iter().enumerate().filter(|(_, connection)| is_without(connection));
    numbered.map(|(index, connection)| WithoutData::new(index + 1, connection)).collect()
}

fn words(kind: Kind, retransmissions: u64) -> String {
    let segment = if kind == Kind::HalfOpen { "SYN-ACK" } else { "SYN" };
    match (kind, retransmissions) {
        (Kind::Unanswered | Kind::HalfOpen, 1..) => {
            format!("{} ({segment} retransmitted {})", kind.words(), times(retransmissions))
        }
        _ => kind.words().to_owned(),
    }
}

/// The number of each kind, in one line; empty without any.
pub(super) fn line(all: &[WithoutData]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let kinds = Kind::ALL.into_iter().filter_map(|kind| {
        let own = || all.iter().filter(|one| one.kind == kind);
        let retransmissions = own().map(|one| one.syn_retransmissions).sum();
        (own().count() > 0).then(|| format!("{} {}", grouped(own().count() as u64), words(kind, retransmissions)))
    });
    let kinds: Vec<String> = kinds.collect();
    let plural = if all.len() == 1 { "" } else { "s" };
    format!("{} connection{plural} without data: {}\n", grouped(all.len() as u64), kinds.join(", "))
}

#[cfg(test)]
mod tests {
    use lastmile_analysis::Analysis;
    use lastmile_packet::{FlowAddresses, FlowId, FlowKey, Meta, Parsed, SeqNumber, TcpFlags};
    use lastmile_units::{Duration, Instant};

    use super::*;

    const SYN: TcpFlags = TcpFlags::SYN;
    const ACK: TcpFlags = TcpFlags::ACK;

    /// The kind of a connection of these packets, a second apart: true for those from its opener.
    fn of(packets: &[(bool, TcpFlags)]) -> Vec<WithoutData> {
        let mut analysis = Analysis::new();
        for (at, &(up, flags)) in (0..).zip(packets) {
            let forward = FlowAddresses::of_simulated(FlowId::new(0));
            let key = FlowKey { addresses: if up { forward } else { forward.reversed() }, protocol: 6 };
            let number = if flags.contains(SYN) { 0 } else { 1 };
            let meta = Meta {
                seq: SeqNumber::new(number),
                ack: SeqNumber::new(1),
                flags,
                header_len: 40,
                ip_len: 40,
                ip_id: at as u16 + 1,
                ..Meta::default()
            };
            analysis.packet(Instant::ZERO + Duration::from_s(at), &Parsed { meta, key, transport_offset: 20 });
        }
        all(&analysis.finish())
    }

    #[test]
    fn kinds_are_those_of_their_packets() {
        let (rst, fin) = (TcpFlags::RST.with(ACK), TcpFlags::FIN.with(ACK));
        let open = [(true, SYN), (false, SYN.with(ACK)), (true, ACK)];
        let with = |rest: &[(bool, TcpFlags)]| [&open[..], rest].concat();
        for (packets, words) in [
            (vec![(true, SYN), (false, rst)], "refused (RST)"),
            (vec![(true, SYN)], "unanswered"),
            (vec![(true, SYN); 2], "unanswered (SYN retransmitted once)"),
            (vec![(true, SYN); 7], "unanswered (SYN retransmitted 6 times)"),
            (open[..2].to_vec(), "with an unanswered SYN-ACK"),
            (vec![open[0], open[1], open[1]], "with an unanswered SYN-ACK (SYN-ACK retransmitted once)"),
            // A scan: it resets what opens.
            (vec![open[0], open[1], (true, TcpFlags::RST)], "reset"),
            (with(&[(true, rst)]), "reset"),
            (with(&[(true, fin), (false, fin), (true, ACK)]), "opened and closed"),
            (with(&[]), "open"),
            // A capture of one direction: the ACK shows that an answer came.
            (vec![open[0], open[2]], "open"),
        ] {
            let all = of(&packets);
            assert_eq!(all.iter().map(WithoutData::words).collect::<Vec<_>>(), [words], "{packets:?}");
        }
    }

    #[test]
    fn a_line_counts_each_kind() {
        let refused = [(true, SYN), (false, TcpFlags::RST.with(ACK))];
        let of_all = |kinds: [&[(bool, TcpFlags)]; 3]| kinds.into_iter().flat_map(of).collect::<Vec<_>>();
        let all = of_all([&refused, &refused, &[(true, SYN); 4]]);
        let line = line(&all);
        assert_eq!(line, "3 connections without data: 2 refused (RST), 1 unanswered (SYN retransmitted 3 times)\n");
    }
}
