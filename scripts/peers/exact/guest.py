"""Sends the packets of the experiments through the kernel's queues: as root, in the guest, with each experiment on a
veth pair of its own.

    guest.py FOLDER [PATTERN]

FOLDER gets NAME.json of each experiment whose name matches the regular expression: the times at which its packets were
sent, the number and time of each packet that arrived at the other end (by the kernel's time stamp), and `tc -s`. Times
are in ns of the wall clock, which nobody sets here.
"""

import errno
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import experiments  # noqa: E402

SO_RCVBUFFORCE, SO_SNDBUFFORCE, SO_TIMESTAMPNS = 33, 32, 35
ETH_P_IP = 0x0800
BUFFER = 1 << 29
NUMBER = 14 + experiments.IP_HEADERS


def run(words):
    subprocess.run(words.split(), check=True)


def opened(device, protocol):
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(protocol))
    sock.bind((device, protocol))
    # A packet counts against its sender until it has arrived.
    sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, BUFFER)
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
    return sock


def sent(sock, frames, packets):
    """Sends each packet at its time; returns the times."""
    begin = time.clock_gettime_ns(time.CLOCK_REALTIME) + 100_000_000
    times = []
    for frame, packet in zip(frames, packets):
        due = begin + packet.at_us * 1000
        now = time.clock_gettime_ns(time.CLOCK_REALTIME)
        while now < due:
            time.sleep((due - now) / 1e9)
            now = time.clock_gettime_ns(time.CLOCK_REALTIME)
        times.append(now)
        # A queue that drops a packet reports it to its sender.
        try:
            sock.send(frame)
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
    return begin, times


def arrived(sock):
    sock.setblocking(False)
    found = []
    while True:
        try:
            data, controls, _, address = sock.recvmsg(2048, 64)
        except BlockingIOError:
            return found
        # The socket also sees packets that its own end transmits; none are.
        seconds, rest = struct.unpack("=qq", controls[0][2][:16])
        found.append((struct.unpack_from(">I", data, NUMBER)[0], seconds * 1_000_000_000 + rest))


def measure(one):
    run("ip link add exact0 numtxqueues 1 numrxqueues 1 type veth peer name exact1 numtxqueues 1 numrxqueues 1")
    try:
        for device in ("exact0", "exact1"):
            run(f"ip link set {device} up")
        for words in one.kernel:
            run("tc " + words.replace("DEV", "exact0"))
        frames = [experiments.frame(number, packet) for number, packet in enumerate(one.packets)]
        with opened("exact0", 0) as out, opened("exact1", ETH_P_IP) as into:
            into.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            begin, times = sent(out, frames, one.packets)
            # What still waits arrives within seconds, or never.
            time.sleep(3)
            shown = subprocess.run(
                ["tc", "-s", "-j", "qdisc", "show", "dev", "exact0"], capture_output=True, check=True
            ).stdout
            return {"begin": begin, "sent": times, "arrived": arrived(into), "tc": json.loads(shown)}
    finally:
        run("ip link delete exact0")


def main():
    folder, pattern = pathlib.Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "."
    folder.mkdir(parents=True, exist_ok=True)
    # Timers of a real-time process have no slack.
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    for one in experiments.ALL:
        if not re.search(pattern, one.name):
            continue
        found = measure(one)
        (folder / f"{one.name}.json").write_text(json.dumps(found), encoding="ascii")
        print(f"{one.name}: {len(found['arrived'])} of {len(found['sent'])} packets arrived", file=sys.stderr)
    (folder / "kernel").write_text(os.uname().release + "\n", encoding="ascii")


main()
