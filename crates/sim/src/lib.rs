//! The simulated clock: event engine, hosts, links, traffic.
