"""Scenarios and runs: the functions of the package."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterable, Mapping
from typing import SupportsIndex

from lastmile import _lastmile
from lastmile._arguments import axes, named, paths, wrong
from lastmile._lastmile import Analysis, Comparison, Reproduction, Run, Scenario
from lastmile._own import Controls, Queues
from lastmile._progress import Progress, callback
from lastmile._quantities import Duration, Size

ScenarioOrPath = Scenario | str | os.PathLike[str]
"""A scenario, or the path of its file."""


class FromFile(enum.Enum):
    """What an argument is that was not given, where ``None`` has a meaning of its own."""

    POLICY = "the policy of the file"

    def __repr__(self) -> str:
        return f"<{self.value}>"


def load(path: str | os.PathLike[str], /) -> Scenario:
    """The scenario in a TOML file.

    Files that it names, such as traces and policies, are found from its folder. Bad input raises `ScenarioError`
    with file, line, key and the expected form.

    >>> import lastmile as lm
    >>> try:
    ...     lm.load("missing.toml")
    ... except lm.ScenarioError as error:
    ...     print(error)
    error: missing.toml: no such file
    """
    return _lastmile.load(path)


def loads(text: str, /, name: str = "scenario", *, folder: str | os.PathLike[str] | None = None) -> Scenario:
    """The scenario in a text; messages call it ``name``.

    Files that it names, such as traces and policies, are found from ``folder``, by default the working directory.

    >>> import lastmile as lm
    >>> lm.loads('''
    ... duration = "10 s"
    ... [access]
    ... down = { rate = "16 Mbit/s" }
    ... up = { rate = "1 Mbit/s" }
    ... [[traffic]]
    ... kind = "bulk"
    ... direction = "down"
    ... ''')
    <lastmile.Scenario "scenario", 10 s, seed 1>
    """
    return _lastmile.loads(text, name, folder)


def line(name: str, /, home: str = "family") -> Scenario:
    """The scenario of an access line and a household of the library, as ``lastmile new`` writes it.

    >>> import lastmile as lm
    >>> lm.line("docsis-1000-50", home="family").name
    'family on docsis-1000-50'
    """
    return _lastmile.line(name, home)


def lines() -> dict[str, str]:
    """The access lines of the library, each with its description.

    >>> import lastmile as lm
    >>> "gpon-1000-500" in lm.lines()
    True
    """
    return dict(_lastmile.lines())


def homes() -> dict[str, str]:
    """The households of the library, each with its description.

    >>> import lastmile as lm
    >>> "family" in lm.homes()
    True
    """
    return dict(_lastmile.homes())


def run(
    scenario: ScenarioOrPath,
    /,
    *,
    seed: SupportsIndex | None = None,
    duration: str | Duration | None = None,
    policy: str | FromFile | None = FromFile.POLICY,
    queues: Queues | None = None,
    congestion: Controls | None = None,
    capture: Mapping[str, str | os.PathLike[str]] | None = None,
    progress: Progress = None,
    memory: str | Size = "4 GiB",
) -> Run:
    """Simulates a scenario, as ``lastmile run`` does.

    Without ``policy`` the policy is that of the scenario; ``None`` is none, as in the lists of `compare` and `study`.

    Other threads run meanwhile, and Ctrl-C ends the simulation. ``progress`` is ``True`` for a bar on standard error,
    or a function of the share that is done, from 0 to 1; an exception that it raises ends the run. A run that needs
    more than ``memory`` is refused, and one that exceeds it later raises `MemoryError`.

    ``queues`` replaces the queues of links by disciplines of Python (`Discipline`), and ``congestion`` the congestion
    control of traffic (`CongestionControl`). Each name has a class, or a function that makes the object. Such runs are
    slow, since packets or acknowledgements call Python. An exception of such an object ends the run.

    >>> import lastmile as lm
    >>> line = lm.line("adsl2plus-12-1", home="single")
    >>> run = lm.run(line, seed=7, duration="2 s", policy="cake")
    >>> run.summary["seed"], run.summary["inputs"]["set"]
    (7, ['seed=7', 'duration=2 s', 'access.policy=cake'])
    >>> lm.run(line, duration="2 s", policy=None).summary["inputs"]["set"]
    ['duration=2 s', 'access.policy=none']

    ``capture`` writes packets of links as pcapng, each into its file: those that tcpdump would record at the sending
    end of the link, in both directions, with their headers.

    >>> run = lm.run(line, duration="2 s", capture={"up": "out/up.pcapng"})
    >>> len(lm.analyse("out/up.pcapng").document["files"][0]["connections"]) > 0
    True
    """
    return _lastmile.run(
        scenario,
        seed=seed,
        duration=duration,
        policy=None if isinstance(policy, FromFile) else "none" if policy is None else policy,
        queues=None if queues is None else named("queues", "link", queues),
        congestion=None if congestion is None else named("congestion", "traffic", congestion),
        capture=None if capture is None else paths("capture", capture),
        progress=callback(progress),
        memory=memory,
    )


def _policies(policy: object) -> list[str | None]:
    """Names of policies."""
    if isinstance(policy, str):
        return [policy]
    if not isinstance(policy, Iterable):
        raise wrong("policy", "a name, a list of names, or None", policy)
    names: list[str | None] = list(policy)
    if not names:
        raise ValueError("policy: no values")
    return names


def compare(
    scenario: ScenarioOrPath,
    /,
    *,
    policy: str | Iterable[str | None] | None = None,
    vary: Mapping[str, object] | None = None,
    seed: SupportsIndex | None = None,
    seeds: SupportsIndex | None = None,
    duration: str | Duration | None = None,
    threads: SupportsIndex | None = None,
    progress: Progress = None,
    memory: str | Size = "4 GiB",
) -> Comparison:
    """Simulates a scenario under several policies, with several values of keys, or in its cases.

    Several lists make a grid; the values of the last change fastest. ``None`` in the list of policies is the scenario
    without one. Without a list, the rows are those of ``lastmile compare``. ``seeds`` runs each row so often, with
    seeds from that of the scenario on. Runs use all processors, or ``threads`` of them; results do not depend on it.

    Over an access line each row has a best-effort probe, a ping over UDP with at most 1 % of the upstream. So a row
    differs from `run` with the same seed, and from the same point of a `study`, which add none.

    >>> import lastmile as lm
    >>> line = lm.line("adsl2plus-12-1", home="single").set("duration", "2 s")
    >>> lm.compare(line, policy=[None, "cake"], vary={"access.up.rate": ["1 Mbit/s", "2 Mbit/s"]}).rows
    [['none', '1 Mbit/s'], ['none', '2 Mbit/s'], ['cake', '1 Mbit/s'], ['cake', '2 Mbit/s']]
    """
    return _lastmile.compare(
        scenario,
        policy=None if policy is None else _policies(policy),
        vary=None if vary is None else axes("vary", vary),
        seed=seed,
        seeds=seeds,
        duration=duration,
        threads=threads,
        progress=callback(progress),
        memory=memory,
    )


def analyse(*files: str | os.PathLike[str], group_by: str | None = None, packets: bool = False) -> Analysis:
    """Analyses captures, as ``lastmile analyse`` does: causes of retransmissions, limits, fairness.

    Files are pcap or pcapng, also compressed by gzip or zstd, or folders with the results of a run. ``group_by`` is
    ``dscp``, ``port`` or ``prefix/BITS``. ``packets`` keeps every TCP packet of a single capture, as Arrow, for
    statistics of your own and for plots.

    >>> import lastmile as lm
    >>> try:
    ...     lm.analyse("missing.pcapng")
    ... except lm.ScenarioError as error:
    ...     print(error)
    error: missing.pcapng: no such file
    hint: pcap and pcapng can be read, also compressed (gz, zst) or from standard input (-), and folders of `run --out`
    """
    return _lastmile.analyse(*files, group_by=group_by, packets=packets)


def reproduce(*tables: str, threads: SupportsIndex | None = None, progress: Progress = None) -> Reproduction:
    """Reproduces published tables, as ``lastmile reproduce`` does; all of them by default.

    A table is ``PUBLICATION/TABLE``; a publication names all its tables, and an id a further table of it. Ctrl-C ends
    the simulations, and so does an exception of ``progress``.

    >>> import lastmile as lm
    >>> [claim["verdict"] for claim in lm.reproduce("phanse2000/text-3.4").document["tables"][0]["claims"]]
    ['shown']
    """
    return _lastmile.reproduce(*tables, threads=threads, progress=callback(progress))
