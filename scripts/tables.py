#!/usr/bin/env python3
"""Tables of pages, printed from result files.

    scripts/tables.py                                   writes each table into its page
    scripts/tables.py --check                           exits with 1 where a page differs from its result file
    scripts/tables.py --record FILE... --note TEXT      makes the result files in docs/measured of JSON that the
                                                        benchmark printed

TEXT names the build and the other work of the machine. On a busy machine, `--without-times` records instructions and
memory only.

A table begins in its page with the comment `<!-- table: NAME -->` and ends with `<!-- end of table -->`.
"""

import argparse
import contextlib
import datetime
import io
import json
import os
import pathlib
import platform
import re
import sys
import textwrap

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "scripts/peers")]
import newer  # noqa: E402
import report  # noqa: E402
import what_helps  # noqa: E402

MEASURED = ROOT / "docs/measured"
SIMULATIONS, COSTS, CARRIED = (MEASURED / f"{name}.json" for name in ("simulations", "costs", "carried"))
PEERS = MEASURED / "kernel-queues.json"
MARGINS = ROOT / "docs/images/both-ways.json"
TABLE = re.compile(r"(<!-- table: (.+?) -->\n).*?(<!-- end of table -->)", re.S)
# Rows of the short tables: choices for a household, by the kernel and by lastmile.
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
    rows = [
        row
        for row in load(PEERS)["trials"]
        if row["line"] == line and row["line_by"] == "emulate" and row["policy"] in SHORT
    ]
    rows.sort(key=lambda row: (SHORT.index(row["policy"]), row["remedy"]))

    def cells(row):
        live, sim = row["live"], row["simulated"]
        rates = [
            f"{live['download_bps'] / 1e3:.0f}",
            percent(live["download_of_bound"]),
            f"{live['upload_bps'] / 1e3:.0f}",
        ]
        pings = [report.milliseconds(live[key]) for key in ("ping_p50_ms", "ping_p99_ms")]
        other = ["–"] * 3
        if sim:
            other = [f"{sim[key] / 1e3:.0f}" for key in ("download_bps", "upload_bps")] + [
                report.milliseconds(sim["ping_p99_ms"])
            ]
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
            cells += (
                [percent(row["download"]), percent(row["upload"]), f"{row['p50_ms']:.0f}", f"{row['p99_ms']:.0f}"]
                if row
                else ["–"] * 4
            )
        return cells

    keys = sorted({key[:2] for key in points})
    headings = [
        "line",
        "share",
        "shape: download",
        "upload",
        "ping p50, ms",
        "p99",
        "HTB: download",
        "upload",
        "ping p50, ms",
        "p99",
    ]
    return grid(headings, [cells(*key) for key in keys], 2)


# Speed and memory.


def machine(path):
    found = load(path)
    return (
        textwrap.fill(f"{found['machine']}. Version {found['version']}, {found['date']}. {found['note']}", 150) + "\n"
    )


def simulations():
    """Times that were recorded on an idle machine."""

    def cells(row):
        instructions = count(row["instructions"] / row["data_packets"]) if row["instructions"] else "–"
        cells = [re.sub(r"^\(.\) ", "", row["name"]), instructions, f"{row['peak_bytes'] / 2**20:.1f}"]
        return cells + (
            [f"{row['wall_s']:.3g}", f"{row['wall_s'] * 1e9 / row['data_packets']:.0f}"] if row["wall_s"] else []
        )

    found = [
        cells(row)
        for row in load(SIMULATIONS)["rows"]
        if row["name"].startswith(("(", "run --json")) or " flows of " in row["name"]
    ]
    headings = ["simulation", "instructions a data packet", "peak memory, MiB", "wall time, s", "ns a data packet"]
    return grid(headings[: len(found[0])], found)


def costs(kind, what, keep):
    """Instructions and nanoseconds of each row, one column per number of flows."""
    found = [row[kind] for row in load(COSTS)["rows"] if row.get(kind) and keep(row[kind])]
    flows = sorted({cost["flows"] for cost in found})
    units = [unit for unit in ("instructions", "ns") if any(cost[f"{unit}_per_packet"] for cost in found)]
    at = {(cost["what"], cost["load"], cost["flows"]): cost for cost in found}

    def cell(unit, key):
        value = at.get(key, {}).get(f"{unit}_per_packet")
        return count(value) if value else "–"

    things = dict.fromkeys(key[:2] for key in at)
    rows = [[*thing, *(cell(unit, (*thing, number)) for unit in units for number in flows)] for thing in things]
    return grid([what, "packets", *(f"{unit} at {count(number)}" for unit in units for number in flows)], rows, 2)


def cells():
    found = {}
    for cost in (row["atm"] for row in load(COSTS)["rows"] if row.get("atm")):
        found.setdefault(cost["what"], {})[cost["trains"]] = cost["instructions_per_cell_hop"]
    rows = [
        [what, *(f"{ways[trains]:.0f}" if ways.get(trains) else "–" for trains in (False, True))]
        for what, ways in found.items()
    ]
    return grid(["load", "cell by cell", "in trains"], rows)


def carried():
    """Packets a second of processor time at 100 000 flows, by path and policy."""
    found = {}
    for row in live("forwarded by"):
        if row["flows"] == "100000" and row["way"] != "bare forwarder":
            found.setdefault((row["forwarded by"], row["way"]), {})[int(row["bytes"])] = float(row["per CPU second"])
    rows = [
        [*key, *(count(sizes[size]) for size in (64, 1500)), f"{sizes[1500] * 1500 * 8 / 1e9:.1f}"]
        for key, sizes in found.items()
    ]
    return grid(["path", "policy", "64 bytes, packets/s", "1500 bytes, packets/s", "1500 bytes, Gbit/s"], rows, 2)


def live(heading):
    """Rows of real packets with this heading."""
    found = [dict(zip(row["headings"], row["cells"])) for bench in load(CARRIED)["rows"] for row in bench["live"]]
    return [row for row in found if heading in row]


SHOWN = (
    "fifo",
    "sad keep",
    "ack-filter",
    "ack-collapsing",
    "ack-pacing",
    "tbf",
    "codel",
    "fq-codel of 1024",
    "red",
    "sfq",
    "drr",
    "wfq",
    "wf2q-plus",
    "cake of flows",
)
TABLES = {
    "claims": lambda: printed(report.claims, load(PEERS)["trials"]),
    "clocks": peers_jumps,
    **{f"short {line}": lambda line=line: peers_short(line) for line in ("bridged", "pppoa")},
    **{f"all {line}": lambda line=line: peers(line) for line in report.LINES if line not in ("clock", "newer")},
    "margins": margins,
    "simulations machine": lambda: machine(SIMULATIONS),
    "costs machine": lambda: machine(COSTS),
    "simulations": simulations,
    "queues": lambda: costs("queue", "discipline", lambda cost: cost["load"] == "mixed" and shown(cost["what"])),
    "datapath": lambda: costs("datapath", "between the ports", lambda cost: cost["flows"] <= 100_000),
    "cells": cells,
    "carried machine": lambda: machine(CARRIED),
    "carried": carried,
    **newer.TABLES,
    **what_helps.TABLES,
}


def shown(discipline):
    return (
        discipline in SHOWN
        or discipline.startswith(("htb of 1", "cbq of 1", "priority"))
        and not discipline.endswith(" 1 class")
    )


def record(files, note, times):
    """Writes the benchmark's output to result files: one for whole simulations, one for costs of a packet or cell, one
    for real packets."""
    kinds = {SIMULATIONS: [], COSTS: [], CARRIED: []}
    for row in (row for file in files for row in json.loads(pathlib.Path(file).read_text())):
        cost = row.get("queue") or row.get("datapath") or row.get("atm")
        kinds[COSTS if cost else CARRIED if row.get("live") else SIMULATIONS].append(row)
        if not times:
            row["wall_s"] = None
            (cost or {}).update({key: None for key in cost or {} if key.startswith("ns_")})
    cpu = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*:\s*(.+)", cpu)
    processor = model.group(1) if model else platform.machine()
    kernel = platform.release().split("-")[0]
    head = {
        "machine": f"{processor}, {os.cpu_count()} processors, Linux {kernel}",
        "version": re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.M).group(1),
        "date": datetime.date.today().isoformat(),
        "note": note,
    }
    for path, rows in kinds.items():
        if rows:
            write(path, head, rows)


def write(path, head, rows):
    lines = "".join(f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items())
    path.write_text("{\n" + lines + '"rows": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 where a page differs")
    parser.add_argument("--record", nargs="+", metavar="FILE", help="JSON that the benchmark printed")
    parser.add_argument("--note", default="", help="the build and the other work of the machine")
    parser.add_argument("--without-times", action="store_true", help="record no times")
    options = parser.parse_args()
    if options.record:
        record(options.record, options.note, not options.without_times)
    stale = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text()
        for name in (found[2] for found in TABLE.finditer(text) if found[2] not in TABLES):
            sys.exit(f"{page.relative_to(ROOT)}: no table is called {name}; tables are {', '.join(TABLES)}")
        new = TABLE.sub(lambda found: found[1] + TABLES[found[2]]() + found[3], text)
        if new != text:
            stale.append(page.relative_to(ROOT))
            if not options.check:
                page.write_text(new)
    for page in stale:
        print(
            f"{page}: {'differs from its result file: scripts/tables.py writes it' if options.check else 'written'}",
            file=sys.stderr,
        )
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
