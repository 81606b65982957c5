//! The process that carries the frames of an interface.

/// A command that carries the frames of interfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Program {
    /// `lastmile shape`.
    Shape,
    /// `lastmile emulate --bridge`.
    Emulate,
}

impl Program {
    /// The name of the command.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shape => "shape",
            Self::Emulate => "emulate",
        }
    }
}

/// The process that has a thing, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Holder {
    /// Its number.
    pub pid: Option<u32>,
    /// What it is.
    pub program: Option<Program>,
}

impl Holder {
    /// Reads what [`Holder::of_this_process`] writes. An earlier version wrote the number alone.
    pub(crate) fn read(text: &str) -> Self {
        let (pid, name) = text.split_once(' ').unwrap_or((text, ""));
        let program = [Program::Shape, Program::Emulate].into_iter().find(|program| program.name() == name);
        Self { pid: pid.parse().ok(), program }
    }

    pub(crate) fn of_this_process(program: Option<Program>) -> String {
        let pid = std::process::id();
        program.map_or_else(|| pid.to_string(), |program| format!("{pid} {}", program.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_told_by_its_number_and_its_command() {
        let own = Holder::of_this_process(Some(Program::Shape));
        let shape = Some(Program::Shape);
        assert_eq!(Holder::read(&own), Holder { pid: Some(std::process::id()), program: shape });
        let alone = Holder::of_this_process(None);
        assert_eq!(Holder::read(&alone), Holder { pid: Some(std::process::id()), program: None });
        assert_eq!(Holder::read(""), Holder::default());
        assert_eq!(Holder::read("12 other"), Holder { pid: Some(12), program: None });
    }
}
