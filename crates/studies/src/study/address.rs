//! The address of a run: a digest of everything that determines its result.
//!
//! The engine's own sources are part of it: two builds that differ share no results. The checked network is the meaning
//! of the scenario's text and changes, and also holds the contents of the policies, traces and captures that the text
//! names: a changed trace is another run. The form in which it enters the digest is that of the sources, which the
//! identity of the engine covers.

use std::fmt::{self, Write as _};

use lastmile_results::schema::Inputs;
use lastmile_scenario::Scenario;
use sha2::{Digest as _, Sha256};

/// The identity of the engine: 32 hexadecimal digits, equal for equal sources (`identity.rs`).
pub const ENGINE: &str = env!("LASTMILE_ENGINE");

/// The address of a run.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address(String);

impl Address {
    /// The address of a run of `scenario`, made of these inputs.
    #[must_use]
    pub fn of(scenario: &Scenario, inputs: &Inputs) -> Self {
        Self::by(ENGINE, scenario, inputs)
    }

    /// The address of a run that this engine simulates.
    fn by(engine: &str, scenario: &Scenario, inputs: &Inputs) -> Self {
        let mut digest = Digest(Sha256::new());
        let Inputs { file, set, text } = inputs;
        let written = write!(digest, "{engine}\0{file:?}\0{set:?}\0{text:?}\0")
            .and_then(|()| write!(digest, "{:?}", scenario.network_ref()));
        written.expect("a digest takes everything");
        let hex = digest.0.finalize().iter().take(20).fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        Self(hex)
    }

    /// The address as text: 40 hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Text that goes into a digest, however long it is.
struct Digest(Sha256);

impl fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "duration = \"1 s\"\n[access]\ndown = { rate = \"2 Mbit/s\" }\nup = { rate = \"256 kbit/s\" }\n";

    fn address(text: &str, set: &[&str]) -> Address {
        let set: Vec<String> = set.iter().map(|pair| (*pair).to_owned()).collect();
        let scenario = Scenario::parse("f.toml", text, &set).unwrap();
        Address::of(&scenario, &Inputs { file: None, set, text: Some(text.to_owned()) })
    }

    #[test]
    fn equal_inputs_have_one_address_and_every_change_another() {
        let one = address(TEXT, &["seed=1"]);
        assert_eq!(one, address(TEXT, &["seed=1"]));
        assert_eq!(one.as_str().len(), 40);
        assert_ne!(one, address(TEXT, &["seed=2"]));
        assert_ne!(one, address(&TEXT.replace("256", "512"), &["seed=1"]));
        assert_ne!(one, address(&format!("{TEXT}# a comment is part of the recorded text\n"), &["seed=1"]));
    }
    #[test]
    fn another_engine_has_other_addresses() {
        let scenario = Scenario::parse("f.toml", TEXT, &[]).unwrap();
        let inputs = Inputs { file: None, set: Vec::new(), text: Some(TEXT.to_owned()) };
        assert_eq!(Address::by(ENGINE, &scenario, &inputs), Address::of(&scenario, &inputs));
        assert_ne!(Address::by("another", &scenario, &inputs), Address::of(&scenario, &inputs));
    }
}
