use super::*;

/// The bytes that the kernel charges for a frame, in the C integers of `tc_calc_size_table` of iproute2 and of the
/// kernel's `__qdisc_calculate_pkt_len`.
pub(crate) fn charge(spec: StabSpec, length: u32) -> i32 {
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

/// `tc-stab(8)`: with mtu 1500 and tsize 128 slot 0 stands for 0-16, slot 1 for 17-32; a 100-byte packet takes three
/// cells.
#[test]
fn the_man_pages_example_comes_out() {
    let spec = StabSpec { mtu: 1_500, tsize: 128, mpu: 0, overhead: 0, linklayer: StabLinkLayer::Atm };
    assert_eq!([0, 16, 17, 48, 49, 100].map(|size| charge(spec, size)), [53, 53, 53, 53, 106, 159]);
    assert_eq!(spec.to_string(), "stab mtu 1500 tsize 128 mpu 0 overhead 0 linklayer atm");
}

/// `stab` on Ethernet counts 14 bytes that CAKE does not count; on ppp devices both count alike.
#[test]
fn overheads_of_cake_convert_to_those_of_stab() {
    assert_eq!(Device::Ethernet.stab_overhead(28), 14);
    assert_eq!(Device::Ethernet.stab_overhead(10), -4);
    assert_eq!(Device::Ip.stab_overhead(10), 10);
}
