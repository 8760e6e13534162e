"""The file of an export, proved."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from urllib.parse import urlsplit, urlunsplit

from ._errors import Interrupted, Refused
from ._export import completed, ended
from ._http import Lead
from ._retry import Backoff, Options
from ._url import parameter, url_of

_EXPORT = re.compile(r"(?P<path>.*/exports/[^/]+?)(?:/file)?/?")
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
# The formats of files by the ends of their names.
_FORMS = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".csv": "csv",
    ".json": "json",
}
# After so many bytes, the next failure counts as the first one.
_STEP = 64 * 1024


@dataclass(frozen=True)
class _File:
    url: str
    bytes: int
    sha256: str


def download_export(address: str, form: str | None, path: str | os.PathLike[str], options: Options) -> str:
    """The path of the file of a new export. See `export`."""
    ending = os.path.splitext(os.fspath(path))[1].lower()
    known = form or parameter(url_of(address, "stream"), "format") or _FORMS.get(ending)
    download_to(completed(address, known, options, Backoff(options)), path, options)
    return os.fspath(path)


def download_to(url: str, path: str | os.PathLike[str], options: Options) -> None:
    """Writes the file of an export. See `download`."""
    options = replace(options, compression="identity")
    file = _complete(url, options)
    part = f"{os.fspath(path)}.part"
    digest = hashlib.sha256()
    try:
        with open(part, "wb") as output:
            for chunk in _chunks(file, options):
                output.write(chunk)
                digest.update(chunk)
            output.flush()
            os.fsync(output.fileno())
        if digest.hexdigest() != file.sha256:
            raise Refused(f"the bytes that came are not the file of the export, whose SHA-256 is {file.sha256}")
        os.replace(part, path)
    finally:
        with suppress(FileNotFoundError):
            os.remove(part)


def _complete(url: str, options: Options) -> _File:
    parts = urlsplit(url)
    found = _EXPORT.fullmatch(parts.path)
    if found is None:
        raise ValueError(f"{url!r} is not the URL of an export")
    own = found["path"]
    export = ended(urlunsplit(parts._replace(path=own, query="", fragment="")), options, Backoff(options))
    file = export.get("file")
    size, digest = (file.get("bytes"), file.get("sha256")) if isinstance(file, dict) else (None, None)
    if not isinstance(size, int) or not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise Refused("the answer is no export")
    return _File(urlunsplit(parts._replace(path=f"{own}/file", fragment="")), size, digest)


def _chunks(file: _File, options: Options) -> Iterator[bytes]:
    """The bytes, each once, however often the connection is cut or a link ends."""
    backoff = Backoff(options)
    at = counted = 0
    tag = ""
    while at < file.bytes:
        try:
            answer, tag = _opened(file, at, tag, options, backoff)
            with answer:
                for chunk in _from(answer, at):
                    at += len(chunk)
                    if at > file.bytes:
                        raise Refused(f"the file has more than the {file.bytes} bytes of its export")
                    if at - counted >= _STEP:
                        backoff.reset()
                        counted = at
                    with backoff.left():
                        yield chunk
            if at < file.bytes:
                raise Interrupted("the connection was cut")
        except Interrupted as failure:
            backoff.after(failure)


def _opened(file: _File, at: int, tag: str, options: Options, backoff: Backoff) -> tuple[Lead, str]:
    """The answer that has the bytes from `at` on, and the tag that the file has in an object store."""
    wanted = {"Range": f"bytes={at}-"} if at > 0 else {}
    answer = Lead(file.url, "*/*", options, backoff, headers=wanted)
    try:
        own = answer.header("etag")
        if own is not None and own != f'"{file.sha256}"':
            raise Refused("the server has another file for this export than it had")
        link = answer.location()
    except BaseException:
        answer.close()
        raise
    if link is None:
        return answer, tag
    answer.close()
    if at > 0 and tag:
        wanted["If-Range"] = tag
    try:  # the object store gets no key
        found = Lead(link, "*/*", replace(options, key=None), backoff, headers=wanted)
    except Refused as refused:  # the link has ended: the server is asked for another one
        if refused.status is not None and 300 <= refused.status < 400:
            raise
        raise Interrupted(f"the object store: {refused}") from None
    if found.location() is not None or found.status == 307:
        found.close()
        raise Refused("the object store answered with a redirect, which is not followed")
    return found, found.header("etag") or ""


def _from(answer: Lead, at: int) -> Iterator[bytes]:
    """The bytes from `at` on. A whole file, in place of the rest, is read up to there."""
    if answer.header("content-encoding") not in (None, "identity"):
        raise Refused("the file came in a content coding")
    found = answer.header("content-range")
    if answer.status == 206 and found is not None and not found.startswith(f"bytes {at}-"):
        raise Refused("the server answered with another range than the one asked for")
    before = 0 if answer.status == 206 else at
    for chunk in answer.chunks():
        if len(chunk) > before:
            yield chunk[before:]
        before = max(0, before - len(chunk))
