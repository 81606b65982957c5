//! Errors of trees: the position of the discipline that cannot be built, and the problem.
//!
//! This file and those of the disciplines refer to one another, since [`Problem`] has a variant for the errors of each
//! discipline, and each discipline reports a [`Problem`].

use lastmile_units::{ByteCount, Duration};

use super::Spec;
use crate::ack::pacing;
use crate::cake::CakeError;
use crate::classify::MatchError;
use crate::meter::MeterError;
use crate::meter::drain::DrainError;
use crate::meter::tbf::TbfError;
use crate::sched::tree::TreeError;

/// A tree that cannot be built: where, and why.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{problem}", Place(.at))]
pub struct BuildError {
    /// Where the discipline stands below the root, by the keys of a configuration; empty for the root.
    pub at: String,
    /// The problem of this discipline.
    pub problem: Problem,
}

/// A problem of one discipline of a tree.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Problem {
    /// The queue holds nothing.
    #[error("a limit of zero: no packet would ever pass")]
    ZeroLimit,
    /// A scheduler that would send nothing in a round.
    #[error("a quantum of zero: nothing would ever be sent")]
    ZeroQuantum,
    /// More queues than are worth their memory.
    #[error("{0} buckets; there may be at most {max}", max = Spec::MAX_BUCKETS)]
    Buckets(u32),
    /// Times with which CoDel cannot work.
    #[error(transparent)]
    Times(#[from] crate::aqm::codel::TimesError),
    /// A selector of a CE threshold with bits that the mask leaves out.
    #[error(
        "a selector of {:#04x}/{:#04x}: the value has bits that the mask leaves out, so no packet fits",
        .0.value,
        .0.mask
    )]
    Selector(crate::aqm::codel::Selector),
    /// Times or gains with which PIE cannot work.
    #[error(transparent)]
    Pie(#[from] crate::aqm::pie::PieError),
    /// Times or rates with which DOCSIS-PIE cannot work.
    #[error(transparent)]
    DocsisPie(#[from] crate::aqm::docsis_pie::DocsisPieError),
    /// Times, gains or shares with which DualPI2 cannot work.
    #[error(transparent)]
    DualPi2(#[from] crate::aqm::dualpi2::DualPi2Error),
    /// Thresholds, probabilities or weights with which RED cannot work.
    #[error(transparent)]
    Red(#[from] crate::aqm::red::RedError),
    /// A limit in cells on a line that has none.
    #[error("a limit in cells, but this line sends no cells; give the limit in packets or bytes")]
    NoCells,
    /// A scheduler without a class, or with too many.
    #[error("{0} classes; there must be from 1 to {max}", max = Spec::MAX_CLASSES)]
    Classes(usize),
    /// A queue that is passed over in every turn.
    #[error("a count of zero: the queue would never send")]
    ZeroCount,
    /// Classes that are no tree, or are promised what there is not.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// Too many disciplines above one another.
    #[error("more than {max} disciplines above one another", max = Spec::MAX_DEPTH)]
    TooDeep,
    /// A shaper that would pass nothing, or not what it says.
    #[error(transparent)]
    Shaper(#[from] TbfError),
    /// A drain that would let nothing pass, or drain nothing.
    #[error(transparent)]
    Drain(#[from] DrainError),
    /// A meter that would let nothing pass, or not what it says.
    #[error(transparent)]
    Meter(#[from] MeterError),
    /// A CAKE that would let nothing pass.
    #[error(transparent)]
    Cake(#[from] CakeError),
    /// A policer without a rule, or with too many.
    #[error("{0} rules; there must be from 1 to {max}", max = Spec::MAX_RULES)]
    Rules(usize),
    /// A condition or a list of rules that cannot be.
    #[error(transparent)]
    Match(#[from] MatchError),
    /// An ACK that is never held, or for too long.
    #[error("a hold of {0}; it must be above zero and at most {max} (RFC 1122, section \
             4.2.3.2)", max = pacing::Config::LONGEST_HOLD)]
    Hold(Duration),
    /// A segment that no packet carries.
    #[error("a segment of {0}; it must have from 1 to {max} bytes", max = u16::MAX)]
    SegmentSize(ByteCount),
    /// A regenerator that takes a receiver to acknowledge nothing.
    #[error("a stride of 0 bytes; a receiver acknowledges at least one byte at a time")]
    ZeroStride,
    /// A regenerator that forgets at once, or while it still holds packets.
    #[error("a flow is forgotten after {idle}; that must be longer than the time for which packets are held, {hold}")]
    ForgetsTooSoon {
        /// After how long.
        idle: Duration,
        /// The longest time for which packets are held.
        hold: Duration,
    },
    /// A dropper over a regenerator.
    #[error(
        "an ACK regenerator below a Smart ACK Dropper, which would take what it makes for what came; \
         it belongs behind the line, or above the dropper"
    )]
    RegeneratorBelow,
    /// A supplied discipline takes the packets of the other clock.
    #[error("the caller's discipline is for other packets than those of this line")]
    OtherPackets,
    /// A DSCP is six bits.
    #[error("a DSCP of {0}; it is from 0 to 63")]
    Dscp(u8),
}

struct Place<'a>(&'a str);

impl core::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
}
