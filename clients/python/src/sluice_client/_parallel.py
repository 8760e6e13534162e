"""Several iterators at once, each in a thread of its own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

# Each thread may be this many values ahead of the reader: a reader that stops holds the servers back.
_AHEAD = 2


def interleaved(sources: Sequence[Iterator[T]]) -> Iterator[T]:
    """The values of all sources, each source's in its order. Raises what the first failing source raises.

    All threads end when the iterator is closed: they notice at their next value.
    """
    shared: _Shared[T] = _Shared(len(sources) * _AHEAD)
    threads = [threading.Thread(target=shared.run, args=(source,), daemon=True) for source in sources]
    for thread in threads:
        thread.start()
    left = len(threads)
    try:
        while left > 0:
            value = shared.values.get()
            if isinstance(value, _Ended):
                if value.error is not None:
                    raise value.error
                left -= 1
            else:
                yield value
    finally:
        shared.stop()


class _Ended:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class _Shared(Generic[T]):
    def __init__(self, most: int) -> None:
        self.values: queue.Queue[T | _Ended] = queue.Queue(most)
        self._stopped = threading.Event()

    def run(self, source: Iterator[T]) -> None:
        error: BaseException | None = None
        try:
            for value in source:
                if not self._put(value):
                    return
        except BaseException as failure:  # it is raised in the reader's thread
            error = failure
        self._put(_Ended(error))

    def stop(self) -> None:
        self._stopped.set()

    def _put(self, value: T | _Ended) -> bool:
        while not self._stopped.is_set():
            try:
                self.values.put(value, timeout=0.5)
                return True
            except queue.Full:
                continue
        return False
