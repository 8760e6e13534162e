"""Sets as files that the server writes."""

from __future__ import annotations

import json
import urllib.request

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
