//! The settings of an endpoint. Equal endpoints share one configuration.

use lastmile_tcp::{ConfigError, Variant};
use lastmile_units::{ByteCount, Duration};

/// The congestion control of an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CongestionControl {
    /// RFC 9002, section 7.
    NewReno,
    /// RFC 9438.
    #[default]
    Cubic,
    /// BBR, version 1.
    Bbr,
    /// BBR, version 3 (draft-ietf-ccwg-bbr).
    Bbr3,
}

impl CongestionControl {
    /// The variant of TCP with this control.
    #[must_use]
    pub const fn variant(self) -> Variant {
        match self {
            Self::NewReno => Variant::NewReno,
            Self::Cubic => Variant::Cubic,
            Self::Bbr => Variant::Bbr,
            Self::Bbr3 => Variant::Bbr3,
        }
    }

    /// A model of the path sets window and pacing rate.
    #[must_use]
    pub const fn is_model(self) -> bool {
        self.variant().measures_rates()
    }

    /// The name in files and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => "newreno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::Bbr3 => "bbr3",
        }
    }
}

/// The acknowledgements that a sender of data requests from its peer by an `ACK_FREQUENCY` frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AckFrequency {
    /// Ack-eliciting packets after which an acknowledgement is due at once, at least 1: the frame's Ack-Eliciting
    /// Threshold plus 1.
    pub every: u32,
    /// The largest delay of an acknowledgement; `None`: the peer's `max_ack_delay`.
    pub max_delay: Option<Duration>,
    /// Packets out of order after which an acknowledgement is due at once; 1 as without the frame, 0 for never.
    pub reordering: u8,
}

/// The settings of an endpoint. Equal endpoints share one configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Congestion control. Default [`CongestionControl::Cubic`].
    pub congestion: CongestionControl,
    /// Bytes of a full UDP payload, 1200 to 65 507. Default 1452: an Ethernet packet of IPv6, which fits IPv4 too.
    pub datagram: u16,
    /// Bytes of the connection IDs in both directions, 0 to 20. Default 8.
    pub connection_id: u8,
    /// The most bytes of a stream that the peer may have sent beyond those read: at least a datagram, at most 1 GiB.
    /// Default 6 MiB.
    pub receive_window: ByteCount,
    /// The transport parameter `max_ack_delay`, below 2^14 ms (RFC 9000, section 18.2). Default 25 ms.
    pub max_ack_delay: Duration,
    /// The request of a sender of data. Default none: an acknowledgement for every second packet.
    pub ack_frequency: Option<AckFrequency>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            congestion: CongestionControl::default(),
            datagram: 1452,
            connection_id: 8,
            receive_window: ByteCount::new(6 << 20),
            max_ack_delay: Duration::from_ms(25),
            ack_frequency: None,
        }
    }
}

/// RFC 9000, section 13.2.2: an acknowledgement after at least two ack-eliciting packets.
pub(crate) const ACK_EVERY: u32 = 2;
/// RFC 9000, section 14: no path carries less.
pub(crate) const LEAST_DATAGRAM: u16 = 1200;
/// The largest payload of UDP over IPv4.
const MOST_DATAGRAM: u16 = 65_507;
/// RFC 9000, section 17.2: bytes of a connection ID.
const MOST_CONNECTION_ID: u8 = 20;
/// The largest receive window.
const MOST_WINDOW: u64 = 1 << 30;
/// RFC 9000, section 18.2: `max_ack_delay` is below 2^14 ms.
const DELAY_LIMIT: Duration = Duration::from_ms(1 << 14);

impl Config {
    /// The first field that is out of its range.
    ///
    /// # Errors
    /// Names the field and its range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let window = self.receive_window.as_u64();
        let request = self.ack_frequency;
        let inherits = request.is_some_and(|request| request.every > 1 && request.max_delay.is_none());
        let delay = request.and_then(|request| request.max_delay).unwrap_or(Duration::from_ms(1));
        let checks = [
            ((LEAST_DATAGRAM..=MOST_DATAGRAM).contains(&self.datagram), "datagram", "1200 to 65507 bytes"),
            (self.connection_id <= MOST_CONNECTION_ID, "connection_id", "0 to 20 bytes"),
            (
                (u64::from(self.datagram)..=MOST_WINDOW).contains(&window),
                "receive_window",
                "at least a datagram and at most 1 GiB",
            ),
            (self.max_ack_delay < DELAY_LIMIT, "max_ack_delay", "below 16384 ms"),
            (
                !(inherits && self.max_ack_delay.is_zero()),
                "max_ack_delay",
                "above zero with a request of an ACK for several packets",
            ),
            (request.is_none_or(|request| request.every >= 1), "ack_every", "at least 1"),
            (!delay.is_zero() && delay < DELAY_LIMIT, "requested_ack_delay", "above zero and below 16384 ms"),
        ];
        match checks.into_iter().find(|&(good, ..)| !good) {
            Some((_, field, allowed)) => Err(ConfigError { field, allowed }),
            None => Ok(()),
        }
    }

    /// Packets for each acknowledgement of a long transfer in order, unless the delay ends first.
    #[must_use]
    pub fn ack_every(&self) -> u32 {
        if self.ack_delay().is_zero() {
            return 1;
        }
        self.ack_frequency.map_or(ACK_EVERY, |request| request.every.max(1))
    }

    /// The longest that an acknowledgement of a long transfer is held back.
    #[must_use]
    pub fn ack_delay(&self) -> Duration {
        self.ack_frequency.and_then(|request| request.max_delay).unwrap_or(self.max_ack_delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_allowed_and_values_out_of_range_are_not() {
        assert_eq!(Config::default().check(), Ok(()));
        let wrong = |config: Config| config.check().map_err(|error| error.field);
        assert_eq!(wrong(Config { datagram: 1199, ..Config::default() }), Err("datagram"));
        assert_eq!(wrong(Config { connection_id: 21, ..Config::default() }), Err("connection_id"));
        assert_eq!(wrong(Config { receive_window: ByteCount::new(1000), ..Config::default() }), Err("receive_window"));
        let late = Duration::from_ms(16_384);
        assert_eq!(wrong(Config { max_ack_delay: late, ..Config::default() }), Err("max_ack_delay"));
        let request = AckFrequency { every: 0, max_delay: None, reordering: 1 };
        assert_eq!(wrong(Config { ack_frequency: Some(request), ..Config::default() }), Err("ack_every"));
        let request = AckFrequency { every: 1, max_delay: Some(Duration::ZERO), reordering: 1 };
        assert_eq!(wrong(Config { ack_frequency: Some(request), ..Config::default() }), Err("requested_ack_delay"));
    }

    /// RFC 9000, section 13.2.1: an acknowledgement without delay is of a single packet.
    #[test]
    fn without_delay_an_acknowledgement_is_of_one_packet() {
        let at_once = Config { max_ack_delay: Duration::ZERO, ..Config::default() };
        assert_eq!((Config::default().ack_every(), at_once.ack_every()), (2, 1));
        let ten = |max_delay| {
            let request = AckFrequency { every: 10, max_delay, reordering: 1 };
            Config { ack_frequency: Some(request), ..at_once.clone() }
        };
        assert_eq!(ten(None).check().map_err(|error| error.field), Err("max_ack_delay"));
        let later = ten(Some(Duration::from_ms(1)));
        assert_eq!((later.check(), later.ack_every()), (Ok(()), 10));
    }
}
