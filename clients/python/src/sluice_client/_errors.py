"""What can go wrong while a set is read."""

from __future__ import annotations

GONE = 410
# The same request may succeed later: the server is unavailable, busy, or failed on this one request.
_RETRYABLE = frozenset({408, 425, 429, 500, 502, 503, 504, 507})


# Characters of a message: a server may send megabytes.
_LONGEST_MESSAGE = 2_000


def printable(text: str) -> str:
    """A text that may quote a server, without what a terminal would obey."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:_LONGEST_MESSAGE])


class SluiceError(Exception):
    """The base class of all errors of this package."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message))


class Interrupted(SluiceError):
    """The answer was cut, or none came, until `retry_for` was over. The set is incomplete.

    `retry_after`: how many seconds the server asks a client to wait.
    """

    def __init__(self, message: str, retry_after: float = 0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Refused(SluiceError):
    """Another attempt would fail in the same way. `status` is that of the server's answer, if it was that."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Gone(Refused):
    """The server no longer has what a cursor leads to: the rest of a snapshot or of a replaced collection, or the
    changes since then. Begin again without a cursor, and with an empty copy."""


def failure_of(status: int, message: str, retry_after: float = 0) -> SluiceError:
    """The error for an answer with this status, or for a problem document with it."""
    if status in _RETRYABLE:
        return Interrupted(message, retry_after)
    return Gone(message, status) if status == GONE else Refused(message, status)
