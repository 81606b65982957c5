//! CAKE.

use lastmile_linklayer::LinkLayer;
use lastmile_queueing::ack::cake::Mode;
use lastmile_queueing::cake::{CakeError, Config, Diffserv, Isolation};
use lastmile_queueing::spec::Problem;
use lastmile_units::{BitRate, ByteCount, Duration};

use super::{Readable, Wait, Waits, Wire};
use crate::line::encapsulation;
use crate::reader::Table;
use crate::schema::{Key, Kind, Section};

impl Readable for Config {
    const SECTION: &'static Section = &Section {
        heading: "`kind = \"cake\"`",
        about: "Common applications kept enhanced (tc-cake): a shaper without bursts, tins by code point, a queue \
                for each flow and a share for each \
            host, COBALT in each queue, and an ACK filter.",
        keys: &[
            Key::optional(
                "bandwidth",
                Kind::Rate,
                "as fast as the line",
                "Rate on the wire that it keeps to, headers and cells included.",
            ),
            Key::optional(
                "encapsulation",
                Kind::Other("name, or table, see [encapsulations](#encapsulations)", crate::line::LAYERS),
                "that of the line",
                "Link layer of a later line for which `bandwidth` shapes.",
            ),
            Key::with_default(
                "diffserv",
                Kind::Choice(&["besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8"]),
                "diffserv3",
                "How code points divide traffic into tins.",
            ),
            Key::with_default(
                "isolation",
                Kind::Choice(&[
                    "flowblind",
                    "srchost",
                    "dsthost",
                    "hosts",
                    "flows",
                    "dual-srchost",
                    "dual-dsthost",
                    "triple-isolate",
                ]),
                "triple-isolate",
                "Flows with a queue each, and the hosts among which the rate is shared.",
            ),
            Key::with_default(
                "rtt",
                Kind::Time,
                "100 ms",
                "Round-trip time of most traffic: COBALT's target is a twentieth of it.",
            )
            .at_least("1 us")
            .at_most("100 s"),
            Key::optional(
                "memory",
                Kind::Bytes,
                "four times `bandwidth` times `rtt`, from 4 MiB to 10240 packets of 1514 bytes; these without a \
                 bandwidth",
                "IP bytes that may wait. Beyond it the longest queue loses its oldest packet.",
            ),
            Key::with_default(
                "nat",
                Kind::Flag,
                "false",
                "For [`lastmile tc`](../guides/kernel-shapers.md): the kernel's CAKE distinguishes hosts by their \
                 addresses before translation. No effect elsewhere.",
            ),
            Key::with_default(
                "wash",
                Kind::Flag,
                "false",
                "Clears the code point of each packet, after it has chosen a tin. The ECN field stays.",
            ),
            Key::with_default(
                "ingress",
                Kind::Flag,
                "false",
                "The slow line stands before this queue: dropped packets count towards `bandwidth`, since the line \
                 has carried them, and each busy flow may have two packets waiting before COBALT finds them late.",
            ),
            Key::with_default(
                "ack_filter",
                Kind::Choice(&["off", "normal", "aggressive"]),
                "off",
                "Whether an ACK is dropped when newer ones of its flow wait behind it.",
            ),
            Key::with_default(
                "largest",
                Kind::Bytes,
                "1500 B",
                "The largest IP packet to expect: COBALT's times allow for it.",
            )
            .at_least("1 B")
            .at_most("65535 B"),
        ],
    };

    fn read(table: &Table<'_>, _wire: &Wire, _depth: usize) -> Option<Self> {
        let bandwidth: Option<BitRate> = table.optional("bandwidth");
        let link_layer: Option<LinkLayer> = encapsulation(table);
        let diffserv = table.choice(
            "diffserv",
            &[
                ("besteffort", Diffserv::BestEffort),
                ("precedence", Diffserv::Precedence),
                ("diffserv3", Diffserv::Three),
                ("diffserv4", Diffserv::Four),
                ("diffserv8", Diffserv::Eight),
            ],
        );
        let isolation = table.choice(
            "isolation",
            &[
                ("flowblind", Isolation::FlowBlind),
                ("srchost", Isolation::SourceHost),
                ("dsthost", Isolation::DestinationHost),
                ("hosts", Isolation::Hosts),
                ("flows", Isolation::Flows),
                ("dual-srchost", Isolation::DualSourceHost),
                ("dual-dsthost", Isolation::DualDestinationHost),
                ("triple-isolate", Isolation::Triple),
            ],
        );
        let rtt: Option<Duration> = table.get("rtt");
        let memory: Option<ByteCount> = table.optional("memory");
        let nat: Option<bool> = table.get("nat");
        let wash: Option<bool> = table.get("wash");
        let ingress: Option<bool> = table.get("ingress");
        let filters = &[("off", None), ("normal", Some(Mode::Normal)), ("aggressive", Some(Mode::Aggressive))];
        let ack_filter = table.choice("ack_filter", filters);
        let largest: Option<ByteCount> = table.get("largest");
        Some(Self {
            bandwidth,
            diffserv: diffserv?,
            isolation: isolation?,
            rtt: rtt?,
            memory,
            nat: nat?,
            wash: wash?,
            ingress: ingress?,
            ack_filter: ack_filter?,
            link_layer,
            largest: largest?,
            ..Config::default()
        })
    }

    fn key(problem: &Problem) -> &'static str {
        match problem {
            Problem::Cake(CakeError::Rtt(_)) => "rtt",
            Problem::Cake(CakeError::Memory { .. }) => "memory",
            _ => "kind",
        }
    }

    /// CAKE's target is a twentieth of its round-trip time.
    fn waits(&self) -> Waits {
        Waits { target: Some(Wait { key: "rtt", wait: self.rtt / 20, interval: None }), threshold: None }
    }
}
