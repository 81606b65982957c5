//! Where a capture stands: next to the sender of a direction, next to its receiver, or between them.
//!
//! The handshake and every segment that is acknowledged split the round trip in two: from the capture to one end and back, and from the
//! capture to the other. An end whose part is a small share of the whole, and short, is next to the capture.

use lastmile_units::Duration;

/// Where a capture stands, seen from a direction's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Vantage {
    /// At the sender or next to it: what passes has just been sent, and ACKs that pass are about to arrive.
    Sender,
    /// Between the two.
    Between,
    /// At the receiver or next to it.
    Receiver,
    /// Too little was seen of one of the two parts, or the whole is too short to tell.
    #[default]
    Unknown,
}

/// An end is near with at most this part of the round trip, 1 in this many.
const PART: u64 = 5;
/// And at most this far.
const NEAR: Duration = Duration::from_ms(5);
/// A round trip that is no longer is within hosts, whose own delays vary as much.
const WITHIN_HOSTS: Duration = Duration::from_us(250);

impl Vantage {
    /// By the fastest round trips from the capture to the sender and to the receiver.
    #[must_use]
    pub fn new(to_sender: Option<Duration>, to_receiver: Option<Duration>) -> Self {
        let Some((sender, receiver)) = to_sender.zip(to_receiver) else { return Self::Unknown };
        let whole = sender + receiver;
        let is_near = |part: Duration| part <= NEAR && part <= whole / PART;
        match (is_near(sender), is_near(receiver)) {
            _ if whole <= WITHIN_HOSTS => Self::Unknown,
            (true, _) => Self::Sender,
            (_, true) => Self::Receiver,
            (false, false) => Self::Between,
        }
    }

    /// Its name in outputs; `None` where it is not known.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Sender => Some("sender"),
            Self::Between => Some("between"),
            Self::Receiver => Some("receiver"),
            Self::Unknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_near_by_its_part_of_the_round_trip() {
        let vantage =
            |sender, receiver| Vantage::new(Some(Duration::from_us(sender)), Some(Duration::from_us(receiver)));
        assert_eq!(vantage(30, 30_000), Vantage::Sender);
        assert_eq!(vantage(30_000, 30), Vantage::Receiver);
        // A modem 3 ms away is next to the host, a gateway 60 ms away is not, however far the other end.
        assert_eq!(vantage(3_000, 30_000), Vantage::Sender);
        assert_eq!(vantage(60_000, 600_000), Vantage::Between);
        assert_eq!(vantage(15_000, 15_000), Vantage::Between);
        assert_eq!(vantage(20, 150), Vantage::Unknown, "one machine");
        assert_eq!(Vantage::new(None, Some(Duration::from_ms(30))), Vantage::Unknown);
    }
}
