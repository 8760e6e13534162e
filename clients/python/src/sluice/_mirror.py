"""A table of SQLite as a copy of a set. `sluice pull --into` keeps the same tables."""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import asdict
from os import PathLike

from ._changes import copied
from ._errors import Gone, Refused
from ._proof import BEGINNING, REMOVAL, Place
from ._retry import Options
from ._url import parameter, resource_of, url_of

# The table that says of each other table what it is a copy of, and how far.
_PULLS = "sluice_pulls"
_BUSY_SECONDS = 10.0
_SAMPLED_ROWS = 1000
_MOST_COLUMNS = 1000
# Columns that the table has itself. SQLite does not distinguish cases.
_OWN_COLUMNS = frozenset({"id", "row", "rowid", "oid", "_rowid_"})
_LONG_ENOUGH_INTEGER = re.compile(r"-?[1-9]\d{0,17}$|0$", re.ASCII)
_DECODER = json.JSONDecoder()


def mirror(url: str, path: str | PathLike[str], options: Options, follow: bool, restart: bool) -> Place:
    """See sluice.mirror."""
    stream = url_of(url, "stream")
    copy = _Copy(path, stream, restart)
    try:
        while True:
            try:
                return _keep(copy, stream, options, follow)
            except Gone:
                if copy.place.cursor is None:
                    raise
                copy.begin_again()
    finally:
        copy.close()


def _keep(copy: _Copy, stream: str, options: Options, follow: bool) -> Place:
    for piece in copied(stream, options, copy.place):
        copy.apply(piece.lines, piece.place)
        if piece.up_to_date and not follow:
            break
    return copy.place


class _Copy:
    """Rows and place change in one transaction, so a kill leaves the copy at a place that it knows."""

    def __init__(self, path: str | PathLike[str], stream: str, restart: bool) -> None:
        self._table = resource_of(stream)
        self._url = stream
        fields = parameter(stream, "fields")
        self._fields = None if fields is None else fields.split(",")
        self._is_void = False
        self._database = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            self.place = self._open(str(path), restart)
        except BaseException:
            self._database.close()
            raise
        self._has_columns = len(self._columns()) > 2

    def _open(self, path: str, restart: bool) -> Place:
        database = self._database
        database.execute("PRAGMA journal_mode = WAL")  # other programs may read meanwhile
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(f"CREATE TABLE IF NOT EXISTS {_PULLS} (name TEXT PRIMARY KEY, url TEXT, place TEXT)")
        if restart:
            database.execute(f"DROP TABLE IF EXISTS {_quoted(self._table)}")
            database.execute(f"DELETE FROM {_PULLS} WHERE name = ?", (self._table,))
        known = database.execute(f"SELECT url, place FROM {_PULLS} WHERE name = ?", (self._table,)).fetchone()
        if known is None:
            if self._columns():
                raise Refused(f"{path} has a table {self._table} that is not a copy: restart=True replaces it")
            return BEGINNING
        if known[0] != self._url:
            raise Refused(f"the table {self._table} of {path} is a copy of {known[0]}: restart=True replaces it")
        return Place(**json.loads(known[1]))

    def begin_again(self) -> None:
        """The rows go with the next piece."""
        self._is_void = True
        self.place = BEGINNING

    def apply(self, lines: list[bytes], place: Place) -> None:
        texts = [line.decode() for line in lines]
        self._database.execute("BEGIN IMMEDIATE")
        try:
            self._write(texts, place)
            self._database.execute("COMMIT")
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self.place = place
        self._is_void = False

    def close(self) -> None:
        self._database.close()

    def _write(self, lines: list[str], place: Place) -> None:
        database = self._database
        table = _quoted(self._table)
        database.execute(
            f"CREATE TABLE IF NOT EXISTS {table} (id PRIMARY KEY NOT NULL, row TEXT NOT NULL) WITHOUT ROWID"
        )
        if self._is_void:
            database.execute(f"DELETE FROM {table}")
        if not self._has_columns:
            self._add_columns(lines)
        removal = REMOVAL.decode()
        for line in lines:
            if line.startswith(removal):
                database.execute(f"DELETE FROM {table} WHERE id = ?", (_key_of(line[len(removal) :]),))
            else:
                database.execute(f"INSERT OR REPLACE INTO {table} (id, row) VALUES (?, ?)", (_key_of(line), line))
        database.execute(
            f"INSERT OR REPLACE INTO {_PULLS} (name, url, place) VALUES (?, ?, ?)",
            (self._table, self._url, json.dumps(asdict(place))),
        )

    def _add_columns(self, lines: list[str]) -> None:
        """Adds a virtual column for each field that the URL asks for, or else that the first rows have."""
        rows = [json.loads(line) for line in lines if not line.startswith(REMOVAL.decode())][:_SAMPLED_ROWS]
        if not rows:
            return
        names = self._fields or [name for row in rows for name in list(row)[1:]]
        known = set(_OWN_COLUMNS)
        for name in names:
            if name.lower() in known or name == "" or '"' in name or "\0" in name:
                continue
            if len(known) >= _MOST_COLUMNS:
                break
            known.add(name.lower())
            values = [f"json_extract(row, {_text(path)})" for path in _paths_of(name)]
            value = values[0] if len(values) == 1 else f"coalesce({', '.join(values)})"
            self._database.execute(
                f"ALTER TABLE {_quoted(self._table)} ADD COLUMN {_quoted(name)} GENERATED ALWAYS AS ({value}) VIRTUAL"
            )
        self._has_columns = True

    def _columns(self) -> list[object]:
        return self._database.execute("SELECT name FROM pragma_table_xinfo(?)", (self._table,)).fetchall()


def _key_of(row: str) -> str | int | float | bytes:
    """The id of a row as SQLite keeps it: text as text, a number as a number where that keeps all digits, and anything
    else as a blob with its JSON. So two ids are equal only if their JSON is."""
    begin = row.index(":") + 1
    value, end = _DECODER.raw_decode(row, begin)
    text = row[begin:end]
    if isinstance(value, str):
        return value
    if _LONG_ENOUGH_INTEGER.match(text):
        return int(text)
    if isinstance(value, float) and not value.is_integer() and repr(value) == text:
        return value
    return text.encode()


def _paths_of(name: str) -> list[str]:
    """The places of a field in a row: under its own name, and, with dots in it, under the names of its path."""
    parts = ".".join(f'"{part}"' for part in name.split("."))
    return [f'$."{name}"', f"$.{parts}"] if "." in name else [f'$."{name}"']


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
