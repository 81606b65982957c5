//! Removal of parts without a counterpart in the kernel: ACK regulators around a queue, and a
//! shaper that measures arrivals.

use lastmile_linklayer::LinkLayer;
use lastmile_queueing::Spec;
use lastmile_queueing::classify::rules;
use lastmile_queueing::meter::{drain, tbf};
use lastmile_queueing::spec::Over;
use lastmile_units::Duration;

/// The nearest queue with a counterpart in the kernel, and the missing parts.
#[must_use]
pub fn nearest(queue: &Spec, layer: &LinkLayer) -> (Spec, Vec<String>) {
    let mut remarks = Vec::new();
    let queue = taken_off(queue, layer, &mut remarks);
    (queue, remarks)
}

fn taken_off(queue: &Spec, layer: &LinkLayer, remarks: &mut Vec<String>) -> Spec {
    match queue {
        Spec::WindowClamp(Over { queue, .. }) => {
            remarks.push("a clamp of the windows that receivers advertise: the kernel has none; left out".to_owned());
            taken_off(queue, layer, remarks)
        }
        Spec::AckPacing(Over { queue, .. }) => {
            remarks.push("pacing of ACKs: the kernel has none; left out".to_owned());
            taken_off(queue, layer, remarks)
        }
        // It has no effect itself, and the parts that consult it are removed.
        Spec::Witness(Over { queue, .. }) => taken_off(queue, layer, remarks),
        Spec::Rules(config) => {
            let queue = Box::new(taken_off(&config.queue, layer, remarks));
            Spec::Rules(rules::Config { queue, ..config.clone() })
        }
        Spec::Drain(Over { config, queue }) => {
            if config.drain.is_some() {
                let remark = format!(
                    "a drain of the queue at the far end: the kernel has none; {} of the line alone",
                    config.share
                );
                remarks.push(remark);
            }
            shaped(config, taken_off(queue, layer, remarks), layer)
        }
        other => other.clone(),
    }
}

/// The queue at the rate of the margin: HTB shapes, and so do rules over it.
fn shaped(config: &drain::Config, queue: Spec, layer: &LinkLayer) -> Spec {
    let below = match &queue {
        Spec::Rules(rules) => &*rules.queue,
        other => other,
    };
    let Some(rate) = config.share.of_rate(config.line) else { return queue };
    if matches!(below, Spec::Htb(_) | Spec::Cake(_)) {
        return queue;
    }
    let burst = layer.on_wire(config.largest);
    let (largest, catch_up) = (config.largest, Duration::ZERO);
    Spec::Tbf(Over { config: tbf::Config { rate, burst, peak: None, largest, catch_up }, queue: Box::new(queue) })
}

#[cfg(test)]
mod tests {
    use lastmile_linklayer::preset;
    use lastmile_queueing::Match;
    use lastmile_queueing::ack::pacing;
    use lastmile_units::{BitRate, ByteCount, Ratio};

    use super::*;

    /// 98 % of 2 Mbit/s, with a burst of the largest packet: 1500 bytes with an overhead of 36 in
    /// 32 cells.
    #[test]
    fn a_drain_becomes_a_shaper_and_regulators_are_left_out() {
        let law = drain::Law {
            depth: Ratio::from_percent(80).unwrap(),
            patience: Duration::from_s(1),
            longest: Duration::from_s(5),
        };
        let config = drain::Config {
            line: BitRate::from_mbit_per_s(2),
            share: Ratio::from_percent(98).unwrap(),
            drain: Some(law),
            urgent: Match::Never,
            largest: ByteCount::new(1500),
            catch_up: Duration::ZERO,
        };
        let paced = pacing::Config {
            rate: BitRate::from_mbit_per_s(1),
            max_hold: Duration::from_ms(100),
            exempt: Match::Never,
        };
        let drained = Spec::Drain(Over { config, queue: Box::new(Spec::fifo(7)) });
        let queue = Spec::AckPacing(Over { config: paced, queue: Box::new(drained) });
        let (found, remarks) = nearest(&queue, &preset::BRIDGED_VCMUX_FCS.link);
        let Spec::Tbf(Over { config: tbf::Config { rate, burst, .. }, queue }) = found else { panic!("{found:?}") };
        assert_eq!((rate, burst.as_u64(), *queue), (BitRate::from_kbit_per_s(1960), 1696, Spec::fifo(7)));
        assert_eq!(
            remarks,
            [
                "pacing of ACKs: the kernel has none; left out",
                "a drain of the queue at the far end: the kernel has none; 98 % of the line alone"
            ]
        );
    }
}
