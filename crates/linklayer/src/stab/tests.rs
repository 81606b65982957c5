use lastmile_units::ByteCount;
use proptest::prelude::*;

use super::*;
use crate::preset::{self, PRESETS};

fn atm(mtu: u32, tsize: u32) -> StabTable {
    StabTable::new(StabSpec { mtu, tsize, ..StabSpec::new(StabLinkLayer::Atm, 0) }).unwrap()
}

fn cells(length: u32) -> u64 {
    u64::from(length).div_ceil(48) * 53
}

/// With the usual mtu 2047, and tsize 512 or the 128 of the man page's example.
#[test]
fn the_table_is_exact_to_2048_bytes_and_wrong_for_61455_sizes_above() {
    for tsize in [512, 128] {
        let table = atm(2047, tsize);
        let wrong: Vec<u32> = (1..=65_535).filter(|&n| table.charge(n).as_u64() != cells(n)).collect();
        assert_eq!(wrong.len(), 61_455, "tsize {tsize}");
        assert!(wrong.iter().all(|&n| n > 2_048));
        let worst = wrong.iter().map(|&n| table.charge(n).as_u64() - cells(n)).max();
        assert_eq!(worst, Some(583), "bytes too many; never too few, or the subtraction had failed");
    }
}

/// mtu 65535 makes slots of 128 bytes in units of 2 bytes: one byte is charged as 158.
#[test]
fn a_table_for_super_packets_is_wrong_for_small_ones() {
    let table = atm(65_535, 512);
    assert_eq!(table.charge(1), WireBytes::new(158));
    assert_eq!((table.cell_log, table.size_log), (7, 1));
}

/// `tc-stab(8)`: with mtu 1500 and tsize 128 slot 0 stands for 0-16, slot 1 for 17-32, slot 127 for
/// 2033-2048; a 100-byte packet takes three cells.
#[test]
fn the_man_pages_example_comes_out() {
    let table = atm(1_500, 128);
    assert_eq!((table.slots.len(), table.cell_log), (128, 4));
    assert_eq!(table.charge(100), WireBytes::new(159));
    assert_eq!([0, 16, 17, 48, 49].map(|n| table.charge(n).as_u64()), [53, 53, 53, 53, 106]);
}

#[test]
fn ethernet_without_a_minimum_needs_no_table() {
    let table = StabTable::new(StabSpec::new(StabLinkLayer::Ethernet, 24)).unwrap();
    assert!(table.slots.is_empty());
    assert_eq!(table.charge(1_514), WireBytes::new(1_538));
    let table = StabTable::new(StabSpec::new(StabLinkLayer::Ethernet, -100)).unwrap();
    assert_eq!(table.charge(60), WireBytes::new(1), "the kernel charges at least one byte");
}

/// 84 bytes with preamble and gap; above, every size is rounded up to a slot of 4.
#[test]
fn an_ethernet_table_rounds_up_to_its_slots() {
    let spec = StabSpec::for_link(preset::ETHERNET.link, Device::Ethernet).unwrap();
    assert_eq!(spec.to_string(), "stab mtu 2047 tsize 512 mpu 84 overhead 24 linklayer ethernet");
    let table = StabTable::new(spec).unwrap();
    assert_eq!([14, 60, 61, 62, 1_514].map(|n| table.charge(n).as_u64()), [84, 84, 88, 88, 1_540]);
}

/// `stab` on Ethernet counts 14 bytes that CAKE does not count; on ppp devices both count alike.
#[test]
fn overheads_of_cake_convert_to_those_of_stab() {
    assert_eq!(Device::Ethernet.stab_overhead(28), 14);
    assert_eq!(Device::Ethernet.stab_overhead(10), -4);
    assert_eq!(Device::Ip.stab_overhead(10), 10);
}

/// The kernel's converted table and this crate charge every ordinary packet alike.
#[test]
fn a_converted_table_charges_as_the_link_does_up_to_its_mtu() {
    for preset in PRESETS.iter().filter(|preset| preset.link.framing() == Framing::Atm) {
        for device in [Device::Ethernet, Device::TaggedEthernet, Device::Ip] {
            let table = StabTable::new(StabSpec::for_link(preset.link, device).unwrap()).unwrap();
            for ip in 1..=1_500_u32 {
                let expected = preset.link.on_wire(ByteCount::new(ip.into()));
                assert_eq!(table.charge(ip + device.header()), expected, "{} on {device:?}, {ip} bytes", preset.name);
            }
        }
    }
}

#[test]
fn what_a_table_cannot_hold_is_refused() {
    let spec = StabSpec::new(StabLinkLayer::Atm, 0);
    assert_eq!(StabTable::new(StabSpec { tsize: 32_766, ..spec }), Err(StabError::TooManySlots(32_766)));
    assert_eq!(StabTable::new(StabSpec { mtu: u32::MAX, ..spec }), Err(StabError::TooLarge(u32::MAX)));
    assert_eq!(StabTable::new(StabSpec { mpu: 1 << 25, ..spec }), Err(StabError::TooLarge(1 << 25)));
    assert_eq!(StabSpec::for_link(preset::PPPOE_PTM.link, Device::Ip), Err(StabError::Framing(Framing::Ptm)));
    assert!(StabTable::new(StabSpec { mtu: 0, tsize: 0, ..spec }).is_ok_and(|table| table == atm(2047, 512)));
}

/// The arithmetic of iproute2 and the kernel, in their C integers.
fn in_c_integers(spec: StabSpec, length: u32) -> i32 {
    let (mut cell_log, mut size_log) = (0_u32, 0_u32);
    while spec.mtu >> cell_log > spec.tsize - 1 {
        cell_log += 1;
    }
    let mut data = vec![0_u16; spec.tsize as usize];
    'again: loop {
        for i in (0..spec.tsize).rev() {
            let mut size = (i + 1) << cell_log;
            if size < spec.mpu {
                size = spec.mpu;
            }
            if spec.linklayer == StabLinkLayer::Atm {
                let whole = size / 48;
                size = if size % 48 > 0 { (whole + 1) * 53 } else { whole * 53 };
            }
            if size >> size_log > 0xffff {
                size_log += 1;
                continue 'again;
            }
            data[i as usize] = (size >> size_log) as u16;
        }
        break;
    }
    let mut packet = length as i32 + spec.overhead;
    let mut slot = packet - 1;
    if slot < 0 {
        slot = 0;
    }
    slot >>= cell_log;
    let tsize = spec.tsize as i32;
    packet = if slot < tsize {
        i32::from(data[slot as usize])
    } else {
        i32::from(data[tsize as usize - 1]) * (slot / tsize) + i32::from(data[(slot % tsize) as usize])
    };
    packet <<= size_log;
    if packet < 1 { 1 } else { packet }
}

proptest! {
    #[test]
    fn any_table_agrees_with_c_integers(
        mtu in 1..70_000_u32, tsize in 1..3_000_u32, mpu in 1..200_u32, overhead in -100..300_i32, is_atm: bool,
            length in 0..65_536_u32,
    ) {
        let linklayer = if is_atm { StabLinkLayer::Atm } else { StabLinkLayer::Ethernet };
        let spec = StabSpec { mtu, tsize, mpu, overhead, linklayer };
        let table = StabTable::new(spec).expect("a small table");
        prop_assert_eq!(i64::try_from(table.charge(length).as_u64()), Ok(i64::from(in_c_integers(spec, length))));
    }
}
