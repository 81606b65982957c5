//! Sizes: IP bytes, bytes on the wire, cells and packets. Each is a type of its own, because mixing
//! them up is the classic error of this field (gross with net rate, `stab` with CAKE overhead).

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Sub, SubAssign};

macro_rules! count {
    ($(#[$doc:meta])* $name:ident, $one:literal, $many:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(u64);

        impl $name {
            /// A size of zero.
            pub const ZERO: Self = Self(0);
            /// The largest size.
            pub const MAX: Self = Self(u64::MAX);

            #[doc = concat!("A count of ", $many, ".")]
            #[must_use]
            pub const fn new(count: u64) -> Self {
                Self(count)
            }

            /// The count as a number.
            #[must_use]
            pub const fn as_u64(self) -> u64 {
                self.0
            }

            /// `self - other`, zero if `other` is larger.
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl SubAssign for $name {
            fn sub_assign(&mut self, other: Self) {
                self.0 -= other.0;
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
                counts.fold(Self::ZERO, Add::add)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} {}", self.0, if self.0 == 1 { $one } else { $many })
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

count!(
    /// Bytes that the IP layer counts: the IP header and its payload.
    ByteCount, "byte", "bytes"
);
count!(
    /// Bytes on the line: IP bytes plus encapsulation, padding, cell headers and gaps.
    WireBytes, "wire byte", "wire bytes"
);
count!(
    /// ATM cells of 53 bytes.
    CellCount, "cell", "cells"
);
count!(
    /// Packets.
    PacketCount, "packet", "packets"
);

impl CellCount {
    /// The cells' bytes on the wire: 53 each (ITU-T I.361).
    #[must_use]
    pub const fn wire_bytes(self) -> WireBytes {
        WireBytes(self.0 * 53)
    }
}

impl WireBytes {
    /// Bits: eight per byte.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0 * 8
    }
}
