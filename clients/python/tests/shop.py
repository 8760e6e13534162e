"""A shop in MongoDB, and servers of its orders: an open one, and one that wants a key."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from bson import Decimal128, ObjectId
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from .conftest import REPOSITORY, free_port, start_server

KEY = "the-key-of-ada"
_ORDERS = 2_000


@dataclass(frozen=True)
class Shop:
    """`rows`: what MongoDB has, in the order of ids. `open` and `keyed`: URLs of servers."""

    mongo: str
    rows: list[dict[str, Any]]
    open: str
    keyed: str


def orders() -> list[dict[str, Any]]:
    """Orders as shops have them: ids of MongoDB, dates, decimals that no double has, nested fields, and a list."""
    began = datetime(2026, 1, 1, tzinfo=timezone.utc)
    return [
        {
            "_id": ObjectId(f"{n:024x}"),
            "status": ("new", "paid", "sent")[n % 3],
            "createdAt": began + timedelta(hours=n),
            "total": Decimal128(f"{n * 7919 % 100_000}.{n % 100:02d}"),
            "weight": n / 8,
            "customer": {"name": f"Zoë {n}", "country": "NL" if n % 2 else "DE"},
            "lines": [{"sku": f"s{n % 7}", "n": n % 5}],
        }
        for n in range(_ORDERS)
    ]


def mongod_program() -> str | None:
    """The program of MongoDB that the other tests use. None: there is none."""
    found = [*sorted(map(str, (REPOSITORY / "node_modules" / ".cache").glob("mongod-*"))), shutil.which("mongod")]
    return os.environ.get("MONGOD") or next((path for path in found if path is not None), None)


@contextmanager
def start_mongod(folder: Path) -> Iterator[str]:
    """Runs a replica set of one member, and yields its URI."""
    program = mongod_program()
    if program is None:
        if os.environ.get("REQUIRE_ALL"):
            pytest.fail("REQUIRE_ALL is set, but there is no mongod")
        pytest.skip("there is no mongod")
    port = free_port()
    (folder / "db").mkdir()
    options = ["--port", str(port), "--dbpath", str(folder / "db"), "--bind_ip", "127.0.0.1", "--nounixsocket"]
    with (folder / "mongod.log").open("wb") as log:
        process = subprocess.Popen(
            [program, *options, "--replSet", "rs0", "--wiredTigerCacheSizeGB", "0.25"], stdout=log, stderr=log
        )
    try:
        with MongoClient[dict[str, Any]](f"mongodb://127.0.0.1:{port}/?directConnection=true") as client:
            member = {"_id": 0, "host": f"127.0.0.1:{port}"}
            client.admin.command("replSetInitiate", {"_id": "rs0", "members": [member]})
            _wait_for_primary(client, process)
        yield f"mongodb://127.0.0.1:{port}/shop?replicaSet=rs0"
    finally:
        process.terminate()
        process.wait(60)


def _wait_for_primary(client: MongoClient[dict[str, Any]], process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 90
    while True:
        try:
            if client.admin.command("hello")["isWritablePrimary"]:
                return
        except PyMongoError:
            pass  # the member is not there yet
        if process.poll() is not None or time.monotonic() > until:
            pytest.fail("mongod does not start")
        time.sleep(0.1)  # there is no event to wait for in another process


@contextmanager
def open_shop(folder: Path) -> Iterator[Shop]:
    rows = orders()
    with start_mongod(folder) as mongo, MongoClient[dict[str, Any]](mongo) as client:
        collection = client["shop"]["orders"]
        collection.insert_many(rows)
        collection.create_index([("status", 1), ("createdAt", 1), ("_id", 1)])
        keys = folder / "keys.json"
        digest = hashlib.sha256(KEY.encode()).hexdigest()
        keys.write_text(json.dumps({"keys": [{"name": "ada", "sha256": digest, "resources": ["orders"]}]}))
        settings = {"MONGODB_URI": mongo, "EXPOSE": "orders", "SAMPLE": "off"}
        (folder / "open").mkdir()
        (folder / "keyed").mkdir()
        with (
            start_server(folder / "open", settings) as is_open,
            start_server(folder / "keyed", {**settings, "API_KEYS_FILE": str(keys)}) as keyed,
        ):
            yield Shop(mongo, rows, is_open, keyed)
