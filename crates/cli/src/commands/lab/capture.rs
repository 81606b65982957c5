//! `--capture` of real packets: the files of `lastmile run --capture`.

use lastmile_lab::capture::PacketSink;
use lastmile_model::Passage;
use lastmile_studies::recording::Captures;
use lastmile_units::Instant;

/// The files of captures.
pub(super) struct Packets(pub(super) Captures);

impl PacketSink for Packets {
    fn wants(&self, hop: usize, passage: Passage) -> bool {
        self.0.sees(hop, passage)
    }

    fn write(&mut self, at: Instant, hop: usize, passage: Passage, bytes: &[u8]) {
        self.0.write_bytes(at, hop, passage, bytes);
    }
}
