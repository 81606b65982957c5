"""The kernel's departures and ours, experiment by experiment: prints Markdown, and writes results.json.

judge.py FOLDER       of compare.sh: NAME.json from the guest, NAME/*.pcapng from the simulator
"""

import json
import pathlib
import struct
import sys

import experiments

# An AQM's first seconds, in which its controller settles, and those of an empty queue.
SETTLED_S = 10.0
# Of a packet in its IP header, where experiments.py has its number.
IDENTIFICATION = 4
# Captures of `lastmile run` begin on 1 January 2000.
EPOCH_NS = 946_684_800 * 1_000_000_000


def blocks(data):
    """Blocks of a pcapng file in the byte order of this machine: type, body."""
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        yield kind, data[at + 8 : at + length - 4]
        at += length


def captured(path):
    """Number and time (ns from the start of the run) of each packet of a capture by `lastmile run`."""
    found, offset, units = [], 0, 1_000_000
    for kind, body in blocks(path.read_bytes()):
        if kind == 1:
            offset = {1: 14, 101: 0, 228: 0}[struct.unpack_from("<H", body)[0]]
            units = resolution(body[8:])
        elif kind == 6:
            _, high, low = struct.unpack_from("<III", body)
            ticks = high << 32 | low
            found.append(
                (
                    struct.unpack_from(">H", body, 20 + offset + IDENTIFICATION)[0],
                    ticks * 1_000_000_000 // units - EPOCH_NS,
                )
            )
    return found


def resolution(options):
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from("<HH", options, at)
        if code == 9:
            return 10 ** options[at + 4]
        if code == 0:
            break
        at += 4 + (length + 3) // 4 * 4
    return 1_000_000


class Side:
    """Packets of one side: when each was sent, and number and time of each arrival, in s from the experiment's
    start."""

    def __init__(self, sent, arrived):
        self.sent, self.arrived = sent, arrived
        self.first = {}
        for number, at in arrived:
            self.first.setdefault(number, at)

    def delays(self, of=lambda number: True, after=0.0):
        return [
            at - self.sent[number]
            for number, at in sorted(self.first.items())
            if self.sent[number] >= after and of(number)
        ]


def kernel(folder, one):
    path = folder / f"{one.name}.json"
    if not path.exists():
        return None
    found = json.loads(path.read_text())
    begin = found["begin"]
    return Side(
        [(at - begin) / 1e9 for at in found["sent"]], [(number, (at - begin) / 1e9) for number, at in found["arrived"]]
    )


def ours(folder, one):
    # A queue's departures are seen where the line begins to send, those of an impaired wire at its end.
    name = "dslam-gateway" if one.kind == "netem" else "up"
    path = folder / one.name / f"{name}.pcapng"
    if not path.exists():
        return None
    return Side([packet.at_us / 1e6 for packet in one.packets], [(number, at / 1e9) for number, at in captured(path)])


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def mean(values):
    return sum(values) / len(values) if values else None


def deviation(values):
    middle = mean(values)
    return (sum((value - middle) ** 2 for value in values) / len(values)) ** 0.5


def correlation(values):
    """Of consecutive values."""
    middle = mean(values)
    whole = sum((value - middle) ** 2 for value in values)
    return sum((a - middle) * (b - middle) for a, b in zip(values, values[1:])) / whole if whole else 0.0


def departures(one, side):
    """Per class: delays; and the departures themselves for the comparison."""
    flows = {}
    for flow in sorted({packet.flow for packet in one.packets}):
        delays = side.delays(lambda number, flow=flow: one.packets[number].flow == flow)
        flows[flow] = {"packets": len(delays), "p50_ms": quantile(delays, 0.5) * 1e3, "max_ms": max(delays) * 1e3}
    return {"classes": flows}


def shares(one, side):
    """Of the bytes on the wire from the third second to the last but one."""
    by_flow = {}
    for number, at in side.arrived:
        if 2.0 <= at < one.lasts_s - 1:
            packet = one.packets[number]
            by_flow[packet.flow] = by_flow.get(packet.flow, 0) + packet.size + 14
    total = sum(by_flow.values())
    return {
        "rate_bps": total * 8 / (one.lasts_s - 3),
        "shares": {flow: count / total for flow, count in sorted(by_flow.items())},
    }


def aqm(one, side):
    flows = {}
    late = [number for number, at in enumerate(side.sent) if at >= SETTLED_S]
    for flow in sorted({packet.flow for packet in one.packets}):
        delays = side.delays(lambda number, flow=flow: one.packets[number].flow == flow, SETTLED_S)
        offered = sum(one.packets[number].flow == flow for number in late)
        flows[flow] = {
            "delay_p50_ms": quantile(delays, 0.5) * 1e3,
            "delay_mean_ms": mean(delays) * 1e3,
            "delay_p99_ms": quantile(delays, 0.99) * 1e3,
            "dropped": 1 - len(delays) / offered,
        }
    return {"classes": flows}


def netem(one, side):
    delays = side.delays()
    lost = [number not in side.first for number in range(len(one.packets))]
    bursts = sum(now and not before for before, now in zip([False, *lost], lost))
    most, overtaken = -1, 0
    for number, _ in side.arrived:
        overtaken += number < most
        most = max(most, number)
    return {
        "delay_mean_ms": mean(delays) * 1e3,
        "delay_deviation_ms": deviation(delays) * 1e3,
        "delay_p1_ms": quantile(delays, 0.01) * 1e3,
        "delay_p50_ms": quantile(delays, 0.5) * 1e3,
        "delay_p99_ms": quantile(delays, 0.99) * 1e3,
        "delay_correlation": correlation(delays),
        "lost": sum(lost) / len(lost),
        "lost_in_a_row": sum(lost) / bursts if bursts else None,
        "overtaken": overtaken / len(side.arrived),
        "twice": (len(side.arrived) - len(side.first)) / len(one.packets),
    }


def apart(one, theirs, own):
    """Differences of single departures, and packets that depart in another position."""
    both = sorted(set(theirs.first) & set(own.first))
    offs = [abs(theirs.first[number] - own.first[number]) for number in both]
    order = [number for number, _ in own.arrived if number in theirs.first]
    moved = sum(a != b for a, b in zip(order, [number for number, _ in theirs.arrived if number in own.first]))
    late = [at - own.first[number] for number, at in theirs.first.items() if number in own.first]
    return {
        "packets": len(both),
        "p50_ms": quantile(offs, 0.5) * 1e3,
        "p99_ms": quantile(offs, 0.99) * 1e3,
        "max_ms": max(offs) * 1e3,
        "mean_late_ms": mean(late) * 1e3,
        "in_another_position": moved,
    }


JUDGED = {"departures": departures, "shares": shares, "aqm": aqm, "netem": netem}


def judged(folder):
    for one in experiments.ALL:
        theirs, own = kernel(folder, one), ours(folder, one)
        if not theirs or not own:
            continue
        row = {"name": one.name, "about": one.about, "kind": one.kind}
        row |= {"kernel": JUDGED[one.kind](one, theirs), "ours": JUDGED[one.kind](one, own)}
        if one.kind == "departures":
            row["apart"] = apart(one, theirs, own)
        yield row


def main():
    folder = pathlib.Path(sys.argv[1])
    document = {"kernel": (folder / "kernel").read_text().strip(), "experiments": list(judged(folder))}
    text = json.dumps(document, indent=1, default=str)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
