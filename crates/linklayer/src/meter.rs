//! Wire bytes of consecutive packets, with the OAM cells that are due between them.

use lastmile_units::{ByteCount, CellCount, WireBytes};

use crate::LinkLayer;
use crate::aal5::CELL_BYTES;
use crate::oam::OamCounter;

/// Wire bytes of the consecutive packets of one line, OAM cells included where the line has them.
///
/// [`LinkLayer::on_wire`] is the cost of one packet in isolation; a meter returns what a
/// transmitter sends.
#[derive(Clone, Copy, Debug)]
pub struct WireMeter {
    link: LinkLayer,
    oam: Option<OamCounter>,
}

impl WireMeter {
    /// A meter for a line that has sent nothing.
    #[must_use]
    pub const fn new(link: LinkLayer) -> Self {
        let oam = match link.oam() {
            Some(share) => Some(share.counter()),
            None => None,
        };
        Self { link, oam }
    }

    /// The link layer of the line.
    #[must_use]
    pub const fn link(&self) -> &LinkLayer {
        &self.link
    }

    /// Bytes on the wire for the next packet of `ip` bytes, and for the OAM cells that are due with it.
    // Inlined: a call takes a quarter more instructions per packet.
    #[inline(always)]
    pub fn on_wire(&mut self, ip: ByteCount) -> WireBytes {
        self.piece(self.link.on_wire(ip))
    }

    /// Bytes on the wire for the next piece of a packet ([`LinkLayer::pieces`]) that takes `wire`
    /// bytes in isolation, and for the OAM cells that are due with it.
    #[inline]
    pub fn piece(&mut self, wire: WireBytes) -> WireBytes {
        match &mut self.oam {
            Some(counter) => wire + counter.advance(CellCount::new(wire.as_u64() / CELL_BYTES)).wire_bytes(),
            None => wire,
        }
    }
}
