//! The encapsulations in use, by the names that `tc-cake(8)` users know, with every header of each.
//!
//! Published: RFC 2684 (routed and bridged), RFC 2364 (PPP over AAL5), RFC 2516 (PPPoE), ITU-T
//! G.992.3 Annex N (PTM), IEEE 802.3, DOCSIS, RFC 2661 (L2TP). Overheads include the 8-byte AAL5
//! trailer.
//!
//! Differs from `tc-cake(8)`: CAKE has no `-fcs` encapsulations, `aal5` or `l2tp`. Here
//! `ether-vlan` alone is a preset with the minimum frame that a tag brings (88); next to other words it adds 4 bytes
//! and leaves the minimum, as CAKE's keyword does.

use core::num::NonZeroU16;

use crate::l2tp::{self, PppHeader};
use crate::link::{Framing, LinkError, LinkLayer, Ppp};
use crate::{aal5, ethernet, ptm};

/// One header, trailer, code or gap around an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Name of the header, with its source where it is not obvious.
    pub name: &'static str,
    /// Length in bytes.
    pub bytes: u32,
    /// Whether the header belongs to PPP.
    pub ppp: Ppp,
    /// The largest IP packet behind this header, if the header sets a limit.
    pub mtu: Option<NonZeroU16>,
}

/// A named encapsulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The name that lists and messages use.
    pub name: &'static str,
    /// Other names, including those of `tc-cake(8)`, `tc-stab(8)` and the literature.
    pub aliases: &'static [&'static str],
    /// The resulting link layer.
    pub link: LinkLayer,
    /// The headers that make up the overhead, outermost first.
    pub headers: &'static [Header],
    /// Where the encapsulation is used, and its traps.
    pub note: &'static str,
}

impl Preset {
    /// The preset with this name or alias. Case does not matter, and `_` counts as `-`.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|preset| preset.names().any(|known| same(known, name)))
    }

    /// The name, then the aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        core::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// The candidates for a wrong name: the presets that begin with `word`, or all names and aliases if none does.
    #[must_use]
    pub fn candidates(word: &str) -> Vec<&'static str> {
        let begun: Vec<_> = PRESETS.iter().map(|preset| preset.name).filter(|name| name.starts_with(word)).collect();
        if begun.is_empty() { PRESETS.iter().flat_map(Self::names).collect() } else { begun }
    }
}

impl LinkLayer {
    /// The link layer of a preset, of `l2tp/CARRIER`, the tunnel over another preset (`l2tp/ethernet`), or of several
    /// words of `tc-cake(8)`: `pppoe-ptm ether-vlan`, `ptm overhead 34 mpu 68`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        if name.trim().contains(char::is_whitespace) {
            return Self::from_words(name.split_whitespace());
        }
        let mut names = name.rsplit('/');
        let carrier = Preset::by_name(names.next()?)?.link;
        // Iteration, because a name of any length may come in. The first tunnel that exceeds the
        // overhead ends it.
        names.try_fold(carrier, |carrier, tunnel| {
            let ppp = match Preset::by_name(tunnel)?.name {
                name if name == L2TP.name => PppHeader::Full,
                name if name == L2TP_ACFC.name => PppHeader::NoAddress,
                _ => return None,
            };
            l2tp::over(carrier, ppp).ok()
        })
    }

    /// At most one preset, and words that differ from it. As in `tc-cake(8)`, a word acts on those before it:
    /// `overhead`, `raw` and `conservative` replace their bytes, and the other presets and `ether-vlan` add to them;
    /// only a preset with a minimum frame replaces `mpu`, and each one but `ethernet` the framing, of which there is
    /// none at first.
    fn from_words<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut base = None;
        let (mut overhead, mut framing, mut minimum) = (0_i32, Framing::None, 0);
        while let Some(word) = words.next() {
            match word {
                "overhead" => overhead = words.next()?.parse().ok()?,
                "mpu" => minimum = words.next()?.parse().ok()?,
                "noatm" => framing = Framing::None,
                "atm" => framing = Framing::Atm,
                "ptm" => framing = Framing::Ptm,
                _ => match Preset::by_name(word)? {
                    preset if preset.name == ETHER_VLAN.name => {
                        overhead = overhead.checked_add_unsigned(ethernet::VLAN_TAG)?;
                    }
                    Preset { name, link, .. } if base.is_none() => {
                        let before = if [IP.name, CONSERVATIVE.name].contains(name) { 0 } else { overhead };
                        overhead = before.checked_add(link.overhead())?;
                        framing = if *name == ETHERNET.name { framing } else { link.framing() };
                        minimum = if link.min_frame() > 0 { link.min_frame() } else { minimum };
                        base = Some(link);
                    }
                    _ => return None,
                },
            }
        }
        let layer = Self::new(overhead, framing).and_then(|layer| layer.with_min_frame(minimum)).ok()?;
        Some(layer.with_mtu(base.and_then(|base| base.mtu())))
    }
}

fn same(known: &str, given: &str) -> bool {
    let fold = |byte: u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    known.len() == given.len() && known.bytes().zip(given.bytes()).all(|(a, b)| fold(a) == fold(b))
}

const fn header(name: &'static str, bytes: u32) -> Header {
    Header { name, bytes, ppp: Ppp::Absent, mtu: None }
}

const fn ppp(name: &'static str, bytes: u32) -> Header {
    Header { name, bytes, ppp: Ppp::Inside, mtu: None }
}

const MAC: Header = Header {
    mtu: NonZeroU16::new(ethernet::MTU),
    ..header("Ethernet header: addresses 6 + 6, EtherType 2", ethernet::MAC_HEADER)
};
const FCS: Header = header("Ethernet FCS", ethernet::FCS);
const AAL5_TRAILER: Header = header("AAL5 trailer: UU 1, CPI 1, length 2, CRC 4", aal5::TRAILER);
const LLC_SNAP: Header = header("LLC AA-AA-03 and SNAP: 3 + OUI 3 + PID 2", 8);
const BRIDGED_PAD: Header = header("pad before the bridged frame (RFC 2684 section 5.2)", 2);
const PPP: Header = ppp("PPP protocol", 2);
/// RFC 2516, section 7: the MRU is at most 1492, Ethernet's MTU less the headers of PPPoE and PPP.
const PPPOE: Header = Header { mtu: NonZeroU16::new(ethernet::MTU - 8), ..header("PPPoE header (RFC 2516)", 6) };
const ALLOWANCE: Header =
    Header { name: "allowance: more than any encapsulation above", bytes: 48, ppp: Ppp::Unknown, mtu: None };
const PTM: Header = header("PTM: S 1, Ck 1, TC-CRC 2", ptm::FRAME_OVERHEAD);

/// The sum of `headers` around each packet, then `framing`, with a minimum frame unless `min` is 0.
const fn link(headers: &[Header], framing: Framing, min: u32) -> LinkLayer {
    let (mut sum, mut ppp, mut mtu) = (0, Ppp::Absent, None);
    let mut i = 0;
    while i < headers.len() {
        sum += headers[i].bytes;
        mtu = lower(mtu, headers[i].mtu);
        ppp = match (ppp, headers[i].ppp) {
            (Ppp::Inside, _) | (_, Ppp::Inside) => Ppp::Inside,
            (Ppp::Unknown, _) | (_, Ppp::Unknown) => Ppp::Unknown,
            (Ppp::Absent, Ppp::Absent) => Ppp::Absent,
        };
        i += 1;
    }
    match LinkLayer::new(sum as i32, framing) {
        Ok(link) => built(link.with_min_frame(min)).with_ppp(ppp).with_mtu(mtu),
        Err(_) => panic!("a preset's overhead is in range"),
    }
}

/// The lower of two MTUs, either of which may be absent.
const fn lower(one: Option<NonZeroU16>, other: Option<NonZeroU16>) -> Option<NonZeroU16> {
    match (one, other) {
        (Some(a), Some(b)) if b.get() < a.get() => Some(b),
        (Some(a), _) => Some(a),
        (None, other) => other,
    }
}

const fn built(link: Result<LinkLayer, LinkError>) -> LinkLayer {
    match link {
        Ok(link) => link,
        Err(_) => panic!("a preset's minimum frame is in range"),
    }
}

macro_rules! presets {
    ($($(#[$doc:meta])* $id:ident = $name:literal, [$($alias:literal),*], $framing:ident, min $min:expr,
        [$($header:expr),*], $note:literal;)*) => {
        $(
            $(#[$doc])*
            pub const $id: Preset = {
                const HEADERS: &[Header] = &[$($header),*];
                Preset {
                    name: $name,
                    aliases: &[$($alias),*],
                    link: link(HEADERS, Framing::$framing, $min),
                    headers: HEADERS,
                    note: $note,
                }
            };
        )*

        /// Every preset, in the order in which lists show them.
        pub const PRESETS: &[Preset] = &[$($id),*];
    };
}

/// The shortest bridged PDU with FCS, VC multiplexed: pad, a 64-byte frame, AAL5 trailer.
const MIN_VCMUX_FCS: u32 = 2 + ethernet::MIN_FRAME + aal5::TRAILER;
/// The shortest bridged PDU with FCS behind LLC/SNAP.
const MIN_LLCSNAP_FCS: u32 = 8 + MIN_VCMUX_FCS;

presets! {
    /// Bare IP.
    IP = "ip", ["raw", "none", "noatm"], None, min 0, [],
        "IP bytes alone: the 'TCP/IP over ADSL' of Phanse 2000";
    /// SLIP without its framing bytes.
    SLIP = "slip", [], None, min 0, [],
        "RFC 1055; END and escape bytes, which depend on the data, are not counted";
    /// RFC 2684 routed, VC multiplexed.
    IPOA_VCMUX = "ipoa-vcmux", ["ipoa-vc", "rfc2684-routed-vc", "rfc2684r-vc"], Atm, min 0, [AAL5_TRAILER],
        "RFC 2684 routed; the only one of RFC 2684, 2364 and 2516 with a 40-byte ACK in one cell";
    /// RFC 2684 routed, LLC encapsulated.
    IPOA_LLCSNAP = "ipoa-llcsnap", ["ipoa-llc", "rfc2684-routed-llc", "rfc2684r-llc"], Atm, min 0,
        [LLC_SNAP, AAL5_TRAILER],
        "RFC 2684 routed, RFC 2225 (classical IP)";
    /// RFC 2684 bridged without FCS, VC multiplexed.
    BRIDGED_VCMUX = "bridged-vcmux", ["bridged-vc", "rfc2684-bridged-vc", "rfc2684b-vc"], Atm, min 0,
        [BRIDGED_PAD, MAC, AAL5_TRAILER],
        "RFC 2684 bridged, no FCS, so no padding to the Ethernet minimum";
    /// RFC 2684 bridged without FCS, LLC encapsulated.
    BRIDGED_LLCSNAP = "bridged-llcsnap", ["bridged-llc", "rfc2684-bridged-llc", "rfc2684b-llc"], Atm, min 0,
        [LLC_SNAP, BRIDGED_PAD, MAC, AAL5_TRAILER],
        "RFC 2684 bridged, no FCS, so no padding to the Ethernet minimum";
    /// RFC 2684 bridged with FCS, VC multiplexed.
    BRIDGED_VCMUX_FCS = "bridged-vcmux-fcs", ["bridged-vc-fcs", "rfc2684-bridged-vc-fcs", "rfc2684b-vc-fcs"], Atm,
        min MIN_VCMUX_FCS, [BRIDGED_PAD, MAC, FCS, AAL5_TRAILER],
        "RFC 2684 bridged with FCS: Ethernet frames padded to 64 bytes";
    /// RFC 2684 bridged with FCS, LLC encapsulated.
    BRIDGED_LLCSNAP_FCS = "bridged-llcsnap-fcs",
        ["bridged-llc-fcs", "rfc2684-bridged-llc-fcs", "rfc2684b-llc-fcs"], Atm,
        min MIN_LLCSNAP_FCS, [LLC_SNAP, BRIDGED_PAD, MAC, FCS, AAL5_TRAILER],
        "RFC 2684 bridged with FCS: Ethernet frames padded to 64 bytes";
    /// RFC 2364, VC multiplexed.
    PPPOA_VCMUX = "pppoa-vcmux", ["pppoa-vc", "pppoa", "rfc2364-vc"], Atm, min 0, [PPP, AAL5_TRAILER],
        "RFC 2364; two bytes of PPP push a 40-byte ACK into a second cell";
    /// RFC 2364, LLC encapsulated.
    PPPOA_LLC = "pppoa-llc", ["pppoa-llcsnap", "rfc2364-llc", "ppp-llc-aal5"], Atm, min 0,
        [header("LLC FE-FE-03", 3), header("NLPID CF", 1), PPP, AAL5_TRAILER],
        "RFC 2364; a 40-byte ACK takes two cells";
    /// RFC 2516 over bridged without FCS, VC multiplexed.
    PPPOE_VCMUX = "pppoe-vcmux", ["pppoe-vc"], Atm, min 0, [BRIDGED_PAD, MAC, PPPOE, PPP, AAL5_TRAILER],
        "RFC 2516 over bridged, no FCS";
    /// RFC 2516 over bridged without FCS, LLC encapsulated.
    PPPOE_LLCSNAP = "pppoe-llcsnap", ["pppoe-llc"], Atm, min 0, [LLC_SNAP, BRIDGED_PAD, MAC, PPPOE, PPP, AAL5_TRAILER],
        "RFC 2516 over bridged, no FCS; a 1500-byte packet takes 33 cells, not 32";
    /// RFC 2516 over bridged with FCS, VC multiplexed.
    PPPOE_VCMUX_FCS = "pppoe-vcmux-fcs", ["pppoe-vc-fcs"], Atm, min MIN_VCMUX_FCS,
        [BRIDGED_PAD, MAC, PPPOE, PPP, FCS, AAL5_TRAILER],
        "RFC 2516 over bridged with FCS: Ethernet frames padded to 64 bytes";
    /// RFC 2516 over bridged with FCS, LLC encapsulated.
    PPPOE_LLCSNAP_FCS = "pppoe-llcsnap-fcs", ["pppoe-llc-fcs"], Atm, min MIN_LLCSNAP_FCS,
        [LLC_SNAP, BRIDGED_PAD, MAC, PPPOE, PPP, FCS, AAL5_TRAILER],
        "RFC 2516 over bridged with FCS: Ethernet frames padded to 64 bytes";
    /// Plain AAL5.
    AAL5 = "aal5", ["atm"], Atm, min 0, [AAL5_TRAILER],
        "plain AAL5: the 'over ATM' of Phanse 2000";
    /// Ethernet over PTM.
    BRIDGED_PTM = "bridged-ptm", ["ipoe-ptm", "vdsl2"], Ptm, min 0, [MAC, FCS, PTM],
        "VDSL2, IP over Ethernet; as in CAKE no minimum frame (custom: 68 where frames are padded)";
    /// PPPoE over PTM.
    PPPOE_PTM = "pppoe-ptm", ["pppoe-vdsl2"], Ptm, min 0, [MAC, PPPOE, PPP, FCS, PTM],
        "VDSL2, RFC 2516; as in CAKE no minimum frame (custom: 68 where frames are padded)";
    /// Ethernet as it occupies the cable.
    ETHERNET = "ethernet", ["ether"], None, min ethernet::PREAMBLE + ethernet::MIN_FRAME + ethernet::GAP,
        [header("preamble 7 and start delimiter 1", ethernet::PREAMBLE), MAC, FCS,
            header("inter-frame gap", ethernet::GAP)],
        "preamble and gap included; frames padded to 64 bytes";
    /// Ethernet with one 802.1Q tag.
    ETHER_VLAN = "ether-vlan", ["ethernet-vlan", "vlan"], None,
        min ethernet::PREAMBLE + ethernet::MIN_FRAME + ethernet::VLAN_TAG + ethernet::GAP,
        [header("preamble 7 and start delimiter 1", ethernet::PREAMBLE), MAC,
            header("802.1Q tag", ethernet::VLAN_TAG), FCS,
         header("inter-frame gap", ethernet::GAP)],
        "one tag put on a padded frame; CAKE's 'ethernet ether-vlan' keeps the minimum at 84";
    /// Cable, as the head end counts.
    DOCSIS = "docsis", ["cable"], None, min ethernet::MIN_FRAME, [MAC, FCS],
        "the head end shapes by the Ethernet frame with FCS; bytes that the cable adds do not count";
    /// L2TP without its carrier, full PPP header.
    L2TP = "l2tp", ["l2tpv2"], None, min 0,
        [header("outer IPv4 header", l2tp::IP), header("UDP header", l2tp::UDP),
            header("L2TP data header with length", l2tp::L2TP),
         ppp("PPP address 1, control 1, protocol 2", PppHeader::Full.bytes())],
        "LAC to LNS, RFC 2661, counted in the carrier's IP bytes; over a carrier: l2tp/ethernet";
    /// L2TP without its carrier, PPP address and control left out.
    L2TP_ACFC = "l2tp-acfc", [], None, min 0,
        [header("outer IPv4 header", l2tp::IP), header("UDP header", l2tp::UDP),
            header("L2TP data header with length", l2tp::L2TP),
         PPP],
        "LAC to LNS with address-and-control-field compression; over a carrier: l2tp-acfc/ethernet";
    /// An overhead above that of any line in use.
    CONSERVATIVE = "conservative", [], Atm, min 0, [ALLOWANCE],
        "tc-cake(8): when the encapsulation is unknown";
}

#[cfg(test)]
mod tests;
