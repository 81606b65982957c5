"""A download with Accurate ECN, and what both kernels count of its marks.

    accecn.py server FILE CONGESTION_CONTROL SECONDS      sends, and writes the sender's account to FILE
    accecn.py client FILE CONGESTION_CONTROL SECONDS      receives, and writes the receiver's account

FILE gets JSON: the payload received, values of struct tcp_info, and the words of that struct behind
`tcpi_total_rto_time`, where kernels that count marks have further fields.
"""

import json
import socket
import struct
import sys
import time

TCP_INFO, TCP_CONGESTION = 11, 13
PORT = 5003
WINDOW = 1 << 20
SO_RCVBUFFORCE = 33
# Fields of struct tcp_info (include/uapi/linux/tcp.h): name, offset, format.
FIELDS = [
    ("options", 5, "B"),
    ("retransmissions", 100, "I"),
    ("packets_out", 136, "I"),
    ("packets_in", 140, "I"),
    ("data_in", 152, "I"),
    ("data_out", 156, "I"),
    ("delivered", 192, "I"),
    ("delivered_ce", 196, "I"),
]
WORDS = 248


def account(sock):
    info = sock.getsockopt(socket.IPPROTO_TCP, TCP_INFO, 512)
    found = {name: struct.unpack_from("=" + kind, info, offset)[0] for name, offset, kind in FIELDS}
    count = max(0, len(info) - WORDS) // 4
    return found | {"size": len(info), "words": list(struct.unpack_from(f"={count}I", info, WORDS))}


def main():
    role, path, control, seconds = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
    sock = socket.socket()
    sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, control.encode())
    received = 0
    if role == "server":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("198.18.0.1", PORT))
        sock.listen()
        open(path + ".ready", "w", encoding="ascii").close()
        peer, _ = sock.accept()
        chunk = bytes(65536)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            peer.send(chunk)
        # What waits in the socket departs and is acknowledged before the counts are compared.
        peer.shutdown(socket.SHUT_WR)
        peer.settimeout(30)
        peer.recv(1)
        found = account(peer)
    else:
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 2 * WINDOW)
        sock.connect(("198.18.0.1", PORT))
        end = time.monotonic() + seconds
        in_time = None
        while data := sock.recv(262144):
            received += len(data)
            if in_time is None and time.monotonic() >= end:
                in_time = received
        time.sleep(1)
        found = account(sock)
        received = in_time if in_time is not None else received
    with open(path, "w", encoding="ascii") as out:
        json.dump(found | {"received": received}, out)


main()
