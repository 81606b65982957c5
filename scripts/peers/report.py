"""Tables of a comparison, from the files in its folder: prints Markdown, and writes results.json beside them.

    report.py FOLDER
"""

import json
import pathlib
import sys

LINES = {
    "bridged": ("2 Mbit/s down, 512 kbit/s up, bridged-vcmux-fcs", 2e6, 512e3, 28),
    "pppoa": ("8 Mbit/s down, 768 kbit/s up, pppoa-vcmux", 8e6, 768e3, 10),
}
NAMES = {
    "none": "nothing",
    "ack-priority-and-ping": "ACK class",
    "one-fq-codel": "FQ-CoDel",
    "cake-plain": "CAKE",
    "cake": "CAKE with its ACK filter",
    "sad-cbq-and-ping": "sad-cbq",
    "both-90": "ACK class; downstream shaped to 90 %",
    "both-97": "ACK class; downstream shaped to 97 %",
}
BY = {"none": "", "tc": "kernel, `tc`", "shape": "`lastmile shape`"}


def bound(rate, overhead):
    """Payload of full packets in their cells, bit/s."""
    return rate / (-(-(1500 + overhead) // 48) * 424) * 1460 * 8


def simulated(folder, line, policy):
    path = folder / f"simulated-{line}-{policy}.json"
    if not path.exists():
        return None
    document = json.loads(path.read_text())
    phase = document["phases"][-1]
    goodput = {flow["name"]: flow["goodput_bps"] for flow in phase["flows"]}
    up = next(link for link in phase["links"] if link["name"] == "up")
    rtt = document["probes"][0]["rtt_s"]
    return {
        "download_bps": goodput["download"],
        "upload_bps": goodput["upload"],
        "upload_busy": up["utilisation"],
        "ping_p50_ms": rtt["p50"] * 1e3,
        "ping_p99_ms": rtt["p99"] * 1e3,
    }


def rows(folder):
    for entry in (folder / "list").read_text().splitlines():
        name, remedy, line_by, policy = entry.split(",")[:4]
        line = name.split("-")[0]
        policy = pathlib.PurePath(policy).stem
        path = folder / f"{name}.json"
        if not path.exists():
            continue
        live = json.loads(path.read_text())
        _, down, up, overhead = LINES[line]
        yield {
            "line": line,
            "line_by": line_by,
            "remedy": remedy,
            "policy": policy,
            "live": {
                "download_bps": live["download_bps"],
                "upload_bps": live["upload_bps"],
                "upload_busy": live["upload_cells_bps"] / up,
                "ping_p50_ms": live["ping_ms"]["p50"],
                "ping_p99_ms": live["ping_ms"]["p99"],
                "ping_replies": live["ping_ms"]["replies"],
                "ping_sent": live["ping_ms"]["sent"],
                "processor_busy": live["processor_busy"],
                "lateness_s": (live.get("emulate") or {}).get("lateness_s"),
            },
            "simulated": simulated(folder, line, policy),
            "download_bound_bps": bound(down, overhead),
        }


def milliseconds(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def table(line, found):
    print(f"## {LINES[line][0]}\n")
    print("| remedy | by | line by | download, kbit/s | of its bound | upload, kbit/s | its cells | ping p50, ms | p99 | processor |", end="")
    print(" simulated: download | upload | p50 | p99 |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    order = {"none": 0, "tc": 1, "shape": 2}
    for row in sorted(found, key=lambda row: (row["line_by"] != "emulate", order[row["remedy"]])):
        live, sim = row["live"], row["simulated"]
        cells = [
            NAMES.get(row["policy"], row["policy"]),
            BY[row["remedy"]],
            "`emulate`" if row["line_by"] == "emulate" else "kernel",
            f"{live['download_bps'] / 1e3:.0f}",
            f"{live['download_bps'] / row['download_bound_bps']:.1%}".replace("%", " %"),
            f"{live['upload_bps'] / 1e3:.0f}",
            f"{live['upload_busy']:.1%}".replace("%", " %"),
            milliseconds(live["ping_p50_ms"]) if live["ping_p50_ms"] is not None else "–",
            milliseconds(live["ping_p99_ms"]) if live["ping_p99_ms"] is not None else "–",
            # A real machine has other work, too.
            f"{live['processor_busy']:.1%}".replace("%", " %") if live["processor_busy"] < 0.9 else "–",
        ]
        if sim:
            cells += [f"{sim['download_bps'] / 1e3:.0f}", f"{sim['upload_bps'] / 1e3:.0f}", milliseconds(sim["ping_p50_ms"]), milliseconds(sim["ping_p99_ms"])]
        else:
            cells += ["–"] * 4
        print("| " + " | ".join(cells) + " |")
    print()


def main():
    folder = pathlib.Path(sys.argv[1])
    found = list(rows(folder))
    kernel = (folder / "kernel").read_text().strip()
    document = {"kernel": kernel, "trials": found}
    (folder / "results.json").write_text(json.dumps(document, indent=2) + "\n")
    print(f"Linux {kernel}\n")
    for line in LINES:
        of_line = [row for row in found if row["line"] == line]
        if of_line:
            table(line, of_line)


main()
