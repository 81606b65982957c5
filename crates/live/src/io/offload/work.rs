//! The work that is left to a device for one frame.

/// A checksum field that holds the sum of the pseudo-header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checksum {
    /// Where the sum begins: the transport header.
    pub start: usize,
    /// Where the field is.
    pub at: usize,
}

/// Payload in one piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segments {
    /// Of which protocol; `None` for one that is not cut here.
    pub transport: Option<Transport>,
    /// Payload of each segment but the last.
    pub size: usize,
    /// CWR is on the first segment alone (RFC 3168, section 6.1.2). With Accurate ECN it is a bit of the counter, on
    /// each of them (RFC 9768, section 3.2.2).
    pub reduces: bool,
}

/// Transport protocols whose payload is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP, a datagram each (not the fragments of one).
    Udp,
}
