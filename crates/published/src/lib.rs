//! Published tables as data, and the scenarios that reproduce them.
