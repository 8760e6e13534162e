"""A set of rows, read whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ._errors import Refused
from ._http import Answer
from ._parallel import interleaved
from ._retry import Backoff, Options
from ._stream import stream_of
from ._url import asking, refuse, url_of, with_query

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from ._arrow import Batch

_MOST_PARTS = 64


class Rows:
    """The rows of a resource. Iterate it, or ask for all of them as a table. Each iteration requests them anew.

    An iteration that ends has given all rows, each exactly once: every row was proved by a count and a CRC-32 before it
    was given, and a connection that is cut goes on behind the last proved row. Otherwise it raises Interrupted or
    Refused.
    """

    def __init__(
        self, url: str, options: Options, parallel: int, parse_float: Callable[[str], Any] | None = None
    ) -> None:
        if not 1 <= parallel <= _MOST_PARTS:
            raise ValueError(f"parallel is 1 to {_MOST_PARTS}, not {parallel}")
        self._url = url_of(url, "stream")
        refuse(self._url, ["follow"], "a set ends, see mirror and changes for what follows it")
        self._options = options
        self._parallel = parallel
        self._parse_float = parse_float
        self._changes_from: str | None = None

    @property
    def changes_from(self) -> str | None:
        """The cursor from which the changes of this set follow, after an iteration has ended.

        None for a set that begins or ends inside, has a range, or whose server has no changes.
        """
        return self._changes_from

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for lines in self._lines():
            for line in lines:
                yield json.loads(line, parse_float=self._parse_float)

    def lines(self) -> Iterator[bytes]:
        """The rows as the server writes them: one JSON text each, without its LF."""
        for lines in self._lines():
            yield from lines

    def to_arrow(self) -> pyarrow.Table:
        """All rows as a table of Arrow. Needs pyarrow."""
        from ._arrow import table_of

        return table_of(self._arrow())

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """All rows as record batches of Arrow, as they come. Needs pyarrow."""
        for item in self._arrow():
            if item.batch is not None:
                yield item.batch

    def to_polars(self) -> polars.DataFrame:
        """All rows as a data frame of polars: nested values are text with JSON. Needs pyarrow and polars."""
        import polars

        from ._arrow import table_of

        # Polars writes no CSV of columns of Arrow's type for JSON, and has no functions for these.
        frame = polars.from_arrow(table_of(self._arrow(json="text")))
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a data frame of pandas, with its columns of Arrow types. Needs pyarrow and pandas."""
        import pandas

        return self.to_arrow().to_pandas(types_mapper=pandas.ArrowDtype)

    def _arrow(self, json: str | None = None) -> Iterator[Batch]:
        from ._arrow import batches_of

        self._changes_from = None
        urls = self._streams("arrow")
        if json is not None:
            urls = [with_query(url, {"json": json}) for url in urls]
        for item in batches_of(urls, self._options):
            yield item
            if len(urls) == 1:
                self._changes_from = item.changes or self._changes_from

    def _lines(self) -> Iterator[list[bytes]]:
        self._changes_from = None
        streams = self._streams()
        if len(streams) > 1:
            return interleaved([_lines_of(url, self._options) for url in streams])
        return self._whole(streams[0])

    def _whole(self, url: str) -> Iterator[list[bytes]]:
        for piece in stream_of(url, self._options):
            yield piece.lines
            self._changes_from = piece.changes or self._changes_from

    def _streams(self, form: str = "ndjson") -> list[str]:
        """The URLs of the streams that are together the set."""
        if self._parallel == 1:
            return [self._url]
        return self._parts(form)

    def _parts(self, form: str) -> list[str]:
        refuse(
            self._url, ["sort"], "rows of parts come in the order of their arrival, those of parallel=1 in that of sort"
        )
        url = asking(url_of(self._url, "partitions"), {"n": str(self._parallel), "format": form})
        backoff = Backoff(self._options)
        with Answer(url, "application/json", self._options, backoff) as answer:
            self._changes_from = answer.header("changes-from")
            content = answer.json()
        parts = content.get("partitions") if isinstance(content, dict) else None
        if not isinstance(parts, list) or not 1 <= len(parts) <= self._parallel:
            raise Refused("the answer does not hold partitions")
        found = [part.get("url") if isinstance(part, dict) else None for part in parts]
        # Behind a proxy, the stream may have another path than the server knows.
        queries = [one.partition("?")[2].partition("#")[0] for one in found if isinstance(one, str)]
        if len(queries) < len(found):
            raise Refused("the answer does not hold partitions")
        return [urlsplit(self._url)._replace(query=query).geturl() for query in queries]


def _lines_of(url: str, options: Options) -> Iterator[list[bytes]]:
    for piece in stream_of(url, options):
        yield piece.lines
