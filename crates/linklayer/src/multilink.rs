//! PPP multilink fragments, between which small packets pass: they wait for a fragment instead of a
//! whole large packet.
//!
//! Published: RFC 1990 (fragments; section 3 has both headers), with small packets between the
//! fragments of a large one as in RFC 2686. Each fragment is a PPP frame with a sequence number.
//! The first fragment also carries the protocol of the packet. Differs: all fragments but the last
//! are of equal size, and several links are not bundled. Over ATM several VCs serve the purpose,
//! whose cells alternate: the wait is one cell and costs no headers, but both ends need a second
//! VC. Cost: two evaluations of the link layer a packet. [`crate::interleave`] transmits in this
//! way.

use lastmile_units::ByteCount;

/// PPP protocol of the packet, carried once inside the fragments.
const INNER_PROTOCOL: u64 = 2;

/// The length of a fragment's sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum SequenceNumber {
    /// 24 bits and flags: 4 bytes. The default of RFC 1990.
    #[default]
    Long,
    /// 12 bits and flags: 2 bytes.
    Short,
}

impl SequenceNumber {
    /// Bytes of flags and sequence number.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::Long => 4,
            Self::Short => 2,
        }
    }
}

/// Fragments of a fixed size over a PPP link, whose overhead includes the 2-byte PPP protocol of
/// each fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Multilink {
    fragment: u16,
    sequence: SequenceNumber,
}

impl Multilink {
    /// The most bytes of a packet in one fragment: the largest IP packet.
    pub const MAX_FRAGMENT: ByteCount = ByteCount::new(u16::MAX as u64);

    /// Fragments of at most `fragment` bytes of the packet. `None` for fewer bytes than the
    /// fragment's own header has, and above [`Multilink::MAX_FRAGMENT`].
    #[must_use]
    pub fn new(fragment: ByteCount, sequence: SequenceNumber) -> Option<Self> {
        let fragment = u16::try_from(fragment.as_u64()).ok()?;
        (u64::from(fragment) >= sequence.bytes()).then_some(Self { fragment, sequence })
    }

    /// Bytes of the packet in a full fragment.
    #[must_use]
    pub const fn fragment(self) -> ByteCount {
        ByteCount::new(self.fragment as u64)
    }

    /// The length of the sequence numbers.
    #[must_use]
    pub const fn sequence(self) -> SequenceNumber {
        self.sequence
    }

    /// Fragments of a packet of `ip` bytes.
    #[must_use]
    pub const fn fragments(self, ip: ByteCount) -> u64 {
        let (full, rest) = self.cut(ip);
        full + (rest > 0) as u64
    }

    /// The number of full fragments of a packet of `ip` bytes, and the bytes of the packet in the
    /// last, shorter one.
    pub(crate) const fn cut(self, ip: ByteCount) -> (u64, u64) {
        let inside = ip.as_u64().saturating_add(INNER_PROTOCOL);
        (inside / self.fragment().as_u64(), inside % self.fragment().as_u64())
    }
}
