"""Tables of a comparison, from the files in its folder: prints Markdown, and writes results.json to it.

report.py FOLDER
"""

import json
import pathlib
import sys

LINES = {
    "bridged": ("2 Mbit/s down, 512 kbit/s up, bridged-vcmux-fcs", 2e6, 512e3, 28),
    "pppoa": ("8 Mbit/s down, 768 kbit/s up, pppoa-vcmux", 8e6, 768e3, 10),
    "wide": ("2 Mbit/s down, 512 kbit/s up, windows of 1 MiB, the ping from the first second on", 2e6, 512e3, 28),
    "full2": ("2 Mbit/s down, 512 kbit/s up, windows of 256 KiB, margin by margin", 2e6, 512e3, 28),
    "full8": ("8 Mbit/s down, 768 kbit/s up, windows of 256 KiB, margin by margin", 8e6, 768e3, 10),
    "whole": ("2 Mbit/s down, 512 kbit/s up, windows of 44 whole segments", 2e6, 512e3, 28),
    "newer": ("2 Mbit/s down, 512 kbit/s up, queues of newer kernels", 2e6, 512e3, 28),
    "clock": ("2 Mbit/s down, 512 kbit/s up, while the clocks jump", 2e6, 512e3, 28),
}
# The claims of full-both-ways: number of downloads, window in KiB.
LOADS = [(downloads, window) for downloads in (1, 4) for window in (64, 1024)]
CLAIMS = {
    f"claim{line}x{downloads}w{window}": (line, downloads, window) for line in (2, 8) for downloads, window in LOADS
}
BRIDGED, PPPOA = LINES["bridged"], LINES["pppoa"]
for name, (line, downloads, window) in CLAIMS.items():
    heading, *rest = {2: BRIDGED, 8: PPPOA}[line]
    LINES[name] = (f"{heading}, {downloads} download{'s' if downloads > 1 else ''}, windows of {window} KiB", *rest)
NAMES = {
    "none": "nothing",
    "ack-priority-and-ping": "ACK class",
    "one-fq-codel": "FQ-CoDel",
    "cake-plain": "CAKE",
    "cake": "CAKE with its ACK filter",
    "sad-cbq-and-ping": "sad-cbq, the ping in the ACK class",
    "one-pie": "PIE at 97 %",
    "one-fq-pie": "FQ-PIE at 97 %",
    "hfsc-and-ping": "HFSC at 97 %: ACKs, the ping, the rest",
    "both-90": "ACK class; downstream shaped to 90 %",
    "both-97": "ACK class; downstream shaped to 97 %",
    **{f"margin-{share}": f"ACK class; both ways shaped to {share} %" for share in (90, 93, 95, 97, 98, 99)},
    **{
        f"margin-fifo-{share}": f"ACK class; both ways shaped to {share} %, FIFO in place of FQ-CoDel"
        for share in (90, 97)
    },
    **{f"full-{share}": f"full-both-ways, {share} % of the downstream" for share in (90, 95, 97, 99)},
    **{f"full-htb-{share}": f"full-both-ways, {share} % both ways" for share in (90, 95, 97, 99)},
}
JUMPS = {
    "before": "no change",
    "ahead": "the wall clock is set an hour ahead",
    "back": "the wall clock is set back two hours",
    "stop": "both programs are stopped for 0.5 s",
}
LINE_BY = {"emulate": "`emulate`", "kernel": "kernel", "netem": "kernel, netem"}
BY = {"none": "", "tc": "kernel, `tc`", "shape": "`lastmile shape`"}


def bound(rate, overhead):
    """Payload rate of full packets in cells, bit/s."""
    return rate / (-(-(1500 + overhead) // 48) * 424) * 1460 * 8


def simulated(folder, name):
    path = folder / name / "summary.json"
    if not path.exists():
        return None
    document = json.loads(path.read_text())
    phase = document["phases"][-1]
    goodput = {"download": 0.0, "upload": 0.0}
    for flow in phase["flows"]:
        goodput["upload" if flow["name"] == "upload" else "download"] += flow["goodput_bps"]
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
        name, remedy, line_by, policy, *_, offset = [*entry.split(","), "", ""][:13]
        line = name.split("-")[0]
        policy = pathlib.PurePath(policy).stem
        path = folder / name / "trial.json"
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
                "download_of_bound": live["download_bps"] / bound(down, overhead),
                "upload_bps": live["upload_bps"],
                "upload_busy": live["upload_cells_bps"] / up,
                "ping_p50_ms": live["ping_ms"]["p50"],
                "ping_p99_ms": live["ping_ms"]["p99"],
                "ping_replies": live["ping_ms"]["replies"],
                "ping_sent": live["ping_ms"]["sent"],
                "processor_busy": live["processor_busy"],
                "after_jumps": live["after_jumps"],
                "conservation": live["conservation"],
            },
            "simulated": simulated(folder, name.replace(f"-{remedy}-{line_by}-", "-simulated-", 1)),
            "download_bound_bps": bound(down, overhead),
            "ping_allowed_ms": allowed_ms(down, up, overhead),
            "upload_after_ms": int(offset or 0),
        }


def allowed_ms(down, up, overhead):
    """Limit for the ping: in each direction its 84 bytes, 4 ms and a full packet before it; and 10 ms."""
    sizes = (-(-(84 + overhead) // 48) + -(-(1500 + overhead) // 48)) * 424
    return sizes / up * 1e3 + sizes / down * 1e3 + 18


def milliseconds(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def table(found):
    print(
        "| remedy | by | line by | download, kbit/s | of its bound | upload, kbit/s | its cells "
        "| ping p50, ms | p99 | processor |",
        end="",
    )
    print(" simulated: download | upload | p50 | p99 |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    order = {"none": 0, "tc": 1, "shape": 2}
    for row in sorted(found, key=lambda row: (row["line_by"] != "emulate", order[row["remedy"]])):
        live, sim = row["live"], row["simulated"]
        cells = [
            NAMES.get(row["policy"], row["policy"])
            + (f", the upload {row['upload_after_ms']} ms later" if row["upload_after_ms"] else ""),
            BY[row["remedy"]],
            LINE_BY[row["line_by"]],
            f"{live['download_bps'] / 1e3:.0f}",
            f"{live['download_of_bound']:.1%}".replace("%", " %"),
            f"{live['upload_bps'] / 1e3:.0f}",
            f"{live['upload_busy']:.1%}".replace("%", " %"),
            milliseconds(live["ping_p50_ms"]) if live["ping_p50_ms"] is not None else "–",
            milliseconds(live["ping_p99_ms"]) if live["ping_p99_ms"] is not None else "–",
            # A real machine has other load; a row without a pause must say so.
            f"{live['processor_busy']:.1%}".replace("%", " %") if live["processor_busy"] < 0.9 else "busy machine",
        ]
        if sim:
            cells += [
                f"{sim['download_bps'] / 1e3:.0f}",
                f"{sim['upload_bps'] / 1e3:.0f}",
                milliseconds(sim["ping_p50_ms"]),
                milliseconds(sim["ping_p99_ms"]),
            ]
        else:
            cells += ["–"] * 4
        print("| " + " | ".join(cells) + " |")
    print()


def curve(found):
    """The margins of full-both-ways in the form of scripts/both-ways.py, for crates/results/examples/both-ways.rs."""
    for row in found:
        if row["line"] not in ("full2", "full8") or row["remedy"] == "none":
            continue
        live = row["live"]
        yield {
            "line": {"full2": "2M", "full8": "8M"}[row["line"]],
            "remedy": {"shape": "shape", "tc": "htb"}[row["remedy"]],
            "share": row["policy"].rsplit("-", 1)[1],
            "download": round(live["download_of_bound"], 4),
            "upload": round(live["upload_busy"], 4),
            "p50_ms": live["ping_p50_ms"],
            "p99_ms": live["ping_p99_ms"],
            "allowed_ms": round(row["ping_allowed_ms"], 2),
        }


def claims(found):
    """Whether full-both-ways keeps 97 % of the upload's bound, 95 % of the downloads', and the ping within its limit:
    worst of the runs."""
    print(
        "| line | downloads | windows | runs | download, at least | upload, its cells, at least "
        "| ping p99, ms, at most | allowed | all three |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, (line, downloads, window) in CLAIMS.items():
        runs = [row for row in found if row["line"] == name]
        if not runs:
            continue
        kept = [
            (
                row["live"]["download_of_bound"],
                row["live"]["upload_busy"],
                row["live"]["ping_p99_ms"],
                row["ping_allowed_ms"],
            )
            for row in runs
        ]
        down, up, p99, allowed = zip(*kept)
        hold = sum(one[0] >= 0.95 and one[1] >= 0.97 and one[2] <= one[3] for one in kept)
        cells = [
            LINES[name][0].split(",")[0],
            downloads,
            f"{window} KiB",
            len(runs),
            f"{min(down):.1%}",
            f"{min(up):.1%}",
            milliseconds(max(p99)),
        ]
        print(
            "| "
            + " | ".join(
                str(cell).replace("%", " %") for cell in [*cells, milliseconds(allowed[0]), f"{hold} of {len(runs)}"]
            )
            + " |"
        )
    print()


def jumps(row):
    """Results after each jump of the clocks."""
    live = row["live"]
    if not live["after_jumps"]:
        return
    print("| event | download, kbit/s | upload, kbit/s | ping p50, ms | max |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for part in live["after_jumps"]:
        cells = [JUMPS[part["what"]]]
        cells += [f"{part['goodput_bps'][name] / 1e3:.0f}" for name in ("download", "upload")]
        cells += [milliseconds(part[key] * 1e3) if part[key] is not None else "–" for key in ("rtt_p50_s", "rtt_max_s")]
        print("| " + " | ".join(cells) + " |")
    packets = live["conservation"]["packets"]
    counts = ", ".join(f"{what.replace('_', ' ')} {count}" for what, count in packets.items())
    conserved = "holds" if live["conservation"]["holds"] else "DOES NOT HOLD"
    print(f"\nPackets on the line: {counts}; conservation {conserved}.\n")


def main():
    folder = pathlib.Path(sys.argv[1])
    found = list(rows(folder))
    kernel = (folder / "kernel").read_text().strip()
    document = {"kernel": kernel, "trials": found}
    (folder / "results.json").write_text(json.dumps(document, indent=2) + "\n")
    points = ",\n".join(json.dumps(point) for point in curve(found))
    (folder / "curve.json").write_text(f"[\n{points}\n]\n")
    print(f"Linux {kernel}\n")
    if any(row["line"] in CLAIMS for row in found):
        print("## Claims of full-both-ways\n")
        claims(found)
    for line in LINES:
        of_line = [row for row in found if row["line"] == line]
        if of_line:
            print(f"## {LINES[line][0]}\n")
            table(of_line)
            for row in of_line:
                jumps(row)


if __name__ == "__main__":
    main()
