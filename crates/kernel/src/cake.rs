//! The kernel's CAKE (tc-cake(8)) for the CAKE of a policy.

use lastmile_queueing::ack::cake::Mode;
use lastmile_queueing::cake::{Config, Diffserv, Isolation};

use crate::accounting::Accounting;
use crate::command::Value;
use crate::discipline::Discipline;

/// The discipline with all its options. Without a `bandwidth` it does not shape.
pub(crate) fn discipline(config: &Config, accounting: &Accounting) -> Discipline {
    let accounting = counted_by(config, accounting);
    let cake = Discipline::new("cake");
    let cake = match config.bandwidth {
        Some(bandwidth) => {
            let rate = accounting.cake_rate(bandwidth);
            cake.option(&format!("bandwidth {}bit", rate.as_bps())).reads("bandwidth", Value::Rate(rate))
        }
        None => cake.option("unlimited"),
    };
    let (diffserv, isolation) = (diffserv(config.diffserv), isolation(config.isolation));
    let cake = cake
        .option(diffserv)
        .reads("diffserv", Value::Text(diffserv.to_owned()))
        .option(isolation)
        .reads("flowmode", Value::Text(isolation.to_owned()))
        .option(if config.nat { "nat" } else { "nonat" })
        .option(if config.wash { "wash" } else { "nowash" })
        .option("split-gso")
        .option(if config.ingress { "ingress" } else { "egress" });
    let us = config.rtt.as_us();
    let cake = filter(cake, config.ack_filter)
        .option(&format!("rtt {us}us"))
        .reads("rtt", Value::Number(i64::try_from(us).unwrap_or(i64::MAX)));
    let cake = counting(cake, &accounting);
    match config.memory {
        Some(memory) => {
            let bytes = i64::try_from(memory.as_u64()).unwrap_or(i64::MAX);
            cake.option(&format!("memlimit {bytes}b")).reads("memlimit", Value::Number(bytes))
        }
        None => cake,
    }
}

/// Bytes on the line that the discipline does not count, in words.
pub(crate) fn remarks(config: &Config, accounting: &Accounting) -> Vec<String> {
    counted_by(config, accounting).cake_remarks()
}

/// The accounting of the encapsulation that the shaper counts.
fn counted_by(config: &Config, accounting: &Accounting) -> Accounting {
    accounting.with_layer(config.link_layer.unwrap_or_else(|| accounting.layer()))
}

/// One queue with an ACK filter, as CAKE's nearest form: its queue management limits a packet's
/// wait to about a second.
pub(crate) fn ack_filter(mode: Mode, accounting: &Accounting) -> Discipline {
    let cake = Discipline::new("cake")
        .option("unlimited besteffort")
        .option("flowblind")
        .reads("flowmode", Value::Text("flowblind".to_owned()))
        .option("nonat nowash split-gso");
    counting(filter(cake, Some(mode)).option("rtt 1000000us"), accounting)
}

fn filter(cake: Discipline, mode: Option<Mode>) -> Discipline {
    let (option, read) = match mode {
        None => ("no-ack-filter", "disabled"),
        Some(Mode::Normal) => ("ack-filter", "enabled"),
        Some(Mode::Aggressive) => ("ack-filter-aggressive", "aggressive"),
    };
    cake.option(option).reads("ack-filter", Value::Text(read.to_owned()))
}

fn counting(cake: Discipline, accounting: &Accounting) -> Discipline {
    let options = accounting.cake();
    let framing = options.first().cloned().unwrap_or_default();
    cake.option(&options.join(" "))
        .reads("atm", Value::Text(framing))
        .reads("overhead", Value::Number(accounting.cake_overhead().into()))
}

const fn diffserv(diffserv: Diffserv) -> &'static str {
    match diffserv {
        Diffserv::BestEffort => "besteffort",
        Diffserv::Precedence => "precedence",
        Diffserv::Three => "diffserv3",
        Diffserv::Four => "diffserv4",
        Diffserv::Eight => "diffserv8",
    }
}

const fn isolation(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::FlowBlind => "flowblind",
        Isolation::SourceHost => "srchost",
        Isolation::DestinationHost => "dsthost",
        Isolation::Hosts => "hosts",
        Isolation::Flows => "flows",
        Isolation::DualSourceHost => "dual-srchost",
        Isolation::DualDestinationHost => "dual-dsthost",
        Isolation::Triple => "triple-isolate",
    }
}
