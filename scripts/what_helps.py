#!/usr/bin/env python3
r"""What helps on which line: each built-in policy on each line of the library, simulated and with real packets.

    scripts/what_helps.py LASTMILE                 simulates, and writes docs/measured/what-helps.json
    scripts/what_helps.py LASTMILE --live          as root: six of the lines with real packets, into the same file
    scripts/what_helps.py LASTMILE --lines gpon,lte    only lines whose names contain one of these; the others keep
                                                       their results
    scripts/what_helps.py LASTMILE --policies cake     only these policies; the others keep their results
    scripts/what_helps.py LASTMILE --jobs 4        four simulations at a time

LASTMILE is the program. `scripts/tables.py` prints the tables of docs/studies/what-helps.md from the result file.

Each row is a mean over seeds, with the half width of its 95 % interval. A row is reproduced by

    lastmile new --line LINE --home HOME --out FILE
    lastmile compare FILE --policy POLICY --seeds 5 --set traffic.ping.protocol=udp --duration TIME \
        --set traffic.UPLOAD.start=TIME

The ping is one over UDP without a code point, which no policy treats specially.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import platform
import re
import resource
import subprocess
import sys
import tempfile
import textwrap

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs/measured/what-helps.json"
# A home, and the name of its upload.
HOMES = {"family": "backup", "home-office": "upload"}
# The second home runs on lines of these technologies; the first on all.
SECOND = ("adsl2plus-12", "vdsl2-50", "docsis-100", "gpon-300", "lte")
LIVE = ("adsl2plus-12-1", "vdsl2-50-10", "docsis-100-10", "gpon-300-150", "lte-40-10", "leo-200-20")
LIVE_POLICIES = ("none", "cake")
LIVE_RUNS = 2
SEEDS = 5
# Columns of the comparison, and their names here.
MEASURES = {
    "download": "download_bps",
    "of baseline": "download_share",
    "upload": "upload_bps",
    "probe p50": "ping_p50_s",
    "probe p99": "ping_p99_s",
    "call R": "call_r",
    "conference R": "conference_r",
    "game p99": "game_p99_s",
    "video stalled": "film_stalled_share",
    "up queue": "up_queue_s",
    "down queue": "down_queue_s",
}


# Those that a run has only if the application works in it.
OF_WORKING = ("game p99", "video stalled")


def ran(*command):
    """What a command printed."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def times(line):
    """Simulated time in s, and when the upload begins: changing lines take longer, and fast ones less, since each
    packet is simulated."""
    if line["name"].startswith("leo"):
        return 65, 5
    if line["name"].startswith(("lte", "5g", "geo")):
        return 40, 5
    rates = line["down_bps"] + line["up_bps"]
    return (6, 2) if rates > 900e6 else (10, 3) if rates > 200e6 else (20, 5)


def policies(lastmile):
    listed = ran(lastmile, "policy", "list").splitlines()[2:]
    return ["none", *(row.split()[0] for row in listed if row.strip() and not row.startswith("   "))]


def compared(lastmile, folder, line, home, names):
    """Rows of one line and home."""
    length, start = times(line)
    upload = HOMES[home]
    path = folder / f"{line['name']}-{home}.toml"
    path.write_text(ran(lastmile, "new", "--line", line["name"], "--home", home))
    sets = ["--set", f"traffic.{upload}.start={start} s", "--set", "record.series=false"]
    # A 99th percentile needs 100 replies.
    sets += ["--set", f"traffic.ping.interval={(length - start) * 1000 // 130} ms"] if length < 20 else []
    compare = [
        lastmile,
        "compare",
        path,
        "--policy",
        ",".join(names),
        "--seeds",
        str(SEEDS),
        "--duration",
        f"{length} s",
        *sets,
    ]
    found = json.loads(ran(*compare, "--set", "traffic.ping.protocol=udp", "--json", "--threads", "1"))
    alone = uploads_alone(lastmile, path, upload, length)
    rows = []
    for mean in found["means"]:
        values = {
            MEASURES[m["name"]]: [None, None]
            if m["name"] in OF_WORKING and m["runs"] < SEEDS
            else [m["mean"], m["ci95"]]
            for m in mean["measures"]
            if m["name"] in MEASURES
        }
        values["upload_share"] = [value / alone for value in values["upload_bps"]]
        rows.append({"line": line["name"], "home": home, "policy": mean["label"], **values})
    return rows


def uploads_alone(lastmile, path, upload, length):
    """Mean goodput of the upload without other traffic, over seeds."""
    head, *blocks = path.read_text().split("\n[[traffic]]\n")
    block = next(block for block in blocks if f'name = "{upload}"' in block)
    alone = path.with_suffix(".alone.toml")
    alone.write_text(f"{head}\n[[traffic]]\n{block}")
    sets = ["--set", f"traffic.{upload}.start=0 s", "--set", "record.series=false", "--duration", f"{length} s"]
    runs = [
        json.loads(ran(lastmile, "run", alone, *sets, "--seed", str(seed), "--json")) for seed in range(1, SEEDS + 1)
    ]
    return sum(run["flows"][0]["goodput_bps"] for run in runs) / SEEDS


def live(lastmile, folder, name, policy):
    """One line and policy with real hosts, next to its simulation."""
    path = folder / f"{name}.toml"
    head, *blocks = ran(lastmile, "new", "--line", name, "--home", "family").split("\n[[traffic]]\n")
    # TCP and pings: the call and the game are left out.
    path.write_text("\n[[traffic]]\n".join([head, *(block for block in blocks if 'kind = "voice"' not in block)]))
    length, start = (35, 5) if name.startswith(("leo", "lte")) else (25, 5)
    sets = ["--set", f"traffic.backup.start={start} s", "--set", f"access.policy={policy}", "--duration", f"{length} s"]
    found = json.loads(ran(lastmile, "lab", path, *sets, "--both", "--runs", str(LIVE_RUNS), "--plain", "--json"))
    rows = [row for row in found["rows"] if row["phase"] == found["rows"][-1]["phase"]]
    wanted = {("download", "goodput_bps"), ("backup", "goodput_bps"), ("ping", "rtt_p50_s"), ("ping", "rtt_p99_s")}
    keep = {f"{row['of']} {row['measure']}": row for row in rows if (row["of"], row["measure"]) in wanted}
    fields = ("simulated", "median", "least", "most")
    return {
        "line": name,
        "policy": policy,
        "runs": LIVE_RUNS,
        **{key: [row[field] for field in fields] for key, row in keep.items()},
    }


def head(note):
    cpu = re.search(r"model name\s*:\s*(.+)", pathlib.Path("/proc/cpuinfo").read_text())
    processor = cpu.group(1) if cpu else platform.machine()
    kernel = platform.release().split("-")[0]
    return {
        "machine": f"{processor}, {os.cpu_count()} processors, Linux {kernel}",
        "version": re.search(r'^version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.M).group(1),
        "date": datetime.date.today().isoformat(),
        "note": note,
    }


def write(found):
    lines = "".join(
        f"{json.dumps(key)}: {json.dumps(value)},\n" for key, value in found.items() if not isinstance(value, list)
    )
    lists = ",\n".join(f'"{key}": [\n' + ",\n".join(map(json.dumps, found[key])) + "\n]" for key in ("rows", "live"))
    RESULTS.write_text("{\n" + lines + lists + "\n}\n")


def rounded(value):
    """Six digits."""
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def used():
    """Processor time of all programs that ended, in s."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def put(rows, new, keys, order, names):
    """The rows with the new ones in place of those that have their keys, in the order of the library, of the homes and
    of the policies."""
    key = lambda row: tuple(row[name] for name in keys)  # noqa: E731
    replaced = {key(row) for row in new}
    kept = [row for row in rows if key(row) not in replaced and row["line"] in order and row["policy"] in names]
    homes = list(HOMES)

    def position(row):
        return order[row["line"]], homes.index(row.get("home", homes[0])), names.index(row["policy"])

    return sorted(kept + new, key=position)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lastmile", metavar="LASTMILE")
    parser.add_argument("--lines", default="", help="only lines whose names contain one of these")
    parser.add_argument("--policies", default="", help="only these, with commas between")
    parser.add_argument("--live", action="store_true", help="real packets in place of simulations; as root")
    parser.add_argument("--jobs", type=int, default=1, help="simulations at a time")
    parser.add_argument("--note", default="", help="the build and the other work of the machine")
    options = parser.parse_args()
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"rows": [], "live": []}
    found.update(head(options.note or found.get("note", "")))
    library = json.loads(ran(options.lastmile, "new", "--list", "--json"))
    order = {line["name"]: number for number, line in enumerate(library["lines"])}
    lines = [line for line in library["lines"] if any(part in line["name"] for part in options.lines.split(","))]
    names = policies(options.lastmile)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        folder = pathlib.Path(folder)
        if options.live:
            for line in (line["name"] for line in lines if line["name"] in LIVE):
                rows = rounded([live(options.lastmile, folder, line, policy) for policy in LIVE_POLICIES])
                found["live"] = put(found["live"], rows, ("line", "policy"), order, names)
                print(f"{line}, live", file=sys.stderr)
                write(found)
        else:
            asked = options.policies.split(",") if options.policies else names
            pairs = [
                (line, home)
                for line in lines
                for number, home in enumerate(HOMES)
                if number == 0 or line["name"].startswith(SECOND)
            ]
            futures = [pool.submit(compared, options.lastmile, folder, line, home, asked) for line, home in pairs]
            for future in concurrent.futures.as_completed(futures):
                rows = rounded(future.result())
                found["rows"] = put(found["rows"], rows, ("line", "home", "policy"), order, names)
                print(f"{used():.0f} s of processor time: {rows[0]['line']} {rows[0]['home']}", file=sys.stderr)
                write(found)
            if not options.lines and not options.policies:
                found["seconds"] = round(used())
                write(found)


# Tables of the page.


def table(headings, rows, left=1):
    lines = [headings, ["---"] * left + ["---:"] * (len(headings) - left), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def results():
    return json.loads(RESULTS.read_text())


def names():
    return list(dict.fromkeys((row["line"], row["home"]) for row in results()["rows"]))


def mean_of(row, key):
    """The mean; None where some run has no value."""
    return (row.get(key) or [None])[0]


def shown(row, key):
    """A mean and its interval in the unit of the page; the interval is left out where it is less than a unit of the
    last digit."""
    mean, ci = row.get(key) or (None, None)
    if mean is None:
        return "–"
    scale, digits = {"share": (100, 0), "s": (1000, 0), "r": (1, 0)}[key.rsplit("_", 1)[-1]]
    mean, ci = mean * scale, ci * scale
    digits = 1 if scale == 1000 and mean < 10 else digits
    return f"{mean:.{digits}f}" + (f" ±{ci:.{digits}f}" if ci >= 0.5 * 10**-digits else "")


# Columns: heading, key, whether more is better.
COLUMNS = [
    ("download, %", "download_share", True),
    ("upload, %", "upload_share", True),
    ("ping p50, ms", "ping_p50_s", False),
    ("ping p99, ms", "ping_p99_s", False),
    ("call R", "call_r", True),
    ("conference R", "conference_r", True),
    ("game p99, ms", "game_p99_s", False),
    ("film stalls, %", "film_stalled_share", False),
]

# Each application that a person would notice, and when it works. Below R of 70 many users are dissatisfied (ITU-T
# G.107, annex B). A first-person game suffers above 100 ms of latency (Claypool and Claypool, CACM 49(11), 2006); a
# game has no 99th percentile, and does not work, where more than 1 % of its commands have no effect.
WORKS = [
    ("call", "call_r", lambda mean: mean >= 70),
    ("conference", "conference_r", lambda mean: mean >= 70),
    ("game", "game_p99_s", lambda mean: mean <= 0.1),
    ("film", "film_stalled_share", lambda mean: mean < 0.01),
]
# Columns of the summary.
SUMMARY = [column for column in COLUMNS if column[1] in ("download_share", "upload_share", "ping_p99_s")]


def best(rows, key, more):
    """The value that is printed in bold, and what its interval reaches: rows within it are as good."""
    known = [row[key] for row in rows if mean_of(row, key) is not None]
    if not known:
        return None
    mean, ci = (max if more else min)(known, key=lambda value: value[0])
    return mean - ci if more else mean + ci


def of_line(line, home):
    rows = [row for row in results()["rows"] if (row["line"], row["home"]) == (line, home)]
    # A home has some of the applications.
    columns = [column for column in COLUMNS if any(row.get(column[1]) for row in rows)]
    limits = {key: best(rows, key, more) for _, key, more in columns}

    def cell(row, key, more):
        text = shown(row, key)
        mean = mean_of(row, key)
        good = mean is not None and (mean >= limits[key] if more else mean <= limits[key])
        return f"**{text}**" if good else text

    cells = [[f"`{row['policy']}`", *(cell(row, key, more) for _, key, more in columns)] for row in rows]
    return table(["policy", *(heading for heading, *_ in columns)], cells)


def working(row):
    """The applications that work, of those that the home has."""
    return [name for name, key, works in WORKS if mean_of(row, key) is not None and works(mean_of(row, key))]


def kept(row):
    """The mean of what both directions keep."""
    return (row["download_share"][0] + row["upload_share"][0]) / 2


def chosen(rows):
    """The policy under which the most applications work; of several the one that keeps the most goodput."""
    return max(rows, key=lambda row: (len(working(row)), kept(row)))


def summary():
    cells = []
    for line, home in names():
        rows = [row for row in results()["rows"] if (row["line"], row["home"]) == (line, home)]
        none = next(row for row in rows if row["policy"] == "none")
        row = chosen(rows)

        def columns(row):
            return [", ".join(working(row)) or "nothing", *(shown(row, key) for _, key, _ in SUMMARY)]

        cells.append([f"`{line}`", home, *columns(none), f"`{row['policy']}`", *columns(row)])
    names_of = ["works", *(heading for heading, *_ in SUMMARY)]
    headings = ["line", "home", f"as it is: {names_of[0]}", *names_of[1:], "policy", *names_of]
    return table(headings, cells, 2)


def confirmed():
    cells = []
    for row in results()["live"]:
        shown = []
        for key, scale, digits in (
            ("download goodput_bps", 1e-6, 1),
            ("backup goodput_bps", 1e-6, 2),
            ("ping rtt_p50_s", 1e3, 0),
            ("ping rtt_p99_s", 1e3, 0),
        ):
            simulated, median, least, most = (value * scale for value in row[key])
            spread = (
                f" ({least:.{digits}f} to {most:.{digits}f})" if f"{least:.{digits}f}" != f"{most:.{digits}f}" else ""
            )
            shown += [f"{simulated:.{digits}f}", f"{median:.{digits}f}{spread}"]
        cells.append([f"`{row['line']}`", f"`{row['policy']}`", *shown])
    headings = [
        "line",
        "policy",
        "download, Mbit/s: simulated",
        "live",
        "backup, Mbit/s: simulated",
        "live",
        "ping p50, ms: simulated",
        "live",
        "ping p99, ms: simulated",
        "live",
    ]
    return table(headings, cells, 2)


def machine():
    found = results()
    took = (
        f" The simulations took {found['seconds'] / 60:.0f} minutes of one processor." if found.get("seconds") else ""
    )
    return (
        textwrap.fill(f"{found['machine']}. Version {found['version']}, {found['date']}. {found['note']}{took}", 150)
        + "\n"
    )


def every():
    """All tables, line by line."""
    about = {}
    for path in sorted((ROOT / "library/lines").glob("*.toml")):
        about[path.stem] = re.search(r'^about = "(.+)"$', path.read_text(), re.M).group(1)
    sections = [f"### `{line}`, {home}\n\n{about.get(line, line)}.\n\n{of_line(line, home)}" for line, home in names()]
    return "\n" + "\n".join(sections) + "\n"


TABLES = {"helps machine": machine, "helps summary": summary, "helps lines": every, "helps live": confirmed}

if __name__ == "__main__":
    main()
