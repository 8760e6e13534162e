"""The attempts at one set, and the pauses between them."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ._errors import Interrupted

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 30.0


@dataclass(frozen=True)
class Options:
    """How requests are made. Times are in seconds.

    `key`: an API key, or None. `compression`: `gzip` or `identity`. `timeout`: a connection without data for this long
    is closed. `retry_for`: how long to wait, over all attempts, without another proved row.
    """

    key: str | None = None
    compression: str = "gzip"
    timeout: float = 60.0
    retry_for: float = 300.0

    def __post_init__(self) -> None:
        if self.compression not in ("gzip", "identity"):
            raise ValueError(f"compression is gzip or identity, not {self.compression!r}")
        if self.timeout <= 0 or self.retry_for < 0:
            raise ValueError("timeout is more than 0 seconds, and retry_for at least 0")


class Backoff:
    """Counts the time since the last proved row, whatever arrives meanwhile.

    The time that the caller spends on rows does not count. Each pause is twice as long as the one before. Half of it is
    random, so that clients do not return in step.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._most = max(options.retry_for, options.timeout)
        self._failures = 0
        self._spent = 0.0
        self._counted_to = time.monotonic()

    def reset(self) -> None:
        """Rows were proved. The next failure counts as the first one."""
        self._failures = 0
        self._spent = 0.0
        self._counted_to = time.monotonic()

    def _count(self) -> float:
        now = time.monotonic()
        self._spent += now - self._counted_to
        self._counted_to = now
        return self._spent

    @contextmanager
    def left(self) -> Iterator[None]:
        """The caller has rows. Its time does not count."""
        self._count()
        yield
        self._counted_to = time.monotonic()

    def waiting(self) -> float:
        """The number of seconds that are left for one operation."""
        left = self._most - self._count()
        if left <= 0:
            raise Interrupted(f"no row was proved for {self._most:.0f} s")
        return left

    def after(self, failure: Interrupted) -> None:
        """Returns when it is time for the next attempt. Raises the failure when `retry_for` is used up."""
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**self._failures)
        self._failures += 1
        seconds = max(failure.retry_after, pause * (0.5 + random.random() / 2))
        if self._count() + seconds > self._options.retry_for:
            raise failure
        time.sleep(seconds)
