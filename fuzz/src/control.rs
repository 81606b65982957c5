//! A request at the control socket: an invalid one is refused with a line that can be an answer, a
//! valid one is unchanged after writing and parsing.

use lastmile_live::control::Request;

/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match text.trim_end().parse::<Request>() {
        Ok(request) => assert_eq!(request.to_string().parse(), Ok(request), "written and read again"),
        Err(error) => {
            assert!(error.starts_with("no request: "), "{error}");
            // An answer repeats at most a part of the request.
            assert!(error.len() <= 200 + 8 * input.len(), "{} bytes for {}", error.len(), input.len());
        }
    }
}
