"""Results of newer.sh, and the tables of docs/studies/newer-kernels.md.

newer.py FOLDER      writes FOLDER/results.json, which docs/measured/newer-kernels.json is a copy of
"""

import contextlib
import io
import json
import pathlib
import sys

import report

MEASURED = pathlib.Path(__file__).resolve().parents[2] / "docs/measured/newer-kernels.json"
# Words of struct tcp_info behind tcpi_total_rto_time, in the kernels that have them.
RECEIVED_CE, DELIVERED_CE_BYTES, RECEIVED_CE_BYTES = "received_ce", "delivered_ce_bytes", "received_ce_bytes"
QUEUES = {"fifo": "FIFO", "sad": "SAD", "ack-filter": "ACK filter", "cake-ack-filter": "CAKE's ACK filter"}


def read(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def counter(links, link, name):
    return sum(
        one["value"] for found in links if found["name"] == link for one in found["counters"] if one["name"] == name
    )


def words(account):
    """The counters of Accurate ECN."""
    names = (
        RECEIVED_CE,
        "delivered_e1_bytes",
        "delivered_e0_bytes",
        DELIVERED_CE_BYTES,
        "received_e1_bytes",
        "received_e0_bytes",
        RECEIVED_CE_BYTES,
    )
    return dict(zip(names, account["words"]))


def marks(folder):
    """A run of accecn.sh: the marks of the line, and what each end counts of them."""
    server, client, line = (read(folder / f"{name}.json") for name in ("server", "client", "emulate"))
    simulated = read(folder / "simulated/summary.json")
    queue, control = folder.name.rsplit("-", 1)
    seconds = simulated["duration_s"]
    return {
        "queue": queue,
        "control": control,
        "marked": counter(line["links"], "down", "ce_marked"),
        "received_ce": words(client)[RECEIVED_CE],
        "delivered_ce": server["delivered_ce"],
        "received_ce_bytes": words(client)[RECEIVED_CE_BYTES],
        "delivered_ce_bytes": words(server)[DELIVERED_CE_BYTES],
        "acks_sent": client["packets_out"],
        "acks_received": server["packets_in"],
        "data_packets": server["data_out"],
        "retransmissions": server["retransmissions"],
        "goodput_bps": client["received"] * 8 / seconds,
        "simulated": {
            "goodput_bps": simulated["flows"][0]["goodput_bps"],
            "marked": counter(simulated["links"], "down", "ce_marked"),
            "acks_sent": simulated["flows"][0]["acks_sent"],
            "acks_received": simulated["flows"][0]["acks_received"],
        },
    }


def collect(folder):
    exact, trials = read(folder / "exact/results.json"), read(folder / "trials/results.json")
    runs = sorted(path for path in (folder / "accecn").iterdir() if (path / "server.json").exists())
    return {
        "kernel": trials["kernel"],
        "trials": trials["trials"],
        "experiments": exact["experiments"],
        "marks": [marks(run) for run in runs],
    }


# The tables.


def found(part):
    return read(MEASURED)[part]


def grid(headings, rows, left):
    lines = [headings, ["---"] * left + ["---:"] * (len(headings) - left), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def percent(share, digits=1):
    return f"{share * 100:.{digits}f} %"


def experiments(kind):
    return [one for one in found("experiments") if one["kind"] == kind]


def trials():
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        report.table(found("trials"))
    return text.getvalue().rstrip("\n") + "\n"


def departures():
    rows = []
    for one in experiments("departures"):
        for flow, theirs in one["kernel"]["classes"].items():
            own = one["ours"]["classes"][flow]
            rows.append(
                [
                    CLASSES[int(flow)],
                    theirs["packets"],
                    *(f"{side[key]:.2f}" for key in ("p50_ms", "max_ms") for side in (theirs, own)),
                ]
            )
    return grid(["class", "packets", "delay p50, ms: kernel", "ours", "largest, ms: kernel", "ours"], rows, 1)


CLASSES = [
    "`ls` alone, always backlogged",
    "`rt` concave: 800 kbit/s for 10 ms, then 100",
    "`rt` convex: nothing for 30 ms, then 400 kbit/s",
]


def shares():
    rows = []
    for one in experiments("shares"):
        theirs, own = one["kernel"], one["ours"]
        for flow, ideal in enumerate((1 / 8, 2 / 8, 5 / 8)):
            rows.append(
                [
                    f"{(250, 500, 1250)[flow]} kbit/s",
                    *(percent(value, 2) for value in (ideal, theirs["shares"][str(flow)], own["shares"][str(flow)])),
                ]
            )
        rows.append(["all, of 2 Mbit/s", "100.00 %", *(percent(side["rate_bps"] / 2e6, 2) for side in (theirs, own))])
    return grid(["class", "by its curve", "kernel", "ours"], rows, 1)


def aqms():
    rows = []
    for one in experiments("aqm"):
        many = len(one["kernel"]["classes"]) > 1
        for flow, theirs in one["kernel"]["classes"].items():
            own = one["ours"]["classes"][flow]
            name = one["about"] + (f": flow {int(flow) + 1}" if many else "")
            delays = [f"{side[key]:.1f}" for key in ("delay_p50_ms", "delay_p99_ms") for side in (theirs, own)]
            rows.append([name, *delays, *(percent(side["dropped"], 2) for side in (theirs, own))])
    return grid(
        ["load", "delay p50, ms: kernel", "ours", "p99, ms: kernel", "ours", "dropped: kernel", "ours"], rows, 1
    )


def impairments():
    def cells(side):
        if side["delay_p99_ms"] < 0.5:
            return ["–"] * 4
        row = [side["delay_mean_ms"], side["delay_deviation_ms"], side["delay_p99_ms"]]
        # A constant delay has no correlation.
        together = f"{side['delay_correlation']:.2f}" if side["delay_deviation_ms"] > 0.1 else "–"
        return [*(f"{value:.2f}" for value in row), together]

    rows = []
    for one in experiments("netem"):
        for name, side in (("kernel", one["kernel"]), ("ours", one["ours"])):
            lost = [percent(side["lost"], 2), f"{side['lost_in_a_row']:.2f}"] if side["lost"] else ["–"] * 2
            moved = percent(side["overtaken"], 1) if side["overtaken"] else "–"
            twice = percent(side["twice"], 2) if side["twice"] else "–"
            rows.append([f"`{one['about']}`" if name == "kernel" else "", name, *cells(side), *lost, moved, twice])
    headings = [
        "netem",
        "",
        "delay, ms: mean",
        "deviation",
        "p99",
        "correlation",
        "lost",
        "in a row",
        "overtaken",
        "twice",
    ]
    return grid(headings, rows, 2)


def counted():
    rows = []
    for one in sorted(found("marks"), key=lambda one: (one["control"], list(QUEUES).index(one["queue"]))):
        own = one["simulated"]
        rows.append(
            [
                QUEUES[one["queue"]],
                one["control"],
                *(one[key] for key in ("marked", "received_ce", "delivered_ce")),
                f"{one['acks_received']} of {one['acks_sent']}",
                f"{one['goodput_bps'] / 1e6:.2f}",
                f"{own['goodput_bps'] / 1e6:.2f}",
                f"{own['acks_received']} of {own['acks_sent']}",
            ]
        )
    headings = [
        "upstream",
        "sender",
        "marked by the line",
        "receiver's count",
        "sender's count",
        "ACKs that arrive",
        "Mbit/s",
    ]
    return grid([*headings, "simulated: Mbit/s", "ACKs that arrive"], rows, 2)


TABLES = {
    "newer trials": trials,
    "newer departures": departures,
    "newer shares": shares,
    "newer aqms": aqms,
    "newer netem": impairments,
    "newer marks": counted,
}


def rounded(value):
    """Numbers to six digits, as no table has more."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def main():
    folder = pathlib.Path(sys.argv[1])
    text = json.dumps(rounded(collect(folder)), indent=1)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
