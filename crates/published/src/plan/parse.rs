//! Reads a file of experiments.

use super::{Plan, check};
use crate::data::DataError;

impl Plan {
    /// Reads the experiments of the publication known under `key`.
    pub(crate) fn parse(key: &str, text: &str) -> Result<Self, DataError> {
        let file = || format!("experiments/{key}.toml");
        let mut plan: Self =
            toml::from_str(text).map_err(|source| DataError::Experiments { file: file(), source: Box::new(source) })?;
        key.clone_into(&mut plan.publication);
        match check::fault(&plan) {
            None => Ok(plan),
            Some((message, at)) => {
                let line = text[..at.min(text.len())].matches('\n').count() + 1;
                Err(DataError::Reference { file: file(), line, message })
            }
        }
    }
}
