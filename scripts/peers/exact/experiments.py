"""Packet sequences for the kernel's queues and for ours, and the set-up of both.

    experiments.py FOLDER      writes NAME.pcap and NAME.toml of each experiment

An experiment is a list of packets, each with its time; the commands of tc(8) that make the kernel's queue on a device;
and the line of a scenario that has ours. `guest.py` sends the packets through the kernel's queue, `lastmile run`
replays the same packets through ours, and `judge.py` compares the departures. The kernel counts frames, which have 14
bytes in front of the IP packet, and so do these lines: 14 bytes a packet without framing.
"""

import pathlib
import struct
import sys
from dataclasses import dataclass

CLIENT, SERVER = bytes([198, 18, 0, 2]), bytes([198, 18, 0, 1])
HEADER = bytes.fromhex("020000000102020000000101") + b"\x08\x00"
# Number of the first class's port; class N has PORT + N.
PORT = 5000
IP_HEADERS = 28
# Bytes of a frame in a capture: the headers and the number.
CAPTURED = 14 + IP_HEADERS + 4


@dataclass(frozen=True)
class Packet:
    at_us: int
    size: int
    flow: int


@dataclass(frozen=True)
class Experiment:
    name: str
    about: str
    # Seconds from the first packet after which the experiment ends.
    lasts_s: int
    packets: list
    # Commands of tc, with DEV for the device.
    kernel: list
    # The direction `up` of the scenario, as TOML.
    line: str
    kind: str


def checksum(header):
    total = sum(struct.unpack(f">{len(header) // 2}H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def frame(number, packet):
    """An Ethernet frame with a UDP datagram of the flow. The IP identification is its number modulo 65536, the payload
    begins with all of it."""
    payload = struct.pack(">I", number).ljust(packet.size - IP_HEADERS, b"\0")
    udp = struct.pack(">HHHH", 40000 + packet.flow, PORT + packet.flow, 8 + len(payload), 0)
    fields = (0x45, 0, packet.size, number & 0xFFFF, 0, 64, 17)
    addresses = CLIENT + SERVER
    check = checksum(struct.pack(">BBHHHBBH", *fields, 0) + addresses)
    return HEADER + struct.pack(">BBHHHBBH", *fields, check) + addresses + udp + payload


def pcap(path, packets):
    """Nanosecond pcap of Ethernet, headers only."""
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for number, packet in enumerate(packets):
            data = frame(number, packet)
            second, rest = divmod(packet.at_us, 1_000_000)
            out.write(struct.pack("<IIII", second, rest * 1000, CAPTURED, len(data)) + data[:CAPTURED])


def steady(every_us, size, flow, count, start_us=0):
    return [Packet(start_us + number * every_us, size, flow) for number in range(count)]


def together(*sequences):
    """One sequence, in the order of time; packets of one instant in the order of the sequences."""
    return sorted((packet for sequence in sequences for packet in sequence), key=lambda packet: packet.at_us)


def by_port(parent, *pairs):
    return [
        f"filter add dev DEV parent {parent} protocol ip prio 1 u32 match ip dport {PORT + flow} 0xffff flowid {to}"
        for flow, to in pairs
    ]


def port(flow):
    return f"match = {{ destination_port = {PORT + flow} }}"


# Curves of two classes, as TOML.
CONCAVE = 'rt = { m1 = "800 kbit/s", d = "10 ms", m2 = "100 kbit/s" }, ls = "100 kbit/s"'
CONVEX = 'rt = { d = "30 ms", m2 = "400 kbit/s" }, ls = "10 kbit/s"'

# Departures of HFSC at 2 Mbit/s: a bulk class that is always backlogged, a concave curve with small packets that come
# in pairs every 200 ms, and a convex one that gets nothing for 30 ms after a pause, with bursts of eight packets every
# 500 ms.
CURVES = Experiment(
    "hfsc-curves",
    "HFSC, departures of single packets",
    12,
    together(
        steady(0, 1486, 0, 1) + steady(5_000, 1486, 0, 1900, 100_000),
        [Packet(400_000 + 200_000 * turn, 186, 1) for turn in range(45) for _ in range(2)],
        [Packet(533_000 + 500_000 * turn, 486, 2) for turn in range(18) for _ in range(8)],
    ),
    [
        "qdisc add dev DEV root handle 1: hfsc default 10",
        "class add dev DEV parent 1: classid 1:1 hfsc ls m2 2mbit ul m2 2mbit",
        "class add dev DEV parent 1:1 classid 1:10 hfsc ls m2 1mbit",
        "class add dev DEV parent 1:1 classid 1:11 hfsc rt m1 800kbit d 10ms m2 100kbit ls m2 100kbit",
        "class add dev DEV parent 1:1 classid 1:12 hfsc rt m1 0 d 30ms m2 400kbit ls m2 10kbit",
        *(f"qdisc add dev DEV parent 1:1{leaf} handle {leaf + 2}: pfifo limit 5000" for leaf in range(3)),
        *by_port("1:", (0, "1:10"), (1, "1:11"), (2, "1:12")),
    ],
    f"""rate = "1 Gbit/s"
queue = {{ kind = "hfsc", default = "bulk", classes = [
    {{ name = "line", ls = "2 Mbit/s", ul = "2 Mbit/s" }},
    {{ name = "concave", parent = "line", {CONCAVE}, limit = "5000 packets", {port(1)} }},
    {{ name = "convex", parent = "line", {CONVEX}, limit = "5000 packets", {port(2)} }},
    {{ name = "bulk", parent = "line", ls = "1 Mbit/s", limit = "5000 packets" }},
] }}""",
    "departures",
)

# Backlogged classes of HFSC: shares 1 : 2 : 5 of 2 Mbit/s, with packets of different sizes, and the last two in a
# subtree of their own.
SHARES = Experiment(
    "hfsc-shares",
    "HFSC, shares of backlogged classes",
    20,
    together(steady(10_000, 1486, 0, 2000), steady(2_000, 486, 1, 10_000), steady(5_000, 986, 2, 4000)),
    [
        "qdisc add dev DEV root handle 1: hfsc default 10",
        "class add dev DEV parent 1: classid 1:1 hfsc ls m2 2mbit ul m2 2mbit",
        "class add dev DEV parent 1:1 classid 1:10 hfsc ls m2 250kbit",
        "class add dev DEV parent 1:1 classid 1:2 hfsc ls m2 1750kbit",
        "class add dev DEV parent 1:2 classid 1:11 hfsc ls m2 500kbit",
        "class add dev DEV parent 1:2 classid 1:12 hfsc ls m2 1250kbit",
        *(f"qdisc add dev DEV parent 1:1{leaf} handle {leaf + 2}: pfifo limit 100" for leaf in range(3)),
        *by_port("1:", (0, "1:10"), (1, "1:11"), (2, "1:12")),
    ],
    f"""rate = "1 Gbit/s"
queue = {{ kind = "hfsc", default = "first", classes = [
    {{ name = "line", ls = "2 Mbit/s", ul = "2 Mbit/s" }},
    {{ name = "first", parent = "line", ls = "250 kbit/s", limit = "100 packets" }},
    {{ name = "rest", parent = "line", ls = "1750 kbit/s" }},
    {{ name = "second", parent = "rest", ls = "500 kbit/s", limit = "100 packets", {port(1)} }},
    {{ name = "third", parent = "rest", ls = "1250 kbit/s", limit = "100 packets", {port(2)} }},
] }}""",
    "shares",
)


def htb(*words):
    return [
        "qdisc add dev DEV root handle 1: htb default 1",
        "class add dev DEV parent 1: classid 1:1 htb rate 2mbit burst 1600 cburst 1600 quantum 1600",
        *(f"qdisc add dev DEV parent 1:1 handle 2: {word}" for word in words),
    ]


# A load of 125 % that does not react: 2.5 Mbit/s in packets of 986 bytes, 1000 on the wire.
PIE = Experiment(
    "pie",
    "PIE, a load of 125 %",
    40,
    steady(3_200, 986, 0, 12_500),
    htb("pie limit 1000 target 15ms tupdate 15ms"),
    """rate = "2 Mbit/s"
queue = { kind = "pie" }""",
    "aqm",
)
# Four flows: 1.2, 0.9 and 0.6 Mbit/s, which share what the fourth, of 20 kbit/s, leaves.
FQ_PIE = Experiment(
    "fq-pie",
    "FQ-PIE, flows of 1200, 900, 600 and 20 kbit/s",
    40,
    together(
        steady(6_667, 986, 0, 6000),
        steady(8_889, 986, 1, 4500),
        steady(13_333, 986, 2, 3000),
        steady(50_000, 111, 3, 800),
    ),
    htb("fq_pie limit 10240 flows 1024 target 15ms tupdate 15ms"),
    """rate = "2 Mbit/s"
queue = { kind = "fq-pie", quantum = "1514 wire bytes" }""",
    "aqm",
)


def impaired(name, about, kernel, line, every_us=1_000, count=10_000):
    """A packet each millisecond, or as given, through netem and over our wire."""
    packets = steady(every_us, 986, 0, count)
    lasts = every_us * count // 1_000_000 + 1
    return Experiment(
        name,
        about,
        lasts,
        packets,
        [f"qdisc add dev DEV root netem limit 100000 {kernel}"],
        f'rate = "100 Gbit/s"\n{line}',
        "netem",
    )


NETEM = [
    impaired("netem-delay", "delay 20 ms", "delay 20ms", 'delay = "20 ms"', count=5_000),
    impaired(
        "netem-normal",
        "delay 20 ms 2 ms distribution normal",
        "delay 20ms 2ms distribution normal",
        'delay = "20 ms"\njitter = { time = "2 ms", distribution = "normal" }\nreorder = true',
    ),
    impaired(
        "netem-pareto",
        "delay 20 ms 2 ms distribution pareto",
        "delay 20ms 2ms distribution pareto",
        'delay = "20 ms"\njitter = { time = "2 ms", distribution = "pareto" }\nreorder = true',
    ),
    impaired(
        "netem-correlated",
        "delay 20 ms 5 ms 50 %",
        "delay 20ms 5ms 50%",
        'delay = "20 ms"\njitter = { time = "5 ms", correlation = "50 %" }\nreorder = true',
    ),
    impaired("netem-loss", "loss 5 %", "loss 5%", 'loss = "5 %"'),
    impaired(
        "netem-loss-correlated",
        "loss 10 % 25 %",
        "loss random 10% 25%",
        'loss = { random = "10 %", correlation = "25 %" }',
    ),
    impaired(
        "netem-gemodel",
        "loss gemodel 2 % 20 % 90 % 1 %",
        "loss gemodel 2% 20% 90% 1%",
        'loss = { gemodel = { p = "2 %", r = "20 %", 1-h = "90 %", 1-k = "1 %" } }',
    ),
    impaired(
        "netem-state",
        "loss state 1 % 20 % 10 % 60 % 0.5 %",
        "loss state 1% 20% 10% 60% 0.5%",
        'loss = { state = { p13 = "1 %", p31 = "20 %", p32 = "10 %", p23 = "60 %", p14 = "0.5 %" } }',
    ),
    impaired(
        "netem-reorder",
        "delay 20 ms reorder 25 %",
        "delay 20ms reorder 25%",
        'delay = "20 ms"\nreorder = "25 %"',
    ),
    impaired(
        "netem-reorder-gap",
        "delay 20 ms reorder 25 % 50 % gap 5",
        "delay 20ms reorder 25% 50% gap 5",
        'delay = "20 ms"\nreorder = { share = "25 %", correlation = "50 %", gap = 5 }',
    ),
    impaired("netem-duplicate", "duplicate 2 %", "duplicate 2%", 'duplicate = "2 %"'),
]
ALL = [CURVES, SHARES, PIE, FQ_PIE, *NETEM]

SCENARIO = """name = "{about}"
duration = "{lasts} s"
start_jitter = "0 ms"

[access]
encapsulation = {{ overhead = 14 }}
down = {{ rate = "100 Gbit/s" }}
lan = {{ rate = "100 Gbit/s", delay = "0 ms" }}
aggregation = {{ rate = "100 Gbit/s", delay = "0 ms" }}
backbone = {{ rate = "100 Gbit/s", delay = "0 ms" }}

[access.up]
{line}

[[traffic]]
name = "sequence"
kind = "replay"
file = "{name}.pcap"
direction = "up"
"""


def main():
    folder = pathlib.Path(sys.argv[1])
    for one in ALL:
        pcap(folder / f"{one.name}.pcap", one.packets)
        text = SCENARIO.format(about=one.about, lasts=one.lasts_s, line=one.line, name=one.name)
        (folder / f"{one.name}.toml").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
