//! Closed forms: normalised asymmetry, ACK rates, bounds.
