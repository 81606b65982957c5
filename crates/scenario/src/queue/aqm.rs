//! Queues that manage themselves actively.

use lastmile_queueing::aqm::{codel, docsis_pie, dualpi2, pie, red};
use lastmile_queueing::spec::Problem;
use lastmile_units::{BitRate, ByteCount, Duration, PacketCount, Ratio, WireBytes};

use super::{LIMIT, Readable, Wait, Waits, Wire, capacity, own_limit};
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};

pub(super) const TARGET: Key = Key::with_default("target", Kind::Time, "5 ms", "The wait that is good enough.");
pub(super) const INTERVAL: Key = Key::with_default(
    "interval",
    Kind::Time,
    "100 ms",
    "For how long every packet must wait longer than `target` before one is dropped: about the longest round-trip \
     time.",
);
pub(super) const ECN: Key = Key::with_default(
    "ecn",
    Kind::Flag,
    "false",
    "Marks packets of senders that understand it (RFC 3168), in place of dropping them.",
);
pub(super) const LARGEST: Key = Key::with_default(
    "largest",
    Kind::Bytes,
    "1500 B",
    "The largest IP packet to expect: as long as no more waits, nothing is dropped early.",
)
.at_least("1 B")
.at_most("65535 B");

pub(super) const CE_THRESHOLD: Key = Key::optional(
    "ce_threshold",
    Kind::Time,
    "never",
    "Marks every packet of a sender that understands ECN and that waited longer, whatever the law decides.",
);

impl Readable for codel::Config {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"codel\"`",
        about: "CoDel (RFC 8289): a FIFO that drops its oldest packet when all have waited longer than `target` for \
                an `interval`.",
        keys: &[
            TARGET,
            INTERVAL,
            ECN,
            CE_THRESHOLD,
            LARGEST,
            Key::with_default("limit", Kind::Limit, "1000 packets", capacity::ABOUT),
        ],
    };

    fn read(table: &Table<'_>, wire: &Wire, _depth: usize) -> Option<Self> {
        let target: Option<Duration> = table.get("target");
        let interval: Option<Duration> = table.get("interval");
        let ecn: Option<bool> = table.get("ecn");
        let largest: Option<ByteCount> = table.get("largest");
        let delay: Option<Duration> = table.optional("ce_threshold");
        let ce_threshold = delay.map(|delay| codel::CeThreshold { delay, selector: codel::Selector::ALL });
        let limit = capacity::limit(table, "limit", wire);
        Some(Self { target: target?, interval: interval?, limit: limit?, ecn: ecn?, largest: largest?, ce_threshold })
    }

    fn waits(&self) -> Waits {
        codel_waits(self.target, self.interval, self.ce_threshold)
    }
}

pub(super) fn codel_waits(target: Duration, interval: Duration, ce_threshold: Option<codel::CeThreshold>) -> Waits {
    let marks = |marks: codel::CeThreshold| Wait { key: "ce_threshold", wait: marks.delay, interval: None };
    let target = Wait { key: "target", wait: target, interval: Some(interval) };
    Waits { target: Some(target), threshold: ce_threshold.map(marks) }
}

pub(super) fn pie_waits(target: Duration) -> Waits {
    Waits { target: Some(Wait { key: "target", wait: target, interval: None }), threshold: None }
}

/// Keys of the control of PIE, which the queues of FQ-PIE have too.
pub(super) mod pie_keys {
    use crate::schema::{Key, Kind};

    pub(in crate::queue) const TARGET: Key =
        Key::with_default("target", Kind::Time, "15 ms", "The wait that the controller aims at.").at_least("1 us");
    pub(in crate::queue) const PERIOD: Key =
        Key::with_default("tupdate", Kind::Time, "15 ms", "The time between two updates of the probability.")
            .at_least("1 us");
    pub(in crate::queue) const ALPHA: Key =
        Key::with_default("alpha", Kind::Count, "2", "Gain of the distance from `target`, in sixteenths per second.")
            .at_most("32");
    pub(in crate::queue) const BETA: Key = Key::with_default(
        "beta",
        Kind::Count,
        "20",
        "Gain of the change since the update before, in sixteenths per second.",
    )
    .at_most("32");
    pub(in crate::queue) const MAX_BURST: Key = Key::with_default(
        "max_burst",
        Kind::Time,
        "150 ms",
        "After a phase of short waits nothing is dropped early for this time.",
    );
    pub(in crate::queue) const LARGEST: Key = Key::with_default(
        "largest",
        Kind::Bytes,
        "1500 B",
        "The largest IP packet to expect: while at most two of them wait, nothing is dropped early.",
    )
    .at_least("1 B")
    .at_most("65535 B");
}

/// The key `seed` of the random numbers that decide.
pub(super) const RANDOM: Key =
    Key::with_default("seed", Kind::Count, "1", "Which random numbers decide, with the scenario's seed and the link.");

/// The control of PIE, whose random numbers come from the seed at the key `seed`.
pub(super) fn pie_control(table: &Table<'_>, seed: &'static str) -> Option<pie::Parameters> {
    let [target, period, max_burst] = ["target", "tupdate", "max_burst"].map(|key| table.get::<Duration>(key));
    let [alpha, beta] = ["alpha", "beta"].map(|key| u32::try_from(table.get::<u64>(key)?).ok());
    let ecn: Option<bool> = table.get("ecn");
    let largest: Option<ByteCount> = table.get("largest");
    let seed: Option<u64> = table.get(seed);
    Some(pie::Parameters {
        target: target?,
        period: period?,
        alpha: alpha?,
        beta: beta?,
        max_burst: max_burst?,
        ecn: ecn?,
        largest: largest?,
        seed: seed?,
    })
}

impl Readable for pie::Config {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"pie\"`",
        about: "PIE (RFC 8033): a FIFO that drops what arrives with a probability that a controller moves until \
                packets wait for `target`.",
        keys: &[
            pie_keys::TARGET,
            pie_keys::PERIOD,
            pie_keys::ALPHA,
            pie_keys::BETA,
            pie_keys::MAX_BURST,
            Key::with_default(
                "ecn",
                Kind::Flag,
                "false",
                "Marks packets of senders that understand it (RFC 3168), in place of dropping them, while the \
                 probability is below 10 %.",
            ),
            pie_keys::LARGEST,
            Key::with_default("limit", Kind::Limit, "1000 packets", capacity::ABOUT),
            RANDOM,
        ],
    };

    fn read(table: &Table<'_>, wire: &Wire, _depth: usize) -> Option<Self> {
        let control = pie_control(table, "seed");
        let limit = capacity::limit(table, "limit", wire);
        Some(Self { control: control?, limit: limit? })
    }

    fn waits(&self) -> Waits {
        pie_waits(self.control.target)
    }
}

/// The rate of a service flow: that of the key `sustained`, or of the wire.
fn sustained(table: &Table<'_>, wire: &Wire) -> Option<BitRate> {
    let rate = table.optional::<BitRate>("sustained").or(wire.rate);
    if rate.is_none() && !table.has("sustained") {
        let message = format!("{}: a link without a rate", table.path("sustained"));
        table.error("sustained", message, Some("give the rate of the service flow".into()));
    }
    rate
}

impl Readable for docsis_pie::Config {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"docsis-pie\"`",
        about: "DOCSIS-PIE (RFC 8034): PIE as cable modems have it, with the wait that follows from the rates of the \
                service flow.",
        keys: &[
            Key::with_default("target", Kind::Time, "10 ms", "The wait that the controller aims at.").at_least("1 us"),
            Key::optional(
                "sustained",
                Kind::Rate,
                "the rate that empties the queue",
                "Maximum Sustained Traffic Rate of the service flow, on the wire.",
            ),
            Key::optional("peak", Kind::Rate, "`sustained`", "Peak Traffic Rate, on the wire."),
            Key::with_default(
                "burst",
                Kind::WireBytes,
                "3044 wire bytes",
                "Maximum Traffic Burst: what may depart at `peak` after a pause.",
            ),
            Key::with_default("limit", Kind::Limit, "100 ms", capacity::ABOUT),
            RANDOM,
        ],
    };

    fn read(table: &Table<'_>, wire: &Wire, _depth: usize) -> Option<Self> {
        let target: Option<Duration> = table.get("target");
        let (sustained, peak) = (sustained(table, wire), table.optional::<BitRate>("peak"));
        let burst: Option<WireBytes> = table.get("burst");
        let limit = capacity::limit(table, "limit", wire);
        let seed: Option<u64> = table.get("seed");
        let (target, burst, limit, sustained) = (target?, burst?, limit?, sustained?);
        Some(Self { target, sustained, peak: peak.unwrap_or(sustained), burst, limit, seed: seed? })
    }

    fn key(problem: &Problem) -> &'static str {
        match problem {
            Problem::DocsisPie(docsis_pie::DocsisPieError::Peak { .. }) => "peak",
            _ => "limit",
        }
    }
}

impl Readable for dualpi2::Config {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"dualpi2\"`",
        about: "DualPI2 (RFC 9332): packets with ECT(1) or CE wait in a shallow queue that marks them early, others in \
                a queue under PI2. One controller couples both.",
        keys: &[
            Key::with_default(
                "target",
                Kind::Time,
                "15 ms",
                "The wait of classic packets that the controller aims at.",
            )
            .at_least("1 us"),
            Key::with_default("tupdate", Kind::Time, "16 ms", "The time between two updates of the probability.")
                .at_least("1 us"),
            Key::with_default("alpha", Kind::Count, "41", "Gain of the distance from `target`, in 256ths per second.")
                .at_most("65536"),
            Key::with_default(
                "beta",
                Kind::Count,
                "819",
                "Gain of the change since the update before, in 256ths per second.",
            )
            .at_most("65536"),
            Key::with_default(
                "coupling_factor",
                Kind::Count,
                "2",
                "The shallow queue marks with this multiple of the base probability, the classic queue drops or marks \
                 with its square.",
            )
            .at_least("1")
            .at_most("255"),
            Key::with_default(
                "step_thresh",
                Kind::Time,
                "1 ms",
                "The shallow queue marks each packet that has waited as long. With `delay = \"predicted\"`, the end of \
                 a ramp.",
            ),
            Key::with_default(
                "delay",
                Kind::Choice(&["measured", "predicted"]),
                "measured",
                "The wait by which the shallow queue marks: the sojourn time of a packet that departs, or for one that \
                 arrives the wait that `sustained` predicts, without the wait for grants, as in DOCSIS.",
            ),
            Key::optional(
                "sustained",
                Kind::Rate,
                "the rate that empties the queue",
                "Maximum Sustained Traffic Rate of the service flow, on the wire; for `delay = \"predicted\"`.",
            ),
            Key::with_default(
                "min_qlen_step",
                Kind::Other("packets", &[Kind::Packets]),
                "0 packets",
                "The step spares a packet that finds at most this many in the shallow queue.",
            ),
            Key::with_default(
                "classic_protection",
                Kind::Share,
                "10 %",
                "The share of the rate that the classic queue gets while both queues have packets.",
            ),
            Key::with_default(
                "queue_protection",
                Kind::Flag,
                "false",
                "Moves packets of flows that build the shallow queue to the classic queue, as DOCSIS does.",
            ),
            Key::with_default(
                "nqb",
                Kind::Flag,
                "false",
                "Packets with the code point NQB (45) wait in the shallow queue too, as in DOCSIS.",
            ),
            Key::with_default(
                "largest",
                Kind::Bytes,
                "1500 B",
                "The largest IP packet to expect: while less than two of them wait, only the step marks.",
            )
            .at_least("1 B")
            .at_most("65535 B"),
            Key::with_default("limit", Kind::Limit, "10000 packets", capacity::ABOUT),
            RANDOM,
        ],
    };

    fn read(table: &Table<'_>, wire: &Wire, _depth: usize) -> Option<Self> {
        let [target, period, step] = ["target", "tupdate", "step_thresh"].map(|key| table.get::<Duration>(key));
        let [alpha, beta, coupling] =
            ["alpha", "beta", "coupling_factor"].map(|key| u32::try_from(table.get::<u64>(key)?).ok());
        let predicted = match table.choice("delay", &[("measured", false), ("predicted", true)])? {
            true => Some(sustained(table, wire)?),
            false => {
                if table.optional::<BitRate>("sustained").is_some() {
                    let hint = Some("delay = \"predicted\"".to_owned());
                    table.warning("sustained", format!("{}: not used", table.path("sustained")), hint);
                }
                None
            }
        };
        let min_qlen_step: Option<PacketCount> = table.get("min_qlen_step");
        let classic_protection: Option<Ratio> = table.get("classic_protection");
        let [queue_protection, nqb] = ["queue_protection", "nqb"].map(|key| table.get::<bool>(key));
        let largest: Option<ByteCount> = table.get("largest");
        let limit = capacity::limit(table, "limit", wire);
        let seed: Option<u64> = table.get("seed");
        Some(Self {
            target: target?,
            period: period?,
            alpha: alpha?,
            beta: beta?,
            coupling: coupling?,
            step: step?,
            predicted,
            min_qlen_step: min_qlen_step?,
            classic_protection: classic_protection?,
            queue_protection: queue_protection?,
            nqb: nqb?,
            limit: limit?,
            largest: largest?,
            seed: seed?,
        })
    }

    fn key(problem: &Problem) -> &'static str {
        match problem {
            Problem::DualPi2(dualpi2::DualPi2Error::ClassicProtection(_)) => "classic_protection",
            _ => "limit",
        }
    }

    fn waits(&self) -> Waits {
        let step = Wait { key: "step_thresh", wait: self.step, interval: None };
        let target = Wait { key: "target", wait: self.target, interval: None };
        Waits { target: Some(target), threshold: self.predicted.is_none().then_some(step) }
    }
}

impl Readable for red::Config {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"red\"`",
        about: "RED (Floyd and Jacobson 1993): a FIFO that drops what arrives with a probability that grows with \
                its average length.",
        keys: &[
            Key::with_default("min", Kind::Limit, "5 packets", "An average below this is left alone."),
            Key::with_default(
                "max",
                Kind::Limit,
                "15 packets",
                "From here on everything is dropped; with `gentle`, from twice this on. In the unit of `min`.",
            ),
            Key::with_default(
                "probability",
                Kind::Share,
                "2 %",
                "How likely a drop is when the average is just below `max`, before drops are spread.",
            ),
            Key::optional(
                "weight",
                Kind::Share,
                "the power of two for `burst`",
                "How fast the average follows the queue: the share of each new observation.",
            ),
            Key::optional(
                "burst",
                Kind::Other("packets", &[Kind::Packets]),
                "a third of twice `min` and `max`",
                "Number of packets that may arrive at once with the average below `min`.",
            ),
            Key::with_default(
                "avpkt",
                Kind::Bytes,
                "1000 B",
                "An IP packet of average size: what a pause and a burst are counted in.",
            )
            .at_least("1 B")
            .at_most("65535 B"),
            Key::with_default(
                "bandwidth",
                Kind::Rate,
                "10 Mbit/s",
                "The rate of the line, at which the average decays while nothing waits.",
            ),
            ECN,
            Key::with_default(
                "harddrop",
                Kind::Flag,
                "false",
                "Drops instead of marking when the average is above `max`.",
            ),
            Key::with_default(
                "gentle",
                Kind::Flag,
                "true",
                "From `max` to twice `max` the probability grows to one, in place of a step.",
            ),
            LIMIT,
            RANDOM,
        ],
    };

    fn read(table: &Table<'_>, wire: &Wire, _depth: usize) -> Option<Self> {
        let [min, max] = ["min", "max"].map(|key| capacity::limit(table, key, wire));
        let limit = own_limit(table, wire);
        let probability: Option<Ratio> = table.get("probability");
        let share: Option<Ratio> = table.optional("weight");
        let burst: Option<PacketCount> = table.optional("burst");
        let average_packet: Option<ByteCount> = table.get("avpkt");
        let bandwidth: Option<BitRate> = table.get("bandwidth");
        let ecn: Option<bool> = table.get("ecn");
        let hard_drop: Option<bool> = table.get("harddrop");
        let gentle: Option<bool> = table.get("gentle");
        let seed: Option<u64> = table.get("seed");
        let weight = match (share, burst) {
            (Some(_), Some(_)) => {
                table.error("burst", "both a weight and a burst, from which the weight follows", None);
                return None;
            }
            (Some(share), None) => red::Weight::Share(share),
            (None, Some(burst)) => red::Weight::Burst(burst),
            (None, None) => red::Weight::Advised,
        };
        Some(Self {
            min: min?,
            max: max?,
            limit: limit?,
            probability: probability?,
            weight,
            average_packet: average_packet?,
            bandwidth: bandwidth?,
            ecn: ecn?,
            hard_drop: hard_drop?,
            gentle: gentle?,
            seed: seed?,
        })
    }

    fn key(problem: &Problem) -> &'static str {
        match problem {
            Problem::Red(red::RedError::Thresholds { .. }) => "max",
            Problem::Red(red::RedError::ZeroProbability) => "probability",
            Problem::Red(red::RedError::ZeroWeight) => "weight",
            Problem::Red(red::RedError::ZeroPacket) => "avpkt",
            Problem::Red(red::RedError::Burst(_)) => "burst",
            _ => "limit",
        }
    }
}
