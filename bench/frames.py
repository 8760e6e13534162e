"""frames.py SOURCE FROM INTO

Reads all items into a data frame. SOURCE is the URL of a stream, or of a database of MongoDB. FROM is ndjson, csv, arrow or
pymongoarrow, INTO polars or pandas. Prints one line of JSON: the duration and the CPU of this process in seconds, the number
of rows, and the sum of their stock.
"""

import importlib
import json
import sys
import time
import urllib.request

source, form, into = sys.argv[1:4]
frames = importlib.import_module(into)


def of_mongodb():
    import pymongo
    from pymongoarrow import api

    items = pymongo.MongoClient(source).get_default_database()["items"]
    return api.find_polars_all(items, {}) if into == "polars" else api.find_pandas_all(items, {})


def of_arrow():
    import pyarrow

    with urllib.request.urlopen(source) as answer:
        table = pyarrow.ipc.open_stream(answer).read_all()
    return frames.from_arrow(table) if into == "polars" else table.to_pandas(types_mapper=frames.ArrowDtype)


def of_text():
    if into == "pandas":
        return frames.read_csv(source) if form == "csv" else frames.read_json(source, lines=True)
    with urllib.request.urlopen(source) as answer:
        text = answer.read()
    return frames.read_csv(text) if form == "csv" else frames.read_ndjson(text)


if form == "pymongoarrow":
    importlib.import_module("pymongoarrow.api")
if form in ("arrow", "pymongoarrow"):
    importlib.import_module("pyarrow.ipc")
read = {"arrow": of_arrow, "pymongoarrow": of_mongodb}.get(form, of_text)
cpu, began = time.process_time(), time.perf_counter()
frame = read()
seconds = time.perf_counter() - began
used = time.process_time() - cpu
print(json.dumps({"seconds": seconds, "cpu": used, "rows": len(frame), "stock": int(frame["stock"].sum())}))
