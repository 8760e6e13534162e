"""clickhouse.py URL FORMAT

Writes all items out of a table of ClickHouse (chdb: MergeTree, in order of id, one thread) into a pipe that wc reads. URL is
a stream of sluice in lines of JSON, which fills the table first. FORMAT is ndjson or arrow. Prints one line of JSON: the
duration, the CPU of this process (without wc) in seconds, the rows, the bytes, and whether they are the bytes of sluice.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request

import pyarrow.ipc
from chdb.session import Session

url, form = sys.argv[1:3]
COLUMNS = """id String, name String, category String, price Float64, description String, stock Int64,
createdAt DateTime64(3, 'UTC'), updatedAt DateTime64(3, 'UTC')"""
FORMATS = {"ndjson": "JSONEachRow", "arrow": "ArrowStream"}
SETTINGS = """max_threads = 1, output_format_parallel_formatting = 0, date_time_output_format = 'iso',
output_format_json_escape_forward_slashes = 0, output_format_json_quote_64bit_integers = 0,
output_format_arrow_compression_method = 'none'"""


def write(session, file):
    what = f"SELECT * FROM bench.items ORDER BY id INTO OUTFILE '{file}' APPEND"
    session.query(f"{what} FORMAT {FORMATS[form]} SETTINGS {SETTINGS}")


def content(file):
    with open(file, "rb") as stream:
        return stream.read()


with tempfile.TemporaryDirectory() as directory:
    source, written, pipe = (os.path.join(directory, name) for name in ("source", "written", "pipe"))
    urllib.request.urlretrieve(url, source)
    session = Session(os.path.join(directory, "store"))
    session.query("CREATE DATABASE bench")
    session.query(f"CREATE TABLE bench.items ({COLUMNS}) ENGINE = MergeTree ORDER BY id")
    session.query(
        f"INSERT INTO bench.items SELECT * FROM file('{source}', JSONEachRow, $${COLUMNS}$$) "
        "SETTINGS date_time_input_format = 'best_effort'"
    )
    session.query("OPTIMIZE TABLE bench.items FINAL")
    # Once into a file, which is checked and warms up.
    write(session, written)
    whole = content(written)
    rows = whole.count(b"\n") if form == "ndjson" else pyarrow.ipc.open_stream(whole).read_all().num_rows
    same = whole == content(source)
    os.mkfifo(pipe)
    with open(os.path.join(directory, "count"), "w+b") as count:
        reader = subprocess.Popen(["wc", "-c", pipe], stdout=count)
        cpu, began = time.process_time(), time.perf_counter()
        write(session, pipe)
        used = time.process_time() - cpu
        reader.wait()
        seconds = time.perf_counter() - began
        count.seek(0)
        size = int(count.read().split()[0])
    if size != len(whole):
        raise SystemExit(f"the pipe gave {size} bytes, the file {len(whole)}")
    print(json.dumps({"seconds": seconds, "cpu": used, "rows": rows, "bytes": size, "same": same}))
