//! Timestamps of packets (RFC 7323), and their order.

use lastmile_packet::Meta;

/// The timestamp of a packet.
pub(crate) fn of(packet: &Meta) -> Option<u32> {
    packet.options().timestamps().map(|(value, _)| value)
}

/// The timestamp that a packet echoes.
pub(crate) fn echo(packet: &Meta) -> Option<u32> {
    packet.options().timestamps().map(|(_, echo)| echo)
}

/// True if `one` is earlier than `other`. Timestamps wrap (section 5.2).
pub(crate) fn is_before(one: u32, other: u32) -> bool {
    one.wrapping_sub(other).cast_signed() < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_goes_on_where_the_clock_wraps() {
        assert!(is_before(1, 2) && !is_before(2, 2) && !is_before(2, 1));
        assert!(is_before(u32::MAX, 0) && !is_before(0, u32::MAX));
    }
}
