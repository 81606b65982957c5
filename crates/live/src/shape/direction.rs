//! The queue and the encapsulation of one direction of a middlebox.

use lastmile_linklayer::LinkLayer;
use lastmile_model::Hop;
use lastmile_queueing::line;
use lastmile_queueing::spec::Spec;
use lastmile_units::Duration;

/// The settings of one direction.
#[derive(Clone, Debug)]
pub struct Direction {
    /// The queue, which lets packets go as fast as the line takes them.
    pub queue: Spec,
    /// The encapsulation and framing of the line, which give the cost of an IP packet.
    pub link_layer: LinkLayer,
}

impl Direction {
    /// The hop of a middlebox: it counts as the line does, and takes no time itself.
    #[must_use]
    pub fn hop(&self, name: &str) -> Hop {
        let Self { queue, link_layer } = self.clone();
        Hop { name: name.into(), line: line::Config::new(None, link_layer, Duration::ZERO), queue }
    }
}
