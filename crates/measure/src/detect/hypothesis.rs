//! The catalogue of hypotheses: the ways in which a line may count the bytes of a packet.
//!
//! A hypothesis is a law from IP bytes to bytes on the wire: each preset of `linklayer`, and every
//! overhead within reason with and without a minimum frame. Timing shows a law only up to a factor,
//! the rate. Laws that are proportional over all sizes that can be sent form an equivalence class.
//!
//! 64/65 coding has two laws. `linklayer`, like CAKE, counts a frame's last block whole. On a real
//! line blocks continue across frames (IEEE 802.3, 61.3.3), and the law is proportional to that of
//! a line without blocks and with an equal overhead: no timing tells those two apart.

use lastmile_linklayer::{Framing, LinkLayer, PRESETS, Ppp};
use lastmile_units::ByteCount;

/// Prior weight of an explicit overhead compared with a preset.
const EXPLICIT: f64 = 0.01;
/// The shortest payload of an Ethernet frame.
const PADDED: u32 = 46;

/// A law from IP bytes to bytes on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Law {
    /// Overhead, minimum frame and framing.
    pub link: LinkLayer,
    /// Whether 64/65 blocks continue across frames.
    pub continuous: bool,
}

impl Law {
    /// Bytes on the wire of an IP packet; the mean, where blocks continue across frames.
    pub(crate) fn wire_bytes(self, ip_len: u16) -> f64 {
        let ip = ByteCount::new(u64::from(ip_len));
        if self.continuous { self.link.frame(ip) as f64 * 65.0 / 64.0 } else { self.link.on_wire(ip).as_u64() as f64 }
    }

    fn proportional(self, other: Self, sizes: core::ops::RangeInclusive<u16>) -> bool {
        // All wire sizes are multiples of 1/64 byte, so products of two are exact.
        let (a, b) = (self.wire_bytes(*sizes.end()), other.wire_bytes(*sizes.end()));
        sizes.rev().all(|size| (self.wire_bytes(size) * b - other.wire_bytes(size) * a).abs() < 1e-3)
    }
}

/// Laws that no train can tell apart.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Class {
    /// The laws, presets first.
    pub members: Vec<Law>,
    /// Names of the presets among them.
    pub presets: Vec<&'static str>,
    /// Prior probability.
    pub prior: f64,
}

impl Class {
    /// The law that stands for the class: that of a preset, if it has one.
    pub(crate) fn law(&self) -> Law {
        self.members[0]
    }

    /// Bytes on the wire of an IP packet by [`Class::law`].
    pub(crate) fn wire_bytes(&self, ip_len: u16) -> f64 {
        self.law().wire_bytes(ip_len)
    }
}

/// The classes of all hypotheses for packets of `smallest` to `mtu` bytes. Presets with PPPoE come
/// last in their class where the MTU exceeds that of PPPoE.
pub(crate) fn classes(smallest: u16, mtu: u16) -> Vec<Class> {
    let mut classes: Vec<Class> = Vec::new();
    let mut add = |law: Law, name: Option<&'static str>, weight: f64| {
        let found = classes.iter_mut().find(|class| class.law().proportional(law, smallest..=mtu));
        match found {
            Some(class) => {
                class.prior += weight;
                if !class.members.contains(&law) {
                    class.members.push(law);
                }
                class.presets.extend(name.filter(|name| !class.presets.contains(name)));
            }
            None => classes.push(Class { members: vec![law], presets: name.into_iter().collect(), prior: weight }),
        }
    };
    let mut presets: Vec<_> = PRESETS.iter().collect();
    let fits = |link: LinkLayer| link.mtu().is_none_or(|limit| limit.get() >= mtu);
    presets.sort_by_key(|preset| (!fits(preset.link), prefers_other(preset.link, mtu)));
    for preset in presets {
        add(Law { link: preset.link, continuous: false }, Some(preset.name), 1.0);
        if preset.link.framing() == Framing::Ptm {
            add(Law { link: preset.link, continuous: true }, Some(preset.name), 1.0);
        }
    }
    for (framing, overheads) in [(Framing::Atm, 8..=72), (Framing::Ptm, 4..=56), (Framing::None, 0..=72)] {
        for overhead in overheads {
            for payload in [0, PADDED] {
                let minimum = if payload == 0 { 0 } else { payload + overhead as u32 };
                let link = LinkLayer::new(overhead, framing).and_then(|link| link.with_min_frame(minimum));
                let link = link.expect("an overhead and a minimum in range");
                add(Law { link, continuous: false }, None, EXPLICIT);
            }
        }
    }
    let sum: f64 = classes.iter().map(|class| class.prior).sum();
    classes.iter_mut().for_each(|class| class.prior /= sum);
    classes
}

/// Whether an MTU of 1492 or less speaks for PPPoE rather than for this encapsulation.
fn prefers_other(link: LinkLayer, mtu: u16) -> bool {
    mtu <= 1492 && link.ppp() != Ppp::Inside
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class_of<'a>(classes: &'a [Class], preset: &str) -> Vec<&'a Class> {
        classes.iter().filter(|class| class.presets.contains(&preset)).collect()
    }

    /// By the tables of RFC 2684 and RFC 2516: 2 + 14 + 6 + 2 + 8 bytes of PPPoE over VC-multiplexed
    /// bridging are the 8 + 2 + 14 + 8 of LLC bridging without PPPoE.
    #[test]
    fn encapsulations_of_equal_overhead_form_a_class() {
        let classes = classes(48, 1500);
        let bridged = class_of(&classes, "bridged-llcsnap");
        assert_eq!(bridged.len(), 1);
        assert_eq!(bridged[0].presets, ["bridged-llcsnap", "pppoe-vcmux"], "the MTU of 1500 puts PPPoE last");
        assert_eq!(class_of(&classes, "ipoa-vcmux")[0].presets, ["ipoa-vcmux", "aal5"]);
        assert_eq!(class_of(&classes, "ip")[0].presets, ["ip", "slip"]);
        assert_eq!(class_of(&classes, "pppoa-vcmux")[0].presets, ["pppoa-vcmux"]);
    }

    #[test]
    fn a_small_mtu_puts_pppoe_first() {
        let classes = classes(48, 1492);
        assert_eq!(class_of(&classes, "bridged-llcsnap")[0].presets, ["pppoe-vcmux", "bridged-llcsnap"]);
    }

    /// Blocks that continue across frames: 65/64 of every size, a factor that the rate absorbs.
    #[test]
    fn continuous_blocks_look_like_none() {
        let classes = classes(48, 1500);
        let ptm = class_of(&classes, "bridged-ptm");
        assert_eq!(ptm.len(), 2, "blocks counted whole, and blocks that continue");
        let plain = Law { link: LinkLayer::new(22, Framing::None).unwrap(), continuous: false };
        assert_eq!(ptm.iter().filter(|class| class.members.contains(&plain)).count(), 1);
    }

    /// A minimum of 84 bytes with 38 of overhead shows only below 46 bytes of IP.
    #[test]
    fn a_minimum_frame_shows_only_below_46_bytes() {
        assert_eq!(class_of(&classes(46, 1500), "ethernet")[0].presets, ["ethernet", "l2tp-acfc"]);
        assert_eq!(class_of(&classes(44, 1500), "ethernet")[0].presets, ["ethernet"]);
    }
}
