#!/usr/bin/env python3
"""Both directions of an emulated line at full load, with real packets: the download that a remedy keeps, and the ping.

    client -- middlebox (lastmile shape, or the kernel's HTB) -- line (lastmile emulate) -- server

Each stands in a network namespace of its own, joined by veth pairs without offloads; TCP is the kernel's, with the
congestion control that is named. Downloads and an upload run from the beginning, a ping from the tenth second on.
Prints one line a run:

    scripts/both-ways.py                                    both lines, cubic and reno, the policy as it is
    scripts/both-ways.py --shares 85,90,95,97,98,99 --remedies shape,htb --tcp cubic --json > runs.json
    scripts/both-ways.py --tcp cubic --downloads 1,4 --window 65536,1048576 --offset 0,137,411,822,1507

The middlebox is `lastmile shape full-both-ways` with another share of the downstream, or what `lastmile tc
full-both-ways` makes of the same file: HTB with a size table, ACKs in a class of their own, the downstream through an
intermediate device. As root, on a machine that does nothing else: run one or two lines at a time (--parallel). Makes
and removes its own namespaces; no packet leaves them.
"""

import argparse
import ctypes
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
TCP_CONGESTION = 13
CELL_BITS = 424
FULL = 1500
PAYLOAD = 1448  # with timestamps

LINES = {
    "2M": {"down": 2_000_000, "up": 512_000, "link": "bridged-vcmux-fcs", "overhead": 28},
    "8M": {"down": 8_000_000, "up": 768_000, "link": "pppoa-vcmux", "overhead": 10},
}


def cells(line, size):
    """Cells of an IP packet; a bridged one has at least the 64 bytes of an Ethernet frame, 18 of which are around
    it."""
    if line["link"].startswith("bridged"):
        size = max(size, 46)
    return -(-(size + line["overhead"]) // 48)


def sh(*words, check=True):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if check and done.returncode:
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr.strip()}")
    return done


class Within:
    """This thread, in a network namespace."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(f"/run/netns/{self.name}", os.O_RDONLY)
        try:
            if LIBC.setns(there, CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), f"entering {self.name}")
        finally:
            os.close(there)

    def __exit__(self, *_):
        LIBC.setns(self.own, CLONE_NEWNET)
        os.close(self.own)


class Chain:
    """Client, middlebox, line and server."""

    def __init__(self, lastmile, line, number):
        self.lastmile, self.line, self.processes = lastmile, line, []
        self.tag = f"bw{os.getpid() % 100000}-{number}"
        self.client, self.box, self.wire, self.server = (f"{self.tag}-{role}" for role in "cmls")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="both-ways-"))

    def __enter__(self):
        for name in (self.client, self.box, self.wire, self.server):
            sh("ip", "netns", "add", name)
            self.at(
                name,
                "sysctl",
                "-qw",
                "net.ipv6.conf.all.disable_ipv6=1",
                "net.ipv6.conf.default.disable_ipv6=1",
                check=False,
            )
            self.at(name, "ip", "link", "set", "lo", "up")
        self.join((self.client, "eth0"), (self.box, "lan"))
        self.join((self.box, "wan"), (self.wire, "modem"))
        self.join((self.wire, "dslam"), (self.server, "eth0"))
        ends = [(self.client, "198.18.0.2"), (self.server, "198.18.0.1")]
        for name, address in ends:
            self.at(name, "ip", "addr", "add", f"{address}/30", "dev", "eth0")
        macs = [self.at(name, "cat", "/sys/class/net/eth0/address").stdout.strip() for name, _ in ends]
        # Neighbour discovery would use the line.
        self.at(self.client, "ip", "neigh", "add", "198.18.0.1", "lladdr", macs[1], "dev", "eth0")
        self.at(self.server, "ip", "neigh", "add", "198.18.0.2", "lladdr", macs[0], "dev", "eth0")
        for name in (self.client, self.server):
            # The kernel caches metrics of a path, which would influence the next run.
            self.at(name, "sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1", check=False)
        return self

    def __exit__(self, failure, *_):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
        for name in (self.client, self.box, self.wire, self.server):
            sh("ip", "netns", "delete", name, check=False)
        if failure is None:
            shutil.rmtree(self.folder)

    def at(self, name, *words, check=True):
        return sh("ip", "netns", "exec", name, *words, check=check)

    def join(self, one, other):
        pair = [f"{self.tag}a"[-15:], f"{self.tag}b"[-15:]]
        sh("ip", "link", "add", pair[0], "type", "veth", "peer", "name", pair[1])
        for device, (name, called) in zip(pair, (one, other)):
            sh("ip", "link", "set", device, "netns", name)
            self.at(name, "ip", "link", "set", device, "name", called)
            self.at(name, "ethtool", "-K", called, "tx", "off", "tso", "off", "gso", "off", "gro", "off")
            self.at(name, "ip", "link", "set", called, "up")

    def start(self, name, *words, log):
        out = open(self.folder / log, "w")
        process = subprocess.Popen(
            ["ip", "netns", "exec", name, *map(str, words)], stdout=out, stderr=subprocess.STDOUT
        )
        self.processes.append(process)
        return process

    def begin_line(self, delay, dslam):
        line = self.line
        text = (
            f'duration = "1 s"\n[access]\nencapsulation = "{line["link"]}"\nbackbone = {{ delay = "0 ms" }}\n'
            f'down = {{ rate = "{line["down"]} bit/s", delay = "{delay}", queue = {{ limit = "{dslam}" }} }}\n'
            f'up = {{ rate = "{line["up"]} bit/s", delay = "{delay}", queue = {{ limit = "206 kB" }} }}\n'
        )
        file = self.folder / "line.toml"
        file.write_text(text)
        self.start(self.wire, self.lastmile, "emulate", file, "--bridge", "modem,dslam", "--realtime", log="line.log")

    def begin_box(self, remedy, share):
        line = self.line
        policy = (ROOT / "policies/full-both-ways.toml").read_text()
        assert 'share = "98 %"' in policy
        file = self.folder / "policy.toml"
        policy = policy.replace('share = "98 %"', f'share = "{share} %"')
        if remedy == "htb":
            # Equal margins in both directions: with less, its bursts would queue in the modem.
            policy = policy.replace('share = "99 %"', f'share = "{min(float(share), 99)} %"')
        file.write_text(policy)
        on = ["--up", f"{line['up']} bit/s", "--down", f"{line['down']} bit/s", "--link", line["link"]]
        if remedy == "shape":
            control = self.folder / "control"
            words = [
                "shape",
                file,
                *on,
                "--lan",
                "lan",
                "--wan",
                "wan",
                "--make-bridge",
                "br0",
                "--control",
                control,
                "--realtime",
            ]
            self.start(self.box, self.lastmile, *words, log="box.log")
        else:
            self.at(self.box, "ip", "link", "add", "br0", "type", "bridge", "forward_delay", "0")
            for port in ("lan", "wan"):
                self.at(self.box, "ip", "link", "set", port, "master", "br0")
            self.at(self.box, "ip", "link", "set", "br0", "up")
            if remedy == "htb":
                applied = self.at(self.box, self.lastmile, "tc", file, *on, "--device", "wan", "--apply")
                (self.folder / "tc.log").write_text(applied.stdout + applied.stderr)


class Transfer(threading.Thread):
    """An unlimited transfer between two namespaces, which counts the received bytes."""

    def __init__(self, chain, down, port, load, after=0.0):
        super().__init__(daemon=True)
        self.bytes, self.down, self.ended, self.after = 0, down, False, after
        tcp, window = load["tcp"], load["window"]
        with Within(chain.server):
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.prepare(listener, tcp, window)
            listener.bind(("198.18.0.1", port))
            listener.listen(1)
        with Within(chain.client):
            self.client = socket.socket()
        self.prepare(self.client, tcp, window)
        self.listener, self.port = listener, port

    @staticmethod
    def prepare(end, tcp, window):
        end.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, tcp.encode())
        if window:
            # The kernel doubles the value, and half of the result is the window.
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)

    def run(self):
        time.sleep(self.after)
        try:
            self.client.connect(("198.18.0.1", self.port))
            server, _ = self.listener.accept()
            sender, receiver = (server, self.client) if self.down else (self.client, server)
            threading.Thread(target=self.send, args=(sender,), daemon=True).start()
            while not self.ended:
                got = receiver.recv(65536)
                if not got:
                    break
                self.bytes += len(got)
        except OSError:
            pass

    def send(self, sender):
        block = bytes(16384)
        try:
            while not self.ended:
                sender.sendall(block)
        except OSError:
            pass


class Counter(threading.Thread):
    """Cells of the packets that crossed the upstream: those that the server's device received."""

    def __init__(self, chain):
        super().__init__(daemon=True)
        self.line, self.cells, self.ended = chain.line, 0, False
        with Within(chain.server):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0003))
            self.socket.bind(("eth0", 0x0003))
        self.socket.settimeout(0.5)

    def run(self):
        while not self.ended:
            try:
                packet, (_, _, kind, *_) = self.socket.recvfrom(2048)
            except TimeoutError:
                continue
            # 4 (PACKET_OUTGOING): sent by this host.
            if kind != 4 and len(packet) >= 20:
                self.cells += cells(
                    self.line, int.from_bytes(packet[2:4], "big") if packet[0] >> 4 == 4 else len(packet)
                )


def one(lastmile, number, load, arguments):
    name, remedy, share = load["line"], load["remedy"], load["share"]
    line = LINES[name]
    with Chain(lastmile, line, number) as chain:
        chain.begin_line(arguments.delay, arguments.dslam)
        chain.begin_box(remedy, share)
        for _ in range(100):
            if chain.at(chain.client, "ping", "-c", "1", "-W", "1", "198.18.0.1", check=False).returncode == 0:
                break
            time.sleep(0.1)
        else:
            logs = "\n".join(path.read_text() for path in chain.folder.glob("*.log"))
            sys.exit(f"{name} {remedy}: nothing crosses the line\n{logs}")
        alone = pinged(chain, 30, 0.05)
        counter = Counter(chain)
        transfers = [Transfer(chain, True, 5001 + n, load) for n in range(load["downloads"])]
        transfers.append(Transfer(chain, False, 5000, load, load["offset_ms"] / 1e3))
        for thread in (counter, *transfers):
            thread.start()
        time.sleep(10)
        before = [transfer.bytes for transfer in transfers], counter.cells, time.monotonic()
        pings = pinged(chain, int(arguments.seconds / 0.101), 0.101)
        after = [transfer.bytes for transfer in transfers], counter.cells, time.monotonic()
        counter.ended = True
        for transfer in transfers:
            transfer.ended = True
        seconds = after[2] - before[2]
        got = [b - a for a, b in zip(before[0], after[0])]
        packets = line["down"] / (cells(line, FULL) * CELL_BITS)
        full = sum(cells(line, FULL) * CELL_BITS / line[way] for way in ("down", "up")) * 1e3
        unloaded = alone[len(alone) // 2]
        p99 = pings[min(len(pings) - 1, -(-len(pings) * 99 // 100) - 1)]
        result = {
            **load,
            "download": round(sum(got[:-1]) / PAYLOAD / packets / seconds, 4),
            "upload": round((after[1] - before[1]) * CELL_BITS / seconds / line["up"], 4),
            "upload_kbps": round(got[-1] * 8 / seconds / 1e3, 1),
            "pings": len(pings),
            "unloaded_ms": round(unloaded, 2),
            "p50_ms": round(pings[len(pings) // 2], 2),
            "p99_ms": round(p99, 2),
            "allowed_ms": round(unloaded + full + 10, 2),
        }
        result["holds"] = (
            result["download"] >= 0.95 and result["upload"] >= 0.97 and result["p99_ms"] <= result["allowed_ms"]
        )
        return result


def pinged(chain, count, interval):
    """Round-trip times in milliseconds, sorted; lost requests count as infinite."""
    done = chain.at(
        chain.client,
        "ping",
        "-n",
        "-s",
        "56",
        "-c",
        str(count),
        "-i",
        str(interval),
        "-W",
        "5",
        "198.18.0.1",
        check=False,
    )
    times = sorted(float(found) for found in re.findall(r"time=([0-9.]+)", done.stdout))
    return times + [float("inf")] * (count - len(times))


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("--lastmile", default=ROOT / "target/release/lastmile", help="the program")
    parse.add_argument("--lines", default="2M,8M")
    parse.add_argument("--remedies", default="shape", help="shape, htb, none")
    parse.add_argument("--shares", default="98", help="shares of the downstream, in per cent")
    parse.add_argument("--tcp", default="cubic,reno")
    parse.add_argument("--downloads", default="1", help="how many at a time")
    parse.add_argument(
        "--window", default="262144", help="receive buffers in bytes; 0 for what the kernel does by itself"
    )
    parse.add_argument(
        "--offset", default="0", help="milliseconds from the beginning of the downloads to that of the upload"
    )
    parse.add_argument("--delay", default="4 ms", help="of the line, one way")
    parse.add_argument("--dslam", default="64 kB")
    parse.add_argument("--seconds", type=float, default=30)
    parse.add_argument("--parallel", type=int, default=2, help="runs at a time")
    parse.add_argument("--json", action="store_true")
    arguments = parse.parse_args()
    if os.geteuid():
        sys.exit("network namespaces need root")
    lastmile = str(pathlib.Path(arguments.lastmile).resolve())
    # Every combination; the lines are adjacent, so that two of them run at once.
    words = {
        "remedy": arguments.remedies,
        "share": arguments.shares,
        "tcp": arguments.tcp,
        "downloads": arguments.downloads,
        "window": arguments.window,
        "offset_ms": arguments.offset,
        "line": arguments.lines,
    }
    numbers = {"downloads", "window", "offset_ms"}
    choices = ([int(word) if key in numbers else word for word in text.split(",")] for key, text in words.items())
    runs = [dict(zip(words, chosen)) for chosen in itertools.product(*choices)]
    results, places = [None] * len(runs), threading.Semaphore(arguments.parallel)

    def work(number):
        with places:
            results[number] = one(lastmile, number, runs[number], arguments)
            if not arguments.json:
                told = results[number]
                print(
                    f"{told['line']} {told['remedy']} {told['share']} % {told['tcp']} "
                    f"{told['downloads']} x {told['window']} +{told['offset_ms']} ms: "
                    f"download {told['download']:.1%}, upload {told['upload']:.1%}, "
                    f"ping {told['unloaded_ms']} ms alone, p50 {told['p50_ms']}, "
                    f"p99 {told['p99_ms']} of {told['allowed_ms']} ms"
                    f"{'' if told['holds'] else ': NOT as claimed'}",
                    flush=True,
                )

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(runs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if arguments.json:
        print(json.dumps(results, indent=1))
    sys.exit(0 if all(results) else 2)


if __name__ == "__main__":
    main()
