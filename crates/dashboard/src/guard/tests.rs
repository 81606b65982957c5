//! Requests of users, of other sites and of guessers.

use super::*;

fn guard(token: Option<&str>) -> Guard {
    Guard::new("127.0.0.1:8420".parse().unwrap(), &["Router.Example".to_owned()], token).unwrap()
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_str(value).unwrap());
    }
    headers
}

fn admitted(method: &Method, uri: &str, pairs: &[(&'static str, &str)], navigation: bool) -> Result<(), Refusal> {
    guard(None).admit(method, &uri.parse().unwrap(), &headers(pairs), navigation)
}

#[test]
fn a_host_is_an_address_or_a_name_that_was_given() {
    let get = |host: &str| admitted(&Method::GET, "/", &[("host", host)], true);
    for host in [
        "127.0.0.1:8420",
        "127.0.0.1",
        "[::1]:8420",
        "[::1]",
        "localhost:9000",
        "LOCALHOST",
        "localhost.:1",
        "192.0.2.7:80",
        "router.example",
        "ROUTER.example:8420",
        "router.example.",
    ] {
        assert_eq!(get(host), Ok(()), "{host}");
    }
    for host in [
        "evil.example",
        "evil.example:8420",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "router.example.org",
        "",
        ":8420",
        "localhost:",
        "localhost:x",
        "localhost:8420:1",
        "[::1",
        "::1",
        "[evil]",
        "localhost:123456",
        "127.0.0.1@evil.example",
        "localhost/",
        "0x7f000001.evil",
    ] {
        assert_eq!(get(host), Err(Refusal::Host), "{host}");
    }
    assert_eq!(admitted(&Method::GET, "/", &[], true), Err(Refusal::Host));
    let twice = [("host", "localhost"), ("host", "localhost")];
    assert_eq!(admitted(&Method::GET, "/", &twice, true), Err(Refusal::Host));
}

#[test]
fn the_address_of_a_proxy_s_request_names_no_other_server() {
    let host = [("host", "localhost:8420")];
    assert_eq!(admitted(&Method::GET, "http://localhost:8420/", &host, true), Ok(()));
    assert_eq!(admitted(&Method::GET, "http://evil.example/", &host, true), Err(Refusal::Host));
}

#[test]
fn other_sites_read_nothing_and_change_nothing() {
    let with = |method: &Method, site: &str, origin: Option<&str>, navigation| {
        let mut pairs = vec![("host", "localhost:8420")];
        if !site.is_empty() {
            pairs.push(("sec-fetch-site", site));
        }
        pairs.extend(origin.map(|origin| ("origin", origin)));
        admitted(method, "/x", &pairs, navigation)
    };
    // A link from another site leads to the page, and to nothing else.
    assert_eq!(with(&Method::GET, "cross-site", None, true), Ok(()));
    for site in ["cross-site", "same-site", "nonsense"] {
        assert_eq!(with(&Method::GET, site, None, false), Err(Refusal::Origin), "{site}");
        assert_eq!(with(&Method::POST, site, Some("http://localhost:8420"), true), Err(Refusal::Origin), "{site}");
    }
    for site in ["same-origin", "none", ""] {
        assert_eq!(with(&Method::GET, site, None, false), Ok(()), "{site}");
    }
    for origin in ["http://localhost:8420", "https://localhost:8420", "http://LOCALHOST:8420"] {
        assert_eq!(with(&Method::POST, "same-origin", Some(origin), false), Ok(()), "{origin}");
    }
    for origin in ["null", "http://evil.example", "http://localhost", "http://localhost:8421", "file://", ""] {
        assert_eq!(with(&Method::POST, "", Some(origin), false), Err(Refusal::Origin), "{origin}");
    }
    // curl(1) has neither header.
    assert_eq!(with(&Method::POST, "", None, false), Ok(()));
}

#[test]
fn a_token_comes_in_a_header_or_through_the_cookie_alone() {
    let guard = guard(Some("right-token-of-20-chars"));
    let asked = |pairs: &[(&'static str, &str)]| guard.authorise(&headers(pairs));
    assert_eq!(asked(&[("authorization", "Bearer right-token-of-20-chars")]), Ok(()));
    assert_eq!(asked(&[]), Err(Refusal::Token));
    assert_eq!(asked(&[("authorization", "Basic right-token-of-20-chars")]), Err(Refusal::Token));
    let set = guard.set_cookie();
    let set = set.to_str().unwrap();
    assert!(set.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{set}");
    assert!(!set.contains("right-token"), "{set}");
    let cookie = set.split(';').next().unwrap();
    assert_eq!(asked(&[("cookie", cookie)]), Ok(()));
    assert_eq!(asked(&[("cookie", &format!("a=b; {cookie}"))]), Ok(()));
    assert_eq!(asked(&[("cookie", &cookie[..cookie.len() - 1])]), Err(Refusal::Token));
    assert_eq!(asked(&[("cookie", "lastmile_8420=right-token-of-20-chars")]), Err(Refusal::Token));
}

#[test]
fn wrong_tokens_of_one_client_lock_out_no_other() {
    let guard = guard(Some("right-token-of-20-chars"));
    for _ in 0..100 {
        assert_eq!(guard.check("wrong"), Err(Refusal::Token));
    }
    let bearer = headers(&[("authorization", "Bearer right-token-of-20-chars")]);
    assert_eq!((guard.check("right-token-of-20-chars"), guard.authorise(&bearer)), (Ok(()), Ok(())));
}

#[test]
fn secrets_differ() {
    let (one, other) = (secret().unwrap(), secret().unwrap());
    assert!(one.len() == 32 && one != other);
}
