//! Two endpoints on a path: golden timelines, and properties over losses, reordering and duplication.

mod golden;
mod pair;
mod transfer;
