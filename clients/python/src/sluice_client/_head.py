"""What the files of an edition say, checked."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

_NAME = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class IndexEntry:
    name: str
    level: int


@dataclass(frozen=True)
class ChunkEntry:
    """Rows that follow one another. `name`: the SHA-256 of their NDJSON. `sizes`: bytes of its file in each format."""

    name: str
    rows: int
    bytes: int
    sizes: dict[str, int]


@dataclass(frozen=True)
class DeltaEntry:
    start: str
    to: str
    name: str


@dataclass(frozen=True)
class EditionHead:
    """An edition: all rows of a resource at one time.

    `edition`: its name, which proves all of it. `at`: when its rows were so. `rows`, `bytes` and `crc32`: of its rows
    as NDJSON. `changes`: the cursor from which changes follow. `formats`: of its chunks.
    """

    edition: str
    resource: str
    at: str
    rows: int
    bytes: int
    crc32: str
    changes: str
    target: int
    formats: list[str]
    files: str
    schema: str | None = None
    index: list[IndexEntry] = field(default_factory=list, repr=False)
    deltas: list[DeltaEntry] = field(default_factory=list, repr=False)


def head_in(value: Any) -> EditionHead:
    """Raises ValueError when a value of JSON is no head."""
    try:
        schema = value.get("schema")
        return EditionHead(
            edition=_name(value["edition"]),
            resource=_text(value["resource"]),
            at=_text(value["at"]),
            rows=_count(value["rows"]),
            bytes=_count(value["bytes"]),
            crc32=_text(value["crc32"]),
            changes=_text(value["changes"]),
            target=max(1, _count(value["target"])),
            formats=[_text(one) for one in value["formats"]],
            files=_text(value["files"]),
            schema=None if schema is None else _text(schema),
            index=index_in(value["index"]),
            deltas=[DeltaEntry(_name(one["from"]), _name(one["to"]), _name(one["name"])) for one in value["deltas"]],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no head of an edition: {error!r}") from None


def index_in(value: Any) -> list[IndexEntry]:
    try:
        return [IndexEntry(_name(one["name"]), _count(one["level"])) for one in value]
    except (KeyError, TypeError) as error:
        raise ValueError(f"no list of index files: {error!r}") from None


def chunks_in(value: Any) -> list[ChunkEntry]:
    try:
        return [
            ChunkEntry(
                _name(one["name"]),
                _count(one["rows"]),
                _count(one["bytes"]),
                {_text(name): _count(size) for name, size in one["sizes"].items()},
            )
            for one in value
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no list of chunks: {error!r}") from None


def deltas_from(head: EditionHead, edition: str) -> list[DeltaEntry]:
    """The deltas that lead from an edition to that of the head, in their order. Empty: there are none."""
    chain: list[DeltaEntry] = []
    to = head.edition
    while to != edition:
        found = next((one for one in head.deltas if one.to == to), None)
        if found is None or len(chain) > len(head.deltas):
            return []
        chain.insert(0, found)
        to = found.start
    return chain


def _name(value: object) -> str:
    if not isinstance(value, str) or _NAME.fullmatch(value) is None:
        raise ValueError("a name is no SHA-256")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a text is none")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError("a count is none")
    return value
