//! The downstream: the kernel has no queue for received packets. A policer drops some of them, or
//! an intermediate functional block (IFB) queues them: a device that returns the packets that it
//! has shaped.

use lastmile_queueing::Spec;
use lastmile_queueing::classify::Match;
use lastmile_queueing::meter::{self, policer};
use lastmile_queueing::spec::Over;
use lastmile_units::{BitRate, WireBytes};

use crate::accounting::Accounting;
use crate::command::{ALIAS, Command, DEVICE, Expected, IFB, Object, Step, Value};

/// The preference of the filter, which identifies it.
pub const PREFERENCE: u32 = 6743;
/// The handle of the ingress discipline, and of clsact, which takes its place.
pub const HANDLE: &str = "ffff:";
/// Where filters of received packets are: clsact has them nowhere else, and an ingress discipline takes any class.
pub const PARENT: &str = "ffff:fff2";
/// An Ethernet header and two VLAN tags. Beside a packet's length, Linux compares its link header with `mtu` on the way
/// in, whatever `overhead` is (`tcf_police_mtu_check`, since 5.18 and in stable kernels before it).
const HEADERS: u64 = 14 + 2 * 4;

/// The ingress discipline of the device.
pub(crate) fn discipline() -> Step {
    // An existing ingress discipline, or clsact, is kept: the filter has its own preference.
    let add = Command::new(&format!("tc qdisc add dev {DEVICE} handle {HANDLE} ingress"));
    Step::Choice {
        about: vec!["ingress discipline, for filters of received packets".to_owned()],
        first: add,
        then: vec![],
        lacking: "a free ingress: the existing discipline is used".to_owned(),
        otherwise: vec![],
    }
}

/// A filter for every received packet: `matchall`, or `u32` if the kernel lacks it.
fn every_packet(about: &str, action: &str, values: &[(&'static str, Value)]) -> Step {
    let object = Object::Filter { device: DEVICE, parent: PARENT.to_owned(), preference: PREFERENCE };
    let filter = |kind: &str, matches: &str| {
        let mut values = values.to_vec();
        values.insert(0, ("kind", Value::Text(kind.to_owned())));
        let words = format!("tc filter add dev {DEVICE} parent {PARENT} protocol all pref {PREFERENCE} {kind}");
        let expected = Expected { object: object.clone(), name: "ingress filter".to_owned(), values };
        Command::new(&words).words(matches).words(action).leaving(expected)
    };
    Step::Choice {
        about: vec![about.to_owned()],
        first: filter("matchall", ""),
        then: vec![],
        lacking: "the matchall classifier: u32 takes its place".to_owned(),
        otherwise: vec![Step::run("", filter("u32", "match u32 0 0"))],
    }
}

/// Creates the intermediate device.
pub(crate) fn device_steps() -> Vec<Step> {
    let link = Expected {
        object: Object::Link { device: IFB },
        name: "intermediate device".to_owned(),
        values: vec![("ifalias", Value::Text(ALIAS.to_owned()))],
    };
    // A device without its alias would be that of somebody else for every later run.
    let alias = Command::new(&format!("ip link set dev {IFB} alias")).word(ALIAS);
    let alias = alias.or_undo(&format!("ip link del dev {IFB}")).leaving(link);
    vec![
        Step::run(
            "the intermediate device, identified by its alias",
            Command::new(&format!("ip link add dev {IFB} type ifb")),
        ),
        Step::run("", alias),
        Step::run("", Command::new(&format!("ip link set dev {IFB} up"))),
    ]
}

/// Redirects received packets through it.
pub(crate) fn redirect_steps() -> Vec<Step> {
    let action = format!("action mirred egress redirect dev {IFB}");
    let values = vec![("action", Value::Text("mirred".to_owned())), ("to_dev", Value::Text(IFB.to_owned()))];
    vec![discipline(), every_packet("received packets go through the intermediate device", &action, &values)]
}

/// The filter of a policer, and the parts of it that cannot be expressed. `None` for another queue.
pub(crate) fn police(queue: &Spec, accounting: &Accounting) -> Option<(Vec<Step>, Vec<String>)> {
    let Spec::Policer(Over { config: policer::Config { rules }, queue }) = queue else { return None };
    let mut remarks = Vec::new();
    if !matches!(**queue, Spec::Fifo(_)) {
        remarks.push("downstream: a queue behind a policer: ingress has no queue; left out".to_owned());
    }
    if rules.len() > 1 {
        remarks.push(format!("downstream: {} policers: only the first is set up", rules.len()));
    }
    let rule = rules.first()?;
    if rule.matches != Match::Any {
        remarks.push("downstream: the policer's condition is left out: it meters every packet".to_owned());
    }
    if rule.exceed != policer::Action::DROP && rule.violate != policer::Action::DROP {
        remarks.push("downstream: packets above the rate are dropped, not marked".to_owned());
    }
    let (rate, burst, mtu) = committed(&rule.meter, accounting, &mut remarks);
    let mtu = mtu.as_u64().max(accounting.largest().as_u64() + HEADERS);
    let layer = accounting.layer();
    // Received packets count from the IP packet, as in CAKE.
    let framing = if layer.cells(accounting.largest()).is_some() { "linklayer atm" } else { "linklayer ethernet" };
    let action = format!(
        "action police rate {}bit burst {}b mtu {}b mpu {}b overhead {} {framing} conform-exceed drop/pass",
        accounting.stab_rate(rate).as_bps(),
        burst.as_u64(),
        mtu,
        layer.min_frame(),
        layer.overhead().max(0),
    );
    let rate = accounting.stab_rate(rate);
    let values = vec![
        ("action", Value::Text("police".to_owned())),
        ("rate", Value::Rate(rate)),
        ("burst", Value::Burst { bytes: burst.as_u64(), rate }),
        ("mtu", Value::Size(mtu)),
    ];
    Some((vec![discipline(), every_packet("received packets are policed", &action, &values)], remarks))
}

/// Rate, burst and largest packet of a meter.
fn committed(
    meter: &meter::Config,
    accounting: &Accounting,
    remarks: &mut Vec<String>,
) -> (BitRate, WireBytes, WireBytes) {
    let largest = accounting.layer().on_wire(accounting.largest());
    let (rate, burst) = match meter {
        meter::Config::TokenBucket { rate, burst } => return (*rate, *burst, largest),
        meter::Config::Police(config) => {
            if config.peak.is_some() {
                remarks.push("downstream: the peak rate of the policer is left out".to_owned());
            }
            return (config.rate, config.burst, config.mtu);
        }
        meter::Config::Car(config) => (config.rate, config.burst),
        meter::Config::SrTcm(config) => (config.cir, config.cbs),
        meter::Config::TrTcm(config) => (config.cir, config.cbs),
        meter::Config::Gcra(config) => (config.rate, largest),
    };
    remarks.push("downstream: the policer becomes one of its committed rate and burst".to_owned());
    (rate, burst.max(largest), largest)
}

#[cfg(test)]
mod tests {
    use lastmile_linklayer::Preset;
    use lastmile_queueing::{Limit, Overflow, fifo};
    use lastmile_units::{ByteCount, PacketCount};

    use super::*;
    use crate::stab::Device;

    /// The `mtu` of a policer on this link, and the value that is read back.
    fn mtu(link: &str) -> (String, Value) {
        let largest = ByteCount::new(1500);
        let accounting = Accounting::new(Preset::by_name(link).unwrap().link, Device::Ethernet, largest);
        let meter = meter::Config::TokenBucket { rate: BitRate::from_mbit_per_s(8), burst: WireBytes::new(20_000) };
        let rule = policer::Rule {
            matches: Match::Any,
            meter,
            coming: policer::Coming::default(),
            largest,
            conform: policer::Action::TRANSMIT,
            exceed: policer::Action::DROP,
            violate: policer::Action::DROP,
        };
        let fifo = fifo::Config { limit: Limit::Packets(PacketCount::new(100)), drop: Overflow::Tail };
        let (config, queue) = (policer::Config { rules: vec![rule] }, Box::new(Spec::Fifo(fifo)));
        let queue = Spec::Policer(Over { config, queue });
        let (steps, _) = police(&queue, &accounting).unwrap();
        let Some(Step::Choice { first, .. }) = steps.last() else { panic!("{steps:?}") };
        let word = first.as_words().iter().position(|word| word == "mtu").unwrap();
        let values = &first.leaves.as_ref().unwrap().values;
        let read = values.iter().find(|(key, _)| *key == "mtu").unwrap();
        (first.as_words()[word + 1].clone(), read.1.clone())
    }

    /// 1500 bytes of IP are 1522 with an Ethernet header and two tags; 32 cells of 53 bytes are more.
    #[test]
    fn a_policer_passes_full_packets_of_ethernet_whatever_the_line_adds() {
        assert_eq!(mtu("ip"), ("1522b".to_owned(), Value::Size(1522)));
        assert_eq!(mtu("slip"), ("1522b".to_owned(), Value::Size(1522)));
        assert_eq!(mtu("bridged-vcmux-fcs"), ("1696b".to_owned(), Value::Size(1696)));
    }
}
