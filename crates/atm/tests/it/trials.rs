//! On random networks results are equal in runs and cell by cell, cells are conserved, and VCs keep
//! their order.

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn trains_cells_and_steps_give_the_same_network(input in prop::collection::vec(any::<u8>(), 60..700)) {
        lastmile_atm::trial::check(&input);
    }
}
