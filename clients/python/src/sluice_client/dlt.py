"""A source for dlt (https://dlthub.com): loads whole resources as Arrow tables, and later only what has changed.

    import dlt
    from sluice_client.dlt import sluice_source

    pipeline = dlt.pipeline("shop", destination="duckdb", dataset_name="sales")
    pipeline.run(sluice_source("http://127.0.0.1:3000", ["items"]))

The first run replaces each table. Its state then has the cursor from which the changes of the resource follow. Each
later run merges the changes by key: rows as they are now, and removals. When the server no longer has them, the run
replaces the table again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import dlt
import pyarrow
from dlt.extract import DltResource

from . import rows
from ._changes import Change, Changes, changes_since
from ._errors import Gone
from ._retry import Options
from ._url import refuse, resource_of, url_of

# dlt removes the row when this column is true, and has no such column itself.
_REMOVED = "sluice_removed"
_CURSOR = "changes_from"
_NOT_OF_CHANGES = ("columns", "schema", "limit", "sort", "cursor", "after", "part", "follow", "since")


@dlt.source(name="sluice")  # type: ignore[untyped-decorator]
def sluice_source(
    url: str, resources: Sequence[str], *, parallel: int = 4, key: str | None = None
) -> Iterator[DltResource]:
    """The resources of a server, each as a table of its name.

    `url`: that of the server. `resources`: their names, each with filters and `fields` as in a URL, if need be:
    `orders?status=paid`. `parallel`: over how many connections a whole resource is read. `key`: an API key.
    """
    for name in resources:
        yield sluice_resource(f"{url.rstrip('/')}/{name}", parallel=parallel, key=key)


def sluice_resource(url: str, *, parallel: int = 4, key: str | None = None) -> DltResource:
    """One resource, or the part of it that the filters and `fields` of the URL select, as a table of its name."""

    refuse(url, _NOT_OF_CHANGES, "a resource is loaded whole, and later what has changed")

    def load() -> Iterator[Any]:
        state = dlt.current.resource_state()
        cursor = state.get(_CURSOR)
        if cursor is not None:
            try:
                yield from _changed(url, cursor, state, Options(key))
                return
            except Gone:
                state.pop(_CURSOR)  # the whole set follows, and replaces what was yielded
        yield from _whole(url, parallel, key, state)

    name = resource_of(url_of(url, "stream"))
    columns: Any = {_REMOVED: {"data_type": "bool", "nullable": True, "hard_delete": True}}
    return dlt.resource(load, name=name, primary_key="id", columns=columns, max_table_nesting=0)


def _whole(url: str, parallel: int, key: str | None, state: dict[str, Any]) -> Iterator[Any]:
    found = rows(url, parallel=parallel, key=key)
    hints = dlt.mark.make_hints(write_disposition="replace")
    for batch in found.batches():
        yield dlt.mark.with_hints(_plain(batch), hints)
    if found.changes_from is not None:
        state[_CURSOR] = found.changes_from


def _plain(batch: pyarrow.RecordBatch) -> pyarrow.Table:
    """The columns of JSON as text: dlt does not know their type."""
    columns = [column.storage if isinstance(column, pyarrow.ExtensionArray) else column for column in batch.columns]
    return pyarrow.table(columns, names=batch.schema.names)


def _changed(url: str, cursor: str, state: dict[str, Any], options: Options) -> Iterator[Any]:
    hints = dlt.mark.make_hints(write_disposition="merge")
    for batch in changes_since(url, cursor, options, follow=False):
        yield dlt.mark.with_hints(_records(batch), hints)
        state[_CURSOR] = batch.cursor


def _records(batch: Changes) -> list[dict[str, Any]]:
    """One record for each key: the last change of it counts."""
    latest = {json.dumps(change.id): change for change in batch.changes}
    return [_record(change) for change in latest.values()]


def _record(change: Change) -> dict[str, Any]:
    if change.row is None:
        return {"id": change.id, _REMOVED: True}
    # Nested values are text in the tables of Arrow, too.
    return {name: json.dumps(value) if isinstance(value, dict | list) else value for name, value in change.row.items()}
