//! Whose turn it is among those that may send at one level and priority: deficit round robin by the quanta of leaves.

use lastmile_packet::Packet;
use lastmile_units::WireBytes;

use super::Sharing;

impl<P: Packet> Sharing<P> {
    /// The leaf whose turn it is among those that send at this level and priority.
    ///
    /// When each child of a class has had its turn, the class beside it is next: excess is shared by the quanta of leaves.
    pub(super) fn pick(&mut self, level: usize, priority: usize) -> usize {
        'round: loop {
            let turns = &mut self.lenders[level].turns[priority];
            let Some(place) = turns.current() else { continue };
            let mut id = self.levels[level][place] as usize;
            while !self.classes[id].is_leaf() {
                let class = &self.classes[id];
                match self.borrowers[class.content as usize].turns[priority].current() {
                    Some(sibling) => id = class.first_child as usize + sibling,
                    None => {
                        self.pass(id, level, priority);
                        continue 'round;
                    }
                }
            }
            let slot = self.deficit_slot(level);
            let leaf = &mut self.leaves[self.classes[id].content as usize];
            if leaf.deficits[slot] >= 0 {
                return id;
            }
            // Its packets are larger than its quantum: it sits out rounds until they are paid for.
            leaf.deficits[slot] += leaf.quantum;
            self.pass(id, level, priority);
        }
    }

    /// A class that sends at `level` has had its turn.
    fn pass(&mut self, id: usize, level: usize, priority: usize) {
        let class = &self.classes[id];
        if usize::from(class.level) == level {
            self.lenders[level].turns[priority].pass(class.place as usize);
        } else {
            let parent = class.parent.expect("who sends at a level above its own has borrowed");
            let content = self.classes[parent as usize].content as usize;
            self.borrowers[content].turns[priority].pass(class.sibling as usize);
        }
    }

    /// Where a leaf keeps what it may send in a turn at `level`.
    fn deficit_slot(&self, level: usize) -> usize {
        if level == 0 { 0 } else { self.levels.len() - level }
    }

    pub(super) fn spend_turn(&mut self, id: usize, level: usize, priority: usize, wire: WireBytes) {
        let slot = self.deficit_slot(level);
        let leaf = &mut self.leaves[self.classes[id].content as usize];
        let deficit = &mut leaf.deficits[slot];
        *deficit = deficit.saturating_sub_unsigned(wire.as_u64());
        if *deficit < 0 {
            *deficit += leaf.quantum;
            self.pass(id, level, priority);
        }
    }
}
