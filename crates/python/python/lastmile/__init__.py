"""The laboratory for TCP over access lines whose directions differ.

>>> import lastmile as lm
>>> line = lm.line("adsl2plus-12-1", home="single").set("duration", "5 s")
>>> run = lm.run(line, seed=1)
>>> sorted(run.summary)[:4]
['applications', 'atm', 'clock', 'conservation']
"""

from __future__ import annotations

from lastmile import _ending, linklayer, theory
from lastmile._errors import ContractError, ScenarioError, ScenarioWarning
from lastmile._lastmile import (
    Ack,
    Analysis,
    Comparison,
    Loss,
    Packet,
    Packets,
    Reproduction,
    Run,
    Scenario,
    Series,
    Space,
    Study,
    Table,
    __version__,
)
from lastmile._own import CongestionControl, Discipline
from lastmile._quantities import Duration, Rate, Size
from lastmile._runs import analyse, compare, homes, line, lines, load, loads, reproduce, run
from lastmile._study import Until, cases, latin, linear, log, paired, study, until

__all__ = [
    "Ack",
    "Analysis",
    "Comparison",
    "CongestionControl",
    "ContractError",
    "Discipline",
    "Duration",
    "Loss",
    "Packet",
    "Packets",
    "Rate",
    "Reproduction",
    "Run",
    "Scenario",
    "ScenarioError",
    "ScenarioWarning",
    "Series",
    "Size",
    "Space",
    "Study",
    "Table",
    "Until",
    "__version__",
    "analyse",
    "cases",
    "compare",
    "homes",
    "latin",
    "line",
    "linear",
    "linklayer",
    "lines",
    "load",
    "loads",
    "log",
    "paired",
    "reproduce",
    "run",
    "study",
    "theory",
    "until",
]

_ending.prepare()
