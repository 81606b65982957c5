//! `[down]`: the middlebox behind the queue of the downstream.

use lastmile_linklayer::LinkLayer;
use lastmile_queueing::Match;
use lastmile_queueing::ack::{clamp, handshakes, pacing};
use lastmile_queueing::classify::rules;
use lastmile_queueing::meter::{self, drain, policer, tbf};
use lastmile_queueing::spec::{Over, Spec};
use lastmile_units::{BitRate, ByteCount, Duration, Ratio, WireBytes};

use super::classes::{Around, Sharing, burst, kind_of_queue, scheduled, with_bandwidth};
use super::form::{FORMS, Form};
use super::model::{Class, Down, Line, Police, Regulated};
use super::schema;
use crate::queue;
use crate::reader::Table;

/// IP and TCP headers without options: the bytes of a full packet in addition to its payload.
const HEADERS: u64 = 40;

impl Around {
    /// `queue` before a line of which the scheduler may use `share`: one packet at a time, so that none
    /// waits in the modem.
    pub(super) fn one_by_one(&self, line: BitRate, share: Ratio, queue: Spec) -> Spec {
        let (largest, catch_up) = (self.largest, Duration::ZERO);
        let config = drain::Config { line, share, drain: None, urgent: Match::Never, largest, catch_up };
        Spec::Drain(Over { config, queue: Box::new(queue) })
    }

    /// `queue` behind a token bucket of the rate.
    fn shaped(&self, queue: Spec, burst: WireBytes) -> Spec {
        if matches!(queue, Spec::Cake(_)) {
            return queue;
        }
        let (rate, largest) = (self.rate, self.largest);
        Spec::Tbf(Over {
            config: tbf::Config { rate, burst, peak: None, largest, catch_up: Duration::ZERO },
            queue: Box::new(queue),
        })
    }
}

/// The discipline after the downstream line, if any, and the regulation of upstream ACKs.
pub(super) fn read(table: &Table<'_>, line: Line) -> Option<(Option<Down>, Regulated)> {
    let Some(line_down) = line.down else { return Some((None, Regulated::default())) };
    let form = table.choice("kind", &FORMS);
    let given: Option<Ratio> = table.optional("share");
    let largest: Option<ByteCount> = table.get("largest");
    let drain = law(table);
    let (form, largest, drain) = (form?, largest?, drain?);
    let share = match (given, &drain) {
        (None, Some(_)) => Some(DRAINED_SHARE),
        (given, _) => given,
    };
    let Some(rate) = share.unwrap_or(Ratio::ONE).of_rate(line_down) else {
        table.error("share", format!("{}: nothing is left of {line_down}", table.path("share")), None);
        return None;
    };
    let around = Around { line, layer: line.down_layer, rate, largest, form, drains: drain.is_some() };
    let regulated = regulated(table, &around, share);
    let burst = burst(table, "burst", &around)?;
    let police = match table.table("police") {
        Some(police) => Some(Police::read(&police.open(&schema::POLICE), &around)?),
        None => None,
    };
    let Sharing { classes, rules, kind, queue, .. } = sharing(table, &around, share.is_some())?;
    let config = drain::Config {
        line: line_down,
        share: share.unwrap_or(Ratio::ONE),
        drain,
        urgent: urgent(&classes),
        largest,
        catch_up: Duration::ZERO,
    };
    if let Err(error) = config.check() {
        table.error("drain", format!("{}: {error}", table.path("drain")), None);
        return None;
    }
    let regulated = regulated?;
    if share.is_none() && police.is_none() && classes.is_empty() && !table.has("queue") && regulated.clamp.is_none() {
        return Some((None, regulated));
    }
    let policed = |queue| match &police {
        Some(police) => {
            Box::new(Spec::Policer(Over { config: policer::Config { rules: vec![police.rule(largest)] }, queue }))
        }
        None => queue,
    };
    // Below the rules and the drain, which sees all that arrives.
    let queue = match queue {
        Spec::Rules(rules) => Spec::Rules(rules::Config { queue: policed(rules.queue), ..rules }),
        queue => *policed(Box::new(queue)),
    };
    let shapes_itself = form == Form::Htb && !classes.is_empty();
    let queue = match (drain, share, queue) {
        // Below the rules, whose classes say what is urgent.
        (Some(_), _, Spec::Rules(rules)) => {
            let queue = Box::new(Spec::Drain(Over { config, queue: rules.queue }));
            Spec::Rules(rules::Config { queue, ..rules })
        }
        (Some(_), _, queue) => Spec::Drain(Over { config, queue: Box::new(queue) }),
        (None, Some(_), queue) if !shapes_itself => around.shaped(queue, burst),
        (.., queue) => queue,
    };
    // The clamp asks what SYN-ACKs say, which come this way.
    let queue = match &regulated.clamp {
        Some(_) => Spec::Witness(Over { config: handshakes::Config, queue: Box::new(queue) }),
        None => queue,
    };
    let queue = queue::checked_at(table, "queue", &queue, &line.down_layer)?;
    let scheduler = if classes.is_empty() { Form::None } else { form };
    let rate = share.is_some().then_some(rate);
    let scheduler = scheduler.name();
    Some((
        Some(Down { scheduler, kind, rate, largest, drain, police, classes, rules, queue, autorate: None }),
        regulated,
    ))
}

/// The rate that `drain` alone lets through.
const DRAINED_SHARE: Ratio = Ratio::from_percent(98).expect("a share");

/// The classes of the highest priority: their packets do not wait for the shaper.
fn urgent(classes: &[Class]) -> Match {
    let numbers = classes.iter().zip(0..).filter(|(class, _)| class.priority == 0 && class.queue.is_some());
    match numbers.map(|(_, number)| Match::Class(number)).collect::<Vec<_>>() {
        none if none.is_empty() => Match::Never,
        some => Match::OneOf(some),
    }
}

/// `None`: wrong. `Some(None)`: nothing is drained.
fn law(table: &Table<'_>) -> Option<Option<drain::Law>> {
    let own = if table.has_table("drain") {
        table.table("drain")?.open(&schema::DRAIN)
    } else if !table.has("drain") {
        return Some(None);
    } else if table.optional::<bool>("drain")? {
        table.empty("drain", &schema::DRAIN)
    } else {
        return Some(None);
    };
    let depth: Option<Ratio> = own.get("depth");
    let (patience, longest): (Option<Duration>, Option<Duration>) = (own.get("patience"), own.get("longest"));
    Some(Some(drain::Law { depth: depth?, patience: patience?, longest: longest? }))
}

/// Classes, or one queue.
fn sharing(table: &Table<'_>, around: &Around, shaped: bool) -> Option<Sharing> {
    if table.has("class") {
        if around.form == Form::None {
            table.error("class", "class without a scheduler of classes", Some("leave out kind, or the classes".into()));
            return None;
        }
        return scheduled(table, table, None, around);
    }
    if table.has("rule") {
        table.error("rule", "rule without a class", None);
        return None;
    }
    let queue = match table.table("queue") {
        Some(queue) => around.patient(queue::read(queue, &around.wire())?),
        None if table.has("queue") => return None,
        None => Spec::fifo(1000),
    };
    let queue = if shaped { with_bandwidth(queue, around.rate) } else { queue };
    Some(Sharing { ack: None, classes: Vec::new(), rules: Vec::new(), kind: kind_of_queue(table), queue })
}

/// The payload rate of a rate on the wire, in full packets.
fn payload(rate: BitRate, largest: ByteCount, layer: &LinkLayer) -> Option<BitRate> {
    let payload = u128::from(largest.as_u64().checked_sub(HEADERS)?);
    let bps = u128::from(rate.as_bps()) * payload / u128::from(layer.on_wire(largest).as_u64());
    BitRate::from_bps(u64::try_from(bps).ok()?)
}

/// Half of what a shaper of this share leaves of the line; `None` where it leaves nothing.
fn half_of_margin(share: Ratio) -> Option<Ratio> {
    let margin = Ratio::ONE.as_parts_per_billion().saturating_sub(share.as_parts_per_billion());
    Ratio::from_parts_per_billion(margin / 2).filter(|half| *half > Ratio::ZERO)
}

/// The regulators of the upstream, which the table asks for; `None` if they are wrong.
fn regulated(table: &Table<'_>, around: &Around, share: Option<Ratio>) -> Option<Regulated> {
    let mut regulated = Regulated::default();
    if !table.has("pace") && !table.has("clamp") {
        return Some(regulated);
    }
    let Some(rate) = payload(around.rate, around.largest, &around.layer) else {
        table.error("largest", format!("{}: no space for a payload", table.path("largest")), None);
        return None;
    };
    let mss = ByteCount::new(around.largest.as_u64() - HEADERS);
    if let Some(pace) = table.table("pace") {
        let pace = pace.open(&schema::PACE);
        let (share, max_hold): (Option<Ratio>, Option<Duration>) = (pace.get("share"), pace.get("max_hold"));
        let share = share?;
        let Some(rate) = share.of_rate(rate) else {
            pace.error("share", format!("{}: {share} of {rate} is nothing", pace.path("share")), None);
            return None;
        };
        regulated.pace = Some(pacing::Config { rate, max_hold: max_hold?, exempt: Match::Never });
    }
    if let Some(clamp) = table.table("clamp") {
        let clamp = clamp.open(&schema::CLAMP);
        let rtt: Option<Duration> = clamp.get("rtt");
        // The transmission of one packet each way, which on a slow line is a good part of a round trip. A direction
        // that is not shaped counts as fast.
        let line = &around.line;
        let [up, down] = [(line.up, line.up_layer), (line.down, line.down_layer)]
            .map(|(rate, layer)| rate.map_or(Duration::ZERO, |rate| rate.time_for(layer.on_wire(around.largest))));
        let growth: Option<Ratio> = clamp.optional("growth");
        let growth = growth.or(share.and_then(half_of_margin)).map(|share| clamp::Growth { slack: up + down, share });
        let target = clamp::Target::Shared { rate, rtt: rtt? + up + down, growth };
        regulated.clamp = Some(clamp::Config { target, mss, exempt: Match::Never });
    }
    Some(regulated)
}

impl Police {
    fn read(table: &Table<'_>, around: &Around) -> Option<Self> {
        let share: Option<Ratio> = table.get("share");
        let burst: Option<WireBytes> = table.optional("burst");
        if table.has("burst") && burst.is_none() {
            return None;
        }
        let share = share?;
        let Some(rate) = around.line.down.and_then(|down| share.of_rate(down)) else {
            table.error("share", format!("{}: nothing is left", table.path("share")), None);
            return None;
        };
        let largest = around.largest_wire();
        let burst = burst.unwrap_or_else(|| WireBytes::new(largest.as_u64().saturating_mul(10)));
        if burst < largest {
            let message = format!(
                "{}: a burst of {burst} is smaller than the largest packet, which takes {largest}",
                table.path("burst")
            );
            table.error("burst", message, Some("such a packet would never pass".into()));
            return None;
        }
        Some(Self { rate, burst })
    }

    fn rule(self, largest: ByteCount) -> policer::Rule {
        policer::Rule {
            matches: Match::Any,
            meter: meter::Config::TokenBucket { rate: self.rate, burst: self.burst },
            coming: policer::Coming::Blind,
            largest,
            conform: policer::Action::TRANSMIT,
            exceed: policer::Action::DROP,
            violate: policer::Action::DROP,
        }
    }
}
