//! The numbers of classes in the paths of their scheduler's counters.

use super::Class;

/// The classes of the scheduler in one direction: their numbers in the paths of its counters.
pub struct Numbers(Vec<Option<usize>>);

impl Numbers {
    /// The numbers of `classes` in these counters, each a path and the kind of its discipline.
    pub fn of<'a>(classes: &[Class], counters: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let is_scheduler = |path: &str| class_at(path).is_some_and(|(_, rest)| rest.is_empty());
        let kind = counters.into_iter().find(|(path, _)| is_scheduler(path)).map(|(_, kind)| kind);
        let number = |(index, class): (usize, &Class)| match kind? {
            // In rate-based trees the line itself is class 0.
            "htb" | "cbq" | "hfsc" => Some(index + 1),
            // A scheduler by priority has its own order.
            "priority" => {
                let before =
                    |(other, c): (usize, &Class)| c.queue.is_some() && (c.priority, other) < (class.priority, index);
                Some(classes.iter().enumerate().filter(|&pair| before(pair)).count())
            }
            _ => Some(index),
        };
        Self(classes.iter().enumerate().map(number).collect())
    }

    /// The number of the class at this place in the policy.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<usize> {
        *self.0.get(index)?
    }
}

/// The number of the class in a path such as `queue.classes.3.queue`, and the rest of the path.
#[must_use]
pub fn class_at(path: &str) -> Option<(usize, &str)> {
    let (_, class) = path.split_once("classes.")?;
    let end = class.find('.').unwrap_or(class.len());
    Some((class[..end].parse().ok()?, &class[end..]))
}
