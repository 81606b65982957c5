//! The position of a capture: next to the sender of a direction, next to its receiver, or between
//! them.
//!
//! The handshake and every acknowledged segment split the round trip into two parts: from the
//! capture to one end and back, and to the other end and back. The capture is next to an end whose
//! part is short and a small share of the whole.

use lastmile_units::Duration;

/// The position of a capture relative to a direction's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Vantage {
    /// At the sender or next to it: captured packets have just been sent, and captured ACKs are
    /// about to arrive.
    Sender,
    /// Between the two.
    Between,
    /// At the receiver or next to it.
    Receiver,
    /// Unknown: too few measurements of one part, or the round trip is too short.
    #[default]
    Unknown,
}

/// The largest share of the round trip at a near end, as 1 in this number.
const PART: u64 = 5;
/// The largest distance of a near end.
const NEAR: Duration = Duration::from_ms(5);
/// The number of round trips that is assumed to include one without delayed ACK, and of responses to include a prompt
/// one.
pub(crate) const FEW: u64 = 8;
/// Shorter round trips are within hosts, whose own delays vary by this much.
pub(crate) const WITHIN_HOSTS: Duration = Duration::from_us(250);

/// The answers of a sender usually take as long as those of a distant one, and longer than the rest of the round trip.
/// `usual` are the medians of both parts.
pub(crate) fn is_distant(usual: Option<(Duration, Duration)>) -> bool {
    usual.is_some_and(|(sender, receiver)| sender > NEAR && sender > receiver)
}

impl Vantage {
    /// The position, from the fastest round trips between the capture and the sender and receiver.
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

    /// This position, unless the sender's usual answer takes longer than the rest of the round trip: a queue
    /// before the capture was empty at the fastest answer. `usual` are the medians of both parts.
    #[must_use]
    pub(crate) fn behind_a_queue(self, usual: Option<(Duration, Duration)>) -> Self {
        let is_behind = is_distant(usual);
        if self == Self::Sender && is_behind { Self::Between } else { self }
    }

    /// The name in outputs; `None` for an unknown position.
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
        // A modem 3 ms away counts as next to the host, a gateway 60 ms away does not, at any
        // distance of the other end.
        assert_eq!(vantage(3_000, 30_000), Vantage::Sender);
        assert_eq!(vantage(60_000, 600_000), Vantage::Between);
        assert_eq!(vantage(15_000, 15_000), Vantage::Between);
        assert_eq!(vantage(20, 150), Vantage::Unknown, "one machine");
        assert_eq!(Vantage::new(None, Some(Duration::from_ms(30))), Vantage::Unknown);
    }

    #[test]
    fn a_queue_that_was_once_empty_is_before_the_capture() {
        let usual = |sender, receiver| Some((Duration::from_ms(sender), Duration::from_ms(receiver)));
        assert_eq!(Vantage::Sender.behind_a_queue(usual(881, 56)), Vantage::Between);
        assert_eq!(Vantage::Sender.behind_a_queue(usual(20, 56)), Vantage::Sender, "the sender paces");
        assert_eq!(Vantage::Sender.behind_a_queue(usual(3, 1)), Vantage::Sender);
        assert_eq!(Vantage::Sender.behind_a_queue(None), Vantage::Sender);
        assert_eq!(Vantage::Receiver.behind_a_queue(usual(881, 0)), Vantage::Receiver);
    }
}
