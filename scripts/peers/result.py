"""The results of a trial in the common schema (docs/reference/results.md), from the files of its programs in a folder.

    result.py FOLDER OUT KEY=VALUE...

OUT gets summary.json, series.csv, and trial.json with the numbers of the tables and values without a field in the
schema. Keys: start, duration (s), offset (of the upload, ms), overhead (bytes), busy (share of the processor), ticks
(of the shaper), up, down, link, remedy, line, policy, window.

The links are those of the line, over its whole life, about two seconds longer than the traffic, and those of the remedy
in the box before it. Values that a kernel's queue does not report (delays, drop reasons) are null, or have the name of
its discipline.
"""

import csv
import json
import pathlib
import sys

PAYLOAD, FULL, ETHERNET = 1460, 1500, 14
PING_INTERVAL_S = 0.101
TORN_S = 600.0
NOTHING = {"mean": None, "p50": None, "p99": None, "p999": None, "max": None, "count": 0}
HERE = pathlib.Path(__file__).resolve().parent


def read(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def quantile(ordered, share):
    """The smallest value with this share of all at or below it."""
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))] if ordered else None


def bits(rate):
    number, unit = rate.split()
    return float(number) * {"kbit/s": 1e3, "Mbit/s": 1e6}[unit]


def cells(size, overhead):
    return -(-(size + overhead) // 48)


class Side:
    """Samples of one end: its received payload, and the kernel's account of its two sockets."""

    def __init__(self, path, origin):
        rows = read(path)
        self.origin = rows[0][0] if origin is None else origin
        self.rows = [(row[0] - self.origin, *row[1:]) for row in rows]

    def between(self, start, end):
        """The first and the last sample in this time."""
        inside = [row for row in self.rows if start - 0.05 <= row[0] <= end]
        return inside[0], inside[-1]

    def rate(self, column, start, end):
        """The rate of the counter in this column, per second."""
        first, last = self.between(start, end)
        return (last[column] - first[column]) / (last[0] - first[0])


RECEIVED, PACKETS, SENDS, RECEIVES = 1, 2, 3, 4


def limited_by(sender, begin, end):
    """The sender's limits between two of its samples, as shares, from the kernel's account as in the lab."""
    first, last = sender.between(begin, end)
    spent = {
        key: (last[SENDS][key] - first[SENDS][key]) / 1e6
        for key in ("busy_us", "window_limited_us", "buffer_limited_us")
    }
    lasted = last[0] - first[0]
    busy, window, buffer = (spent[key] for key in ("busy_us", "window_limited_us", "buffer_limited_us"))
    parts = {
        "application": max(0.0, lasted - busy) + buffer,
        "awaiting_ack": 0.0,
        "congestion_window": max(0.0, busy - window - buffer),
        "receive_window": window,
    }
    total = sum(parts.values())
    return {name: part / total for name, part in parts.items()}


def words(shares):
    cause, share = max(shares.items(), key=lambda item: item[1])
    return f"{cause.replace('_', ' ')} for {share:.0%} of the time, by the kernel's account".replace("%", " %")


def flow(name, direction, sender, receiver, about):
    duration = about["duration"]
    last_sent, last_read = sender.rows[-1][SENDS], receiver.rows[-1]
    shares = limited_by(sender, 0.0, duration)
    paths = {"down": ["down", "middlebox-down"], "up": ["middlebox-up", "up"]}
    other = "up" if direction == "down" else "down"
    there = {link["name"] for link in about["links"]}
    delivered = last_read[RECEIVED]
    return {
        "name": name,
        "direction": direction,
        "kind": "bulk",
        "tcp": "cubic",
        "receive_window_bytes": about["window"],
        "payload_bytes": last_sent["mss"],
        "data_path": [link for link in paths[direction] if link in there],
        "ack_path": [link for link in paths[other] if link in there],
        "start_s": about["offset"] / 1e3 if direction == "up" else 0.0,
        "end_s": None,
        "bytes_delivered": delivered,
        "goodput_bps": delivered * 8 / duration,
        "response_time_s": None,
        "retransmissions": last_sent["retransmissions"],
        "timeouts": None,
        "fast_retransmits": None,
        "data_packets": last_sent["data_out"],
        "data_packets_received": last_read[RECEIVES]["data_in"],
        "acks_sent": last_read[RECEIVES]["packets_out"] - last_read[RECEIVES]["data_out"],
        "acks_received": last_sent["packets_in"] - last_sent["data_in"],
        "connections": None,
        "connections_failed": None,
        "max_in_flight_bytes": max(row[SENDS]["unacked"] * row[SENDS]["mss"] for row in sender.rows),
        "srtt_s": last_sent["rtt_us"] / 1e6,
        "limited_by": shares,
        "explanation": words(shares),
        "bound_bps": None,
        "bound_by": None,
    }


def phase_flow(name, sender, receiver, begin, end):
    first, last = sender.between(begin, end)
    shares = limited_by(sender, begin, end)
    return {
        "name": name,
        "goodput_bps": receiver.rate(RECEIVED, begin, end) * 8,
        "limited_by": shares,
        "explanation": words(shares),
        "bound_bps": None,
        "bound_by": None,
        "two_way_bound_bps": None,
        "two_way_bound_by": None,
        "retransmissions": last[SENDS]["retransmissions"] - first[SENDS]["retransmissions"],
    }


def pings(path):
    """Number of requests; for each reply the time of its request (s after the first) and the round trip in s."""
    sent, replies = 0, []
    for line in path.read_text(encoding="ascii").splitlines():
        if " time=" in line:
            rtt_s = float(line.split(" time=")[1].split()[0]) / 1e3
            # The clock was set while the packet was in flight.
            if not 0.0 <= rtt_s < TORN_S:
                continue
            number = int(line.split("icmp_seq=")[1].split()[0])
            replies.append(((number - 1) * PING_INTERVAL_S, rtt_s))
        if "packets transmitted" in line:
            sent = int(line.split()[0])
    return sent, replies


def round_trip(replies):
    ordered = sorted(rtt for _, rtt in replies)
    if not ordered:
        return dict.fromkeys(("min", "mean", "p50", "p99", "p999", "max", "jitter"))
    p999 = quantile(ordered, 0.999)
    return {
        "min": ordered[0],
        "mean": sum(ordered) / len(ordered),
        "p50": quantile(ordered, 0.5),
        "p99": quantile(ordered, 0.99),
        "p999": p999,
        "max": ordered[-1],
        "jitter": p999 - ordered[0],
    }


def link(name, ends, rate, more):
    """A link with only the known values in `more`."""
    plain = {
        "name": name,
        "from": ends[0],
        "to": ends[1],
        "rate_bps": rate,
        "delay_s": 0.0,
        "payload_capacity_bps": None,
        "queue_limit_bytes": None,
        "wire_bits": 0,
        "ip_bytes": 0,
        "packets": 0,
        "cells": 0,
        "utilisation": None,
        "utilisation_ip": None,
        "queue_delay_s": NOTHING,
        "ack_queue_delay_s": NOTHING,
        "max_backlog_packets": 0,
        "max_backlog_bytes": 0,
        "drops": {},
        "dropped_bytes": {},
        "counters": [],
    }
    return plain | more


def by_kernel(disciplines, name, ends, rate):
    """A device's disciplines by tc -s. Packets of the root are those of the device. Its size table counts bytes on the
    wire."""
    roots = [one for one in disciplines or [] if one.get("root")]
    if not roots or roots[0]["kind"] == "noqueue":
        return None
    root = roots[0]
    counters = [
        {"part": one["handle"], "kind": one["kind"], "name": key, "value": one[key]}
        for one in disciplines
        for key in ("packets", "bytes", "drops", "overlimits", "qlen", "backlog")
        if key in one
    ]
    more = {"packets": root["packets"], "drops": {root["kind"]: root["drops"]}, "counters": counters}
    if root["kind"] == "htb":
        more["wire_bits"] = root["bytes"] * 8
    return link(name, ends, rate, more)


def by_shape(status, name, ends):
    """A direction of `lastmile shape`."""
    dropped = status["dropped"]
    return link(
        name,
        ends,
        None,
        {
            "wire_bits": status["wire_bytes"] * 8,
            "ip_bytes": status["sent"]["bytes"],
            "packets": status["sent"]["packets"],
            "queue_delay_s": {key: status["waited_s"][key] for key in NOTHING},
            "ack_queue_delay_s": {key: status["acks_waited_s"][key] for key in NOTHING},
            "max_backlog_packets": status["most_queued"]["packets"],
            "max_backlog_bytes": status["most_queued"]["bytes"],
            "drops": {reason: count["packets"] for reason, count in dropped.items()},
            "dropped_bytes": {reason: count["bytes"] for reason, count in dropped.items()},
            "counters": [
                {"part": one["path"], "kind": one["kind"], "name": one["name"], "value": one["value"]}
                for one in status["counters"]
            ],
        },
    )


def links(folder, about):
    """The links of the line, and of the remedy."""
    emulated = read(folder / "emulate.json")
    if emulated:
        found = emulated["links"]
    else:
        found = [
            by_kernel(read(folder / "line-up.json"), "up", ("cpe", "dslam"), bits(about["up"])),
            by_kernel(read(folder / "line-down.json"), "down", ("dslam", "cpe"), bits(about["down"])),
        ]
    shape = read(folder / "status.json")
    if shape:
        found.append(by_shape(shape["up"], "middlebox-up", ("client", "cpe")))
        found.append(by_shape(shape["down"], "middlebox-down", ("cpe", "client")))
    else:
        found.append(by_kernel(read(folder / "tc.json"), "middlebox-up", ("client", "cpe"), None))
        found.append(by_kernel(read(folder / "tc-down.json"), "middlebox-down", ("cpe", "client"), None))
    return [one for one in found if one]


def series(sides, replies, start):
    """Rows of (time_s, series, entity, value), name by name."""
    for name, sender, receiver in sides:
        rows = receiver.rows
        for before, row in zip(rows, rows[1:]):
            yield row[0], "goodput_bps", name, (row[RECEIVED] - before[RECEIVED]) * 8 / (row[0] - before[0])
        for what, of in (
            ("cwnd_bytes", lambda tcp: tcp["cwnd"] * tcp["mss"]),
            ("in_flight_bytes", lambda tcp: tcp["unacked"] * tcp["mss"]),
            ("acked_bytes", lambda tcp: tcp["acked_bytes"]),
            ("srtt_s", lambda tcp: tcp["rtt_us"] / 1e6),
        ):
            for row in sender.rows:
                yield row[0], what, name, of(row[SENDS])
    for at, rtt in replies:
        yield start + at, "rtt_s", "ping", rtt


def summary(folder, about, sides, sent, replies):
    duration, start = about["duration"], about["start"]
    emulated = read(folder / "emulate.json") or {}
    ping = {"name": "ping", "class": "EF", "received": len(replies), "rtt_s": round_trip(replies)}
    nowhere = dict.fromkeys(("sent", "created", "delivered", "dropped", "queued", "in_flight"), 0)

    def phase(name, begin, end, probes):
        flows = [phase_flow(*side, begin, end) for side in sides]
        return {"name": name, "from_s": begin, "to_s": end, "flows": flows, "links": [], "probes": probes}

    directions = {"download": "down", "upload": "up"}
    return {
        "scenario": "Beside the kernel's queues",
        "seed": 1,
        "version": emulated.get("version", ""),
        "duration_s": duration,
        "events": 0,
        "clock": "monotonic",
        "inputs": {
            "file": "line.toml",
            "set": [f"{key}={about[key]}" for key in ("remedy", "policy", "line", "up", "down", "link")],
            "text": (HERE / "line.toml").read_text(encoding="utf-8"),
        },
        "flows": [flow(name, directions[name], sender, receiver, about) for name, sender, receiver in sides],
        "links": about["links"],
        "probes": [ping | {"sent": sent}],
        "pages": [],
        "phases": [phase("before ping", 0.0, start, []), phase("during ping", start, duration - 0.5, [ping])],
        "fairness": [],
        "lines": [],
        "line_fairness": [],
        "conservation": emulated.get(
            "conservation", nowhere | {"packets": nowhere, "dropped_by_reason": {}, "holds": True}
        ),
    }


def after_jumps(folder, about, sides, replies):
    """From a second after each jump of the clocks to the next: rates, and the ping."""
    try:
        lines = (folder / "jumps").read_text(encoding="ascii").split("\n")
    except OSError:
        return None
    jumps = [(float(line.split()[0]), line.split()[1]) for line in lines if line]
    found = []
    for (begin, what), (end, _) in zip([(about["start"], "before"), *jumps], [*jumps, (about["duration"] - 0.5, "")]):
        rtts = sorted(rtt for at, rtt in replies if begin + 1 <= about["start"] + at < end - 0.5)
        found.append(
            {
                "what": what,
                "from_s": begin + 1,
                "to_s": end,
                "goodput_bps": {name: receiver.rate(RECEIVED, begin + 1, end) * 8 for name, _, receiver in sides},
                "rtt_p50_s": quantile(rtts, 0.5),
                "rtt_max_s": quantile(rtts, 1.0),
                "replies": len(rtts),
            }
        )
    return found


def trial(folder, about, sides, sent, replies):
    """The numbers of the tables, and values without a field in the schema."""
    start, end, overhead = about["start"], about["duration"] - 0.5, about["overhead"]
    down_bps, up_bps = (receiver.rate(RECEIVED, start, end) * 8 for _, _, receiver in sides)
    # Upstream packets below the full size are pings of 84 bytes or ACKs.
    data, echoes = up_bps / 8 / PAYLOAD, len(replies) / (about["duration"] - start)
    acks = max(0.0, sides[1][2].rate(PACKETS, start, end) - data - echoes)
    up_cells = data * cells(FULL, overhead) + echoes * cells(84, overhead) + acks * cells(40, overhead)
    rtts = sorted(rtt * 1e3 for _, rtt in replies)
    return {
        "download_bps": round(down_bps),
        "upload_bps": round(up_bps),
        "upload_cells_bps": round(up_cells * 424),
        "ping_ms": {
            "sent": sent,
            "replies": len(rtts),
            "p50": quantile(rtts, 0.5),
            "p99": quantile(rtts, 0.99),
            "max": max(rtts, default=None),
        },
        "processor_busy": about["busy"],
        "shaper_processor_ticks": about["ticks"],
        "emulate": (read(folder / "emulate.json") or {}).get("live"),
        "shape": read(folder / "status.json"),
        "tc": read(folder / "tc.json"),
        "after_jumps": after_jumps(folder, about, sides, replies),
        "conservation": (read(folder / "emulate.json") or {}).get("conservation"),
    }


def main():
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    about = dict(argument.split("=", 1) for argument in sys.argv[3:])
    about |= {key: float(about[key]) for key in ("start", "duration", "busy")}
    about |= {key: int(about[key]) for key in ("overhead", "ticks", "window", "offset")}
    about["links"] = links(folder, about)
    client = Side(folder / "client.json", None)
    server = Side(folder / "server.json", client.origin)
    sides = [("download", server, client), ("upload", client, server)]
    sent, replies = pings(folder / "ping.txt")
    out.mkdir(parents=True, exist_ok=True)
    (out / "trial.json").write_text(json.dumps(trial(folder, about, sides, sent, replies)) + "\n", encoding="utf-8")
    with (out / "series.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("time_s", "series", "entity", "value"))
        writer.writerows(series(sides, replies, about["start"]))
    (out / "summary.json").write_text(
        json.dumps(summary(folder, about, sides, sent, replies), indent=2) + "\n", encoding="utf-8"
    )


main()
