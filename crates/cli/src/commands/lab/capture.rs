//! `--capture` of real packets: the files of `lastmile run --capture`.

use lastmile_lab::capture::PacketSink;
use lastmile_model::Passage;
use lastmile_units::Instant;

use super::super::run::capture::Captures;

impl PacketSink for Captures {
    fn wants(&self, hop: usize, passage: Passage) -> bool {
        self.sees(hop, passage)
    }

    fn write(&mut self, at: Instant, hop: usize, passage: Passage, bytes: &[u8]) {
        self.write_bytes(at, hop, passage, bytes);
    }
}
