"""Types of queueing disciplines and congestion controls that are written in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from lastmile._lastmile import Ack, Loss, Packet

__all__ = ["CongestionControl", "Controls", "Discipline", "Queues"]


class Discipline(Protocol):
    """What a queueing discipline of Python has. A class of your own need not derive from it.

    ``enqueue`` keeps the packet or drops it by ``packet.drop(reason)``, and may drop others. ``dequeue`` returns a
    packet, or ``None``. Times are seconds since the start of the run.

    A discipline that holds packets back also has ``next_ready(now)``: the time at which ``dequeue`` may next return a
    packet. Without it, ``dequeue`` returns a packet whenever the discipline holds one.

    A discipline that drops ACKs which newer ones replace has the attribute ``thins_acks = True``: results then bound a
    download no more by its ACKs.

    >>> import lastmile as lm
    >>> from collections import deque
    >>> class Fifo:
    ...     def __init__(self) -> None:
    ...         self.packets: deque[lm.Packet] = deque()
    ...     def enqueue(self, packet: lm.Packet, now: float) -> None:
    ...         self.packets.append(packet)
    ...     def dequeue(self, now: float) -> lm.Packet | None:
    ...         return self.packets.popleft() if self.packets else None
    >>> make: type[lm.Discipline] = Fifo
    >>> run = lm.run(lm.line("adsl2plus-12-1", home="single"), duration="2 s", queues={"up": make})
    >>> [link["counters"][0]["kind"] for link in run.summary["links"] if link["name"] == "up"]
    ['python']
    """

    def enqueue(self, packet: Packet, now: float, /) -> None:
        """A packet arrives: it is kept, or dropped.

        >>> import lastmile as lm
        >>> callable(lm.Discipline.enqueue)
        True
        """
        ...

    def dequeue(self, now: float, /) -> Packet | None:
        """The next packet departs, if one may.

        >>> import lastmile as lm
        >>> callable(lm.Discipline.dequeue)
        True
        """
        ...


class CongestionControl(Protocol):
    """What a congestion control of Python has. A class of your own need not derive from it.

    The sender finds and repairs losses by its settings, as Linux does; the control says how the window grows and how
    far a loss reduces it. Windows are bytes of payload.

    A control that sets its rate also has ``pacing_rate()``: bit/s of payload, or ``None`` for the rule of Linux.

    >>> import lastmile as lm
    >>> class Reno:
    ...     def on_ack(self, ack: lm.Ack) -> int:
    ...         if ack.cwnd < ack.ssthresh:
    ...             return ack.cwnd + min(ack.acked, 2 * ack.mss)
    ...         return ack.cwnd + ack.mss * ack.acked // ack.cwnd
    ...     def on_loss(self, loss: lm.Loss) -> int:
    ...         return max(loss.in_flight // 2, 2 * loss.mss)
    >>> make: type[lm.CongestionControl] = Reno
    >>> run = lm.run(lm.line("adsl2plus-12-1", home="single"), duration="3 s", congestion={"download": make})
    >>> run.summary["flows"][0]["goodput_bps"] > 1e6
    True
    """

    def on_ack(self, ack: Ack, /) -> float | tuple[float, float]:
        """New data are acknowledged: the window, or the window and the slow start threshold.

        >>> import lastmile as lm
        >>> callable(lm.CongestionControl.on_ack)
        True
        """
        ...

    def on_loss(self, loss: Loss, /) -> float:
        """A loss, a timeout or a mark: the slow start threshold, to which the window falls.

        >>> import lastmile as lm
        >>> callable(lm.CongestionControl.on_loss)
        True
        """
        ...


Queues: TypeAlias = Mapping[str, Callable[[], Discipline]]
"""For links by name: the class of a discipline, or a function that makes one."""
Controls: TypeAlias = Mapping[str, Callable[[], CongestionControl]]
"""For traffic by name: the class of a congestion control, or a function that makes one."""
