//! Traces from files, captures, measurements and generators.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use lastmile_packet::lacks_length;
use lastmile_queueing::line::trace::{Step, Steps, Trace};
use lastmile_scenario::trace::file::{self, Content, Format, TimeUnit};
use lastmile_scenario::trace::generate::{Base, Has};
use lastmile_scenario::trace::{self, write};
use lastmile_scenario::{Override, Scenario, capture};
use lastmile_units::{Duration, Ratio};
use serde_json::Value;

use super::arguments::{Arguments, Direction, Rule, Source, To};
use super::measured;
use crate::failure::Failure;

/// Beginnings of captures: pcapng, pcap in both byte orders and both units, gzip, Zstandard.
const CAPTURES: [&[u8]; 7] = [
    &[0x0a, 0x0d, 0x0d, 0x0a],
    &[0xd4, 0xc3, 0xb2, 0xa1],
    &[0xa1, 0xb2, 0xc3, 0xd4],
    &[0x4d, 0x3c, 0xb2, 0xa1],
    &[0xa1, 0xb2, 0x3c, 0x4d],
    &[0x1f, 0x8b],
    &[0x28, 0xb5, 0x2f, 0xfd],
];

/// A trace, what it has in addition to rates, and a sentence about where it comes from.
pub(super) struct Made {
    pub(super) trace: Trace,
    pub(super) has: Has,
    pub(super) source: Option<String>,
}

impl Made {
    fn of((trace, has): (Trace, Has)) -> Self {
        Self { trace, has, source: None }
    }
}

/// The trace that the command line asks for.
pub(super) fn make(arguments: &Arguments) -> Result<Made, Failure> {
    let base = Base { rate: arguments.rate, delay: arguments.delay.unwrap_or_default(), loss: Ratio::ZERO };
    let mut has = Has { delay: arguments.delay.is_some(), loss: false };
    if let Some(rule) = arguments.generate {
        arguments.check(Source::Rule)?;
        has.delay |= matches!(rule, Rule::Starlink);
        let length = arguments.length.unwrap_or(Duration::from_s(600)).to_string();
        let length = Override::from_option("--length", "length", &format!("{length:?}"));
        let seed = Override::from_option("--seed", "seed", &arguments.seed.unwrap_or(1).to_string());
        let set = arguments.set.iter().map(|pair| Override::set(pair));
        let overrides: Vec<_> = [length, seed].into_iter().chain(set).collect();
        let trace = trace::generate(rule.name(), base, &overrides).map_err(Failure::Report)?;
        return Ok(Made::of((trace, has)));
    }
    let path = arguments.file.as_deref().ok_or_else(|| Failure::new("no FILE and no --generate"))?;
    let named = |error: String| Failure::new(format_args!("{}: {error}", path.display()));
    let made = if path.extension().is_some_and(|extension| extension == "toml") {
        arguments.check(Source::Scenario)?;
        let made = of_scenario(path, arguments)?;
        arguments.check_interval(&made.trace)?;
        let hint = "`length` or `repeat` of the trace in the scenario";
        arguments.check_length(&made.trace).map_err(|failure| failure.hint(hint))?;
        made
    } else {
        let bytes = std::fs::read(path).map_err(|error| named(error.to_string()))?;
        if CAPTURES.iter().any(|magic| bytes.starts_with(magic)) {
            arguments.check(Source::Capture)?;
            Made::of((of_capture(path, arguments, base.delay)?, has))
        } else {
            let text = String::from_utf8(bytes).map_err(|_| named("neither text nor a capture".to_owned()))?;
            of_text(&text, arguments, base, has, &named)?
        }
    };
    arguments.check_length(&made.trace)?;
    Ok(made)
}

/// The trace of a measurement, or that of a trace in a file.
fn of_text(
    text: &str,
    arguments: &Arguments,
    base: Base,
    mut has: Has,
    named: &dyn Fn(String) -> Failure,
) -> Result<Made, Failure> {
    if let Ok(document) = serde_json::from_str::<Value>(text)
        && document.get("phases").is_some()
    {
        arguments.check(Source::Measurement)?;
        let part = &arguments.measurement;
        let made = measured::trace(&document, part.direction.unwrap_or(Direction::Down), part.phase, base);
        let (trace, source) = made.map_err(named)?;
        return Ok(Made { trace, has, source: Some(source) });
    }
    arguments.check(Source::Trace)?;
    let read = file::read(text, base, None, arguments.unit.map(TimeUnit::from)).map_err(named)?;
    if has.delay && read.format == Format::Mahimahi {
        return Err(named("--delay: packet-delivery traces have no delay".to_owned())
            .hint("--to csv without --delay, and --delay with the steps that it prints"));
    }
    let writes_all = arguments.to.map(Format::from).is_some_and(|to| to != Format::Mahimahi);
    let lacks = |(_, what): &&(usize, &str)| writes_all && !(has.delay && *what == "delay");
    if let Some((line, what)) = read.lacks.iter().find(lacks) {
        let message = format!("line {line}: no {what}, where the table has a column {what}");
        return Err(named(message).hint(format!("a {what} in each step, or no column {what}")));
    }
    check_base(arguments, &read).map_err(named)?;
    arguments.check_interval(&read.trace)?;
    has.delay |= read.has.delay;
    has.loss = read.has.loss;
    Ok(Made::of((read.trace, has)))
}

/// Refuses a rate and a delay that no step takes.
fn check_base(arguments: &Arguments, read: &Content) -> Result<(), String> {
    let took_delay = !read.has.delay || read.lacks.iter().any(|(_, what)| *what == "delay");
    let unused = |name: &str, what: &str| Err(format!("{name} changes nothing; {what}"));
    match read.format {
        Format::Mahimahi if arguments.rate.is_some() => unused("--rate", "the trace says when packets are sent"),
        _ if arguments.rate.is_some() && !read.took_rate => unused("--rate", "each step has a rate"),
        _ if arguments.delay.is_some() && !took_delay => unused("--delay", "each step has a delay"),
        _ => Ok(()),
    }
}

/// The trace of a link of a scenario. A line with grants has in its own what their slots let pass in the mean, which
/// other programs need. A scenario with the same grants takes that of the granted slots.
fn of_scenario(path: &Path, arguments: &Arguments) -> Result<Made, Failure> {
    let link = arguments.link.as_deref().unwrap_or("down");
    let scenario = Scenario::load(path, &[]).map_err(Failure::Report)?;
    let links = &scenario.network().links;
    let Some(found) = links.iter().find(|known| known.hop.name == link) else {
        let names = links.iter().map(|link| link.hop.name.as_str()).collect::<Vec<_>>();
        let message = format!("{}: no link {link:?}; its links: {}", path.display(), names.join(", "));
        return Err(Failure::new(message).hint("--link NAME"));
    };
    let line = &found.hop.line;
    let Some(trace) = line.trace.clone() else {
        let with_trace = links.iter().find(|link| link.hop.line.trace.is_some());
        let failure = Failure::new(format_args!("{}: link {link} has no trace", path.display()));
        return Err(match with_trace {
            Some(other) => failure.hint(format!("--link {}", other.hop.name)),
            None => failure.hint("`trace` of a direction: no link of this scenario has one"),
        });
    };
    let has = match &trace {
        // Steps without a loss have that of the direction.
        Trace::Steps(steps) => {
            let loses = |step: &Step| step.loss > Ratio::ZERO;
            Has { delay: true, loss: line.loss > Ratio::ZERO || steps.steps().iter().any(loses) }
        }
        Trace::Opportunities(_) => Has::default(),
    };
    Ok(match (line.grants.as_ref().and_then(|grants| grants.trace.clone()), arguments.to) {
        (None, _) => Made::of((trace, has)),
        (Some(granted), Some(To::Csv)) => Made::of((Trace::Steps(granted), has)),
        (Some(_), _) => {
            let source = "what its grants let pass in the mean; --to csv writes the rates of the granted slots";
            Made { trace, has, source: Some(format!("link {link}: {source}")) }
        }
    })
}

/// The IP bytes of a capture, by interval. Times count from the first IP packet of the capture, and the trace has the
/// whole intervals until the last one, so that the traces of its two directions belong together. A rate of the interval
/// in which the capture ends would be too low.
fn of_capture(path: &Path, arguments: &Arguments, delay: Duration) -> Result<Trace, Failure> {
    let named = |error: String| Failure::new(format_args!("{}: {error}", path.display()));
    let interval = arguments.interval();
    let opened = File::open(path).map_err(|error| named(error.to_string()))?;
    let (mut times, mut last, mut carried) = (capture::Times::default(), Duration::ZERO, Vec::new());
    let mut hosts: BTreeMap<IpAddr, Carried> = BTreeMap::new();
    capture::read(opened, &mut |frame| {
        let packet = frame.at_ns.zip(frame.ip.and_then(|ip| length_and_addresses(ip, frame.ip_len)));
        if let Some((at, (bytes, [source, destination]))) = packet
            && let Some(at) = times.since_first(at)
        {
            let at = Duration::from_ps(at.as_ps());
            last = last.max(at);
            if arguments.towards.is_none_or(|towards| towards.holds(destination)) {
                carried.push((at, bytes * 8));
                hosts.entry(source).or_default().from += bytes;
                hosts.entry(destination).or_default().to += bytes;
            }
        }
        Ok(())
    })
    .map_err(named)?;
    if carried.is_empty() {
        return Err(named(match arguments.towards {
            Some(towards) => format!("no IP packet with a time to {towards}"),
            None => "no IP packet with a time".to_owned(),
        }));
    }
    let both_ways = hosts.iter().filter(|(_, carried)| carried.from > 0 && carried.to > 0);
    let most = both_ways.max_by_key(|(_, carried)| carried.to).filter(|_| arguments.towards.is_none());
    if let Some((host, Carried { to, from })) = most {
        let both = format!("{to} bytes to {host} and {from} from it; a trace is of one direction");
        let all = if host.is_ipv4() { "0.0.0.0/0" } else { "::/0" };
        return Err(named(both).hint(format!("--towards {host}, or --towards {all} for the sum of both directions")));
    }
    let end = interval * (last / interval);
    if end.is_zero() {
        return Err(named(format!("its IP packets came within {last}, less than the --interval of {interval}")));
    }
    let carried = carried.into_iter().filter(|(at, _)| *at < end).map(|(at, bits)| (at / interval, bits));
    write::steps_of(carried, interval, end).and_then(|rates| steps(&rates, delay)).map_err(named)
}

/// IP bytes to and from a host.
#[derive(Default)]
struct Carried {
    to: u64,
    from: u64,
}

/// Length, source and destination of an IP packet, in a frame with `whole` octets from there on.
fn length_and_addresses(ip: &[u8], whole: u32) -> Option<(u64, [IpAddr; 2])> {
    let word = |at: usize| Some(u64::from(u16::from_be_bytes(ip.get(at..at + 2)?.try_into().ok()?)));
    let (stated, addresses) = match ip.first()? >> 4 {
        4 => {
            let address = |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(ip.get(at..at + 4)?).ok()?));
            (word(2)?, [address(12)?, address(16)?])
        }
        6 => {
            let address = |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(ip.get(at..at + 16)?).ok()?));
            (word(4)? + 40, [address(8)?, address(24)?])
        }
        _ => return None,
    };
    let length = if lacks_length(ip) { u64::from(whole) } else { stated };
    Some((length, addresses))
}

/// Steps with this delay.
fn steps(steps: &Steps, delay: Duration) -> Result<Trace, String> {
    let moved = steps.steps().iter().map(|step| Step { delay, ..*step }).collect();
    let steps = Steps::new(moved, steps.period()).map_err(|error| error.to_string())?;
    Ok(Trace::Steps(Arc::new(steps)))
}

#[cfg(test)]
mod tests {
    use super::super::arguments::Prefix;
    use super::*;

    #[test]
    fn a_prefix_holds_its_addresses() {
        let prefix = |text: &str| text.parse::<Prefix>();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(prefix("192.0.2.0/24").unwrap().holds(address("192.0.2.255")));
        assert!(!prefix("192.0.2.0/24").unwrap().holds(address("192.0.3.0")));
        assert!(prefix("192.0.2.7").unwrap().holds(address("192.0.2.7")));
        assert!(!prefix("192.0.2.7").unwrap().holds(address("192.0.2.6")));
        assert!(prefix("2001:db8::/32").unwrap().holds(address("2001:db8:1::")));
        assert!(
            prefix("::/0").unwrap().holds(address("2001:db8::")) && !prefix("::/0").unwrap().holds(address("10.0.0.1"))
        );
        assert!(prefix("192.0.2.0/33").is_err() && prefix("host").is_err());
    }
}
