#!/usr/bin/env python3
"""Comparison of the kernel's TCP and the simulated one on the same lines.

    bench.py kernel FOLDER [--line NAME] [--congestion NAME] [--starts N] [--emulate] [--capture]
                                                                        real packets; as root
    bench.py simulate FOLDER [--line NAME] [--congestion NAME] [--starts N] [--set KEY=VALUE]
                                                                        these trials, simulated
    bench.py table FOLDER...                                            medians and ranges side by side
    bench.py keep FOLDER                                                the kernel's results into the repository's file
    bench.py kept FOLDER                                                and from there, for another simulation
    bench.py windows FOLDER LINE CONGESTION START                       windows and round trips of the kernel over
                                                                        time, in one start
    bench.py page FOLDER > docs/studies/kernel-tcp.md                   the study

The line is HTB over pfifo, in simulation too; with --emulate it is that of `lastmile emulate`, an ideal transmitter.
LASTMILE in the environment is the program. A trial is one download, one upload that begins `37 ms * start` later, and a
ping, for 30 s. Results are files in FOLDER: LINE-CONGESTION-START-{kernel,simulated}.json. A trial that has its file is
not run again.
"""

import argparse
import contextlib
import datetime
import io
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
KEPT = os.path.join(HERE, "../../docs/measured/kernel-tcp.json")
DURATION_S = 30
UPLOAD_STEP_MS = 37
# Rates of IP bytes in Mbit/s, limits of the FIFOs in packets, round trip in ms; the generator of a line that changes,
# which only `lastmile emulate` can be.
LINES = {
    "2-0.25": {"down": 2, "up": 0.25, "down_packets": 50, "up_packets": 20, "rtt_ms": 30},
    "50-5": {"down": 50, "up": 5, "down_packets": 420, "up_packets": 42, "rtt_ms": 20},
    "100-20": {"down": 100, "up": 20, "down_packets": 500, "up_packets": 100, "rtt_ms": 20},
    "300-20": {"down": 300, "up": 20, "down_packets": 1000, "up_packets": 100, "rtt_ms": 30},
    "8-0.77": {"down": 8, "up": 0.77, "down_packets": 100, "up_packets": 50, "rtt_ms": 20},
    "17-1": {"down": 17, "up": 1, "down_packets": 150, "up_packets": 50, "rtt_ms": 25},
    "lte": {"down": 30, "up": 8, "down_packets": 400, "up_packets": 150, "rtt_ms": 50, "trace": "cell"},
    "starlink": {"down": 150, "up": 15, "down_packets": 1000, "up_packets": 150, "rtt_ms": 40, "trace": "starlink"},
}
CONGESTIONS = {"cubic": "cubic", "reno": "sack", "bbr": "bbr"}
MEASURES = [
    ("download", "Mbit/s", lambda r: r["download"]["goodput_bps"] / 1e6),
    ("upload", "Mbit/s", lambda r: r["upload"]["goodput_bps"] / 1e6),
    ("ping p50", "ms", lambda r: r["ping_s"]["p50"] * 1e3),
    ("ping p99", "ms", lambda r: r["ping_s"]["p99"] * 1e3),
    ("retransmissions down", "", lambda r: r["download"]["retransmissions"]),
    ("up", "", lambda r: r["upload"]["retransmissions"]),
    ("timeouts", "", lambda r: r["download"]["timeouts"] + r["upload"]["timeouts"]),
]


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def pings(times):
    return {"received": len(times), "p50": quantile(times, 0.5), "p99": quantile(times, 0.99)}


def thinned(rows, step_s=0.1):
    """A row for each step."""
    out, due = [], 0.0
    for row in rows:
        if row[0] >= due:
            out.append(row)
            due = row[0] + step_s
    return out


def trace(line, start, from_s=0):
    """The key of a direction that makes the line change from a time of its trace on."""
    if "trace" not in line:
        return ""
    return f', trace = {{ generate = "{line["trace"]}", seed = {start + 1}, start = "{from_s} s" }}'


def kernel(line, congestion, start, options, folder):
    """One trial by trial.sh."""
    environment = dict(
        os.environ,
        DOWN_MBIT=str(line["down"]),
        UP_MBIT=str(line["up"]),
        RTT_MS=str(line["rtt_ms"]),
        DOWN_PACKETS=str(line["down_packets"]),
        UP_PACKETS=str(line["up_packets"]),
        CONGESTION=congestion,
        DURATION=str(DURATION_S),
        UPLOAD_AFTER_MS=str(start * UPLOAD_STEP_MS),
        LINE="emulate" if options.emulate else "kernel",
        CAPTURE="yes" if options.capture else "no",
        TRACE=trace(line, start),
    )
    subprocess.run([os.path.join(HERE, "trial.sh"), folder], env=environment, check=True, timeout=DURATION_S + 60)
    ends = {}
    for name in ("client", "server"):
        with open(os.path.join(folder, name + ".json"), encoding="ascii") as file:
            ends[name] = json.load(file)

    def flow(sender, receiver):
        rows, last = ends[sender]["sender"], ends[receiver]["received"][-1]
        fields = ends[sender]["fields"]
        final, received = (dict(zip(fields, side[-1])) for side in (rows, ends[receiver]["receiver"]))
        pick = [fields.index(name) for name in ("t_s", "cwnd", "rtt_us", "unacked", "ssthresh")]
        return {
            "goodput_bps": last[1] * 8 / last[0],
            "retransmissions": final["retransmissions"],
            "timeouts": final["timeouts"],
            # Of a receiver that sends no data.
            "segments_an_ack": received["data_segs_in"] / received["segs_out"],
            "sndbuf_limited_s": final["sndbuf_limited_us"] / 1e6,
            "rwnd_limited_s": final["rwnd_limited_us"] / 1e6,
            "window": [[row[index] for index in pick] for row in thinned(rows)],
        }

    with open(os.path.join(folder, "ping.txt"), encoding="ascii") as file:
        times = [float(ms) / 1e3 for ms in re.findall(r"time=([\d.]+) ms", file.read())]
    with open(os.path.join(folder, "machine.txt"), encoding="ascii") as file:
        release, processor, busy, line_age_s = file.read().split("\n")[:4]
    return {
        "download": flow("server", "client"),
        "upload": flow("client", "server"),
        "ping_s": pings(times),
        "machine": {"kernel": release, "processor": processor, "busy": float(busy)},
        # The time for which the line had run when the download began.
        "line_age_s": float(line_age_s),
    }


def simulated(line, congestion, start, options, folder):
    """The trial by `lastmile run`. A line that changes is as old as in the kernel's trial, if there is one."""
    half = line["rtt_ms"] / 2
    name = next(name for name, known in LINES.items() if known is line)
    age_s = 0
    with contextlib.suppress(FileNotFoundError):
        with open(result_file(options.folder, name, congestion, start, "kernel"), encoding="ascii") as file:
            age_s = json.load(file)["line_age_s"]

    def link(mbit, packets):
        """The link of `lastmile emulate`, or HTB over pfifo in front of a faster link, as in trial.sh."""
        fifo = f'limit = "{packets} packets"'
        if options.emulate:
            return f'{{ rate = "{mbit} Mbit/s", delay = "{half} ms", queue = {{ {fifo} }}{trace(line, start, age_s)} }}'
        rest = f'rate = "{mbit} Mbit/s", burst = "3000 wire bytes", cburst = "3000 wire bytes", {fifo}'
        queue = f'{{ kind = "htb", default = "all", classes = [{{ name = "all", {rest} }}] }}'
        return f'{{ rate = "2 Gbit/s", delay = "{half} ms", queue = {queue} }}'

    settings = [
        f"access.down={link(line['down'], line['down_packets'])}",
        f"access.up={link(line['up'], line['up_packets'])}",
        f'tcp.variant="{CONGESTIONS[congestion]}"',
        # Both connections open at once, as load.py opens them, and the upload's data follow from then on.
        'start_jitter="0 ms"',
        'traffic.upload.kind="writes"',
        'traffic.upload.rate="1 Mbit/s"',
        'traffic.upload.size="1 GiB"',
        f'traffic.upload.first="{line["rtt_ms"] + start * UPLOAD_STEP_MS} ms"',
        f'duration="{DURATION_S} s"',
        *options.set,
    ]
    command = [
        os.environ["LASTMILE"],
        "run",
        os.path.join(HERE, "line.toml"),
        "--json",
        "--seed",
        str(start + 1),
        "--out",
        folder,
    ]
    for setting in settings:
        command += ["--set", setting]
    output = subprocess.run(command, check=True, capture_output=True, text=True)
    result = json.loads(output.stdout)

    def flow(name):
        found = next(flow for flow in result["flows"] if flow["name"] == name)
        # Over the whole trial, as the kernel's.
        goodput_bps = found["bytes_delivered"] * 8 / DURATION_S
        return {"goodput_bps": goodput_bps, **{key: found[key] for key in ("retransmissions", "timeouts")}}

    ping = result["probes"][0]["rtt_s"]
    return {
        "download": flow("download"),
        "upload": flow("upload"),
        "ping_s": {"received": result["probes"][0]["received"], "p50": ping["p50"], "p99": ping["p99"]},
        "version": result["version"],
    }


def result_file(folder, line, congestion, start, kind):
    return os.path.join(folder, f"{line}-{congestion}-{start:02}-{kind}.json")


def run(how, options):
    os.makedirs(options.folder, exist_ok=True)
    for line in options.line or ["50-5", "100-20", "300-20"]:
        for congestion in options.congestion or ["cubic", "reno"]:
            for start in range(options.starts):
                if "trace" in LINES[line] and not options.emulate:
                    raise SystemExit(f"bench: {line} changes, so it needs --emulate")
                name = result_file(options.folder, line, congestion, start, how.__name__)
                if os.path.exists(name):
                    continue
                with tempfile.TemporaryDirectory() as work:
                    kept = name.removesuffix(".json") if getattr(options, "capture", False) else work
                    result = how(LINES[line], congestion, start, options, kept)
                with open(name, "w", encoding="ascii") as file:
                    json.dump(result, file)
                print(
                    name,
                    *(f"{title} {get(result):.4g}" for title, _, get in MEASURES),
                    result.get("machine", {}).get("busy", ""),
                    flush=True,
                )


def kept():
    if not os.path.exists(KEPT):
        return {}
    with open(KEPT, encoding="ascii") as file:
        return json.load(file)


def keep(folder):
    """Adds the kernel's results of a folder, without windows over time."""
    results = kept()
    for name in os.listdir(folder):
        if name.endswith("-kernel.json"):
            with open(os.path.join(folder, name), encoding="ascii") as file:
                result = json.load(file)
            for flow in ("download", "upload"):
                del result[flow]["window"]
            results[name] = result
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(result)}" for name, result in sorted(results.items()))
    with open(KEPT, "w", encoding="ascii") as file:
        file.write(f"{{\n{rows}\n}}\n")


def unpack(folder):
    os.makedirs(folder, exist_ok=True)
    for name, result in kept().items():
        with open(os.path.join(folder, name), "w", encoding="ascii") as file:
            json.dump(result, file)


def read(folders):
    found = {}
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            match = re.fullmatch(r"(.+)-(cubic|reno|bbr)-(\d+)-(kernel|simulated)\.json", name)
            if match:
                with open(os.path.join(folder, name), encoding="ascii") as file:
                    found.setdefault(match.group(1, 2), {}).setdefault(match[4], {})[match[3]] = json.load(file)
    # Only starts that both have are compared.
    for both in found.values():
        common = set.intersection(*(set(runs) for runs in both.values()))
        for kind, runs in both.items():
            both[kind] = [run for start, run in runs.items() if start in common]
    return found


def cell(runs, get):
    values = sorted(get(run) for run in runs)
    return f"{statistics.median(values):.4g} ({values[0]:.4g} to {values[-1]:.4g})"


def interval(both, get):
    """The 95 % interval of the deviation of the medians, by the bootstrap: both sides are drawn anew 2000 times."""
    draw = random.Random(1)
    sides = [[get(run) for run in both[kind]] for kind in ("kernel", "simulated")]
    middles = ([statistics.median(draw.choices(side, k=len(side))) for side in sides] for _ in range(2000))
    ratios = sorted(simulated / kernel_value - 1 for kernel_value, simulated in middles)
    return ratios[49], ratios[1949]


def verdict(both):
    """The deviation of the medians with its interval, and whether it is within the tolerance."""

    def middle(kind, get):
        return statistics.median(get(run) for run in both[kind])

    parts = []
    for title, _, get in MEASURES[:3]:
        kernel_value, simulated = middle("kernel", get), middle("simulated", get)
        off = simulated / kernel_value - 1
        good = abs(off) <= 0.05 if title != "ping p50" else abs(off) <= 0.1 or abs(simulated - kernel_value) <= 2
        parts.append(deviation(off, good, interval(both, get)))
    return parts


def deviation(off, good, between):
    low, high = between
    return f"{off:+.1%}{'' if good else ' (!)'} ({100 * low:+.0f} to {100 * high:+.0f})"


def by_start(both):
    """The median of the deviations of single starts with their quartiles, and whether it is within the tolerance."""
    parts = []
    for title, _, get in MEASURES[:3]:
        pairs = [(get(kernel), get(simulated)) for kernel, simulated in zip(both["kernel"], both["simulated"])]
        offs = sorted(simulated / kernel - 1 for kernel, simulated in pairs)
        off = statistics.median(offs)
        apart = statistics.median(abs(simulated - kernel) for kernel, simulated in pairs)
        good = abs(off) <= 0.05 if title != "ping p50" else abs(off) <= 0.1 or apart <= 2
        parts.append(deviation(off, good, (quantile(offs, 0.25), quantile(offs, 0.75))))
    return parts


def table(folders):
    print(
        "| line | congestion control | starts | TCP | "
        + " | ".join(f"{title}, {unit}".rstrip(", ") for title, unit, _ in MEASURES)
        + " |"
    )
    print("|---" * 3 + "|---" + "|---:" * len(MEASURES) + "|")
    for (line, congestion), both in read(folders).items():
        for kind, runs in sorted(both.items()):
            cells = " | ".join(cell(runs, get) for *_, get in MEASURES)
            print(f"| {line.replace('-', '/')} | {congestion} | {len(runs)} | {kind} | {cells} |")
        if len(both) == 2:
            # Over a trace, both sides of a start have the same one.
            of, parts = ("starts", by_start) if "trace" in LINES[line] else ("medians", verdict)
            print(f"| | | | difference of {of} | {' | '.join(parts(both))} | | | | |")


def windows(folder, line, congestion, start):
    with open(os.path.join(folder, f"{line}-{congestion}-{int(start):02}-kernel.json"), encoding="ascii") as file:
        result = json.load(file)
    for name in ("download", "upload"):
        print(name, "t_s", "cwnd", "rtt_us", "unacked", "ssthresh")
        for row in result[name]["window"]:
            print(*row)


def page(folder):
    found = read([folder])
    runs = {kind: [run for both in found.values() for run in both.get(kind, [])] for kind in ("kernel", "simulated")}
    machines = {f"Linux {run['machine']['kernel']}, {run['machine']['processor']}" for run in runs["kernel"]}
    shown = {line for line, _ in found}
    lines = "\n".join(
        f"| {name.replace('-', '/')} | {line['down']} | {line['up']} "
        f"| {line['down_packets']} | {line['up_packets']} | {line['rtt_ms']} |"
        for name, line in LINES.items()
        if name in shown
    )
    results = io.StringIO()
    with contextlib.redirect_stdout(results):
        table([folder])
    with open(os.path.join(HERE, "page.md"), encoding="utf-8") as file:
        text = file.read()
    print(
        text.format(
            results=results.getvalue().rstrip(),
            lines=lines,
            machine="; ".join(sorted(machines)),
            version=", ".join(sorted({run["version"] for run in runs["simulated"]})),
            date=datetime.date.today().isoformat(),
            duration=DURATION_S,
            guide="[lines that change](../guides/changing-lines.md)",
        ),
        end="",
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("kernel", "simulate"):
        command = commands.add_parser(name)
        command.add_argument("folder")
        command.add_argument("--line", action="append", choices=LINES)
        command.add_argument("--congestion", action="append", choices=CONGESTIONS)
        command.add_argument("--starts", type=int, default=20)
        command.add_argument("--set", action="append", default=[])
        command.add_argument("--emulate", action="store_true")
        command.add_argument("--capture", action="store_true")
    command = commands.add_parser("table")
    command.add_argument("folders", nargs="+")
    for name in ("page", "keep", "kept"):
        commands.add_parser(name).add_argument("folder")
    command = commands.add_parser("windows")
    for name in ("folder", "line", "congestion", "start"):
        command.add_argument(name)
    options = parser.parse_args()
    if options.command == "table":
        table(options.folders)
    elif options.command == "keep":
        keep(options.folder)
    elif options.command == "kept":
        unpack(options.folder)
    elif options.command == "page":
        page(options.folder)
    elif options.command == "windows":
        windows(options.folder, options.line, options.congestion, options.start)
    else:
        run(kernel if options.command == "kernel" else simulated, options)


if __name__ == "__main__":
    sys.exit(main())
