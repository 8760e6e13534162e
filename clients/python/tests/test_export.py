"""Sets as files that the server writes."""

from __future__ import annotations

import io
import json
import urllib.request

import polars
import pyarrow
import pyarrow.parquet
import pytest

import sluice_client as sluice


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


def test_an_old_polars_is_given_plain_text(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[pyarrow.Table] = []

    def from_arrow(table: pyarrow.Table) -> polars.DataFrame:
        given.append(table)
        return polars.DataFrame()

    monkeypatch.setattr(polars, "from_arrow", from_arrow)
    for release, kind in (("1.35.2", pyarrow.string()), ("1.36.0", pyarrow.json_()), ("2.1.0", pyarrow.json_())):
        monkeypatch.setattr(polars, "__version__", release)
        sluice.rows(f"{server}/items?limit=1").to_polars()
        assert given.pop().schema.field("_rest").type == kind
