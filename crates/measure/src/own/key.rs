//! The shared key, and the proofs that both ends have it: HMAC-SHA256 (RFC 2104, FIPS 180-4).

use std::fmt;
use std::path::Path;

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::error::Error;

use super::wire::Hex;

/// Least length of a key, in bytes. `openssl rand -base64 24` prints 32 characters.
pub const SHORTEST: usize = 16;

/// A secret that client and server share.
#[derive(Clone)]
pub struct Key(Vec<u8>);

/// Never shows the key.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// A key from its text; white space around it does not count.
    ///
    /// # Errors
    /// It is shorter than [`SHORTEST`] bytes.
    pub fn new(text: &str) -> Result<Self, Error> {
        let text = text.trim();
        if text.len() < SHORTEST {
            return Err(Error::Unsupported(format!("the key has {} bytes and needs at least {SHORTEST}", text.len())));
        }
        Ok(Self(text.as_bytes().to_vec()))
    }

    /// The key in a file.
    ///
    /// # Errors
    /// No such file, or too short a key.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(Error::io(format!("reading the key {}", path.display())))?;
        Self::new(&text).map_err(|error| Error::Unsupported(format!("{}: {error}", path.display())))
    }

    /// The code of `parts` for one purpose, each part with its length, so that no two lists of parts
    /// are one text.
    #[must_use]
    pub fn code(&self, purpose: &str, parts: &[&[u8]]) -> Hex<32> {
        let mut mac = self.mac(purpose);
        feed(&mut mac, parts);
        Hex(mac.finalize().into_bytes().into())
    }

    /// Whether `code` is that of `parts`, in constant time.
    #[must_use]
    pub fn verifies(&self, purpose: &str, parts: &[&[u8]], code: &[u8]) -> bool {
        let mut mac = self.mac(purpose);
        feed(&mut mac, parts);
        mac.verify_truncated_left(code).is_ok()
    }

    /// The key of one session.
    #[must_use]
    pub fn of_session(&self, challenge: &Hex<16>, nonce: &Hex<16>) -> Self {
        Self(self.code("session", &[&challenge.0, &nonce.0]).0.to_vec())
    }

    fn mac(&self, purpose: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        feed(&mut mac, &[b"lastmile measure 1", purpose.as_bytes()]);
        mac
    }
}

fn feed(mac: &mut Hmac<Sha256>, parts: &[&[u8]]) {
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_of_its_key_its_purpose_and_its_parts() {
        let key = Key::new("  correct horse battery\n").unwrap();
        let code = key.code("client", &[b"ab", b"c"]);
        assert!(key.verifies("client", &[b"ab", b"c"], &code.0));
        assert!(key.verifies("client", &[b"ab", b"c"], &code.0[..16]), "16 bytes of it, for datagrams");
        assert!(!key.verifies("client", &[b"a", b"bc"], &code.0));
        assert!(!key.verifies("server", &[b"ab", b"c"], &code.0));
        assert!(!Key::new("correct horse batterY").unwrap().verifies("client", &[b"ab", b"c"], &code.0));
        assert!(!key.verifies("client", &[b"ab", b"c"], &[]));
    }

    #[test]
    fn short_keys_are_refused() {
        assert!(Key::new("0123456789abcde").is_err());
        assert!(Key::new("0123456789abcdef").is_ok());
    }

    #[test]
    fn a_key_is_not_shown() {
        assert_eq!(format!("{:?}", Key::new("correct horse battery").unwrap()), "Key");
    }
}
