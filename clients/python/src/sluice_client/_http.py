"""One request: the headers of its answer, and the bytes as they come."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import zlib
from collections.abc import Iterator, Mapping
from types import TracebackType
from urllib.parse import urlsplit

from . import __version__
from ._errors import Interrupted, Refused, failure_of
from ._retry import Backoff, Options

_CHUNK = 256 * 1024
_LONGEST_JSON = 4 * 1024 * 1024
_LONGEST_PROBLEM = 64 * 1024
_GZIP = 16 + zlib.MAX_WBITS
_ELSEWHERE = 307


class Answer:
    """The answer to one GET, with status 200, or to one POST of JSON, with status 202. Use it in a `with` block, which
    closes the connection.

    Raises Interrupted when another attempt may succeed, otherwise Refused.
    """

    def __init__(
        self,
        url: str,
        accept: str,
        options: Options,
        backoff: Backoff,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._backoff = backoff
        self._headers = headers or {}
        self._timeout = options.timeout
        self._connection = _connection_to(url, options.timeout)
        try:
            self._response = self._request(url, accept, options, body)
            self._check(accept, 200 if body is None else 202)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def header(self, name: str) -> str | None:
        return self._response.getheader(name)

    def chunks(self) -> Iterator[bytes]:
        """The decoded bytes, as far as they came. Ends with the answer. Raises Interrupted when it is cut."""
        coding = self.header("content-encoding") or "identity"
        if coding == "identity":
            yield from self._received()
        elif coding == "gzip":
            yield from self._decompressed()
        else:
            raise Refused(f"the server answered with the content coding {coding!r}")

    def json(self) -> object:
        """The whole answer, as JSON."""
        body = bytearray()
        for chunk in self.chunks():
            body += chunk
            if len(body) > _LONGEST_JSON:
                raise Refused("the answer is too long")
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise Interrupted("the answer is incomplete or not JSON") from None

    def _request(self, url: str, accept: str, options: Options, body: bytes | None) -> http.client.HTTPResponse:
        headers = {
            "Accept": accept,
            "Accept-Encoding": options.compression,
            "User-Agent": f"sluice-client/{__version__}",
            **self._headers,
        }
        if options.key is not None:
            headers["Authorization"] = f"Bearer {options.key}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        parts = urlsplit(url)
        left = self._backoff.waiting()
        with _translated():
            self._connection.timeout = min(left, self._timeout)
            self._connection.connect()
            # A head that comes byte by byte would reset the timeout of the socket each time.
            with _closing_after(left, self._connection):
                method = "GET" if body is None else "POST"
                target = f"{parts.path}?{parts.query}" if parts.query else parts.path
                self._connection.request(method, target, body, headers)
                return self._connection.getresponse()

    def _check(self, accept: str, wanted: int) -> None:
        status = self._response.status
        if 300 <= status < 400:
            raise Refused(f"the server answered {status}; redirects are not followed", status)
        kind = (self.header("content-type") or "").split(";")[0]
        if status != wanted:
            raise failure_of(status, f"the server answered {status}{self._detail(kind)}", self._retry_after())
        if kind == "":
            raise Interrupted("the answer was cut in its head")
        if kind != accept:
            raise Refused(f"the server answered with {kind}, not with {accept}")

    def _detail(self, kind: str) -> str:
        if kind != "application/problem+json":
            return ""
        body = bytearray()
        try:
            for chunk in self.chunks():
                body += chunk
                if len(body) > _LONGEST_PROBLEM:
                    return ""
            problem = json.loads(body)
        except (Interrupted, Refused, ValueError, RecursionError):
            return ""  # the status says enough
        detail = problem.get("detail") if isinstance(problem, dict) else None
        return f": {detail[:1000]}" if isinstance(detail, str) else ""

    def _retry_after(self) -> float:
        value = self.header("retry-after") or ""
        return float(value) if value.isascii() and value.isdigit() else 0.0

    def _received(self) -> Iterator[bytes]:
        while True:
            left = self._backoff.waiting()
            with _translated():
                if self._connection.sock is not None:
                    self._connection.sock.settimeout(min(left, self._timeout))
                chunk = self._response.read1(_CHUNK)
            if not chunk:
                return
            yield chunk

    def _decompressed(self) -> Iterator[bytes]:
        """All members of the gzip data. Anything else behind the end, or an end too early, is an interruption."""
        decoder = zlib.decompressobj(_GZIP)
        for chunk in self._received():
            rest = chunk
            while rest:
                if decoder.eof:
                    decoder = zlib.decompressobj(_GZIP)
                try:
                    data = decoder.decompress(rest, _CHUNK)  # a bomb cannot fill the memory
                except zlib.error as error:
                    raise Interrupted(f"the answer cannot be decompressed: {error}") from None
                if data:
                    yield data
                rest = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
        while data := decoder.flush(_CHUNK):
            yield data
        if not decoder.eof:
            raise Interrupted("the compressed answer was cut")


class Lead(Answer):
    """The answer to a GET of a file or a range of it: it may be a redirect to another host, which is not followed."""

    @property
    def status(self) -> int:
        return self._response.status

    def location(self) -> str | None:
        """Where the file is. None: at the URL that was asked for."""
        location = self.header("location")
        if self._response.status != _ELSEWHERE or location is None:
            return None
        parts = urlsplit(location)
        if parts.scheme not in ("http", "https") or parts.hostname is None or parts.username is not None:
            raise Refused("the server answered with a link that is none")
        return location

    def _check(self, accept: str, wanted: int) -> None:
        if self._response.status not in (wanted, 206, _ELSEWHERE):
            super()._check(accept, wanted)


def _connection_to(url: str, timeout: float) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise ValueError("give the API key as key=, not in the URL")
    if parts.hostname is None or parts.scheme not in ("http", "https"):
        raise ValueError(f"{url!r} is not an http or https URL")
    if parts.scheme == "http":
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
    return http.client.HTTPSConnection(
        parts.hostname, parts.port, timeout=timeout, context=ssl.create_default_context()
    )


class _translated:
    """Failures of the connection become Interrupted."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, TimeoutError):
            raise Interrupted("the server sent nothing in time") from error
        if isinstance(error, OSError | http.client.HTTPException | ValueError | AttributeError):
            # ValueError and AttributeError: http.client reads on in a connection that the time limit has closed.
            raise Interrupted(f"the connection was cut: {error!r}") from error


class _closing_after:
    """Shuts a connection down when a block takes longer than a number of seconds."""

    def __init__(self, seconds: float, connection: http.client.HTTPConnection) -> None:
        self._timer = threading.Timer(seconds, self._close)
        self._timer.daemon = True
        self._connection = connection
        self._is_late = False

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._timer.cancel()
        if self._is_late:  # http.client takes a head that is cut for a whole one
            raise TimeoutError

    def _close(self) -> None:
        self._is_late = True
        sock = self._connection.sock
        if sock is None:
            return
        try:
            sock.shutdown(2)
        except OSError:
            return  # it is closed already
