"""Reads versions of Delta tables with three readers, joins each row of its columns and `_rest`, and compares it with a line of NDJSON.

It takes requests as lines of JSON: {"uri", "options", "version", "types": {column: type}, "rows": file of NDJSON, "readers"}. Its answers are lines of JSON: the rows that each reader gave, or what is wrong.
"""

import json
import os
import sys
from collections import Counter
from datetime import datetime, timezone
from decimal import Decimal

import duckdb
import duckdb_extension_delta
import duckdb_extension_httpfs
import polars
from deltalake import DeltaTable


class Number(str):
    """The text of a number."""


def from_json(text):
    return json.loads(text, parse_int=Number, parse_float=Number)


def double_text(value):
    """A double as JavaScript writes it."""
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + exponent
    if value == 0:
        shown = "0"
    elif -6 < point <= 0:
        shown = "0." + "0" * -point + text
    elif 0 < point <= 21:
        shown = text[:point].ljust(point, "0") + ("." + text[point:] if len(text) > point else "")
    else:
        shown = text[0] + ("." + text[1:] if len(text) > 1 else "") + "e%+d" % (point - 1)
    return ("-" if sign and value != 0 else "") + shown


def shown(value, kind):
    """A value of a column as rows show it."""
    if kind == "string":
        assert isinstance(value, str), value
        return value
    if kind == "long":
        assert type(value) is int, value
        return Number(value)
    if kind == "double":
        return Number(double_text(value))
    if kind == "boolean":
        assert type(value) is bool, value
        return value
    if kind == "timestamp":
        assert isinstance(value, datetime) and value.tzinfo is not None, value
        text = value.astimezone(timezone.utc).strftime("%m-%dT%H:%M:%S.%f")
        return "%04d-%sZ" % (value.astimezone(timezone.utc).year, text[:-3])
    assert isinstance(value, Decimal), value
    return Number(format(value, "f"))


def joined(row, types):
    columns = {name: shown(row[name], kind) for name, kind in types.items() if row[name] is not None}
    return {**columns, **(from_json(row["_rest"]) if row["_rest"] else {})}


def canonical(row):
    """A text for each row, in which numbers keep their digits."""

    def tagged(value):
        if isinstance(value, Number):
            return {"number": str(value)}
        if isinstance(value, dict):
            return {"members": {name: tagged(member) for name, member in value.items()}}
        return [tagged(item) for item in value] if isinstance(value, list) else value

    return json.dumps(tagged(row), sort_keys=True)


def read_deltalake(uri, options, version):
    return DeltaTable(uri, version=version, storage_options=options).to_pyarrow_table().to_pylist()


def read_polars(uri, options, version):
    return polars.read_delta(uri, version=version, storage_options=options).to_dicts()


def database():
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.execute("SET TimeZone = 'UTC'")
    for package in (duckdb_extension_httpfs, duckdb_extension_delta):
        folder = os.path.join(os.path.dirname(package.__file__), "extensions", "v" + duckdb.__version__)
        for file in os.listdir(folder):
            connection.execute(f"LOAD '{os.path.join(folder, file)}'")
    return connection


DUCKDB = database()


def read_duckdb(uri, options, version):
    if options:
        endpoint = options["AWS_ENDPOINT_URL"].removeprefix("http://")
        DUCKDB.execute(
            f"CREATE OR REPLACE SECRET (TYPE s3, KEY_ID '{options['AWS_ACCESS_KEY_ID']}', SECRET '{options['AWS_SECRET_ACCESS_KEY']}',"
            f" REGION '{options['AWS_REGION']}', ENDPOINT '{endpoint}', URL_STYLE 'path', USE_SSL false)"
        )
    at = "" if version is None else f", version={version}"
    return DUCKDB.execute(f"FROM delta_scan('{uri}'{at})").to_arrow_table().to_pylist()


READERS = {"deltalake": read_deltalake, "polars": read_polars, "duckdb": read_duckdb}


def answer(asked):
    with open(asked["rows"], encoding="utf-8") as lines:
        wanted = Counter(canonical(from_json(line)) for line in lines)
    found = {}
    for name in asked["readers"]:
        rows = READERS[name](asked["uri"], asked["options"] or None, asked["version"])
        got = Counter(canonical(joined(row, asked["types"])) for row in rows)
        differing = [list((wanted - got).elements()), list((got - wanted).elements())]
        found[name] = len(rows) if not any(differing) else [rows[:2] for rows in differing]
    return found


for line in sys.stdin:
    try:
        said = {"found": answer(json.loads(line))}
    except Exception as error:  # the test says it
        said = {"fault": f"{type(error).__name__}: {error}"[:2000]}
    print(json.dumps(said), flush=True)
