//! `--capture` of real packets: the files of `lastmile run --capture`.

use lastmile_lab::capture::PacketSink;
use lastmile_live::bump::Passage;
use lastmile_sim as sim;
use lastmile_units::Instant;

use super::super::run::capture::Captures;

impl PacketSink for Captures {
    fn wants(&self, hop: usize, passage: Passage) -> bool {
        self.sees(hop, simulated(passage))
    }

    fn write(&mut self, at: Instant, hop: usize, passage: Passage, bytes: &[u8]) {
        self.write_bytes(at, hop, simulated(passage), bytes);
    }
}

fn simulated(passage: Passage) -> sim::Passage {
    match passage {
        Passage::Transmitted => sim::Passage::Transmitted,
        Passage::Arrived => sim::Passage::Arrived,
    }
}
