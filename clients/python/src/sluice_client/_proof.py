"""The lines of an answer, and the control lines that prove them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ._crc32 import crc32_combine
from ._errors import Interrupted, Refused, failure_of

# A server sends a checkpoint after 16 MiB of rows at the latest, or after the one row that exceeds them.
_MOST_UNPROVED = 128 * 1024 * 1024
# A document has at most 16 MiB of BSON, and JSON is at most six times as long.
_LONGEST_ROW = 100 * 1024 * 1024
_LONGEST_CONTROL = 64 * 1024
_LONGEST_CURSOR = 12 * 1024
# The bytes of a row that distinguish it from all others: its id comes first and fits into a URL.
_LONGEST_BEGINNING = 8192

REMOVAL = b'{"removed":'
ROWS = (b'{"id":', b'{"_id":')
# Of several resources, whose lines name theirs.
NAMED = b'{"resource":'
CHANGES = (*ROWS, REMOVAL, NAMED)


@dataclass(frozen=True)
class Place:
    """How far a reader has come: everything up to here is proved.

    `cursor` continues after it, and is None at the beginning. `rows`, `bytes` and `crc32` count all lines since the
    beginning, each with its LF. `ended`: there is nothing after it.
    """

    cursor: str | None = None
    rows: int = 0
    bytes: int = 0
    crc32: int = 0
    ended: bool = False


BEGINNING = Place()


@dataclass(frozen=True)
class Piece:
    """Lines that a control line has proved, without their LF, and the place behind them.

    `up_to_date`: a copy that has applied them equals the set. `more`: the answer ends here, and the rest follows its
    cursor. `changes`: the cursor from which the changes of a whole set follow, in its last piece.
    """

    lines: list[bytes]
    place: Place
    up_to_date: bool = False
    more: bool = False
    changes: str | None = None


def proved(chunks: Iterable[bytes], start: Place, beginnings: tuple[bytes, ...]) -> Iterator[Piece]:
    """The proved pieces of an answer that begins at `start`.

    `beginnings` are those of lines that are rows. Lines after the last control line are void. Returns at the end of the
    answer. Raises Interrupted when the end is missing or a control line is wrong, and Refused when the server gave up
    for good or sends what no sluice server sends.
    """
    held = bytearray()  # a list of short lines would take seven times their bytes
    rows = size = crc = 0
    for line in _lines(chunks):
        if line.startswith(beginnings):
            held += line
            held += b"\n"
            rows += 1
            if len(held) > _MOST_UNPROVED:
                raise Refused(f"the server sent more than {_MOST_UNPROVED >> 20} MiB without a checkpoint")
            continue
        kind, tally = _control(line)
        size += len(held)
        crc = zlib.crc32(held, crc)
        stated = (_count(tally, "rows") + _count(tally, "removed"), _count(tally, "bytes"), tally.get("crc32"))
        if stated != (rows, size, f"{crc:08x}"):
            raise Interrupted(
                f"the received rows {(rows, size, f'{crc:08x}')} do not match their control line {stated}"
            )
        more = tally.get("more") is True
        place = Place(
            cursor=_text(tally, "cursor") or start.cursor,
            rows=start.rows + rows,
            bytes=start.bytes + size,
            crc32=crc32_combine(start.crc32, crc, size),
            ended=kind == "end" and not more,
        )
        yield Piece(bytes(held).split(b"\n")[:-1], place, tally.get("upToDate") is True, more, _text(tally, "changes"))
        if kind == "end":
            return
        held.clear()
    raise Interrupted("the answer ended without its end line")


def first_of_set(row: bytes, start: Place, first: bytes | None) -> bytes | None:
    """The beginning of the first row of the set.

    `row`: the first one of an answer that begins at `start`. `first`: what this returned before. Raises Refused when
    the row is the first one again behind a cursor: a proof covers only an answer, so all rows would come twice.
    """
    beginning = row[:_LONGEST_BEGINNING]
    if start.rows == 0:
        return beginning
    if beginning == first:
        raise Refused("the server started over instead of continuing after the cursor")
    return first


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of an answer, wherever its chunks end. What follows the last LF is left out."""
    begun = bytearray()
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        begun += first
        if len(begun) > _LONGEST_ROW:
            raise Refused(f"the server sent a row of more than {_LONGEST_ROW >> 20} MiB")
        if not others:
            continue
        yield bytes(begun)
        yield from others[:-1]
        begun = bytearray(others[-1])


def _control(line: bytes) -> tuple[str, dict[str, object]]:
    try:
        value = json.loads(line) if len(line) <= _LONGEST_CONTROL else None
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and len(value) == 1:
        ((kind, content),) = value.items()
        if kind in ("checkpoint", "end") and isinstance(content, dict):
            return kind, content
        if kind == "error" and isinstance(content, dict) and isinstance(content.get("status"), int):
            raise failure_of(content["status"], f"the server gave up: {str(content.get('detail'))[:1000]}")
    raise Interrupted(f"a line is neither a row nor a control line: {line[:60]!r}")


def _count(tally: dict[str, object], name: str) -> int:
    value = tally.get(name, 0)
    return value if isinstance(value, int) else -1


def _text(tally: dict[str, object], name: str) -> str | None:
    value = tally.get(name)
    return value if isinstance(value, str) and len(value) <= _LONGEST_CURSOR else None
