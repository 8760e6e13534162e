"""Tables of Arrow, whose record batches carry their own proof. Needs pyarrow."""

from __future__ import annotations

import json
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import pyarrow
import pyarrow.compute
import pyarrow.ipc

from ._crc32 import crc32_combine
from ._errors import Interrupted, Refused, printable
from ._http import Answer
from ._parallel import interleaved
from ._proof import BEGINNING, Place, first_of_set
from ._retry import Backoff, Options
from ._url import asking, parameter, rest_of, with_query

_ARROW = "application/vnd.apache.arrow.stream"
# A record batch has about 256 KiB of rows, or one row of at most 16 MiB, whose JSON text is at most six times as long.
_LONGEST_MESSAGE = 256 * 1024 * 1024
_COLUMNS = b"sluice.columns"
_CHECKPOINT = "sluice.checkpoint"
_END = "sluice.end"
# The member custom_metadata of the table Message (Message.fbs of Arrow).
_CUSTOM_METADATA = 4


@dataclass(frozen=True)
class Batch:
    """A record batch whose rows are proved. `batch` is None in the last one."""

    schema: pyarrow.Schema
    batch: pyarrow.RecordBatch | None
    place: Place
    changes: str | None = None


def batches_of(urls: list[str], options: Options) -> Iterator[Batch]:
    """All record batches of these streams, which have one schema. Raises as `stream_of` does."""
    if len(urls) == 1:
        return _stream_of(urls[0], options)
    return interleaved([_stream_of(url, options) for url in urls])


def table_of(batches: Iterator[Batch]) -> pyarrow.Table:
    found: list[pyarrow.RecordBatch] = []
    schema: pyarrow.Schema | None = None
    for item in batches:
        schema = schema or item.schema
        if item.batch is not None:
            found.append(item.batch)
    table = pyarrow.Table.from_batches(found, schema)
    _warn_of_rest(table)
    return table


def _warn_of_rest(table: pyarrow.Table) -> None:
    """Warns of columns that are null where rows have a value of another kind: a sum would leave these out."""
    if "_rest" not in table.column_names:
        return
    rest = table.column("_rest").cast(pyarrow.string()).drop_null()
    for field in table.schema:
        name = "_id" if field.name == "id" else field.name
        likely = rest.filter(pyarrow.compute.match_substring(rest, f"{json.dumps(name, ensure_ascii=False)}:"))
        rows = sum(name in json.loads(text) for text in likely.to_pylist())
        if rows > 0:
            warnings.warn(
                f"the column {printable(field.name)} is null in {rows} rows whose values are not of its type, "
                f"{field.type}: they stand in the column _rest. columns= in the URL chooses kinds, such as "
                "id:integer,price:double, and schema=strict refuses such rows",
                stacklevel=4,
            )


def _stream_of(url: str, options: Options) -> Iterator[Batch]:
    """See `stream_of` in _stream.py. A record batch is proved by its own metadata."""
    url = asking(url, {"format": "arrow"})
    is_strict = parameter(url, "schema") == "strict"
    if is_strict:  # the server would cut such a stream again and again, without a reason
        url = with_query(url, {"schema": None})
    place = BEGINNING
    first: bytes | None = None
    columns: str | None = None
    backoff = Backoff(options)
    while not place.ended:
        rest = rest_of(url, place.cursor, place.rows)
        if rest is None:
            return
        before = place
        try:
            with Answer(with_query(rest, {"columns": columns} if columns else {}), _ARROW, options, backoff) as answer:
                for item in _proved(answer, place):
                    columns = _columns_of(item.schema)
                    if item.batch is not None and place.rows == before.rows:
                        first = first_of_set(_first_row(item.batch), before, first)
                    if item.place.rows > place.rows:
                        backoff.reset()
                    place = item.place
                    with backoff.left() if item.batch is not None else nullcontext():
                        yield _without_rest(item) if is_strict else item
            if not place.ended and place.cursor == before.cursor:
                raise Interrupted("the server ended the stream without a row")
        except Interrupted as failure:
            backoff.after(failure)


def _first_row(batch: pyarrow.RecordBatch) -> bytes:
    """What tells the first row from others: its key is in a column, or in `_rest`."""
    return repr(batch.slice(0, 1).to_pylist()).encode()


def _without_rest(item: Batch) -> Batch:
    """A batch in a schema that has no `_rest`. Raises Refused when a row has something there."""
    at = len(item.schema) - 1
    if item.batch is None:
        return replace(item, schema=item.schema.remove(at))
    rest = item.batch.column(at)
    if rest.null_count < len(rest):
        row = item.batch.slice(rest.is_valid().index(True).as_py(), 1).to_pylist()[0]
        raise Refused(
            f"schema=strict: the row {next(iter(row.values()))!r} has values that fit no column: {row['_rest']}"
        )
    columns = item.batch.columns[:at]
    schema = item.schema.remove(at)
    return replace(item, schema=schema, batch=pyarrow.RecordBatch.from_arrays(columns, schema=schema))


def _columns_of(schema: pyarrow.Schema) -> str:
    value = (schema.metadata or {}).get(_COLUMNS)
    if value is None:
        raise Refused("the schema does not name its columns")
    return bytes(value).decode()


def _proved(answer: Answer, start: Place) -> Iterator[Batch]:
    source = pyarrow.PythonFile(_Source(answer.chunks()), mode="r")
    schema: pyarrow.Schema | None = None
    held: list[pyarrow.RecordBatch] = []
    rows = size = crc = 0
    while True:
        message = _message(source)
        if message is None:
            raise Interrupted("the answer ended without its last record batch")
        if message.type == "schema":
            with _of_arrow():
                schema = pyarrow.ipc.read_schema(message)
            continue
        if schema is None or message.type != "record batch":
            raise Refused(f"the server sent a message of the type {message.type!r}")
        with _of_arrow():
            batch = pyarrow.ipc.read_record_batch(message, schema)
            facts = _metadata(bytes(message.metadata))
        is_end = _END in facts
        rows += batch.num_rows
        size += message.body.size
        crc = zlib.crc32(message.body, crc)
        tally = _tally(facts.get(_END if is_end else _CHECKPOINT))
        stated = (tally.get("rows"), tally.get("bytes"), tally.get("crc32"))
        if stated != (rows, size, f"{crc:08x}"):
            raise Interrupted(f"the received rows {(rows, size, f'{crc:08x}')} do not match their proof {stated}")
        if batch.num_rows > 0:
            held.append(batch)
        cursor = tally.get("cursor")
        if cursor is None and not is_end and rows > 0:
            continue  # the key of the last row is too long for a cursor
        more = tally.get("more") is True
        place = Place(
            cursor=cursor if isinstance(cursor, str) else start.cursor,
            rows=start.rows + rows,
            bytes=start.bytes + size,
            crc32=crc32_combine(start.crc32, crc, size),
            ended=is_end and not more,
        )
        changes = tally.get("changes")
        for n, one in enumerate(held, 1):
            yield Batch(schema, one, place if n == len(held) else start)
        held = []
        if is_end:
            yield Batch(schema, None, place, changes if isinstance(changes, str) else None)
            return


def _message(source: pyarrow.PythonFile) -> Any:
    try:
        with _of_arrow():
            return pyarrow.ipc.read_message(source)
    except EOFError:
        return None


@contextmanager
def _of_arrow() -> Iterator[None]:
    try:
        yield
    except (pyarrow.ArrowException, OSError, struct.error, UnicodeDecodeError, IndexError) as error:
        raise Interrupted(f"the answer was cut or is not Arrow: {error}") from None


def _tally(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Interrupted("a record batch has no proof")
    return value


class _Source:
    """The bytes of an answer, as a file that pyarrow reads."""

    closed = False

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def read(self, size: int) -> bytes:
        if size > _LONGEST_MESSAGE:
            raise Refused(f"the server sent a message of more than {_LONGEST_MESSAGE >> 20} MiB")
        parts = [self._rest[:size]]
        have = len(parts[0])
        self._rest = self._rest[size:]
        while have < size:
            chunk = next(self._chunks, b"")
            if not chunk:
                break
            parts.append(chunk[: size - have])
            self._rest = chunk[size - have :]
            have += len(parts[-1])
        return b"".join(parts)

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


def _metadata(message: bytes) -> dict[str, str]:
    """The custom metadata of a message, which pyarrow does not return for a message that is read by itself."""
    table = _u32(message, 0)
    vector = _member(message, table, _CUSTOM_METADATA)
    if vector is None:
        return {}
    facts: dict[str, str] = {}
    for n in range(_u32(message, vector)):
        at = vector + 4 + 4 * n
        pair = at + _u32(message, at)
        key, value = _member(message, pair, 0), _member(message, pair, 1)
        if key is not None and value is not None:
            facts[_string(message, key)] = _string(message, value)
    return facts


def _member(buffer: bytes, table: int, number: int) -> int | None:
    """Where a member of a table of flatbuffers is that lies elsewhere. None: it is absent."""
    vtable = table - struct.unpack_from("<i", buffer, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", buffer, vtable)[0]:
        return None
    offset = struct.unpack_from("<H", buffer, vtable + 4 + 2 * number)[0]
    return None if offset == 0 else table + offset + _u32(buffer, table + offset)


def _string(buffer: bytes, at: int) -> str:
    return buffer[at + 4 : at + 4 + _u32(buffer, at)].decode()


def _u32(buffer: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", buffer, at)[0])
