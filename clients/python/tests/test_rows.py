from __future__ import annotations

import json
import random
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sluice_client as sluice
from sluice_client._crc32 import crc32_combine

from .conftest import Cutter

ROWS = 53_940


def plain(url: str) -> list[dict[str, object]]:
    """The rows as a client without any library reads them."""
    with urllib.request.urlopen(url) as answer:
        return [json.loads(line) for line in answer]


def test_all_rows_come_in_the_order_of_the_stream(server: str) -> None:
    assert list(sluice.rows(f"{server}/items")) == plain(f"{server}/items/stream")


@pytest.mark.parametrize("compression", ["gzip", "identity"])
def test_filters_fields_and_sort_are_those_of_the_url(server: str, compression: str) -> None:
    query = "category=Fair&fields=price,size&sort=price_desc"
    rows = sluice.rows(f"{server}/items?{query}", compression=compression)
    assert list(rows) == plain(f"{server}/items/stream?{query}")


def test_the_url_of_the_stream_is_taken_too(server: str) -> None:
    url = f"{server}/items/stream?limit=3&format=ndjson&checkpoints=true"
    assert [row["id"] for row in sluice.rows(url)] == ["d00001", "d00002", "d00003"]


def test_each_iteration_reads_the_set_again(server: str) -> None:
    rows = sluice.rows(f"{server}/items?category=Fair&fields=id")
    assert list(rows) == list(rows)


@pytest.mark.parametrize("compression", ["gzip", "identity"])
def test_a_set_that_is_cut_again_and_again_is_whole(
    server: str, cutter: Callable[[Callable[[int], int | None]], Cutter], compression: str
) -> None:
    most = 3_000_000 if compression == "identity" else 400_000
    at = random.Random(7)
    proxy = cutter(lambda n: at.randrange(most) if n < 12 else None)
    rows = sluice.rows(f"{proxy.url}/items", compression=compression, retry_for=60)
    assert [row["id"] for row in rows] == [row["id"] for row in plain(f"{server}/items/stream?fields=id")]
    assert proxy.connections > 3


def test_a_limit_counts_over_cuts(server: str, cutter: Callable[[Callable[[int], int | None]], Cutter]) -> None:
    proxy = cutter(lambda n: 2_200_000 if n == 0 else None)
    rows = list(sluice.rows(f"{proxy.url}/items?limit=25000", compression="identity"))
    assert [row["id"] for row in rows] == [f"d{n:05d}" for n in range(1, 25_001)]
    assert proxy.connections > 1


def test_a_set_whose_end_is_missing_raises(cutter: Callable[[Callable[[int], int | None]], Cutter]) -> None:
    proxy = cutter(lambda n: 3_000_000)
    seen = 0
    with pytest.raises(sluice.Interrupted):
        for _ in sluice.rows(f"{proxy.url}/items?sort=price_asc", compression="identity", retry_for=0):
            seen += 1
    assert 0 < seen < ROWS


@pytest.mark.parametrize("n", [2, 5])
def test_parallel_parts_are_together_the_set(
    server: str, cutter: Callable[[Callable[[int], int | None]], Cutter], n: int
) -> None:
    proxy = cutter(lambda connection: 1_500_000 if connection in (1, 2, 3) else None)
    rows = sluice.rows(f"{proxy.url}/items?fields=price", parallel=n, compression="identity")
    got = sorted(rows, key=lambda row: str(row["id"]))
    assert got == plain(f"{server}/items/stream?fields=price")
    assert rows.changes_from is not None


def test_a_failing_part_raises_in_the_reader(cutter: Callable[[Callable[[int], int | None]], Cutter]) -> None:
    proxy = cutter(lambda connection: None if connection == 0 else 1_000_000)
    with pytest.raises(sluice.Interrupted):
        list(sluice.rows(f"{proxy.url}/items", parallel=3, compression="identity", retry_for=0))


def test_a_refusal_says_why(server: str) -> None:
    with pytest.raises(sluice.Refused, match="400") as raised:
        list(sluice.rows(f"{server}/items?color=E"))
    assert raised.value.status == 400
    with pytest.raises(sluice.Refused, match="404"):
        list(sluice.rows(f"{server}/nothing"))


def test_all_that_a_url_asks_of_a_stream_is_met(server: str) -> None:
    rows = list(sluice.rows(f"{server}/items?after=d53930&limit=5&fields=price&format=ndjson&checkpoints=true"))
    assert [row["id"] for row in rows] == [f"d{n}" for n in range(53931, 53936)]
    with urllib.request.urlopen(f"{server}/items?limit=3&sort=price_desc") as answer:
        page = json.load(answer)
    last, cursor = page["data"][-1]["price"], page["page"]["nextCursor"]
    (following,) = sluice.rows(f"{server}/items?sort=price_desc&limit=1&cursor={cursor}")
    assert following["price"] <= last
    (part, _) = _parts_of(server)
    assert list(sluice.rows(f"{server}{part}")) == plain(f"{server}{part}")


def _parts_of(server: str) -> list[str]:
    with urllib.request.urlopen(f"{server}/items/partitions?n=2") as answer:
        return [part["url"] for part in json.load(answer)["partitions"]]


@pytest.mark.parametrize(
    ("query", "read"),
    [
        ("format=csv", list),
        ("format=arrow", list),
        ("format=ndjson", sluice.Rows.to_arrow),
        ("checkpoints=false", list),
        ("checkpoints=true", sluice.Rows.to_arrow),
        ("columns=id:text", list),
        ("schema=strict", list),
        ("header=absent", list),
        ("safe=true", list),
        ("safe=true", sluice.Rows.to_arrow),
        ("columns=id:what", sluice.Rows.to_arrow),
        ("consistency=snapshot", list),
        ("follow=true", list),
        ("page=2", list),
        ("n=2", list),
    ],
)
def test_what_a_url_asks_and_a_read_does_not_do_is_refused(
    server: str, query: str, read: Callable[[sluice.Rows], Any]
) -> None:
    name = query.split("=")[0]
    with pytest.raises((ValueError, sluice.Refused), match=name):
        read(sluice.rows(f"{server}/items?{query}"))


@pytest.mark.parametrize("query", ["sort=price_asc", "sort=id_asc", "limit=5", "after=d1", "n=3", "min_price=5"])
def test_parts_refuse_what_divides_no_set(server: str, query: str) -> None:
    with pytest.raises((ValueError, sluice.Refused), match=query.split("=")[0].replace("min_", "")):
        list(sluice.rows(f"{server}/items?{query}", parallel=2))


def test_tables_have_the_columns_of_the_url(server: str) -> None:
    columns = "columns=id:text,price:decimal(38,2),carat:double"
    for parallel in (1, 2):
        table = sluice.rows(f"{server}/items?{columns}", parallel=parallel).to_arrow()
        assert [str(kind) for kind in table.schema.types[:3]] == ["string", "decimal128(38, 2)", "double"]
    strict = f"{server}/items?schema=strict&fields=price"
    assert sluice.rows(strict).to_arrow().column_names == ["id", "price"]
    with pytest.raises(sluice.Refused, match=r"schema=strict.*'d00001'.*category"):
        sluice.rows(f"{server}/items?schema=strict&columns=id:text").to_arrow()


def test_changes_copies_and_files_refuse_what_they_do_not_do(server: str, tmp_path: Path) -> None:
    for query in ("limit=5", "wait=1", "columns=id:text", "follow=false", "sort=price_asc"):
        with pytest.raises((ValueError, sluice.Refused), match=query.split("=")[0]):
            next(sluice.changes(f"{server}/items?{query}"))
    (first,) = sluice.changes(f"{server}/items")
    (same,) = sluice.changes(f"{server}/items?since={first.cursor}")
    assert same.cursor == first.cursor
    with pytest.raises(ValueError, match="since"):
        next(sluice.changes(f"{server}/items?since={first.cursor}", "other"))
    for query in ("limit=5", "format=csv", "cursor=x", "follow=true", "schema=strict", "checkpoints=false"):
        with pytest.raises((ValueError, sluice.Refused), match=query.split("=")[0]):
            sluice.mirror(f"{server}/items?{query}", tmp_path / "a.sqlite")
    assert urlopened(sluice.export(f"{server}/items?category=Fair&fields=price&format=csv")).startswith(b"id,price")
    with pytest.raises(ValueError, match="format"):
        sluice.export(f"{server}/items?format=csv", format="json")
    with pytest.raises(sluice.Refused, match="checkpoints"):
        sluice.export(f"{server}/items?checkpoints=true")


def urlopened(url: str) -> bytes:
    with urllib.request.urlopen(url) as answer:
        return bytes(answer.read())


def test_arguments_are_checked_before_any_request() -> None:
    with pytest.raises(ValueError, match="parallel"):
        sluice.rows("http://127.0.0.1:1/items", parallel=0)
    with pytest.raises(ValueError, match="compression"):
        sluice.rows("http://127.0.0.1:1/items", compression="zip")
    with pytest.raises(ValueError, match="resource"):
        sluice.rows("http://127.0.0.1:1/")
    with pytest.raises(ValueError, match="key="):
        list(sluice.rows("http://me:secret@127.0.0.1:1/items"))


def test_joined_checksums_are_those_of_joined_bytes() -> None:
    import zlib

    data = random.Random(3).randbytes(10_000)
    for at in (0, 1, 4_999, 9_999, 10_000):
        a, b = data[:at], data[at:]
        assert crc32_combine(zlib.crc32(a), zlib.crc32(b), len(b)) == zlib.crc32(data)
