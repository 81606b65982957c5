//! The checks of every request, before anything else is done with it.
//!
//! | attack | check |
//! | --- | --- |
//! | DNS rebinding: an attacker's name resolves to this machine | `Host` is an address, `localhost` or a given name |
//! | another site asks through the user's browser | `Sec-Fetch-Site` and `Origin` name this server |
//! | a stranger reads or changes something | a token, from a header or through a cookie that only a form sets |
//! | guessing the token | at least 16 characters of 64: 2^96 tokens |
//!
//! A token is never part of an address, so that no log and no `Referer` has it. Tokens are compared
//! by their hashes, in constant time. Wrong ones are not limited: a limit for all clients would lock out those with the
//! right one, at the will of a stranger.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN};
use hyper::{Method, Uri};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// `Host` is missing, repeated, or no name of this server.
    Host,
    /// The request comes from a page of another site.
    Origin,
    /// The token is missing or wrong.
    Token,
}

/// The checks of one server.
#[derive(Debug)]
pub struct Guard {
    /// Names by which browsers may ask, apart from IP addresses and `localhost`; in lower case.
    names: Vec<String>,
    /// The hash of the token; `None`: everybody may read.
    token: Option<[u8; 32]>,
    /// The value of the cookie. It is random and is not the token, so that no browser stores the token.
    session: String,
    /// The name of the cookie. Browsers send cookies to every port of a host.
    cookie: String,
}

/// A secret of 128 random bits as text.
///
/// # Errors
/// The kernel has no random bytes.
pub fn secret() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn hash(text: &[u8]) -> [u8; 32] {
    Sha256::digest(text).into()
}

impl Guard {
    /// The checks of a server at `address`.
    ///
    /// # Errors
    /// The kernel has no random bytes.
    pub fn new(address: SocketAddr, names: &[String], token: Option<&str>) -> std::io::Result<Self> {
        Ok(Self {
            names: names.iter().map(|name| name.to_ascii_lowercase()).collect(),
            token: token.map(|token| hash(token.as_bytes())),
            session: secret()?,
            cookie: format!("lastmile_{}", address.port()),
        })
    }

    /// Checks the name of the server, and the site that the request comes from. `navigation` is a page
    /// that a user may follow a link to.
    ///
    /// # Errors
    /// The check that failed.
    pub fn admit(&self, method: &Method, uri: &Uri, headers: &HeaderMap, navigation: bool) -> Result<(), Refusal> {
        let host = only(headers, &HOST).filter(|host| self.knows(host)).ok_or(Refusal::Host)?;
        // A proxy's form of a request names the server twice.
        if uri.authority().is_some_and(|authority| !authority.as_str().eq_ignore_ascii_case(host)) {
            return Err(Refusal::Host);
        }
        let changes = *method != Method::GET && *method != Method::HEAD;
        let mut sites = headers.get_all(SEC_FETCH_SITE).iter();
        let same_site = sites.all(|site| site == "same-origin" || site == "none");
        if !same_site && (changes || !navigation) {
            return Err(Refusal::Origin);
        }
        if changes {
            // All browsers send the origin of a form or a script with a request that may change something.
            // Programs such as curl send neither.
            let mut origins = headers.get_all(ORIGIN).iter();
            if !origins.all(|origin| is_origin_of(origin, host)) {
                return Err(Refusal::Origin);
            }
        }
        Ok(())
    }

    /// Checks that the request has the token, or the cookie of a user who gave it.
    ///
    /// # Errors
    /// It has neither.
    pub fn authorise(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        if self.token.is_none() || self.has_cookie(headers) {
            return Ok(());
        }
        let bearer = only(headers, &AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        bearer.map_or(Err(Refusal::Token), |token| self.check(token.trim()))
    }

    /// Checks a token.
    ///
    /// # Errors
    /// It is wrong.
    pub fn check(&self, token: &str) -> Result<(), Refusal> {
        let Some(right) = self.token else { return Ok(()) };
        if hash(token.as_bytes()).ct_eq(&right).into() { Ok(()) } else { Err(Refusal::Token) }
    }

    /// The header that gives a browser the cookie. Scripts cannot read it, and requests from other sites
    /// do not have it.
    #[must_use]
    pub fn set_cookie(&self) -> HeaderValue {
        let text = format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie, self.session);
        HeaderValue::from_str(&text).expect("letters and digits")
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let values = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        values
            .filter(|(name, _)| *name == self.cookie)
            .any(|(_, value)| bool::from(hash(value.as_bytes()).ct_eq(&hash(self.session.as_bytes()))))
    }

    /// An attacker's page can have any name but no IP address: a browser that was given an address asks
    /// there and nowhere else. Ports are not looked at, since tunnels change them.
    fn knows(&self, host: &str) -> bool {
        let Some(name) = without_port(host) else { return false };
        if let Some(six) = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
            return six.parse::<Ipv6Addr>().is_ok();
        }
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv4()) || self.names.contains(&name)
    }
}

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// The name in front of the port; `None` if the port is none.
fn without_port(host: &str) -> Option<&str> {
    if host.ends_with(']') {
        return Some(host);
    }
    match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(name)
        }
        Some(_) => None,
        None => Some(host),
    }
}

/// Behind a proxy the page may have come by HTTPS.
fn is_origin_of(origin: &HeaderValue, host: &str) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    rest.is_some_and(|rest| rest.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests;
