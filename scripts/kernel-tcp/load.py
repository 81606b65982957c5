"""Both transfers of a trial at one of its ends, with the kernel's TCP account of them every 10 ms.

    load.py server FILE CONGESTION DURATION_S
    load.py client FILE CONGESTION DURATION_S UPLOAD_AFTER_MS

FILE gets one JSON object: `received`, rows of seconds since the start and payload bytes received; `sender` and
`receiver`, rows of seconds and the fields of `struct tcp_info` named in `fields`. FILE.ready exists once the end is
ready. Buffers are left to the kernel.
"""

import json
import socket
import struct
import sys
import threading
import time

DOWNLOAD, UPLOAD, SERVER = 5001, 5002, "198.18.0.1"
TCP_INFO, TCP_CONGESTION = 11, 13
# include/uapi/linux/tcp.h: name, offset, format.
FIELDS = [
    ("ca_state", 1, "B"),
    ("mss", 16, "I"),
    ("unacked", 24, "I"),
    ("sacked", 28, "I"),
    ("lost", 32, "I"),
    ("rtt_us", 68, "I"),
    ("ssthresh", 76, "I"),
    ("cwnd", 80, "I"),
    ("rcv_space", 96, "I"),
    ("retransmissions", 100, "I"),
    ("min_rtt_us", 148, "I"),
    ("busy_us", 168, "Q"),
    ("rwnd_limited_us", 176, "Q"),
    ("sndbuf_limited_us", 184, "Q"),
    ("snd_wnd", 228, "I"),
    ("rcv_wnd", 232, "I"),
    ("segs_out", 136, "I"),
    ("data_segs_in", 152, "I"),
    ("data_segs_out", 156, "I"),
    ("timeouts", 240, "H"),
]
PERIOD_S = 0.01


def info(sock):
    raw = sock.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 256).ljust(256, b"\0")
    return [struct.unpack_from("=" + kind, raw, offset)[0] for _, offset, kind in FIELDS]


class End:
    def __init__(self, duration):
        self.duration, self.bytes, self.over = duration, 0, False

    def read(self, sock):
        buffer = bytearray(1 << 18)
        while not self.over:
            count = sock.recv_into(buffer)
            if count == 0:
                return
            self.bytes += count

    def write(self, sock, after_s):
        time.sleep(after_s)
        chunk = bytes(1 << 16)
        while not self.over:
            sock.send(chunk)

    def run(self, reading, writing, after_s):
        for target, arguments in ((self.read, (reading,)), (self.write, (writing, after_s))):
            threading.Thread(target=self.guarded, args=(target, *arguments), daemon=True).start()
        rows = {"received": [], "sender": [], "receiver": []}
        start = time.monotonic()
        for step in range(round(self.duration / PERIOD_S) + 1):
            time.sleep(max(0.0, start + step * PERIOD_S - time.monotonic()))
            now = round(time.monotonic() - start, 4)
            rows["received"].append((now, self.bytes))
            rows["sender"].append((now, *info(writing)))
            rows["receiver"].append((now, *info(reading)))
        self.over = True
        return rows

    @staticmethod
    def guarded(target, *arguments):
        try:
            target(*arguments)
        except OSError:
            pass


def prepared(congestion):
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, congestion.encode())
    return sock


def ready(path):
    with open(path + ".ready", "w", encoding="ascii"):
        pass


def main():
    role, path, congestion, duration, *after_ms = sys.argv[1:]
    end = End(float(duration))
    if role == "server":
        listeners = []
        for port in (DOWNLOAD, UPLOAD):
            sock = prepared(congestion)
            sock.bind((SERVER, port))
            sock.listen()
            listeners.append(sock)
        ready(path)
        down, up = (sock.accept()[0] for sock in listeners)
        rows = end.run(reading=up, writing=down, after_s=0.0)
    else:
        socks = [prepared(congestion) for _ in range(2)]
        for sock, port in zip(socks, (DOWNLOAD, UPLOAD)):
            sock.connect((SERVER, port))
        down, up = socks
        ready(path)
        rows = end.run(reading=down, writing=up, after_s=float(after_ms[0]) / 1e3)
    with open(path, "w", encoding="ascii") as out:
        json.dump({"fields": ["t_s"] + [name for name, _, _ in FIELDS], **rows}, out)


main()
