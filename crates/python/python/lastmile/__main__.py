"""``python -m lastmile``: the command."""

from lastmile._command import main

main()
