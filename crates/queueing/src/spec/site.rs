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
