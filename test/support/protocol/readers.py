"""Reads the cases that standard input has as JSON, all at the same time, and writes what became of each."""

import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import sluice_client as sluice


def line(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def named(resource: str, own: dict, is_removed: bool) -> dict:
    return {"resource": resource, **(own if is_removed else {"row": own})}


def text(job: dict, options: dict) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        if job["reads"] == "file":
            sluice.download(job["url"], path, **options)
        else:
            sluice.edition(job["url"], **options).download(path)
        return path.read_text()


def read(job: dict) -> dict:
    yields: list = []
    options = {"key": job["key"], "timeout": job["timeout"], "retry_for": job["retryFor"]}
    try:
        if job["reads"] in ("file", "edition"):
            return {"yields": [text(job, options)], "ends": "whole"}
        if job["reads"] == "rows":
            for row in sluice.rows(job["url"], **options):
                yields.append(line(row))
            return {"yields": yields, "ends": "whole"}
        for batch in sluice.changes(job["url"], job["since"], **options):
            for change in batch.changes:
                own = {"removed": {"id": change.id}} if change.removed else change.row
                yields.append(line(own if change.resource is None else named(change.resource, own, change.removed)))
        return {"yields": yields, "ends": "current"}
    except sluice.Interrupted as error:
        return {"yields": yields, "ends": "interrupted", "says": str(error)}
    except sluice.Refused as error:
        return {"yields": yields, "ends": "refused", "status": error.status, "says": str(error)}


jobs = json.load(sys.stdin)
with ThreadPoolExecutor(len(jobs)) as pool:
    json.dump(list(pool.map(read, jobs)), sys.stdout)
