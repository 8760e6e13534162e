"""Exports that lie in a bucket: a small object store in memory stands for it."""

from __future__ import annotations

import hashlib
import json
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape

import pytest

import sluice_client as sluice

from .conftest import start_server


class Bucket(ThreadingHTTPServer):
    """What is stored, and the headers of all requests."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.seen: list[str] = []


class Handler(BaseHTTPRequestHandler):
    server: Bucket
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        if "list-type" in query:
            found = sorted(key for key in self.server.files if key.startswith(f"/some-bucket/{query['prefix'][0]}"))
            sizes = [(escape(key.removeprefix("/some-bucket/")), len(self.server.files[key])) for key in found]
            texts = [f"<Contents><Key>{key}</Key><Size>{size}</Size></Contents>" for key, size in sizes]
            self._answer(200, f"<ListBucketResult>{''.join(texts)}</ListBucketResult>".encode())
        elif "uploads" in query:
            self._answer(200, b"<ListMultipartUploadsResult></ListMultipartUploadsResult>")
        else:
            self._answer(200, self.server.files[urlsplit(self.path).path])

    def do_PUT(self) -> None:
        self.server.files[self.path] = self.rfile.read(int(self.headers["content-length"]))
        self._answer(200, b"")

    def do_DELETE(self) -> None:
        self.server.files.pop(self.path, None)
        self._answer(204, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.server.seen.append(str(self.headers))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with Bucket() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_an_export_in_a_bucket_is_read_by_its_link_and_the_key_stays_here(bucket: Bucket, tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    digest = hashlib.sha256(b"the-key-of-ada").hexdigest()
    keys.write_text(json.dumps({"keys": [{"name": "ada", "sha256": digest}]}))
    settings = {
        "FILES": f"s3://some-bucket/a?endpoint=http://127.0.0.1:{bucket.server_port}",
        "S3_ACCESS_KEY_ID": "id",
        "S3_SECRET_ACCESS_KEY": "secret",
        "API_KEYS_FILE": str(keys),
    }
    with start_server(tmp_path, settings) as url:
        link = sluice.export(f"{url}/items?category=Fair&fields=price", format="csv", key="the-key-of-ada")
        assert "X-Amz-Signature=" in link
        with urllib.request.urlopen(link) as answer:
            assert len(answer.read().splitlines()) == 1611
    assert not [headers for headers in bucket.seen if "the-key" in headers]
    with start_server(tmp_path, {**settings, "FILES_PROXY": "true"}) as url:
        file = sluice.export(f"{url}/items?category=Fair&fields=price", format="csv", key="the-key-of-ada")
        assert file.startswith(url)
