//! What each phase has of each flow.

use std::sync::Arc;

use lastmile_model::{OpenedBy, Traffic};
use lastmile_queueing::line::impairments::{Chance, Reorder};
use lastmile_queueing::line::trace::{Step, Steps, Trace};
use lastmile_queueing::spec::Spec;
use lastmile_units::{BitRate, Duration, Instant, Ratio};

use crate::network::{bulk, line, tcp, traffic};
use crate::summary;

/// The home's processing is behind the wire: neither a trace that changes nothing nor a reordering of every packet,
/// which take over the wire's own delay of zero, removes it.
#[test]
fn processing_is_behind_what_the_wire_does() {
    let mut network = line(8_000, 8_000, "ethernet", Spec::fifo(100));
    network.links.iter_mut().for_each(|link| link.hop.line.delay = Duration::ZERO);
    network.nodes[0].processing = Duration::from_ms(100);
    network.duration = Duration::from_s(5);
    network.traffic.push(traffic("download", 1, 0, bulk(&tcp(), None, OpenedBy::Sender)));
    let plain = summary(&network).flows[0].clone();
    let step =
        Step { at: Duration::ZERO, rate: network.links[1].hop.line.rate, delay: Duration::ZERO, loss: Ratio::ZERO };
    let trace = Trace::Steps(Arc::new(Steps::new(vec![step], None).expect("in order")));
    for change in 0..2 {
        let mut other = network.clone();
        let line = &mut other.links[1].hop.line;
        if change == 0 {
            line.trace = Some(trace.clone());
        } else {
            line.impairments.reorder = Some(Reorder::Overtaking { chance: Chance::independent(Ratio::ONE), gap: 1 });
        }
        let flow = summary(&other).flows[0].clone();
        assert_eq!((flow.delay_s, flow.bytes_delivered), (plain.delay_s.clone(), plain.bytes_delivered), "{change}");
    }
}

/// A line that fails at 5 s for longer than the run: an upload stops at 6 s, but sends again what was lost, until 60 s.
#[test]
fn retransmissions_after_the_stop_are_in_their_phase() {
    let mut network = line(2_000, 512, "ethernet", Spec::fifo(100));
    let step = |at, rate| Step { at: Duration::from_s(at), rate, delay: Duration::from_ms(22), loss: Ratio::ZERO };
    let rate = BitRate::from_kbit_per_s(512);
    let steps = Steps::new(vec![step(0, Some(rate)), step(5, None), step(99, Some(rate))], None).expect("in order");
    network.links[0].hop.line.trace = Some(Trace::Steps(Arc::new(steps)));
    network.duration = Duration::from_s(60);
    let at_s = |s| Instant::ZERO + Duration::from_s(s);
    let upload = traffic("upload", 0, 1, bulk(&tcp(), None, OpenedBy::Sender));
    network.traffic.push(Traffic { stop: Some(at_s(6)), ..upload });
    let summary = summary(&network);
    let told: Vec<(&str, &[String])> =
        summary.phases.iter().map(|phase| (phase.name.as_str(), phase.traffic.as_slice())).collect();
    assert_eq!(told, [("during upload", &["upload".to_owned()][..]), ("after upload", &[])]);
    let after = &summary.phases[1].flows[0];
    assert!(!after.offered && after.goodput_bps.abs() < f64::EPSILON, "{after:?}");
    let all: Option<u64> = summary.phases.iter().map(|phase| phase.flows[0].retransmissions).sum();
    assert_eq!(all, summary.flows[0].transport.retransmissions);
    assert!(after.retransmissions > Some(2), "{after:?}");
}

/// A window of data waits at the end of the offer and is delivered for seconds after it: that time has no share, and
/// takes nothing from that of the phase.
#[test]
fn a_flow_that_stops_has_the_share_of_its_phase() {
    let mut network = line(2_000, 512, "ethernet", Spec::fifo(100));
    network.duration = Duration::from_s(20);
    let upload = traffic("upload", 0, 1, bulk(&tcp(), None, OpenedBy::Sender));
    network.traffic.push(Traffic { stop: Some(Instant::ZERO + Duration::from_s(6)), ..upload });
    let summary = summary(&network);
    let of_phase = summary.phases[0].flows[0].fair_share_bps.expect("it offers data");
    let of_life = summary.flows[0].limits.fair_share_bps.expect("it offered data");
    assert!((of_life / of_phase - 1.0).abs() < 1e-9, "{of_life} {of_phase}");
}
