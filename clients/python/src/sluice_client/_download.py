"""The file of an export, proved."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from ._errors import Interrupted, Refused
from ._http import Lead
from ._retry import Backoff, Options

# After so many bytes, the next failure counts as the first one.
_STEP = 64 * 1024


@dataclass(frozen=True)
class ExportedFile:
    """The file of a complete export: its URL at the server, its length, and its SHA-256 in hexadecimal digits."""

    url: str
    bytes: int
    sha256: str


def write_file(file: ExportedFile, path: str, options: Options) -> None:
    """Writes the file to `path`, which appears when its bytes are proved."""
    options = replace(options, compression="identity")
    part = f"{path}.part"
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


def _chunks(file: ExportedFile, options: Options) -> Iterator[bytes]:
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


def _opened(file: ExportedFile, at: int, tag: str, options: Options, backoff: Backoff) -> tuple[Lead, str]:
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
