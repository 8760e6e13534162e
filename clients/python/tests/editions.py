"""Editions as a server leaves them in a folder, and a server of files."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sluice_client._cut import Cutter

TARGET = 4096


@dataclass(frozen=True)
class Made:
    head: dict[str, Any]
    lines: list[str]
    files: dict[str, bytes]

    @property
    def chunks(self) -> list[str]:
        return [path for path in self.files if path.endswith((".ndjson.gz", ".ndjson")) and ".delta." not in path]


def made_edition(
    lines: list[str], changes: str = "c0", before: Made | None = None, tables: dict[str, bytes] | None = None
) -> Made:
    files: dict[str, bytes] = {}
    entries = []
    for chunk in cut(lines):
        name = _sha256(chunk)
        files[f"chunks/{name}.ndjson.gz"] = gzip.compress(chunk, 1)
        sizes = {"ndjson.gz": len(files[f"chunks/{name}.ndjson.gz"])}
        entries.append(
            {"name": name, "rows": chunk.count(b"\n"), "bytes": len(chunk), "crc32": _crc(chunk), "sizes": sizes}
        )
    formats = ["ndjson.gz"]
    rows = "".join(f"{line}\n" for line in lines).encode()
    edition = _sha256("".join(f"{entry['name']}\n" for entry in entries).encode())
    index = []
    for at in range(0, len(entries), 5):
        text = (json.dumps({"level": 0, "chunks": entries[at : at + 5]}) + "\n").encode()
        files[f"chunks/{_sha256(text)}.index.json"] = text
        index.append({"name": _sha256(text), "level": 0})
    deltas = []
    if before is not None:
        now = {_key(line) for line in lines}
        removed = [f'{{"removed":{_key(line)}}}}}' for line in before.lines if _key(line) not in now]
        old = set(before.lines)
        text = "".join(f"{line}\n" for line in [*removed, *(line for line in lines if line not in old)]).encode()
        files[f"chunks/{_sha256(text)}.delta.ndjson.gz"] = gzip.compress(text)
        deltas = [{"from": before.head["edition"], "to": edition, "name": _sha256(text)}, *before.head["deltas"]]
    head = {
        "edition": edition,
        "resource": "orders",
        "at": "2026-11-24T04:00:00.000Z",
        "rows": len(lines),
        "bytes": len(rows),
        "crc32": _crc(rows),
        "changes": changes,
        "target": TARGET,
        "formats": formats,
        "files": "chunks/",
        "index": index,
        "deltas": deltas,
        "kept": [],
    }
    files["edition.json"] = files[f"edition/{edition}.json"] = json.dumps(head).encode()
    return Made(head, lines, files)


def cut(lines: list[str], target: int = TARGET) -> Iterator[bytes]:
    cutter = Cutter(target)
    chunk = b""
    for line in lines:
        chunk += f"{line}\n".encode()
        if cutter.ends_behind(f"{line}\n".encode()):
            yield chunk
            chunk = b""
    if chunk:
        yield chunk


@dataclass
class EditionServer:
    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    # What streams that follow answer, by their cursor. Others are gone.
    feeds: dict[str, str] = field(default_factory=dict)

    def publish(self, made: Made) -> None:
        self.files.update(made.files)


@contextmanager
def edition_server(*editions: Made) -> Iterator[EditionServer]:
    opened = EditionServer()
    for made in editions:
        opened.publish(made)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.removeprefix("/orders/")
            opened.asked.append(path)
            if path.startswith("stream"):
                self._stream(path.rpartition("cursor=")[2])
            else:
                data = opened.files.get(path, opened.files.get(f"{path}.json"))
                self._answer(404 if data is None else 200, data or b"", "application/octet-stream")

        def _stream(self, cursor: str) -> None:
            lines = opened.feeds.get(cursor)
            if lines is None:
                self._answer(410, b'{"detail":"These changes are no longer kept."}', "application/problem+json")
                return
            rows = lines.count("\n")
            place = {"cursor": "c9", "rows": rows, "bytes": len(lines), "crc32": _crc(lines.encode()), "upToDate": True}
            text = lines + json.dumps({"checkpoint": place}, separators=(",", ":")) + "\n"
            self._answer(200, text.encode(), "application/x-ndjson")

        def _answer(self, status: int, data: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        opened.url = f"http://127.0.0.1:{server.server_address[1]}/orders/edition"
        yield opened
        server.shutdown()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _crc(data: bytes) -> str:
    return f"{zlib.crc32(data):08x}"


def _key(line: str) -> str:
    return '{"id":' + json.dumps(json.loads(line)["id"], separators=(",", ":"), ensure_ascii=False)
