"""A table of SQLite as a copy of a set. `sluice pull --into` keeps the same tables."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from decimal import Decimal
from os import PathLike

from ._changes import copied
from ._cut import Cutter
from ._edition import EditionFiles
from ._errors import Gone, Refused
from ._head import EditionHead, deltas_from
from ._proof import BEGINNING, REMOVAL, Place
from ._retry import Options
from ._stream import stream_of
from ._url import edition_of, parameter, refuse, resource_of, url_of, with_query

# The table that says of each other table what it is a copy of, and how far.
_PULLS = "sluice_pulls"
# The table that says which edition each of them was brought to last.
_EDITIONS = "sluice_editions"
_BUSY_SECONDS = 10.0
_SAMPLED_ROWS = 1000
_MOST_COLUMNS = 1000
# Columns that the table has itself. SQLite does not distinguish cases.
_OWN_COLUMNS = frozenset({"id", "row", "rowid", "oid", "_rowid_"})
_LONG_ENOUGH_INTEGER = re.compile(r"-?[1-9]\d{0,17}$|0$", re.ASCII)
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_DECODER = json.JSONDecoder()


def mirror(url: str, path: str | PathLike[str], options: Options, follow: bool, restart: bool) -> Place:
    """See mirror."""
    edition, stream = edition_of(url)
    if stream is None:
        stream = url_of(url, "stream")
        refuse(stream, ("follow", "cursor"), "a copy has its own place")
    files = None if edition is None else EditionFiles(edition, options)
    is_static = files is not None and files.is_static
    is_asked = url == edition
    copy = _Copy(path, stream, restart)
    tried = None
    try:
        if files is not None and (is_static or (is_asked and copy.place.cursor is None)):
            tried = _bring(copy, files)
            if is_static:
                return copy.place
        while True:
            try:
                return _keep(copy, stream, options, follow)
            except Gone:
                if copy.place.cursor is None:
                    raise
                if files is None or not _differs(files, tried):
                    copy.begin_again()
                else:
                    tried = _bring(copy, files)
    finally:
        copy.close()


def _differs(files: EditionFiles, tried: str | None) -> bool:
    """Whether there is an edition that the copy was not brought to."""
    try:
        return files.head().edition != tried
    except Refused:  # the resource need not have editions
        return False


def _bring(copy: _Copy, files: EditionFiles) -> str:
    """Brings a copy to the newest edition. Returns its name."""
    head = files.head()
    while True:
        try:
            copy.bring_to(head, files)
            return head.edition
        except Refused as error:  # an edition that is no longer kept has lost files
            newest = files.head() if error.status == 404 else head
            if newest.edition == head.edition:
                raise
            head = newest


def _keep(copy: _Copy, stream: str, options: Options, follow: bool) -> Place:
    for piece in copied(stream, options, copy.place):
        copy.apply(piece.lines, piece.place)
        if piece.up_to_date:
            copy.confirm(with_query(stream, {"fields": "_id"}), options)
            if not follow:
                break
    return copy.place


class _Copy:
    """Rows and place change in one transaction, so a kill leaves the copy at a place that it knows."""

    def __init__(self, path: str | PathLike[str], stream: str, restart: bool) -> None:
        self._table = resource_of(stream)
        self._url = stream
        fields = parameter(stream, "fields")
        self._fields = None if fields is None else fields.split(",")
        # Whether no two rows have one id as JSON shows it. Kept in the file as `ended` of the place.
        self._is_confirmed = False
        self._database = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            self.place = self._open(str(path), restart)
        except BaseException:
            self._database.close()
            raise
        # Rows without a place go with the next piece, such as chunks of an edition that is not whole.
        self._is_void = self.place.cursor is None
        self._has_columns = len(self._columns()) > 2

    def _open(self, path: str, restart: bool) -> Place:
        database = self._database
        database.execute("PRAGMA journal_mode = WAL")  # other programs may read meanwhile
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(f"CREATE TABLE IF NOT EXISTS {_PULLS} (name TEXT PRIMARY KEY, url TEXT, place TEXT)")
        database.execute(f"CREATE TABLE IF NOT EXISTS {_EDITIONS} (name TEXT PRIMARY KEY, edition TEXT)")
        if restart:
            database.execute(f"DROP TABLE IF EXISTS {_quoted(self._table)}")
            for state in (_PULLS, _EDITIONS):
                database.execute(f"DELETE FROM {state} WHERE name = ?", (self._table,))
        known = database.execute(f"SELECT url, place FROM {_PULLS} WHERE name = ?", (self._table,)).fetchone()
        if known is None:
            if self._columns():
                raise Refused(f"{path} has a table {self._table} that is not a copy: restart=True replaces it")
            return BEGINNING
        if known[0] != self._url:
            raise Refused(f"the table {self._table} of {path} is a copy of {known[0]}: restart=True replaces it")
        place = Place(**json.loads(known[1]))
        self._is_confirmed = place.ended
        return replace(place, ended=False)

    def begin_again(self) -> None:
        """The rows go with the next piece."""
        self._is_void = True
        self._is_confirmed = False
        self.place = BEGINNING

    def apply(self, lines: list[bytes], place: Place) -> None:
        texts = [line.decode() for line in lines]
        with self._transaction():
            self._write(texts, place)
        self.place = place
        self._is_void = False

    def bring_to(self, head: EditionHead, files: EditionFiles) -> None:
        """Makes the rows those of an edition: by its deltas, and then by the chunks that are missing.

        The copy is cut by the rule of the edition. A piece whose SHA-256 is the name of a chunk is that chunk, and all
        other rows go. So at the end the copy has the chunks of the edition, each proved by its name, and nothing else.
        A copy that was whole changes in one transaction. A new one keeps what it has when it is killed.
        """
        is_whole = self.place.cursor is not None
        with self._transaction():
            self._know_table()
            for delta in deltas_from(head, self._edition()):
                self._put(_texts(files.delta(head, delta)))
            names = [name for name, _, _ in self._cut(head.target)]
            if hashlib.sha256("".join(f"{name}\n" for name in names).encode()).hexdigest() != head.edition:
                self._take_chunks(head, files, is_whole)
            place = Place(head.changes, head.rows, head.bytes, int(head.crc32, 16), False)
            self._is_confirmed = True  # as many keys as rows
            self._database.execute(
                f"INSERT OR REPLACE INTO {_EDITIONS} (name, edition) VALUES (?, ?)", (self._table, head.edition)
            )
            self._write_place(place)
        self.place = place
        self._is_void = False

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Makes all changes within, or those since a COMMIT within, or none."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:  # a full disk has rolled back already
                self._database.execute("ROLLBACK")
            raise

    def _know_table(self) -> None:
        """Makes the table known as a copy, also when it is not whole."""
        self._make_table()
        self._write_place(self.place)

    def _edition(self) -> str:
        """The edition that the copy was brought to last. Empty: it never was."""
        found = self._database.execute(f"SELECT edition FROM {_EDITIONS} WHERE name = ?", (self._table,)).fetchone()
        return "" if found is None else str(found[0])

    def _cut(self, target: int) -> Iterator[tuple[str, object, object]]:
        """The pieces of the rows by the rule of editions: name, first key, last key."""
        cutter = Cutter(target)
        digest = hashlib.sha256()
        first = last = None
        for key, row in self._database.execute(f"SELECT id, row FROM {_quoted(self._table)} ORDER BY id"):
            line = f"{row}\n".encode()
            digest.update(line)
            first, last = (key if first is None else first), key
            if cutter.ends_behind(line):
                yield digest.hexdigest(), first, last
                digest, first = hashlib.sha256(), None
        if first is not None:
            yield digest.hexdigest(), first, last

    def _take_chunks(self, head: EditionHead, files: EditionFiles, is_whole: bool) -> None:
        table = _quoted(self._table)
        wanted = {entry.name for entry in files.chunks(head)}
        pieces = list(self._cut(head.target))
        for name, first, last in pieces:
            if name not in wanted:
                self._database.execute(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", (first, last))
        had = {name for name, _, _ in pieces} & wanted
        for rows in files.chunks_but(head, had):
            self._put(_texts(rows))
            if not is_whole:
                self._database.execute("COMMIT")
                self._database.execute("BEGIN IMMEDIATE")
                self._know_table()
        (count,) = self._database.execute(f"SELECT count(*) FROM {table}").fetchone()
        if count != head.rows:
            raise Refused(
                f"the copy has {count} of the {head.rows} rows of the edition: ids of different kinds look alike as "
                "JSON, so a copy would lose one of them"
            )

    def confirm(self, ids: str, options: Options) -> None:
        """Raises Refused when a row is missing because its id looks like another one.

        Each line since the beginning made a key of its own, or was a change of a row. Ids of several kinds may look
        alike as JSON, and then one of their rows is lost. So the keys are compared where there are fewer of them than
        lines.
        `ids`: the stream of the ids, where each row comes once.
        """
        if self._is_confirmed:
            return
        database = self._database
        (keys,) = database.execute(f"SELECT count(*) FROM {_quoted(self._table)}").fetchone()
        if keys < self.place.rows:
            database.execute("DROP TABLE IF EXISTS temp.ids")
            database.execute("CREATE TEMP TABLE ids (id PRIMARY KEY NOT NULL) WITHOUT ROWID")
            for piece in stream_of(ids, options):
                for line in piece.lines:
                    row = line.decode()
                    if database.execute("INSERT OR IGNORE INTO temp.ids VALUES (?)", (_key_of(row),)).rowcount == 0:
                        raise Refused(
                            f"two rows have the id {row[row.index(':') + 1 : -1]}: their ids are of different kinds, "
                            "which JSON cannot distinguish, so a copy would lose one of them"
                        )
            database.execute("DROP TABLE temp.ids")
        self._is_confirmed = True
        self._write_place(self.place)

    def close(self) -> None:
        self._database.close()

    def _write(self, lines: list[str], place: Place) -> None:
        self._make_table()
        if self._is_void:
            self._database.execute(f"DELETE FROM {_quoted(self._table)}")
        self._put(lines)
        self._write_place(place)

    def _make_table(self) -> None:
        self._database.execute(
            f"CREATE TABLE IF NOT EXISTS {_quoted(self._table)} "
            "(id PRIMARY KEY NOT NULL, row TEXT NOT NULL) WITHOUT ROWID"
        )

    def _put(self, lines: list[str]) -> None:
        """Applies rows and removals in their order."""
        database = self._database
        table = _quoted(self._table)
        if not self._has_columns:
            self._add_columns(lines)
        removal = REMOVAL.decode()
        for line in lines:
            if line.startswith(removal):
                database.execute(f"DELETE FROM {table} WHERE id = ?", (_key_of(line[len(removal) :]),))
            else:
                database.execute(f"INSERT OR REPLACE INTO {table} (id, row) VALUES (?, ?)", (_key_of(line), line))

    def _write_place(self, place: Place) -> None:
        text = json.dumps(asdict(replace(place, ended=self._is_confirmed)))
        self._database.execute(
            f"INSERT OR REPLACE INTO {_PULLS} (name, url, place) VALUES (?, ?, ?)", (self._table, self._url, text)
        )

    def _add_columns(self, lines: list[str]) -> None:
        """Adds a virtual column for each field that the URL asks for, or else that the first rows have."""
        rows = [json.loads(line) for line in lines if not line.startswith(REMOVAL.decode())][:_SAMPLED_ROWS]
        if not rows:
            return
        names = self._fields or [name for row in rows for name in list(row)[1:]]
        known = set(_OWN_COLUMNS)
        for name in names:
            if name.lower() in known or not _can_be_column(name):
                continue
            if len(known) >= _MOST_COLUMNS:
                break
            known.add(name.lower())
            self._database.execute(
                f"ALTER TABLE {_quoted(self._table)} ADD COLUMN {_quoted(name)} "
                f"GENERATED ALWAYS AS ({_value_of(name)}) VIRTUAL"
            )
        self._has_columns = True

    def _columns(self) -> list[object]:
        return self._database.execute("SELECT name FROM pragma_table_xinfo(?)", (self._table,)).fetchall()


def _texts(lines: bytes) -> list[str]:
    return lines.decode().split("\n")[:-1]


def _key_of(row: str) -> str | int | float | bytes:
    """The id of a row as SQLite keeps it: text as text, a number as a number where that keeps all digits, and anything
    else as a blob with its JSON. So two ids are equal only if their JSON is. Text that SQLite cuts at a NUL, or that
    UTF-8 does not have, is such a blob, too."""
    begin = row.index(":") + 1
    value, end = _DECODER.raw_decode(row, begin)
    text = row[begin:end]
    if isinstance(value, str):
        return text.encode() if _NO_TEXT.search(value) else value
    if _LONG_ENOUGH_INTEGER.match(text):
        return int(text)
    if isinstance(value, float) and not value.is_integer() and _shown(value) == text:
        return value
    return text.encode()


def _shown(value: float) -> str:
    """A number with a fraction as the server writes it, which is how JavaScript shows it."""
    text = repr(value)
    return format(Decimal(text), "f") if abs(value) >= 1e-6 else text.replace("e-0", "e-")


def _can_be_column(name: str) -> bool:
    """SQLite compares names in JSON with their escapes in some versions only."""
    return name != "" and json.dumps(name, ensure_ascii=False) == f'"{name}"'


def _value_of(name: str) -> str:
    """The value of a field: under its own name, and, with dots in it, under the names of its path.

    A path that leads to an array has that array as the row shows it.
    """
    names = name.split(".")
    values = [f"json_extract(row, {_path(path)})" for path in ([name], names)[: len(names)]]
    arrays = [_path(names[:n]) for n in range(1, len(names))]
    values += [f"CASE json_type(row, {path}) WHEN 'array' THEN json_extract(row, {path}) END" for path in arrays]
    return values[0] if len(values) == 1 else f"coalesce({', '.join(values)})"


def _path(names: list[str]) -> str:
    return _text("$" + "".join(f'."{name}"' for name in names))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
