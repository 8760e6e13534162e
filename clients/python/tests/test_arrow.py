"""Tables of Arrow have every value that the same rows have as JSON, whatever types they are of."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import string
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import duckdb
import pandas
import pyarrow
import pyarrow.parquet
import pytest

import sluice_client as sluice

from .conftest import REPOSITORY, Cutter, start_server

DOCUMENTS = 10_000
# A million documents with LONG=1.
ROUNDS = 100 if os.environ.get("LONG") else 1
DECIMALS = ["1.50", "-7", "1E+400", "NaN", "Infinity", "0.1", "12345678901234567890"]
DATES = [0, -1, 1_700_000_000_123, 8_640_000_000_000_000, -(10**15)]
KINDS = ["text", "objectId", "uuid", "decimal", "integer", "double", "boolean", "date", "binary", "json"]
KINDS += ["decimal(38,2)", "decimal(38,30)"]
NAMES = ["a", "b", "c", "d", "e", "price", "nested", "name with, signs: ü%", "x.y", "id"]


class Number(str):
    """The text of a number in JSON."""


def loads(text: str) -> Any:
    return json.loads(text, parse_float=Number, parse_int=Number)


def value_of(at: random.Random, depth: int = 0) -> Any:
    """A random value as Extended JSON, as mongoexport writes it."""
    makers: list[Callable[[], Any]] = [
        lambda: None,
        lambda: at.choice([True, False]),
        lambda: at.randrange(-(2**31), 2**31),
        lambda: {"$numberLong": str(at.choice([at.randrange(-(2**63), 2**63), 2**53, -(2**53), 2**53 + 1, 7]))},
        lambda: {"$numberDouble": at.choice(["1.5", "-0.0", "3.0", "NaN", "Infinity", "-Infinity", "1e300", "9e15"])},
        lambda: {"$numberDecimal": at.choice(DECIMALS)},
        lambda: {"$oid": "".join(at.choices("0123456789abcdef", k=24))},
        lambda: {"$date": {"$numberLong": str(at.choice(DATES))}},
        lambda: {"$binary": {"base64": base64.b64encode(at.randbytes(at.randrange(30))).decode(), "subType": "00"}},
        lambda: {"$binary": {"base64": base64.b64encode(at.randbytes(16)).decode(), "subType": "04"}},
        lambda: {"$binary": {"base64": base64.b64encode(at.randbytes(5)).decode(), "subType": "80"}},
        lambda: {"$timestamp": {"t": 5, "i": at.randrange(9)}},
        lambda: {"$regularExpression": {"pattern": 'a"b', "options": "i"}},
        lambda: {"$minKey": 1},
        lambda: {"$maxKey": 1},
        lambda: "".join(at.choices(string.printable + "äöü€😀\0\u2028", k=at.choice([0, 1, 5, 15, 16, 17, 40, 300]))),
    ]
    if depth < 3:
        makers.append(lambda: [value_of(at, depth + 1) for _ in range(at.randrange(4))])
        makers.append(lambda: {at.choice("abc"): value_of(at, depth + 1) for _ in range(at.randrange(3))})
    return at.choice(makers)()


def document(at: random.Random, n: int) -> dict[str, Any]:
    key: Any = at.choice([n, f"k{n}", {"$oid": f"{n:024x}"}, {"a": n}])
    others = at.sample(NAMES, at.randrange(len(NAMES)))
    return {"_id": key, **{name: value_of(at) for name in others}}


@pytest.fixture(scope="module", params=range(ROUNDS))
def odd(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a resource with values of all types, whose field `d` and parts of `nested` are hidden."""
    at = random.Random(11 + request.param)
    rows = (document(at, n) for n in range(DOCUMENTS))
    with served(tmp_path_factory.mktemp("odd"), rows, {"hide": ["d", "nested.a"]}) as url:
        yield url


@contextmanager
def served(folder: Path, rows: Iterable[dict[str, Any]], declaration: dict[str, Any]) -> Iterator[str]:
    """The URL of a resource with these rows, which are Extended JSON."""
    (folder / "odd.ndjson").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (folder / "resources.json").write_text(json.dumps({"resources": {"odd": declaration}}))
    environment = {**os.environ, "DATA_DIR": str(folder / "data")}
    done = subprocess.run(
        ["node", "src/start.mjs", "import", str(folder / "odd.ndjson"), "--into", "odd"],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    settings = {"DATA_DIR": str(folder / "data"), "RESOURCES_FILE": str(folder / "resources.json")}
    with start_server(folder, settings) as url:
        yield f"{url}/odd"


def rows_of(url: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(url) as answer:
        return [loads(line.decode()) for line in answer]


def table_of(url: str) -> pyarrow.Table:
    with urllib.request.urlopen(url) as answer:
        table = pyarrow.ipc.open_stream(answer.read()).read_all()
    table.validate(full=True)
    return table


def file_of(url: str, form: str, reader: str, folder: Path) -> pyarrow.Table:
    """A table that the server has exported, as a reader of such files reads it."""
    file = folder / f"table.{form}"
    with urllib.request.urlopen(sluice.export(url, format=form)) as answer:
        file.write_bytes(answer.read())
    if form == "arrow":
        table = pyarrow.ipc.open_stream(file.read_bytes()).read_all()
    else:
        table = pyarrow.parquet.read_table(file)
    if reader == "duckdb":  # which does not read what the file says about its columns
        table = duckdb.read_parquet(str(file)).to_arrow_table().cast(table.schema)
    table.validate(full=True)
    return table


def as_json(kind: str, value: Any) -> Any:
    """A value of a column as the JSON of the same row has it."""
    if value is None:
        return None
    match kind:
        case "integer" | "date":
            return value
        case "double":
            return value if value == value and abs(value) != float("inf") else None
        case "binary":
            return base64.b64encode(value).decode()
        case "json":
            return loads(value)
    return value


def is_same(kind: str, found: Any, wanted: Any) -> bool:
    if kind == "integer":
        return isinstance(wanted, Number) and str(found) == str(wanted)
    if kind == "double":
        return isinstance(wanted, Number) and bool(float(wanted) == found)
    if kind.startswith("decimal("):
        return isinstance(wanted, Number) and Decimal(wanted) == found
    if kind == "date":
        return bool(milliseconds_of(wanted) == found)
    return bool(found == wanted)


def milliseconds_of(wanted: Any) -> int:
    if isinstance(wanted, dict):
        return int(wanted["$date"]["$numberLong"])
    from datetime import datetime, timezone

    if wanted.startswith(("-", "+")):
        return int(YEARS[wanted])
    moment = datetime.fromisoformat(wanted.replace("Z", "+00:00")) - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return round(moment.total_seconds() * 1000)


# The dates that Python has no type for.
YEARS = {"-029719-04-05T22:13:20.000Z": -(10**15), "+275760-09-13T00:00:00.000Z": 8_640_000_000_000_000}


def columns_of(table: pyarrow.Table) -> list[tuple[str, str]]:
    from urllib.parse import unquote

    text = table.schema.metadata[b"sluice.columns"].decode()
    return [(unquote(name), kind) for name, kind in (part.split(":") for part in re.split(r",(?!\d+\))", text))]


def assert_equal(table: pyarrow.Table, rows: list[dict[str, Any]], at_path: bool = False) -> None:
    """Every value of every row is in the table, once, in its column or in `_rest`, and nothing else is."""
    assert table.num_rows == len(rows)
    kinds = columns_of(table)
    columns = {}
    for n, (name, kind) in enumerate(kinds):
        column = table.column(n)
        if kind == "date":
            column = column.cast(pyarrow.int64())
        if kind == "json":
            column = column.cast(pyarrow.string())
        columns[name] = column.to_pylist()
    rest = table.column("_rest").cast(pyarrow.string()).to_pylist()
    has_key = "_id" in columns
    for n, row in enumerate(rows):
        # The key is named `_id` where its row has a field `id` of its own.
        wanted = dict(row)
        if "_id" not in wanted:
            wanted = {"_id": wanted.pop("id"), **wanted}
        others = loads(rest[n]) if rest[n] is not None else {}
        for name, kind in kinds:
            stored = "_id" if name == "id" and not has_key else name
            found = as_json(kind, columns[name][n])
            value = path_of(wanted, stored) if at_path else wanted.get(stored)
            if found is None and columns[name][n] is None:
                found = others.pop(stored, None)
                assert found == value, (n, name)
            elif found is None:
                assert value is None, (n, name)
            else:
                assert is_same(kind, found, value), (n, name, kind, found, value)
            wanted.pop(stored, None)
        if not at_path:
            assert {k: v for k, v in others.items()} == wanted, n


def path_of(row: dict[str, Any], path: str) -> Any:
    if path in row:
        return row[path]
    first, _, rest = path.partition(".")
    value = row.get(first)
    if isinstance(value, list) and rest:
        return selected(value, rest)
    return path_of(value, rest) if rest and isinstance(value, dict) else None


def selected(values: list[Any], path: str) -> list[Any]:
    """The elements of an array that have members, each with the selected one alone."""
    kept = [value for value in values if isinstance(value, dict | list)]
    return [
        selected(value, path) if isinstance(value, list) else {path: value[path]} if path in value else {}
        for value in kept
    ]


def test_a_sampled_table_has_every_value(odd: str) -> None:
    table = table_of(f"{odd}/stream?format=arrow")
    assert_equal(table, rows_of(f"{odd}/stream"))
    assert "d" not in table.column_names


def test_tables_with_any_columns_have_every_value(odd: str) -> None:
    at = random.Random(5)
    rows = rows_of(f"{odd}/stream")
    for _ in range(6):
        names = ["_id", *(name for name in NAMES if name != "d" and at.random() < 0.7)]
        columns = ",".join(f"{quote(name, safe='')}:{at.choice(KINDS)}" for name in names)
        assert_equal(table_of(f"{odd}/stream?{urlencode({'format': 'arrow', 'columns': columns})}"), rows)


@pytest.mark.parametrize(("form", "reader"), [("arrow", "pyarrow"), ("parquet", "pyarrow"), ("parquet", "duckdb")])
def test_an_exported_table_has_every_value(odd: str, form: str, reader: str, tmp_path: Path) -> None:
    assert_equal(file_of(odd, form, reader, tmp_path), rows_of(f"{odd}/stream"))
    query = "fields=nested.b,a,nested.c"
    table = file_of(f"{odd}?{query}", form, reader, tmp_path)
    assert_equal(table, rows_of(f"{odd}/stream?{query}"), at_path=True)


@pytest.mark.parametrize(
    ("types", "declared", "wanted"),
    [
        (["Double", "Int", "Long", "Decimal"], {}, "double"),
        (["Double", "Decimal"], {"price": "number"}, "double"),
        (["Int", "Long", "Decimal"], {}, "decimal128(38, 2)"),
        (["Int", "Decimal"], {"price": "decimal"}, "decimal128(38, 2)"),
    ],
)
def test_a_sum_of_prices_is_that_of_the_same_rows_in_csv(
    types: list[str], declared: dict[str, str], wanted: str, tmp_path: Path
) -> None:
    at = random.Random(7)

    def price() -> dict[str, str]:
        kind, cents = at.choice(types), at.randrange(10**7)
        return {f"$number{kind}": str(cents) if kind in ("Int", "Long") else f"{cents // 100}.{cents % 100:02}"}

    rows = ({"_id": n, "price": price()} for n in range(200_000))
    with served(tmp_path, rows, {"fields": declared}) as url:
        frame = sluice.rows(f"{url}?fields=price").to_pandas()
        parquet = pandas.read_parquet(sluice.export(f"{url}?fields=price"), dtype_backend="pyarrow")
        csv = pandas.read_csv(f"{url}/stream?format=csv&fields=price", dtype={"price": str}).astype({"price": float})
    assert len(csv) == 200_000
    for found in (frame, parquet):
        assert found["_rest"].isna().all()
        assert str(found["price"].dtype.pyarrow_dtype).startswith(wanted)
        assert found["price"].astype(float).equals(csv["price"])
        assert float(found["price"].astype(float).to_numpy().sum()) == csv["price"].sum()
    assert float(frame["price"].sum()) == pytest.approx(csv["price"].sum(), rel=1e-15)


def test_a_column_that_leaves_values_out_is_warned_of(tmp_path: Path) -> None:
    rows = ({"_id": n, "price": 1.5 if n % 1000 == 777 else 1, "note": {"price": 2}} for n in range(4000))
    with served(tmp_path, rows, {}) as url:
        with pytest.warns(UserWarning, match=r"column price is null in 4 rows .* int64.*columns="):
            frame = sluice.rows(f"{url}?fields=price").to_pandas()
        assert frame["price"].isna().sum() == 4
        assert sluice.rows(f"{url}?columns=id:integer,price:double").to_arrow()["price"].null_count == 0


def test_paths_are_columns(odd: str) -> None:
    query = "fields=nested.b,a,nested.c"
    table = table_of(f"{odd}/stream?format=arrow&{query}")
    assert [name for name, _ in columns_of(table)] == ["id", "nested.b", "a", "nested.c"]
    assert_equal(table, rows_of(f"{odd}/stream?{query}"), at_path=True)


def test_hidden_fields_are_in_no_column(odd: str) -> None:
    columns = quote("id:json,d:json,nested:json")
    table = table_of(f"{odd}/stream?format=arrow&columns={columns}")
    assert table.column("d").null_count == table.num_rows
    text = "".join(
        value or "" for name in ("nested", "_rest") for value in table.column(name).cast("string").to_pylist()
    )
    assert '"d":' not in text.replace('{"d":', "")  # members of arrays and of other objects may be called d
    assert all('"a":' not in (value or "")[:4] for value in table.column("nested").cast("string").to_pylist())


def test_a_strict_stream_is_cut_at_a_value_that_does_not_fit(odd: str) -> None:
    with pytest.raises((urllib.error.URLError, OSError, Exception)) as raised:
        table_of(f"{odd}/stream?format=arrow&schema=strict&columns=id:text")
    assert not isinstance(raised.value, AssertionError)


@pytest.mark.parametrize(
    "query",
    [
        "format=arrow&columns=id",
        "format=arrow&columns=id:what",
        "format=arrow&columns=id:text,id:text",
        "format=arrow&columns=_rest:text",
        "format=csv&columns=id:text",
        "format=ndjson&schema=strict",
        "format=arrow&checkpoints=true",
        "format=arrow&after=1",
        "format=arrow&fields=a&columns=id:text,b:text",
    ],
)
def test_parameters_that_do_not_fit_are_refused(odd: str, query: str) -> None:
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(f"{odd}/stream?{query}")


def _some_cut(at: random.Random, most: int, n: int) -> int | None:
    return at.randrange(most) if n < 8 else None


def _one_cut(cut: int, n: int) -> int:
    return cut


def test_a_table_that_is_cut_at_any_byte_is_the_same_table(
    server: str, cutter: Callable[[Callable[[int], int | None]], Cutter]
) -> None:
    wanted = sluice.rows(f"{server}/items").to_arrow()
    at = random.Random(3)
    for compression, most in (("identity", 3_000_000), ("gzip", 500_000)):
        proxy = cutter(partial(_some_cut, at, most))
        table = sluice.rows(f"{proxy.url}/items", compression=compression, retry_for=60).to_arrow()
        assert table.equals(wanted)
        assert proxy.connections > 2


def test_a_table_whose_end_is_missing_raises(
    server: str, cutter: Callable[[Callable[[int], int | None]], Cutter]
) -> None:
    with urllib.request.urlopen(f"{server}/items/stream?format=arrow&limit=3000") as answer:
        size = len(answer.read())
    for cut in (0, 500, size // 2, size - 400, size - 20, size - 9):
        proxy = cutter(partial(_one_cut, cut))
        with pytest.raises(sluice.Interrupted):
            sluice.rows(f"{proxy.url}/items?limit=3000", compression="identity", retry_for=0).to_arrow()


def test_a_server_that_begins_a_table_anew_behind_a_cursor_is_refused(server: str, answers: Callable[..., str]) -> None:
    with urllib.request.urlopen(f"{server}/items/stream?format=arrow&limit=20000") as answer:
        whole = answer.read()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.apache.arrow.stream\r\nConnection: close\r\n\r\n"
    cut = head + whole[: len(whole) // 2]
    items = f"{answers(cut, head + whole)}/items?limit=20000"
    with pytest.raises(sluice.Refused, match="started over"):
        sluice.rows(items, compression="identity", retry_for=60, timeout=30).to_arrow()


def test_parallel_parts_are_one_table(server: str) -> None:
    whole = sluice.rows(f"{server}/items").to_arrow().sort_by("id")
    rows = sluice.rows(f"{server}/items", parallel=4)
    parts = rows.to_arrow().sort_by("id")
    assert parts.equals(whole)
    assert rows.changes_from is not None


def test_an_empty_set_is_an_empty_table(server: str) -> None:
    table = sluice.rows(f"{server}/items?category=Nothing").to_arrow()
    assert table.num_rows == 0
    assert table.column_names[:3] == ["id", "category", "price"]
