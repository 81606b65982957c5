//! TCP segments that two captures show in different packets: one of up to 64 kB before its segmentation by a device
//! (TSO, GSO) and the segments afterwards, or segments and the packet into which a receiver merged them (GRO, LRO).
//!
//! Segmentation copies the acknowledgement and the timestamps into each part, and a receiver merges only packets in
//! which these are equal (`tcp_gro_receive` in Linux). So packets that share them, and their flow, are compared octet
//! by octet: an octet is at both captures if both have it, the second copy of it paired with the second.
//! A retransmission has another timestamp; without timestamps its order tells it apart.
//!
//! A regulator on the path may have changed the window. So packets without payload are compared without it, too.
//!
//! Cost: a sort of the packets that have no equal in the other capture.

use std::collections::BTreeMap;

use super::fingerprint::Fingerprint;

/// A part of a flow's octets that is one packet, or a part of one, at both captures.
pub(super) struct Part {
    /// The packet at the first capture, and how much later the one at the second is, in nanoseconds.
    pub(super) one: Fingerprint,
    pub(super) later: i64,
    /// The number of the one at the second.
    pub(super) other: u32,
    /// Whether the last octet of the packet at each capture is in this part.
    pub(super) is_last: [bool; 2],
}

/// Octets of a packet that the other capture does not have.
pub(super) struct Gap {
    /// The index of the capture that has them.
    pub(super) which: usize,
    pub(super) one: Fingerprint,
    /// Whether the other capture has octets of the packet before them, and after them.
    pub(super) is_within: [bool; 2],
}

/// A flow and one of its directions.
pub(super) type Direction = (u32, bool);

/// Packets that the captures show differently.
#[derive(Default)]
pub(super) struct Divided {
    pub(super) parts: Vec<Part>,
    /// Octets at one capture of packets of which the other has a part.
    pub(super) gaps: Vec<Gap>,
    /// The packets of each capture that are several parts.
    pub(super) several: Vec<(usize, Fingerprint)>,
    /// The octets of most parts of a direction, to count the packets that a gap was.
    sizes: BTreeMap<Direction, u16>,
}

impl Divided {
    /// Packets that these octets were at the capture that has the finer ones.
    pub(super) fn packets(&self, one: &Fingerprint) -> u64 {
        let size = self.sizes.get(&(one.flow, one.forward)).copied().unwrap_or(u16::MAX);
        u64::from(one.payload.div_ceil(size.max(1)).max(1))
    }
}

/// Finds what the captures show in different packets among `single` ones, each with the index of its capture. What
/// remains there is at one capture only.
pub(super) fn divide(single: &mut Vec<(usize, Fingerprint)>) -> Divided {
    let mut bursts: BTreeMap<(Direction, u32), [Vec<Fingerprint>; 2]> = BTreeMap::new();
    for (which, one) in single.iter().filter(|(_, one)| one.burst != 0) {
        bursts.entry(((one.flow, one.forward), one.burst)).or_default()[*which].push(*one);
    }
    let mut divided = Divided::default();
    let mut sizes: BTreeMap<(Direction, u16), u64> = BTreeMap::new();
    single.retain(|(_, one)| one.burst == 0);
    for ((direction, _), mut packets) in bursts {
        for packets in &mut packets {
            packets.sort_unstable_by_key(|one| one.at_ns);
        }
        if packets.iter().flatten().any(|one| one.payload == 0) {
            in_order(&packets, &mut divided, single);
            continue;
        }
        let stretches = stretches(&packets);
        let mut counts = packets.each_ref().map(|packets| vec![0_u32; packets.len()]);
        let mut common = packets.each_ref().map(|packets| vec![None::<(i64, i64)>; packets.len()]);
        for Stretch { holders, from, .. } in &stretches {
            for (which, holder) in holders.iter().enumerate() {
                let Some(holder) = *holder else { continue };
                counts[which][holder] += 1;
                if holders[1 - which].is_some() {
                    let (least, most) = common[which][holder].unwrap_or((*from, *from));
                    common[which][holder] = Some((least.min(*from), most.max(*from)));
                }
            }
        }
        for stretch in stretches {
            match stretch.holders {
                [Some(first), Some(second)] => {
                    let (one, other) = (packets[0][first], packets[1][second]);
                    let later = other.at_ns - one.at_ns;
                    let (other, is_last) = (other.number, stretch.is_last);
                    divided.parts.push(Part { one, later, other, is_last });
                    *sizes.entry((direction, stretch.octets)).or_default() += 1;
                }
                [first, second] => {
                    for (which, holder) in [first, second].into_iter().enumerate() {
                        let Some(holder) = holder else { continue };
                        let one = stretch.of(packets[which][holder]);
                        let Some((least, most)) = common[which][holder] else {
                            single.push((which, one));
                            continue;
                        };
                        divided.gaps.push(Gap { which, one, is_within: [least < stretch.from, stretch.from < most] });
                    }
                }
            }
        }
        for (which, counts) in counts.iter().enumerate() {
            let several = packets[which].iter().zip(counts).filter(|(_, count)| **count > 1);
            divided.several.extend(several.map(|(one, _)| (which, *one)));
        }
    }
    // Of sizes that are equally common, the largest.
    let mut most: BTreeMap<Direction, (u64, u16)> = BTreeMap::new();
    for ((direction, size), count) in sizes {
        let slot = most.entry(direction).or_default();
        *slot = (*slot).max((count, size));
    }
    divided.sizes = most.into_iter().map(|(direction, (_, size))| (direction, size)).collect();
    divided
}

/// Pairs packets without payload that differ in the window alone.
fn in_order([first, second]: &[Vec<Fingerprint>; 2], divided: &mut Divided, single: &mut Vec<(usize, Fingerprint)>) {
    let pairs = first.iter().zip(second);
    divided.parts.extend(pairs.map(|(one, other)| Part {
        one: *one,
        later: other.at_ns - one.at_ns,
        other: other.number,
        is_last: [true; 2],
    }));
    let rest = |packets: &[Fingerprint], other: &[Fingerprint]| packets.get(other.len()..).unwrap_or_default().to_vec();
    single.extend(rest(first, second).into_iter().map(|one| (0, one)));
    single.extend(rest(second, first).into_iter().map(|one| (1, one)));
}

/// Octets in a row, and the packet that has them at each capture.
struct Stretch {
    holders: [Option<usize>; 2],
    from: i64,
    octets: u16,
    is_last: [bool; 2],
}

impl Stretch {
    /// The part of this packet.
    fn of(&self, one: Fingerprint) -> Fingerprint {
        Fingerprint { payload: self.octets, ..one }
    }
}

/// The octets of a packet, as a range that does not wrap.
struct Range {
    from: i64,
    to: i64,
    which: usize,
    index: usize,
}

/// The ranges of packets in order of time, counted from the first of the first capture.
fn ranges(packets: &[Vec<Fingerprint>; 2]) -> Vec<Range> {
    let origin = packets.iter().flatten().next().map_or(0, |one| one.seq);
    let mut all = Vec::new();
    for (which, packets) in packets.iter().enumerate() {
        let (mut seq, mut from) = (origin, 0_i64);
        for (index, one) in packets.iter().enumerate() {
            from += i64::from(one.seq.wrapping_sub(seq).cast_signed());
            seq = one.seq;
            all.push(Range { from, to: from + i64::from(one.payload), which, index });
        }
    }
    all.sort_unstable_by_key(|range| range.from);
    all
}

/// Stretches that begin and end where a packet of either capture does. Of several packets with an octet, the earliest
/// of one capture is paired with the earliest of the other, and so on.
fn stretches(packets: &[Vec<Fingerprint>; 2]) -> Vec<Stretch> {
    let ranges = ranges(packets);
    let mut bounds: Vec<i64> = ranges.iter().flat_map(|range| [range.from, range.to]).collect();
    bounds.sort_unstable();
    bounds.dedup();
    let mut found: Vec<([Option<usize>; 2], i64, i64)> = Vec::new();
    let mut holders: [Vec<(usize, i64)>; 2] = Default::default();
    let mut next = ranges.iter().peekable();
    for ends in bounds.windows(2) {
        let (from, to) = (ends[0], ends[1]);
        for holders in &mut holders {
            holders.retain(|(_, end)| *end > from);
        }
        while let Some(range) = next.next_if(|range| range.from <= from) {
            holders[range.which].push((range.index, range.to));
        }
        for holders in &mut holders {
            holders.sort_unstable();
        }
        for number in 0..holders[0].len().max(holders[1].len()) {
            let holder = |which: usize| holders[which].get(number).map(|(index, _)| *index);
            found.push(([holder(0), holder(1)], from, to));
        }
    }
    // A bound that another copy has divides no packet.
    found.sort_unstable();
    let mut joined: Vec<([Option<usize>; 2], i64, i64)> = Vec::new();
    for (holders, from, to) in found {
        match joined.last_mut() {
            Some(last) if last.0 == holders && last.2 == from => last.2 = to,
            _ => joined.push((holders, from, to)),
        }
    }
    let mut ends = packets.each_ref().map(|packets| vec![0; packets.len()]);
    for range in &ranges {
        ends[range.which][range.index] = range.to;
    }
    let stretch = |(holders, from, to): ([Option<usize>; 2], i64, i64)| Stretch {
        holders,
        from,
        octets: u16::try_from(to - from).unwrap_or(u16::MAX),
        is_last: [0, 1].map(|which| holders[which].is_some_and(|index: usize| ends[which][index] == to)),
    };
    joined.into_iter().map(stretch).collect()
}
