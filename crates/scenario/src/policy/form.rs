//! The kinds of scheduler that a policy may have.

use lastmile_units::BitRate;

use crate::reader::Table;

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

    /// True if `key` of a class has an effect.
    pub(super) fn has(self, key: &str) -> bool {
        match key {
            "ceil" => self.has_tree(),
            "cburst" => self == Self::Htb,
            "burst" => matches!(self, Self::Htb | Self::Cbq),
            "priority" => matches!(self, Self::Htb | Self::Cbq | Self::Priority),
            _ => true,
        }
    }

    /// `ceil` where it holds for a class with this rate: CBQ has no other ceiling than the rate.
    pub(super) fn ceiling(self, ceil: BitRate, rate: Option<BitRate>) -> Option<BitRate> {
        let holds = self.has("ceil") && (self != Self::Cbq || rate.is_some_and(|rate| ceil <= rate));
        holds.then_some(ceil)
    }

    /// Warns of those of `keys` that have no effect in a class with this `ceil` and this rate of a scheduler of the
    /// rate `line`. Where it `drains`, priority 0 has one.
    pub(super) fn warn(
        self,
        (table, keys): (&Table<'_>, &[&'static str]),
        (ceil, rate): (BitRate, Option<BitRate>),
        (line, drains): (BitRate, bool),
    ) {
        for key in keys.iter().copied() {
            if table.has(key) && !self.has(key) && !(key == "priority" && drains) {
                let of_key = FORMS.iter().filter(|(_, form)| form.has(key)).map(|(name, _)| format!("{name:?}"));
                let hint = format!("kinds of scheduler with {key}: {}", of_key.collect::<Vec<_>>().join(", "));
                let message = format!("{}: no effect with the scheduler {:?}", table.path(key), self.name());
                table.warning(key, message, Some(hint));
            }
        }
        if self == Self::Cbq && ceil < line && self.ceiling(ceil, rate).is_none() {
            let message = format!(
                "{}: no effect with the scheduler \"cbq\", whose classes keep to their rate or borrow up to the line's",
                table.path("ceil")
            );
            let hint = "a ceil of the rate keeps the class from borrowing; \"htb\" and \"hfsc\" have ceilings";
            table.warning("ceil", message, Some(hint.into()));
        }
    }
}

/// True if `key` of a class has an effect with the scheduler of this name.
#[must_use]
pub fn scheduler_has(scheduler: &str, key: &str) -> bool {
    FORMS.iter().any(|(name, form)| *name == scheduler && form.has(key))
}
