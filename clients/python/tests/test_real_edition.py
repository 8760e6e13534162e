"""Editions of real servers, of a catalogue in the embedded store and of orders in MongoDB."""

from __future__ import annotations

import json
import sqlite3
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId
from pymongo import MongoClient

import sluice_client as sluice

from .conftest import start_cutter, start_server, wait_for_edition
from .shop import Shop, orders


def copied(path: Path, table: str) -> list[str]:
    with sqlite3.connect(path) as database:
        return sorted(row for (row,) in database.execute(f"SELECT row FROM {table}"))


def lines_of(url: str) -> list[str]:
    with urllib.request.urlopen(f"{url}/stream") as stream:
        return stream.read().decode().splitlines()  # type: ignore[no-any-return]


def test_an_edition_of_the_embedded_store_is_its_stream(server: str, table: Path, tmp_path: Path) -> None:
    edition = sluice.edition(f"{server}/items/edition")
    lines = lines_of(f"{server}/items")
    assert [line.decode() for line in edition.lines()] == lines
    frame = edition.to_polars()
    assert (frame.height, frame["price"].sum()) == (len(lines), sum(json.loads(line)["price"] for line in lines))
    assert edition.to_pandas()["price"].sum() == frame["price"].sum()
    sluice.mirror(f"{server}/items/edition", tmp_path / "items.sqlite")
    assert copied(tmp_path / "items.sqlite", "items") == sorted(lines)
    assert (table / "edition.json").exists()


@contextmanager
def published(shop: Shop, folder: Path, name: str) -> Iterator[tuple[str, Any]]:
    """A server with editions of the orders of a database, and the collection of these."""
    resources = {"orders": {"editions": {"every": "1 h", "chunk": "16 KiB"}}}
    (folder / "resources.json").write_text(json.dumps({"resources": resources}))
    mongo = shop.mongo.replace("/shop?", f"/{name}?")
    settings = {
        "MONGODB_URI": mongo,
        "RESOURCES_FILE": str(folder / "resources.json"),
        "FILES": folder.as_uri(),
        "SAMPLE": "off",
    }
    with MongoClient[dict[str, Any]](mongo) as client:
        collection = client[name]["orders"]
        collection.insert_many(orders())
        with start_server(folder, settings) as url:
            wait_for_edition(f"{url}/orders/edition")
            yield f"{url}/orders", collection
        client.drop_database(name)


def publish(url: str) -> str:
    """Makes another edition, and returns its name."""
    before = sluice.edition(f"{url}/edition").head.edition
    with urllib.request.urlopen(urllib.request.Request(f"{url}/edition", method="POST")) as answer:
        assert answer.status == 202
    until = time.monotonic() + 60
    while (name := sluice.edition(f"{url}/edition").head.edition) == before:
        assert time.monotonic() < until, "there is another edition in time"
        time.sleep(0.1)  # there is no event to wait for in another process
    return name


def change(collection: Any) -> None:
    collection.update_one({"_id": ObjectId(f"{100:024x}")}, {"$set": {"weight": -1.5}})
    collection.delete_one({"_id": ObjectId(f"{1500:024x}")})


def test_a_copy_follows_a_collection_that_was_replaced_by_what_differs(shop: Shop, tmp_path: Path) -> None:
    file = tmp_path / "copy.sqlite"
    with published(shop, tmp_path, "replaced") as (url, collection), start_cutter(url.removesuffix("/orders")) as proxy:
        orders_at = f"{proxy.url}/orders"

        def chunks() -> int:
            return sum(".ndjson.gz" in line and ".delta." not in line for line in proxy.requests)

        edition = sluice.edition(f"{orders_at}/edition")
        assert [line.decode() for line in edition.lines()] == lines_of(url)
        assert edition.to_polars().height == len(edition.to_pandas()) == 2_000
        sluice.mirror(f"{orders_at}/edition", file)
        assert copied(file, "orders") == sorted(lines_of(url))
        change(collection)
        publish(url)
        proxy.requests.clear()
        sluice.mirror(orders_at, file)
        assert copied(file, "orders") == sorted(lines_of(url))
        assert chunks() == 0, "changes are enough while the server has them"
        proxy.requests.clear()
        edition.download(tmp_path / "old.ndjson")  # it is kept
        assert len((tmp_path / "old.ndjson").read_bytes().splitlines()) == 2_000
        # The history ends where a collection is dropped.
        rows = list(collection.find())
        collection.drop()
        collection.insert_many(rows)
        collection.update_one({"_id": ObjectId(f"{700:024x}")}, {"$set": {"weight": -2.5}})
        wait_for_other_rows(url)
        publish(url)
        proxy.requests.clear()
        sluice.mirror(orders_at, file)
        assert copied(file, "orders") == sorted(lines_of(url))
        assert 1 <= chunks() <= 4, proxy.requests


def wait_for_other_rows(url: str) -> None:
    """Returns when the server has noticed that the collection is another one."""
    until = time.monotonic() + 60
    while True:
        try:
            if any('"weight":-2.5' in line for line in lines_of(url)):
                return
        except OSError:
            pass  # it is 503 meanwhile
        assert time.monotonic() < until, "the server reads the new collection in time"
        time.sleep(0.1)  # there is no event to wait for in another process


def test_a_chunk_that_is_damaged_on_disk_is_refused_by_name(shop: Shop, tmp_path: Path) -> None:
    with published(shop, tmp_path, "damaged") as (url, _):
        chunk = sorted((tmp_path / "editions" / "orders" / "chunks").glob("*.ndjson.gz"))[3]
        data = chunk.read_bytes()
        for wrong in (data[:-9], bytes([*data[:40], data[40] ^ 1, *data[41:]]), b"<html>"):
            chunk.write_bytes(wrong)
            with pytest.raises(sluice.Refused, match=f"{chunk.name} is not what its name says"):
                sluice.edition(f"{url}/edition", retry_for=5).download(tmp_path / "a")
            with pytest.raises(sluice.Refused, match="is not what its name says"):
                sluice.mirror(f"{url}/edition", tmp_path / "copy.sqlite", retry_for=5)
        chunk.write_bytes(data)
        sluice.mirror(f"{url}/edition", tmp_path / "copy.sqlite")
        assert copied(tmp_path / "copy.sqlite", "orders") == sorted(lines_of(url))
