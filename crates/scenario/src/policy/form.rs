//! The kinds of scheduler that a policy may have.

/// The kinds of scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Htb,
    Cbq,
    Hfsc,
    Custom,
    Priority,
    None,
}

/// The kinds, as a file has them.
pub(super) const FORMS: [(&str, Form); 6] = [
    ("htb", Form::Htb),
    ("cbq", Form::Cbq),
    ("hfsc", Form::Hfsc),
    ("custom", Form::Custom),
    ("priority", Form::Priority),
    ("none", Form::None),
];

impl Form {
    /// True if its classes may have classes below.
    pub(super) fn has_tree(self) -> bool {
        matches!(self, Self::Htb | Self::Cbq | Self::Hfsc)
    }

    /// As a file has it.
    pub(super) fn name(self) -> &'static str {
        FORMS.iter().find(|(_, known)| *known == self).map_or("none", |(name, _)| name)
    }
}
