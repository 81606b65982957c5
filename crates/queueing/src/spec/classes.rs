//! The classes of a scheduler that knows them by their number alone.

use lastmile_packet::Packet;

use super::{BuildError, Problem, Shaper, Site, Spec};
use crate::Node;
use crate::classify::{ClassIndex, Condition, FirstMatch, Match, Packets};

/// A class of a scheduler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClassSpec {
    /// The condition for packets of the class.
    pub matches: Match,
    /// Where they wait.
    pub queue: Spec,
}

/// Refuses conditions that cannot be, no class at all, and too many.
pub(crate) fn check_classes<'a>(classes: impl IntoIterator<Item = &'a ClassSpec>) -> Result<(), Problem> {
    let mut count = 0;
    for class in classes {
        class.matches.check()?;
        count += 1;
    }
    if (1..=Spec::MAX_CLASSES).contains(&count) { Ok(()) } else { Err(Problem::Classes(count)) }
}

/// The name of the class with this number among `count`.
pub(crate) fn numbered(class: u16, count: usize) -> Option<String> {
    (usize::from(class) < count).then(|| format!("classes.{class}"))
}

/// The shapers in the class to which each of `packets` goes.
pub(crate) fn shapers_of_class(packets: &Packets, classes: &[&ClassSpec]) -> Vec<Shaper> {
    let class = packets.first_match(classes.iter().map(|class| &class.matches));
    class.map_or_else(Vec::new, |class| classes[class].queue.shapers_of(&packets.joining(class)))
}

impl Site<'_> {
    /// The queues of checked classes, and the classifier that tells them apart.
    pub(crate) fn classes<'a, P: Packet + Send + 'static>(
        &mut self,
        classes: impl IntoIterator<Item = &'a ClassSpec>,
    ) -> Result<(FirstMatch<P>, Vec<Node<P>>), BuildError> {
        let mut classifier = FirstMatch::new(ClassIndex::new(u16::MAX));
        let mut queues = Vec::new();
        for (index, class) in classes.into_iter().enumerate() {
            let number = u16::try_from(index).expect("at most MAX_CLASSES");
            let condition = Condition::new(&class.matches, self.environment);
            classifier = classifier.rule(condition, ClassIndex::new(number));
            queues.push(self.class_queue(index, &class.queue)?);
        }
        Ok((classifier, queues))
    }

    /// Builds the queue of the class with this number.
    pub(crate) fn class_queue<P: Packet + Send + 'static>(
        &mut self,
        class: usize,
        queue: &Spec,
    ) -> Result<Node<P>, BuildError> {
        self.below(format!("classes.{class}.queue"), |site| site.build(queue))
    }
}
