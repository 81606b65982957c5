//! `[ack]`: the class of the ACKs, and its rate.

use lastmile_linklayer::LinkLayer;
use lastmile_units::{BitRate, ByteCount, Ratio, WireBytes};

use super::classes::{Around, burst, delay, portion, priority, queue_of};
use super::form::Form;
use super::model::{AckRate, Class};
use crate::reader::Table;
use crate::value::Factor;

/// The share of the line above which the ACKs of a full download leave too little for others.
const TOO_MUCH_FOR_ACKS: Ratio = Ratio::from_percent(90).expect("at most 100 %");
/// The share of ACKs in a line on which they would leave too little for others.
const HALF: Ratio = Ratio::from_percent(50).expect("at most 100 %");

/// The size under `key`, in IP bytes: a default is at most the MTU of the line.
fn packet(table: &Table<'_>, key: &'static str, layer: LinkLayer) -> Option<ByteCount> {
    let size: ByteCount = table.get(key)?;
    let mtu = layer.mtu().filter(|_| !table.has(key));
    Some(mtu.map_or(size, |mtu| size.min(ByteCount::new(mtu.get().into()))))
}

/// The class of the ACKs, and how its rate came about.
pub(super) fn ack_class(table: &Table<'_>, around: &Around) -> Option<(AckRate, Class)> {
    let line = &around.line;
    let (name, factor): (_, Option<Factor>) = (table.name("class"), table.get("factor"));
    let (packet, ack) = (packet(table, "packet", line.down_layer), table.get::<ByteCount>("ack"));
    let fixed: Option<BitRate> = table.optional("rate");
    let ceil = portion(table.get("ceil"), around.rate);
    let priority = priority(table);
    let delay = delay(table, ack?, around)?;
    let burst = burst(table, "burst", around)?;
    let (Factor(factor_ppm), packet, ack) = (factor?, line.down_layer.on_wire(packet?), line.up_layer.on_wire(ack?));
    if line.down.is_none() && fixed.is_none() {
        let hint = "a rate in [ack], or the downstream rate of the line".to_owned();
        table.error("rate", "the ACKs of a download whose rate is unknown", Some(hint));
        return None;
    }
    let needed = line.down.and_then(|down| needed(down, packet, ack, factor_ppm));
    let fits = needed <= TOO_MUCH_FOR_ACKS.of_rate(around.rate);
    let Some(rate) = fixed.or(if fits { needed } else { HALF.of_rate(around.rate) }) else {
        table.error("rate", "a class at half of the line's rate, which is less than a bit per second", None);
        return None;
    };
    let ceil = ceil?;
    if table.has("ceil") && ceil < rate && around.form != Form::Priority {
        let message = format!("{}: a ceil of {ceil} is below the rate of {rate}", table.path("ceil"));
        table.error("ceil", message, Some("a larger ceil, a larger factor, or a smaller fixed rate".into()));
        return None;
    }
    let guarantee = (around.form != Form::Priority).then_some(rate);
    around.form.warn((table, &["ceil", "priority", "burst"]), (ceil, guarantee), (around.rate, around.drains));
    let ceiling = around.form.ceiling(ceil, guarantee);
    let queue = queue_of(table, "regulate", ceiling, around);
    let rate = AckRate { rate, needed: needed.filter(|_| fixed.is_none()), packet, ack, factor_ppm };
    let class = Class {
        name: name?,
        parent: None,
        rate: guarantee,
        ceil: ceiling.unwrap_or(around.rate),
        delay,
        priority: priority?,
        burst,
        cburst: around.largest_wire(),
        queue: Some(queue?),
    };
    Some((rate, class))
}

/// The rate of the ACKs of a full download, in whole bits a second, rounded up.
fn needed(down: BitRate, packet: WireBytes, ack: WireBytes, factor_ppm: u64) -> Option<BitRate> {
    let bits = u128::from(down.as_bps()) * u128::from(ack.as_u64()) * 1_000_000;
    let by = u128::from(packet.as_u64()) * u128::from(factor_ppm);
    BitRate::from_bps(u64::try_from(bits.div_ceil(by)).ok()?)
}
