//! The names of code points.

/// The name of a code point: RFC 2474 (CS), RFC 2597 (AF), RFC 3246 (EF), RFC 5865 (VA), RFC 8622 (LE),
/// draft-ietf-tsvwg-nqb (NQB).
pub(super) fn class(dscp: u8) -> String {
    match dscp {
        0 => "default".to_owned(),
        1 => "LE".to_owned(),
        44 => "VA".to_owned(),
        45 => "NQB".to_owned(),
        46 => "EF".to_owned(),
        n if n % 8 == 0 => format!("CS{}", n / 8),
        n if n % 2 == 0 && (1..=4).contains(&(n / 8)) && (1..=3).contains(&(n % 8 / 2)) => {
            format!("AF{}{}", n / 8, n % 8 / 2)
        }
        n => format!("dscp-{n}"),
    }
}
