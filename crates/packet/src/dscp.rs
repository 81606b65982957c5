//! Differentiated services code points and their names.

/// The code points that have names: RFC 2474 (CS), RFC 2597 (AF), RFC 3246 (EF), RFC 5865 (VA, VOICE-ADMIT), RFC 8622
/// (LE), draft-ietf-tsvwg-nqb (NQB), RFC 4594 (DF), and BE, the usual word for best effort. Of several names for one
/// code point the first is the usual one.
pub const NAMES: [(&str, u8); 28] = [
    ("default", 0),
    ("LE", 1),
    ("CS0", 0),
    ("CS1", 8),
    ("CS2", 16),
    ("CS3", 24),
    ("CS4", 32),
    ("CS5", 40),
    ("CS6", 48),
    ("CS7", 56),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("EF", 46),
    ("VA", 44),
    ("NQB", 45),
    ("DF", 0),
    ("BE", 0),
    ("VOICE-ADMIT", 44),
];

/// The name of a code point. `None`: it has none.
#[must_use]
pub fn name(dscp: u8) -> Option<&'static str> {
    NAMES.iter().find(|(_, number)| *number == dscp).map(|(name, _)| *name)
}

/// The code point of this name, in letters of any case.
#[must_use]
pub fn named(text: &str) -> Option<u8> {
    NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 2474, section 4.2.2.2: CSn is n shifted by three bits. RFC 2597, section 6: AFxy is 8 x + 2 y.
    #[test]
    fn each_name_has_the_number_of_its_rfc() {
        for n in 0..8_u8 {
            assert_eq!(named(&format!("CS{n}")), Some(8 * n));
        }
        for (class, precedence) in (1..=4_u8).flat_map(|class| (1..=3).map(move |precedence| (class, precedence))) {
            let known = format!("AF{class}{precedence}");
            assert_eq!(named(&known), Some(8 * class + 2 * precedence));
            assert_eq!(name(8 * class + 2 * precedence), Some(&*known));
        }
        assert_eq!([name(0), name(1), name(46), name(63)], [Some("default"), Some("LE"), Some("EF"), None]);
        // RFC 2474, section 4.1 (default), and RFC 5865, section 5.
        assert_eq!(["DF", "be", "CS0", "default"].map(named), [Some(0); 4]);
        assert_eq!((named("voice-admit"), named("VA"), name(44)), (Some(44), Some(44), Some("VA")));
        assert_eq!([named("ef"), named("AF44"), named("")], [Some(46), None, None]);
    }
}
