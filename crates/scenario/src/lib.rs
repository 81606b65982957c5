//! The scenario file: read, check, build.
