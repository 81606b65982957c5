//! The kernel's state compared with the policy.

use std::collections::BTreeMap;

use lastmile_kernel::{Configuration, Expected, Object, Step, Value, named};

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

/// The state of a set-up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verified {
    /// Each value that the configuration asks for.
    pub findings: Vec<Finding>,
    /// The features in place of which the kernel's state shows a substitute, in the words of the configuration. Values
    /// are compared with those of the substitute.
    pub fallbacks: Vec<String>,
}

/// Reads back every value that the configuration asks for.
///
/// # Errors
/// A tool that is missing, or a device.
pub fn verify(configuration: &Configuration, target: &Target) -> Result<Verified, Error> {
    let found = read::everything(target, configuration.has_ifb)?;
    let mut shown = Shown::default();
    collect(&configuration.steps, &found, &mut shown);
    let Shown { expected, fallbacks } = shown;
    let findings = expected.into_iter().flat_map(|expected| compare(expected, &found, target)).collect();
    Ok(Verified { findings, fallbacks: fallbacks.into_iter().map(str::to_owned).collect() })
}

/// The expected state of the branches that the kernel's state shows, and what the other ones lacked.
#[derive(Default)]
struct Shown<'a> {
    expected: Vec<&'a Expected>,
    fallbacks: Vec<&'a str>,
}

/// The expected state of steps: for a choice, that of the branch that the kernel's state shows.
fn collect<'a>(steps: &'a [Step], found: &BTreeMap<Object, Values>, shown: &mut Shown<'a>) {
    for step in steps {
        match step {
            Step::Heading(_) => {}
            Step::Run { command, .. } => shown.expected.extend(&command.leaves),
            Step::Choice { first, then, lacking, otherwise, .. } => {
                let Some(leaves) = &first.leaves else { continue };
                let mut instead = Shown::default();
                collect(otherwise, found, &mut instead);
                if instead.expected.is_empty() || is_of_its_kind(leaves, found) {
                    shown.expected.push(leaves);
                    collect(then, found, shown);
                } else {
                    // Where nothing is set up, nothing is a substitute.
                    if instead.expected.iter().any(|expected| is_of_its_kind(expected, found)) {
                        shown.fallbacks.push(lacking);
                        shown.fallbacks.append(&mut instead.fallbacks);
                    }
                    shown.expected.append(&mut instead.expected);
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
    let finding = |(key, value): &(&'static str, Value)| {
        let value = match value {
            Value::Text(text) => Value::Text(named(text, &target.device, &target.ifb)),
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

#[cfg(test)]
mod tests {
    use lastmile_kernel::Command;

    use super::*;

    const PARENT: &str = "1a57:1";

    fn queue(kind: &str) -> Command {
        let object = Object::Qdisc { device: lastmile_kernel::DEVICE, parent: PARENT.to_owned() };
        let values = vec![("kind", Value::Text(kind.to_owned()))];
        Command::new(kind).leaving(Expected { object, name: "queue all".to_owned(), values })
    }

    fn choice(kind: &str, instead: Step) -> Step {
        let (lacking, otherwise) = (format!("{kind}: another in its place"), vec![instead]);
        Step::Choice { about: vec![], first: queue(kind), then: vec![], lacking, otherwise }
    }

    /// The kinds that values are compared with, and the fallbacks, where the kernel has this queue.
    fn shown(kind: Option<&str>) -> (Vec<String>, Vec<String>) {
        let steps = [choice("cake", choice("fq_codel", Step::run("", queue("pfifo"))))];
        let object = Object::Qdisc { device: lastmile_kernel::DEVICE, parent: PARENT.to_owned() };
        let values = |kind: &str| Values::from([("kind".to_owned(), kind.to_owned())]);
        let found = kind.map(|kind| (object, values(kind))).into_iter().collect();
        let mut shown = Shown::default();
        collect(&steps, &found, &mut shown);
        let kinds = shown.expected.iter().map(|expected| expected.values[0].1.to_string());
        (kinds.collect(), shown.fallbacks.into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn a_substitute_that_the_kernel_has_is_a_fallback() {
        let [cake, fq_codel] = ["cake", "fq_codel"].map(|kind| format!("{kind}: another in its place"));
        assert_eq!(shown(Some("cake")), (vec!["cake".to_owned()], vec![]));
        assert_eq!(shown(Some("fq_codel")), (vec!["fq_codel".to_owned()], vec![cake.clone()]));
        assert_eq!(shown(Some("pfifo")), (vec!["pfifo".to_owned()], vec![cake, fq_codel]));
        // Nothing is set up, or something else.
        assert_eq!((shown(None).1, shown(Some("red")).1), (vec![], vec![]));
    }
}
