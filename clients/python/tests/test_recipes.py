"""Every recipe of docs/clients.md prints what the document says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import sluice_client as sluice

from .conftest import REPOSITORY, wait_for_edition

_BLOCK = re.compile(r"```(python|sh|js)\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
_DOCUMENT = (REPOSITORY / "docs" / "clients.md").read_text()
# Where the document has the files of editions.
_TABLE = "/var/lib/sluice/editions/items"
_RECIPES = [(language, code, printed) for language, code, printed in _BLOCK.findall(_DOCUMENT)]


def test_each_recipe_shows_what_it_prints() -> None:
    assert len(_RECIPES) == len(re.findall(r"^```(?:python|sh|js)$", _DOCUMENT, re.MULTILINE)) > 8


@pytest.mark.parametrize(("language", "code", "printed"), _RECIPES, ids=[code[:30] for _, code, _ in _RECIPES])
def test_a_recipe_prints_what_the_document_says(
    request: pytest.FixtureRequest, server: str, tmp_path: Path, language: str, code: str, printed: str
) -> None:
    program = code.replace("http://127.0.0.1:3000", server)
    if "import duckdb" in code:
        # A query that takes longer than two seconds shows how far it is, among what the program prints.
        program = f"import duckdb\nduckdb.execute('SET enable_progress_bar = false')\n{program}"
    if "/edition" in code:
        wait_for_edition(f"{server}/items/edition")
    if _TABLE in code:
        program = program.replace(_TABLE, str(request.getfixturevalue("table")))
    more: dict[str, str] = request.getfixturevalue("duckdb_extensions") if "INSTALL" in code else {}
    if language == "js":
        # The package under its own name, as where it is installed, and the client that the server hands out.
        with urllib.request.urlopen(f"{server}/clients/sluice.mjs") as client:
            (tmp_path / "sluice.mjs").write_bytes(client.read())
        program = program.replace("'sluice/pull'", f"'{(REPOSITORY / 'dist' / 'pull' / 'pull.js').as_uri()}'")
    arguments = {
        "python": [sys.executable, "-c", program],
        "sh": ["sh", "-c", program],
        "js": ["node", "--input-type=module", "-e", program],
    }[language]
    environment = {
        **os.environ,
        "DLT_DATA_DIR": str(tmp_path),
        "DLT_TELEMETRY": "0",
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        **more,
    }
    done = subprocess.run(arguments, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed


_SHOW = "import { snippetsFor } from './src/web/page/snippets.ts'; console.log(JSON.stringify(snippetsFor(%s)));"


def test_the_programs_that_the_explorer_page_offers_read_the_rows_of_its_view(server: str, tmp_path: Path) -> None:
    url = f"{server}/items/stream?category=Ideal"
    wanted = {"url": url, "name": "items", "withKey": False, "version": sluice.__version__}
    shown = subprocess.run(
        ["node", "--import", "tsx", "--input-type=module", "-e", _SHOW % json.dumps(wanted)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    offered = {one["title"]: one["code"] for one in json.loads(shown.stdout)}
    programs = {title: offered[title] for title in ("Python", "pandas", "polars", "DuckDB")}
    rows = sum(1 for _ in sluice.rows(url))
    assert rows > 10_000
    printed = {
        title: subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
        ).stdout
        for title, code in programs.items()
    }
    assert printed["Python"].count("\n") == rows
    assert f"[{rows} rows x" in printed["pandas"]
    assert f"shape: ({rows:_}," in printed["polars"]
    assert re.search(rf"\b{rows}\b", printed["DuckDB"])
