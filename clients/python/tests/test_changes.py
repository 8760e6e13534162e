from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import sluice_client as sluice

from .conftest import Cutter

ROWS = 53_940


def table(path: Path) -> dict[str, dict[str, object]]:
    with sqlite3.connect(path) as database:
        return {key: json.loads(row) for key, row in database.execute("SELECT id, row FROM items")}


def test_changes_without_a_cursor_begin_now(server: str) -> None:
    (first,) = sluice.changes(f"{server}/items")
    assert first.changes == []
    assert first.up_to_date
    (again,) = sluice.changes(f"{server}/items", first.cursor)
    assert again.changes == []


def test_changes_follow_a_whole_set(server: str) -> None:
    rows = sluice.rows(f"{server}/items?category=Fair")
    assert rows.changes_from is None
    assert sum(1 for _ in rows) > 1000
    assert rows.changes_from is not None
    batches = list(sluice.changes(f"{server}/items?category=Fair", rows.changes_from))
    assert batches[-1].up_to_date


def test_a_cursor_of_another_filter_is_refused(server: str) -> None:
    (first,) = sluice.changes(f"{server}/items?category=Fair")
    with pytest.raises(sluice.Refused, match="400"):
        list(sluice.changes(f"{server}/items?category=Ideal", first.cursor))


def test_a_mirror_has_all_rows_and_their_fields(server: str, tmp_path: Path) -> None:
    path = tmp_path / "items.sqlite"
    place = sluice.mirror(f"{server}/items", path)
    assert place.rows == ROWS
    wanted = {row["id"]: row for row in sluice.rows(f"{server}/items")}
    assert table(path) == wanted
    with sqlite3.connect(path) as database:
        cheapest = database.execute("SELECT id, price, carat FROM items ORDER BY price, id LIMIT 1").fetchone()
    assert cheapest == ("d00001", 326, 0.23)


def test_a_mirror_that_is_cut_again_and_again_is_whole(
    server: str, tmp_path: Path, cutter: Callable[[Callable[[int], int | None]], Cutter]
) -> None:
    proxy = cutter(lambda n: 2_500_000 if n < 6 else None)
    place = sluice.mirror(f"{proxy.url}/items?fields=price", tmp_path / "a.sqlite", compression="identity")
    assert place.rows >= ROWS
    assert len(table(tmp_path / "a.sqlite")) == ROWS


def test_a_mirror_of_something_else_is_kept(server: str, tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    sluice.mirror(f"{server}/items?category=Fair", path)
    before = table(path)
    with pytest.raises(sluice.Refused, match="restart=True"):
        sluice.mirror(f"{server}/items?category=Ideal", path)
    assert table(path) == before
    sluice.mirror(f"{server}/items?category=Ideal", path, restart=True)
    assert {row["category"] for row in table(path).values()} == {"Ideal"}


FEED = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nConnection: close\r\n\r\n"


def feed(lines: list[str], cursor: str, up_to_date: bool = True) -> bytes:
    """An answer of a feed with these lines, which a checkpoint proves."""
    import zlib

    data = "".join(f"{line}\n" for line in lines).encode()
    removed = sum(line.startswith('{"removed"') for line in lines)
    proof = {
        "cursor": cursor,
        "rows": len(lines) - removed,
        "removed": removed,
        "bytes": len(data),
        "crc32": f"{zlib.crc32(data):08x}",
        "upToDate": up_to_date,
    }
    return FEED + data + json.dumps({"checkpoint": proof}).encode() + b"\n"


def test_rows_and_removals_are_distinguished(answers: Callable[..., str]) -> None:
    lines = ['{"id":1,"a":2}', '{"removed":{"id":"x"}}', '{"_id":3,"id":"own"}']
    (batch,) = sluice.changes(f"{answers(feed(lines, 'c'))}/items", "b")
    assert [(change.id, change.removed) for change in batch.changes] == [(1, False), ("x", True), (3, False)]
    assert batch.changes[0].row == {"id": 1, "a": 2}
    assert batch.cursor == "c"


def test_a_feed_goes_on_behind_its_last_proof(answers: Callable[..., str]) -> None:
    cut = feed(['{"id":1}'], "c1") + b'{"id":"unproved"}\n'
    url = answers(cut, feed(['{"id":2}'], "c2"))
    followed: Iterator[sluice.Changes] = sluice.changes(f"{url}/items", "c0", follow=True)
    assert [next(followed).changes[0].id for _ in range(2)] == [1, 2]


def test_history_that_is_gone_is_an_error(answers: Callable[..., str]) -> None:
    gone = b"HTTP/1.1 410 Gone\r\nContent-Type: application/problem+json\r\nContent-Length: 22\r\n\r\n"
    url = answers(gone + b'{"detail": "too late"}')
    with pytest.raises(sluice.Gone, match="too late"):
        list(sluice.changes(f"{url}/items", "c"))


def test_a_mirror_whose_history_is_gone_begins_again_empty(answers: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    gone = b"HTTP/1.1 410 Gone\r\nContent-Type: application/problem+json\r\nContent-Length: 2\r\n\r\n{}"
    url = answers(feed(['{"id":"old"}'], "c1"), gone, feed(['{"id":"new"}'], "c2"))
    sluice.mirror(f"{url}/items", path)
    assert list(table(path)) == ["old"]
    sluice.mirror(f"{url}/items", path)
    assert list(table(path)) == ["new"]


def test_a_mirror_applies_removals_and_keeps_keys_apart(answers: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    rows = ['{"id":7}', '{"id":"7"}', '{"id":7.5}', '{"id":{"a":1}}', '{"id":12345678901234567890}', '{"id":7.0}']
    url = answers(feed(rows, "c1"), feed(['{"removed":{"id":"7"}}', '{"removed":{"id":{"a":1}}}'], "c2"))
    sluice.mirror(f"{url}/items", path)
    sluice.mirror(f"{url}/items", path)
    with sqlite3.connect(path) as database:
        left = {key for (key,) in database.execute("SELECT id FROM items")}
    assert left == {7, 7.5, b"12345678901234567890", b"7.0"}


def test_a_mirror_keeps_texts_apart_as_sluice_pull_does(answers: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    ids = ["", "\0", "a", "a\0", "a\0b", "a\0c", "ab", "\ud800", "\ud801", "\ufffd", "\U0001f600"]
    rows = [json.dumps({"id": one}, separators=(",", ":")) for one in ids]
    url = answers(feed(rows, "c1"), feed([f'{{"removed":{rows[4]}}}'], "c2"))
    sluice.mirror(f"{url}/items", path)
    with sqlite3.connect(path) as database:
        kept = dict(database.execute("SELECT row, id FROM items"))
    assert len(kept) == len(ids)
    assert kept[rows[4]] == b'"a\\u0000b"'
    assert kept[rows[2]] == "a"
    sluice.mirror(f"{url}/items", path)
    assert set(table_rows(path)) == {*rows} - {rows[4]}


def table_rows(path: Path) -> list[str]:
    with sqlite3.connect(path) as database:
        return [row for (row,) in database.execute("SELECT row FROM items")]


def plain(lines: list[str]) -> bytes:
    """An answer of a stream with these lines, which its end proves."""
    return feed(lines, "c").replace(b'{"checkpoint"', b'{"end"')


def test_a_mirror_refuses_ids_that_json_cannot_tell_apart(answers: Callable[..., str], tmp_path: Path) -> None:
    url = answers(feed(['{"id":"5","v":1}', '{"id":"5","v":2}'], "c1"), plain(['{"id":"5"}', '{"id":"5"}']))
    with pytest.raises(sluice.Refused, match='two rows have the id "5"'):
        sluice.mirror(f"{url}/items", tmp_path / "a.sqlite")


def test_rows_that_changed_meanwhile_are_no_reason_to_refuse_a_mirror(
    answers: Callable[..., str], tmp_path: Path
) -> None:
    path = tmp_path / "a.sqlite"
    twice = feed(['{"id":"5","v":1}', '{"id":"5","v":2}'], "c1")
    url = answers(twice, plain(['{"id":"5"}']), feed(['{"id":"5","v":3}'], "c2"))
    sluice.mirror(f"{url}/items", path)
    assert sluice.mirror(f"{url}/items", path).rows == 3  # the last answer is no stream of ids
    assert table(path) == {"5": {"id": "5", "v": 3}}


def test_a_mirror_has_the_keys_and_columns_that_sluice_pull_makes(answers: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    rows = [
        '{"id":0.00001,"plain":"a"}',
        '{"id":1.5e-7,"path\\\\name":"b"}',
        '{"id":0.0000012}',
        '{"id":1e-05}',
    ]
    url = answers(feed(rows, "c1"))
    sluice.mirror(f"{url}/items", path)
    with sqlite3.connect(path) as database:
        assert {key for (key,) in database.execute("SELECT id FROM items")} == {0.00001, 1.5e-7, 0.0000012, b"1e-05"}
        columns = [name for (name,) in database.execute("SELECT name FROM pragma_table_xinfo('items')")]
    assert columns == ["id", "row", "plain"]


def test_a_path_through_an_array_has_the_array(answers: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    rows = ['{"id":1,"lines":[{"sku":"x"},{"sku":"y"}]}', '{"id":2,"lines":{"sku":"z"}}', '{"id":3,"lines":5}']
    url = answers(feed(rows, "c1"))
    sluice.mirror(f"{url}/items?fields=lines.sku", path)
    with sqlite3.connect(path) as database:
        found = [value for (value,) in database.execute('SELECT "lines.sku" FROM items ORDER BY id')]
    assert found == ['[{"sku":"x"},{"sku":"y"}]', "z", None]


def test_the_cause_of_a_failed_write_is_shown(answers: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE sluice_pulls (name TEXT PRIMARY KEY, url TEXT, place TEXT)")
        full = "SELECT RAISE(ROLLBACK, 'database or disk is full')"
        database.execute(f"CREATE TRIGGER full BEFORE INSERT ON sluice_pulls BEGIN {full}; END")
    url = answers(feed(['{"id":1}'], "c1"))
    with pytest.raises(sqlite3.Error, match="disk is full"):
        sluice.mirror(f"{url}/items", path)
