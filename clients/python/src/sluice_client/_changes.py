"""What changed in a set since a cursor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ._proof import BEGINNING, NAMED, REMOVAL, Piece, Place
from ._retry import Options
from ._stream import feed_of
from ._url import asking, parameter, url_of, with_query


@dataclass(frozen=True)
class Change:
    """A row as it is now, or the removal of a row, whose `row` is None.

    `id`: the key of the row. A row that no longer matches the filter of the URL is removed, too, also when the reader
    never had it. `resource`: the one that it is of, where several are followed.
    """

    id: Any
    row: dict[str, Any] | None
    resource: str | None = None

    @property
    def removed(self) -> bool:
        return self.row is None


@dataclass(frozen=True)
class Changes:
    """Changes that belong together: apply them in their order by id, and keep the cursor with them.

    `cursor`: the place behind them, for the next `since`. `up_to_date`: a copy that has applied them equals the set.
    """

    changes: list[Change]
    cursor: str
    up_to_date: bool


def changes_since(url: str, since: str | None, options: Options, follow: bool) -> Iterator[Changes]:
    """See changes."""
    is_of_several = parameter(url, "resources") is not None
    feed = asking(url if is_of_several else url_of(url, "changes"), {"follow": "true"})
    given = parameter(feed, "since")
    if since is not None and given not in (None, since):
        raise ValueError("the URL has another since than the argument")
    start = Place(cursor=since or given)
    for piece in feed_of(with_query(feed, {"since": None}), options, start, "since"):
        assert piece.place.cursor is not None  # feed_of refuses such a piece
        yield Changes([change_of(line) for line in piece.lines], piece.place.cursor, piece.up_to_date)
        if piece.up_to_date and not follow:
            return


def copied(url: str, options: Options, start: Place = BEGINNING) -> Iterator[Piece]:
    """All rows of a set, and then its changes, for ever. Without a place it begins with an empty copy."""
    stream = with_query(url_of(url, "stream"), {"follow": "true"})
    return feed_of(stream, options, start, "cursor")


def change_of(line: bytes) -> Change:
    value = json.loads(line)
    if line.startswith(NAMED):
        resource = value.pop("resource")
        ((kind, row),) = value.items()
        return Change(_key_of(row), None if kind == "removed" else row, resource)
    if line.startswith(REMOVAL):
        return Change(_key_of(value["removed"]), None)
    return Change(_key_of(value), value)


def _key_of(row: dict[str, Any]) -> Any:
    """The key comes first, as `_id` when the row has a field `id` of its own."""
    return next(iter(row.values()))
