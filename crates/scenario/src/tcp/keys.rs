//! The keys of `tcp = { ... }`: kinds, defaults, ranges and meanings.

use crate::schema::{Key, Kind, Section};

/// The key of a traffic's own TCP.
pub(crate) const SETTINGS: Key = Key::optional("tcp", Kind::Table("`[tcp]`"), "as the file's `[tcp]`", "Its TCP.");

pub(crate) static TCP: Section = Section {
    heading: "`[tcp]`",
    about: "TCP at both ends. At the top level of the file its keys hold for all transfers; in a traffic (`tcp = { \
            ... }`) they hold for that traffic.",
    keys: &[
        Key::with_default(
            "era",
            Kind::Other("`\"today\"`, `\"1999\"` or `1999`", &[Kind::Choice(&["today", "1999"]), Kind::Exactly(1999)]),
            "today",
            "The stack whose defaults hold for the other keys: `today` is Linux 6 (the defaults below); `1999` is \
             Reno of RFC 2001 with \
             one segment at the start, no SACK, timestamps or window scaling, windows of 65535 B, delayed ACKs of \
             200 ms, timeouts of \
             RFC 2988 (at least 1 s, 3 s before a measurement), and neither limited transmit, F-RTO, RACK nor HyStart.",
        ),
        Key::with_default(
            "variant",
            Kind::Choice(&["tahoe", "reno", "newreno", "sack", "cubic", "bbr", "bbr3", "dctcp", "prague", "ledbat++"]),
            "cubic",
            "How the sender reacts to loss and how its window grows: Jacobson 1988, RFC 5681, RFC 6582, RFC 6675, \
             RFC 9438; `bbr` and `bbr3` pace by a model of the path (BBRv1 as in Linux, BBRv3 by \
             draft-ietf-ccwg-bbr); `ledbat++` yields to others; `dctcp` (RFC 8257) and `prague` (L4S) \
             follow the fraction of marks and need `ecn`.",
        ),
        Key::optional(
            "mss",
            Kind::Bytes,
            "what the MTU of the path leaves, or 1500 B if that is less: 1448 B over Ethernet, 1440 B over PPPoE, 12 B \
             more without timestamps",
            "TCP payload of a full segment; headers and options come on top. A segment larger than the MTU of a \
             link is an error.",
        )
        .at_least("1 B")
        .at_most("65435 B"),
        Key::with_default(
            "receive_window",
            Kind::Bytes,
            "3.75 MiB",
            "The most that can be in flight, by the buffers of both hosts. Linux tunes the receive buffer to 6 MiB of \
             memory (tcp_rmem), of which headers take 3/8; Linux 6.18 to 32 MiB, so that the send buffer of 4 MiB \
             (tcp_wmem) limits. For senders with larger buffers set it, with `autotune = true`.",
        )
        .at_least("1 B")
        .at_most("1 GiB"),
        Key::optional(
            "send_buffer",
            Kind::Bytes,
            "no limit",
            "The most that a sender keeps: octets that are not acknowledged and octets that are not sent. The \
             application fills it at once. Linux tunes it to 4 MiB of memory (tcp_wmem), or a program sets it \
             (SO_SNDBUF).",
        )
        .at_least("1 B")
        .at_most("1 GiB"),
        Key::optional(
            "autotune",
            Kind::Flag,
            "true, but false with a `receive_window` in the file and in 1999",
            "The receive window begins at 64 KiB and grows to `receive_window` as data come, as Linux does it \
             unless a program sets its buffer.",
        ),
        Key::with_default(
            "initial_window",
            Kind::Other("segments, or `\"rfc3390\"`", &[Kind::Count, Kind::Choice(&["rfc3390"])]),
            "10",
            "Congestion window at the start (RFC 6928: 10; before RFC 3390: 1 or 2).",
        ),
        Key::optional("initial_ssthresh", Kind::Bytes, "as high as can be", "Slow start threshold at the start."),
        Key::with_default(
            "delayed_ack",
            Kind::Time,
            "200 ms",
            "Longest that an ACK is held back; `\"0 ms\"` acknowledges every segment at once. RFC 9293 allows 500 ms.",
        )
        .at_most("10 s"),
        Key::with_default("ack_every", Kind::Count, "2", "Segments after which an ACK is due at once.")
            .at_least("1")
            .at_most("255"),
        Key::with_default(
            "quick_acks",
            Kind::Flag,
            "true",
            "Acknowledge as Linux does: one by one at the beginning, after a pause of a timeout and after \
             duplicates, and at once \
             what ends a burst (PSH); else after `ack_every` full segments, held back for 40 ms, and up to \
             `delayed_ack` (Linux: \
             200 ms) where segments come slowly.",
        ),
        Key::with_default("sack", Kind::Flag, "true", "Offer selective acknowledgements (RFC 2018)."),
        Key::with_default("dsack", Kind::Flag, "true", "Report duplicates in a first SACK block (RFC 2883)."),
        Key::with_default(
            "timestamps",
            Kind::Flag,
            "true",
            "Offer timestamps (RFC 7323): 12 bytes more in every header.",
        ),
        Key::with_default(
            "window_scale",
            Kind::Other("`true`, `false`, or a shift from 0 to 14", &[Kind::Flag, Kind::Count]),
            "true",
            "Offer window scaling (RFC 7323); `true` takes the least shift that can express the receive window.",
        ),
        Key::with_default(
            "rto",
            Kind::Choice(&["rfc6298", "linux"]),
            "linux",
            "How the retransmission timeout is computed: by the RFC, one measurement a round trip; or as Linux \
             does, where \
             every ACK measures and `min_rto` is the least of the variance, not of the whole.",
        ),
        Key::with_default(
            "min_rto",
            Kind::Time,
            "200 ms",
            "Least retransmission timeout, or variance of it (RFC 6298: 1 s; Linux: 200 ms).",
        )
        .at_least("1 us")
        .at_most("1 h"),
        Key::with_default("max_rto", Kind::Time, "120 s", "Where the timeout's doubling ends.")
            .at_least("1 us")
            .at_most("24 h"),
        Key::with_default("initial_rto", Kind::Time, "1 s", "Timeout before there is a measurement (RFC 6298).")
            .at_least("1 us")
            .at_most("1 h"),
        Key::with_default(
            "undo",
            Kind::Flag,
            "true",
            "Take back a reduction of the window if timestamps (Eifel, RFC 3522), DSACK (RFC 3708) or F-RTO show that \
             nothing was lost; not in Tahoe and Reno.",
        ),
        Key::with_default(
            "frto",
            Kind::Flag,
            "true",
            "Find needless timeouts by what answers the first retransmission (F-RTO, RFC 5682); needs SACK and `undo`.",
        ),
        Key::with_default(
            "loss_detection",
            Kind::Choice(&["rfc6675", "rack"]),
            "rack",
            "How a sender with SACK finds losses: by counting what is SACKed above (RFC 6675), or by the times of \
             sending \
             (RACK, RFC 8985), which also finds lost retransmissions; `\"rack\"` needs `rto = \"linux\"`, and is \
             as `\"rfc6675\"` without.",
        ),
        Key::with_default(
            "tail_loss_probe",
            Kind::Flag,
            "true",
            "Where no ACK comes for two round trips, send one segment more (RFC 8985, section 7); needs `\"rack\"`.",
        ),
        Key::with_default(
            "slow_start",
            Kind::Choice(&["standard", "hystart", "hystart++"]),
            "hystart",
            "How slow start may end before a loss ends it, by round trips that grow: HyStart as in Linux, where it \
             is a part of \
             CUBIC (other variants do standard slow start), or HyStart++ (RFC 9406) with every variant; needs `rto \
             = \"linux\"`.",
        ),
        Key::with_default(
            "recovery",
            Kind::Choice(&["rfc6675", "prr"]),
            "prr",
            "The window of a sender with SACK while it repairs a loss: the slow start threshold from the beginning \
             (RFC 6675), or \
             proportional to what is delivered (PRR, RFC 9937), as in Linux.",
        ),
        Key::with_default("clock_granularity", Kind::Time, "0 ms", "Tick of the host's clock; the 1990s had 500 ms.")
            .at_most("10 s"),
        Key::with_default(
            "byte_counting",
            Kind::Other("`true`, `false`, or the limit L from 1 to 255", &[Kind::Flag, Kind::Count]),
            "255",
            "Appropriate byte counting (RFC 3465), with L = 2 for `true`; `false` counts each ACK as a segment.",
        ),
        Key::with_default(
            "ecn",
            Kind::Other(
                "`\"off\"`, `\"classic\"`, `\"accecn\"`, `true` or `false`",
                &[Kind::Choice(&["off", "classic", "accecn"]), Kind::Flag],
            ),
            "off",
            "Offer explicit congestion notification: one signal a round trip (RFC 3168, `\"classic\"` or `true`), or \
             counters of the marks (Accurate ECN, RFC 9768). With `dctcp` and `\"classic\"`, receivers report each \
             change of the mark (RFC 8257).",
        ),
        Key::with_default(
            "tso_deferral",
            Kind::Flag,
            "true",
            "Send about a millisecond's worth at once, as Linux does whatever offloads are set: new data wait for \
             so much of the window, \
             for at most 1 ms.",
        ),
        Key::with_default(
            "pacing",
            Kind::Flag,
            "false",
            "Spread segments over the round trip, as Linux does with `sch_fq`: at 200 % of window / round trip in the \
             first half of slow start, at 120 % of it after that. `bbr`, `bbr3` and `prague` pace in any case.",
        ),
        Key::with_default(
            "read_delay",
            Kind::Time,
            "40 us",
            "Mean time from the arrival of data until the application has read them and, with `quick_acks`, the ACK \
             goes out: the time in which a host wakes it. It is spread evenly from nothing to twice the mean. Linux \
             hosts take 10 to 100 us; without any spread two flows may fall into step. Unread data take no room in the \
             receive window.",
        )
        .at_most("10 ms"),
        Key::with_default(
            "gro",
            Kind::Time,
            "0 us",
            "Receive offload: data segments that arrive within this time are one for TCP, which acknowledges them \
             together (stretched ACKs). A receiver's device gathers for 20 to 100 us; `\"0 us\"` joins none.",
        )
        .at_most("100 ms"),
        Key::with_default(
            "limited_transmit",
            Kind::Flag,
            "true",
            "The first two duplicate ACKs release a segment each (RFC 3042).",
        ),
        Key::with_default(
            "idle_restart",
            Kind::Flag,
            "true",
            "Slow start again after an idle timeout (RFC 5681, section 4.1), and a window that shrinks while data do \
             not fill it (RFC 2861).",
        ),
    ],
};
