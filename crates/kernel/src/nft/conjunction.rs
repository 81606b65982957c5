//! Expressions of nft that all hold.

/// Expressions that all hold, in the words of nft; none always hold.
///
/// nft refuses a line that asks for two families of addresses, or for two transport protocols: so
/// they are known next to the text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Conjunction {
    family: Option<Family>,
    /// Number of the transport protocol.
    transport: Option<u8>,
    text: String,
}

/// Families of addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    pub(super) const BOTH: [Self; 2] = [Self::V4, Self::V6];

    /// The name of nft.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::V4 => "ip",
            Self::V6 => "ip6",
        }
    }
}

impl Conjunction {
    /// Expressions for packets of any family and transport protocol.
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { family: None, transport: None, text: text.into() }
    }

    /// Expressions that only packets of this family can meet.
    pub(super) fn of_family(self, family: Family) -> Self {
        Self { family: Some(family), ..self }
    }

    /// Expressions that only packets of the transport protocol with this number can meet.
    pub(super) fn of_transport(self, number: u8) -> Self {
        Self { transport: Some(number), ..self }
    }

    /// Both; `None` if no packet can meet both.
    pub(super) fn and(&self, other: &Self) -> Option<Self> {
        let family = common(self.family, other.family)?;
        let transport = common(self.transport, other.transport)?;
        Some(Self { family, transport, text: self.then(&other.text) })
    }

    /// The expressions, and words behind them.
    pub(super) fn then(&self, words: &str) -> String {
        if self.text.is_empty() || words.is_empty() {
            format!("{}{words}", self.text)
        } else {
            format!("{} {words}", self.text)
        }
    }
}

fn common<T: PartialEq>(one: Option<T>, other: Option<T>) -> Option<Option<T>> {
    match (one, other) {
        (Some(one), Some(other)) if one != other => None,
        (one, other) => Some(one.or(other)),
    }
}
