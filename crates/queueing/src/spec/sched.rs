//! Schedulers: what is checked of them, and how they are built.

use lastmile_packet::Packet;

use super::{BuildError, ClassSpec, Problem, Spec};
use crate::classify::{ClassIndex, Condition, FirstMatch};
use crate::sched::tree::{Rule, Tree};
use crate::sched::{cbq, custom, htb};
use crate::{Cbq, CustomQueueing, Environment, Htb, Node, Priority};

pub(super) type Built<P> = Result<Node<P>, BuildError>;

pub(super) fn check_classes<'a>(classes: impl IntoIterator<Item = &'a ClassSpec>) -> Result<(), Problem> {
    let mut count = 0;
    for class in classes {
        class.matches.check()?;
        count += 1;
    }
    if (1..=Spec::MAX_CLASSES).contains(&count) { Ok(()) } else { Err(Problem::Classes(count)) }
}

pub(super) fn check_custom(config: &custom::Config) -> Result<(), Problem> {
    check_classes(config.classes.iter().map(|class| &class.class))?;
    if config.classes.iter().any(|class| class.count.as_u64() == 0) { Err(Problem::ZeroCount) } else { Ok(()) }
}

pub(super) fn check_rules(rules: &[Rule]) -> Result<(), Problem> {
    Ok(rules.iter().try_for_each(|rule| rule.matches.check())?)
}

pub(super) fn check_htb(config: &htb::Config) -> Result<(), Problem> {
    if config.direct_limit.as_u64() == 0 {
        return Err(Problem::ZeroLimit);
    }
    check_rules(&config.tree.rules)
}

/// The queues of the leaves of a tree, in the order of its classes.
fn leaves<S, P: Packet + Send + 'static>(
    tree: &Tree<S>,
    at: &mut Vec<String>,
    environment: &Environment,
) -> Result<Vec<Node<P>>, BuildError> {
    let leaves = tree.classes.iter().enumerate().filter_map(|(index, class)| Some((index, class.queue.as_ref()?)));
    leaves.map(|(index, queue)| queue.build_below(format!("classes.{index}.queue"), at, environment)).collect()
}

/// The queues of checked classes, and the classifier that tells them apart.
pub(super) fn queues<'a, P: Packet + Send + 'static>(
    classes: impl IntoIterator<Item = &'a ClassSpec>,
    at: &mut Vec<String>,
    environment: &Environment,
) -> Result<(FirstMatch<P>, Vec<Node<P>>), BuildError> {
    let mut classifier = FirstMatch::new(ClassIndex::new(u16::MAX));
    let mut queues = Vec::new();
    for (index, class) in classes.into_iter().enumerate() {
        let number = u16::try_from(index).expect("at most MAX_CLASSES");
        classifier = classifier.rule(Condition::new(&class.matches, environment), ClassIndex::new(number));
        queues.push(class.queue.build_below(format!("classes.{index}.queue"), at, environment)?);
    }
    Ok((classifier, queues))
}

pub(super) fn priority<P: Packet + Send + 'static>(
    classes: &[ClassSpec],
    at: &mut Vec<String>,
    environment: &Environment,
) -> Built<P> {
    let (classifier, queues) = queues(classes, at, environment)?;
    Ok(Box::new(Priority::new(classifier, queues).expect("checked: there is a class")))
}

pub(super) fn custom<P: Packet + Send + 'static>(
    config: &custom::Config,
    at: &mut Vec<String>,
    environment: &Environment,
) -> Built<P> {
    let (classifier, queues) = queues(config.classes.iter().map(|class| &class.class), at, environment)?;
    let queues = queues.into_iter().zip(config.classes.iter().map(|class| class.count)).collect();
    let scheduler = CustomQueueing::new(classifier, queues, config.excess, &environment.link_layer);
    Ok(Box::new(scheduler.expect("checked: there is a queue, and no count is zero")))
}

pub(super) fn cbq<P: Packet + Send + 'static>(
    config: &cbq::Config,
    at: &mut Vec<String>,
    environment: &Environment,
) -> Built<P> {
    // What is no tree has leaves without a queue, so it is refused before they are built.
    config.check(&environment.link_layer).map_err(|why| BuildError::new(at, why))?;
    let queues = leaves(&config.tree, at, environment)?;
    let scheduler = Cbq::new(config, queues, environment).map_err(|why| BuildError::new(at, why))?;
    Ok(Box::new(scheduler))
}

pub(super) fn htb<P: Packet + Send + 'static>(
    config: &htb::Config,
    at: &mut Vec<String>,
    environment: &Environment,
) -> Result<Htb<P>, BuildError> {
    // What is no tree has leaves without a queue, so it is refused before they are built.
    config.check(&environment.link_layer).map_err(|why| BuildError::new(at, why))?;
    let queues = leaves(&config.tree, at, environment)?;
    Htb::new(config, queues, environment).map_err(|why| BuildError::new(at, why))
}
