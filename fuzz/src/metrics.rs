//! A connection to the port of metrics. For any input, a client receives at most one answer, whole
//! and at most as long as the page and a head, and the page only for a request of it.

use lastmile_live::http::{LONGEST_HEAD, Pages, answer_to};

/// Text that only the page contains.
const PAGE: &str = "lastmile_fuzz_page 1\n# EOF\n";

#[derive(Clone)]
struct Fixed;

impl Pages for Fixed {
    const CONTENT_TYPE: &'static str = "text/plain";

    async fn page(&self) -> Result<String, String> {
        Ok(PAGE.to_owned())
    }
}

/// The first byte gives the length of the pieces in which the rest arrives. Panics if a property
/// does not hold.
pub fn check(input: &[u8]) {
    let Some((&piece, request)) = input.split_first() else { return };
    let answer = answer_to(request, usize::from(piece) * 16 + 1, &Fixed).expect("a runtime");
    assert!(answer.len() <= 1024 + PAGE.len(), "{} bytes", answer.len());
    let answer = String::from_utf8(answer).expect("answers are text");
    if answer.is_empty() {
        return;
    }
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head ends");
    assert!(head.starts_with("HTTP/1."), "{head}");
    let code: u16 = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    assert!([200, 400, 404, 405, 414, 431, 501, 505].contains(&code), "{head}");
    assert!(!body.contains(PAGE) || (code == 200 && body == PAGE), "one page");
    if code == 200 {
        let asked = |method: &[u8]| request.windows(method.len()).any(|window| window == method);
        assert!(asked(b"GET ") || asked(b"HEAD "), "the page for nothing");
        let length = request.windows(4).position(|end| end == b"\r\n\r\n").unwrap_or(0);
        assert!(length <= 2 * LONGEST_HEAD, "a head of {length} bytes");
    }
}
