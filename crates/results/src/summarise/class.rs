//! The names of code points.

use lastmile_packet::dscp;

/// The name of a code point, or its number where it has none.
pub(super) fn class(code_point: u8) -> String {
    dscp::name(code_point).map_or_else(|| format!("dscp-{code_point}"), str::to_owned)
}
