//! Charges packets to classes, and shows the counters of classes.

use lastmile_packet::Packet;
use lastmile_units::{ByteCount, Instant, WireBytes};

use super::Sharing;
use super::bucket::Bucket;
use super::class::{Bound, Mode};
use crate::discipline::Counter;

impl<P: Packet> Sharing<P> {
    /// Charges a packet of leaf `id` to the leaf and its ancestors. The lender is the ancestor at
    /// `level`, or the leaf itself.
    pub(super) fn charge(&mut self, id: usize, level: usize, now: Instant, bytes: ByteCount, wire: WireBytes) {
        let mut next = Some(id as u32);
        let (mut lent, mut ends_at_isolated) = (false, false);
        while let Some(id) = next {
            let class = &mut self.classes[id as usize];
            class.tally.packets += 1;
            class.tally.bytes += bytes.as_u64();
            class.tally.wire_bytes += wire.as_u64();
            if !ends_at_isolated {
                class.tally.last_charged = now;
                if usize::from(class.level) == level {
                    class.tally.lent += 1;
                    lent = true;
                }
                if let (true, Bound::Bucket(own)) = (lent, &mut class.own) {
                    own.charge(now, wire);
                }
                class.tally.borrowed += u64::from(!lent);
                if let Some(ceil) = &mut class.ceil {
                    ceil.charge(now, wire);
                }
                ends_at_isolated = lent && class.isolated;
            }
            next = class.parent;
            let is_unchanged = class.mode == Mode::CanSend && class.owes_nothing(now) && !self.events.has(id as usize);
            if !is_unchanged {
                self.update_mode(id as usize, now);
            }
        }
    }

    /// Shows the values of `tc -s class` for each class, and the counters of its queue.
    pub(crate) fn counters(&self, visit: &mut dyn FnMut(Counter<'_>)) {
        let mut shown: Vec<(u32, usize)> =
            self.indices.iter().enumerate().filter_map(|(id, index)| Some(((*index)?, id))).collect();
        shown.sort_unstable();
        for (index, id) in shown {
            let class = &self.classes[id];
            let path = format!("classes.{index}");
            let tally = &class.tally;
            let own = if let Bound::Bucket(own) = &class.own { Some(own) } else { None };
            let tokens = |bucket: Option<&Bucket>| bucket.map_or((0, 0), |bucket| bucket.tokens(tally.last_charged));
            let ceil = if class.ceil_is_own { own } else { class.ceil.as_ref() };
            let ((tokens_bytes, debt_bytes), (ceil_bytes, ceil_debt_bytes)) = (tokens(own), tokens(ceil));
            for (name, value) in [
                ("sent_packets", tally.packets),
                ("sent_bytes", tally.bytes),
                ("sent_wire_bytes", tally.wire_bytes),
                ("lent", tally.lent),
                ("borrowed", tally.borrowed),
                ("overlimits", tally.overlimits),
                ("tokens_bytes", tokens_bytes),
                ("debt_bytes", debt_bytes),
                ("ceil_tokens_bytes", ceil_bytes),
                ("ceil_debt_bytes", ceil_debt_bytes),
            ] {
                visit(Counter { path: &path, kind: self.kind, name, value });
            }
            if class.is_leaf() {
                Counter::below(&format!("{path}.queue"), &*self.leaves[class.content_index as usize].queue, visit);
            }
        }
    }
}
