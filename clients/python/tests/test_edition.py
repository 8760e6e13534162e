from __future__ import annotations

import gzip
import hashlib
import json
import sqlite3
import urllib.request
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import sluice_client as sluice
from sluice_client._cut import Cutter

from .conftest import REPOSITORY
from .editions import Made, edition_server, made_edition

_IDS: dict[str, list[Any]] = {
    "texts": [f"d{n:07}" for n in range(0, 1800, 3)],
    "numbers": list(range(-300, 1500, 3)),
    "fractions": [n / 4 for n in range(1, 600, 2)],
    "escapes": [f'a "{n:04}" \\ \n,}}é€😀' for n in range(600)],
    "objects": [{"a": n, "b": f'}}"{n}'} for n in range(600)],
}


def lines_of(ids: list[Any], changed: int | None = None) -> list[str]:
    rows = [{"id": key, "n": n, "text": f"{n * 7919} " * 20} for n, key in enumerate(ids)]
    if changed is not None:
        rows[changed]["new"] = changed
    return [json.dumps(row, separators=(",", ":"), ensure_ascii=False) for row in rows]


ONE = made_edition(lines_of(_IDS["texts"]), "c1")


def copied(path: Path) -> set[str]:
    with sqlite3.connect(path) as database:
        return {row for (row,) in database.execute("SELECT row FROM orders")}


def test_the_rule_is_that_of_the_server() -> None:
    cases = json.loads((REPOSITORY / "test" / "editions" / "cuts.json").read_text())
    assert cut_cases(cases) > 5


def cut_cases(cases: Any) -> int:
    count = 0
    for case in cases if isinstance(cases, list) else cases["cases"]:
        lines = [f"{line}\n".encode() for line in case["lines"]]
        cutter = Cutter(case["target"])
        ends = [n + 1 for n, line in enumerate(lines) if cutter.ends_behind(line)]
        if lines and (not ends or ends[-1] < len(lines)):
            ends.append(len(lines))
        rows = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
        assert rows == [chunk["rows"] for chunk in case["chunks"]], case
        count += 1
    return count


def test_an_edition_gives_its_rows_and_its_file(tmp_path: Path) -> None:
    with edition_server(ONE) as server:
        for url in (server.url, f"{server.url}.json", f"{server.url}/{ONE.head['edition']}"):
            edition = sluice.edition(url)
            assert (edition.head.edition, edition.head.rows) == (ONE.head["edition"], 600)
            assert list(edition.rows()) == [json.loads(line) for line in ONE.lines]
            edition.download(tmp_path / "orders.ndjson")
            assert (tmp_path / "orders.ndjson").read_text() == "".join(f"{line}\n" for line in ONE.lines)
        assert edition.to_polars().shape == (600, 3)
        frame = edition.to_pandas()
        assert (len(frame), frame["n"].sum()) == (600, 599 * 300)
        server.publish(made_edition([]))
        assert list(sluice.edition(server.url).rows()) == []
        assert sluice.edition(server.url).to_polars().is_empty()


def test_parquet_is_read_where_the_edition_has_it() -> None:
    import polars

    made = made_edition(ONE.lines)
    schema = "0123456789abcdef"
    entries = []
    for path in made.chunks:
        name = path[7:71]
        rows = [json.loads(line) for line in gzip.decompress(made.files[path]).splitlines()]
        file = BytesIO()
        polars.DataFrame(rows).write_parquet(file)
        made.files[f"chunks/{name}-{schema}.parquet"] = file.getvalue()
        entries.append((name, len(file.getvalue())))
    sizes = dict(entries)
    index = []
    for one in made.head["index"]:
        value = json.loads(made.files.pop(f"chunks/{one['name']}.index.json"))
        for chunk in value["chunks"]:
            chunk["sizes"]["parquet"] = sizes[chunk["name"]]
        text = json.dumps(value).encode()
        name = hashlib.sha256(text).hexdigest()
        made.files[f"chunks/{name}.index.json"] = text
        index.append({"name": name, "level": 0})
    made.head.update(index=index, schema=schema, formats=["ndjson.gz", "parquet"])
    made.files["edition.json"] = json.dumps(made.head).encode()
    with edition_server(made) as server:
        edition = sluice.edition(server.url)
        assert edition.to_polars()["n"].sum() == 599 * 300
        assert len(edition.to_pandas()) == 600
        assert not [path for path in server.asked if path.endswith(".ndjson.gz")]
        assert len(list(edition.rows())) == 600
        frames = [polars.read_parquet(urllib.request.urlopen(url)) for url in edition.urls("parquet")]
        assert polars.concat(frames)["id"].to_list() == _IDS["texts"]
        with pytest.raises(ValueError, match="no csv, only"):
            edition.urls("csv")


@pytest.mark.parametrize("wrong", [b"<html>", b"", gzip.compress(b"x" * 9_000_000), None])
def test_a_chunk_that_is_not_its_name_is_named(wrong: bytes | None, tmp_path: Path) -> None:
    path = ONE.chunks[3]
    with edition_server(ONE) as server:
        server.files[path] = ONE.files[path][:-9] if wrong is None else wrong
        with pytest.raises(sluice.Refused, match=f"{path} is not what its name says"):
            sluice.edition(server.url, retry_for=5).download(tmp_path / "a")
        assert server.asked.count(path) == 3
        assert list(tmp_path.iterdir()) == []
        server.files[path] = ONE.files[path]
        server.files["edition.json"] = json.dumps({**ONE.head, "rows": 601}).encode()
        with pytest.raises(sluice.Refused, match="not the edition"):
            list(sluice.edition(server.url).rows())
        del server.files[path]
        with pytest.raises(sluice.Refused, match="404"):
            list(sluice.edition(f"{server.url}/{ONE.head['edition']}").rows())


@pytest.mark.parametrize("kind", _IDS)
def test_a_copy_whose_token_has_expired_reads_only_what_differs(kind: str, tmp_path: Path) -> None:
    ids = _IDS[kind]
    one = made_edition(lines_of(ids), "c1")
    two = made_edition([line for n, line in enumerate(lines_of(ids, 200)) if n != 30], "c2")
    file = tmp_path / "copy.sqlite"
    with edition_server(one) as server:
        server.feeds = {"c1": ""}
        sluice.mirror(server.url, file)
        assert copied(file) == set(one.lines)
        server.publish(two)
        server.feeds = {"c2": '{"id":"later"}\n'}
        server.asked.clear()
        sluice.mirror(server.url.replace("/edition", ""), file)
        assert copied(file) == {*two.lines, '{"id":"later"}'}
        assert kind == "objects" or len([path for path in server.asked if path.endswith(".ndjson.gz")]) <= 4


def test_a_copy_applies_deltas_and_goes_on_when_it_is_killed(tmp_path: Path) -> None:
    two = made_edition([*lines_of(_IDS["texts"], 200)[5:]], "c2", before=ONE)
    three = made_edition(two.lines[:-3], "c3", before=two)
    file = tmp_path / "copy.sqlite"
    with edition_server(ONE) as server:
        held = server.files.pop(ONE.chunks[-2])
        with pytest.raises(sluice.Refused, match="404"):
            sluice.mirror(f"{server.url}.json", file)
        server.files[ONE.chunks[-2]] = held
        server.asked.clear()
        sluice.mirror(f"{server.url}.json", file)
        assert copied(file) == set(ONE.lines)
        assert len([path for path in server.asked if path.endswith(".ndjson.gz")]) < 10
        for made in (two, three):
            server.publish(made)
        server.asked.clear()
        sluice.mirror(f"{server.url}.json", file)
        assert copied(file) == set(three.lines)
        files = [path[71:] for path in server.asked if path.startswith("chunks/")]
        assert files == [".delta.ndjson.gz", ".delta.ndjson.gz"]


def test_a_copy_that_is_not_what_its_state_says_is_mended(tmp_path: Path) -> None:
    two: Made = made_edition(lines_of(_IDS["texts"], 200), "c2", before=ONE)
    file = tmp_path / "copy.sqlite"
    with edition_server(ONE) as server:
        sluice.mirror(f"{server.url}.json", file)
        with sqlite3.connect(file) as database:
            database.execute("DELETE FROM orders WHERE id > 'd0001000'")
            database.execute("INSERT INTO orders (id, row) VALUES (7, '{\"id\":7}')")
        server.publish(two)
        sluice.mirror(f"{server.url}.json", file)
        assert copied(file) == set(two.lines)
