//! A request at the control socket: what is no request is refused with a line that can be an answer, and what is one is written and read
//! again as it was.

use lastmile_live::control::Request;

/// Panics when a property does not hold.
pub fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    match text.trim_end().parse::<Request>() {
        Ok(request) => assert_eq!(request.to_string().parse(), Ok(request), "written and read again"),
        Err(error) => {
            assert!(error.starts_with("no request: "), "{error}");
            // What was sent comes back in part at most.
            assert!(error.len() <= 200 + 8 * input.len(), "{} bytes for {}", error.len(), input.len());
        }
    }
}
