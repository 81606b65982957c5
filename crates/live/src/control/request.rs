//! Requests to a program: `{"do":"status"}`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A request, as one JSON object on a line. A key or a word that is not known is refused: it was
/// meant to change something.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The verb.
    pub r#do: Verb,
    /// With [`Verb::Status`]: distributions whole, each value with its count.
    #[serde(default, skip_serializing_if = "is_false")]
    pub whole: bool,
    /// With [`Verb::Reload`]: a policy to put in force; without it the configuration is read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Replacement>,
}

/// A policy in place of the one in force: `{"do":"reload","policy":{"name":"cake"}}`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    /// The name of a built-in policy; with a text, what messages call it.
    pub name: String,
    /// The text of a policy's file. The program itself opens no other file than its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_false(whole: &bool) -> bool {
    !whole
}

/// Verbs of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// Report what has been done so far.
    Status,
    /// Answer, if packets are carried.
    Alive,
    /// Read the configuration again.
    Reload,
    /// End.
    Stop,
}

impl Verb {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Status, Self::Alive, Self::Reload, Self::Stop];
}

impl From<Verb> for Request {
    fn from(verb: Verb) -> Self {
        Self { r#do: verb, whole: false, policy: None }
    }
}

/// As a line has it, without its end.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

/// The error names the key or word that is not known, and those that are.
impl FromStr for Request {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let request: Self = serde_json::from_str(line).map_err(|error| format!("no request: {error}"))?;
        match request {
            Self { r#do: Verb::Status | Verb::Alive | Verb::Stop, policy: Some(_), .. } => {
                Err("no request: `policy` belongs to `reload`".to_owned())
            }
            request => Ok(request),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_is_read_as_it_is_written() {
        for verb in Verb::ALL {
            let request = Request::from(verb);
            assert_eq!(request.to_string().parse(), Ok(request.clone()));
        }
        assert_eq!(Request::from(Verb::Status).to_string(), r#"{"do":"status"}"#);
        let whole = Request { whole: true, ..Verb::Status.into() };
        assert_eq!(whole.to_string(), r#"{"do":"status","whole":true}"#);
        assert_eq!(whole.to_string().parse(), Ok(whole));
        let policy = Some(Replacement { name: "cake".to_owned(), text: None });
        let reload = Request { policy, ..Verb::Reload.into() };
        assert_eq!(reload.to_string(), r#"{"do":"reload","policy":{"name":"cake"}}"#);
        assert_eq!(reload.to_string().parse(), Ok(reload));
    }

    #[test]
    fn what_is_not_known_is_named_beside_what_is() {
        for (line, words) in [
            (r#"{"do":"reload","file":"x"}"#, ["`file`", "`do`"]),
            (r#"{"do":"stop","do":"stop"}"#, ["duplicate field", "`do`"]),
            (r#"{"do":"stop","policy":{"name":"cake"}}"#, ["`policy`", "`reload`"]),
            (r#"{"do":"reload","policy":{"file":"x"}}"#, ["`file`", "`name`"]),
            (r#"{"do":"restart"}"#, ["`restart`", "`status`, `alive`, `reload`, `stop`"]),
            ("{}", ["missing field", "`do`"]),
            ("status", ["no request: ", "expected value"]),
            (r#"{"do":"stop"} {"do":"stop"}"#, ["no request: ", "trailing characters"]),
        ] {
            let error = line.parse::<Request>().unwrap_err();
            assert!(words.iter().all(|word| error.contains(word)), "{line}: {error}");
        }
    }
}
