//! The order in which stages are gone through.

use std::collections::BTreeMap;

/// Stages so that edges lead to later ones, and the least time that an edge takes that does not.
pub(super) fn order(stages: usize, edges: &BTreeMap<(u32, u32), u64>) -> (Vec<u32>, u64) {
    let mut before = vec![0_u32; stages];
    for (_, to) in edges.keys() {
        before[*to as usize] += 1;
    }
    let mut placed = vec![false; stages];
    let mut order: Vec<u32> = Vec::new();
    while order.len() < stages {
        // The first that nothing leads to any more; in a ring, the first that is left.
        let free = (0..stages).find(|stage| !placed[*stage] && before[*stage] == 0);
        let next = free.or_else(|| (0..stages).find(|stage| !placed[*stage])).expect("one is left");
        placed[next] = true;
        order.push(next as u32);
        for (_, to) in edges.keys().filter(|(from, _)| *from as usize == next) {
            before[*to as usize] = before[*to as usize].saturating_sub(1);
        }
    }
    let place = |stage: u32| order.iter().position(|other| *other == stage);
    let back = edges.iter().filter(|((from, to), _)| place(*from) >= place(*to));
    let look_ahead = back.map(|(_, time)| *time).min().unwrap_or(u64::MAX);
    (order, look_ahead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_stand_before_those_that_they_send_to() {
        let edges = BTreeMap::from([((2, 0), 5), ((0, 1), 7)]);
        assert_eq!(order(3, &edges), (vec![2, 0, 1], u64::MAX));
    }

    #[test]
    fn a_ring_is_cut_where_little_time_decides() {
        let edges = BTreeMap::from([((0, 1), 5), ((1, 2), 7), ((2, 0), 9)]);
        assert_eq!(order(3, &edges), (vec![0, 1, 2], 9));
    }
}
