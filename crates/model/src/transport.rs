//! The transport of connections, and the end that opens them.

use std::sync::Arc;

/// The transport of an application's connections. Both ends have the same settings.
#[derive(Clone, Debug)]
pub enum Transport {
    /// TCP.
    Tcp(Arc<lastmile_tcp::Config>),
    /// QUIC.
    Quic(Arc<lastmile_quic::Config>),
}

impl Transport {
    /// The settings of TCP, if the transport is TCP.
    #[must_use]
    pub fn tcp(&self) -> Option<&Arc<lastmile_tcp::Config>> {
        match self {
            Self::Tcp(tcp) => Some(tcp),
            Self::Quic(_) => None,
        }
    }
}

/// The end of a transfer that opens the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenedBy {
    /// The end that sends the data: an upload.
    Sender,
    /// The end that receives the data: a download.
    Receiver,
}
