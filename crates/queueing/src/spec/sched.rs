//! Schedulers: what is checked of them, and how they are built.

use lastmile_packet::Packet;

use super::{BuildError, ClassSpec, Problem, Spec, check_match};
use crate::classify::{ClassIndex, Condition, FirstMatch};
use crate::sched::custom;
use crate::{CustomQueueing, Environment, Node, Priority};

type Built<P> = Result<Node<P>, BuildError>;

pub(super) fn check_classes<'a>(classes: impl IntoIterator<Item = &'a ClassSpec>) -> Result<(), Problem> {
    let mut count = 0;
    for class in classes {
        check_match(&class.matches)?;
        count += 1;
    }
    if (1..=Spec::MAX_CLASSES).contains(&count) { Ok(()) } else { Err(Problem::Classes(count)) }
}

pub(super) fn check_custom(config: &custom::Config) -> Result<(), Problem> {
    check_classes(config.classes.iter().map(|class| &class.class))?;
    if config.classes.iter().any(|class| class.count.as_u64() == 0) { Err(Problem::ZeroCount) } else { Ok(()) }
}

/// The queues of checked classes, and the classifier that tells them apart.
fn queues<'a, P: Packet + Send + 'static>(
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
