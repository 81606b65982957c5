//! The kernel's state compared with the policy.

use std::collections::BTreeMap;

use lastmile_kernel::{Configuration, Expected, IFB, Object, Step};

use super::read::{self, Values};
use super::tools::Target;
use crate::error::Error;

/// One value, as it is wanted and as it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// Of what: `class ack`.
    pub name: String,
    /// Which value.
    pub key: String,
    /// As it is wanted.
    pub wanted: String,
    /// As it was found; `None` if it was not.
    pub found: Option<String>,
    /// One is the other, to what the kernel can hold.
    pub ok: bool,
}

/// Reads back every value that the configuration asks for.
///
/// # Errors
/// A tool that is missing, or a device.
pub fn verify(configuration: &Configuration, target: &Target) -> Result<Vec<Finding>, Error> {
    let found = read::everything(target, configuration.has_ifb)?;
    let mut expected = Vec::new();
    collect(&configuration.steps, &found, &mut expected);
    Ok(expected.into_iter().flat_map(|expected| compare(expected, &found, target)).collect())
}

/// The expected state of steps: for a choice, that of the branch that the kernel's state shows.
fn collect<'a>(steps: &'a [Step], found: &BTreeMap<Object, Values>, expected: &mut Vec<&'a Expected>) {
    for step in steps {
        match step {
            Step::Heading(_) => {}
            Step::Run { command, .. } => expected.extend(&command.leaves),
            Step::Choice { first, then, otherwise, .. } => {
                let Some(leaves) = &first.leaves else { continue };
                let mut instead = Vec::new();
                collect(otherwise, found, &mut instead);
                if instead.is_empty() || is_of_its_kind(leaves, found) {
                    expected.push(leaves);
                    collect(then, found, expected);
                } else {
                    expected.append(&mut instead);
                }
            }
        }
    }
}

fn is_of_its_kind(expected: &Expected, found: &BTreeMap<Object, Values>) -> bool {
    let kind = expected.values.iter().find(|(key, _)| *key == "kind");
    let there = found.get(&expected.object).and_then(|values| values.get("kind"));
    matches!((kind, there), (Some((_, kind)), Some(there)) if kind.is(there))
}

fn compare(expected: &Expected, found: &BTreeMap<Object, Values>, target: &Target) -> Vec<Finding> {
    let there = found.get(&expected.object);
    let finding = |(key, value): &(&'static str, lastmile_kernel::Value)| {
        let value = match value {
            lastmile_kernel::Value::Text(text) if text == IFB => lastmile_kernel::Value::Text(target.ifb.clone()),
            other => other.clone(),
        };
        let found = there.and_then(|values| values.get(*key));
        let ok = found.is_some_and(|found| value.is(found));
        Finding {
            name: expected.name.clone(),
            key: (*key).to_owned(),
            wanted: value.to_string(),
            found: found.cloned(),
            ok,
        }
    };
    expected.values.iter().map(finding).collect()
}
