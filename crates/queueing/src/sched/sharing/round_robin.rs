//! Round robin among the leaves that may send at one level and priority: by deficits, with the
//! quanta of the leaves.

use lastmile_packet::Packet;
use lastmile_units::WireBytes;

use super::Sharing;

impl<P: Packet> Sharing<P> {
    /// The leaf that has the turn at this level and priority.
    ///
    /// After each child of a class has had its turn, the next class of the level follows: excess is
    /// shared by the quanta of the leaves.
    pub(super) fn next_leaf(&mut self, level: usize, priority: usize) -> usize {
        'round: loop {
            let turns = &mut self.lenders[level].by_priority[priority];
            let Some(place) = turns.current() else { continue };
            let mut id = self.levels[level][place] as usize;
            while !self.classes[id].is_leaf() {
                let class = &self.classes[id];
                match self.borrowers[class.content_index as usize].by_priority[priority].current() {
                    Some(sibling) => id = class.first_child as usize + sibling,
                    None => {
                        self.end_turn(id, level, priority);
                        continue 'round;
                    }
                }
            }
            let slot = self.deficit_slot(level);
            let leaf = &mut self.leaves[self.classes[id].content_index as usize];
            if leaf.deficits[slot] >= 0 {
                return id;
            }
            // Its last packet exceeded its quantum: it skips turns until the excess is paid.
            leaf.deficits[slot] += leaf.quantum;
            self.end_turn(id, level, priority);
        }
    }

    /// Ends the turn of a class that sends at `level`.
    fn end_turn(&mut self, id: usize, level: usize, priority: usize) {
        let class = &self.classes[id];
        if usize::from(class.level) == level {
            self.lenders[level].by_priority[priority].end_turn(class.index_in_level as usize);
        } else {
            let parent = class.parent.expect("who sends at a level above its own has borrowed");
            let content_index = self.classes[parent as usize].content_index as usize;
            self.borrowers[content_index].by_priority[priority].end_turn(class.index_among_siblings as usize);
        }
    }

    /// Index of the leaf's deficit for turns at `level`.
    fn deficit_slot(&self, level: usize) -> usize {
        if level == 0 { 0 } else { self.levels.len() - level }
    }

    pub(super) fn spend_turn(&mut self, id: usize, level: usize, priority: usize, wire: WireBytes) {
        let slot = self.deficit_slot(level);
        let leaf = &mut self.leaves[self.classes[id].content_index as usize];
        let deficit = &mut leaf.deficits[slot];
        *deficit = deficit.saturating_sub_unsigned(wire.as_u64());
        if *deficit < 0 {
            *deficit += leaf.quantum;
            self.end_turn(id, level, priority);
        }
    }
}
