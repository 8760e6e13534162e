"""Every recipe of docs/recipes.md does what it says on a real MongoDB, with and without a key."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from ast import literal_eval
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars
import psycopg
import pyarrow.parquet
import pytest
from pymongo import MongoClient

from .conftest import REPOSITORY, Cutter, free_port
from .shop import KEY, Shop

_DOCUMENT = (REPOSITORY / "docs" / "recipes.md").read_text()
_SECTIONS = {
    title: re.findall(r"```(?:python|sh)\n(.*?)```", text, re.DOTALL)
    for title, _, text in (part.partition("\n") for part in _DOCUMENT.split("\n## ")[1:])
    for text in [text]
}
_PLACES = ("open", "keyed")

with_and_without_a_key = pytest.mark.parametrize("place", _PLACES)


def _run(shop: Shop, place: str, folder: Path, title: str, n: int = 0, url: str | None = None, **more: str) -> str:
    """Runs a recipe of the document, and returns what it prints. Its server is the open or the keyed one."""
    code = _SECTIONS[title][n].replace("http://127.0.0.1:3000", url or getattr(shop, place))
    environment = {**os.environ, **more}
    environment.pop("SLUICE_KEY", None)
    if place == "keyed":
        environment["SLUICE_KEY"] = KEY
    is_shell = "curl" in code or "node " in code
    command = ["sh", "-c", f"set -eu\n: ${{SLUICE_KEY:=}}\n{code}"] if is_shell else [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _total(shop: Shop, status: str | None = None) -> Decimal:
    rows = [row for row in shop.rows if status in (None, row["status"])]
    return sum((row["total"].to_decimal() for row in rows), Decimal(0))


def test_every_recipe_has_a_test() -> None:
    assert {title: len(codes) for title, codes in _SECTIONS.items()} == {
        "MongoDB to Parquet": 1,
        "MongoDB to DuckDB": 2,
        "MongoDB to polars": 2,
        "MongoDB to PostgreSQL": 1,
        "MongoDB to another MongoDB": 1,
        "MongoDB to SQLite": 1,
        "Resume a mongoexport": 1,
        "Replace the Atlas Data API for reading": 1,
    }


@with_and_without_a_key
def test_mongodb_to_parquet(shop: Shop, place: str, tmp_path: Path) -> None:
    _run(shop, place, tmp_path, "MongoDB to Parquet")
    table = pyarrow.parquet.read_table(tmp_path / "orders.parquet")
    assert table.column("id").to_pylist() == [str(row["_id"]) for row in shop.rows]
    assert sum(table.column("total").to_pylist()) == _total(shop)
    assert table.column("createdAt").to_pylist()[7] == shop.rows[7]["createdAt"]
    assert json.loads(table.column("customer").to_pylist()[7]) == shop.rows[7]["customer"]
    refused = subprocess.run(
        [sys.executable, "-m", "sluice_client", "pull", f"{shop.keyed}/orders", "-o", "none.parquet"],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
    )
    assert refused.returncode == 1 and b"401" in refused.stderr, "the keyed server wants a key"


@with_and_without_a_key
def test_mongodb_to_duckdb(shop: Shop, place: str, tmp_path: Path) -> None:
    _run(shop, place, tmp_path, "MongoDB to DuckDB")
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as database:
        (found,) = database.sql("SELECT count(*), sum(total) FROM orders").fetchall()
    assert found == (len(shop.rows), _total(shop))


@with_and_without_a_key
def test_duckdb_reads_the_urls(shop: Shop, place: str, tmp_path: Path, duckdb_extensions: dict[str, str]) -> None:
    printed = _run(shop, place, tmp_path, "MongoDB to DuckDB", 1, **duckdb_extensions).splitlines()
    counts, weight, total = printed[0], printed[1], printed[2]
    assert dict(literal_eval(counts)) == Counter(row["status"] for row in shop.rows)
    assert literal_eval(weight) == [(sum(row["weight"] for row in shop.rows),)]
    assert total == f"[({_total(shop, 'paid')!r},)]"


@with_and_without_a_key
def test_mongodb_to_polars(shop: Shop, place: str, tmp_path: Path) -> None:
    assert Decimal(_run(shop, place, tmp_path, "MongoDB to polars").strip()) == _total(shop, "paid")
    countries = literal_eval(_run(shop, place, tmp_path, "MongoDB to polars", 1))
    assert dict(countries) == Counter(row["customer"]["country"] for row in shop.rows)
    assert polars.read_csv(tmp_path / "orders.csv")["id"].to_list() == [str(row["_id"]) for row in shop.rows]


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a PostgreSQL server. It does not run as root, so root runs it as the user postgres."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    program = str(found[-1]) if found else shutil.which("initdb")
    if program is None:
        if os.environ.get("REQUIRE_ALL"):
            pytest.fail("REQUIRE_ALL is set, but there is no PostgreSQL")
        pytest.skip("there is no PostgreSQL")
    with _running_postgres(Path(program).parent, tmp_path_factory.mktemp("postgres")) as port:
        yield port


@contextmanager
def _running_postgres(programs: Path, folder: Path) -> Iterator[int]:
    place = Path("/tmp") / f"sluice-postgres-{os.getpid()}" if os.geteuid() == 0 else folder / "data"
    place.mkdir()
    account = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if account:
        shutil.chown(place, "postgres")
    port = free_port()
    try:
        initdb = [
            *account,
            str(programs / "initdb"),
            "-D",
            str(place),
            "-U",
            "shop",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-sync",
        ]
        subprocess.run(initdb, check=True, capture_output=True, cwd="/", timeout=120)
        options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        ctl = [*account, str(programs / "pg_ctl"), "-D", str(place), "-w", "-t", "120"]
        start = [*ctl, "-l", str(place / "log"), "-o", options, "start"]
        subprocess.run(start, check=True, cwd="/", timeout=150, stdout=subprocess.DEVNULL)
        try:
            yield port
        finally:
            stop = [*ctl, "-m", "immediate", "stop"]
            subprocess.run(stop, check=True, cwd="/", timeout=150, stdout=subprocess.DEVNULL)
    finally:
        shutil.rmtree(place)


@with_and_without_a_key
def test_mongodb_to_postgresql(shop: Shop, postgres: int, place: str, tmp_path: Path) -> None:
    server = f"postgresql://shop@127.0.0.1:{postgres}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {place}_shop".encode())
    address = f"{server}/{place}_shop"
    _run(shop, place, tmp_path, "MongoDB to PostgreSQL", DATABASE_URL=address)
    with psycopg.connect(address) as database:
        totals = database.execute("SELECT count(*), sum(total), max(created_at) FROM order_totals").fetchone()
        assert totals == (len(shop.rows), _total(shop), shop.rows[-1]["createdAt"])
        names = database.execute("SELECT row->'customer'->>'name' FROM orders ORDER BY id").fetchall()
        assert names == [(row["customer"]["name"],) for row in shop.rows]


@with_and_without_a_key
def test_mongodb_to_another_mongodb(shop: Shop, place: str, tmp_path: Path) -> None:
    target = shop.mongo.replace("/shop?", f"/copy_{place}?")
    _run(shop, place, tmp_path, "MongoDB to another MongoDB", TARGET_URI=target)
    with MongoClient[dict[str, Any]](target, tz_aware=True) as client:
        assert list(client[f"copy_{place}"]["orders"].find().sort("_id")) == shop.rows


@with_and_without_a_key
def test_mongodb_to_sqlite(shop: Shop, place: str, tmp_path: Path) -> None:
    assert Decimal(_run(shop, place, tmp_path, "MongoDB to SQLite").strip()) == _total(shop)
    database = sqlite3.connect(tmp_path / "shop.sqlite")
    shown = database.execute("SELECT id, row -> '$.total' FROM orders ORDER BY id").fetchall()
    assert shown == [(str(row["_id"]), str(row["total"])) for row in shop.rows]
    (largest,) = database.execute("SELECT id FROM orders ORDER BY total DESC, id LIMIT 1").fetchone()
    assert largest == str(max(shop.rows, key=lambda row: row["total"].to_decimal())["_id"])


@with_and_without_a_key
def test_a_mongoexport_is_resumed(shop: Shop, place: str, tmp_path: Path) -> None:
    whole = _run(shop, place, tmp_path, "Resume a mongoexport")
    assert whole == ""
    expected = (tmp_path / "orders.ndjson").read_bytes()
    assert [json.loads(line)["id"] for line in expected.splitlines()] == [str(row["_id"]) for row in shop.rows]
    (tmp_path / "orders.ndjson").unlink()

    left: list[int | None] = [60_000]
    proxy = Cutter(getattr(shop, place), lambda _: left[0])
    proxy.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    pull = ["node", "sluice-pull.mjs", f"{proxy.url}/orders", "-o", "orders.ndjson", "--retry-for", "1"]
    pull += ["--compression", "none", *(["--key-file", "sluice.key"] if place == "keyed" else [])]
    cut = subprocess.run(pull, cwd=tmp_path, capture_output=True, timeout=120)
    assert cut.returncode == 1 and not (tmp_path / "orders.ndjson").exists(), cut.stderr
    left[0] = None
    _run(shop, place, tmp_path, "Resume a mongoexport", url=proxy.url)
    proxy.shutdown()
    proxy.server_close()
    assert (tmp_path / "orders.ndjson").read_bytes() == expected


@with_and_without_a_key
def test_the_data_api_for_reading(shop: Shop, place: str, tmp_path: Path) -> None:
    printed = _run(shop, place, tmp_path, "Replace the Atlas Data API for reading").split("\n")[:4]
    one, page, count, values = (json.loads(text, parse_float=Decimal) for text in printed)
    seventh = shop.rows[7]
    assert one == {"id": str(seventh["_id"]), "status": seventh["status"], "total": seventh["total"].to_decimal()}
    paid = [row for row in shop.rows if row["status"] == "paid"]
    latest = [{"id": str(row["_id"]), "total": row["total"].to_decimal()} for row in paid[:-3:-1]]
    assert page["data"] == latest
    assert count["page"]["total"] == len(paid)
    counted = {value["value"]: value["count"] for value in values["data"]}
    assert counted == Counter(row["status"] for row in shop.rows)
