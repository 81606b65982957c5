"""The load of a trial: downloads and one upload, with samples of their progress every tenth of a second.

    load.py server FILE DEVICE DURATION WINDOW DOWNLOADS
    load.py client FILE DEVICE DURATION WINDOW DOWNLOADS OFFSET

Both ends are the kernel's TCP (cubic) with windows of WINDOW bytes. The upload begins OFFSET ms after the downloads.
FILE gets a list of rows: time on the monotonic clock, payload received, packets received by the device, and the
kernel's account of the sockets that send and of those that receive. FILE.ready exists once the server listens, and once
the client is connected, which starts the load.
"""

import json
import socket
import struct
import sys
import threading
import time

DOWNLOAD, UPLOAD = 5001, 5002
SO_RCVBUFFORCE = 33
TCP_INFO, TCP_CONGESTION, TCP_WINDOW_CLAMP = 11, 13, 10
# Fields of struct tcp_info (include/uapi/linux/tcp.h): name, offset, format.
FIELDS = [
    ("mss", 16, "I"),
    ("unacked", 24, "I"),
    ("rtt_us", 68, "I"),
    ("ssthresh", 76, "I"),
    ("cwnd", 80, "I"),
    ("retransmissions", 100, "I"),
    ("acked_bytes", 120, "Q"),
    ("packets_out", 136, "I"),
    ("packets_in", 140, "I"),
    ("data_in", 152, "I"),
    ("data_out", 156, "I"),
    ("busy_us", 168, "Q"),
    ("window_limited_us", 176, "Q"),
    ("buffer_limited_us", 184, "Q"),
]
# Summed over several sockets; the others are averaged.
SUMMED = {
    "unacked",
    "ssthresh",
    "cwnd",
    "retransmissions",
    "acked_bytes",
    "packets_out",
    "packets_in",
    "data_in",
    "data_out",
}
CHUNK = bytes(65536)


def prepare(sock, window):
    sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"cubic")
    # The kernel doubles the value for its own use; the clamp limits the advertised window.
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 2 * window)
    sock.setsockopt(socket.IPPROTO_TCP, TCP_WINDOW_CLAMP, window)


def received_packets(device):
    with open("/proc/net/dev", encoding="ascii") as lines:
        for line in lines:
            name, _, values = line.partition(":")
            if name.strip() == device:
                return int(values.split()[1])
    return 0


def account(sock):
    info = sock.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 256).ljust(256, b"\0")
    return {name: struct.unpack_from("=" + kind, info, offset)[0] for name, offset, kind in FIELDS}


def together(socks):
    accounts = [account(sock) for sock in socks]
    return {
        name: sum(one[name] for one in accounts) // (1 if name in SUMMED else len(accounts)) for name, _, _ in FIELDS
    }


class Endpoint:
    def __init__(self, device, window):
        self.device, self.window = device, window
        self.received = []
        self.series = []
        self.over = threading.Event()

    def sink(self, sock):
        buffer = memoryview(bytearray(262144))
        number = len(self.received)
        self.received.append(0)
        threading.Thread(target=self.read, args=(sock, buffer, number), daemon=True).start()

    def read(self, sock, buffer, number):
        while not self.over.is_set():
            try:
                count = sock.recv_into(buffer)
            except OSError:
                return
            if count == 0:
                return
            self.received[number] += count

    def source(self, sock, offset):
        threading.Thread(target=self.write, args=(sock, offset), daemon=True).start()

    def write(self, sock, offset):
        time.sleep(offset)
        while not self.over.is_set():
            try:
                sock.send(CHUNK)
            except OSError:
                return

    def watch(self, writing, reading, duration):
        start = time.monotonic()
        step = 0
        while step <= 10 * duration:
            accounts = together(writing), together(reading)
            self.series.append((time.monotonic(), sum(self.received), received_packets(self.device), *accounts))
            # The kernel sets its own clamp after a change of the segment size.
            for sock in writing + reading:
                sock.setsockopt(socket.IPPROTO_TCP, TCP_WINDOW_CLAMP, self.window)
            step += 1
            time.sleep(max(0.0, start + step / 10 - time.monotonic()))
        self.over.set()

    def run(self, reading, writing, duration, offset):
        for sock in reading:
            self.sink(sock)
        for sock in writing:
            self.source(sock, offset)
        self.watch(writing, reading, duration)


def listening(port, window):
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    prepare(sock, window)
    sock.bind(("198.18.0.1", port))
    sock.listen()
    return sock


def ready(path):
    """Signals that this end is ready."""
    with open(path + ".ready", "w", encoding="ascii"):
        pass


def main():
    role, path, device = sys.argv[1:4]
    duration, window, downloads, *offset = map(int, sys.argv[4:])
    endpoint = Endpoint(device, window)
    if role == "server":
        down, up = listening(DOWNLOAD, window), listening(UPLOAD, window)
        ready(path)
        writing, reading = [down.accept()[0] for _ in range(downloads)], [up.accept()[0]]
    else:
        sockets = []
        for port in [DOWNLOAD] * downloads + [UPLOAD]:
            sock = socket.socket()
            prepare(sock, window)
            sock.connect(("198.18.0.1", port))
            sockets.append(sock)
        *reading, upload = sockets
        writing = [upload]
        ready(path)
    endpoint.run(reading, writing, duration, offset[0] / 1e3 if offset else 0.0)
    with open(path, "w", encoding="ascii") as out:
        json.dump(endpoint.series, out)


main()
