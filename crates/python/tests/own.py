"""Disciplines and congestion controls of Python that follow those of Rust line by line."""

from __future__ import annotations

from collections import deque

import lastmile as lm


class Fifo:
    """A FIFO of ``limit`` packets, as ``kind = "fifo"``."""

    def __init__(self, limit: int = 50) -> None:
        self.limit = limit
        self.packets: deque[lm.Packet] = deque()

    def enqueue(self, packet: lm.Packet, now: float) -> None:
        if len(self.packets) < self.limit:
            self.packets.append(packet)
        else:
            packet.drop("tail")

    def dequeue(self, now: float) -> lm.Packet | None:
        return self.packets.popleft() if self.packets else None


class HeadDrop(Fifo):
    """As ``drop = "head"``."""

    def enqueue(self, packet: lm.Packet, now: float) -> None:
        if len(self.packets) == self.limit:
            self.packets.popleft().drop("head")
        self.packets.append(packet)


class Reno:
    """RFC 5681 and 3465: growth by acknowledged bytes, at most ``most`` segments at once; by ACKs without ``most``."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self.counted = 0
        self.cwnd = 0

    def on_ack(self, ack: lm.Ack) -> int:
        cwnd = ack.cwnd
        if cwnd != self.cwnd:
            # A repair or an idle time has set the window.
            self.counted = 0
        if cwnd < ack.ssthresh:
            most = 1 if ack.after_timeout else self.most or 1
            cwnd += min(ack.acked, most * ack.mss)
        else:
            extra, counted = 0, self.counted
            if counted >= cwnd:
                extra, counted = 1, 0
            steps, self.counted = divmod(counted + (ack.acked if self.most else ack.mss), cwnd)
            cwnd += (steps + extra) * ack.mss
        self.cwnd = cwnd
        return cwnd

    def on_loss(self, loss: lm.Loss) -> int:
        self.cwnd = 0
        return max(loss.in_flight // 2, 2 * loss.mss)


class LinuxReno(Reno):
    """Half of the window in whole segments, as in Linux."""

    def __init__(self) -> None:
        super().__init__(255)

    def on_loss(self, loss: lm.Loss) -> int:
        self.cwnd = 0
        return max(loss.cwnd // loss.mss // 2, 2) * loss.mss
