//! TCP senders and receivers as state machines without I/O.
