//! The lastmile command.

fn main() {}
