//! The machine's clock: real packets through the datapath that the simulator drives. Linux only, no kernel patch.
//!
//! | module | holds |
//! | --- | --- |
//! | [`bump`] | two directions of lines between two ports, without input and output of their own; their counters |
//! | [`emulate`] | the line emulator: the world around a bump that is an access line |
//! | [`shape`] | the middlebox: the world around a bump that shapes a real line |
//! | [`io`] | ports of packets: [`io::Tun`], [`io::PacketSocket`], [`io::Xdp`]; the path past them, [`io::Bypass`] |
//! | [`autorate`] | pings that move the rates of shapers: the controller of [`lastmile_queueing::autorate`] |
//! | [`handle`], [`control`] | what other threads, and other programs, may ask of the thread that carries packets |
//! | [`http`] | one page for scrapers; [`clients`] holds the limits of servers |
//! | [`clock`] | the monotonic clock as [`lastmile_units::Instant`], the kernel's receive stamps on the same scale |
//! | [`netns`] | network namespaces, and those that a killed program left behind |
//! | [`echo`] | echo requests by IPv4 and IPv6, with and without rights to raw sockets |
//! | [`gateway`] | the default gateways of the machine |
//! | [`statistics`] | counters of interfaces and of the kernel's queues |
//! | [`holder`] | the process that carries the frames of an interface |
//! | [`links`] | whether interfaces are up, and ports of their bridge |
//! | [`probe`] | ICMP echo with the kernel's receive times |
//! | [`streams`] | which standard streams the program was started without |
//! | [`stop`] | SIGINT, SIGTERM and the program's own wish to stop, as a descriptor to wait for |
//! | [`tc`] | the kernel's own shapers: set up for a policy, removed, read back, measured |
//! | [`tls`] | TLS with peers that need not say who they are |
//! | [`user`] | user namespaces, for callers without rights |
//! | [`sys`] | system calls that no safe library has: the only unsafe code, but for `streams` before `main` |
//!
//! Two rules keep a live program honest. A packet's arrival time is when it arrived, not when the
//! program woke up, and a line goes on from intended times, so lateness never enters a rate. And
//! every packet is counted until it is sent, dropped for a reason, refused by a device, or still
//! there at the end.
#![cfg(target_os = "linux")]

pub mod autorate;
pub mod bump;
pub mod clients;
pub mod clock;
pub mod control;
pub mod echo;
pub mod emulate;
pub mod error;
mod forwarding_loop;
pub mod gateway;
pub mod handle;
pub mod holder;
pub mod http;
pub mod io;
pub mod links;
pub mod netns;
mod pace;
pub mod probe;
pub mod shape;
pub mod statistics;
pub mod stop;
pub mod streams;
pub mod sys;
pub mod tc;
pub mod tls;
pub mod user;

pub use error::Error;
