"""Sets as files that the server writes."""

from __future__ import annotations

import io
import json
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

import polars
import pyarrow
import pyarrow.parquet
import pytest

import sluice_client as sluice

from .conftest import Cutter


def test_a_file_has_the_rows_of_the_url(server: str) -> None:
    query = "category=Fair&min_price=18000.5&fields=price,name&sort=price_desc"
    with urllib.request.urlopen(sluice.export(f"{server}/items?{query}", format="ndjson")) as answer:
        rows = [json.loads(line) for line in answer]
    assert rows == list(sluice.rows(f"{server}/items?{query}"))
    assert 0 < len(rows) < 1610


def test_an_order_has_the_parameters_of_the_url_that_are_no_text(server: str) -> None:
    order = f"{server}/items?category=Fair&fields=price&format=csv&safe="
    with urllib.request.urlopen(sluice.export(f"{order}true")) as answer:
        assert answer.readline().strip() == b"id,price"
    with pytest.raises(sluice.Refused, match="true or false"):
        sluice.export(f"{order}maybe")


def test_an_order_that_the_server_refuses_raises(server: str) -> None:
    with pytest.raises(sluice.Refused, match="422"):
        sluice.export(f"{server}/items?limit=3")
    with pytest.raises(sluice.Refused, match="422"):
        sluice.export(f"{server}/items", format="xml")
    with pytest.raises(sluice.Refused, match="422"):
        sluice.export(f"{server}/items?min_price=cheap&sort=price_asc")


def test_a_server_that_is_away_raises() -> None:
    with pytest.raises(sluice.Interrupted):
        sluice.export("http://127.0.0.1:1/items", retry_for=0)


def test_readers_of_tables_need_no_extension_type(server: str) -> None:
    """Polars before 1.36 knows none. .ci/python runs this with such a polars, too."""
    items = f"{server}/items?category=Fair"
    with urllib.request.urlopen(sluice.export(items)) as answer:
        file = answer.read()
    assert pyarrow.parquet.read_schema(io.BytesIO(file)).field("_rest").type == pyarrow.string()
    assert polars.read_parquet(io.BytesIO(file)).height == 1610
    assert polars.scan_parquet(sluice.export(items)).select("id").collect().height == 1610
    assert sluice.rows(items).to_polars().height == 1610
    assert sluice.rows(f"{items}&json=text", parallel=2).to_arrow().schema.field("_rest").type == pyarrow.string()
    assert sluice.rows(items).to_arrow().schema.field("_rest").type == pyarrow.json_()


def test_polars_is_given_plain_text(server: str) -> None:
    frame = sluice.rows(f"{server}/items?limit=2").to_polars()
    assert frame.schema["_rest"] == polars.String()
    assert frame.write_csv().count("\n") == 3
    assert frame["_rest"].str.len_chars().to_list() == [None, None]


def test_a_file_is_downloaded_and_proved_through_cuts(
    server: str, cutter: Callable[[Callable[[int], int | None]], Cutter], tmp_path: Path
) -> None:
    with urllib.request.urlopen(sluice.export(f"{server}/items", format="csv")) as answer:
        expected = answer.read()
    # The connections of the order and of the wait pass whole. Those of the file are cut.
    proxy = cutter(lambda n: 700_000 if n >= 2 else None)
    path = tmp_path / "items.csv"
    assert sluice.export(f"{proxy.url}/items", to=path) == str(path)
    assert path.read_bytes() == expected
    assert len(expected) > 2_000_000 and proxy.connections > 4
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_whose_bytes_are_others_never_gets_its_name(answers: Callable[..., str], tmp_path: Path) -> None:
    export = {"id": "e1", "state": "complete", "file": {"sha256": "0" * 64, "bytes": 3}}
    order = json.dumps(export).encode()
    head = b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    url = answers(
        head % (b"202 Accepted", b"application/json", len(order)) + order,
        head % (b"200 OK", b"text/csv", 3) + b"abc",
    )
    with pytest.raises(sluice.Refused, match="not the file of the export"):
        sluice.export(f"{url}/items", to=tmp_path / "items.csv", retry_for=0)
    assert not (tmp_path / "items.csv").exists()


def test_the_extension_of_a_file_is_its_format(server: str, tmp_path: Path) -> None:
    items = f"{server}/items?category=Fair&fields=price"
    for name, beginning in (("a.csv", b"id,price"), ("a.ndjson", b'{"id":'), ("a.json", b"["), ("a.parquet", b"PAR1")):
        assert Path(sluice.export(items, to=tmp_path / name)).read_bytes().startswith(beginning)
    assert polars.scan_parquet(tmp_path / "a.parquet").select("id").collect().height == 1610


def test_the_command_pulls_files_lines_and_tables(server: str, tmp_path: Path) -> None:
    def pull(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        command = [sys.executable, "-m", "sluice_client", "pull", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120)

    items = f"{server}/items?category=Fair"
    lines = b"".join(line + b"\n" for line in sluice.rows(items).lines())
    assert pull(items, "-o", "-").stdout == lines
    assert pull(items, "-o", "fair.ndjson").returncode == 0
    assert (tmp_path / "fair.ndjson").read_bytes() == lines
    assert pull(items, "-o", "fair.parquet").returncode == 0
    assert polars.read_parquet(tmp_path / "fair.parquet").height == 1610
    assert pull(items, "--into", "fair.sqlite").returncode == 0
    (count,) = sqlite3.connect(tmp_path / "fair.sqlite").execute("SELECT count(*) FROM items").fetchone()
    assert count == 1610
    refused = pull(f"{server}/none", "-o", "none.ndjson")
    assert (refused.returncode, (tmp_path / "none.ndjson").exists()) == (1, False)
    assert b"sluice_client: the server answered 404" in refused.stderr
    assert pull(items).returncode == 2
