//! The position in a tree at which a discipline is built.

use lastmile_packet::Packet;

use super::{BuildError, Problem, Spec};
use crate::Environment;
use crate::catalogue::Built;

/// The keys from the root to the discipline that is being built, and the surroundings of the tree.
pub struct Site<'a> {
    keys: Vec<String>,
    pub(crate) environment: &'a Environment,
}

impl<'a> Site<'a> {
    /// The root.
    pub(super) const fn new(environment: &'a Environment) -> Self {
        Self { keys: Vec::new(), environment }
    }

    /// Checks and builds the discipline that stands here.
    pub(super) fn build<P: Packet + Send + 'static>(&mut self, spec: &Spec) -> Built<P> {
        self.check(spec)?;
        spec.build_at(self)
    }

    /// Refuses the discipline that stands here if it cannot be built.
    pub(super) fn check(&self, spec: &Spec) -> Result<(), BuildError> {
        if self.keys.len() >= Spec::MAX_DEPTH {
            return Err(self.refuse(Problem::TooDeep));
        }
        spec.check(&self.environment.link_layer).map_err(|why| self.refuse(why))
    }

    /// The error that names this position.
    pub(crate) fn refuse(&self, why: impl Into<Problem>) -> BuildError {
        BuildError { at: self.keys.join("."), problem: why.into() }
    }

    /// The seed of the discipline that stands here, whose configuration has the seed `own`: another for each run, link
    /// and place in the tree.
    pub(crate) fn seed(&self, own: u64) -> u64 {
        let random = self.environment.random.as_ref();
        random.map_or(own, |random| random.child(&format!("{} {own}", self.keys.join("."))).bits())
    }

    /// Builds what stands below the key `queue`.
    pub(crate) fn queue<P: Packet + Send + 'static>(&mut self, queue: &Spec) -> Built<P> {
        self.below("queue".into(), |site| site.build(queue))
    }

    /// Builds what stands below `key`.
    pub(crate) fn below<T>(
        &mut self,
        key: String,
        build: impl FnOnce(&mut Self) -> Result<T, BuildError>,
    ) -> Result<T, BuildError> {
        self.keys.push(key);
        let built = build(self);
        self.keys.pop();
        built
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn each_place_has_a_seed_of_its_own_where_the_tree_has_a_stream() {
        let plain = Environment::default();
        assert_eq!(Site::new(&plain).seed(7), 7);
        let environment = Environment::default().with_random(Stream::new(1, "queue"));
        let mut site = Site::new(&environment);
        let root = site.seed(7);
        let below = |site: &mut Site<'_>, key: &str| site.below(key.into(), |site| Ok(site.seed(7))).unwrap();
        let mut seeds = vec![7, root, site.seed(8), below(&mut site, "classes[0]"), below(&mut site, "classes[1]")];
        assert_eq!(site.seed(7), root);
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 5);
    }
}
