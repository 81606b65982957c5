//! The counters of a connection, in the terms of TCP.

use lastmile_quic::Config;
use lastmile_tcp::LimitedTime;
use quinn_proto::ConnectionStats;

use crate::outcome::{FlowOutcome, TcpOutcome, TcpSample};

use super::observed::Flight;
use super::peer::Peer;
use super::settings::lab_span;

/// The state of the end that sends the data.
pub(super) fn sample(sender: &Peer, flight: &Flight) -> Option<TcpSample> {
    sender.stats().map(|stats| of(sender, flight, &stats))
}

fn of(sender: &Peer, flight: &Flight, stats: &ConnectionStats) -> TcpSample {
    let flight = flight.now();
    TcpSample {
        cwnd_bytes: stats.path.cwnd,
        ssthresh_bytes: sender.threshold(),
        in_flight_bytes: flight.bytes,
        acked_bytes: flight.acknowledged,
        srtt: (flight.acknowledged > 0).then(|| lab_span(stats.path.rtt)),
        retransmissions: stats.path.lost_packets,
        timeouts: None,
        limited: LimitedTime::default(),
    }
}

/// The counts of both ends, added to the outcome `received`.
pub(super) fn outcome(ends: [&Peer; 2], flight: &Flight, quic: &Config, received: FlowOutcome) -> FlowOutcome {
    let [sender, receiver] = ends;
    let (Some(sent), Some(heard)) = (sender.stats(), receiver.stats()) else {
        return FlowOutcome { tcp: Some(TcpOutcome::default()), ..received };
    };
    let tcp = TcpOutcome {
        congestion: format!("quic-{}", quic.congestion.name()),
        payload: u32::from(sent.path.current_mtu),
        peer_window: u32::try_from(quic.receive_window.as_u64()).unwrap_or(u32::MAX),
        acks_sent: heard.frame_tx.acks,
        acks_received: sent.frame_rx.acks,
        max_in_flight: flight.now().most,
        last: of(sender, flight, &sent),
    };
    FlowOutcome {
        packets_sent: sent.frame_tx.stream,
        packets_received: heard.frame_rx.stream,
        tcp: Some(tcp),
        ..received
    }
}
