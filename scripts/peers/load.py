"""The load of a trial: one download, one upload, and what came of them, every tenth of a second.

    load.py server FILE DEVICE DURATION WINDOW
    load.py client FILE DEVICE DURATION WINDOW

Both ends are the kernel's TCP (cubic) with windows of WINDOW bytes. FILE gets a list of rows: time on the monotonic clock, payload received, packets
received by the device, and the kernel's account of the socket that sends and of the one that receives.
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
CHUNK = bytes(65536)


def prepare(sock, window):
    sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, b"cubic")
    # The kernel doubles it for its own needs; the clamp says what is advertised.
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
            accounts = [account(sock) for sock in sockets]
            self.series.append((time.monotonic(), self.received, received_packets(self.device), *accounts))
            # The kernel sets a clamp of its own when it learns of another segment size.
            for sock in sockets:
                sock.setsockopt(socket.IPPROTO_TCP, TCP_WINDOW_CLAMP, self.window)
            step += 1
            time.sleep(max(0.0, start + step / 10 - time.monotonic()))
        self.over.set()

    def run(self, reading, writing, duration):
        for target, sock in ((self.sink, reading), (self.source, writing)):
            threading.Thread(target=target, args=(sock,), daemon=True).start()
        self.watch([writing, reading], duration)


def listening(port, window):
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    prepare(sock, window)
    sock.bind(("198.18.0.1", port))
    sock.listen()
    return sock


def main():
    role, path, device, duration, window = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
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


main()
