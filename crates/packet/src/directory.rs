//! Addresses and payload of flows whose packets do not carry them.
//!
//! A packet with bytes carries its addresses, ports and payload. A simulated packet has only a
//! [`FlowId`]. Classifiers that match on ports, header compression and captures look the rest up in
//! one common directory.

use crate::{FlowAddresses, FlowId};

/// Addresses and first payload bytes of simulated flows.
///
/// Flow `2c` of connection `c` and flow `2c + 1` are each other's reverse ([`FlowId::reversed`]),
/// and so are their addresses.
pub trait FlowDirectory: Send + Sync {
    /// Addresses and ports of the flow's packets.
    fn addresses(&self, flow: FlowId) -> FlowAddresses;

    /// The first payload bytes of the flow, for classifiers that inspect payload. Empty for a flow
    /// with no particular content.
    fn first_payload(&self, flow: FlowId) -> &[u8] {
        let _ = flow;
        &[]
    }
}

/// A directory that derives addresses from the flow's number ([`FlowAddresses::of_simulated`]),
/// without payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NumberedFlows;

impl FlowDirectory for NumberedFlows {
    fn addresses(&self, flow: FlowId) -> FlowAddresses {
        FlowAddresses::of_simulated(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MAX_HEADER_LEN, Meta, Packet, Protocol, TcpFlags, parse_headers};

    /// A directory in which every connection is a request from port 40 000 to a web server.
    struct Web;

    impl FlowDirectory for Web {
        fn addresses(&self, flow: FlowId) -> FlowAddresses {
            let mut addresses = FlowAddresses::of_simulated(FlowId::new(0));
            (addresses.source_port, addresses.destination_port) = (40_000, 80);
            if flow.index().is_multiple_of(2) { addresses } else { addresses.reversed() }
        }

        fn first_payload(&self, flow: FlowId) -> &[u8] {
            if flow.index().is_multiple_of(2) { b"GET" } else { b"HTTP" }
        }
    }

    #[test]
    fn a_simulated_packet_wears_what_the_directory_says() {
        let ack = Meta { flow: FlowId::new(6), ip_len: 40, header_len: 40, flags: TcpFlags::ACK, ..Meta::default() };
        let key = ack.key(&Web).unwrap();
        assert_eq!((key.addresses.source_port, key.addresses.destination_port, key.protocol), (40_000, 80, 6));
        let mut headers = [0; MAX_HEADER_LEN];
        let len = ack.headers(&Web, &mut headers);
        assert_eq!(parse_headers(&headers[..len]).unwrap().key, key);

        // An ACK has no payload, but the other direction's first bytes are known.
        assert_eq!((ack.payload(&Web), ack.answer(&Web)), (&b""[..], &b"HTTP"[..]));
        let data = Meta { ip_len: 540, flow: FlowId::new(7), ..ack };
        assert_eq!((data.payload(&Web), data.answer(&Web)), (&b"HTTP"[..], &b"GET"[..]));
    }

    #[test]
    fn a_protocol_has_the_number_of_its_ip_version() {
        let numbers = |ipv6| [Protocol::Tcp, Protocol::Udp, Protocol::EchoReply].map(|protocol| protocol.number(ipv6));
        assert_eq!(numbers(false), [6, 17, 1]);
        assert_eq!(numbers(true), [6, 17, 58]);
    }
}
