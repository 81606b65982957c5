//! `--group-by`: groups of connections to compare.

use std::net::IpAddr;

use lastmile_analysis::{Connection, Direction};

/// The property that connections of a group share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupBy {
    /// The port of the side that accepted the connection.
    Port,
    /// The code point of the data.
    Dscp,
    /// This number of bits of the address of the side that opened the connection.
    Prefix(u8),
}

impl GroupBy {
    /// Parses `port`, `dscp` or `prefix/BITS`.
    ///
    /// # Errors
    /// Another text.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            None if text == "port" => Ok(Self::Port),
            None if text == "dscp" => Ok(Self::Dscp),
            Some(("prefix", bits)) => match bits.parse() {
                Ok(bits @ 0..=128) => Ok(Self::Prefix(bits)),
                _ => Err(format!("{bits} is no number of bits from 0 to 128")),
            },
            _ => Err("groups are port, dscp or prefix/BITS, such as prefix/24".to_owned()),
        }
    }

    /// The group of one direction of a connection.
    pub(super) fn key(self, connection: &Connection, direction: &Direction) -> String {
        match self {
            Self::Port => format!("port {}", connection.addresses.destination_port),
            Self::Dscp => direction.codepoints.dscp.map_or_else(|| "no data".to_owned(), |dscp| format!("dscp {dscp}")),
            Self::Prefix(bits) => prefix(connection.addresses.ip.source(), bits),
        }
    }
}

/// A prefix such as `192.168.1.0/24`; at most 32 bits of an IPv4 address.
fn prefix(address: IpAddr, bits: u8) -> String {
    match address {
        IpAddr::V4(address) => {
            let bits = bits.min(32);
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            format!("{}/{bits}", std::net::Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            format!("{}/{bits}", std::net::Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_cut_and_words_that_are_no_group_refused() {
        assert_eq!(prefix("192.168.1.77".parse().unwrap(), 24), "192.168.1.0/24");
        assert_eq!(prefix("192.168.1.77".parse().unwrap(), 0), "0.0.0.0/0");
        assert_eq!(prefix("2001:db8::1".parse().unwrap(), 32), "2001:db8::/32");
        assert_eq!(GroupBy::parse("prefix/24"), Ok(GroupBy::Prefix(24)));
        assert!(GroupBy::parse("prefix/129").is_err() && GroupBy::parse("ports").is_err());
    }
}
