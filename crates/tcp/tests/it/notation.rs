//! The notation of times, flags and options in a trace. The golden traces of the queueing crate share it.

use lastmile_packet::{EcnBytes, Meta, Options, SackBlock, SeqNumber, SynOptions, TcpFlags};
use lastmile_units::{Duration, Instant};

/// Seconds with at least three decimals, more where needed.
pub(crate) fn format_time(time: Instant) -> String {
    let (seconds, rest) = (time.as_ps() / 1_000_000_000_000, time.as_ps() % 1_000_000_000_000);
    let digits = format!("{rest:012}");
    let digits = digits.trim_end_matches('0');
    format!("{seconds}.{digits:0<3}")
}

pub(crate) fn parse_time(text: &str) -> Option<Instant> {
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 12 {
        return None;
    }
    let ps: u64 = format!("{decimals:0<12}").parse().ok()?;
    Some(Instant::ZERO + Duration::from_s(seconds.parse().ok()?) + Duration::from_ps(ps))
}

const FLAGS: [(char, TcpFlags); 8] = [
    ('S', TcpFlags::SYN),
    ('F', TcpFlags::FIN),
    ('R', TcpFlags::RST),
    ('P', TcpFlags::PSH),
    ('.', TcpFlags::ACK),
    ('E', TcpFlags::ECE),
    ('W', TcpFlags::CWR),
    ('A', TcpFlags::AE),
];

pub(crate) fn format_flags(flags: TcpFlags) -> String {
    let letters: String = FLAGS.iter().filter(|(_, flag)| flags.contains(*flag)).map(|(letter, _)| *letter).collect();
    if letters.is_empty() { "-".to_owned() } else { letters }
}

pub(crate) fn parse_flags(text: &str) -> Option<TcpFlags> {
    text.chars().filter(|letter| *letter != '-').try_fold(TcpFlags::NONE, |flags, letter| {
        let (_, flag) = FLAGS.iter().find(|(known, _)| *known == letter)?;
        Some(flags.with(*flag))
    })
}

/// Options, with the edges of SACK blocks counted from `base`.
pub(crate) fn format_options(segment: &Meta, base: SeqNumber) -> String {
    let options = segment.options();
    let syn = options.syn_options();
    let mut list = Vec::new();
    if segment.flags.contains(TcpFlags::SYN) {
        list.extend(syn.mss.map(|mss| format!("mss {mss}")));
        list.extend(syn.sack_permitted.then(|| "sackOK".to_owned()));
        list.extend(syn.window_scale.map(|shift| format!("wscale {shift}")));
    }
    list.extend(options.timestamps().map(|(value, echo)| format!("TS {value} {echo}")));
    if options.sack_count() > 0 {
        let blocks: Vec<String> = options
            .sack_blocks()
            .map(|block| format!("{}:{}", block.left.distance_from(base), block.right.distance_from(base)))
            .collect();
        list.push(format!("sack {}", blocks.join(" ")));
    }
    if let Some(EcnBytes { ect0, ce, ect1 }) = options.accecn() {
        list.push(format!("ecn {ect0} {ce} {ect1}"));
    }
    list.join(",")
}

/// Parses options from this notation.
pub(crate) fn parse_options(text: &str, base: SeqNumber) -> Option<Options> {
    let mut syn = SynOptions::default();
    let (mut timestamps, mut blocks, mut counters) = (None, Vec::new(), None);
    for option in text.split(',').filter(|option| !option.is_empty()) {
        let words: Vec<&str> = option.split_whitespace().collect();
        match *words.as_slice() {
            ["mss", value] => syn.mss = Some(value.parse().ok()?),
            ["wscale", value] => syn.window_scale = Some(value.parse().ok()?),
            ["sackOK"] => syn.sack_permitted = true,
            ["TS", value, echo] => timestamps = Some((value.parse().ok()?, echo.parse().ok()?)),
            ["ecn", ect0, ce, ect1] => {
                let [ect0, ce, ect1] = [ect0, ce, ect1].map(|value| value.parse().ok());
                counters = Some(EcnBytes { ect0: ect0?, ce: ce?, ect1: ect1? });
            }
            ["sack", ref list @ ..] => {
                for block in list {
                    let (left, right) = block.split_once(':')?;
                    let edge = |text: &str| text.parse().ok().map(|offset| base.add(offset));
                    blocks.push(SackBlock { left: edge(left)?, right: edge(right)? });
                }
            }
            _ => return None,
        }
    }
    let mut options = if blocks.is_empty() { Options::syn(syn) } else { Options::NONE.with_sack(&blocks) };
    if let Some((value, echo)) = timestamps {
        options = options.with_timestamps(value, echo);
    }
    Some(counters.map_or(options, |counters| options.with_accecn(counters)))
}
