//! The list of acknowledgement numbers that an ACK replaces, by which a Smart ACK Dropper informs
//! an ACK regenerator of the ACKs that it removed.
//!
//! A list holds the steps between consecutive numbers, oldest first. The last step leads to the
//! number of the ACK that carries the list; a step of 0 is a duplicate ACK. Consecutive equal steps
//! are one *run*: the step, then the count, each in base 128, least significant group first, the
//! top bit set in all bytes but the last. So n ACKs of two segments each take three bytes.
//!
//! A list is carried in one of three positions (its bytes on the line are counted like any others):
//!
//! - IPv4: option 30, for experiments (RFC 4727, section 3.2): `30, length, 0xA7, list`, padded to
//!   a word with End of Option List. It must be the only option.
//! - IPv6: a destination options header with option 0x1E, for experiments (RFC 4727, section 4.1),
//!   which a host without support skips: `0x1E, length, 0xA7, list`, padded to eight bytes with
//!   Pad1 or PadN. It must be the only extension header.
//! - A packet of its own, see `signal.rs`.
//!
//! Published: no; Kalyanaraman, Shekhar and Kidambi 1999 leave open how the regenerator learns the
//! numbers. Differs: a destination option is not meant for routers (RFC 8200, section 4.6), yet the
//! regenerator reads it on the path. It is the only position that every host skips if the list
//! reaches it.

use crate::SeqNumber;

/// Identifies this experiment; follows the option's number.
const MAGIC: u8 = 0xA7;
/// IPv4 option for experiments: not copied on fragmentation, class control (RFC 4727, section 3.2).
const IPV4_OPTION: u8 = 30;
/// IPv6 option for experiments: skipped by hosts without support, unchanged on the path (RFC 4727,
/// section 4.1).
const IPV6_OPTION: u8 = 0x1E;
/// Bytes before the list in an IPv4 option (kind, length, magic), and in an IPv6 extension header
/// (next header and length in addition).
const IPV4_LEAD: usize = 3;
const IPV6_LEAD: usize = 5;

/// Acknowledgement numbers before that of the ACK that carries them. Empty for no list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AckList {
    bytes: [u8; Self::MAX_BYTES],
    len: u8,
    /// Offset of the last run.
    last: u8,
    count: u16,
    /// Distance from the oldest number to that of the carrier.
    span: u32,
}

impl AckList {
    /// The most bytes that a list takes in a signal.
    pub const MAX_BYTES: usize = 31;
    /// The most bytes that a list takes in an option.
    pub const MAX_OPTION_BYTES: usize = 23;
    /// The most numbers in one list, a bound on the packets that a few bytes can cause.
    pub const MAX_COUNT: u16 = 1024;
    /// Numbers further apart have no order (RFC 1982).
    const MAX_SPAN: u32 = i32::MAX as u32;

    /// No list.
    pub const EMPTY: Self = Self { bytes: [0; Self::MAX_BYTES], len: 0, last: 0, count: 0, span: 0 };

    /// The number of acknowledgement numbers.
    #[must_use]
    pub const fn count(&self) -> u16 {
        self.count
    }

    /// The number of duplicate ACKs: entries equal to the following number.
    #[must_use]
    pub fn duplicates(&self) -> u16 {
        self.runs().filter(|run| run.step == 0).map(|run| run.count).sum()
    }

    /// True for no list.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The encoded list.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Adds the carrier's old number, which grows by `step`. Returns false and changes nothing if
    /// the list would exceed `capacity` bytes or [`AckList::MAX_COUNT`] numbers.
    #[must_use]
    pub fn push(&mut self, step: u32, capacity: usize) -> bool {
        let Some(span) = self.span.checked_add(step).filter(|span| *span <= Self::MAX_SPAN) else { return false };
        let mut grown = *self;
        let last = usize::from(self.last);
        let repeated = match read_run(self.as_bytes().get(last..).unwrap_or_default()) {
            Some((run, _)) if run.step == step => run.count,
            _ => {
                grown.last = self.len;
                0
            }
        };
        grown.len = grown.last;
        let fits = self.count < Self::MAX_COUNT
            && grown.put(step, capacity)
            && grown.put(u32::from(repeated) + 1, capacity.min(Self::MAX_BYTES));
        if fits {
            (grown.count, grown.span) = (self.count + 1, span);
            *self = grown;
        }
        fits
    }

    /// Decodes a list. `None` for invalid bytes and for an empty list.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut list = Self::EMPTY;
        list.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        list.len = bytes.len() as u8;
        let mut rest = bytes;
        while !rest.is_empty() {
            list.last = (bytes.len() - rest.len()) as u8;
            let (run, after) = read_run(rest)?;
            list.count = list.count.checked_add(run.count).filter(|count| *count <= Self::MAX_COUNT)?;
            let span = u64::from(list.span) + u64::from(run.step) * u64::from(run.count);
            list.span = u32::try_from(span).ok().filter(|span| *span <= Self::MAX_SPAN)?;
            rest = after;
        }
        (list.count > 0).then_some(list)
    }

    /// The numbers, oldest first, of a list carried by an ACK with the number `carrier`.
    pub fn numbers(&self, carrier: SeqNumber) -> impl Iterator<Item = SeqNumber> + '_ {
        let mut next = carrier.sub(self.span);
        self.runs().flat_map(|run| (0..run.count).map(move |_| run.step)).map(move |step| {
            let number = next;
            next = next.add(step);
            number
        })
    }

    fn runs(&self) -> impl Iterator<Item = Run> + '_ {
        let mut rest = self.as_bytes();
        std::iter::from_fn(move || {
            let (run, after) = read_run(rest)?;
            rest = after;
            Some(run)
        })
    }

    /// Appends a number in base 128; false if it does not fit.
    fn put(&mut self, mut value: u32, capacity: usize) -> bool {
        loop {
            let at = usize::from(self.len);
            if at >= capacity || at >= Self::MAX_BYTES {
                return false;
            }
            let more = value >= 0x80;
            self.bytes[at] = (value & 0x7F) as u8 | if more { 0x80 } else { 0 };
            self.len += 1;
            value >>= 7;
            if !more {
                return true;
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Run {
    step: u32,
    count: u16,
}

fn read_run(bytes: &[u8]) -> Option<(Run, &[u8])> {
    let (step, rest) = read_number(bytes)?;
    let (count, rest) = read_number(rest)?;
    let count = u16::try_from(count).ok().filter(|count| *count > 0)?;
    Some((Run { step, count }, rest))
}

fn read_number(mut bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut value = 0_u64;
    for shift in [0, 7, 14, 21, 28] {
        let (first, rest) = bytes.split_first()?;
        value |= u64::from(first & 0x7F) << shift;
        bytes = rest;
        if first & 0x80 == 0 {
            return Some((u32::try_from(value).ok()?, bytes));
        }
    }
    None
}

/// Bytes of a list of `len` bytes in a header, 0 for none: an IPv4 option padded to words, or an
/// IPv6 extension header.
#[must_use]
pub(crate) const fn header_bytes(len: usize, ipv6: bool) -> usize {
    match (len, ipv6) {
        (0, _) => 0,
        (len, false) => (IPV4_LEAD + len).next_multiple_of(4),
        (len, true) => (IPV6_LEAD + len).next_multiple_of(8),
    }
}

/// The most bytes that a list takes in a header.
pub(crate) const MAX_HEADER_BYTES: usize = header_bytes(AckList::MAX_OPTION_BYTES, true);

/// Writes the options of an IPv4 header; returns their length, 0 for an empty list.
pub(crate) fn write_ipv4(out: &mut [u8], list: &[u8]) -> usize {
    let len = header_bytes(list.len(), false);
    if len > 0 {
        let out = &mut out[..len];
        out.fill(0);
        out[..IPV4_LEAD].copy_from_slice(&[IPV4_OPTION, (IPV4_LEAD + list.len()) as u8, MAGIC]);
        out[IPV4_LEAD..IPV4_LEAD + list.len()].copy_from_slice(list);
    }
    len
}

/// Reads the options of an IPv4 header if they consist of a list only.
pub(crate) fn read_ipv4(options: &[u8]) -> Option<AckList> {
    let [IPV4_OPTION, len, MAGIC, rest @ ..] = options else { return None };
    let list = rest.get(..usize::from(*len).checked_sub(IPV4_LEAD)?)?;
    let canonical = list.len() <= AckList::MAX_OPTION_BYTES
        && header_bytes(list.len(), false) == options.len()
        && rest[list.len()..].iter().all(|byte| *byte == 0);
    if canonical { AckList::read(list) } else { None }
}

/// Writes an IPv6 destination options header; returns its length, 0 for an empty list.
pub(crate) fn write_ipv6(out: &mut [u8], next_header: u8, list: &[u8]) -> usize {
    let len = header_bytes(list.len(), true);
    if len > 0 {
        let out = &mut out[..len];
        out.fill(0);
        let lead = [next_header, (len / 8 - 1) as u8, IPV6_OPTION, (1 + list.len()) as u8, MAGIC];
        out[..IPV6_LEAD].copy_from_slice(&lead);
        let padding = IPV6_LEAD + list.len();
        out[IPV6_LEAD..padding].copy_from_slice(list);
        // Pad1 is a zero byte; PadN is a 1 and the length of the bytes that follow (RFC 8200,
        // section 4.2).
        if len - padding > 1 {
            out[padding..padding + 2].copy_from_slice(&[1, (len - padding - 2) as u8]);
        }
    }
    len
}

/// Reads an IPv6 destination options header if it consists of a list only.
pub(crate) fn read_ipv6(header: &[u8]) -> Option<AckList> {
    let [next_header, _, IPV6_OPTION, len, MAGIC, rest @ ..] = header else { return None };
    let list = rest.get(..usize::from(*len).checked_sub(1)?)?;
    if list.is_empty() || list.len() > AckList::MAX_OPTION_BYTES {
        return None;
    }
    let mut canonical = [0; MAX_HEADER_BYTES];
    let len = write_ipv6(&mut canonical, *next_header, list);
    if canonical[..len] == *header { AckList::read(list) } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(steps: &[u32]) -> AckList {
        let mut list = AckList::EMPTY;
        for step in steps {
            assert!(list.push(*step, AckList::MAX_BYTES), "{step} fits");
        }
        list
    }

    fn numbers(list: &AckList, carrier: u32) -> Vec<u32> {
        list.numbers(SeqNumber::new(carrier)).map(SeqNumber::raw).collect()
    }

    /// 2920 = 22 * 128 + 104: 0xE8 (104 and a continuation bit), 0x16; then the count.
    #[test]
    fn equal_steps_are_three_bytes() {
        let list = list(&[2920; 100]);
        assert_eq!(list.as_bytes(), [0xE8, 0x16, 100]);
        assert_eq!((list.count(), list.duplicates()), (100, 0));
    }

    #[test]
    fn the_numbers_come_back_oldest_first_across_the_wrap() {
        let list = list(&[1000, 0, 0, 500]);
        assert_eq!(numbers(&list, 700), [u32::MAX - 799, 200, 200, 200]);
        assert_eq!((list.count(), list.duplicates()), (4, 2));
    }

    #[test]
    fn a_full_list_takes_no_more_and_stays_as_it_is() {
        let mut list = AckList::EMPTY;
        // Different steps of two bytes each: three bytes a run.
        let taken = (0..20).take_while(|n| list.push(1000 + n, AckList::MAX_OPTION_BYTES)).count();
        assert_eq!((taken, list.as_bytes().len()), (7, 21));
        let before = list;
        assert!(!list.push(2000, AckList::MAX_OPTION_BYTES));
        assert_eq!(list, before);
        assert!(list.push(1006, AckList::MAX_OPTION_BYTES), "one more of the last run costs no byte");
    }

    #[test]
    fn a_list_tells_no_more_than_1024_numbers_of_less_than_half_the_circle() {
        let mut many = list(&[1; 1024]);
        assert!(!many.push(1, AckList::MAX_BYTES));
        let mut wide = list(&[1 << 30]);
        assert!(!wide.push(1 << 30, AckList::MAX_BYTES));
        // 0x80 0x08 is a count of 1024; 1025 exceeds the limit.
        assert_eq!(AckList::read(&[1, 0x80, 8]).map(|list| list.count()), Some(1024));
        assert_eq!(AckList::read(&[1, 0x81, 8]), None);
        assert_eq!(AckList::read(&[0x80, 0x80, 0x80, 0x80, 4, 2]), None);
    }

    #[test]
    fn what_is_no_list_is_not_read() {
        for bytes in [&[][..], &[5], &[5, 0], &[0x80; 6], &[1, 1, 0x80], &[1; 33]] {
            assert_eq!(AckList::read(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn an_option_is_read_only_as_it_is_written() {
        let list = list(&[1460, 1460]);
        let mut v4 = [0xFF; 8];
        assert_eq!(write_ipv4(&mut v4, list.as_bytes()), 8);
        assert_eq!(v4, [30, 6, 0xA7, 0xB4, 0x0B, 2, 0, 0]);
        assert_eq!(read_ipv4(&v4), Some(list));
        let mut v6 = [0xFF; 8];
        assert_eq!(write_ipv6(&mut v6, 6, list.as_bytes()), 8);
        assert_eq!(v6, [6, 0, 0x1E, 4, 0xA7, 0xB4, 0x0B, 2]);
        assert_eq!(read_ipv6(&v6), Some(list));
        for at in [0, 1, 2, 7] {
            let mut other = v4;
            other[at] ^= 0x20;
            assert_eq!(read_ipv4(&other), None, "byte {at}");
        }
        for at in [1, 2, 3, 4] {
            let mut other = v6;
            other[at] ^= 0x20;
            assert_eq!(read_ipv6(&other), None, "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn what_is_pushed_comes_back(
            carrier in any::<u32>(),
            steps in prop::collection::vec(prop_oneof![Just(0_u32), Just(1460), Just(2920), 0..100_000_u32], 0..60),
            capacity in 0..=AckList::MAX_BYTES,
        ) {
            let mut list = AckList::EMPTY;
            let mut expected = Vec::new();
            let mut number = carrier;
            for step in steps {
                if list.push(step, capacity) {
                    expected.push(number);
                    number = number.wrapping_add(step);
                }
            }
            prop_assert!(list.as_bytes().len() <= capacity);
            prop_assert_eq!(numbers(&list, number), expected);
            if !list.is_empty() {
                prop_assert_eq!(AckList::read(list.as_bytes()), Some(list));
            }
        }

        #[test]
        fn any_bytes_are_a_list_or_none(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(list) = AckList::read(&bytes) {
                prop_assert_eq!(list.as_bytes(), &bytes);
                prop_assert_eq!(list.numbers(SeqNumber::new(7)).count(), usize::from(list.count()));
            }
            if let Some(list) = read_ipv4(&bytes) {
                let mut out = [0; 64];
                let len = write_ipv4(&mut out, list.as_bytes());
                prop_assert_eq!(&out[..len], &bytes);
            }
        }
    }
}
