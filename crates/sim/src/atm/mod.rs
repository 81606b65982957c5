//! Links that carry cells, and the devices at their edges.

mod ack_hold;
mod cell_sources;
mod cells;
mod edges;

pub(crate) use cells::{Cells, Departed, uncarried};
