"""A real server on the sample catalogue, and a proxy in front of it that cuts connections."""

from __future__ import annotations

import json
import os
import socket
import socketserver
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .shop import Shop

REPOSITORY = Path(__file__).parents[3]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server with the sample catalogue and editions of it, on the embedded store."""
    given = os.environ.get("SLUICE_URL")
    if given:
        yield given
        return
    folder = tmp_path_factory.mktemp("server")
    (folder / "resources.json").write_text(
        json.dumps({"resources": {"items": {"editions": {"every": "2 s", "formats": ["ndjson.gz", "parquet"]}}}})
    )
    own = {"RESOURCES_FILE": str(folder / "resources.json"), "FILES": folder.as_uri(), "SAMPLE": "on"}
    with start_server(folder, own) as url:
        yield url


@pytest.fixture(scope="session")
def table(server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the editions of items, which is a Delta table."""
    if os.environ.get("SLUICE_URL"):
        pytest.skip("the files of another server are not here")
    wait_for_edition(f"{server}/items/edition")
    (folder,) = tmp_path_factory.getbasetemp().glob("server[0-9]*/editions/items")
    return folder


def wait_for_edition(url: str) -> None:
    """Returns when a server has made an edition of a resource, which has rows."""
    until = time.monotonic() + 90
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                if json.load(answer)["rows"] > 0:
                    return
        except OSError:
            pass  # 503: it is being made
        assert time.monotonic() < until, "there is an edition in time"
        time.sleep(0.1)  # there is no event to wait for in another process


@pytest.fixture
def duckdb_extensions(tmp_path: Path) -> dict[str, str]:
    """What has a program of Python use a release of DuckDB with its extensions for URLs and Delta tables.

    SLUICE_HTTPFS names a folder with that release and the wheels of the extensions.
    """
    folder = os.environ.get("SLUICE_HTTPFS")
    if folder is None:
        if os.environ.get("REQUIRE_ALL"):
            pytest.fail("REQUIRE_ALL is set, but SLUICE_HTTPFS is not")
        pytest.skip("there are no extensions of DuckDB: SLUICE_HTTPFS names their folder")
    settings = {"PYTHONPATH": os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")]), "HOME": str(tmp_path)}
    for extension in Path(folder).glob("duckdb_extension_*/extensions/*/*.duckdb_extension"):
        install = f"import duckdb; duckdb.sql(\"INSTALL '{extension}'\")"
        subprocess.run([sys.executable, "-c", install], env={**os.environ, **settings}, check=True, timeout=60)
    return settings


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Orders in MongoDB, and two servers of them. Skips the test where there is no mongod."""
    from .shop import open_shop

    with open_shop(tmp_path_factory.mktemp("shop")) as opened:
        yield opened


@contextmanager
def start_server(folder: Path, settings: dict[str, str]) -> Iterator[str]:
    """Runs a server with its data in a folder, and yields its URL."""
    port = free_port()
    own = {"PORT": str(port), "DATA_DIR": str(folder / "data"), "RATE_LIMIT": "off", "STREAM_LIMIT": "off"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["node", "src/start.mjs", "serve"],
            cwd=REPOSITORY,
            env={**os.environ, **own, **settings},
            stdout=log,
            stderr=log,
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(url, process, folder / "log")
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 90
    while True:
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=5):
                return
        except OSError:
            if process.poll() is not None or time.monotonic() > until:
                pytest.fail(f"the server does not start: {log.read_text()}")
            time.sleep(0.1)  # there is no event to wait for in another process


class Cutter(socketserver.ThreadingTCPServer):
    """Forwards to a server, and cuts connection n after `after(n)` bytes of its answer. None cuts nothing.

    `requests`: the first line of each request.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, target: str, after: Callable[[int], int | None]) -> None:
        host, port = target.removeprefix("http://").split(":")
        self._target = (host, int(port))
        self._after = after
        self._lock = threading.Lock()
        self.connections = 0
        self.requests: list[str] = []
        super().__init__(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def finish_request(self, request: object, client_address: object) -> None:
        assert isinstance(request, socket.socket)
        with self._lock:
            left = self._after(self.connections)
            self.connections += 1
        with socket.create_connection(self._target) as upstream:
            threading.Thread(target=_forward, args=(request, upstream, self.requests), daemon=True).start()
            while data := upstream.recv(65536):
                request.sendall(data if left is None else data[:left])
                if left is not None and (left := left - len(data)) <= 0:
                    return


def _forward(source: socket.socket, target: socket.socket, requests: list[str]) -> None:
    try:
        while data := source.recv(65536):
            if data.startswith(b"GET "):
                requests.append(data.partition(b"\r\n")[0].decode())
            target.sendall(data)
    except OSError:
        return  # either side has gone


@pytest.fixture
def cutter(server: str) -> Iterator[Callable[[Callable[[int], int | None]], Cutter]]:
    """Starts proxies that cut."""
    with ExitStack() as started:
        yield lambda after: started.enter_context(start_cutter(server, after))


@contextmanager
def start_cutter(target: str, after: Callable[[int], int | None] = lambda n: None) -> Iterator[Cutter]:
    proxy = Cutter(target, after)
    proxy.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    yield proxy
    proxy.shutdown()
    proxy.server_close()


@pytest.fixture
def answers() -> Iterator[Callable[..., str]]:
    """Serves raw bytes: one answer for each connection, the last one again for all others. Returns a URL."""
    listeners: list[socket.socket] = []

    def start(*texts: bytes, hold: bool = False, drip: float = 0, drip_lines: float = 0) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)
        threading.Thread(target=_answer, args=(listener, list(texts), hold, drip, drip_lines), daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for listener in listeners:
        listener.close()


def _answer(listener: socket.socket, texts: list[bytes], hold: bool, drip: float, drip_lines: float) -> None:
    held: list[socket.socket] = []
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return  # the test is over
        connection.recv(65536)
        text = texts.pop(0) if len(texts) > 1 else texts[0]
        if drip > 0:
            _drip(connection, [text[at : at + 1] for at in range(len(text))], drip)
        elif drip_lines > 0:
            _drip(connection, text.splitlines(keepends=True), drip_lines)
        else:
            connection.sendall(text)
        if hold:
            held.append(connection)
        else:
            connection.close()


def _drip(connection: socket.socket, parts: list[bytes], seconds: float) -> None:
    """Sends a part, and then the next one after some seconds, as a hostile server does."""
    try:
        for part in parts:
            connection.sendall(part)
            time.sleep(seconds)
    except OSError:
        return  # the client has left
