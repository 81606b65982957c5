//! The parameters by which the kernel's shapers count bytes on the wire.
//!
//! - `stab` (tc-stab(8)) counts its overhead from the device's frame, tc-cake(8) from the IP
//!   packet: on Ethernet 28 bytes for CAKE are 14 for `stab`, and 10 are -4. Both raise the sum to
//!   `mpu`, and it is the same sum.
//! - `stab` supports ATM cells and not PTM. A rate of 64/65 accounts for the sync bytes: the error
//!   of a class's share is at most one byte per packet, by which a partial block of 64 counts as
//!   whole.
//! - Neither supports OAM cells: rates exclude their share.
//! - The kernel stores rates in whole bytes a second, so they are rounded down to 8 bit/s.
//!
//! A table has one slot per size up to the largest packet, so that it is exact. (tc's default
//! `tsize 512` rounds up to four bytes, which shows with `mpu` and Ethernet framing.)

use lastmile_linklayer::{Framing, LinkLayer};
use lastmile_units::{BitRate, ByteCount, Limit, WireBytes};

use crate::stab::{Device, StabLinkLayer, StabSpec};

/// The kernel's byte accounting on one line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accounting {
    layer: LinkLayer,
    device: Device,
    largest: ByteCount,
}

impl Accounting {
    /// The lowest rate that the kernel stores: a byte a second.
    const LEAST: u64 = 8;
    /// The largest overhead and minimum frame that tc-cake(8) takes.
    const CAKE_MOST: u16 = 256;

    /// The accounting for packets of at most `largest` bytes on the kind of device `device`.
    #[must_use]
    pub const fn new(layer: LinkLayer, device: Device, largest: ByteCount) -> Self {
        Self { layer, device, largest }
    }

    /// A copy for another link layer.
    #[must_use]
    pub const fn with_layer(self, layer: LinkLayer) -> Self {
        Self { layer, ..self }
    }

    /// The link layer of the line.
    #[must_use]
    pub const fn layer(&self) -> LinkLayer {
        self.layer
    }

    /// The largest expected packet.
    #[must_use]
    pub const fn largest(&self) -> ByteCount {
        self.largest
    }

    /// The size table. Over PTM it counts the frame; [`Accounting::stab_rate`] accounts for the
    /// sync bytes.
    #[must_use]
    pub fn stab(&self) -> StabSpec {
        let linklayer = match self.layer.framing() {
            Framing::Atm => StabLinkLayer::Atm,
            Framing::None | Framing::Ptm => StabLinkLayer::Ethernet,
        };
        let overhead = self.device.stab_overhead(self.layer.overhead());
        // One slot per size: `mtu >> cell_log` must be below `tsize` without a shift.
        let frame = self.layer.frame(self.largest).clamp(2047, u64::from(StabSpec::MAX_SLOTS) - 1);
        let slots = u32::try_from(frame).map_or(StabSpec::MAX_SLOTS, |frame| frame + 1);
        StabSpec { mtu: slots - 1, tsize: slots, mpu: self.layer.min_frame(), overhead, linklayer }
    }

    /// Bytes that the kernel counts for an IP packet with [`Accounting::stab`]: those on the wire,
    /// without the sync bytes of PTM.
    #[must_use]
    pub const fn counted(&self, ip: ByteCount) -> WireBytes {
        match self.layer.framing() {
            Framing::Ptm => WireBytes::new(self.layer.frame(ip)),
            Framing::None | Framing::Atm => self.layer.on_wire(ip),
        }
    }

    /// Bytes that the kernel counts for the largest packet.
    #[must_use]
    pub const fn largest_counted(&self) -> WireBytes {
        self.counted(self.largest)
    }

    /// HTB's rate for packets with the rate `wire` on the line.
    #[must_use]
    pub fn stab_rate(&self, wire: BitRate) -> BitRate {
        let ptm = matches!(self.layer.framing(), Framing::Ptm);
        whole_bytes(self.without_oam(wire), if ptm { (64, 65) } else { (1, 1) })
    }

    /// CAKE's rate for packets with the rate `wire` on the line. CAKE counts PTM itself.
    #[must_use]
    pub fn cake_rate(&self, wire: BitRate) -> BitRate {
        whole_bytes(self.without_oam(wire), (1, 1))
    }

    fn without_oam(&self, wire: BitRate) -> u64 {
        let user = self.layer.oam().and_then(|share| share.user_rate(wire));
        user.unwrap_or(wire).as_bps()
    }

    /// CAKE's overhead: that of the line, or the largest that tc takes.
    #[must_use]
    pub fn cake_overhead(&self) -> i32 {
        self.layer.overhead().min(Self::CAKE_MOST.into())
    }

    /// Bytes on the line that CAKE does not count, since tc takes no numbers as large, in words.
    #[must_use]
    pub fn cake_remarks(&self) -> Vec<String> {
        let (overhead, minimum, most) = (self.layer.overhead(), self.layer.min_frame(), Self::CAKE_MOST);
        let mut remarks = Vec::new();
        if overhead > i32::from(most) {
            let less = overhead - i32::from(most);
            remarks.push(format!(
                "CAKE takes an overhead of at most {most} bytes, not {overhead}: each packet counts {less} bytes less \
                 than on the line; HTB, as of fq-codel-sqm, counts them"
            ));
        }
        if minimum > u32::from(most) {
            remarks.push(format!(
                "CAKE takes a minimum frame of at most {most} bytes, not {minimum}: shorter packets count less than on \
                 the line; HTB, as of fq-codel-sqm, counts them"
            ));
        }
        remarks
    }

    /// Options of tc-cake(8): framing, overhead, minimum frame.
    #[must_use]
    pub fn cake(&self) -> Vec<String> {
        let framing = match self.layer.framing() {
            Framing::None => "noatm",
            Framing::Atm => "atm",
            Framing::Ptm => "ptm",
        };
        let mut options = vec![framing.to_owned(), "overhead".to_owned(), self.cake_overhead().to_string()];
        let minimum = self.layer.min_frame().min(Self::CAKE_MOST.into());
        if minimum > 0 {
            options.extend(["mpu".to_owned(), minimum.to_string()]);
        }
        options
    }

    /// Bytes that the kernel counts for this number of IP bytes in packets of the largest size, for
    /// limits in bytes.
    #[must_use]
    pub fn counted_limit(&self, ip: ByteCount) -> u64 {
        let counted = u128::from(ip.as_u64()) * u128::from(self.largest_counted().as_u64());
        let counted = counted / u128::from(self.largest.as_u64().max(1));
        u64::try_from(counted).unwrap_or(u64::MAX).max(self.largest_counted().as_u64())
    }

    /// A limit in the bytes that the kernel counts.
    #[must_use]
    pub fn bytes(&self, limit: Limit) -> u64 {
        match limit {
            Limit::Packets(count) => count.as_u64().saturating_mul(self.largest_counted().as_u64()),
            Limit::Bytes(bytes) => self.counted_limit(bytes),
            Limit::Wire(bytes) => bytes.as_u64(),
            Limit::Cells(cells) => cells.wire_bytes().as_u64(),
        }
    }

    /// A limit in packets of the largest size.
    #[must_use]
    pub fn packets(&self, limit: Limit) -> u64 {
        match limit {
            Limit::Packets(count) => count.as_u64(),
            other => (self.bytes(other) / self.largest_counted().as_u64().max(1)).max(1),
        }
    }

    /// The conversions, in words. CAKE counts blocks of PTM by itself.
    #[must_use]
    pub fn remarks(&self, by_htb: bool) -> Vec<String> {
        let mut remarks = Vec::new();
        if by_htb && matches!(self.layer.framing(), Framing::Ptm) {
            remarks.push(
                "PTM: stab does not support 64/65 blocks, so HTB's rates are 64/65 of those on the wire".to_owned(),
            );
        }
        if let Some(share) = self.layer.oam() {
            let cells = u32::from(share.user_cells());
            remarks.push(format!("OAM cells: the rates are {cells}/{} of those on the wire", cells + 1));
        }
        remarks
    }
}

/// The `part` / `of` share of `bps`, in whole bytes a second.
fn whole_bytes(bps: u64, (part, of): (u64, u64)) -> BitRate {
    let bps = u128::from(bps) * u128::from(part) / u128::from(of) / 8 * 8;
    let bps = u64::try_from(bps).unwrap_or(u64::MAX).max(Accounting::LEAST);
    BitRate::from_bps(bps).unwrap_or(BitRate::MAX)
}

#[cfg(test)]
mod tests {
    use lastmile_linklayer::{OamShare, PRESETS, Preset};

    use super::*;
    use crate::stab::tests::charge;

    fn of(name: &str, device: Device) -> Accounting {
        Accounting::new(Preset::by_name(name).unwrap().link, device, ByteCount::new(1500))
    }

    #[test]
    fn a_remark_on_ptm_is_for_htb_alone() {
        let ptm = of("ipoe-ptm", Device::Ethernet);
        assert_eq!(ptm.remarks(false), [""; 0]);
        assert!(ptm.remarks(true)[0].starts_with("PTM: stab does not support 64/65 blocks"));
    }

    /// CAKE's overhead counts from the IP packet; stab's is 14 less on Ethernet, 18 less on a
    /// tagged frame, equal on ppp0. Then framing, mpu, and the bytes counted for packets of 40, 52
    /// and 1500 bytes.
    #[test]
    fn every_preset_has_its_numbers() {
        let expected = [
            ("ip", "noatm overhead 0", -14, "ethernet", 0, [40, 52, 1500]),
            ("slip", "noatm overhead 0", -14, "ethernet", 0, [40, 52, 1500]),
            ("ipoa-vcmux", "atm overhead 8", -6, "atm", 0, [53, 106, 1696]),
            ("ipoa-llcsnap", "atm overhead 16", 2, "atm", 0, [106, 106, 1696]),
            ("bridged-vcmux", "atm overhead 24", 10, "atm", 0, [106, 106, 1696]),
            ("bridged-llcsnap", "atm overhead 32", 18, "atm", 0, [106, 106, 1696]),
            ("bridged-vcmux-fcs", "atm overhead 28 mpu 74", 14, "atm", 74, [106, 106, 1696]),
            ("bridged-llcsnap-fcs", "atm overhead 36 mpu 82", 22, "atm", 82, [106, 106, 1696]),
            ("pppoa-vcmux", "atm overhead 10", -4, "atm", 0, [106, 106, 1696]),
            ("pppoa-llc", "atm overhead 14", 0, "atm", 0, [106, 106, 1696]),
            ("pppoe-vcmux", "atm overhead 32", 18, "atm", 0, [106, 106, 1696]),
            ("pppoe-llcsnap", "atm overhead 40", 26, "atm", 0, [106, 106, 1749]),
            ("pppoe-vcmux-fcs", "atm overhead 36 mpu 74", 22, "atm", 74, [106, 106, 1696]),
            ("pppoe-llcsnap-fcs", "atm overhead 44 mpu 82", 30, "atm", 82, [106, 106, 1749]),
            ("aal5", "atm overhead 8", -6, "atm", 0, [53, 106, 1696]),
            // 62, 74 and 1522 bytes; on the wire 63, 76 and 1546.
            ("bridged-ptm", "ptm overhead 22", 8, "ethernet", 0, [62, 74, 1522]),
            ("pppoe-ptm", "ptm overhead 30", 16, "ethernet", 0, [70, 82, 1530]),
            ("ethernet", "noatm overhead 38 mpu 84", 24, "ethernet", 84, [84, 90, 1538]),
            ("ether-vlan", "noatm overhead 42 mpu 88", 28, "ethernet", 88, [88, 94, 1542]),
            ("docsis", "noatm overhead 18 mpu 64", 4, "ethernet", 64, [64, 70, 1518]),
            ("l2tp", "noatm overhead 40", 26, "ethernet", 0, [80, 92, 1540]),
            ("l2tp-acfc", "noatm overhead 38", 24, "ethernet", 0, [78, 90, 1538]),
            ("conservative", "atm overhead 48", 34, "atm", 0, [106, 159, 1749]),
        ];
        let names: Vec<&str> = expected.iter().map(|row| row.0).collect();
        assert_eq!(names, PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>(), "every preset is here");
        for (name, cake, overhead, linklayer, mpu, counted) in expected {
            let accounting = of(name, Device::Ethernet);
            assert_eq!(accounting.cake().join(" "), cake, "{name}");
            let stab = accounting.stab();
            assert_eq!((stab.overhead, stab.mpu), (overhead, mpu), "{name}");
            assert_eq!(stab.linklayer.to_string(), linklayer, "{name}");
            assert_eq!(of(name, Device::TaggedEthernet).stab().overhead, overhead - 4, "{name}");
            assert_eq!(of(name, Device::Ip).stab().overhead, overhead + 14, "{name}");
            assert_eq!([40, 52, 1500].map(|size| accounting.counted(ByteCount::new(size)).as_u64()), counted, "{name}");
        }
    }

    /// tc-cake(8), `cake_parse_opt`: an overhead from -64 to 256, and an `mpu` from 0 to 256.
    #[test]
    fn cake_gets_no_number_that_tc_refuses() {
        let told = |overhead, minimum| {
            let layer = LinkLayer::new(overhead, Framing::None).unwrap().with_min_frame(minimum).unwrap();
            let accounting = Accounting::new(layer, Device::Ethernet, ByteCount::new(1500));
            (accounting.cake().join(" "), accounting.cake_remarks())
        };
        assert_eq!(told(256, 256), ("noatm overhead 256 mpu 256".to_owned(), vec![]));
        assert_eq!(told(-64, 0), ("noatm overhead -64".to_owned(), vec![]));
        let (options, remarks) = told(300, 520);
        assert_eq!(options, "noatm overhead 256 mpu 256");
        let [overhead, minimum] = &remarks[..] else { panic!("{remarks:?}") };
        assert!(overhead.contains("of at most 256 bytes, not 300: each packet counts 44 bytes less"), "{overhead}");
        assert!(minimum.contains("of at most 256 bytes, not 520: shorter packets count less"), "{minimum}");
    }

    /// The kernel's table, at every seventh size and on every kind of device.
    #[test]
    fn the_table_charges_every_size_what_it_counts_for() {
        for preset in PRESETS {
            for device in [Device::Ethernet, Device::TaggedEthernet, Device::Ip] {
                let accounting = Accounting::new(preset.link, device, ByteCount::new(1500));
                for size in (20..=1500).step_by(7).chain([40, 52, 1499, 1500]) {
                    let counted = accounting.counted(ByteCount::new(size.into())).as_u64();
                    let charged = charge(accounting.stab(), size + device.header());
                    assert_eq!(u64::try_from(charged), Ok(counted), "{}, {device:?}, {size} bytes", preset.name);
                }
            }
        }
    }

    #[test]
    fn a_table_reaches_up_to_jumbo_frames() {
        let accounting =
            Accounting::new(Preset::by_name("ethernet").unwrap().link, Device::Ethernet, ByteCount::new(9000));
        assert_eq!(charge(accounting.stab(), 9014), 9038);
        assert_eq!(accounting.stab().tsize, 9039);
    }

    /// 40 Mbit/s of PTM are 39 384 615.38 bit/s of frames; 512 kbit/s of ATM with one OAM cell in
    /// 27 are 493 037.04 for users.
    #[test]
    fn rates_leave_out_what_the_kernel_cannot_count() {
        let rate = BitRate::from_mbit_per_s(40);
        assert_eq!(of("bridged-ptm", Device::Ethernet).stab_rate(rate).as_bps(), 39_384_608);
        assert_eq!(of("bridged-ptm", Device::Ethernet).cake_rate(rate), rate);
        let oam = Preset::by_name("aal5").unwrap().link.with_oam(OamShare::I_432).unwrap();
        let accounting = Accounting::new(oam, Device::Ethernet, ByteCount::new(1500));
        assert_eq!(accounting.stab_rate(BitRate::from_kbit_per_s(512)).as_bps(), 493_032);
        assert_eq!(accounting.cake_rate(BitRate::from_kbit_per_s(512)).as_bps(), 493_032);
        assert_eq!(accounting.remarks(true), ["OAM cells: the rates are 26/27 of those on the wire"]);
        assert_eq!(of("aal5", Device::Ip).stab_rate(BitRate::from_bps(83_334).unwrap()).as_bps(), 83_328);
        assert_eq!(of("aal5", Device::Ip).stab_rate(BitRate::from_bps(7).unwrap()).as_bps(), 8);
    }

    /// 60 kB are 40 packets of 1500 bytes, each of which counts as 1696.
    #[test]
    fn a_limit_in_bytes_holds_as_many_large_packets() {
        assert_eq!(of("pppoa-vcmux", Device::Ethernet).counted_limit(ByteCount::new(60_000)), 67_840);
        assert_eq!(of("pppoa-vcmux", Device::Ethernet).counted_limit(ByteCount::new(100)), 1696);
    }
}
