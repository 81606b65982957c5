"""Closed forms: asymmetry, ACK rates, delays, calls, fairness.

Arguments are numbers, sequences, or arrays of NumPy, which broadcast. Rates are bit/s, or a text such as
``"50 Mbit/s"``. Values without a meaning, such as a packet of 0 bytes, give ``nan``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from lastmile import _lastmile
from lastmile._arguments import floats, wrong
from lastmile._arrays import Numbers, apply
from lastmile._quantities import Quantity, Rate

__all__ = [
    "AckRate",
    "Amp",
    "Asymmetry",
    "Mean",
    "ack_rate",
    "amp",
    "asymmetry",
    "grant_bound",
    "jain",
    "mean",
    "mos",
    "r_factor",
    "wait_behind",
]

Rates = Numbers | str | Sequence[str]


class Asymmetry(NamedTuple):
    """The bound of a download by the ACKs that the upstream carries.

    >>> from lastmile import theory
    >>> theory.asymmetry("2 Mbit/s", "512 kbit/s", link="bridged-vcmux").share
    1.0
    """

    k: Any
    """The normalised asymmetry, of bytes on the wire, with an ACK for each segment: above ``segments_per_ack``, ACKs
    limit the download."""
    share: Any
    """The share of the downstream that the download can use: ``min(1, segments_per_ack / k)``."""
    goodput_bps: Any
    """The goodput at that share."""
    acks_per_s: Any
    """ACKs a second for a full downstream."""


class AckRate(NamedTuple):
    """The ACKs of a download that fills the line.

    >>> from lastmile import theory
    >>> round(theory.ack_rate("8 Mbit/s", link="none").acks_per_s, 1)
    444.4
    """

    acks_per_s: Any
    """ACKs a second."""
    bps: Any
    """Their bits a second on the wire."""


class Amp(NamedTuple):
    """The AMP bound of a download: the least of F and A·M·P, on the wire.

    >>> from lastmile import theory
    >>> theory.amp("8 Mbit/s", "64 kbit/s", link="none", ack=40, packets_per_ack=1).bound_bps
    2400000.0
    """

    acks_per_s: Any
    """A: ACKs a second that the upstream carries."""
    packet_bits: Any
    """P: bits of a packet on the wire."""
    forward_bps: Any
    """F: the downstream without OAM cells."""
    bound_bps: Any
    """``min(F, A * M * P)``."""


class Mean(NamedTuple):
    """The mean of independent runs.

    >>> from lastmile import theory
    >>> theory.mean([1.0, 2.0, 3.0]).mean
    2.0
    """

    mean: float
    """Mean of the samples."""
    ci95: float
    """Half the width of its 95 % confidence interval, by Student's t; ``nan`` for one sample, where JSON has null."""


def _bps(name: str, rate: Rates) -> Any:
    """Bits per second of texts; numbers and arrays as they are."""
    try:
        if isinstance(rate, str):
            return float(_lastmile.rate(rate))
        if isinstance(rate, (list, tuple)):
            return [_lastmile.rate(one) if isinstance(one, str) else one for one in rate]
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if isinstance(rate, Quantity) and not isinstance(rate, Rate):
        raise wrong(name, "a rate", rate)
    return rate


def _full(link: str, data: Numbers | None) -> Numbers:
    """The size of a full data packet: that of Ethernet, or the MTU of the link where that is less."""
    return min(1500, _lastmile.mtu(link) or 1500) if data is None else data


def asymmetry(
    down: Rates, up: Rates, *, link: str, data: Numbers | None = None, ack: Numbers = 52, segments_per_ack: Numbers = 2
) -> Asymmetry:
    """Whether the upstream carries the ACKs of a full download, and if not, how much the download can use.

    ``data`` is a full packet in IP bytes: 1500, or the MTU of ``link`` where that is less.
    ``segments_per_ack`` is at least 1, and rounded to thousandths.

    >>> from lastmile import theory
    >>> theory.asymmetry("24 Mbit/s", "1 Mbit/s", link="bridged-vcmux").k
    1.5
    >>> theory.asymmetry(24e6, ["1 Mbit/s", "128 kbit/s"], link="bridged-vcmux", segments_per_ack=1).share
    array('d', [0.6666666666666666, 0.08533333333333333])

    With an ACK for two segments, the default, ACKs limit a download above ``k`` 2.

    >>> delayed = theory.asymmetry("24 Mbit/s", "1 Mbit/s", link="bridged-vcmux")
    >>> delayed.k, delayed.share
    (1.5, 1.0)
    """
    rates = {"down": _bps("down", down), "up": _bps("up", up)}
    form = partial(_lastmile.asymmetry, link)
    return Asymmetry(*apply(form, 4, **rates, data=_full(link, data), ack=ack, segments_per_ack=segments_per_ack))


def ack_rate(
    down: Rates, *, link: str, data: Numbers | None = None, ack: Numbers = 52, segments_per_ack: Numbers = 1.5
) -> AckRate:
    """The ACKs of a download that fills a line of ``down`` bit/s: ``lastmile model ack-rate --line``.

    ``segments_per_ack`` is at least 1, and rounded to thousandths.

    >>> from lastmile import theory
    >>> round(theory.ack_rate(12e6, link="none", segments_per_ack=2).acks_per_s)
    500
    """
    form = partial(_lastmile.ack_rate, link)
    sizes = {"data": _full(link, data), "ack": ack}
    return AckRate(*apply(form, 2, down=_bps("down", down), **sizes, segments_per_ack=segments_per_ack))


def amp(
    down: Rates, up: Rates, *, link: str, data: Numbers | None = None, ack: Numbers = 52, packets_per_ack: Numbers = 2
) -> Amp:
    """The AMP bound (Kalyanaraman, Shekhar, Kidambi 1999) for downloads alone: ``lastmile model amp``.

    ``packets_per_ack`` is M, rounded to thousandths: 2 with delayed ACKs, 1 if each packet is acknowledged.

    >>> from lastmile import theory
    >>> theory.amp("8 Mbit/s", ["64 kbit/s", "1 Mbit/s"], link="none", ack=40, packets_per_ack=1).bound_bps
    array('d', [2400000.0, 8000000.0])
    """
    rates = {"down": _bps("down", down), "up": _bps("up", up)}
    sizes = {"data": _full(link, data), "ack": ack}
    return Amp(*apply(partial(_lastmile.amp, link), 4, **rates, **sizes, packets_per_ack=packets_per_ack))


def grant_bound(
    request_grant_s: Numbers, *, acks: Numbers = 1, segments_per_ack: Numbers = 1, data: Numbers = 1500
) -> Any:
    """The rate in bit/s to which ACKs limit a download if each burst of the upstream waits for a grant.

    A station with one request outstanding sends one burst of ``acks`` ACKs in ``request_grant_s`` seconds ("DOCSIS
    sub-throughput optimization", CED, December 2006). The rate counts the bytes that ``data`` counts.
    ``segments_per_ack`` is at least 1, and rounded to thousandths.

    >>> from lastmile import theory
    >>> theory.grant_bound([0.005, 0.003], segments_per_ack=2)
    array('d', [4800000.0, 8000000.0])
    """
    return apply(
        lambda a, out: _lastmile.grant_bound(a, *out),
        request_grant_s=request_grant_s,
        acks=acks,
        segments_per_ack=segments_per_ack,
        data=data,
    )


def wait_behind(rate: Rates, *, link: str, packets: Numbers = 1, size: Numbers | None = None) -> Any:
    """Seconds that ``packets`` packets of ``size`` IP bytes take on the wire.

    >>> from lastmile import theory
    >>> theory.wait_behind("1 Mbit/s", link="none")
    0.012
    """
    sizes = {"packets": packets, "size": _full(link, size)}
    return apply(lambda a, out: _lastmile.wait_behind(link, a, *out), rate=_bps("rate", rate), **sizes)


def r_factor(delay_s: Numbers, loss: Numbers = 0, *, codec: str = "g711", burst_ratio: Numbers = 1) -> Any:
    """The transmission rating factor R of a call: the E-model of ITU-T G.107.

    ``delay_s`` is the one-way delay from mouth to ear, ``loss`` the share of packets that are not played, from 0 to 1.

    >>> from lastmile import theory
    >>> round(theory.r_factor(0.0), 1)
    93.2
    """
    return apply(lambda a, out: _lastmile.r_factor(codec, a, *out), delay_s=delay_s, loss=loss, burst_ratio=burst_ratio)


def mos(r: Numbers) -> Any:
    """The mean opinion score of R (ITU-T G.107, annex B).

    >>> from lastmile import theory
    >>> round(theory.mos(93.2), 2)
    4.41
    """
    return apply(lambda a, out: _lastmile.mos(*a, *out), r=r)


def jain(shares: Iterable[float]) -> float | None:
    """Jain's index of fairness; ``None`` if there is nothing to share, ``nan`` for shares below zero.

    >>> from lastmile import theory
    >>> theory.jain([1, 1, 0, 0])
    0.5
    """
    return _lastmile.jain(floats("shares", shares))


def mean(samples: Iterable[float]) -> Mean | None:
    """The mean of independent samples with its 95 % confidence interval; ``None`` for no samples.

    >>> from lastmile import theory
    >>> theory.mean([4.0, 6.0]).mean, theory.mean([5.0]).ci95
    (5.0, nan)
    """
    found = _lastmile.mean_ci95(floats("samples", samples))
    return None if found is None else Mean(*found)
