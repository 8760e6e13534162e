"""A stream that goes on after each cut, from its last proved place."""

from __future__ import annotations

from collections.abc import Iterator

from ._errors import Interrupted, Refused
from ._http import Answer
from ._proof import BEGINNING, CHANGES, ROWS, Piece, Place, first_of_set, proved
from ._retry import Backoff, Options
from ._url import asking, rest_of, with_query

_NDJSON = "application/x-ndjson"
_WITH_CHECKPOINTS = {"format": "ndjson", "checkpoints": "true"}


def stream_of(url: str, options: Options, start: Place = BEGINNING) -> Iterator[Piece]:
    """All pieces of a stream behind `start`, until its end.

    Raises Interrupted when nothing more was proved for `retry_for` seconds, and Refused when another attempt is
    useless.
    """
    url = asking(url, _WITH_CHECKPOINTS)
    place = start
    first = None
    backoff = Backoff(options)
    while not place.ended:
        at = rest_of(url, place.cursor, place.rows)
        if at is None:
            return
        before = place
        try:
            for piece in _pieces(at, place, ROWS, options, backoff):
                if piece.lines and place.rows == before.rows:
                    first = first_of_set(piece.lines[0], before, first)
                place = piece.place
                if piece.lines:
                    backoff.reset()
                yield from _given(piece, backoff)
            if not place.ended and place.cursor == before.cursor:
                raise Interrupted("the server ended the stream without a row")
        except Interrupted as failure:
            backoff.after(failure)


def feed_of(url: str, options: Options, start: Place, cursor_name: str) -> Iterator[Piece]:
    """The pieces of a feed of changes, for ever. `cursor_name`: the parameter that a place goes into.

    Raises as `stream_of` does, and Gone when the server no longer has the changes behind the last place.
    """
    place = start
    backoff = Backoff(options)
    while True:
        try:
            goes_on = False
            for piece in _pieces(with_query(url, {cursor_name: place.cursor}), place, CHANGES, options, backoff):
                if piece.place.cursor is None:
                    raise Refused("the server sent a place without a cursor")
                if piece.lines or piece.up_to_date:  # while nothing changes, only places come
                    backoff.reset()
                goes_on = piece.more and piece.place.cursor != place.cursor
                place = piece.place
                yield from _given(piece, backoff)
            if not goes_on:
                raise Interrupted("the server ended the feed")
        except Interrupted as failure:
            backoff.after(failure)


def _given(piece: Piece, backoff: Backoff) -> Iterator[Piece]:
    if not piece.lines:
        yield piece
        return
    with backoff.left():
        yield piece


def _pieces(
    url: str, place: Place, beginnings: tuple[bytes, ...], options: Options, backoff: Backoff
) -> Iterator[Piece]:
    with Answer(url, _NDJSON, options, backoff) as answer:
        yield from proved(answer.chunks(), place, beginnings)
