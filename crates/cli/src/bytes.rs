//! Sizes on the command line: `1500` or, as in files, `"1500 B"`, `"1.5 kB"`.

use lastmile_units::ByteCount;

/// Bytes, with or without their unit.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    text.parse().or_else(|_| text.parse::<ByteCount>().map(ByteCount::as_u64).map_err(|error| error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_may_stand_or_not() {
        assert_eq!(parse("1500"), Ok(1_500));
        assert_eq!(parse("1500 B"), Ok(1_500));
        assert_eq!(parse("1.5 kB"), Ok(1_500));
        assert!(parse("1500 bit").is_err());
        assert!(parse("-1").is_err());
    }
}
