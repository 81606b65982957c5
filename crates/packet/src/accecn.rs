//! The AccECN option (RFC 9768, section 3.2.3): counters of the payload that arrived with each ECN field, in one of two
//! orders, of which the last may be missing.

/// The counters of the AccECN option, of 24 bits each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct EcnBytes {
    /// ECT(0), from 1.
    pub ect0: u32,
    /// CE, from 0.
    pub ce: u32,
    /// ECT(1), from 1.
    pub ect1: u32,
}

impl EcnBytes {
    /// The counters modulo 2^24.
    pub(crate) const MASK: u32 = 0x00ff_ffff;

    /// The counters in the order of the option.
    pub(crate) const fn in_order(self, order: EcnOrder) -> [u32; 3] {
        match order {
            EcnOrder::Ect0First => [self.ect0, self.ce, self.ect1],
            EcnOrder::Ect1First => [self.ect1, self.ce, self.ect0],
        }
    }

    /// The inverse of [`Self::in_order`].
    pub(crate) const fn from_order([first, ce, last]: [u32; 3], order: EcnOrder) -> Self {
        match order {
            EcnOrder::Ect0First => Self { ect0: first, ce, ect1: last },
            EcnOrder::Ect1First => Self { ect0: last, ce, ect1: first },
        }
    }
}

/// The order of the counters, which the kind of the option states.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum EcnOrder {
    /// Kind 172: ECT(0), CE, ECT(1).
    #[default]
    Ect0First,
    /// Kind 174: ECT(1), CE, ECT(0), as Linux writes them.
    Ect1First,
}

/// The order of an option's counters, and how many of them it has: all, or the first ones.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct EcnLayout {
    order: EcnOrder,
    counters: u8,
}

impl EcnLayout {
    /// All counters, ECT(0) first.
    pub const ALL: Self = Self { order: EcnOrder::Ect0First, counters: Self::MOST };
    /// The most counters.
    pub const MOST: u8 = 3;

    /// The first `counters` of an order. `None` for more than three.
    #[must_use]
    pub const fn new(order: EcnOrder, counters: u8) -> Option<Self> {
        if counters <= Self::MOST { Some(Self { order, counters }) } else { None }
    }

    /// The order of the counters.
    #[must_use]
    pub const fn order(self) -> EcnOrder {
        self.order
    }

    /// The number of counters.
    #[must_use]
    pub const fn counters(self) -> u8 {
        self.counters
    }

    /// True if an option of this layout has every counter that one of `other` has.
    #[must_use]
    pub fn covers(self, other: Self) -> bool {
        if self.order == other.order {
            return self.counters >= other.counters;
        }
        // The orders begin with different counters and share the one in the middle.
        other.counters == 0 || self.counters == Self::MOST
    }

    /// Bytes of the option, padded to a multiple of four.
    pub(crate) const fn header_bytes(self) -> u8 {
        (2 + 3 * self.counters).next_multiple_of(4)
    }

    /// A word that is 0 for [`Self::ALL`].
    pub(crate) const fn to_word(self) -> u32 {
        ((self.order as u32) << 2) | (Self::MOST - self.counters) as u32
    }

    /// The inverse of [`Self::to_word`].
    pub(crate) const fn from_word(word: u32) -> Self {
        let order = if word & 4 == 0 { EcnOrder::Ect0First } else { EcnOrder::Ect1First };
        Self { order, counters: Self::MOST - (word & 3) as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layouts() -> impl Iterator<Item = EcnLayout> {
        let orders = [EcnOrder::Ect0First, EcnOrder::Ect1First];
        orders.into_iter().flat_map(|order| (0..=3).map(move |count| EcnLayout::new(order, count).unwrap()))
    }

    /// The definition: the set of one contains that of the other.
    #[test]
    fn a_layout_covers_another_with_every_counter_of_it() {
        let names = |layout: EcnLayout| {
            let all = EcnBytes { ect0: 0, ce: 1, ect1: 2 }.in_order(layout.order());
            all[..usize::from(layout.counters())].to_vec()
        };
        for one in layouts() {
            for other in layouts() {
                let expected = names(other).iter().all(|name| names(one).contains(name));
                assert_eq!(one.covers(other), expected, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn words_and_orders_return_what_they_were_made_of() {
        assert_eq!((EcnLayout::ALL.to_word(), EcnLayout::new(EcnOrder::Ect1First, 4)), (0, None));
        let bytes = EcnBytes { ect0: 10, ce: 20, ect1: 30 };
        for layout in layouts() {
            assert_eq!(EcnLayout::from_word(layout.to_word()), layout);
            assert_eq!(EcnBytes::from_order(bytes.in_order(layout.order()), layout.order()), bytes);
        }
        // RFC 9768, section 3.2.3: 11 bytes with all counters, 8, 5, and 2 without any.
        let sizes = (0..=3).map(|count| EcnLayout::new(EcnOrder::Ect0First, count).unwrap().header_bytes());
        assert_eq!(sizes.collect::<Vec<_>>(), [4, 8, 8, 12]);
    }
}
