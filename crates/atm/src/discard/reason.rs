//! Why cells are dropped.

/// Why a cell was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum CellDrop {
    /// The queue was full.
    QueueFull,
    /// The memory that it shares was full.
    MemoryFull,
    /// The frame had lost a cell to a full buffer.
    Ppd,
    /// The frame was refused at the threshold of EPD.
    Epd,
    /// The frame was the one that SPD drops.
    Spd,
    /// The cell had CLP = 1 and the memory was above its limit.
    Selective,
    /// Policed: above the peak cell rate.
    PeakRate,
    /// Policed: above the sustainable cell rate.
    SustainableRate,
    /// Policed: the cell exceeds the longest frame or differs in CLP (GFR).
    FrameConformance,
    /// The edge device had no space for its packet (ABR).
    EdgeFull,
}

impl CellDrop {
    /// All reasons, in the order of their index.
    pub const ALL: [Self; 10] = [
        Self::QueueFull,
        Self::MemoryFull,
        Self::Ppd,
        Self::Epd,
        Self::Spd,
        Self::Selective,
        Self::PeakRate,
        Self::SustainableRate,
        Self::FrameConformance,
        Self::EdgeFull,
    ];

    /// Index in [`CellDrop::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::MemoryFull => "memory_full",
            Self::Ppd => "ppd",
            Self::Epd => "epd",
            Self::Spd => "spd",
            Self::Selective => "selective",
            Self::PeakRate => "peak_rate",
            Self::SustainableRate => "sustainable_rate",
            Self::FrameConformance => "frame_conformance",
            Self::EdgeFull => "edge_full",
        }
    }
}
