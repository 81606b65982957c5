//! The configuration that a server publishes at `/.well-known/nq`: draft-ietf-ippm-responsiveness-09, section 8.1.

use hyper::Uri;
use serde::Deserialize;

/// The port of HTTPS.
pub const PORT: u16 = 443;
/// The version of the draft's configurations.
const VERSION: u64 = 1;

/// URLs of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Config {
    /// An object of some bytes.
    pub(super) small: Uri,
    /// An object that does not end during a test.
    pub(super) large: Uri,
    /// Takes any number of bytes.
    pub(super) upload: Uri,
    /// The host to connect to, where it is not that of the URLs.
    pub(super) endpoint: Option<String>,
}

#[derive(Deserialize)]
struct Raw {
    urls: Urls,
    #[serde(default)]
    test_endpoint: Option<String>,
}

/// The names of version 1, and those of servers older than the draft's version 04.
#[derive(Deserialize)]
struct Urls {
    #[serde(alias = "small_https_download_url")]
    small_download_url: String,
    #[serde(alias = "large_https_download_url")]
    large_download_url: String,
    #[serde(alias = "https_upload_url")]
    upload_url: String,
}

/// Reads a configuration.
///
/// # Errors
/// In words: no JSON, another version, a missing key, a URL that is none of `https`, URLs of several hosts or ports.
pub(super) fn parse(text: &[u8]) -> Result<Config, String> {
    // Servers may write old and new names side by side, which an alias would refuse as doubled.
    let mut value: serde_json::Value =
        serde_json::from_slice(text).map_err(|error| format!("its configuration is not JSON: {error}"))?;
    match value.get("version") {
        Some(version) if *version == VERSION => {}
        Some(version) => return Err(format!("its configuration has `\"version\": {version}`; {VERSION} is expected")),
        None => return Err(format!("its configuration lacks a version: `\"version\": {VERSION}` is expected")),
    }
    if let Some(urls) = value.get_mut("urls").and_then(serde_json::Value::as_object_mut) {
        for (new, old) in [
            ("small_download_url", "small_https_download_url"),
            ("large_download_url", "large_https_download_url"),
            ("upload_url", "https_upload_url"),
        ] {
            if urls.contains_key(new) {
                urls.remove(old);
            }
        }
    }
    let Raw { urls, test_endpoint } =
        serde_json::from_value(value).map_err(|error| format!("its configuration lacks a URL: {error}"))?;
    let [large, small, upload] = [&urls.large_download_url, &urls.small_download_url, &urls.upload_url];
    let config = Config {
        small: https(small)?,
        large: https(large)?,
        upload: https(upload)?,
        endpoint: test_endpoint.filter(|host| !host.is_empty()),
    };
    for (other, url) in [(&config.small, small), (&config.upload, upload)] {
        if place(other) != place(&config.large) {
            return Err(format!("its configuration has the URLs `{large}` and `{url}`; one host and port is expected"));
        }
    }
    Ok(config)
}

/// Host and port of a URL. Own probes use the connections of the load, so all URLs have the same.
fn place(url: &Uri) -> (Option<String>, u16) {
    (url.host().map(str::to_ascii_lowercase), url.port_u16().unwrap_or(PORT))
}

fn https(url: &str) -> Result<Uri, String> {
    let uri: Uri = url.parse().map_err(|error| format!("its configuration has the URL `{url}`: {error}"))?;
    if uri.scheme_str() != Some("https") || uri.host().is_none() {
        return Err(format!("its configuration has the URL `{url}`; https://HOST/PATH is expected"));
    }
    Ok(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the draft's section 8.1, and the names of earlier versions.
    #[test]
    fn both_generations_of_names_are_read() {
        let new = r#"{"version": 1, "urls": {"large_download_url": "https://nq.example.com/api/v1/large",
            "small_download_url": "https://nq.example.com/api/v1/small",
            "upload_url": "https://nq.example.com/api/v1/upload"}, "test_endpoint": "edge1.nq.example.com"}"#;
        let config = parse(new.as_bytes()).unwrap();
        assert_eq!(config.small.path(), "/api/v1/small");
        assert_eq!(config.endpoint.as_deref(), Some("edge1.nq.example.com"));
        let old = new.replace("_download_url", "_https_download_url").replace("\"upload_url", "\"https_upload_url");
        assert_eq!(parse(old.as_bytes()).unwrap(), config);
        let both = new.replace("\"urls\": {", "\"urls\": {\"https_upload_url\": \"https://old.example.com/\",");
        assert_eq!(parse(both.as_bytes()).unwrap(), config);
    }

    /// Section 8.1: another version is not read. The words are those of a configuration without the keys of version 1.
    #[test]
    fn version_one_alone_is_read() {
        for (text, told) in [
            (r#"{"version": 2, "servers": []}"#, "its configuration has `\"version\": 2`; 1 is expected"),
            (r#"{"version": "1"}"#, "its configuration has `\"version\": \"1\"`; 1 is expected"),
            (r#"{"urls": {}}"#, "its configuration lacks a version: `\"version\": 1` is expected"),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap_err(), told);
        }
    }

    /// Section 8.1: the URLs have the same host, in letters of either case; 443 is the port of a URL without one.
    #[test]
    fn all_urls_have_one_host_and_port() {
        let of = |small: &str, upload: &str| {
            let text = format!(
                r#"{{"version": 1, "urls": {{"large_download_url": "https://h/l", "small_download_url": "{small}",
                    "upload_url": "{upload}"}}}}"#
            );
            parse(text.as_bytes()).map(drop)
        };
        assert_eq!(of("https://H:443/s", "https://h/u"), Ok(()));
        let told = |url: &str| {
            Err(format!("its configuration has the URLs `https://h/l` and `{url}`; one host and port is expected"))
        };
        assert_eq!(of("https://i/s", "https://h/u"), told("https://i/s"));
        assert_eq!(of("https://h/s", "https://h:444/u"), told("https://h:444/u"));
    }

    #[test]
    fn faults_are_told() {
        let url = |upload: &str| {
            format!(
                r#"{{"version": 1, "urls": {{"large_download_url": "https://h/l",
                    "small_download_url": "https://h/s", {upload}}}}}"#
            )
        };
        for (text, told) in [
            ("{".to_owned(), "not JSON"),
            (r#"{"version": 1}"#.to_owned(), "missing field `urls`"),
            (url("\"x\": 1"), "missing field `upload_url`"),
            (url("\"upload_url\": \"http://h/u\""), "`http://h/u`; https://HOST/PATH is expected"),
            (url("\"upload_url\": \"no url\""), "`no url`"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(told), "{error}: expected {told}");
        }
    }
}
