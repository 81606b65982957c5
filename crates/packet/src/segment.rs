//! TCP segments whose checksums hold.
//!
//! A receiver drops a damaged segment, so a regulator must not use its contents, nor drop another
//! packet in its favour. Regulators therefore take [`Segment`] and [`PureAck`], which cannot be
//! made of a damaged packet.

use core::ops::Deref;

use crate::{AckFields, Meta, Protocol};

/// A TCP segment whose checksums hold, or a simulated one ([`crate::Packet::segment`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment<'a>(&'a Meta);

impl<'a> Segment<'a> {
    /// A segment of `meta`. `None` for another protocol and for checksums that are not verified.
    #[inline]
    pub(crate) const fn of(meta: &'a Meta) -> Option<Self> {
        if meta.mark.unverified() { None } else { Self::summed(meta) }
    }

    /// A segment of `meta`, whose checksums the caller has verified. `None` for another protocol.
    #[inline]
    pub(crate) const fn summed(meta: &'a Meta) -> Option<Self> {
        if matches!(meta.protocol, Protocol::Tcp) { Some(Self(meta)) } else { None }
    }
}

impl Deref for Segment<'_> {
    type Target = Meta;

    #[inline]
    fn deref(&self) -> &Meta {
        self.0
    }
}

/// A pure ACK ([`Meta::is_pure_ack`]) whose checksums hold, or a simulated one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PureAck<'a>(Segment<'a>);

impl<'a> PureAck<'a> {
    #[inline]
    pub(crate) const fn of(meta: &'a Meta) -> Option<Self> {
        match Segment::of(meta) {
            Some(segment) if meta.is_pure_ack() => Some(Self(segment)),
            _ => None,
        }
    }

    /// This ACK as a segment.
    #[inline]
    #[must_use]
    pub const fn segment(self) -> Segment<'a> {
        self.0
    }

    /// The fields that ACK regulation uses.
    #[inline]
    #[must_use]
    pub const fn fields(self) -> AckFields {
        self.0.0.ack_fields()
    }
}

impl Deref for PureAck<'_> {
    type Target = Meta;

    #[inline]
    fn deref(&self) -> &Meta {
        self.0.0
    }
}

impl Meta {
    /// This packet as a pure ACK with right checksums, or `None`. ACK regulation may drop, merge or
    /// rewrite no other packet.
    #[inline]
    #[must_use]
    pub const fn pure_ack(&self) -> Option<PureAck<'_>> {
        PureAck::of(self)
    }
}
