"""A study file on a cluster of Dask: ``python -m lastmile.cluster ADDRESS FILE --out DIR``.

The command `lastmile study` runs the same file on one machine; this module speaks to a scheduler of Dask, which the
command cannot. ``DIR`` must be a folder of all machines. Runs, table and ``study.json`` are those of the command.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Any

from lastmile import _lastmile
from lastmile._progress import Bar

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command with its arguments, by default those of the process, and returns the exit code.

    As of `lastmile study`, it is 1 where runs have failed, and 2 where the study has.
    """
    parser = argparse.ArgumentParser(prog="python -m lastmile.cluster", description="Run a study on a cluster of Dask.")
    parser.add_argument("address", metavar="ADDRESS", help="address of the scheduler, such as tcp://10.0.0.1:8786")
    parser.add_argument("file", metavar="FILE", help="study file")
    parser.add_argument("--out", metavar="DIR", required=True, help="directory for runs and table, on all machines")
    parser.add_argument("--memory", metavar="SIZE", default="4 GiB", help="memory of the simulations of a worker")
    read = parser.parse_args(arguments)
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        print("error: Dask is not installed: pip install 'lastmile-tcp[dask]'", file=sys.stderr)
        return 2
    try:
        study = _lastmile.study_file(read.file)
        with distributed.Client(read.address, set_as_default=False) as client:
            progress = Bar() if sys.stderr.isatty() else None
            table = study.run(read.out, client=client, memory=read.memory, progress=progress)
            _, runs = study.status(read.out)
    except KeyboardInterrupt:
        return 130
    except (ValueError, RuntimeError, MemoryError, OSError) as wrong:
        text = str(wrong)
        print(text if text.startswith("error:") else f"error: {text}", file=sys.stderr)
        return 2
    print(table.text(), end="")
    # Warnings have named the runs that failed.
    return 0 if len(table) == runs else 1


if __name__ == "__main__":
    sys.exit(main())
