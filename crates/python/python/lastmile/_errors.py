"""Exceptions of the package."""

from __future__ import annotations

__all__ = ["ContractError", "ScenarioError", "ScenarioWarning"]


class ContractError(RuntimeError):
    """A queueing discipline or a congestion control of Python breaks its contract, for example by losing a packet.

    >>> import lastmile as lm
    >>> class Hole:
    ...     def enqueue(self, packet, now):
    ...         pass
    ...     def dequeue(self, now):
    ...         return None
    >>> try:
    ...     lm.run(lm.line("adsl2plus-12-1", home="single"), duration="2 s", queues={"up": Hole})
    ... except lm.ContractError as error:
    ...     print(error)
    Hole.enqueue has lost packet 1: each packet is kept, returned by dequeue, or dropped by packet.drop(reason)
    """


class ScenarioError(ValueError):
    """A scenario that cannot be read, or a request that cannot be run.

    The text is the message of the command: every finding with its line and a caret. The attributes are those of the
    first error; an attribute without a value is ``None``.

    >>> import lastmile as lm
    >>> try:
    ...     lm.line("adsl2plus-12-1").set("access.up.rat", "1 Mbit/s")
    ... except lm.ScenarioError as error:
    ...     error.key, error.hint
    ('access.up.rat', 'did you mean "rate"?')
    """

    file: str | None
    """The file, as it was named."""
    line: int | None
    """The line, from 1 on."""
    column: int | None
    """The column in characters, from 1 on."""
    key: str | None
    """The key, such as ``access.up.rate``."""
    hint: str | None
    """The expected form."""

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        column: int | None = None,
        key: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.file = file
        self.line = line
        self.column = column
        self.key = key
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions are pickled by their positional arguments alone, and pools of processes pickle them.
        return (type(self), self.args, self.__dict__)


class ScenarioWarning(UserWarning):
    """A scenario that can be run, and hardly means what its author wanted.

    >>> import lastmile as lm
    >>> issubclass(lm.ScenarioWarning, UserWarning)
    True
    """
