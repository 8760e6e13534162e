"""Editions: a whole set as files that never change, each proved by its name."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urljoin, urlsplit, urlunsplit

from ._errors import Interrupted, Refused
from ._head import ChunkEntry, DeltaEntry, EditionHead, chunks_in, head_in, index_in
from ._http import Lead
from ._retry import Backoff, Options

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

_Result = TypeVar("_Result")

_HEAD = re.compile(r"(?P<base>.*/)edition(?:/(?P<name>[0-9a-f]{64}))?(?P<json>\.json)?/?")
# How often a file is asked for that is whole and not what its name says. A proxy may keep a wrong one.
_MOST_WRONG = 3
_MIB = 1024 * 1024
_LONGEST_HEAD = _MIB
_LONGEST_INDEX = 64 * _MIB
_LONGEST_DELTA = 1024 * _MIB
_STEP = 64 * 1024
_PARALLEL = 4


class Edition:
    """All rows of a resource at one time. Iterate `rows()`, or ask for all of them as a table or a file.

    What ends without an error is whole: each chunk is proved by its SHA-256, and all of them by the edition's name.
    """

    def __init__(self, url: str, options: Options, parse_float: Callable[[str], Any] | None = None) -> None:
        self._files = EditionFiles(url, options)
        self._parse_float = parse_float
        self._head = self._files.head()

    @property
    def head(self) -> EditionHead:
        """What the edition is."""
        return self._head

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows as dicts, in the order of their ids."""
        for line in self.lines():
            yield json.loads(line, parse_float=self._parse_float)

    def lines(self) -> Iterator[bytes]:
        """The rows as the server writes them: one JSON text each, without its LF."""
        for chunk in self.chunks():
            yield from chunk[:-1].split(b"\n")

    def chunks(self) -> Iterator[bytes]:
        """The rows as NDJSON, chunk by chunk. The last one comes when all of them are the edition."""
        return self._files.rows_of(self._head)

    def urls(self, format: str | None = None) -> list[str]:
        """The URLs of its chunks in order, in a format of `head.formats`, for readers of files. They prove nothing."""
        form = format or self._head.formats[0]
        if form not in self._head.formats:
            raise ValueError(f"the edition has no {form}, only {', '.join(self._head.formats)}")
        suffix = f"-{self._head.schema}.parquet" if form == "parquet" else f".{form}"
        return [self._files.url_of(self._head, f"{one.name}{suffix}") for one in self._files.chunks(self._head)]

    def download(self, path: str | PathLike[str]) -> None:
        """Writes the rows as NDJSON to `path`, which appears when they are proved."""
        part = f"{fspath(path)}.part"
        try:
            with open(part, "wb") as output:
                for chunk in self.chunks():
                    output.write(chunk)
                output.flush()
                os.fsync(output.fileno())
            os.replace(part, path)
        finally:
            with suppress(FileNotFoundError):
                os.remove(part)

    def to_arrow(self) -> pyarrow.Table:
        """All rows as a table of Arrow. Needs pyarrow. From Parquet where the edition has it, otherwise from JSON."""
        import pyarrow
        import pyarrow.json
        import pyarrow.parquet

        if self._has_parquet:
            tables = [pyarrow.parquet.read_table(BytesIO(file)) for file in self._files.parquet_of(self._head)]
            return pyarrow.concat_tables(tables) if tables else pyarrow.table({})
        data = b"".join(self.chunks())
        if data == b"":
            return pyarrow.table({})
        # A row must fit into a block, and kinds are looked for in the first of them.
        options = pyarrow.json.ReadOptions(block_size=max(len(data), _MIB))
        return pyarrow.json.read_json(BytesIO(data), read_options=options)

    def to_polars(self) -> polars.DataFrame:
        """All rows as a data frame of polars, from Parquet where the edition has it, otherwise from JSON."""
        import polars

        if self._has_parquet:
            frames = [polars.read_parquet(BytesIO(file)) for file in self._files.parquet_of(self._head)]
            return polars.concat(frames) if frames else polars.DataFrame()
        data = b"".join(self.chunks())
        return polars.read_ndjson(BytesIO(data), infer_schema_length=None) if data else polars.DataFrame()

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a data frame of pandas, with columns of Arrow types. Needs pyarrow and pandas."""
        import pandas

        return self.to_arrow().to_pandas(types_mapper=pandas.ArrowDtype)

    @property
    def _has_parquet(self) -> bool:
        return "parquet" in self._head.formats and self._head.schema is not None


class EditionFiles:
    """The files of a resource's editions. `received`: the bytes that came."""

    def __init__(self, url: str, options: Options) -> None:
        parts = urlsplit(url)
        found = _HEAD.fullmatch(parts.path)
        if found is None or parts.scheme not in ("http", "https"):
            raise ValueError(f"{url!r} is not the URL of an edition, such as http://127.0.0.1:3000/items/edition")
        self.is_static = found["json"] is not None
        self._url = urlunsplit(parts._replace(fragment=""))
        self._base = urlunsplit(parts._replace(path=found["base"], query="", fragment=""))
        self._options = replace(options, compression="identity")
        self.received = 0

    def head(self) -> EditionHead:
        return self._proved(self._url, _LONGEST_HEAD, lambda data: head_in(json.loads(data)))

    def rows_of(self, head: EditionHead) -> Iterator[bytes]:
        """The rows of an edition, chunk by chunk. Raises Refused before the last one when they are not the edition."""
        last: bytes | None = None
        crc = 0
        for _, rows in self._in_order(self.chunks(head), lambda entry: self.chunk(head, entry)):
            if last is not None:
                yield last
            crc = zlib.crc32(rows, crc)
            last = rows
        if f"{crc:08x}" != head.crc32:
            raise Refused(f"the rows are not the edition that the head names: their CRC-32 is {crc:08x}")
        if last is not None:
            yield last

    def chunks_but(self, head: EditionHead, had: set[str]) -> Iterator[bytes]:
        """The rows of the chunks of an edition that a reader does not have, chunk by chunk."""
        missing = (entry for entry in self.chunks(head) if entry.name not in had)
        for _, rows in self._in_order(missing, lambda entry: self.chunk(head, entry)):
            yield rows

    def parquet_of(self, head: EditionHead) -> Iterator[bytes]:
        """The chunks of an edition as files of Parquet. Their names prove the rows that they were made of, not the
        files: of these, the length is that of the index."""
        for _, file in self._in_order(self.chunks(head), lambda entry: self._parquet(head, entry)):
            yield file

    def chunks(self, head: EditionHead) -> Iterator[ChunkEntry]:
        """The entries of the chunks of an edition. Raises Refused at the end when they are not the edition."""
        names = hashlib.sha256()
        rows = 0
        length = 0
        for index in head.index:
            for entry in self._below(head, index.name, index.level):
                names.update(f"{entry.name}\n".encode())
                rows += entry.rows
                length += entry.bytes
                yield entry
        if (names.hexdigest(), rows, length) != (head.edition, head.rows, head.bytes):
            raise Refused(f"the chunks are not the edition that the head names, {head.edition}")

    def chunk(self, head: EditionHead, entry: ChunkEntry) -> bytes:
        """The rows of a chunk."""
        form = next((one for one in head.formats if one in ("ndjson.gz", "ndjson")), None)
        if form is None:
            raise Refused(f"the edition has no chunks that this client reads, only {', '.join(head.formats)}")

        def proved(data: bytes) -> bytes:
            return _named(_unzipped(data, entry.bytes), entry.name)

        return self._proved(self.url_of(head, f"{entry.name}.{form}"), 2 * entry.bytes + _MIB, proved)

    def delta(self, head: EditionHead, entry: DeltaEntry) -> bytes:
        """The lines of a delta."""

        def proved(data: bytes) -> bytes:
            return _named(_unzipped(data, _LONGEST_DELTA), entry.name)

        return self._proved(self.url_of(head, f"{entry.name}.delta.ndjson.gz"), _LONGEST_DELTA, proved)

    def _below(self, head: EditionHead, name: str, level: int) -> Iterator[ChunkEntry]:
        data = self._proved(self.url_of(head, f"{name}.index.json"), _LONGEST_INDEX, lambda data: _named(data, name))
        try:
            value = json.loads(data)
            if value.get("level") != level:
                raise ValueError("another level")
            below = [] if level == 0 else index_in(value["index"])
            chunks = chunks_in(value["chunks"]) if level == 0 else []
            if any(one.level != level - 1 for one in below):
                raise ValueError("another level below")
        except (ValueError, KeyError, AttributeError) as error:
            raise Refused(f"the index file {name} is none: {error!r}") from None
        yield from chunks
        for one in below:
            yield from self._below(head, one.name, one.level)

    def _parquet(self, head: EditionHead, entry: ChunkEntry) -> bytes:
        size = entry.sizes.get("parquet", 0)

        def proved(data: bytes) -> bytes:
            if len(data) != size or data[:4] != b"PAR1" or data[-4:] != b"PAR1":
                raise ValueError("another file")
            return data

        return self._proved(self.url_of(head, f"{entry.name}-{head.schema}.parquet"), size, proved)

    def url_of(self, head: EditionHead, file: str) -> str:
        return urljoin(urljoin(self._base, head.files), file)

    def _in_order(
        self, entries: Iterator[ChunkEntry], work: Callable[[ChunkEntry], bytes]
    ) -> Iterator[tuple[ChunkEntry, bytes]]:
        """The results of the work, of which so many are done at once, in the order of the entries."""
        pool = ThreadPoolExecutor(_PARALLEL)
        under: list[tuple[ChunkEntry, Future[bytes]]] = []
        try:
            for entry in entries:
                under.append((entry, pool.submit(work, entry)))
                if len(under) >= _PARALLEL:
                    first, result = under.pop(0)
                    yield first, result.result()
            for first, result in under:
                yield first, result.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _proved(self, url: str, most: int, prove: Callable[[bytes], _Result]) -> _Result:
        """What `prove` makes of a file. It raises ValueError for another file, which is fetched again."""
        backoff = Backoff(self._options)
        wrong = 0
        while True:
            try:
                data, is_whole = self._fetched(url, most, backoff, wrong)
                try:
                    return prove(data)
                except (ValueError, RecursionError) as error:
                    wrong += 1
                    if is_whole and wrong >= _MOST_WRONG:
                        raise Refused(f"{url} is not what its name says, and was fetched {wrong} times") from error
                    raise Interrupted(f"{url} is cut, or not what its name says") from error
            except Interrupted as failure:
                backoff.after(failure)

    def _fetched(self, url: str, most: int, backoff: Backoff, wrong: int) -> tuple[bytes, bool]:
        """The bytes of a file, and whether they are all that the answer announced."""
        uncached = {"Cache-Control": "no-cache"} if wrong else {}
        with self._answer(url, backoff, uncached) as answer:
            announced = answer.header("content-length") or "0"
            data = bytearray()
            counted = 0
            for piece in answer.chunks():
                data += piece
                if len(data) > most:
                    break
                if len(data) - counted >= _STEP:
                    backoff.reset()
                    counted = len(data)
        self.received += len(data)
        return bytes(data), len(data) > most or not announced.isdigit() or len(data) >= int(announced)

    def _answer(self, url: str, backoff: Backoff, headers: dict[str, str]) -> Lead:
        is_own = urlsplit(url)[:2] == urlsplit(self._base)[:2]
        options = self._options if is_own else replace(self._options, key=None)
        answer = Lead(url, "*/*", options, backoff, headers=headers)
        link = answer.location()
        if link is None:
            return answer
        answer.close()
        # An object store gets no key.
        return Lead(link, "*/*", replace(options, key=None), backoff, headers=headers)


def _named(data: bytes, name: str) -> bytes:
    if hashlib.sha256(data).hexdigest() != name:
        raise ValueError("another SHA-256")
    return data


def _unzipped(data: bytes, most: int) -> bytes:
    """The bytes of gzip, at most so many. Others are as they are: a proxy may have undone it."""
    if data[:2] != b"\x1f\x8b":
        return data
    try:
        with gzip.GzipFile(fileobj=BytesIO(data)) as file:
            return file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"no gzip: {error}") from None
