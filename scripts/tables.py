#!/usr/bin/env python3
"""Tables of pages, printed from result files.

    scripts/tables.py                                   writes each table into its page
    scripts/tables.py --check                           exits with 1 where a page differs from its result file
    scripts/tables.py --record-bench FILE... --note TEXT    makes docs/reference/performance.json of what `make bench` wrote, and says where

A table begins in its page with the comment `<!-- table: NAME -->` and ends with `<!-- end of table -->`.
"""

import argparse
import contextlib
import datetime
import io
import json
import pathlib
import platform
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts/peers"))
import report  # noqa: E402

BENCH = ROOT / "docs/reference/performance.json"
CARRIED = ROOT / "docs/reference/carried.json"
PEERS = ROOT / "docs/studies/kernel-queues.json"
MARGINS = ROOT / "docs/images/both-ways.json"
TABLE = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end of table -->)", re.S)
# Rows of the short tables: what a household may choose, by the kernel and by lastmile.
SHORT = ["none", "ack-priority-and-ping", "one-fq-codel", "cake", "margin-97", "full-both-ways"]


def load(path):
    return json.loads(path.read_text())


def grid(headings, rows, left=1):
    """A Markdown table whose first `left` columns are text."""
    lines = [headings, ["---"] * left + ["---:"] * (len(headings) - left), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def percent(share):
    return f"{share:.1%}".replace("%", " %")


def printed(function, *arguments):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        function(*arguments)
    return text.getvalue().rstrip("\n") + "\n"


def count(value):
    return f"{value:,.0f}".replace(",", " ")


# The kernel's queues.


def peers(line):
    """All rows of a line."""
    return printed(report.table, [row for row in load(PEERS)["trials"] if row["line"] == line])


def peers_short(line):
    rows = [row for row in load(PEERS)["trials"] if row["line"] == line and row["line_by"] == "emulate" and row["policy"] in SHORT]
    rows.sort(key=lambda row: (SHORT.index(row["policy"]), row["remedy"]))

    def cells(row):
        live, sim = row["live"], row["simulated"]
        rates = [f"{live['download_bps'] / 1e3:.0f}", percent(live["download_of_bound"]), f"{live['upload_bps'] / 1e3:.0f}"]
        pings = [report.milliseconds(live[key]) for key in ("ping_p50_ms", "ping_p99_ms")]
        other = [f"{sim[key] / 1e3:.0f}" for key in ("download_bps", "upload_bps")] + [report.milliseconds(sim["ping_p99_ms"])]
        return [report.NAMES.get(row["policy"], row["policy"]), report.BY[row["remedy"]], *rates, *pings, *other]

    headings = ["remedy", "by", "download, kbit/s", "of its bound", "upload, kbit/s", "ping p50, ms", "p99"]
    return grid([*headings, "simulated: download", "upload", "ping p99"], map(cells, rows), 2)


def peers_jumps():
    return printed(report.jumps, next(row for row in load(PEERS)["trials"] if row["line"] == "clock"))


def margins():
    """The curve of docs/images/both-ways.svg."""
    rows = load(MARGINS)
    points = {(row["line"], float(row["share"]), row["remedy"]): row for row in rows}
    names = {"2M": "2 Mbit/s / 512 kbit/s", "8M": "8 Mbit/s / 768 kbit/s"}

    def cells(line, share):
        cells = [names[line], f"{share:g} %"]
        for remedy in ("shape", "htb"):
            row = points.get((line, share, remedy))
            cells += [percent(row["download"]), percent(row["upload"]), f"{row['p50_ms']:.0f}", f"{row['p99_ms']:.0f}"] if row else ["–"] * 4
        return cells

    keys = sorted({key[:2] for key in points})
    headings = ["line", "share", "shape: download", "upload", "ping p50, ms", "p99", "HTB: download", "upload", "ping p50, ms", "p99"]
    return grid(headings, [cells(*key) for key in keys], 2)


# Speed and memory.


def bench(keep):
    return [row for row in load(BENCH)["rows"] if keep(row["name"])]


def bench_machine():
    found = load(BENCH)
    return f"{found['machine']}. Version {found['version']}, {found['date']}. {found['note']}\n"


def simulations():
    def cells(row):
        each = row["wall_s"] / row["data_packets"]
        instructions = row["instructions"] / row["data_packets"] if row["instructions"] else None
        name = re.sub(r"^\(.\) ", "", row["name"])
        memory = f"{row['peak_bytes'] / 2**20:.1f}"
        return [name, f"{row['wall_s']:.3g}", f"{1e-6 / each:.2g}", f"{each * 1e9:.0f}", count(instructions) if instructions else "–", memory]

    headings = ["simulation", "wall time, s", "million data packets/s", "ns a data packet", "instructions a data packet", "peak memory, MiB"]
    return grid(headings, map(cells, bench(lambda name: name.startswith("(") or " flows of " in name)))


def events():
    times = {row["name"]: row["wall_s"] * 1e9 / row["events"] for row in bench(lambda name: name.endswith(" pending"))}
    sizes = sorted({int(name.split()[1]) for name in times})
    rows = [[count(size), *(f"{times[f'{kind} {size} pending']:.0f}" for kind in ("heap", "wheel"))] for size in sizes]
    return grid(["pending events", "binary heap, ns", "timing wheel, ns"], rows)


def costs(kind, what, keep):
    """Instructions and nanoseconds of each thing, the numbers of flows next to each other."""
    found = [row[kind] for row in load(BENCH)["rows"] if row.get(kind) and keep(row[kind])]
    flows = sorted({cost["flows"] for cost in found})
    at = {(cost["what"], cost["load"], cost["flows"]): cost for cost in found}
    rows = []
    for name, load_name in dict.fromkeys(key[:2] for key in at):
        costs = [at.get((name, load_name, number)) for number in flows]
        instructions = [count(cost["instructions_per_packet"]) if cost and cost["instructions_per_packet"] else "–" for cost in costs]
        rows.append([name, load_name, *instructions, *(f"{cost['ns_per_packet']:.0f}" if cost else "–" for cost in costs)])
    columns = [f"{unit} at {count(number)}" for unit in ("instructions", "ns") for number in flows]
    return grid([what, "packets", *columns], rows, 2)


def cells():
    found = [row["atm"] for row in load(BENCH)["rows"] if row.get("atm")]
    rows = [[row["load"], row["way"], f"{row['instructions_per_cell_hop']:.0f}", f"{row['seconds']:.2g}"] for row in found]
    return grid(["load", "method", "instructions a cell and hop", "s for 18 s"], rows, 2)


def carried_machine():
    found = load(CARRIED)
    return f"{found['machine']}. Version {found['version']}, {found['date']}. {found['note']}\n"


def carried():
    """Packets a second of processor time at 100 000 flows, by path and policy."""
    found = {}
    for row in (row for bench in load(CARRIED)["rows"] for row in bench["live"]):
        cell = dict(zip(row["headings"], row["cells"]))
        found.setdefault((cell["forwarded by"], cell["way"]), {})[int(cell["bytes"])] = float(cell["per CPU second"])
    rows = [[*key, *(count(sizes[size]) for size in (64, 1500)), f"{sizes[1500] * 1500 * 8 / 1e9:.1f}"] for key, sizes in found.items()]
    return grid(["path", "policy", "64 bytes, packets/s", "1500 bytes, packets/s", "1500 bytes, Gbit/s"], rows, 2)


SHOWN = ("fifo", "sad keep", "ack-filter", "ack-collapsing", "ack-pacing", "tbf", "codel", "red", "sfq", "drr", "wfq", "wf2q-plus", "cake of flows")
TABLES = {
    "claims": lambda: printed(report.claims, load(PEERS)["trials"]),
    "clocks": peers_jumps,
    **{f"short {line}": lambda line=line: peers_short(line) for line in ("bridged", "pppoa")},
    **{f"all {line}": lambda line=line: peers(line) for line in report.LINES if line != "clock"},
    "margins": margins,
    "machine": bench_machine,
    "simulations": simulations,
    "events": events,
    "queues": lambda: costs("queue", "discipline", lambda cost: cost["load"] == "mixed" and shown(cost["what"])),
    "datapath": lambda: costs("datapath", "between the ports", lambda cost: cost["flows"] <= 100_000),
    "cells": cells,
    "carried machine": carried_machine,
    "carried": carried,
}


def shown(discipline):
    return discipline in SHOWN or discipline.startswith(("htb", "cbq", "fq-codel", "priority"))


def record(files, note):
    """The result file of the performance page."""
    rows = [row for file in files for row in json.loads(pathlib.Path(file).read_text())]
    cpu = re.search(r"model name\s*:\s*(.+)", pathlib.Path("/proc/cpuinfo").read_text())
    processors = len(re.findall(r"^processor\s*:", pathlib.Path("/proc/cpuinfo").read_text(), re.M))
    version = re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.M).group(1)
    found = {
        "machine": f"{cpu.group(1) if cpu else platform.machine()}, {processors} processors, Linux {platform.release()}",
        "version": version,
        "date": datetime.date.today().isoformat(),
        "note": note,
    }
    head = "".join(f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in found.items())
    BENCH.write_text("{\n" + head + '"rows": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 where a page differs")
    parser.add_argument("--record-bench", nargs="+", metavar="FILE", help="JSON of the benchmark")
    parser.add_argument("--note", default="", help="what else the machine did, for the page")
    options = parser.parse_args()
    if options.record_bench:
        record(options.record_bench, options.note)
    stale = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text()
        new = TABLE.sub(lambda found: found[1] + "\n" + TABLES[found[2]]() + "\n" + found[3], text)
        if new != text:
            stale.append(page.relative_to(ROOT))
            if not options.check:
                page.write_text(new)
    for page in stale:
        print(f"{page}: {'differs from its result file: scripts/tables.py writes it' if options.check else 'written'}", file=sys.stderr)
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
