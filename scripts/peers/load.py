"""The load of a trial: one download, one upload, and what came of them, every tenth of a second.

    load.py server FILE DEVICE DURATION
    load.py client FILE DEVICE DURATION WINDOW
    load.py merge FOLDER START DURATION OVERHEAD BUSY USED     (prints the results)

Both ends are the kernel's TCP (cubic) with windows of WINDOW bytes.
"""

import json
import socket
import sys
import threading
import time

DOWNLOAD, UPLOAD = 5001, 5002
TCP_CONGESTION, TCP_WINDOW_CLAMP = 13, 10
CHUNK = bytes(65536)


def prepare(sock, window):
    sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"cubic")
    # The kernel doubles it for its own needs; the clamp says what is advertised.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2 * window)
    sock.setsockopt(socket.IPPROTO_TCP, TCP_WINDOW_CLAMP, window)


def received_packets(device):
    with open("/proc/net/dev", encoding="ascii") as lines:
        for line in lines:
            name, _, values = line.partition(":")
            if name.strip() == device:
                return int(values.split()[1])
    return 0


class Endpoint:
    def __init__(self, device, window):
        self.device, self.window = device, window
        self.received = 0
        self.series = []
        self.over = threading.Event()

    def sink(self, sock):
        buffer = memoryview(bytearray(262144))
        while not self.over.is_set():
            try:
                count = sock.recv_into(buffer)
            except OSError:
                return
            if count == 0:
                return
            self.received += count

    def source(self, sock):
        while not self.over.is_set():
            try:
                sock.send(CHUNK)
            except OSError:
                return

    def watch(self, sockets, duration):
        start = time.monotonic()
        step = 0
        while step <= 10 * duration:
            self.series.append((time.monotonic(), self.received, received_packets(self.device)))
            # The kernel sets a clamp of its own when it learns of another segment size.
            for sock in sockets:
                sock.setsockopt(socket.IPPROTO_TCP, TCP_WINDOW_CLAMP, self.window)
            step += 1
            time.sleep(max(0.0, start + step / 10 - time.monotonic()))
        self.over.set()

    def run(self, reading, writing, duration):
        for target, sock in ((self.sink, reading), (self.source, writing)):
            threading.Thread(target=target, args=(sock,), daemon=True).start()
        self.watch([reading, writing], duration)


def listening(port, window):
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    prepare(sock, window)
    sock.bind(("198.18.0.1", port))
    sock.listen()
    return sock


def main():
    role, path, device, duration = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    window = int(sys.argv[5]) if len(sys.argv) > 5 else 65536
    endpoint = Endpoint(device, window)
    if role == "server":
        down, up = listening(DOWNLOAD, window), listening(UPLOAD, window)
        writing, reading = down.accept()[0], up.accept()[0]
    else:
        sockets = []
        for port in (DOWNLOAD, UPLOAD):
            sock = socket.socket()
            prepare(sock, window)
            sock.connect(("198.18.0.1", port))
            sockets.append(sock)
        reading, writing = sockets
    endpoint.run(reading, writing, duration)
    with open(path, "w", encoding="ascii") as out:
        json.dump(endpoint.series, out)


def read(folder, name):
    try:
        with open(f"{folder}/{name}", encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def quantile(values, share):
    """The least value that so many are not above."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))] if ordered else None


def cells(size, overhead):
    return -(-(size + overhead) // 48)


def merge():
    folder, start, duration, overhead = sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])
    download, upload = read(folder, "client.json"), read(folder, "server.json")
    origin = download[0][0]

    def between(series):
        inside = [row for row in series if start - 0.05 <= row[0] - origin <= duration - 0.5]
        first, last = inside[0], inside[-1]
        lasted = last[0] - first[0]
        return (last[1] - first[1]) * 8 / lasted, (last[2] - first[2]) / lasted

    down_bps, _ = between(download)
    up_bps, up_packets = between(upload)
    rtts, sent = [], 0
    with open(f"{folder}/ping.txt", encoding="ascii") as lines:
        for line in lines:
            if " time=" in line:
                rtts.append(float(line.split(" time=")[1].split()[0]))
            if "packets transmitted" in line:
                sent = int(line.split()[0])
    # What is not a full packet upstream is a ping of 84 bytes or an ACK.
    data, pings = up_bps / 8 / 1460, len(rtts) / (duration - start)
    acks = max(0.0, up_packets - data - pings)
    up_cells = data * cells(1500, overhead) + pings * cells(84, overhead) + acks * cells(40, overhead)
    json.dump(
        {
            "download_bps": round(down_bps),
            "upload_bps": round(up_bps),
            "upload_cells_bps": round(up_cells * 424),
            "ping_ms": {"sent": sent, "replies": len(rtts), "p50": quantile(rtts, 0.5), "p99": quantile(rtts, 0.99), "max": max(rtts, default=None)},
            "processor_busy": float(sys.argv[6]),
            "shaper_processor_ticks": int(sys.argv[7]),
            "emulate": (read(folder, "emulate.json") or {}).get("live"),
            "shape": read(folder, "status.json"),
            "tc": read(folder, "tc.json"),
        },
        sys.stdout,
    )


if sys.argv[1] == "merge":
    merge()
else:
    main()
