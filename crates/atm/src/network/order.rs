//! The order in which switches are handled.

use std::collections::BTreeMap;

use lastmile_units::Duration;

/// By switch: its index in an order in which links lead to later switches; and the shortest time of
/// a link that does not. `links` have the switches at both ends and the time that a cell takes
/// between them.
pub(super) fn order(switches: usize, links: &BTreeMap<(u32, u32), Duration>) -> (Vec<u32>, Option<Duration>) {
    let mut inputs = vec![0_u32; switches];
    for (_, to) in links.keys() {
        inputs[*to as usize] += 1;
    }
    let mut index: Vec<Option<u32>> = vec![None; switches];
    for next in 0..switches as u32 {
        // The first switch without an input from one that is not placed; in a ring, the first that
        // is not placed.
        let mut free = (0..switches).filter(|switch| index[*switch].is_none());
        let any = free.clone().next();
        let switch = free.find(|switch| inputs[*switch] == 0).or(any).expect("one is not placed");
        index[switch] = Some(next);
        for (_, to) in links.keys().filter(|(from, _)| *from as usize == switch) {
            inputs[*to as usize] = inputs[*to as usize].saturating_sub(1);
        }
    }
    let index: Vec<u32> = index.into_iter().flatten().collect();
    let back = links.iter().filter(|((from, to), _)| index[*from as usize] >= index[*to as usize]);
    let look_ahead = back.map(|(_, time)| *time).min();
    (index, look_ahead)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(links: &[(u32, u32, u64)]) -> BTreeMap<(u32, u32), Duration> {
        links.iter().map(|(from, to, ps)| ((*from, *to), Duration::from_ps(*ps))).collect()
    }

    #[test]
    fn switches_come_before_those_to_which_they_send() {
        assert_eq!(order(3, &links(&[(2, 0, 5), (0, 1, 7)])), (vec![1, 2, 0], None));
    }

    #[test]
    fn a_ring_is_cut_at_one_link_whose_time_limits_a_step() {
        let ring = links(&[(0, 1, 5), (1, 2, 7), (2, 0, 9)]);
        assert_eq!(order(3, &ring), (vec![0, 1, 2], Some(Duration::from_ps(9))));
    }
}
