//! The rate of a line that its user gets.

use lastmile_linklayer::LinkLayer;
use lastmile_units::BitRate;

use crate::Fraction;

/// The rate available to the user: the line's rate without OAM cells.
pub(crate) fn user_rate(rate: BitRate, link: LinkLayer) -> Fraction {
    let rate = u128::from(rate.as_bps());
    let share = link.oam().map_or((1, 1), |oam| (u128::from(oam.user_cells()), u128::from(oam.user_cells()) + 1));
    Fraction::new(rate * share.0, share.1).expect("a share of one cell in something")
}
