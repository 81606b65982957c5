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
}

/// Transport protocols whose payload is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP, a datagram each (not the fragments of one).
    Udp,
}
