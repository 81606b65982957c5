//! What is so or not of a receiver, a bit each: of very many endpoints each byte counts.

/// What can be so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Flag {
    /// The peer's FIN has been taken in its turn. First, since it is counted as an octet.
    Finished = 1 << 0,
    /// An acknowledgement is due; one covers all that came.
    AckDue = 1 << 1,
    /// RFC 3168, section 6.1.3: acknowledgements echo congestion until the sender answers.
    Echo = 1 << 2,
    /// Acknowledgements carry SACK blocks.
    Sack = 1 << 3,
    /// Segments carry timestamps.
    Timestamps = 1 << 4,
    /// The application does not read.
    Paused = 1 << 5,
    /// A FIN has come, ahead of its turn or in it.
    FinCame = 1 << 6,
}

/// What is so; at first nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Flags(u8);

impl Flags {
    #[inline]
    pub(crate) fn has(self, flag: Flag) -> bool {
        self.0 & flag as u8 != 0
    }

    #[inline]
    pub(crate) fn set(&mut self, flag: Flag) {
        self.0 |= flag as u8;
    }

    #[inline]
    pub(crate) fn clear(&mut self, flag: Flag) {
        self.0 &= !(flag as u8);
    }

    #[inline]
    pub(crate) fn put(&mut self, flag: Flag, is_so: bool) {
        if is_so { self.set(flag) } else { self.clear(flag) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flag_is_of_its_own() {
        let all = [Flag::Finished, Flag::AckDue, Flag::Echo, Flag::Sack, Flag::Timestamps, Flag::Paused, Flag::FinCame];
        let mut flags = Flags::default();
        for flag in all {
            assert!(!flags.has(flag));
            flags.put(flag, true);
        }
        for flag in all {
            flags.put(flag, false);
            assert!(all.into_iter().all(|other| flags.has(other) == (other as u8 > flag as u8)));
        }
    }
}
