//! Shared keys: from a file or the environment, never from the command line, which other users of the
//! machine can read.

use std::path::PathBuf;

use clap::Args;
use lastmile_measure::foreign::irtt;
use lastmile_measure::own::key::Key;

use crate::failure::{Failure, Result};

/// The variable with the key.
const VARIABLE: &str = "LASTMILE_KEY";

/// The variable with the key of an irtt server.
const IRTT_VARIABLE: &str = "LASTMILE_IRTT_KEY";

/// The key of irtt servers.
#[derive(Args)]
pub(super) struct IrttSecret {
    /// File with the HMAC key of irtt servers, as `irtt server --hmac` takes it: text, or 0x and
    /// hexadecimal digits [default: the environment variable LASTMILE_IRTT_KEY, or no key]
    #[arg(long, value_name = "FILE", conflicts_with = "serve")]
    irtt_key_file: Option<PathBuf>,
}

impl IrttSecret {
    pub(super) fn read(&self) -> Result<Option<Vec<u8>>> {
        let (name, text) = match (&self.irtt_key_file, std::env::var(IRTT_VARIABLE)) {
            (Some(path), _) => {
                let read = std::fs::read_to_string(path);
                let text = read.map_err(|error| Failure::new(format_args!("{}: {error}", path.display())))?;
                (path.display().to_string(), text)
            }
            (None, Ok(text)) => (IRTT_VARIABLE.to_owned(), text),
            (None, Err(_)) => return Ok(None),
        };
        let key = irtt::key(&text).map_err(|error| Failure::new(format_args!("{name}: {error}")))?;
        Ok(Some(key))
    }
}

#[derive(Args)]
pub(super) struct Secret {
    /// File with the key that client and server share, at least 16 characters [default: the
    /// environment variable LASTMILE_KEY]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

impl Secret {
    /// Whether there is one, right or wrong.
    pub(super) fn is_given(&self) -> bool {
        self.key_file.is_some() || std::env::var_os(VARIABLE).is_some()
    }

    /// Whether the command line names it: only a server of lastmile takes one.
    pub(super) fn is_named(&self) -> bool {
        self.key_file.is_some()
    }

    pub(super) fn read(&self) -> Result<Key> {
        let key = match &self.key_file {
            Some(path) => Key::read(path),
            None => match std::env::var(VARIABLE) {
                Ok(text) => Key::new(&text),
                Err(_) => {
                    let failure = Failure::new("client and server need a key that they share");
                    return Err(failure.hint(format!("`openssl rand -base64 24` prints one; --key-file or {VARIABLE}")));
                }
            },
        };
        Ok(key?)
    }
}
